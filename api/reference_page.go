package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"go-crontab/api/openapi"
	"go-crontab/api/view"
	"go-crontab/job/problem"
)

var referenceTemplate = template.Must(template.New("reference.html").Funcs(template.FuncMap{
	"text": textHTML, "line": lineHTML, "schema": schemaHTML, "breakable": breakable,
}).ParseFS(referenceFiles, "reference/reference.html"))

// referencePage: GET /docs
func (s *Server) referencePage(w http.ResponseWriter, r *http.Request) error {
	ref, err := s.reference()
	if err != nil {
		return err
	}

	h := w.Header()
	h.Set("Content-Type", mediaHTML+"; charset=utf-8")
	h.Set("Content-Security-Policy", contentPolicy+"; style-src 'self'; script-src 'self'; img-src data:")

	// An error means that the client is gone.
	io.WriteString(w, strings.ReplaceAll(ref.page, baseMark, template.HTMLEscapeString(s.base(r))))
	return nil
}

// baseMark marks the places in the page where the method base puts the address. It needs no quotes
// in a shell.
const baseMark = "http://the-node.invalid"

// base is the address at which the client reached this node.
func (s *Server) base(r *http.Request) string {
	scheme := "http"
	if s.secure(r) {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// The data of the page's template.
type (
	referenceView struct {
		Version, About, Base, TypePrefix string
		Groups                           []*groupOfOperations
		Problems                         []problemView
		Problem                          string // an example
		Types                            []typeView
	}
	groupOfOperations struct {
		ID, Name, About string
		Operations      []operationView
	}
	operationView struct {
		ID, Method, Path, Summary, About string
		Search                           string // the text that the page searches
		Roles                            string // the roles that may use it; "": everybody
		Parameters                       []*openapi.Parameter
		Body                             *bodyOfOperation
		Curl                             string
		Replies                          []replyView
		Example                          string // of the first reply, if it has one
		Problems                         []string
	}
	bodyOfOperation struct {
		Description string
		Required    bool
		Media       []string
		Type        string // "" for files
		Fields      []fieldView
		File        string // an example
	}
	replyView struct {
		Status      string
		Description string
		Headers     []string
		Media       []mediaView
	}
	mediaView   struct{ Name, Ref string }
	problemView struct {
		Name          string
		Status        int
		Means, Advice string
	}
	typeView struct {
		Name, Description string
		Plain             *openapi.Schema // the schema, if it has no fields
		Fields            []fieldView
	}
	fieldView struct {
		Name, Description string
		Required          bool
		Schema            *openapi.Schema
		Examples          []string
	}
)

func pageOf(d *openapi.Document, routes []route, base string) *referenceView {
	v := &referenceView{Version: d.Info.Version, About: d.Info.Description, Base: base, TypePrefix: view.ProblemType}
	for _, tag := range d.Tags {
		v.Groups = append(v.Groups, &groupOfOperations{
			ID: "group-" + strings.ReplaceAll(strings.ToLower(tag.Name), " ", "-"), Name: tag.Name,
			About: tag.Description,
		})
	}

	for i := range routes {
		rt := &routes[i]
		methods, _ := d.Paths.Get(rt.pattern)
		op, ok := methods.Get(strings.ToLower(rt.method))
		if !ok {
			continue
		}

		for _, g := range v.Groups {
			if g.Name == op.Tags[0] {
				g.Operations = append(g.Operations, viewOfOperation(d, rt, op, base))
			}
		}
	}

	for _, p := range problemTable {
		v.Problems = append(v.Problems, problemView{p.name, p.status, p.means, p.advice})
	}

	example := invalidField("retry.attempts", problem.WantWholeTo, `the text "three"`, 100)
	example.RequestID = "node-1/000042"
	v.Problem = indented(example)
	for _, e := range d.Components.Schemas {
		t := typeView{Name: e.Key, Description: e.Value.Description, Fields: propertiesOf(e.Value)}
		if len(e.Value.Properties) == 0 {
			plain := *e.Value
			t.Plain = &plain
		}
		v.Types = append(v.Types, t)
	}

	return v
}

func viewOfOperation(d *openapi.Document, rt *route, op *openapi.Operation, base string) operationView {
	v := operationView{
		ID: op.OperationID, Method: rt.method, Path: rt.pattern, Summary: op.Summary, About: op.Description,
		Parameters: op.Parameters,
		Search: strings.ToLower(
			strings.Join([]string{op.OperationID, rt.method, rt.pattern, op.Summary, op.Description, op.Tags[0]}, " ")),
		Curl: curl(rt, op, base),
	}

	if !rt.may.open {
		v.Roles = rt.may.role.String()
	}
	if b := op.RequestBody; b != nil {
		v.Body = viewOfBody(d, b)
	}

	for _, e := range op.Responses {
		if e.Value.Ref != "" {
			continue // problems are listed by type
		}

		r := replyView{Status: e.Key, Description: e.Value.Description}
		for _, h := range e.Value.Headers {
			r.Headers = append(r.Headers, h.Key)
		}

		for _, m := range e.Value.Content {
			if m.Key == mediaProblem {
				continue
			}
			r.Media = append(r.Media, mediaView{m.Key, nameOf(m.Value.Schema)})
			if v.Example == "" && m.Value.Example != nil {
				v.Example = indented(m.Value.Example)
			}
		}

		v.Replies = append(v.Replies, r)
	}

	for _, k := range rt.kinds() {
		v.Problems = append(v.Problems, k.name)
	}

	return v
}

// nameOf is the name of the component that a schema refers to. It is "" if the schema is no
// reference.
func nameOf(s *openapi.Schema) string { return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:] }

// fewFields limits the body fields that are shown with an operation. A body with more fields is
// shown with the types.
const fewFields = 14

func viewOfBody(d *openapi.Document, b *openapi.RequestBody) *bodyOfOperation {
	v := &bodyOfOperation{Description: b.Description, Required: b.Required}
	for _, m := range b.Content {
		v.Media = append(v.Media, m.Key)
		v.Type = nameOf(m.Value.Schema)
	}

	if first := b.Content[0].Value; v.Type == "" && first.Example != nil {
		json.Unmarshal(first.Example, &v.File) // the example of a file is a JSON text
	}
	if s, ok := d.Components.Schemas.Get(v.Type); ok && len(s.Properties) <= fewFields {
		v.Fields = propertiesOf(s)
	}
	return v
}

func propertiesOf(s *openapi.Schema) []fieldView {
	var out []fieldView
	for _, p := range s.Properties {
		f := fieldView{
			Name: p.Key, Description: p.Value.Description, Schema: p.Value,
			Required: slices.Contains(s.Required, p.Key),
		}
		for _, e := range p.Value.Examples {
			f.Examples = append(f.Examples, string(e))
		}
		out = append(out, f)
	}

	return out
}

// curl returns a request as a shell command with curl.
func curl(rt *route, op *openapi.Operation, base string) string {
	path, sep := rt.pattern, "?"
	var options []string
	for _, p := range op.Parameters {
		switch {
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", fmt.Sprint(p.Example))
		case p.In == "query" && p.Required:
			path += sep + p.Name + "=" + fmt.Sprint(p.Example)
			sep = "&"
		case p.Name == keyHeader:
			options = append(options, "-H "+quoted(p.Name+": "+fmt.Sprint(p.Example)))
		}
	}

	body := ""
	if op.RequestBody != nil {
		m := op.RequestBody.Content[0]
		switch {
		case rt.doc.body.files != nil:
			body = "--data-binary @FILE"
			options = append(options, "-H "+quoted("Content-Type: "+m.Key))
		case m.Value.Example != nil:
			body = "-d " + quoted(fold(m.Value.Example))
			options = append(options, "-H "+quoted("Content-Type: "+m.Key))
		}
	}

	method := ""
	if implied := map[bool]string{true: http.MethodPost, false: http.MethodGet}[body != ""]; rt.method != implied {
		method = " -X " + rt.method
	}

	address := base + path
	if strings.ContainsAny(address, "?&") {
		address = quoted(address)
	}

	lines := []string{"curl" + method + " " + address}
	if !rt.may.open {
		lines = append(lines, `-H "Authorization: Bearer $GOCRONTAB_TOKEN"`)
	}

	lines = append(lines, options...)
	if body != "" {
		lines = append(lines, body)
	}
	return strings.Join(lines, " \\\n  ")
}

// fold indents an example over several lines if it is long.
func fold(example json.RawMessage) string {
	if len(example) < 72 {
		return string(example)
	}
	return indented(example)
}

// quoted quotes a text for the shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func indented(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err.Error() // a test checks our examples
	}
	return strings.TrimSpace(out.String())
}

