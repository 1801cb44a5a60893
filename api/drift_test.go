package api_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go-crontab/api"

	"github.com/google/go-cmp/cmp"
)

// The tests here compare the document with the handlers: accepted and refused input.

// foreign are operations that accept any input, because others call them.
var foreign = []string{"returnOIDC"}

// TestQueryIsWhatIsDocumented sends unknown parameters to each operation, and wrong values for all
// documented ones. A wrong value without a complaint shows that no handler reads the parameter.
func TestQueryIsWhatIsDocumented(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, d := range getContract(t).operations() {
		id := fmt.Sprint(d.op["operationId"])
		if slices.Contains(foreign, id) {
			continue
		}

		var names []string
		for _, p := range d.parameters("query") {
			names = append(names, fmt.Sprint(p["name"]))
		}

		ask := func(name, value string) (message string) {
			t.Helper()
			r := s.call(strings.ToUpper(d.method), s.pathOf(d)+"?"+name+"="+url.QueryEscape(value), nil)
			return r.complaint(name)
		}

		said := ask("xyzzy", "1")
		_, known, _ := strings.Cut(said, "the known parameters are ")
		if got := strings.FieldsFunc(known, func(r rune) bool { return r == ',' || r == ' ' }); !slices.Equal(got,
			names) || said == "" {
			t.Errorf("%s takes the parameters %q (it says %q), and %q are documented", id, got, said, names)
		}

		for _, p := range d.parameters("query") {
			name, schema := fmt.Sprint(p["name"]), p["schema"].(map[string]any)
			bad := wrongValues(schema)
			if len(bad) == 0 && name == "cursor" {
				bad = []string{"!"}
			}
			if len(bad) == 0 {
				t.Errorf("%s: the schema of the parameter %s has no limits: %v", id, name, schema)
			}

			for _, value := range bad {
				if ask(name, value) == "" {
					t.Errorf("%s takes %s=%.40s, which is not what is documented, or does not read it", id, name, value)
				}
			}

			if good := p["example"]; good != nil {
				if said := ask(name, fmt.Sprint(good)); said != "" {
					t.Errorf("%s: the example %s=%v is refused: %s", id, name, good, said)
				}
			}
		}
	}
}

// pathOf is a path of an operation; the objects that it names need not exist.
func (s *site) pathOf(d *documented) string {
	path := d.pattern
	for _, p := range d.parameters("path") {
		path = strings.ReplaceAll(path, "{"+fmt.Sprint(p["name"])+"}", fmt.Sprint(p["example"]))
	}
	return path
}

// complaint returns the message about a field in an answer, or "".
func (r *reply) complaint(field string) string {
	if r.status != 422 {
		return ""
	}
	for _, e := range r.object().items("errors") {
		if e.text("field") == field {
			return e.text("message")
		}
	}
	return ""
}

// wrongValues are just outside the range of a schema.
func wrongValues(schema map[string]any) (out []string) {
	number := func(name string) (float64, bool) {
		n, ok := schema[name].(json.Number)
		f, err := n.Float64()
		return f, ok && err == nil
	}

	if schema["enum"] != nil || schema["format"] != nil || schema["type"] == "integer" {
		out = append(out, "x")
	}
	if n, ok := number("minimum"); ok {
		out = append(out, fmt.Sprintf("%.0f", n-1))
	}
	if n, ok := number("maximum"); ok {
		out = append(out, fmt.Sprintf("%.0f", n+1))
	}

	if n, ok := number("maxLength"); ok {
		out = append(out, strings.Repeat("x", int(n)+1))
	}
	if schema["pattern"] != nil {
		out = append(out, "=")
	}
	return out
}

