package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/auth"
	"go-crontab/job"

	"github.com/google/uuid"
)

// ran waits until a job has n ended runs and returns them, the newest first.
func (s *site) ran(id string, n int) []object {
	s.t.Helper()
	var items []object
	await(s.t, fmt.Sprint(n, " runs of job ", id), 15*time.Second, func() bool {
		items = s.call("GET", "/api/v1/jobs/"+id+"/history", nil).want(200).object().items("items")
		return len(items) >= n
	})
	return items
}

func TestRun(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.create("echo 🎉", object{"command": `printf 'out \377 %s\n' "$GOCRONTAB_JOB"; exit 3`}).text("id")
	asked := s.call("POST", "/api/v1/jobs/"+id+"/run", nil, "Idempotency-Key", "once").want(202).object()
	again := s.call("POST", "/api/v1/jobs/"+id+"/run", `{}`, "Idempotency-Key", "once").want(202).object()
	if asked.text("job_id") != id || asked.text("request") == "" || fmt.Sprint(again) != fmt.Sprint(asked) {
		t.Errorf("got %v, then %v; want the same request of job %s", asked, again, id)
	}

	other := s.create("other", nil).text("id")
	if r := s.call("POST", "/api/v1/jobs/"+other+"/run", nil, "Idempotency-Key",
		"once").want(409); !strings.Contains(r.body, "key-reused") {
		t.Errorf("another request with the key: got %s", r.body)
	}

	run := s.ran(id, 1)[0]
	for field, want := range map[string]string{
		"job_id": id, "job": "echo 🎉", "app": "default", "due": asked.text("due"), "attempt": "1", "final": "true",
		"state": "ended", "outcome": "failed", "reason_code": "exit_code", "reason": "exit status 3",
		"exit_code": "3", "signal": "", "node": "knoten-1", "trigger": "manual", "request": asked.text("request"),
		"count": "", "until": "",
		"output_bytes": "16", "output_truncated": "false", "output": "",
	} {
		if got := run.text(field); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}

	for _, field := range []string{"due", "started", "ended"} {
		if _, err := time.Parse(time.RFC3339, run.text(field)); err != nil {
			t.Errorf("%s: %v", field, err)
		}
	}

	if _, err := job.ParseRunID(run.text("id")); err != nil || len(run.text("session")) != 36 ||
		run.text("lateness_ms") == "" {
		t.Errorf("got %v", run)
	}

	path := "/api/v1/runs/" + run.text("id")
	full := s.call("GET", path, nil).want(200).object()
	if full.text("output") != "out \uFFFD echo 🎉\n" {
		t.Errorf("output: got %q", full.text("output"))
	}

	text := s.call("GET", path+"/output", nil).want(200)
	if text.body != "out \uFFFD echo 🎉\n" || text.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("output: got %q, %s", text.body, text.header)
	}

	raw := s.call("GET", path+"/output?raw=1", nil).want(200)
	if raw.body != "out \xff echo 🎉\n" || raw.header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("raw output: got %q, %s", raw.body, raw.header)
	}

	time.Sleep(50 * time.Millisecond)
	if n := len(s.ran(id, 1)); n != 1 {
		t.Errorf("one key, %d runs", n)
	}
}

func TestLongOutputIsCut(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.create("loud", object{"command": `head -c 300000 /dev/zero | tr '\0' x; echo end`}).text("id")
	s.call("POST", "/api/v1/jobs/"+id+"/run", nil).want(202)
	run := s.ran(id, 1)[0]
	if run.text("output_bytes") != "300004" || run.text("output_truncated") != "true" {
		t.Errorf("got %v", run)
	}

	text := s.call("GET", "/api/v1/runs/"+run.text("id")+"/output", nil).want(200).body
	if !strings.HasPrefix(text, "xxx") || !strings.Contains(text, "bytes dropped") ||
		!strings.HasSuffix(text, "xend\n") || len(text) > 100_000 {
		t.Errorf("got %d bytes ending in %q", len(text), text[max(0, len(text)-20):])
	}

	if raw := s.call("GET", "/api/v1/runs/"+run.text("id")+"/output?raw=1", nil).want(200).body; strings.Contains(raw,
		"dropped") {
		t.Error("the raw output has words of ours in it")
	}
}

