package api_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/internal/auth"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/test/faultproxy"
)

// ranNow runs a job by hand n times, one run after the other, and returns its runs.
func (s *site) ranNow(id string, n int) (runs []object) {
	s.t.Helper()
	before := len(s.call("GET", "/api/v1/jobs/"+id+"/history", nil).want(200).object().items("items"))
	for i := range n {
		s.call("POST", "/api/v1/jobs/"+id+"/run", nil).want(202)
		runs = s.ran(id, before+i+1)
	}
	return runs
}

func (s *site) health(id string) string {
	s.t.Helper()
	return s.call("GET", "/api/v1/jobs/"+id, nil).want(200).object().text("health", "text")
}

// TestOverview follows jobs that fail and recover through health, statistics, badges and reruns.
func TestOverview(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	good := s.create("good", nil).text("id")
	bad := s.create("bad", object{"app": "ops", "command": `echo fine; printf '\033[31mdisk full\033[0m\n\n'; exit 3`}).text("id")
	s.create("idle", nil)
	s.ranNow(good, 2)
	failed := s.ranNow(bad, 3)

	// The list has the health and the last runs of all.
	list := s.call("GET", "/api/v1/jobs?with=last_runs", nil).want(200).object().items("items")
	got := ""
	for _, j := range list {
		got += fmt.Sprintf("%s: %s, %d; ", j.text("name"), j.text("health", "text"), len(j.items("last_runs")))
	}
	if want := "good: OK, 2; bad: Failing (3×), 3; idle: Has not run, 0; "; got != want {
		t.Errorf("list: got %q, want %q", got, want)
	}
	if r := list[1].items("last_runs")[0]; r.text("id") != failed[0].text("id") || r.text("outcome") != "failed" ||
		r.text("state") != "ended" {
		t.Errorf("last run: got %v", r)
	}
	some := s.call("GET", "/api/v1/jobs?ids="+bad+",999,"+good, nil).want(200).object().items("items")
	if len(some) != 2 || some[0].text("id") != bad || some[1].text("last_runs") != "" {
		t.Errorf("ids: got %v", some)
	}
	s.call("GET", "/api/v1/jobs?app=ops&ids="+bad, nil).want(422)

	stats := s.call("GET", "/api/v1/stats/jobs?window=1h", nil).want(200).object()
	if n := stats.items("items"); len(n) != 2 || n[0].text("job") != "bad" || n[0].text("failed") != "3" ||
		n[0].text("health", "failures") != "3" || n[0].text("last_failure", "last_line") != "disk full" ||
		n[0].text("last_failure", "reason_code") != "exit_code" || n[0].text("last_failure", "node") != "knoten-1" ||
		n[1].text("success_rate") != "1" || n[1].text("duration_p95_ms") == "" {
		t.Errorf("stats: got %v", stats)
	}
	if stats.text("totals", "runs") != "5" || stats.text("totals", "failing_jobs") != "1" || stats.text("cut") != "false" {
		t.Errorf("totals: got %v", stats["totals"])
	}
	s.call("GET", "/api/v1/stats/jobs?window=1y", nil).want(422)

	// An output that a newer version wrote costs its last line.
	s.exec("UPDATE output SET encoding = 9 WHERE run_id = ?", failed[0].text("id"))
	stats = s.call("GET", "/api/v1/stats/jobs?window=2h", nil).want(200).object()
	if n := stats.items("items")[0]; n.text("last_failure", "run_id") != failed[0].text("id") || n.text("last_failure", "last_line") != "" {
		t.Errorf("stats with an unreadable output: got %v", stats)
	}

	// Somebody who sees another app learns nothing.
	viewer := s.as(s.newToken("viewer", auth.Viewer, "default"))
	if o := viewer.call("GET", "/api/v1/stats/jobs", nil).want(200).object(); len(o.items("items")) != 1 {
		t.Errorf("stats of one app: got %v", o)
	}
	if o := viewer.call("GET", "/api/v1/stats/counts", nil).want(200).object(); o.text("failing_jobs") != "0" ||
		o.text("unsent_messages") != "" {
		t.Errorf("counts of one app: got %v", o)
	}
	if o := s.call("GET", "/api/v1/stats/counts", nil).want(200).object(); o.text("failing_jobs") != "1" ||
		o.text("unsent_messages") != "0" || o.text("nodes_ready") != "1" || o.text("nodes_gone") != "0" {
		t.Errorf("counts: got %v", o)
	}

	s.rerunAll(bad, failed)
	if got := s.health(bad); got != "OK" {
		t.Errorf("after reruns that succeeded: got %q", got)
	}
	stats = s.call("GET", "/api/v1/stats/jobs?app=ops", nil).want(200).object()
	if n := stats.items("items"); len(n) != 1 || n[0].text("last_failure", "recovered") != failed[0].text("due") ||
		stats.text("totals", "failing_jobs") != "0" {
		t.Errorf("recovered: got %v", stats)
	}
}

