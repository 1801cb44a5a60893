package api_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/sql"
)

// manyJobs makes jobs in two apps: in ops with team=a and team=b alternately, and two in other.
func (s *site) manyJobs(n int) {
	s.t.Helper()
	for i := range n {
		s.create(fmt.Sprintf("ops-%02d", i), object{
			"app": "ops", "labels": object{"team": []string{"a", "b"}[i%2]}, "owner": "ann",
		})
	}
	s.create("one", object{"app": "other"})
	s.create("two", object{"app": "other", "labels": object{"team": "a"}})
}

// results are the results by job name.
func results(o object) string {
	var out []string
	for _, item := range o.items("items") {
		out = append(out, item.text("name")+" "+item.text("result"))
	}
	return strings.Join(out, ", ")
}

func tally(o object) string {
	return o.text("changed") + " changed, " + o.text("unchanged") + " unchanged, " + o.text("refused") + " refused"
}

func TestBulk(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.manyJobs(6)
	const paused = "SELECT COUNT(*) FROM job WHERE paused = 1"

	// A dry run changes nothing.
	before := s.counts()
	o := s.call("POST", "/api/v1/bulk/pause?app=ops&label=team%3Da&dry_run=true&limit=2", nil).want(200).object()
	if o.text("dry_run") != "true" || results(o) != "ops-00 changed, ops-02 changed" || o.text("matched") != "3" ||
		o.text("at_least") != "" || o.text("next") == "" || s.counts() != before {
		t.Errorf("dry run: got %v", o)
	}

	// Each filter of lists, and all of them together.
	for query, want := range map[string]string{
		"app=ops&name=ops-05": "ops-05", "owner=ann&label=team%3Db&name=3": "ops-03", "status=paused": "",
		"group=none": "", "calendar=none": "", "label=team%3Da&app=other": "two",
	} {
		o := s.call("POST", "/api/v1/bulk/run?dry_run=true&"+query, nil).want(200).object()
		if got := strings.ReplaceAll(results(o), " changed", ""); got != want ||
			o.text("matched") != fmt.Sprint(len(o.items("items"))) {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}

	// In parts, with a reason.
	path, seen := "/api/v1/bulk/pause?app=ops&label=team%3Da&limit=2", ""
	for cursor := ""; ; {
		o := s.call("POST", path+cursor, `{"reason": "disks"}`).want(200).object()
		seen += results(o) + "; "
		if o.text("next") == "" {
			break
		}
		cursor = "&cursor=" + o.text("next")
	}

	if seen != "ops-00 changed, ops-02 changed; ops-04 changed; " ||
		s.count("SELECT COUNT(*) FROM job_pause WHERE reason = 'disks'") != 3 {
		t.Errorf("got %s", seen)
	}

	o = s.call("POST", "/api/v1/bulk/pause?app=ops", nil).want(200).object()
	if tally(o) != "3 changed, 3 unchanged, 0 refused" || s.count(paused) != 6 {
		t.Errorf("got %v", o)
	}

	for _, item := range o.items("items") {
		if item.text("version") != s.call("GET", "/api/v1/jobs/"+item.text("id"), nil).object().text("version") {
			t.Errorf("got %v", item)
		}
	}

	// A job with an unreadable definition is resumed, and claims report its error. Running it is
	// refused without holding up the others.
	if _, err := s.db.Raw().Exec(`
			UPDATE job_version v
			JOIN job j ON j.id = v.job_id
			SET v.definition = '{'
			WHERE j.name = 'ops-01'`); err != nil {
		t.Fatal(err)
	}

	for _, dry := range []string{"&dry_run=true", ""} {
		o = s.call("POST", "/api/v1/bulk/resume?app=ops"+dry, `{}`).want(200).object()
		if tally(o) != "6 changed, 0 unchanged, 0 refused" {
			t.Errorf("resume%s: got %v", dry, o)
		}
	}

	if s.count(paused) != 0 {
		t.Errorf("%d are paused", s.count(paused))
	}

	o = s.call("POST", "/api/v1/bulk/run?app=ops", nil).want(200).object()
	if tally(o) != "5 changed, 0 unchanged, 1 refused" || !strings.Contains(fmt.Sprint(o), "why:") ||
		s.count("SELECT COUNT(*) FROM run WHERE kind = 'manual'") != 5 {
		t.Errorf("run: got %v", o)
	}

	for _, item := range o.items("items") {
		if id := item.text("request"); id != "" &&
			s.count("SELECT COUNT(*) FROM run WHERE request = ? AND job_id = ?", id, item.text("id")) != 1 {
			t.Errorf("got %v", item)
		}
	}

	await(t, "they have run", 20*time.Second, func() bool {
		return s.count("SELECT COUNT(*) FROM run WHERE kind = 'manual' AND outcome = 'succeeded'") == 5
	})
	o = s.call("POST", "/api/v1/bulk/delete?app=ops", nil).want(200).object()
	if tally(o) != "6 changed, 0 unchanged, 0 refused" || s.count("SELECT COUNT(*) FROM job WHERE living = 1") != 2 ||
		o.items("items")[0].text("version") != "" {
		t.Errorf("delete: got %v", o)
	}

	for action, want := range map[string]int{"pause": 6, "resume": 6, "run": 5, "delete": 6} {
		if n := s.count(
			"SELECT COUNT(*) FROM audit WHERE kind = 'job' AND app = 'ops' AND action = ? AND who = 'bootstrap'",
			action); n != want {
			t.Errorf("%d lines of the audit say %s, want %d", n, action, want)
		}
	}

	// and one was unreadable
	if n := s.count("SELECT COUNT(*) FROM audit WHERE action = 'delete' AND was LIKE '%command%'"); n != 5 {
		t.Errorf("%d lines have what was deleted", n)
	}
	if tally(s.call("POST", "/api/v1/bulk/delete?all=true",
		nil).want(200).object()) != "2 changed, 0 unchanged, 0 refused" {
		t.Error("all are not all")
	}
}

func TestBadBulk(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.manyJobs(1)
	before := s.counts()
	for _, c := range []struct{ query, body, want string }{
		{"", "", "every job"}, {"dry_run=true", "", "every job"}, {"all=false", "", "every job"},
		{"limit=3", "", "every job"}, {"app=", "", "app: is empty"}, {"app=&label=team%3Da", "", "app: is empty"},
		{"app=ops&label=", "", "label: is empty"}, {"app=ops&name=&owner=&status=", "", "owner: is empty"},
		{"app=ops&ids=", "", "ids: is empty"}, {"app=ops&dry_run=", "", "dry_run: is empty"},
		{"app=ops&cursor=", "", "cursor: is empty"}, {"all=true&limit=", "", "limit: is empty"},
		{"app=ops&al=true", "", "al: is not a known query parameter here; did you mean all?"},
		{"app=ops&status=broken", "", "status: "}, {"app=ops&limit=201", "", "limit: "},
		{"app=ops&dry_run=yes", "", "dry_run: "}, {"app=ops&cursor=x", "", "cursor: "}, {"label=team", "", "label: "},
		{"ids=", "", "ids: is empty"}, {"ids=x", "", `ids: "x" is not an id`}, {"ids=1,", "", `ids: "" is not an id`},
		{"ids=0", "", "is not an id"}, {"ids=1,2,1", "", "ids: 1 appears more than once"},
		{"ids=1&app=ops", "", "app: cannot be used with ids"}, {"ids=1&all=true", "", "all: cannot be used with ids"}, {
			"ids=1&limit=3", "", "limit: cannot be used with ids",
		},
		{"ids=1" + strings.Repeat(",1", 200), "", "ids: has 201 ids; at most 200 are allowed"}, {
			"ids=9223372036854775808", "", "is not an id",
		},
	} {
		for _, action := range []string{"pause", "resume", "run", "delete"} {
			r := s.call("POST", "/api/v1/bulk/"+action+"?"+c.query, c.body)
			got := ""
			for _, e := range r.object().items("errors") {
				got += e.text("field") + ": " + e.text("message")
			}
			if r.status != 422 || !strings.Contains(got, c.want) {
				t.Errorf("%s: got %d %s, want %s", r.what, r.status, r.body, c.want)
			}
		}
	}

	for _, dry := range []string{"", "&dry_run=true"} {
		s.call("POST", "/api/v1/bulk/pause?app=ops"+dry, `{"until": "2001-01-01T00:00:00Z"}`).want(422)
		s.call("POST", "/api/v1/bulk/run?app=ops"+dry, `{"reason": "x"}`).want(422)
	}

	s.call("GET", "/api/v1/bulk/pause?app=ops", nil).want(405)
	s.call("POST", "/api/v1/bulk/restart?app=ops", nil).want(404)
	if after := s.counts(); after != before {
		t.Errorf("something was changed: it was %s and is %s", before, after)
	}
}

// TestBulkOfOneApp: callers limited to apps change only jobs of these apps.
func TestBulkOfOneApp(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.manyJobs(2)
	for _, c := range []struct {
		token        string
		action       string
		query        string
		status       int
		want, matter string
	}{
		{s.newToken("v", auth.Viewer), "pause", "all=true", 403, "", "a viewer"},
		{s.newToken("o", auth.Operator, "other"), "delete", "all=true", 403, "", "an operator, who may not delete"},
		{s.newToken("p", auth.Operator, "other"), "pause", "app=ops", 403, "", "an app of others"},
		{s.newToken("q", auth.Operator, "other"), "pause", "app=nothing", 403, "", "an app that there is not"},
		{
			s.newToken("r", auth.Operator, "other"), "pause", "all=true", 200, "one changed, two changed",
			"all of one's own",
		},
		{
			s.newToken("t", auth.Admin, "other"), "delete", "label=team%3Da", 200, "two changed",
			"by a label that others have, too",
		},
	} {
		for _, dry := range []string{"&dry_run=true", ""} {
			r := s.as(c.token).call("POST", "/api/v1/bulk/"+c.action+"?"+c.query+dry, nil)
			if r.status != c.status || c.status == 200 && results(r.object()) != c.want {
				t.Errorf("%s: got %d %s, want %d %s", c.matter, r.status, r.body, c.status, c.want)
			}
			if dry != "" && c.status == 200 &&
				r.object().text("matched") != fmt.Sprint(len(r.object().items("items"))) {
				t.Errorf("%s: it counts what is not one's own: %s", c.matter, r.body)
			}
		}
	}

	if n := s.count(`
			SELECT COUNT(*)
			FROM job
			WHERE app_id = (SELECT id FROM app WHERE name = 'ops') AND living = 1 AND paused = 0`); n != 2 {
		t.Errorf("%d jobs of another app are as they were", n)
	}
}

// TestBulkOnce: a repeated request is carried out once, even if the node died before answering.
func TestBulkOnce(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.manyJobs(3)
	const path = "/api/v1/bulk/run?app=ops&limit=2"
	var wg sync.WaitGroup
	replies := make([]*reply, 6)
	for i := range replies {
		wg.Go(func() { replies[i] = s.call("POST", path, `{}`, "Idempotency-Key", "k").want(200) })
	}

	wg.Wait()
	first := replies[slices.IndexFunc(replies, func(r *reply) bool {
		return r.header.Get("Idempotency-Replayed") == ""
	})]
	for _, r := range replies {
		if r != first {
			r.wantSame(first)
		}
	}

	const asked = "SELECT COUNT(*) FROM run WHERE kind = 'manual'"
	if s.count(asked) != 2 || tally(first.object()) != "2 changed, 0 unchanged, 0 refused" {
		t.Errorf("%d runs, %s", s.count(asked), first.body)
	}

	if s.count("SELECT COUNT(*) FROM request WHERE LENGTH(idem_key) = 64 AND status = 200 AND answer = ?",
		first.body) != 1 {
		t.Error("what is kept is not what was answered")
	}

	s.call("POST", path+"&cursor="+first.object().text("next"), `{}`, "Idempotency-Key", "k").want(409)
	s.call("POST", path+"&cursor="+first.object().text("next"), `{}`, "Idempotency-Key", "k2").want(200)
	if s.count(asked) != 3 {
		t.Errorf("%d runs", s.count(asked))
	}
	if n := s.count("SELECT COUNT(*) FROM audit WHERE action = 'run'"); n != 3 {
		t.Errorf("%d lines of the audit", n)
	}
}

// dying is an editor whose node seems to die after the commit.
type dying struct{ api.Editor }

func (e dying) Bulk(ctx context.Context, want *job.Bulk) error {
	if err := e.Editor.Bulk(ctx, want); err != nil {
		return err
	}
	return &sql.Unknown{Err: errors.New("the node has gone")}
}

// TestBulkOnceAndTheNodeDies: the answer is committed with the runs.
func TestBulkOnceAndTheNodeDies(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.manyJobs(2)
	editor := s.cfg.Editor
	s.cfg.Editor = func() api.Editor { return dying{editor()} }
	s.serve()
	s.call("POST", "/api/v1/bulk/run?app=ops", nil, "Idempotency-Key", "k").want(503)
	s.cfg.Editor = editor
	s.serve()
	r := s.call("POST", "/api/v1/bulk/run?app=ops", nil, "Idempotency-Key", "k").want(200)
	if tally(r.object()) != "2 changed, 0 unchanged, 0 refused" || r.header.Get("Idempotency-Replayed") != "true" ||
		r.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %v %s", r.header, r.body)
	}

	if n := s.count("SELECT COUNT(*) FROM run WHERE kind = 'manual'"); n != 2 {
		t.Errorf("%d runs were asked for, want 2", n)
	}
}