// TestBodiesAreWhatIsDocumented sends an unknown field at each place of each body, and compares the
// known fields in the answer with the document.
func TestBodiesAreWhatIsDocumented(t *testing.T) {
	t.Parallel()
	s, c := start(t, nil), getContract(t)
	tried := 0
	for _, d := range c.operations() {
		schema := dig(d.op, "requestBody", "content", "application/json", "schema")
		if schema == nil {
			continue
		}

		tried++
		path := s.pathOf(d)
		if d.method == "patch" {
			path = "/api/v1/jobs/" + s.create("there", nil).text("id")
		}

		c.eachObject(schema, nil, func(place []string, props map[string]any) {
			send := func(field string, value any) string {
				t.Helper()
				r := s.call(strings.ToUpper(d.method), path, wrap(place, object{field: value}))
				return r.complaint(fieldName(place, field))
			}

			said := send("xyzzy", 1)
			_, list, _ := strings.Cut(said, "the known fields are ")
			list, isCut := strings.CutSuffix(list, "…")
			known := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
			if isCut && len(known) > 0 {
				known = known[:len(known)-1]
				if d.op["operationId"] != "createJob" && len(place) == 0 { // these have the same type
					known = slices.DeleteFunc(known, func(name string) bool { return props[name] == nil })
				}
			}

			if said == "" {
				t.Errorf("%s takes a field that nobody knows at %v", d, place)
			}

			for _, name := range known {
				if props[name] != nil {
					continue
				}
				if said := send(name, "x"); !strings.Contains(said, "set by the server") {
					t.Errorf(
						"%s takes the field %s, which is not documented: add it to the type of its body, with a doc tag or a row in docs/jobs.md", d, fieldName(place, name))
				}
			}

			for name := range props {
				if !isCut && !slices.Contains(known, name) {
					t.Errorf("%s does not take the field %s, which is documented", d, fieldName(place, name))
				}
			}
		})
	}

	if tried < 20 {
		t.Errorf("only %d operations have a body", tried)
	}

	props := slices.Sorted(maps.Keys(dig(c.doc, "components", "schemas", "JobInput", "properties")))
	if diff := cmp.Diff(api.JobFields(), props); diff != "" {
		t.Errorf("fields of a job in a PUT differ (-known +documented):\n%s", diff)
	}
}

// TestExampleBodiesAreTaken sends the examples of bodies to a node without an editor: none is
// malformed or invalid.
func TestExampleBodiesAreTaken(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.cfg.Editor = func() api.Editor { return nil }
	s.serve()
	tried := 0
	for _, d := range getContract(t).operations() {
		for media, content := range dig(d.op, "requestBody", "content") {
			example := content.(map[string]any)["example"]
			if example == nil {
				continue
			}

			text, isText := example.(string)
			if !isText {
				b, err := json.Marshal(example)
				if err != nil {
					t.Fatal(err)
				}
				text = string(b)
			}

			tried++
			path := s.pathOf(d)
			if strings.HasPrefix(path, "/api/v1/bulk/") {
				path += "?app=default" // required
			}

			r := s.call(strings.ToUpper(d.method), path, text, "Content-Type", media)
			if slices.Contains([]int{400, 413, 415, 422}, r.status) {
				t.Errorf("%s: the example of the body is refused: %s", d, r.body)
			}
		}
	}

	if tried < 15 {
		t.Errorf("only %d examples were found", tried)
	}
}

// eachObject calls f for a body and for each object inside it, with its place.
func (c *contract) eachObject(schema map[string]any, place []string, f func(place []string, props map[string]any)) {
	schema = c.resolve(schema)
	props := dig(schema, "properties")
	if schema["type"] == "array" {
		c.eachObject(dig(schema, "items"), append(slices.Clone(place), "0"), f)
		return
	}

	if props == nil && schema["additionalProperties"] != false {
		return
	}

	f(place, props)
	for name := range props {
		c.eachObject(dig(props, name), append(slices.Clone(place), name), f)
	}
}

