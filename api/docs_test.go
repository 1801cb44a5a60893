package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/test/docpage"
)

// The pages of docs/ that show jobs. Each fenced json block is a whole job, each http block a
// request; {id} in its path is the job of the block before. Code in a table that gives a field a
// value is put into the minimal job.
var pages = []string{"jobs.md", "from-xtimer.md", "from-crontab.md", "from-quartz.md", "changing.md"}

// TestPagesShowWhatWorks creates and requests everything that the pages show, in order.
func TestPagesShowWhatWorks(t *testing.T) {
	t.Parallel()
	for _, page := range pages {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			shown, id := 0, ""
			for _, it := range docpage.Read(t, "../docs/"+page) {
				where := fmt.Sprintf("%s:%d", page, it.Line)
				for i, example := range it.Examples {
					body := inMinimalJob(t, where, example)
					if body["name"] == minimalName {
						body["name"] = fmt.Sprintf("line %d example %d", it.Line, i+1)
					}
					s.createShown(where, body)
					shown++
				}

				switch it.Block {
				case "json":
					id = s.createShown(where, decode(t, where, it.Text))
					shown++
				case "http":
					if made := s.askShown(where, it.Text, id); made != "" {
						id = made
					}
					shown++
				}
			}

			if shown == 0 {
				t.Error("the page shows nothing that was found")
			}
		})
	}
}

// createShown creates a job, after the groups and calendars that it names, and returns its id.
func (s *site) createShown(where string, body object) string {
	s.t.Helper()
	if name := body.text("group"); name != "" {
		s.makeShown("groups", name, object{"slots": 1})
	}

	if after, is := body["after"].(map[string]any); is {
		ups, _ := after["jobs"].([]any)
		for _, up := range ups {
			upstream := object{"name": up, "every": "24h", "command": "true", "paused": true}
			if app, name, there := strings.Cut(fmt.Sprint(up), "/"); there {
				upstream["app"], upstream["name"] = app, name
			}
			s.call("POST", "/api/v1/jobs", upstream) // it may exist already
		}
	}

	names, _ := body["calendars"].([]any)
	for _, name := range names {
		s.makeShown("calendars", fmt.Sprint(name), object{"exclude_weekdays": []string{"sun"}})
	}

	if body["paused"] == nil {
		body["paused"] = true // examples must not run on this machine
	}

	r := s.call("POST", "/api/v1/jobs", body)
	if r.status != 201 {
		s.t.Errorf("%s: got %d %s, want 201", where, r.status, r.body)
		return ""
	}

	made := r.object()
	warnings, _ := made["warnings"].([]any)
	for _, w := range warnings {
		if w.(map[string]any)["code"] != "no_node_matches" { // the only node has no labels
			s.t.Errorf("%s: the page shows what is warned of: %v", where, w)
		}
	}

	return made.text("id")
}

// makeShown makes an object that a job names, unless it exists: the page may show how to make it.
func (s *site) makeShown(kind, name string, body object) {
	s.t.Helper()
	path := "/api/v1/" + kind + "/" + url.PathEscape(name)
	if s.call("GET", path, nil).status == 404 {
		s.call("PUT", path, body)
	}
}

// askShown sends a request, and returns the id of the job that it created, if any.
func (s *site) askShown(where, block, id string) string {
	s.t.Helper()
	line, body, _ := strings.Cut(strings.TrimSpace(block), "\n")
	method, path, _ := strings.Cut(line, " ")
	if strings.HasSuffix(path, "/cordon") {
		path += "?absent=ok" // the nodes of the page are not in this cluster
	}

	var payload any
	if body = strings.TrimSpace(body); body != "" {
		payload = body
	}

	if strings.Contains(path, "{id}") && id == "" {
		s.t.Errorf("%s: there is no job above", where)
		return ""
	}

	r := s.call(method, strings.ReplaceAll(path, "{id}", id), payload)
	if r.status < 200 || r.status > 299 {
		s.t.Errorf("%s: %s: got %d %s, want 2xx", where, line, r.status, r.body)
		return ""
	}

	if method == "POST" && path == "/api/v1/jobs" {
		return r.object().text("id")
	}
	return ""
}

func decode(t testing.TB, where, text string) object {
	t.Helper()
	var o object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	return o
}

const minimalName = "smallest"

// inMinimalJob puts fields into the page's minimal job, and removes the field that they replace.
func inMinimalJob(t testing.TB, where, fields string) object {
	t.Helper()
	given := decode(t, where, "{"+fields+"}")
	body := object{"name": minimalName, "schedule": "0 3 * * *", "command": "true"}
	for name, instead := range map[string][]string{"schedule": {"schedules", "every", "at", "delay", "after", "manual"},
		"command": {"http", "handler"}} {
		if slices.ContainsFunc(instead, func(field string) bool { return given[field] != nil }) {
			delete(body, name)
		}
	}

	maps.Copy(body, given)
	return body
}

