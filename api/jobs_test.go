package api_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/schedule/edit"
)

// neverRan is the health of a new job, which answers to changes leave out.
const neverRan = `"health":{"code":"never","text":"Has not run"},`

// TestKeepJob: a finished job says when it is deleted; a job that never finishes cannot have a keep_job.
func TestKeepJob(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	at := time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)
	id := s.call("POST", "/api/v1/jobs", object{"name": "once", "command": "true", "at": at, "keep_job": "30d"}).want(201).object().text("id")
	path := "/api/v1/jobs/" + id
	if j := s.call("GET", path, nil).want(200).object(); j.text("keep_job") != "720h" || j.text("remove_at") != "" {
		t.Errorf("before its due time: got %v", j)
	}
	run := s.ran(id, 1)[0]
	await(t, "it is finished", 10*time.Second, func() bool { return s.call("GET", path, nil).object().text("status") == "finished" })
	j := s.call("GET", path, nil).want(200).object()
	ended, err := time.Parse(time.RFC3339Nano, run.text("ended"))
	if err != nil || j.text("remove_at") != ended.Add(720*time.Hour).Format(time.RFC3339Nano) {
		t.Errorf("ended %s: got %v", run.text("ended"), j)
	}
	delete(j, "labels")
	if again := s.call("PUT", "/api/v1/apps/default/jobs/once", j).want(200).object(); again.text("version") != "1" {
		t.Errorf("sent back unchanged: got %v", again)
	}

	for what, body := range map[string]object{
		"a job that goes on": {"every": "1h", "keep_job": "30d"},
		"a moment":           {"at": at, "keep_job": "1s"},
		"a number":           {"at": at, "keep_job": 30},
	} {
		body["name"], body["command"] = "wrong", "true"
		if errs := s.call("POST", "/api/v1/jobs", body).want(422).object().items("errors"); len(errs) != 1 || errs[0].text("field") != "keep_job" {
			t.Errorf("%s: got %v", what, errs)
		}
	}
	for _, body := range []object{{"every": "1h", "max_fires": 5}, {"schedule": "@daily", "end": "2099-01-01T00:00:00Z"}} {
		body["name"], body["command"], body["keep_job"] = "right", "true", "1m"
		s.call("PUT", "/api/v1/apps/default/jobs/right", body)
	}
}

func TestJob(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	r := s.call("POST", "/api/v1/jobs", `{"name": "backup", "schedule": "0 3 * * *", "timezone": "Europe/Berlin", "command": "a && b <c", "timeout": "90m",
		"labels": {"team": "data"}, "owner": "ops", "description": "nightly"}`).want(201)
	j := r.object()
	id := j.text("id")
	if got := r.header.Get("Location"); got != "/api/v1/jobs/"+id {
		t.Errorf("Location is %q, want the job %s", got, id)
	}

	for field, want := range map[string]string{
		"app": "default", "name": "backup", "schedule": "0 3 * * *", "timezone": "Europe/Berlin",
		"command": "a && b <c", "timeout": "1h30m",
		"overlap": "skip", "on_lost": "fail", "owner": "ops", "description": "nightly", "paused": "false",
		"status": "active", "version": "1",
		"labels": "map[team:data]", "misfire": "map[max_age:1h policy:latest]",
		"every": "", "at": "", "start": "", "last_due": "", "error": "",
	} {
		if got := j.text(field); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}

	for _, field := range []string{"next_due", "created", "updated"} {
		if at, err := time.Parse(time.RFC3339, j.text(field)); err != nil || !strings.HasSuffix(j.text(field), "Z") ||
			at.Year() < 2020 {
			t.Errorf("%s: got %q, want a time in UTC", field, j.text(field))
		}
	}

	if !strings.Contains(r.body, `"a && b <c"`) {
		t.Errorf("the command is not readable in %s", r.body)
	}

	for _, path := range []string{r.header.Get("Location"), "/api/v1/apps/default/jobs/backup"} {
		if got := s.call("GET", path, nil).want(200).body; strings.Replace(got, neverRan, "", 1) != r.body {
			t.Errorf("%s: got %s, want what POST answered: %s", path, got, r.body)
		}
	}

	if r := s.call("HEAD", "/api/v1/jobs/"+id, nil).want(200); r.body != "" {
		t.Errorf("HEAD answers a body: %s", r.body)
	}

	// The answer of GET can be edited and sent back.
	j["schedule"], j["owner"] = "30 4 * * *", nil
	put := s.call("PUT", "/api/v1/jobs/"+id, j).want(200).object()
	if put.text("schedule") != "30 4 * * *" || put.text("owner") != "" || put.text("version") != "2" ||
		put.text("created") != j.text("created") ||
		put.text("next_due") == j.text("next_due") {
		t.Errorf("after PUT: %v", put)
	}

	same := s.call("PUT", "/api/v1/jobs/"+id, put).want(200).object()
	if same.text("version") != "2" {
		t.Errorf("the same definition again made version %s of 2", same.text("version"))
	}

	patch := s.call("PATCH", "/api/v1/jobs/"+id,
		`{"labels": {"team": null, "tier": "1"}, "timeout": null, "misfire": {"max_age": "2h"}}`).want(200).object()
	if patch.text("labels") != "map[tier:1]" || patch.text("timeout") != "" ||
		patch.text("misfire") != "map[max_age:2h policy:latest]" ||
		patch.text("schedule") != "30 4 * * *" {
		t.Errorf("after PATCH: %v", patch)
	}

	if r := s.call("DELETE", "/api/v1/jobs/"+id, nil).want(204); r.body != "" {
		t.Errorf("DELETE answers %q", r.body)
	}

	for _, method := range []string{"GET", "DELETE"} {
		s.call(method, "/api/v1/jobs/"+id, nil).want(404)
	}

	s.call("GET", "/api/v1/jobs/"+id+"/history", nil).want(200)
	s.create("backup", nil) // the name is free again
}