var (
	codeMark = regexp.MustCompile("`([^`]+)`")
	boldMark = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

// lineHTML converts the CommonMark of our texts to HTML: code and bold words.
func lineHTML(s string) template.HTML {
	s = template.HTMLEscapeString(s)
	s = codeMark.ReplaceAllString(s, "<code>$1</code>")
	return template.HTML(boldMark.ReplaceAllString(s, "<b>$1</b>"))
}

// textHTML converts paragraphs to HTML.
func textHTML(s string) template.HTML {
	var out template.HTML
	for p := range strings.SplitSeq(s, "\n\n") {
		if p != "" {
			out += "<p>" + lineHTML(p) + "</p>\n"
		}
	}
	return out
}

// breakable lets long paths wrap after their slashes.
func breakable(path string) template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(path), "/", "/<wbr>"))
}

// schemaHTML describes a value in a few words.
func schemaHTML(s *openapi.Schema) template.HTML {
	switch {
	case s.Ref != "":
		name := template.HTMLEscapeString(nameOf(s))
		return template.HTML(`<a href="#type-` + name + `">` + name + `</a>`)
	case s.AnyOf != nil:
		return joinHTML(s.AnyOf, " or ")
	case s.Enum != nil:
		words := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			words[i] = "<code>" + template.HTMLEscapeString(fmt.Sprint(v)) + "</code>"
			if v == nil {
				words[i] = "null"
			}
		}
		return template.HTML(strings.Join(words, " "))
	case len(s.Type) == 0:
		return "any value"
	}

	var words []string
	for _, t := range s.Type {
		words = append(words, typeHTML(s, t))
	}

	return template.HTML(strings.Join(words, " or "))
}

