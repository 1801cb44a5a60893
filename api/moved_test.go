package api_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/internal/auth"
)

// TestMovedJobLeavesItsPast: after a move, the readers of the earlier app still see the job's
// definitions and runs there, and those of the new app see only later ones. It also holds for a run
// that executes during the move.
func TestMovedJobLeavesItsPast(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	gate := filepath.Join(t.TempDir(), "open")
	id := s.create("j", object{"app": "beta", "schedule": "0 0 1 1 *", "overlap": "allow",
		"command": "echo secret-of-beta; [ -e " + gate + "-wait ] || exit 1; until [ -e " + gate +
			" ]; do sleep .05; done"}).text("id")
	job := "/api/v1/jobs/" + id
	s.call("POST", job+"/run", nil).want(202)
	ended := s.ran(id, 1)[0].text("id")
	touch := func(path string) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	touch(gate + "-wait")
	executing := s.running(id)
	beta, alpha := s.as(s.newToken("of-beta", auth.Admin, "beta")), s.as(s.newToken("of-alpha", auth.Admin, "alpha"))
	whole := s.as(s.newToken("of-both", auth.Viewer, "alpha", "beta"))
	past := time.Now()
	events := alpha.listen("/api/v1/events")
	events.hello()

	s.call("PATCH", job, object{"app": "alpha", "command": "echo of-alpha", "timeout": "1m"}).want(200)
	s.call("POST", job+"/run", nil).want(202)
	var of []object
	await(t, "a run in the new app", 20*time.Second, func() bool {
		of = alpha.call("GET", "/api/v1/runs?state=ended", nil).want(200).object().items("items")
		return len(of) > 0
	})

	later := of[0].text("id")

	reads := func(who *site, path string, want int) *reply {
		t.Helper()
		return who.call("GET", path, nil).want(want)
	}

	ids := func(who *site, path string) (out []string) {
		t.Helper()
		for _, o := range reads(who, path, 200).object().items("items") {
			out = append(out, o.text("id"))
		}
		slices.Sort(out)
		return out
	}

	sorted := func(ids ...string) []string { slices.Sort(ids); return ids }
	lists := func(which string) {
		t.Helper()
		for path, wanted := range map[string]map[*site][]string{
			"/api/v1/runs": {
				beta: sorted(ended, executing), alpha: {later}, whole: sorted(ended, executing, later),
			},
			"/api/v1/runs?job_id=" + id: {
				beta: sorted(ended, executing), alpha: {later}, whole: sorted(ended, executing, later),
			},
			"/api/v1/runs?app=beta": {
				beta: sorted(ended, executing), alpha: nil, whole: sorted(ended, executing),
			},
			"/api/v1/runs?app=alpha": {beta: nil, alpha: {later}, whole: {later}},
			"/api/v1/runs?trigger=manual": {
				beta: sorted(ended, executing), alpha: {later}, whole: sorted(ended, executing, later),
			},
		} {
			for who, want := range wanted {
				if got := ids(who, path); !slices.Equal(got, want) {
					t.Errorf("%s, %s: got %v, want %v", which, path, got, want)
				}
			}
		}

		for who, want := range map[*site][]string{beta: {"beta"}, alpha: {"alpha"}} {
			for _, o := range reads(who, "/api/v1/runs", 200).object().items("items") {
				if o.text("app") != want[0] {
					t.Errorf("%s: a run is one of %s", which, o.text("app"))
				}
			}
		}

		for _, run := range []string{ended, executing} {
			for _, path := range []string{"/api/v1/runs/" + run, "/api/v1/runs/" + run + "/output"} {
				reads(alpha, path, 404)
				reads(beta, path, 200)
			}
			alpha.call("POST", "/api/v1/runs/"+run+"/kill", nil).want(404)
		}

		reads(beta, "/api/v1/runs/"+later+"/output", 404)
		reads(alpha, "/api/v1/runs/"+later+"/output", 200)
	}

	lists("while it executes")
	touch(gate)
	await(t, "the end of the run", 20*time.Second, func() bool {
		return reads(beta, "/api/v1/runs/"+executing, 200).object().text("state") == "ended"
	})
	lists("when it has ended")
	for who, want := range map[*site][]string{beta: sorted(ended, executing), alpha: {later}} {
		if got := ids(who, job+"/history"); !slices.Equal(got, want) {
			t.Errorf("history: got %v, want %v", got, want)
		}
	}

	// Definitions.
	versions := func(who *site) string {
		var out []string
		for _, o := range reads(who, job+"/versions", 200).object().items("items") {
			out = append(out, fmt.Sprint(o["version"], o["changed"]))
		}
		return strings.Join(out, ", ")
	}

	if got := versions(alpha); got != "2[]" {
		t.Errorf("versions of alpha: %s", got)
	}
	if got := versions(beta); got != "1[]" {
		t.Errorf("versions of beta: %s", got)
	}
	if got := versions(whole); !strings.Contains(got, "app") || !strings.HasSuffix(got, "1[]") {
		t.Errorf("versions of who sees both: %s", got)
	}

	reads(alpha, job+"/versions/1", 404)
	reads(alpha, job+"/versions/2", 200)
	reads(alpha, job+"/versions/1/diff/2", 404)
	reads(alpha, job+"/versions/2/diff/1", 404)
	reads(beta, job+"/versions/1", 200)
	reads(beta, job+"/versions/2", 404)
	reads(beta, job+"/versions/3", 404)
	reads(beta, job+"/versions/1/diff/2", 404)
	reads(whole, job+"/versions/1/diff/2", 200)
	alpha.call("POST", job+"/rollback", object{"version": 1}).want(404)
	beta.call("POST", job+"/rollback", object{"version": 1}).want(404)
	for _, path := range []string{job, job + "/next", job + "/explain?at=2027-01-01T00:00:00Z"} { // its present state
		reads(beta, path, 404)
	}

	// The past.
	at := past.UTC().Format(time.RFC3339Nano)
	if r := reads(alpha, job+"/explain?at="+at, 200); strings.Contains(r.body, ended) ||
		strings.Contains(r.body, "0 0 1 1") || r.object().text("cause") != "definition_is_younger" {
		t.Errorf("explain: %s", r.body)
	}

	for _, path := range []string{"/api/v1/audit", "/api/v1/audit?job_id=" + id} {
		if r := reads(alpha, path, 200); strings.Contains(r.body, "secret-of-beta") {
			t.Errorf("%s: %s", path, r.body)
		}
		if r := reads(whole, path, 200); !strings.Contains(r.body, "secret-of-beta") {
			t.Errorf("%s of who sees both: %s", path, r.body)
		}
	}

	if told := events.toldUntil(later); strings.Contains(told, executing) || strings.Contains(told, "secret-of-beta") {
		t.Errorf("events: %s", told)
	}
	for _, path := range []string{"/api/v1/export", "/api/v1/upcoming", "/api/v1/backfills", "/api/v1/jobs"} {
		if r := reads(alpha, path, 200); strings.Contains(r.body, "secret-of-beta") || strings.Contains(r.body, ended) {
			t.Errorf("%s: %s", path, r.body)
		}
	}

	// A rerun would be a run of the present definition.
	hourAgo := "from=" + url.QueryEscape(past.Add(-time.Hour).UTC().Format(time.RFC3339))
	for _, query := range []string{"ids=" + ended, hourAgo} {
		o := beta.call("POST", "/api/v1/bulk/rerun?"+query, nil).want(200).object()
		if o.text("started") != "0" || o.text("refused") != "1" || o.items("items")[0].text("why", "code") != "job_deleted" {
			t.Errorf("rerun, %s: got %v", query, o)
		}
	}

	// What became of the job's due times. Only runs of the schedule are shown there.
	s.exec("UPDATE run SET kind = 'schedule', request = 0 WHERE id = ?", ended)
	for _, path := range []string{"/api/v1/jobs?with=last_runs", "/api/v1/stats/slots?job_id=" + id + "&" + hourAgo} {
		if r := reads(alpha, path, 200); strings.Contains(r.body, ended) {
			t.Errorf("%s: %s", path, r.body)
		}
		if r := reads(whole, path, 200); !strings.Contains(r.body, ended) {
			t.Errorf("%s of who sees both: %s", path, r.body)
		}
	}
}