func TestUpsert(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const path = "/api/v1/apps/shop/jobs/sync"
	body := `{"every": "1h", "command": "true"}`
	r := s.call("PUT", path, body).want(201)
	first := r.object()
	if r.header.Get("Location") != "/api/v1/jobs/"+first.text("id") || first.text("app") != "shop" ||
		first.text("name") != "sync" {
		t.Errorf("created %v at %q", first, r.header.Get("Location"))
	}

	again := s.call("PUT", path, body).want(200).object()
	if again.text("version") != "1" || again.text("start") != first.text("start") || again.text("start") == "" {
		t.Errorf("the same again: got %v, want no change of %v", again, first)
	}

	s.call("POST", "/api/v1/jobs/"+first.text("id")+"/pause", nil).want(200)
	changed := s.call("PUT", path, `{"every": "2h", "command": "false"}`).want(200).object()
	if changed.text("command") != "false" || changed.text("paused") != "true" ||
		changed.text("id") != first.text("id") {
		t.Errorf("got %v, want it changed and still paused", changed)
	}

	s.call("PUT", path, `{"name": "other", "every": "2h", "command": "false"}`).want(422)
	body = `{"schedule": "@hourly", "max_fires": 3, "command": "true"}`
	first = s.call("PUT", "/api/v1/apps/shop/jobs/thrice", body).want(201).object()
	if again := s.call("PUT", "/api/v1/apps/shop/jobs/thrice", body).want(200).object(); again.text("version") != "1" ||
		again.text("start") != first.text("start") {
		t.Errorf("a number of due times is counted anew: got %v, want no change of %v", again, first)
	}
}

// meanwhile is an editor that makes another change before each Resume.
type meanwhile struct {
	api.Editor
	do func()
}

func (e meanwhile) Resume(ctx context.Context, id int64) (edit.Done, error) {
	e.do()
	return e.Editor.Resume(ctx, id)
}

// TestResumeOfAVersion: resuming a version does not resume a later one.
func TestResumeOfAVersion(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("seen", nil)
	seen := s.call("POST", "/api/v1/jobs/1/pause", nil).want(200).header.Get("ETag")
	editor := s.cfg.Editor
	change := sync.OnceFunc(func() {
		if _, err := s.db.Raw().Exec("UPDATE job SET changes = changes + 1 WHERE id = 1"); err != nil {
			t.Error(err)
		}
	})

	s.cfg.Editor = func() api.Editor { return meanwhile{editor(), change} }
	s.serve()
	s.call("PATCH", "/api/v1/jobs/1", `{"paused": false}`, "If-Match", seen).want(412)
	if s.count("SELECT paused FROM job WHERE id = 1") == 0 {
		t.Error("it was resumed")
	}
}

