package api_test

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go-crontab/api"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contract is the OpenAPI document. Every answer that a test receives, and every accepted request,
// is checked against it.
type contract struct {
	doc   map[string]any
	paths map[string]map[string]*documented // by pattern and method

	mu       sync.Mutex // of the compiler
	compiler *jsonschema.Compiler
}

// documented is an operation of the document.
type documented struct {
	pattern, method string
	op              map[string]any
}

func (d *documented) String() string { return strings.ToUpper(d.method) + " " + d.pattern }

const contractURL = "https://contract.invalid/openapi.json"

// theContract is read once, since all servers share it.
var theContract = sync.OnceValues(func() (*contract, error) {
	text, err := document("/openapi.json")
	if err != nil {
		return nil, err
	}

	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, err
	}

	c := &contract{
		doc: doc.(map[string]any), paths: map[string]map[string]*documented{}, compiler: jsonschema.NewCompiler(),
	}
	for pattern, methods := range dig(c.doc, "paths") {
		c.paths[pattern] = map[string]*documented{}
		for method, op := range methods.(map[string]any) {
			c.paths[pattern][method] = &documented{pattern, method, op.(map[string]any)}
		}
	}

	// Clients must ignore unknown fields, but our own answers may only have documented ones.
	for _, s := range dig(c.doc, "components", "schemas") {
		if s := s.(map[string]any); s["type"] == "object" && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
	}

	c.compiler.AssertFormat()
	return c, c.compiler.AddResource(contractURL, c.doc)
})

// startReference serves the routes that need no database.
func startReference(t testing.TB) *site {
	server := httptest.NewServer(api.New(api.Config{Version: "v0.0.0-test"}))
	t.Cleanup(server.Close)
	return &site{t: t, url: server.URL, http: server.Client()}
}

func getContract(t testing.TB) *contract {
	t.Helper()
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// document fetches the document from a server without a database.
func document(path string) (string, error) {
	w := httptest.NewRecorder()
	api.New(api.Config{Version: "v0.0.0-test"}).ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+path, nil))
	if w.Code != http.StatusOK {
		return "", fmt.Errorf("GET %s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.String(), nil
}

// dig returns the object at a path; nil if it does not exist.
func dig(o any, path ...string) map[string]any {
	for _, name := range path {
		m, _ := o.(map[string]any)
		o = m[name]
	}
	m, _ := o.(map[string]any)
	return m
}

// find returns the operation of a request, or nil.
func (c *contract) find(method, path string) *documented {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	best := ""
	for pattern := range c.paths {
		// A name in the pattern takes precedence over a variable: { sorts after all letters.
		if matches(strings.Split(pattern, "/"), parts) && (best == "" || pattern < best) {
			best = pattern
		}
	}

	if method == http.MethodHead {
		method = http.MethodGet
	}
	return c.paths[best][strings.ToLower(method)]
}

func matches(pattern, parts []string) bool {
	return slices.EqualFunc(pattern, parts, func(want, got string) bool {
		return want == got || strings.HasPrefix(want, "{") && got != ""
	})
}

// checkProblem checks the common properties of all problems.
func (c *contract) checkProblem(r *reply) {
	r.t.Helper()
	if r.status < 400 || r.body == "" {
		return
	}
	if err := c.validate("#/components/schemas/Problem", r.body); err != nil {
		r.t.Errorf("%s: %d is no problem as documented: %v\n%s", r.what, r.status, err, r.body)
	}
}

// check checks an answer, and the body of an accepted request, against the document.
func (c *contract) check(r *reply, method, path, sent, media string) {
	r.t.Helper()
	wrong := func(format string, args ...any) {
		r.t.Helper()
		r.t.Errorf("%s answers %d with what /openapi.json does not say: %s\n%s", r.what, r.status,
			fmt.Sprintf(format, args...), r.body)
	}

	op := c.find(method, path)
	if op == nil {
		if r.status < 400 {
			wrong("there is no such operation; document it in api/reference_*.go")
		}
		c.checkProblem(r)
		return
	}

	place := "#/paths/" + escape(op.pattern) + "/" + op.method + "/responses/" + fmt.Sprint(r.status)
	answer := dig(op.op, "responses", fmt.Sprint(r.status))
	if ref, _ := answer["$ref"].(string); ref != "" {
		place, answer = ref, dig(c.doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}

	if answer == nil {
		wrong("it has no such status; name it, or its type of problem, in the operation %s", op.op["operationId"])
		return
	}

	documentedHeaders := slices.Clone(ofHTTP)
	for name := range dig(answer, "headers") {
		documentedHeaders = append(documentedHeaders, http.CanonicalHeaderKey(name))
	}

	for name := range r.header {
		if !slices.Contains(documentedHeaders, name) {
			wrong("it has no header %s", name)
		}
	}

	if r.body != "" {
		given, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
		if _, ok := dig(answer, "content")[given]; !ok {
			wrong("it has no body of type %q (%v)", given, err)
		} else if strings.HasSuffix(given, "json") {
			if err := c.validate(place+"/content/"+escape(given)+"/schema", r.body); err != nil {
				wrong("%v", err)
			}
		}
	}

	if r.status >= 200 && r.status < 300 && sent != "" {
		if err := c.checkSent(op, sent, media); err != nil {
			wrong("it took a body that it does not document: %s\n%v", sent, err)
		}
	}
}

// ofHTTP are headers of HTTP itself, or of every answer.
var ofHTTP = []string{"Content-Type", "Content-Length", "Date", "X-Content-Type-Options", "Content-Security-Policy",
	"Cross-Origin-Resource-Policy",
	"Referrer-Policy", "Cache-Control", "Content-Disposition", "Allow", "Connection"}

// checkSent checks an accepted body against the document.
func (c *contract) checkSent(op *documented, sent, media string) error {
	media, _, err := mime.ParseMediaType(media)
	if err != nil {
		return err
	}
	if dig(op.op, "requestBody", "content", "*/*") != nil {
		return nil
	}
	if dig(op.op, "requestBody", "content", media) == nil {
		return fmt.Errorf("no body of type %s is documented", media)
	}

	if !strings.HasSuffix(media, "json") {
		return nil
	}

	if op.method != "patch" { // null means absent, at any depth
		var v any
		if err := json.Unmarshal([]byte(sent), &v); err != nil {
			return err
		}
		text, err := json.Marshal(withoutNull(v))
		if err != nil {
			return err
		}
		sent = string(text)
	}

	return c.validate("#/paths/"+escape(op.pattern)+"/"+op.method+"/requestBody/content/"+escape(media)+"/schema", sent)
}

func withoutNull(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if inner == nil {
				delete(v, name)
			} else {
				v[name] = withoutNull(inner)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutNull(v[i])
		}
	}

	return v
}

// validate checks a JSON text against a schema of the document.
func (c *contract) validate(place, text string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}

	c.mu.Lock()
	s, err := c.compiler.Compile(contractURL + place)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// escape escapes a name for a JSON pointer in a URL.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", "+", "%2B").Replace(name)
}