func TestRunning(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.create("long", object{"command": "sleep 60"}).text("id")
	s.call("POST", "/api/v1/jobs/"+id+"/run", nil).want(202)
	var items []object
	await(t, "it runs", 10*time.Second, func() bool {
		items = s.call("GET", "/api/v1/runs?state=running", nil).want(200).object().items("items")
		return len(items) == 1
	})

	run := items[0]
	for field, want := range map[string]string{"state": "running", "outcome": "", "ended": "", "job_id": id,
		"node": "knoten-1", "trigger": "manual"} {
		if got := run.text(field); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}

	path := "/api/v1/runs/" + run.text("id")
	if got := s.call("GET", path, nil).want(200).object(); got.text("state") != "running" {
		t.Errorf("got %v", got)
	}
	if r := s.call("GET", path+"/output", nil).want(200); r.body != "" || r.header.Get("Output-State") != "running" {
		t.Errorf("output of a run that has written nothing: got %q, %s", r.body, r.header)
	}

	for query, want := range map[string]int{"": 1, "?job_id=" + id: 1, "?node=knoten-1": 1, "?node=other": 0,
		"?app=other": 0, "?state=ended": 0, "?outcome=killed": 0} {
		if ids, _ := s.walk("/api/v1/runs" + query); len(ids) != want {
			t.Errorf("%q: got %d runs, want %d", query, len(ids), want)
		}
	}

	c := s.call("GET", "/api/v1/cluster", nil).want(200).object()
	if len(c.items("sessions")) != 1 {
		t.Fatalf("got %v", c)
	}
	if n := s.call("GET", "/api/v1/jobs/"+id+"/history", nil).want(200).object().items("items"); len(n) != 0 {
		t.Errorf("what is running is in the history: %v", n)
	}

	s.stopNode()
	s.reopen()
	if got := s.call("GET", path, nil).want(200).object(); got.text("outcome") != "killed" {
		t.Errorf("it ended with its node: got %v", got)
	}
}

// TestRunPages writes rows of executing and ended runs, and pages through them.
func TestRunPages(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var jobs []string
	for i := range 3 {
		jobs = append(jobs, s.create(fmt.Sprint("job ", i), object{"app": fmt.Sprint("app", i)}).text("id"))
	}

	s.stopNode() // nothing else writes the rows
	const base = job.Micros(1_900_000_000_000_000)
	s.reopen()
	session, another := uuid.New(), uuid.New()
	s.exec("INSERT INTO session (id, node, started, beat_at) VALUES (?, 'n0', 1, 1)", session[:])
	s.exec("INSERT INTO life (id, session, node, started) VALUES (100, ?, 'n0', 1), (101, ?, 'n1', 1)", session[:],
		another[:])
	insert := func(id, i int, state string, owner, attempt int, due, dueNow job.Micros, outcome int, more string) {
		t.Helper()
		kind, request := "schedule", i
		if request != 0 {
			kind = "manual"
		}

		s.exec(`
				INSERT INTO run (id, job_id, app_id, version, due, due_now, kind, request, attempt, state, owner,
					claim, hash, session, started, ended, outcome, final, due_count, due_last)`+
			" SELECT ?, id, app_id, 1, ?, ?, ?, ?, ?, ?, ?, 1, hash, ?, ?, ?, ?, 1, "+more+" FROM job WHERE id = ?",
			id, int64(due), int64(dueNow), kind, request, attempt, state, owner, 100+i%2,
			int64(base)+int64(rand.N(100)), int64(base)+200, outcome, jobs[i%3])

		if state == "ended" && outcome > 1 {
			s.exec(`
					INSERT INTO notable (outcome, due, run_id, app_id, job_id)
					SELECT outcome, due, id, app_id, job_id
					FROM run
					WHERE id = ?`, id)
		}
	}

	for i := range 13 {
		// Pairs have the same due time, so that it does not decide the order alone. All execute on
		// n0.
		insert(1000+i, i, "executing", 100, 1, base+job.Micros(i/2*1000), job.Micros(time.Now().UnixMicro()), 9,
			"NULL, NULL")
		s.exec("UPDATE run SET session = 100 WHERE id = ?", 1000+i)
	}

	for i := range 37 {
		more := "NULL, NULL"
		if i == 5 {
			more = fmt.Sprintf("4, %d", base+77)
		}
		due := base - job.Micros((1+rand.N(5))*1000)
		insert(2000+i, i, "ended", -2, 1+i%2, due, due, 1+i%8, more)
	}

	all := s.once("/api/v1/runs?limit=200", 50)
	for _, limit := range []int{1, 2, 12, 13, 14, 49, 50, 51} {
		if got := s.once(fmt.Sprint("/api/v1/runs?limit=", limit), 50); !slices.Equal(got, all) {
			t.Errorf("limit %d: got another order", limit)
		}
	}

	for query, want := range map[string]int{
		"state=running": 13, "state=ended": 37, "job_id=" + jobs[0]: 5 + 13, "job_id=" + jobs[1] +
			"&state=ended": 12, "app=app2": 4 + 12, "node=n0": 13 + 19,
		"outcome=succeeded": 5, "outcome=succeeded&state=running": 0, "from=" +
			url.QueryEscape((base + 1000).String()): 11,
		"to=" + url.QueryEscape((base + 1000).String()) + "&state=running": 2, "job_id=" + jobs[2] +
			"&outcome=missed": 1, "outcome=unsuccessful": 20, "outcome=unsuccessful&state=running": 0, "app=app1&node=n1&state=ended": 6,
	} {
		for _, limit := range []int{1, 5, 200} {
			s.once(fmt.Sprintf("/api/v1/runs?%s&limit=%d", query, limit), want)
		}
	}

	for _, limit := range []int{1, 3, 200} {
		_, items := s.walk(fmt.Sprintf("/api/v1/jobs/%s/history?limit=%d", jobs[0], limit))
		if len(items) != 13 ||
			!slices.IsSortedFunc(items,
				func(a, b object) int { return strings.Compare(b.text("due"), a.text("due")) }) {
			t.Errorf("limit %d: the history has %d runs, want 13, the newest first", limit, len(items))
		}
	}

	_, ranged := s.walk("/api/v1/runs?job_id=" + jobs[2] + "&outcome=skipped")
	ranged = slices.DeleteFunc(ranged, func(r object) bool { return r.text("count") == "" })
	if len(ranged) != 1 || ranged[0].text("count") != "4" || ranged[0].text("until") != (base+77).String() {
		t.Errorf("a run that stands for four due times: got %v", ranged)
	}
}