func TestUpsertByMany(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var wg sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		wg.Go(func() {
			statuses[i] = s.call("PUT", "/api/v1/apps/a/jobs/b",
				object{"schedule": "0 3 * * *", "command": fmt.Sprint("echo ", i)}).status
		})
	}

	wg.Wait()
	slices.Sort(statuses)
	if want := []int{200, 200, 200, 200, 200, 200, 200, 201}; !slices.Equal(statuses, want) {
		t.Errorf("got %v, want %v", statuses, want)
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("active", nil)
	s.create("paused", object{"paused": true})
	s.create("finished", object{"schedule": nil, "at": time.Now().UTC().Format(time.RFC3339)})
	s.create("error", nil)
	s.create("unreadable", nil)
	if _, err := s.db.Raw().Exec("UPDATE job SET error = 'no good', next_due = NULL WHERE name = 'error'"); err != nil {
		t.Fatal(err)
	}

	if _, err := s.db.Raw().Exec(
		`UPDATE job_version v JOIN job j ON j.id = v.job_id SET v.definition = '{"from":"the future"}' WHERE j.name = 'unreadable'`); err != nil {
		t.Fatal(err)
	}

	await(t, "the finished one is", 5*time.Second, func() bool {
		return s.count(`
				SELECT COUNT(*)
				FROM run r
				JOIN job j ON j.id = r.job_id
				WHERE r.state = 'ended' AND j.name = 'finished'`) == 1
	})

	for _, state := range []string{"active", "paused", "finished", "error"} {
		_, items := s.walk("/api/v1/jobs?status=" + state)
		var names []string
		for _, j := range items {
			if j.text("name") != "unreadable" {
				names = append(names, j.text("name"))
				if j.text("status") != state {
					t.Errorf("%s is listed as %s", j.text("status"), state)
				}
			}
		}

		if !slices.Equal(names, []string{state}) {
			t.Errorf("status=%s: got %v", state, names)
		}
	}

	paused := s.call("GET", "/api/v1/apps/default/jobs/paused", nil).want(200).object()
	if paused.text("next_due") != "" {
		t.Errorf("a paused job is due: %v", paused)
	}

	bad := s.call("GET", "/api/v1/apps/default/jobs/unreadable", nil).want(200).object()
	if bad.text("status") != "error" || bad.text("error") == "" || bad.text("app") != "default" {
		t.Errorf("unreadable definition: got %v", bad)
	}

	path := "/api/v1/jobs/" + bad.text("id")
	s.call("PATCH", path, `{"command": "true"}`).want(409)
	s.call("GET", path+"/next", nil).want(409)
	s.call("PUT", path, `{"name": "readable", "command": "true", "schedule": "@daily"}`).want(200)
	mended := s.call("PUT", "/api/v1/apps/default/jobs/error",
		`{"command": "true", "schedule": "0 3 1 1 *"}`).want(200).object()
	if mended.text("status") != "active" || mended.text("next_due") == "" {
		t.Errorf("written again: got %v, want it active", mended)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for i, name := range []string{
		"数据备份", "🎉 party", `"double" and 'single'`, "a/b", "a%2Fb", "100%", "a+b c", "..", ".", "?q=1", "#1", `\`,
		"<script>", "; DROP TABLE job; --",
		strings.Repeat("é", 128), "{id}", "*", "%00", "naïve", "nai\u0308ve",
	} {
		app := fmt.Sprintf("app %d/%s", i%3, name[:1])
		if name[0] > 127 {
			app = "应用/" + fmt.Sprint(i)
		}

		path := "/api/v1/apps/" + url.PathEscape(app) + "/jobs/" + url.PathEscape(name)
		j := s.call("PUT", path, `{"schedule": "0 3 1 1 *", "command": "true"}`).want(201).object()
		got := s.call("GET", path, nil).want(200).object()
		if got.text("name") != name || got.text("app") != app || got.text("id") != j.text("id") {
			t.Errorf("%q of %q came back as %q of %q", name, app, got.text("name"), got.text("app"))
		}

		_, found := s.walk("/api/v1/jobs?app=" + url.QueryEscape(app) + "&name=" + url.QueryEscape(name))
		if len(found) != 1 || found[0].text("id") != j.text("id") {
			t.Errorf("%q of %q: found %v", name, app, found)
		}
	}

	if ids, _ := s.walk("/api/v1/jobs?limit=7&name=" + url.QueryEscape("%")); len(ids) != 3 {
		t.Errorf("%d names contain a percent sign, want 3: it is no wildcard", len(ids))
	}
}

func TestJobPages(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var want []string
	for i := range 23 {
		want = append(want, s.create(fmt.Sprint("job ", i), object{"app": fmt.Sprint("app", i%2)}).text("id"))
	}

	for _, limit := range []int{1, 5, 22, 23, 24, 200} {
		if got, _ := s.walk(fmt.Sprint("/api/v1/jobs?limit=", limit)); !slices.Equal(got, want) {
			t.Errorf("limit %d: got %v, want %v", limit, got, want)
		}
	}

	if got, _ := s.walk("/api/v1/jobs"); len(got) != 23 {
		t.Errorf("no limit: got %d", len(got))
	}
	if got, _ := s.walk("/api/v1/jobs?app=app1&limit=3"); len(got) != 11 {
		t.Errorf("app1: got %d, want 11", len(got))
	}
	if got := s.call("GET", "/api/v1/jobs?app=none", nil).want(200).body; got != "{\"items\":[]}\n" {
		t.Errorf("an empty list is %q", got)
	}
}

func TestConcurrentPatches(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	path := "/api/v1/jobs/" + s.create("shared", nil).text("id")
	patches := []string{
		`{"description": "d"}`, `{"owner": "o"}`, `{"timeout": "5m"}`, `{"command": "false"}`, `{"overlap": "allow"}`,
		`{"labels": {"a": "1"}}`,
		`{"labels": {"b": "2"}}`, `{"misfire": {"policy": "skip"}}`, `{"timezone": "Asia/Shanghai"}`,
		`{"paused": true}`,
	}

	var wg sync.WaitGroup
	for _, p := range patches {
		wg.Go(func() {
			if r := s.call("PATCH", path, p); r.status != 200 {
				t.Errorf("%s: got %d %s", p, r.status, r.body)
			}
		})
	}

	wg.Wait()
	j := s.call("GET", path, nil).want(200).object()
	for field, want := range map[string]string{
		"description": "d", "owner": "o", "timeout": "5m", "command": "false", "overlap": "allow",
		"labels": "map[a:1 b:2]", "timezone": "Asia/Shanghai",
		"paused": "true", "version": "10", // a pause is no new definition
	} {
		if got := j.text(field); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}

	if j.text("misfire", "policy") != "skip" {
		t.Errorf("misfire: got %v", j["misfire"])
	}
}

// TestPatchOfDefaults: a default goes when the patch removes the thing that it belongs to.
func TestPatchOfDefaults(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for name, c := range map[string]struct {
		job         object
		patch       string
		field, want string
	}{
		"a request becomes a command": {
			object{"command": nil, "http": object{"url": "https://example.com/"}},
			`{"http": null, "command": "sleep 1000"}`, "timeout", "",
		},
		"a queue is one no more": {object{"overlap": "queue"}, `{"overlap": "skip"}`, "overlap", "skip"},
		"a body of a request": {
			object{"command": nil, "http": object{"url": "https://example.com/"}}, `{"http": {"body": "x"}}`,
			"version", "2",
		},
		"one attempt": {object{"retry": object{"attempts": 3}}, `{"retry": {"attempts": 1}}`, "version", "2"},
	} {
		path := "/api/v1/jobs/" + s.create(name, c.job).text("id")
		j := s.call("PATCH", path, c.patch, "Content-Type", "application/merge-patch+json").want(200).object()
		if got := j.text(c.field); got != c.want && !(c.want == "" && got == "0s") {
			t.Errorf("%s: %s is %q, want %q", name, c.field, got, c.want)
		}
	}
}

func TestPatch(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	path := "/api/v1/jobs/" + s.create("patched", object{"schedule": nil, "every": "1h"}).text("id")
	steps := []struct{ patch, field, want string }{
		{`{}`, "version", "1"},
		{`{"paused": false}`, "version", "1"},
		{`{"every": null, "schedule": "0 3 1 1 *"}`, "schedule", "0 3 1 1 *"}, // its start goes with the interval
		{`{"name": "renamed", "app": "other"}`, "name", "renamed"},
		{`{"paused": true, "owner": "me"}`, "paused", "true"},
		{`{"status": "active", "version": 99, "id": "77"}`, "paused", "true"}, // set by the server only
		{`{"paused": false, "command": "echo new"}`, "status", "active"},
		{`{"app": null}`, "app", "default"},
	}

	for _, step := range steps {
		j := s.call("PATCH", path, step.patch, "Content-Type", "application/merge-patch+json").want(200).object()
		if got := j.text(step.field); got != step.want {
			t.Errorf("after %s: %s is %q, want %q", step.patch, step.field, got, step.want)
		}
	}

	s.create("taken", nil)
	before := s.counts()
	r := s.call("PATCH", path, `{"name": "taken", "paused": true}`).want(409)
	if r.object().text("type") != "urn:go-crontab:problem:exists" {
		t.Errorf("got %s", r.body)
	}
	if after := s.counts(); after != before {
		t.Errorf("a refused change changed something: %s became %s", before, after)
	}
}

// TestSameInstants: sending back the answer of GET, with instants in UTC, changes no job.
func TestSameInstants(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	made := s.call("POST", "/api/v1/jobs",
		`{"name": "x", "command": "true", "every": "1h", "start": "2030-01-01T01:00:00+01:00", "end": "2031-01-01T01:00:00+01:00"}`).want(201)
	path := "/api/v1/jobs/" + made.object().text("id")
	before := s.count("SELECT COUNT(*) FROM audit")
	body := s.call("GET", path, nil).want(200).object()
	for _, at := range []string{"2030-01-01T00:00:00Z", "2030-01-01T01:00:00+01:00"} {
		body["start"], body["end"] = at, "2031-01-01T00:00:00Z"
		if r := s.call("PUT", path, body).want(200); r.object().text("version") != "1" ||
			s.count("SELECT COUNT(*) FROM audit") != before {
			t.Errorf("start %s: got %s", at, r.body)
		}
	}

	body["start"] = "2030-01-01T00:00:00+01:00"
	if r := s.call("PUT", path, body).want(200); r.object().text("version") != "2" {
		t.Errorf("another start: got %s", r.body)
	}
}

func TestPauseHolds(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.create("busy", object{"schedule": nil, "every": "100ms", "overlap": "allow"}).text("id")
	path := "/api/v1/jobs/" + id
	started := func() int {
		return s.count("SELECT COUNT(*) FROM run WHERE started > 0")
	}
	for round, how := range []string{"action", "patch"} {
		n := started()
		await(t, "it runs", 10*time.Second, func() bool { return started() >= n+3 })
		var answer object
		if how == "action" {
			answer = s.call("POST", path+"/pause", `{}`).want(200).object()
		} else {
			answer = s.call("PATCH", path, `{"paused": true}`).want(200).object()
		}

		paused := started()
		if answer.text("status") != "paused" || answer.text("next_due") != "" {
			t.Errorf("paused: got %v", answer)
		}

		time.Sleep(500 * time.Millisecond)
		if now := started(); now != paused {
			t.Errorf("%d runs were started after the job was paused by %s", now-paused, how)
		}

		if round == 0 {
			s.call("POST", path+"/pause", nil).want(200) // repeating it does no harm
			if j := s.call("POST", path+"/resume", nil).want(200).object(); j.text("status") != "active" ||
				j.text("next_due") == "" {
				t.Errorf("resumed: got %v", j)
			}
		}
	}
}