// resolve follows references; of several alternatives it takes the first.
func (c *contract) resolve(schema map[string]any) map[string]any {
	for {
		if list, ok := schema["anyOf"].([]any); ok {
			schema = list[0].(map[string]any)
		}
		ref, ok := schema["$ref"].(string)
		if !ok {
			return schema
		}
		schema = dig(c.doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
}

// wrap puts a value at a place inside an object; numbers are indexes of lists.
func wrap(place []string, v any) any {
	for _, name := range slices.Backward(place) {
		if _, err := strconv.Atoi(name); err == nil {
			v = []any{v}
		} else {
			v = object{name: v}
		}
	}
	return v
}

// fieldName is the name of a field at a place, as problems spell it.
func fieldName(place []string, name string) string {
	out := ""
	for _, part := range append(slices.Clone(place), name) {
		if _, err := strconv.Atoi(part); err == nil {
			out += "[" + part + "]"
		} else if out == "" {
			out = part
		} else {
			out += "." + part
		}
	}

	return out
}

// TestLimitsOfJobs compares the documented limits of job fields with the real ones. A value just
// outside is refused, and a value just inside is not, or only for another reason.
func TestLimitsOfJobs(t *testing.T) {
	t.Parallel()
	s, c := start(t, nil), getContract(t)
	tried := 0
	c.eachObject(dig(c.paths["/api/v1/jobs"]["post"].op, "requestBody", "content", "application/json", "schema"), nil,
		func(place []string, props map[string]any) {
			for name, p := range props {
				schema := p.(map[string]any)
				field := fieldName(place, name)
				for bound, values := range atBounds(schema) {
					tried++
					inside, outside := s.refusal(place, name, values[0]), s.refusal(place, name, values[1])
					if outside == "" {
						t.Errorf("%s: the %s of %v is documented, and more is taken", field, bound, schema[bound])
					}

					if inside != "" &&
						inside == strings.ReplaceAll(outside, fmt.Sprint(values[1]), fmt.Sprint(values[0])) {
						t.Errorf("%s: the %s of %v is documented, and that is refused as what lies outside is: %s",
							field, bound, schema[bound], inside)
					}
				}
			}
		})

	if tried < 30 {
		t.Errorf("only %d limits were found", tried)
	}
}

// atBounds returns, for each bound of a schema, a value just inside and a value just outside.
func atBounds(schema map[string]any) map[string][2]any {
	out := map[string][2]any{}
	bound := func(name string, value func(n int) any, step int) {
		if n, err := strconv.Atoi(fmt.Sprint(schema[name])); err == nil {
			out[name] = [2]any{value(n), value(n + step)}
		}
	}

	bound("minimum", func(n int) any { return n }, -1)
	bound("maximum", func(n int) any { return n }, 1)
	bound("maxLength", func(n int) any { return strings.Repeat("x", n) }, 1)
	bound("maxItems", func(n int) any { return slices.Repeat([]any{"0 0 1 1 *"}, n) }, 1)
	bound("maxProperties", func(n int) any {
		m := object{}
		for i := range n {
			m[fmt.Sprint("k", i)] = "v"
		}
		return m
	}, 1)

	if items := dig(schema, "items"); items != nil {
		for name, values := range atBounds(items) {
			out["items."+name] = [2]any{[]any{values[0]}, []any{values[1]}}
		}
	}

	return out
}

// refusal is the message about a field of a new job; "" if there is none.
func (s *site) refusal(place []string, name string, value any) string {
	s.t.Helper()
	body := object{"name": "limits", "schedule": "0 3 1 1 *", "command": "true", "paused": true}
	inner := object{name: value}
	first := append(slices.Clone(place), name)[0]
	for of, instead := range map[string][]string{"schedule": {"schedules", "every", "at"},
		"command": {"http", "handler", "payload"}} {
		if slices.Contains(instead, first) {
			delete(body, of)
		}
	}

	switch {
	case name == "client_key":
		inner["client_cert"] = "goes with it"
		fallthrough
	case len(place) == 2 && place[0] == "http":
		body["http"] = object{"url": "https://example.com/", place[1]: inner}
	case first == "payload":
		body["handler"] = "h"
	case len(place) == 1 && place[0] == "http" && name != "url":
		inner["url"] = "https://example.com/"
	}

	if body["http"] == nil {
		maps.Copy(body, wrap(place, inner).(object))
	}

	r := s.call("POST", "/api/v1/jobs", body)
	if r.status == 201 {
		s.call("DELETE", "/api/v1/jobs/"+r.object().text("id"), nil).want(204)
		return ""
	}

	for _, e := range r.object().items("errors") {
		if at := e.text("field"); at == fieldName(place, name) || strings.HasPrefix(at, fieldName(place, name)+"[") {
			return e.text("message")
		}
	}

	return ""
}

// TestEveryProblemIsExplained finds problem types in the code without a line in the table of the
// reference.
func TestEveryProblemIsExplained(t *testing.T) {
	t.Parallel()
	page, err := document("/docs")
	if err != nil {
		t.Fatal(err)
	}

	explained := api.Explained()
	found := 0
	for _, file := range parse(t, ".") {
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || len(lit.Elts) != 3 {
				return true
			}
			if of, ok := lit.Type.(*ast.Ident); !ok || of.Name != "kind" {
				return true
			}

			found++
			name, err := strconv.Unquote(lit.Elts[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			if text := explained[name]; text[0] == "" || text[1] == "" {
				t.Errorf("the problem %s is not explained: give it a line in api/reference_problems.go", name)
			}
			if !strings.Contains(page, `id="problem-`+name+`"`) {
				t.Errorf("the problem %s is not on the page", name)
			}

			delete(explained, name)
			return true
		})
	}

	if found < 15 {
		t.Errorf("only %d types of problems were found", found)
	}
	for name := range explained {
		t.Errorf("the problem %s is explained, and there is none", name)
	}
}

// TestEveryWordIsDocumented compares the documented words with the constants of their types.
func TestEveryWordIsDocumented(t *testing.T) {
	t.Parallel()
	c := getContract(t)
	found := 0
	for _, folder := range []string{"../job", "../internal/auth", "."} {
		words := map[string][]string{} // by type
		for _, file := range parse(t, folder) {
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.ValueSpec)
				if !ok || spec.Type == nil || len(spec.Values) != 1 {
					return true
				}

				of, isName := spec.Type.(*ast.Ident)
				value, isText := spec.Values[0].(*ast.BasicLit)
				if isName && isText && value.Kind == token.STRING {
					if word, _ := strconv.Unquote(value.Value); word != "" {
						words[of.Name] = append(words[of.Name], word)
					}
				}

				return true
			})
		}

		for of, want := range words {
			name := strings.ToUpper(of[:1]) + of[1:]
			listed, _ := dig(c.doc, "components", "schemas", name)["enum"].([]any)
			if listed == nil {
				continue
			}

			found++
			var got []string
			for _, word := range listed {
				got = append(got, fmt.Sprint(word))
			}

			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf(
					"the words of %s differ from its constants in %s: change api/schemas.go (-constants +document):\n%s", name, folder, diff)
			}
		}
	}

	if found < 6 {
		t.Errorf("only %d types with words were found", found)
	}

	var causes []string
	for _, file := range parse(t, ".") {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 &&
				strings.HasPrefix(spec.Names[0].Name, "cause") {
				if value, ok := spec.Values[0].(*ast.BasicLit); ok {
					word, _ := strconv.Unquote(value.Value)
					causes = append(causes, word)
				}
			}
			return true
		})
	}

	listed := fmt.Sprint(dig(c.doc, "components", "schemas", "Explanation", "properties", "cause")["enum"])
	for _, word := range causes {
		if !strings.Contains(" "+strings.Trim(listed, "[]")+" ", " "+word+" ") {
			t.Errorf("the cause %s is not among %s: add it to causes() in api/explain.go", word, listed)
		}
	}

	if len(causes) < 15 {
		t.Errorf("only %d causes were found", len(causes))
	}
}

// parse reads the Go files of a folder, except tests.
func parse(t testing.TB, folder string) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}

	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}

		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			t.Fatal(err)
		}

		files = append(files, file)
	}

	return files
}
