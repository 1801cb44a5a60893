package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go-crontab/api"
	"go-crontab/job"
	"go-crontab/test/specgen"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// applied is the short form of an answer of apply.
func applied(o object) string {
	var out []string
	for _, list := range []string{"groups", "calendars", "jobs"} {
		for _, item := range o.items(list) {
			line := item.text("action") + " " + item.text("name")
			for _, c := range item.items("changes") {
				line += " " + c.text("field")
			}
			out = append(out, line)
		}
	}

	return strings.Join(out, "; ")
}

func TestApply(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", object{"paused": true})
	s.create("gone", nil)
	body := object{
		"groups": []object{{"name": "g", "slots": 2}}, "calendars": []object{
			{"name": "c", "exclude": []string{"12-24..12-26"}},
		},
		"jobs": []object{
			{"name": "there", "command": "false", "schedule": "0 3 1 1 *"},
			{
				"app": "shop", "name": "new", "every": "1000h", "command": "true", "group": "g",
				"calendars": []string{"c"}, "selector": "moon", "env": object{"A": "<&>"},
			},
		},
		"prune": object{"app": "default"},
	}

	dry := object{"dry_run": true}
	for k, v := range body {
		dry[k] = v
	}

	before := s.counts()
	o := s.call("POST", "/api/v1/apply", dry).want(200).object()
	const want = `created g slots; created c exclude name; updated there command; created new app calendars command env.A every group misfire.max_age misfire.policy name on_lost overlap selector start; deleted gone`
	if got := applied(o); got != want || o.text("changed") != "5" || o.text("dry_run") != "true" {
		t.Errorf("dry run: got %s\nwant %s, all of 5 changed", got, want)
	}

	if got := o.items("jobs")[1]; got.text("id") != "" || got.text("version") != "" ||
		!strings.Contains(got.text("warnings"), "no node matches moon") {
		t.Errorf("dry run: got %v, want no id, and a warning", got)
	}

	if got := s.counts(); got != before {
		t.Errorf("a dry run has written: got %s, want %s", got, before)
	}

	r := s.call("POST", "/api/v1/apply", body).want(200)
	o = r.object()
	if got := applied(o); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !strings.Contains(r.body, `"<&>"`) {
		t.Errorf("a text is not as it was written: %s", r.body)
	}

	there := s.call("GET", "/api/v1/jobs/"+o.items("jobs")[0].text("id"), nil).want(200).object()
	if there.text("command") != "false" || there.text("paused") != "true" ||
		there.text("version") != o.items("jobs")[0].text("version") {
		t.Errorf("got %v, want it changed, and still paused", there)
	}

	if got := applied(s.call("POST", "/api/v1/apply",
		body).want(200).object()); got != "unchanged g; unchanged c; unchanged there; unchanged new" {
		t.Errorf("again: got %s", got)
	}
}