// TestRunsOfANamedJob: the parameter job names a living job, or else the one that was deleted last,
// for those who may read its app.
func TestRunsOfANamedJob(t *testing.T) {
	t.Parallel()

	s := start(t, nil)
	id := s.create("n/a", nil).text("id")
	s.call("POST", "/api/v1/jobs/"+id+"/run", nil).want(202)
	s.ran(id, 1)

	const path = "/api/v1/runs?job=default%2Fn%2Fa"
	named := func() []object { return s.call("GET", path, nil).want(200).object().items("items") }
	if got := named(); len(got) != 1 || got[0].text("job_id") != id {
		t.Errorf("a living job: got %v", got)
	}
	s.call("DELETE", "/api/v1/jobs/"+id, nil).want(204)
	if got := named(); len(got) != 1 || got[0].text("job_id") != id {
		t.Errorf("a deleted job: got %v", got)
	}
	if got := s.call("GET", "/api/v1/audit?job=default/n/a&action=delete", nil).want(200).object(); len(
		got.items("items")) != 1 {
		t.Errorf("its audit: got %v", got)
	}

	s.as(s.newToken("other", auth.Viewer, "ops")).call("GET", path, nil).want(404)
	s.create("n/a", nil)
	if got := named(); len(got) != 0 {
		t.Errorf("another job of this name: got %v", got)
	}
}

// once pages through a list and requires n different runs, executing ones first.
func (s *site) once(path string, n int) []string {
	s.t.Helper()
	ids, items := s.walk(path)
	unique := slices.Compact(slices.Sorted(slices.Values(ids)))
	if len(ids) != n || len(unique) != n {
		s.t.Errorf("%s: got %d runs, %d different ones, want %d", path, len(ids), len(unique), n)
	}

	for i := 1; i < len(items); i++ {
		if items[i].text("state") == "running" && items[i-1].text("state") == "ended" {
			s.t.Errorf("%s: a running one comes after an ended one", path)
		}
	}

	return ids
}