// TestBulkOfIDs: jobs named by id in one request.
func TestBulkOfIDs(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.manyJobs(4)
	id := func(app, name string) string {
		return s.call("GET", "/api/v1/apps/"+app+"/jobs/"+name, nil).want(200).object().text("id")
	}
	a, b, other := id("ops", "ops-02"), id("ops", "ops-00"), id("other", "one")

	before := s.counts()
	o := s.call("POST", "/api/v1/bulk/pause?dry_run=true&ids="+a+","+b, nil).want(200).object()
	if results(o) != "ops-02 changed, ops-00 changed" || o.text("matched") != "2" || o.text("dry_run") != "true" ||
		s.counts() != before {
		t.Errorf("dry run: got %v", o)
	}

	// A deleted or unknown job is refused on its own and holds up no other.
	gone := id("ops", "ops-03")
	s.call("DELETE", "/api/v1/jobs/"+gone, nil).want(204)
	o = s.call("POST", "/api/v1/bulk/pause?ids=987654321,"+a+","+gone+","+other,
		`{"reason": "disks"}`).want(200).object()
	if tally(o) != "2 changed, 0 unchanged, 2 refused" ||
		results(o) != "ops-02 changed, one changed,  refused,  refused" ||
		strings.Count(fmt.Sprint(o), "there is no such job") != 2 {
		t.Errorf("got %v", o)
	}

	if n := s.count(
		"SELECT COUNT(*) FROM audit WHERE action = 'pause' AND reason = 'disks' AND who = 'bootstrap'"); n != 2 {
		t.Errorf("%d lines of the audit", n)
	}

	if n := s.count("SELECT COUNT(*) FROM job WHERE paused = 1"); n != 2 {
		t.Errorf("%d jobs are paused", n)
	}

	// For a caller limited to apps, visible jobs are refused with their names and hidden ones look
	// missing.
	o = s.as(s.newToken("o", auth.Operator, "other")).call("POST", "/api/v1/bulk/resume?ids="+a+","+other,
		nil).want(200).object()
	if results(o) != "one changed,  refused" || !strings.Contains(fmt.Sprint(o), "there is no such job") ||
		strings.Contains(fmt.Sprint(o), "ops") {
		t.Errorf("an operator of another app: got %v", o)
	}

	s.as(s.newToken("v", auth.Viewer)).call("POST", "/api/v1/bulk/resume?ids="+a, nil).want(403)

	// Carried out once, even when repeated.
	first := s.call("POST", "/api/v1/bulk/run?ids="+b+","+other, nil, "Idempotency-Key", "k").want(200)
	s.call("POST", "/api/v1/bulk/run?ids="+b+","+other, nil, "Idempotency-Key", "k").want(200).wantSame(first)
	if n := s.count("SELECT COUNT(*) FROM run WHERE kind = 'manual'"); n != 2 {
		t.Errorf("%d runs were asked for", n)
	}

	o = s.call("POST", "/api/v1/bulk/delete?ids="+a, nil).want(200).object()
	if tally(o) != "1 changed, 0 unchanged, 0 refused" || s.count("SELECT COUNT(*) FROM job WHERE living = 1") != 4 {
		t.Errorf("delete: got %v", o)
	}
}