// rerunAll mends a job and runs its failed due times again.
func (s *site) rerunAll(id string, failed []object) {
	t := s.t
	t.Helper()
	s.call("PATCH", "/api/v1/jobs/"+id, `{"command": "true"}`).want(200)
	from := "from=" + url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339))
	s.call("POST", "/api/v1/bulk/rerun?app=ops", nil).want(422)
	s.call("POST", "/api/v1/bulk/rerun?app=&"+from, nil).want(422)
	s.call("POST", "/api/v1/bulk/rerun?dry_run=&"+from, nil).want(422)
	s.call("POST", "/api/v1/bulk/rerun?to=2001-01-01T00:00:00Z&"+from, nil).want(422)

	before := s.counts()
	dry := s.call("POST", "/api/v1/bulk/rerun?dry_run=true&outcome=unsuccessful&"+from, nil).want(200).object()
	if dry.text("started") != "3" || len(dry.items("items")) != 3 || dry.items("items")[0].text("due") != failed[0].text("due") ||
		s.counts() != before {
		t.Errorf("dry run: got %v", dry)
	}

	first := s.call("POST", "/api/v1/bulk/rerun?limit=2&"+from, nil, "Idempotency-Key", "k").want(200).object()
	again := s.call("POST", "/api/v1/bulk/rerun?limit=2&"+from, nil, "Idempotency-Key", "k").want(200).object()
	if first.text("started") != "2" || first.text("request") == "" || first.text("next") == "" ||
		fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("got %v, then %v", first, again)
	}

	rest := s.call("POST", "/api/v1/bulk/rerun?limit=2&"+from+"&cursor="+first.text("next"), nil).want(200).object()
	if rest.text("started") != "1" || rest.text("next") != "" {
		t.Errorf("the rest: got %v", rest)
	}

	runs := s.ran(id, 6)
	for _, f := range failed {
		n := 0
		for _, r := range runs {
			if r.text("due") == f.text("due") && r.text("outcome") == "succeeded" {
				n++
			}
		}
		if n != 1 {
			t.Errorf("the due time %s ran %d times again", f.text("due"), n)
		}
	}

	// Nothing is left, and each named run says why.
	none := s.call("POST", "/api/v1/bulk/rerun?"+from, nil).want(200).object()
	named := s.call("POST", "/api/v1/bulk/rerun?ids=7,"+failed[0].text("id")+","+runs[0].text("id"), nil).want(200).object()
	got := ""
	for _, item := range named.items("items") {
		got += item.text("why", "code") + " "
	}
	if none.text("started") != "0" || got != "no_such_run run_followed run_did_not_fail " {
		t.Errorf("got %v, then %q", none, got)
	}
}

// TestSlotsReadCalendarsOnce: one request reads all calendars at once, however many definitions name
// them.
func TestSlotsReadCalendarsOnce(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, name := range []string{"c", "d"} {
		s.call("PUT", "/api/v1/calendars/"+name, object{"exclude_weekdays": []string{"sun"}}).want(201)
	}
	for _, job := range []string{"a", "b"} {
		o := s.create(job, object{"schedule": "0 * * * *", "calendars": []string{"c"}})
		s.call("PUT", "/api/v1/jobs/"+o.text("id"), object{"name": job, "schedule": "30 * * * *", "command": "true",
			"calendars": []string{"c", "d"}}).want(200)
	}

	proxy := faultproxy.Before(t, s.dsn)
	reads, err := sql.Open(proxy.DSN(s.dsn), sql.DefaultTimeouts, 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reads.Close() })
	s.cfg.DB = &read.DB{DB: reads}
	s.serve()
	var times atomic.Int64
	proxy.OnCommand(func(c faultproxy.Command) {
		if c.IsStatement() && strings.Contains(c.SQL, "FROM calendar WHERE name IN") {
			times.Add(1)
		}
	})

	from := url.QueryEscape(s.node.Now().Add(-time.Hour).Format(time.RFC3339))
	items := s.call("GET", "/api/v1/stats/slots?from="+from, nil).want(200).object().items("items")
	if len(items) != 2 {
		t.Errorf("got %v, want two jobs", items)
	}
	if n := times.Load(); n != 1 {
		t.Errorf("calendars were read %d times, want once", n)
	}
}

