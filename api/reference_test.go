package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go-crontab/api"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// operations lists the documented operations, in order.
func (c *contract) operations() []*documented {
	var out []*documented
	for _, pattern := range slices.Sorted(maps.Keys(c.paths)) {
		for _, method := range slices.Sorted(maps.Keys(c.paths[pattern])) {
			out = append(out, c.paths[pattern][method])
		}
	}
	return out
}

// parameters lists an operation's parameters in the path, the query or a header.
func (d *documented) parameters(in string) (out []map[string]any) {
	list, _ := d.op["parameters"].([]any)
	for _, p := range list {
		if p := p.(map[string]any); p["in"] == in {
			out = append(out, p)
		}
	}
	return out
}

func TestReferenceIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/openapi.json", "/openapi.yaml", "/docs"} {
		one, err := document(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if two, err := document(path); err != nil || one != two {
				t.Fatalf("%s: made twice, it differs (%v):\n%s", path, err, cmp.Diff(one, two))
			}
		}
	}
}

func TestYAMLSaysWhatJSONSays(t *testing.T) {
	t.Parallel()
	text, err := document("/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}

	var fromYAML, fromJSON any
	if err := yaml.Unmarshal([]byte(text), &fromYAML); err != nil {
		t.Fatal(err)
	}

	again, err := json.Marshal(fromYAML)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = document("/openapi.json"); err != nil {
		t.Fatal(err)
	}

	for text, to := range map[string]*any{text: &fromJSON, string(again): &fromYAML} {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			t.Fatal(err)
		}
	}

	if diff := cmp.Diff(fromJSON, fromYAML); diff != "" {
		t.Errorf("they differ (-JSON +YAML):\n%s", diff)
	}
}

// everySchema calls f for each schema in a document.
func everySchema(v any, place string, f func(place string, schema map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			here := place + "/" + name
			schema, isObject := inner.(map[string]any)
			switch {
			case isObject && (name == "schema" || name == "items" && schema["type"] != "array"):
				f(here, schema)
			case isObject && (name == "schemas" || name == "properties"):
				for of, s := range schema {
					f(here+"/"+of, s.(map[string]any))
				}
			}

			if name != "example" && name != "examples" && name != "default" {
				everySchema(inner, here, f)
			}
		}
	case []any:
		for i := range v {
			everySchema(v[i], fmt.Sprintf("%s/%d", place, i), f)
		}
	}
}

// TestEveryRouteIsDocumented compares the router and the document in both directions.
func TestEveryRouteIsDocumented(t *testing.T) {
	t.Parallel()
	c := getContract(t)
	served, written := api.New(api.Config{}).Routes(), []string{}
	for _, d := range c.operations() {
		written = append(written, d.String())
	}

	for _, route := range served {
		if !slices.Contains(written, route) {
			t.Errorf(
				"%s is not documented: give it an operation in api/reference_*.go, and name that in its line of the table in api/server.go", route)
		}
	}

	for _, route := range written {
		if !slices.Contains(served, route) {
			t.Errorf("%s is documented, and not served", route)
		}
	}

	ids := map[string]string{}
	for _, d := range c.operations() {
		id := fmt.Sprint(d.op["operationId"])
		if other, taken := ids[id]; taken || d.op["operationId"] == nil {
			t.Errorf("%s has the operationId %q, as %s has", d, id, other)
		}

		ids[id] = d.String()
		for _, field := range []string{"summary", "description", "tags"} {
			if d.op[field] == nil || d.op[field] == "" {
				t.Errorf("%s has no %s: give it one in its operation in api/reference_*.go", d, field)
			}
		}

		if !slices.ContainsFunc(c.doc["tags"].([]any),
			func(tag any) bool { return tag.(map[string]any)["name"] == d.op["tags"].([]any)[0] }) {
			t.Errorf("%s has the tag %v, which is none of those in api/openapi.go", d, d.op["tags"])
		}

		places := regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(d.pattern, -1)
		if len(places) != len(d.parameters("path")) {
			t.Errorf("%s: its path has %d parameters, %d are documented", d, len(places), len(d.parameters("path")))
		}

		for _, p := range slices.Concat(d.parameters("path"), d.parameters("query"), d.parameters("header")) {
			if p["description"] == nil || p["in"] == "path" && p["example"] == nil {
				t.Errorf(
					"%s: the parameter %v has no description, or no example; a part of a path gets them in api/reference_places.go", d, p["name"])
			}
		}

		if len(dig(d.op, "responses")) == 0 {
			t.Errorf("%s has no answers", d)
		}
	}
}