func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", nil)
	before := s.counts()
	for name, c := range map[string]struct {
		body   string
		status int
		kind   string
		fields string
	}{
		"an unknown field": {
			`{"jobs": [{"name": "a", "command": "true", "schedule": "@daily", "timeuot": "1s"}]}`, 422, "invalid",
			"jobs[0].timeuot",
		},
		"all that is wrong": {
			`{"jobs": [{"name": "a", "command": 1, "schedule": "@daily"}, 5, {"misfire": {"polciy": "skip"}}], "groups": {}}`, 422, "invalid", "groups jobs[0].command jobs[1] jobs[2].misfire.polciy",
		},
		"values": {
			`{"jobs": [{"name": "a", "command": "true", "schedule": "61 * * * *"}, {"name": "", "command": "", "every": "1ms"}]}`, 422, "invalid", "jobs[0].schedule jobs[1].name jobs[1].command jobs[1].every",
		},
		"no such group": {
			`{"jobs": [{"name": "a", "command": "true", "schedule": "@daily", "group": "g"}]}`, 422, "invalid",
			"jobs[0].group",
		},
		"what the server sets": {
			`{"jobs": [{"id": "1", "name": "a", "command": "true", "schedule": "@daily"}]}`, 422, "invalid",
			"jobs[0].id",
		},
		"another version": {
			`{"jobs": [{"name": "there", "command": "x", "schedule": "@daily", "version": 7}]}`, 409, "changed",
			"jobs[0].version",
		},
		"must not exist yet": {
			`{"jobs": [{"name": "there", "command": "x", "schedule": "@daily", "version": 0}]}`, 409, "changed",
			"jobs[0].version",
		},
		"half a version": {
			`{"jobs": [{"name": "there", "command": "x", "schedule": "@daily", "version": 1.5}]}`, 422, "invalid",
			"jobs[0].version",
		},
		"prune without jobs": {`{"prune": {"app": "default"}}`, 422, "invalid", "jobs"},
		"prune of nothing":   {`{"jobs": [], "prune": {}}`, 422, "invalid", "prune"},
		"a list":             {`[]`, 422, "invalid", "body"},
		"a calendar that is wrong": {
			`{"calendars": [{"name": "c", "exclude": ["2027-02-30"]}]}`, 422, "invalid", "calendars[0].exclude[0].date",
		},
		"too many": {`{"jobs": [` + strings.Repeat("{},", job.MaxApplyJobs) + `{}]}`, 422, "invalid", "jobs"},
	} {
		r := s.call("POST", "/api/v1/apply", c.body).want(c.status)
		var fields []string
		for _, e := range r.object().items("errors") {
			fields = append(fields, e.text("field"))
		}

		slices.Sort(fields)
		want := strings.Fields(c.fields)
		slices.Sort(want)
		if !slices.Equal(fields, want) || r.object().text("type") != "urn:go-crontab:problem:"+c.kind {
			t.Errorf("%s: got %s, want %s of %v", name, r.body, c.kind, want)
		}
	}

	if got := s.counts(); got != before {
		t.Errorf("got %s, want %s", got, before)
	}
}

// TestApplyOfOneApp applies as an admin of one app.
func TestApplyOfOneApp(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	labels := object{"labels": object{"team": "red"}}
	s.create("theirs", labels)
	s.create("old", object{"app": "shop", "labels": object{"team": "red"}})
	made := s.call("POST", "/api/v1/tokens",
		object{"name": "ci", "role": "admin", "apps": []string{"shop"}}).want(201).object()
	s.token = made.text("token")
	mine := object{"app": "shop", "name": "mine", "command": "true", "schedule": "0 3 1 1 *"}
	for name, body := range map[string]object{
		"another app":       {"jobs": []object{mine, {"name": "theirs", "command": "evil", "schedule": "@daily"}}},
		"a group":           {"groups": []object{{"name": "g", "slots": 1}}, "jobs": []object{mine}},
		"a calendar":        {"calendars": []object{{"name": "c"}}, "jobs": []object{mine}},
		"prune another app": {"jobs": []object{mine}, "prune": object{"app": "default"}},
	} {
		s.call("POST", "/api/v1/apply", body).want(403)
		body["dry_run"] = true
		if r := s.call("POST", "/api/v1/apply", body); r.status != 403 {
			t.Errorf("%s, dry: got %d %s", name, r.status, r.body)
		}
	}

	o := s.call("POST", "/api/v1/apply", object{"jobs": []object{mine}, "prune": labels}).want(200).object()
	if got := applied(o); !strings.HasPrefix(got, "created mine") || !strings.HasSuffix(got, "; deleted old") {
		t.Errorf("got %s", got)
	}
	if o := s.call("GET", "/api/v1/export", nil).want(200).object(); len(o.items("items")) != 1 {
		t.Errorf("export: got %v, want the one of the app", o)
	}
}