func typeHTML(s *openapi.Schema, t string) string {
	switch t {
	case openapi.Array:
		return "list of " + string(schemaHTML(s.Items))
	case openapi.Object:
		if values, ok := s.AdditionalProperties.(*openapi.Schema); ok {
			return "object of " + string(schemaHTML(values))
		}
	case openapi.String:
		switch {
		case s.Format == "date-time":
			return "instant"
		case s.Format != "":
			return template.HTMLEscapeString(s.Format)
		case s.MaxLength != 0:
			return fmt.Sprintf("text up to %d characters", s.MaxLength)
		}
		return "text"
	case openapi.Integer, openapi.Number:
		text := map[string]string{openapi.Integer: "whole number", openapi.Number: "number"}[t]
		switch {
		case s.Minimum != nil && s.Maximum != nil:
			return fmt.Sprintf("%s %.0f–%.0f", text, *s.Minimum, *s.Maximum)
		case s.Minimum != nil:
			return fmt.Sprintf("%s from %.0f", text, *s.Minimum)
		}
		return text
	}

	return t
}

func joinHTML(schemas []*openapi.Schema, sep string) template.HTML {
	parts := make([]string, len(schemas))
	for i, s := range schemas {
		parts[i] = string(schemaHTML(s))
	}
	return template.HTML(strings.Join(parts, sep))
}