// TestJobsPageHasEveryField compares the tables of docs/jobs.md with the fields of a job, and their
// defaults with the real ones.
func TestJobsPageHasEveryField(t *testing.T) {
	t.Parallel()
	want, objects := fieldsOf(reflect.TypeFor[job.Spec](), "")
	want = append(want, "paused") // not in the definition, but accepted with it
	rows := map[string]docpage.Item{}
	var whole []object // the whole jobs on the page
	for _, it := range docpage.Read(t, "../docs/jobs.md") {
		if it.Block == "json" {
			whole = append(whole, decode(t, fmt.Sprint("line ", it.Line), it.Text))
		}
		if it.Field == "" {
			continue
		}
		if _, twice := rows[it.Field]; twice {
			t.Errorf("line %d: %s has a second row", it.Line, it.Field)
		}

		rows[it.Field] = it
		if !slices.Contains(want, it.Field) && !slices.Contains(objects, it.Field) {
			t.Errorf("line %d: a job has no field %q", it.Line, it.Field)
		}
	}

	for _, field := range want {
		it, there := rows[field]
		if !there {
			t.Errorf("%s has no row", field)
			continue
		}

		path := strings.Split(field, ".")
		if len(it.Examples) == 0 &&
			!slices.ContainsFunc(whole, func(body object) bool { return body.text(path...) != "" }) {
			t.Errorf("line %d: %s has no example, here or in a job that the page shows in full", it.Line, field)
		}

		for _, example := range it.Examples {
			body := inMinimalJob(t, fmt.Sprint("line ", it.Line), example)
			if body.text(path...) == "" {
				t.Errorf("line %d: the example of %s does not give it", it.Line, field)
			}
			checkDefault(t, it, body)
		}
	}
}

// TestJobsPageHasEveryWord checks that the page has every word that programs may receive.
func TestJobsPageHasEveryWord(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}

	var words []string
	for o := job.Succeeded; o <= job.Superseded; o++ {
		words = append(words, o.String())
	}

	causes := regexp.MustCompile(`(?m)^\tcause\w+\s+= "(\w+)"$`).FindAllStringSubmatch(read("explain.go"), -1)
	if len(causes) == 0 {
		t.Error("explain.go has no causes that were found")
	}

	for _, match := range causes {
		words = append(words, match[1])
	}

	for _, typ := range []reflect.Type{reflect.TypeFor[job.CalendarSpec](), reflect.TypeFor[job.CalendarDay]()} {
		fields, _ := fieldsOf(typ, "")
		words = append(words, fields...)
	}

	page := read("../docs/jobs.md")
	for _, word := range words {
		if !strings.Contains(page, "`"+word+"`") {
			t.Errorf("the page does not mention `%s`", word)
		}
	}
}

// fieldsOf lists the JSON names of a type's fields, and those with inner fields.
func fieldsOf(typ reflect.Type, place string) (leaves, objects []string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}

		nested := inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]()
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && !f.Anonymous || name == "-" {
			continue
		}

		switch {
		case f.Anonymous && name == "":
			more, moreObjects := fieldsOf(inner, place)
			leaves, objects = append(leaves, more...), append(objects, moreObjects...)
		case nested:
			more, moreObjects := fieldsOf(inner, place+name+".")
			leaves, objects = append(leaves, more...), append(append(objects, place+name), moreObjects...)
		default:
			leaves = append(leaves, place+name)
		}
	}

	return leaves, objects
}

// checkDefault omits a field from a job and compares the result with the default in its row, if the
// row gives one as JSON.
func checkDefault(t *testing.T, it docpage.Item, body object) {
	t.Helper()
	text, isCode := strings.CutPrefix(it.Default, "`")
	if !isCode {
		return
	}

	text, _, _ = strings.Cut(text, "`")
	var want any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Errorf("line %d: the default of %s, %s, is no JSON: %v", it.Line, it.Field, text, err)
		return
	}

	path := strings.Split(it.Field, ".")
	inner := map[string]any(body)
	for _, name := range path[:len(path)-1] {
		inner, _ = inner[name].(map[string]any)
	}

	delete(inner, path[len(path)-1])
	given, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}

	var spec job.Spec
	if err := json.Unmarshal(given, &spec); err != nil {
		t.Errorf("line %d: %s without %s: %v", it.Line, given, it.Field, err)
		return
	}

	spec.Defaults(time.Now())
	full, err := spec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got := decode(t, it.Field, full).text(path...); got != fmt.Sprint(want) {
		t.Errorf("line %d: the default of %s is %q, the page says %s", it.Line, it.Field, got, text)
	}
}