func TestExport(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for i := range 5 {
		s.create(fmt.Sprintf("j%d", i), object{
			"app": []string{"a", "b"}[i%2], "labels": object{"n": fmt.Sprint(i / 2)}, "paused": i == 4,
		})
	}

	names := func(query string) (out []string) {
		t.Helper()
		for _, item := range s.call("GET", "/api/v1/export"+query, nil).want(200).object().items("items") {
			out = append(out, item.text("name"))
		}
		return out
	}

	for query, want := range map[string]string{"": "j0 j1 j2 j3 j4", "?app=b": "j1 j3", "?label=n%3D1": "j2 j3",
		"?app=a&label=n%3D2": "j4", "?app=x": ""} {
		if got := strings.Join(names(query), " "); got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}

	r := s.call("GET", "/api/v1/export?app=a&label=n%3D2", nil).want(200)
	if want := `{"items":[{"app":"a","name":"j4","labels":{"n":"2"},"schedule":"0 3 1 1 *","command":"true","paused":true}]}`; strings.TrimSpace(r.body) != want {
		t.Errorf("got\n%s, want\n%s", r.body, want)
	}

	page := s.call("GET", "/api/v1/export?limit=2", nil).want(200).object()
	if next := s.call("GET", "/api/v1/export?limit=3&cursor="+page.text("next"),
		nil).want(200).object(); len(next.items("items")) != 3 || next.text("next") != "" {
		t.Errorf("second page: got %v", next)
	}

	if _, err := s.db.Raw().Exec(
		`UPDATE job_version v JOIN job j ON j.id = v.job_id SET v.definition = '{"of": "the future"}' WHERE j.name = 'j2'`); err != nil {
		t.Fatal(err)
	}

	o := s.call("GET", "/api/v1/export?app=a", nil).want(200).object()
	if len(o.items("items")) != 2 || len(o.items("unreadable")) != 1 || o.items("unreadable")[0].text("name") != "j2" {
		t.Errorf("got %v, want one unreadable job named", o)
	}
}

// TestExportComesBack applies random definitions, exports and deletes them, and applies the export.
// A second export is equal, and applying it again changes nothing.
func TestExportComesBack(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	common := object{
		"groups": []object{{"name": "g", "slots": 1}, {"name": "h", "slots": 2}}, "calendars": []object{
			{"name": "c", "exclude_weekdays": []string{"sun"}},
		},
	}

	s.call("POST", "/api/v1/apply", common).want(200)
	schema := manifestSchema(t)
	export := func() []json.RawMessage {
		var v struct{ Items []json.RawMessage }
		if err := json.Unmarshal([]byte(s.call("GET", "/api/v1/export?app=gen&limit=200", nil).want(200).body),
			&v); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(v.Items, func(a, b json.RawMessage) int { return strings.Compare(string(a), string(b)) })
		return v.Items
	}

	apply := func(jobs any) string {
		o := s.call("POST", "/api/v1/apply", object{"jobs": jobs, "prune": object{"app": "gen"}}).want(200).object()
		actions := map[string]int{}
		for _, j := range o.items("jobs") {
			actions[j.text("action")]++
		}
		return fmt.Sprint(actions)
	}

	gen := specgen.Spec("gen", []string{"g", "h"}, []string{"c"})
	for round := range 8 {
		specs := []job.Spec{}
		names := map[string]bool{}
		for i := range 12 {
			spec := gen.Example(round*100 + i)
			if !names[spec.Name] {
				names[spec.Name], specs = true, append(specs, spec)
			}
		}

		made := make([]map[string]any, len(specs))
		for i, spec := range specs {
			text, err := spec.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(text), &made[i]); err != nil {
				t.Fatal(err)
			}

			maps.DeleteFunc(made[i], func(_ string, v any) bool { return v == nil || v == "" })
			if i%3 == 0 {
				made[i]["paused"] = true
			}
		}

		apply([]any{})
		if got, want := apply(made), fmt.Sprintf("map[created:%d]", len(made)); got != want {
			t.Fatalf("round %d: got %s, want %s", round, got, want)
		}

		first := export()
		if got, want := apply(made), fmt.Sprintf("map[unchanged:%d]", len(made)); got != want {
			t.Errorf("round %d: applied again: got %s, want %s", round, got, want)
		}
		if got, want := apply(first), fmt.Sprintf("map[unchanged:%d]", len(made)); got != want {
			t.Errorf("round %d: the export applied where it comes from: got %s, want %s", round, got, want)
		}

		apply([]any{})
		apply(first)
		second := export()
		if a, b := fmt.Sprintf("%s", first), fmt.Sprintf("%s", second); a != b {
			t.Fatalf("round %d: the second export is\n%s\nnot\n%s", round, b, a)
		}

		for _, item := range first {
			if err := schema.Validate(unmarshal(t, string(item))); err != nil {
				t.Errorf("round %d: %s is not as the schema says: %v", round, item, err)
			}
		}
	}
}