// toldUntil returns the text of a stream up to and including a word.
func (e *ear) toldUntil(what string) string {
	e.t.Helper()
	var all strings.Builder
	for limit := time.After(20 * time.Second); ; {
		select {
		case h, open := <-e.said:
			all.WriteString(h.data + "\n")
			if !open || strings.Contains(h.data, what) {
				return all.String()
			}
		case <-limit:
			e.t.Fatalf("%s: nothing of %s in %s", e.what, what, all.String())
		}
	}
}

// TestRollbackOfAMovedJob: a job moves away after the access check and before the rollback. It is
// not taken back.
func TestRollbackOfAMovedJob(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.create("j", object{"app": "beta", "schedule": "0 0 1 1 *", "command": "echo one"}).text("id")
	s.call("PATCH", "/api/v1/jobs/"+id, object{"command": "echo two"}).want(200)
	beta := s.newToken("of-beta", auth.Admin, "beta")

	moved := false
	s.cfg.Editor = func() api.Editor {
		if !moved {
			moved = true
			s.exec("INSERT INTO app (id, name) VALUES (77, 'alpha')")
			s.exec(`
					UPDATE job_version
					SET definition = REPLACE(definition, '"beta"', '"alpha"')
					WHERE job_id = ? AND version = 2`, id)
			s.exec("UPDATE job SET app_id = 77, changes = changes + 1 WHERE id = ?", id)
		}
		return s.node.Editor()
	}

	s.serve()
	s.as(beta).call("POST", "/api/v1/jobs/"+id+"/rollback", object{"version": 1}).want(404)
	if n := s.count("SELECT COUNT(*) FROM job WHERE id = ? AND app_id = 77", id); n != 1 || !moved {
		t.Error("the job was taken back")
	}
}
