package cli

import (
	"net/http"
	"strings"
	"testing"
)

const pausedJob = `{"id":"12","app":"ops","name":"a/b","schedule":"* * * * *","timezone":"UTC","command":"true","overlap":"skip","misfire":{"policy":"latest"},
 "on_lost":"fail","paused":true,"status":"paused","version":3,"pause":{"scope":"job","by":"alice","reason":"disk","since":"2027-01-31T12:00:00Z","until":"2090-01-31T14:00:00Z"}}`

const heldJob = `{"id":"12","app":"ops","name":"a/b","schedule":"* * * * *","timezone":"UTC","command":"true","overlap":"skip","misfire":{"policy":"latest"},
 "on_lost":"fail","paused":false,"status":"paused","version":4,"pause":{"scope":"app","app":"ops","by":"alice","since":"2027-01-31T12:00:00Z"}}`

func TestPauseCommands(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs/12":         always(200, pausedJob),
		"POST /api/v1/jobs/12/pause":  always(200, pausedJob),
		"POST /api/v1/jobs/12/resume": always(200, heldJob),
		"POST /api/v1/apps/o%2Fs/pause": always(200,
			`{"scope":"app","app":"o/s","by":"alice","since":"2027-01-31T12:00:00Z","jobs":1}`),
		"POST /api/v1/apps/o%2Fs/resume": always(200,
			`{"items":[{"scope":"cluster","by":"bob","reason":"move","since":"2027-01-31T12:00:00Z"}]}`),
		"POST /api/v1/cluster/pause": always(200,
			`{"scope":"cluster","since":"2027-01-31T12:00:00Z","until":"2090-01-31T14:00:00Z","jobs":3}`),
		"POST /api/v1/cluster/resume": always(200, `{"items":[]}`),
	})

	for line, want := range map[string]struct{ body, out string }{
		"job pause 12": {
			`{}`, "paused ops/a/b, no scheduled runs until 2090-01-31 14:00:00+00:00",
		},
		"job pause 12 --reason disk --until 2h":     {`{"reason":"disk","until":"2h"}`, "paused ops/a/b"},
		"job pause 12 --until 2090-01-31T14:00:00Z": {`{"until":"2090-01-31T14:00:00Z"}`, "paused ops/a/b"},
		"job pause 12 --until +90s":                 {`{"until":"1m30s"}`, "paused ops/a/b"},
		"job resume 12": {
			`{}`, "resumed ops/a/b, but app ops is paused: no scheduled runs until it is resumed",
		},
		"job show 12":                 {"", "the job since 2027-01-31 12:00:00+00:00"},
		"app pause o/s --reason move": {`{"reason":"move"}`, "paused app o/s, with 1 job, until it is resumed"},
		"app resume o/s":              {`{}`, "resumed app o/s"},
		"cluster pause --until 3h":    {`{"until":"3h"}`, "paused the cluster, with 3 jobs, until 2090-01-31"},
		"cluster resume":              {`{}`, "resumed the cluster"},
	} {
		got := command(append(strings.Fields(line), "--server", f.URL)...)
		if got.code != 0 || !strings.Contains(got.out, want.out) || f.bodies[len(f.bodies)-1] != want.body {
			t.Errorf("%s: got %+v after %s, want %q after %s", line, got, f.bodies[len(f.bodies)-1], want.out,
				want.body)
		}
		if line == "app resume o/s" && !strings.Contains(got.err, "the cluster is paused since ") {
			t.Errorf("got %+v, want it to say what is paused still", got)
		}
	}

	for _, line := range []string{
		"job pause", "app pause", "app pause a b", "cluster pause a", "job pause 12 --until soon",
		"app pause a --until 25:00",
	} {
		if got := command(append(strings.Fields(line), "--server", f.URL)...); got.code != exitUsage {
			t.Errorf("%s: got %+v, want it refused", line, got)
		}
	}
}

func TestClusterSaysWhatIsPaused(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/cluster": always(200, `{"server":"MariaDB","session_expiry":"20s","node":"one","sessions":[]}`),
		"GET /api/v1/pauses": always(200,
			`{"items":[{"scope":"app","app":"ops","by":"bob","reason":"move","since":"2027-01-31T12:00:00Z"}]}`),
	})
	if got := command("cluster", "--server", f.URL); got.code != 0 ||
		!strings.Contains(got.err, "app ops is paused since ") || !strings.Contains(got.err, "by bob: move") {
		t.Errorf("got %+v", got)
	}
}

func TestAuditCommand(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs/12/history": always(200, `{"items":[]}`),
		"GET /api/v1/audit": always(200, `{"items":[
 {"id":"3","at":"2027-01-31T12:00:00Z","who":"alice","origin":"10.0.0.7","action":"pause","kind":"app","app":"ops","reason":"move"},
 {"id":"4","at":"2027-01-31T11:30:00Z","who":"bob","action":"update","kind":"secret","app":"shop","name":"pg"},
 {"id":"5","at":"2027-01-31T11:30:00Z","who":"bob","action":"update","kind":"secret","name":"hook"},
 {"id":"2","at":"2027-01-31T11:00:00Z","who":"bob","action":"update","kind":"job","job_id":"12","app":"ops","name":"a/b","was":{"command":"x"}}]}`),
	})

	got := command("audit", "--server", f.URL, "--job", "12", "--kind", "job", "--who", "bob", "--app", "ops", "--from",
		"2027-01-31T00:00:00Z", "--name", "nightly", "--action", "kill")
	if got.code != 0 || !strings.Contains(got.out, "ops/a/b") || !strings.Contains(got.out, "move") {
		t.Errorf("got %+v", got)
	}

	for _, what := range []string{"shop/pg", "secret  hook", "app     ops "} {
		if !strings.Contains(got.out, what) {
			t.Errorf("got %s, want %q in it", got.out, what)
		}
	}

	if last := f.asked[len(f.asked)-1]; last != "GET /api/v1/audit?action=kill&app=ops&from=2027-01-31T00%3A00%3A00Z&job_id=12&kind=job&limit=20&name=nightly&who=bob" {
		t.Errorf("asked %s", last)
	}
	if got := command("audit", "--server", f.URL, "-o", "json"); !strings.Contains(got.out, `"command": "x"`) {
		t.Errorf("got %+v, want what the server sent", got)
	}
}

func TestExplainOfTheDeleted(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs/7/explain": always(200, `{"cause":"deleted","answer":"The job was deleted before.",
 "pause":{"scope":"app","app":"ops","by":"bob","since":"2027-01-31T12:00:00Z"},"changed":{"at":"2027-01-31T12:00:00Z","by":"ann"}}`),
	})

	got := command("job", "explain", "7", "--at", "2027-01-31T12:00:00Z", "--server", f.URL)
	if got.code != 0 || !strings.Contains(got.out, "The job was deleted before.") ||
		!strings.Contains(got.err, "by bob") || !strings.Contains(got.err, "by ann") {
		t.Errorf("got %+v", got)
	}

	if got := command("job", "explain", "8", "--at", "2027-01-31T12:00:00Z", "--server",
		f.URL); got.code != exitNotFound {
		t.Errorf("got %+v, want it not found", got)
	}
}