// TestSlots: each due time has its outcome, and a due time without a record is a hole.
func TestSlots(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.create("tick", object{"schedule": "* * * * * *", "command": "true"}).text("id")
	runs := s.ran(id, 3)
	lost, err := time.Parse(time.RFC3339, runs[1].text("due"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Raw().Exec("DELETE FROM run WHERE job_id = ? AND due = ?", id, lost.UnixMicro()); err != nil {
		t.Fatal(err)
	}

	at := func(d time.Duration) string { return url.QueryEscape(lost.Add(d).Format(time.RFC3339)) }
	path := "/api/v1/stats/slots?job_id=" + id + "&from=" + at(-time.Second) + "&to="
	o := s.call("GET", path+at(60*time.Second), nil).want(200).object().items("items")[0]
	slots, got := o.items("slots"), ""
	for _, slot := range slots[:3] {
		got += slot.text("state") + " "
	}
	if got != "succeeded hole succeeded " || slots[0].text("run_id") == "" || slots[len(slots)-1].text("state") != "ahead" ||
		o.text("holes") != "1" || o.text("total") != "61" {
		t.Errorf("got %s%v", got, o)
	}

	// The same, counted.
	o = s.call("GET", path+at(60*time.Second)+"&most=10&parts=2", nil).want(200).object().items("items")[0]
	parts := o.items("buckets")
	if len(parts) != 2 || parts[0].text("total") != "31" || parts[0].text("states", "hole") != "1" || o.text("holes") != "1" ||
		parts[1].text("states", "ahead") == "" || o.text("slots") != "" {
		t.Errorf("counted: got %v", o)
	}

	// The due times of a paused job are no holes, each by itself and counted.
	s.call("POST", "/api/v1/jobs/"+id+"/pause", object{}).want(200)
	since := "/api/v1/stats/slots?job_id=" + id + "&from=" + at(time.Second) + "&to=" + at(90*time.Second)
	for _, how := range []string{"", "&most=10&parts=1"} {
		await(t, "a due time passes while the job is paused"+how, 15*time.Second, func() bool {
			o = s.call("GET", since+how, nil).want(200).object().items("items")[0]
			if buckets := o.items("buckets"); len(buckets) > 0 {
				return buckets[0].text("states", "paused") != ""
			}
			return slices.ContainsFunc(o.items("slots"), func(slot object) bool {
				return slot.text("state") == "paused" && slot.text("reason_code") == "job_paused"
			})
		})
		if o.text("holes") != "0" {
			t.Errorf("%s: got %v, want no hole", how, o)
		}
	}

	if o := s.call("GET", "/api/v1/stats/slots?app=none&from="+at(0), nil).want(200).object(); len(o.items("items")) != 0 {
		t.Errorf("another app: got %v", o)
	}
	s.call("GET", "/api/v1/stats/slots?job_id="+id, nil).want(422)
	s.call("GET", "/api/v1/stats/slots?job_id=999&from="+at(0), nil).want(404)
	s.call("GET", "/api/v1/stats/slots?from="+at(0)+"&to="+at(32*24*time.Hour), nil).want(422)

	// A job that was changed too often to know what was due.
	often := s.create("often", object{"schedule": "59 0 1 1 *"}).text("id")
	for i := range 49 {
		s.call("PATCH", "/api/v1/jobs/"+often, object{"schedule": fmt.Sprint(i, " 0 1 1 *")}).want(200)
	}
	for _, want := range []string{"", "true"} {
		o := s.call("GET", "/api/v1/stats/slots?job_id="+often+"&from="+at(-time.Hour), nil).want(200).object().items("items")[0]
		if o.text("uncounted") != want {
			t.Errorf("changed often: got %v, want uncounted %q", o, want)
		}
		s.call("PATCH", "/api/v1/jobs/"+often, object{"schedule": "0 1 1 1 *"}).want(200)
	}
}

// TestBackfillDues: a backfill with a failure is not done in order, and each due time says what
// became of it.
func TestBackfillDues(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.create("hourly", object{"schedule": "0 * * * *", "command": `case "$GOCRONTAB_DUE" in *T03:*) exit 1;; esac`}).text("id")
	day := s.node.Now().Add(-48 * time.Hour).UTC().Truncate(24 * time.Hour)
	b := s.call("POST", "/api/v1/jobs/"+id+"/backfill", object{
		"from": day.Add(2 * time.Hour).Format(time.RFC3339), "to": day.Add(4 * time.Hour).Format(time.RFC3339),
	}).want(202).object()

	path := "/api/v1/backfills/" + b.text("id")
	await(t, "the backfill is done", 30*time.Second, func() bool {
		b = s.call("GET", path, nil).want(200).object()
		return b.text("state") == "done"
	})
	list := s.call("GET", "/api/v1/backfills", nil).want(200).object().items("items")
	if len(list) != 1 || list[0].text("app") != "default" || list[0].text("job") != "hourly" {
		t.Errorf("the list: got %v", list)
	}
	if b.text("health") != "failed" || b.text("failed") != "1" || b.text("job") != "hourly" {
		t.Errorf("got %v", b)
	}

	got := ""
	for cursor := ""; ; {
		o := s.call("GET", path+"/dues?limit=2"+cursor, nil).want(200).object()
		for _, due := range o.items("items") {
			got += due.text("state") + " "
		}
		if o.text("next") == "" {
			break
		}
		cursor = "&cursor=" + o.text("next")
	}
	if got != "succeeded failed succeeded " {
		t.Errorf("due times: got %s", got)
	}

	failed := s.call("GET", path+"/dues?state=failed", nil).want(200).object().items("items")
	if len(failed) != 1 || failed[0].text("run", "outcome") != "failed" {
		t.Errorf("failed: got %v", failed)
	}
	s.call("GET", "/api/v1/backfills/999/dues", nil).want(404)

	// The job has moved since: its earlier runs are not for readers of its present app.
	s.exec("INSERT INTO app (id, name) VALUES (77, 'earlier')")
	s.exec("UPDATE run SET app_id = 77 WHERE request = ?", b.text("id"))
	viewer := s.as(s.newToken("viewer", auth.Viewer, "default"))
	for _, query := range []string{"", "?state=failed"} {
		r := viewer.call("GET", path+"/dues"+query, nil).want(200)
		if !strings.Contains(r.body, `"failed"`) || strings.Contains(r.body, `"run"`) {
			t.Errorf("dues%s after a move: got %s", query, r.body)
		}
	}
}

// TestGoneNodes: a node that died stays visible, until a node of the same name is there.
func TestGoneNodes(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	line := func(name, action string, ago time.Duration) {
		t.Helper()
		_, err := s.db.Raw().Exec(`INSERT INTO audit (at, who, action, kind, name, was) VALUES (?, 'x', ?, 'session', ?,
			'{"session": "00000000-0000-0000-0000-000000000007", "started": "2027-01-01T00:00:00Z"}')`,
			s.node.Now().Add(-ago).UnixMicro(), action, name)
		if err != nil {
			t.Fatal(err)
		}
	}
	line("died", "reap", time.Hour)
	line("left", "leave", 2*time.Hour)
	line("old", "reap", 25*time.Hour)
	line("knoten-1", "reap", time.Hour)
	s.exec(`INSERT INTO audit (at, who, action, kind, name) VALUES ` + // many restarts of a node that is there
		strings.TrimSuffix(strings.Repeat(fmt.Sprintf("(%d, 'x', 'leave', 'session', 'knoten-1'),",
			s.node.Now().Add(-time.Minute).UnixMicro()), 500), ","))
	for _, statement := range []string{
		`INSERT INTO life (id, session, node, started) VALUES (77, UNHEX('00000000000000000000000000000007'), 'died', 1)`,
		`INSERT INTO run (id, job_id, app_id, due, due_now, hash, kind, state, owner, claim, session, outcome)
			VALUES (5, 1, 1, 1, 1, 1, 'schedule', 'ended', -2, 1, 77, 'lost')`,
		`INSERT INTO notable (outcome, due, run_id, app_id, job_id) VALUES ('lost', 1, 5, 1, 1)`,
	} {
		if _, err := s.db.Raw().Exec(statement); err != nil {
			t.Fatal(err)
		}
	}

	got := ""
	for _, n := range s.call("GET", "/api/v1/nodes", nil).want(200).object().items("items") {
		got += n.text("name") + " " + n.text("state") + " " + n.text("lost_runs") + "; "
	}
	if got != "died gone 1; knoten-1 ready ; left left 1; " {
		t.Errorf("got %s", got)
	}
	if o := s.call("GET", "/api/v1/stats/counts", nil).want(200).object(); o.text("nodes_gone") != "1" || o.text("nodes") != "1" {
		t.Errorf("counts: got %v", o)
	}
}

// TestCompressed: JSON is compressed for clients that ask for it, and not for changes.
func TestCompressed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("a", nil)
	ask := func(method, path, accept string) *http.Response {
		t.Helper()
		req, err := http.NewRequest(method, s.url+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept-Encoding", accept)
		resp, err := s.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}

	resp := ask("GET", "/api/v1/jobs", "br, gzip")
	z, err := gzip.NewReader(resp.Body)
	if err != nil || resp.Header.Get("Content-Encoding") != "gzip" || resp.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("got %v, %v", resp.Header, err)
	}
	var o object
	if err := json.NewDecoder(z).Decode(&o); err != nil || len(o.items("items")) != 1 {
		t.Errorf("got %v, %v", o, err)
	}

	for _, r := range []*http.Response{
		ask("GET", "/api/v1/jobs", "identity"), ask("GET", "/api/v1/jobs", "gzip;q=0"),
		ask("POST", "/api/v1/jobs/1/run", "gzip"),
	} {
		if coding := r.Header.Get("Content-Encoding"); coding != "" {
			t.Errorf("%s: got %s", r.Request.Method, coding)
		}
	}
}