func TestNextAndPreview(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.create("dst", object{"schedule": "30 2 * * *", "timezone": "Europe/Berlin"}).text("id")
	want := `[{"due":"2026-03-28T02:30:00+01:00"},{"due":"2026-03-29T03:00:00+02:00","mark":"gap"},{"due":"2026-03-30T02:30:00+02:00"}]`
	got := s.call("GET", "/api/v1/jobs/"+id+"/next?n=3&from="+url.QueryEscape("2026-03-27T02:30:00+01:00"),
		nil).want(200).body
	if got != `{"items":`+want+"}\n" {
		t.Errorf("got %s, want %s", got, want)
	}

	// the plus is not encoded
	plus := s.call("GET", "/api/v1/jobs/"+id+"/next?n=3&from=2026-03-27T02:30:00+01:00", nil).want(200).body
	if plus != got {
		t.Errorf("got %s, want %s", plus, got)
	}

	got = s.call("POST", "/api/v1/preview",
		`{"schedule": "30 2 * * *", "timezone": "Europe/Berlin", "from": "2026-03-27T01:30:00Z", "n": 3}`).want(
		200).body
	if got != `{"words":"at 02:30 every day, Europe/Berlin","next":`+want+"}\n" {
		t.Errorf("got %s, want %s", got, want)
	}

	chinese := s.call("POST", "/api/v1/preview", `{"schedule": "30 2 * * mon-fri", "n": 1}`, "Accept-Language",
		"zh-CN,zh;q=0.9,en;q=0.8").want(200)
	if got := chinese.object().text("words"); got != "每个工作日 02:30（UTC）" ||
		chinese.header.Get("Vary") != "Accept-Language" {
		t.Errorf("in Chinese: got %q, %v", got, chinese.header)
	}

	repeat := s.call("POST", "/api/v1/preview",
		`{"schedule": "30 2 * * *", "timezone": "Europe/Berlin", "from": "2026-10-25T00:00:00Z", "n": 1}`).want(
		200).body
	if !strings.Contains(repeat, `"mark":"repeat"`) {
		t.Errorf("got %s, want a repeat", repeat)
	}

	every := s.call("POST", "/api/v1/preview",
		`{"every": "90s", "from": "2026-01-01T00:00:00Z", "n": 2}`).want(200).body
	if every != `{"words":"every 1 minute and 30 seconds; first at 2026-01-01 00:01:30 UTC","next":[{"due":"2026-01-01T00:01:30Z"},{"due":"2026-01-01T00:03:00Z"}]}`+"\n" {
		t.Errorf("got %s", every)
	}

	past := s.call("POST", "/api/v1/preview",
		`{"at": "2001-01-01T00:00:00.5Z", "from": "2026-01-01T00:00:00Z"}`).want(200).body
	if past != `{"words":"once, at 2001-01-01 00:00:00.5 UTC","next":[]}`+"\n" {
		t.Errorf("got %s", past)
	}
	if n := len(s.call("GET", "/api/v1/jobs/"+id+"/next", nil).want(200).object().items("items")); n != 10 {
		t.Errorf("got %d due times, want 10", n)
	}
	if n := len(s.call("GET", "/api/v1/jobs/"+id+"/next?n=1000", nil).want(200).object().items("items")); n != 1000 {
		t.Errorf("got %d due times, want 1000", n)
	}

	if n := s.count("SELECT COUNT(*) FROM job"); n != 1 {
		t.Errorf("a preview saved something: %d jobs", n)
	}
}

func TestKillARun(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.create("long", object{"command": "sleep 60", "retry": object{"attempts": 2}}).text("id")
	s.call("POST", "/api/v1/jobs/"+id+"/run", nil).want(202)
	var running []object
	await(t, "it runs", 10*time.Second, func() bool {
		running = s.call("GET", "/api/v1/runs?state=running&job_id="+id, nil).want(200).object().items("items")
		return len(running) == 1
	})

	path := "/api/v1/runs/" + running[0].text("id")
	if got := s.call("POST", path+"/kill", `{}`).want(202).object(); got.text("state") != "running" {
		t.Errorf("got %v", got)
	}

	ended := s.ran(id, 1)[0]
	if ended.text("outcome") != "killed" || ended.text("reason_code") != "killed_by_user" ||
		ended.text("reason") != "killed by a user" || ended.text("final") != "true" {
		t.Errorf("got %v", ended)
	}

	if r := s.call("POST", path+"/kill", nil).want(409); !strings.Contains(r.body, "has-ended") {
		t.Errorf("the second kill: got %s", r.body)
	}
	s.call("POST", "/api/v1/runs/"+uuid.NewString()+"-1/kill", nil).want(404)
}