// TestEveryFieldIsDescribed finds fields without a description.
func TestEveryFieldIsDescribed(t *testing.T) {
	t.Parallel()
	c := getContract(t)
	for name, s := range dig(c.doc, "components", "schemas") {
		for field, inner := range dig(s, "properties") {
			if inner := inner.(map[string]any); inner["description"] == nil || inner["description"] == "" {
				t.Errorf(
					"the field %q of %s is not described: give it a doc tag, or, if it is one of a job's definition, a row in docs/jobs.md", field, name)
			}
		}
	}
}

// TestExamplesFit checks the examples of the document against its schemas.
func TestExamplesFit(t *testing.T) {
	t.Parallel()
	c := getContract(t)
	fits := func(where, place string, example any) {
		t.Helper()
		text, err := json.Marshal(example)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.validate(place, string(text)); err != nil {
			t.Errorf("%s: the example %s does not fit: %v", where, text, err)
		}
	}

	for _, d := range c.operations() {
		place := "#/paths/" + escape(d.pattern) + "/" + d.method
		parameters, _ := d.op["parameters"].([]any)
		for i, p := range parameters {
			if p := p.(map[string]any); p["example"] != nil {
				fits(fmt.Sprint(d, " ", p["name"]), fmt.Sprintf("%s/parameters/%d/schema", place, i), p["example"])
			}
		}

		bodies := map[string]map[string]any{"/requestBody": dig(d.op, "requestBody", "content")}
		for status := range dig(d.op, "responses") {
			bodies["/responses/"+status] = dig(d.op, "responses", status, "content")
		}

		for part, content := range bodies {
			for media, m := range content {
				m := m.(map[string]any)
				if m["example"] != nil {
					fits(fmt.Sprint(d, part), place+part+"/content/"+escape(media)+"/schema", m["example"])
				} else if media == "application/json" && dig(m, "schema")["$ref"] != nil && part != "/requestBody" {
					t.Errorf("%s%s has no example: give its type one in api/reference_examples.go", d, part)
				}
			}
		}
	}

	for name, s := range dig(c.doc, "components", "schemas") {
		for field, inner := range dig(s, "properties") {
			list, _ := inner.(map[string]any)["examples"].([]any)
			for _, example := range list {
				fits(name+"."+field, "#/components/schemas/"+name+"/properties/"+field, example)
			}
		}
	}
}

// TestReferencePage finds anything that would make a browser load or run more than the page's own
// two files.
func TestReferencePage(t *testing.T) {
	t.Parallel()
	s := startReference(t)
	r := s.call("GET", "/docs", nil).want(200)
	for what, pattern := range map[string]string{
		"something from elsewhere": `(?i)(src|href|srcset|action|data)="(https?:)?//`,
		"a script of its own":      `(?i)<script[^>]*>[^<]|\son[a-z]+="|javascript:`,
		"a style of its own":       `(?i)<style|\sstyle="`,
	} {
		if found := regexp.MustCompile(pattern).FindString(r.body); found != "" {
			t.Errorf("the page has %s: %s", what, found)
		}
	}

	for _, file := range []string{"/docs/reference.css", "/docs/reference.js"} {
		body := s.call("GET", file, nil).want(200).body
		if !strings.Contains(r.body, `"`+file+`"`) {
			t.Errorf("the page does not load %s", file)
		}
		if found := regexp.MustCompile(`(?i)https?://|url\(|@import|import\(|fetch\(`).FindString(body); found != "" {
			t.Errorf("%s loads something: %s", file, found)
		}
	}

	policy := r.header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}

	c := getContract(t)
	for _, d := range c.operations() {
		for _, want := range []string{fmt.Sprintf(`<article id="%s"`, d.op["operationId"]),
			fmt.Sprintf(`href="#%s"`, d.op["operationId"])} {
			if !strings.Contains(r.body, want) {
				t.Errorf("%s is not on the page: there is no %s", d, want)
			}
		}
	}

	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllStringSubmatch(r.body, -1) {
		if anchors[m[1]] {
			t.Errorf("two things on the page have the id %s", m[1])
		}
		anchors[m[1]] = true
	}

	for _, m := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(r.body, -1) {
		if !anchors[m[1]] {
			t.Errorf("a link leads to #%s, which there is not", m[1])
		}
	}

	for name := range dig(c.doc, "components", "schemas") {
		if !anchors["type-"+name] {
			t.Errorf("the type %s is not on the page", name)
		}
	}
}

