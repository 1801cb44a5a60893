package cli

import (
	"net/http"
	"strings"
	"testing"
)

// TestShowSaysWhatConcernsAJob: job show prints the ping, the retention rules and the alert rules
// of a job.
func TestShowSaysWhatConcernsAJob(t *testing.T) {
	t.Parallel()

	answers := map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs/12": always(200,
			`{"id": "12", "app": "shop", "name": "load", "labels": {"team": "data"}, "keep": {"runs": 7},
			"ping": {"url": "https://ping.example.com/load", "fail_url": "https://ping.example.com/load/fail"}}`),
		"GET /api/v1/retention": always(200,
			`{"items": [{"scope": "cluster", "age": "2160h", "runs": 5, "failures": "8760h"}, {"scope": "app", "app": "ops", "bytes": "1GiB"}, {"scope": "app", "app": "shop", "age": "48h"}]}`),
		"GET /api/v1/alerts/rules": always(200, `{"items": [
			{"name": "team", "on": ["failed", "node_gone", "recovered"], "channels": ["chat", "mail"], "labels": {"team": "data"}},
			{"name": "all", "on": ["lost"], "channels": ["pager"]},
			{"name": "others", "on": ["failed"], "channels": ["chat"], "apps": ["ops"]},
			{"name": "nodes", "on": ["node_gone", "recovered"], "channels": ["chat"]},
			{"name": "off", "on": ["failed"], "channels": ["chat"], "disabled": true}]}`),
	}

	f := newFakeAPI(t, answers)
	got := command("job", "show", "12", "--server", f.URL)
	const want = `
ping         https://ping.example.com/load after a success,
             https://ping.example.com/load/fail after a failure
kept         for 2d, set by app shop
             the latest 7 of each job, set by the job
             unsuccessful runs for at least 365d, set by the cluster
alerts       all: lost to pager
             team: failed, recovered to chat, mail
`
	if got.code != 0 || !strings.Contains(squeezed(got.out), squeezed(want)) {
		t.Errorf("got %+v, want in it%s", got, want)
	}

	if got := command("job", "show", "12", "--server", f.URL, "-o", "json"); strings.Contains(got.out, "2160h") {
		t.Errorf("as JSON it is what the API has of the job: %+v", got)
	}

	// An older node has neither. Other errors are reported.
	delete(answers, "GET /api/v1/retention")
	delete(answers, "GET /api/v1/alerts/rules")
	f = newFakeAPI(t, answers)
	if got := command("job", "show", "12", "--server", f.URL); got.code != 0 ||
		!strings.Contains(squeezed(got.out), "kept the latest 7 of each job, set by the job") || strings.Contains(got.out, "alerts") {
		t.Errorf("an older node: got %+v", got)
	}

	answers["GET /api/v1/retention"] = always(500, `{"title": "broken", "status": 500}`)
	f = newFakeAPI(t, answers)
	if got := command("job", "show", "12", "--server", f.URL); got.code == 0 {
		t.Errorf("a node that fails: got %+v", got)
	}
	if got := command("job", "add", "x", "--every", "1h", "--ping-fail-url", "https://x", "--server", f.URL, "--",
		"true"); got.code != exitUsage || !strings.Contains(got.err, "needs --ping-url") {
		t.Errorf("half a ping: got %+v", got)
	}
}

// squeezed returns a text with runs of spaces and line ends collapsed to a single space.
func squeezed(s string) string { return strings.Join(strings.Fields(s), " ") }