func unmarshal(t testing.TB, text string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func manifestSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	text, err := api.ManifestSchema()
	if err != nil {
		t.Fatal(err)
	}

	c := jsonschema.NewCompiler()
	if err := c.AddResource("manifest.json", unmarshal(t, string(text))); err != nil {
		t.Fatal(err)
	}

	schema, err := c.Compile("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestManifestSchema checks the schema against bodies that the API accepts and refuses.
func TestManifestSchema(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	schema := manifestSchema(t)
	const minimal = `"name": "a", "schedule": "0 3 1 1 *", "command": "true"`
	for text, want := range map[string]bool{
		`{"jobs": [{` + minimal + `}]}`: true,
		`{"jobs": [{` + minimal + `, "labels": {"a": "b"}, "timeout": "5m", "limits": {"core": 0}}]}`: true,
		`{"calendars": [{"name": "c", "exclude": ["12-24", {"date": "2027-01-01", "note": "x"}]}]}`:   true,
		`{"groups": [{"name": "g", "slots": 3}], "jobs": [{` + minimal + `, "paused": true}]}`:        true,
		`{"jobs": [{` + minimal + `, "timeuot": "5m"}]}`:                                              false,
		`{"jobs": [{` + minimal + `, "timeout": 5}]}`:                                                 false,
		`{"jobs": [{` + minimal + `, "env": {"A": 1}}]}`:                                              false,
		`{"jobs": [{` + minimal + `, "overlap": "never"}]}`:                                           false,
		`{"jobs": [{` + minimal + `, "retry": {"attempts": 0}}]}`:                                     false,
		`{"jobs": [{` + minimal + `, "misfire": {"policy": "skip", "x": 1}}]}`:                        false,
		`{"jobs": [{"schedule": "@daily", "command": "true"}]}`:                                       false,
		`{"groups": [{"slots": 1}]}`:                                                                  false,
		`{"groups": [{"name": "g", "rate": 10}]}`:                                                     false,
		`{"groups": [{"name": "g", "rate": "10/1m"}]}`:                                                true,
		`{"groups": [{"name": "g", "slots": 0}]}`:                                                     false,
		`{"job": [{` + minimal + `}]}`:                                                                false,
		`{"jobs": [{` + minimal + `, "every": 5, "success_codes": [300]}]}`:                           false,
		`{"calendars": [{"name": "c", "exclude": [{"datum": "12-24"}]}]}`:                             false,
	} {
		status := s.call("POST", "/api/v1/apply", text).status
		if err := schema.Validate(unmarshal(t, text)); (err == nil) != want || (status == 200) != want {
			t.Errorf("%s: by the schema %v, by the API %d; want it taken: %v", text, err, status, want)
		}
	}

	for _, text := range []string{`{` + minimal + `}`, `[{` + minimal + `}]`, `{"$schema": "x", ` + minimal + `}`} {
		if err := schema.Validate(unmarshal(t, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}

	r := s.call("GET", "/schema/manifest.json", nil).want(200)
	if want, _ := api.ManifestSchema(); r.body != string(want) {
		t.Error("the server has another schema")
	}

	s.call("GET", "/schema/manifest.json", nil, "If-None-Match", r.header.Get("ETag")).want(304)
	for _, about := range []string{`"description": "A cron expression`, `"default": "skip"`, `"minimum": 1`} {
		if !strings.Contains(r.body, about) {
			t.Errorf("the schema does not say %s", about)
		}
	}
}