// TestReferenceIsFetchedOnce requests it again with the tag of the first answer.
func TestReferenceIsFetchedOnce(t *testing.T) {
	t.Parallel()
	s := startReference(t)
	for _, path := range []string{"/openapi.json", "/openapi.yaml", "/docs/reference.css", "/docs/reference.js"} {
		r := s.call("GET", path, nil).want(200)
		tag := r.header.Get("ETag")
		if tag == "" || r.header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: got headers %v", path, r.header)
		}

		for _, given := range []string{tag, `"other", ` + tag, "W/" + tag, "*"} {
			if again := s.call("GET", path, nil, "If-None-Match", given).want(304); again.body != "" ||
				again.header.Get("ETag") != tag {
				t.Errorf("%s with %s: got %v %q", path, given, again.header, again.body)
			}
		}

		s.call("GET", path, nil, "If-None-Match", `"other"`).want(200)
		if head := s.call("HEAD", path, nil).want(200); head.body != "" || head.header.Get("ETag") != tag {
			t.Errorf("HEAD %s: got %v %q", path, head.header, head.body)
		}
	}

	for _, name := range []string{"reference.html", "x", "..%2Fhome.html", "%2e%2e", "%FF"} {
		s.call("GET", "/docs/"+name, nil).want(404)
	}
}

// TestContractSaysNo makes sure that wrong answers are found.
func TestContractSaysNo(t *testing.T) {
	t.Parallel()
	c := getContract(t)
	group := `{"name": "g", "slots": 1, "executing": 0, "waiting": 0, "jobs": 0, "created": "2027-01-31T03:00:00Z", "updated": "2027-01-31T03:00:00Z"`
	missing := `{"type": "urn:go-crontab:problem:%s", "title": "t", "status": 404, "detail": "d"}`
	json, problem := "application/json", "application/problem+json"
	for name, x := range map[string]struct {
		status      int
		media, body string
		header      string
		ok          bool
	}{
		"as documented":          {200, json, group + `}`, "", true},
		"another field":          {200, json, group + `, "color": "red"}`, "", false},
		"a missing field":        {200, json, `{"name": "g"}`, "", false},
		"another type":           {200, json, strings.Replace(group, `"slots": 1`, `"slots": "1"`, 1) + `}`, "", false},
		"no instant":             {200, json, strings.Replace(group, "T03:00:00Z", "", 1) + `}`, "", false},
		"another status":         {202, json, group + `}`, "", false},
		"another media type":     {200, "text/plain", "g", "", false},
		"another header":         {200, json, group + `}`, "Location", false},
		"a problem":              {404, problem, fmt.Sprintf(missing, "not-found"), "", true},
		"another type of them":   {404, problem, fmt.Sprintf(missing, "has-ended"), "", false},
		"a problem as it is not": {404, problem, `{"type": "urn:go-crontab:problem:not-found"}`, "", false},
	} {
		quiet := &recorder{TB: t}
		header := http.Header{"Content-Type": {x.media}}
		if x.header != "" {
			header.Set(x.header, "x")
		}
		c.check(&reply{quiet, "GET /api/v1/groups/g", x.status, header, x.body}, "GET", "/api/v1/groups/g", "", "")
		if quiet.failed == x.ok {
			t.Errorf("%s: taken %t, want %t", name, !quiet.failed, x.ok)
		}
	}

	for body, ok := range map[string]bool{`{"slots": 2}`: true, `{"slots": 2, "name": null}`: true,
		`{"slots": 2, "jobs": 7}`: true, `{"slots": 0}`: false, `{"slotz": 2}`: false, `{"rate": "10/1m"}`: true} {
		if err := c.checkSent(c.paths["/api/v1/groups/{name}"]["put"], body, json); (err == nil) != ok {
			t.Errorf("sent %s: got %v, want taken %t", body, err, ok)
		}
	}
}

// recorder records that a test failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Helper()               {}
