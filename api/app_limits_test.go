package api_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/auth"
)

// TestAppLimits: a change that would exceed a limit of an app gets 429 with the limit and the
// present use.
func TestAppLimits(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const limits = "/api/v1/apps/billing/limits"
	spec := func(name string) string {
		return fmt.Sprintf(
			`{"app": "billing", "name": %q, "schedule": "0 3 1 1 *", "command": "true", "overlap": "allow"}`, name)
	}

	over := func(r *reply, limit string) {
		t.Helper()
		r.want(429)
		for _, part := range []string{"urn:go-crontab:problem:app-limit", "App billing", limit,
			"admin of the cluster"} {
			if !strings.Contains(r.body, part) {
				t.Errorf("%s: %s\nlacks %q", r.what, r.body, part)
			}
		}
	}

	s.call("PUT", limits, `{"jobs": 2, "runs_per_minute": 3}`).want(200)
	s.call("POST", "/api/v1/jobs", spec("a")).want(201)
	s.call("POST", "/api/v1/jobs", spec("b")).want(201)
	over(s.call("POST", "/api/v1/jobs", spec("c")), "has 2 jobs and can have at most 2")
	over(s.call("PUT", "/api/v1/apps/billing/jobs/c", `{"schedule": "0 3 1 1 *", "command": "true"}`), "at most 2")
	s.call("POST", "/api/v1/jobs", `{"name": "other", "schedule": "0 3 1 1 *", "command": "true"}`).want(201)
	over(s.call("PATCH", "/api/v1/jobs/"+s.jobID("default", "other"), `{"app": "billing"}`), "at most 2")
	over(s.call("POST", "/api/v1/apply", `{"jobs": [`+spec("d")+`]}`), "at most 2")
	over(s.call("POST", "/api/v1/apply", `{"dry_run": true, "jobs": [`+spec("d")+`]}`), "at most 2")
	s.call("PATCH", "/api/v1/jobs/"+s.jobID("billing", "a"), `{"owner": "ann"}`).want(200)

	run := "/api/v1/jobs/" + s.jobID("billing", "a") + "/run"
	for range 3 {
		s.call("POST", run, "", "Idempotency-Key", "once").want(202) // the same request each time
	}

	s.call("POST", run, "").want(202)
	s.call("POST", run, "").want(202)
	r := s.call("POST", run, "")
	over(r, "has started 3 runs in the last minute and can start at most 3 a minute")
	if wait, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || wait < 1 || wait > 60 {
		t.Errorf("got Retry-After %q", r.header.Get("Retry-After"))
	}

	s.call("POST", run, "", "Idempotency-Key", "once").want(202)
	over(s.call("POST", "/api/v1/jobs/"+s.jobID("billing", "b")+"/backfill",
		`{"from": "2020-01-01T00:00:00Z", "to": "2024-01-01T00:00:00Z"}`), "at most 3 a minute")
	if r := s.call("POST", "/api/v1/bulk/run?app=billing", "").want(200); !strings.Contains(r.body,
		"can start at most 3 a minute") || !strings.Contains(r.body, `"changed":0`) {
		t.Errorf("a bulk run: %s", r.body)
	}

	s.call("POST", "/api/v1/jobs/"+s.jobID("default", "other")+"/run", "").want(202)

	got := s.call("GET", limits, nil).want(200)
	for _, part := range []string{`"jobs":2`, `"runs_per_minute":3`,
		`"use":{"jobs":2,"runs_per_minute":3,"waiting":0,"output":0}`} {
		if !strings.Contains(got.body, part) {
			t.Errorf("%s lacks %s", got.body, part)
		}
	}

	s.call("DELETE", limits, nil).want(204)
	s.call("POST", "/api/v1/jobs", spec("c")).want(201)
	s.call("POST", run, "").want(202)
}

// jobID returns the id of a job by its name.
func (s *site) jobID(app, name string) string {
	s.t.Helper()
	return fmt.Sprint(s.call("GET", "/api/v1/apps/"+app+"/jobs/"+name, nil).want(200).object()["id"])
}

// TestWhoMayLimit: a caller limited to apps sees their limits and cannot change any.
func TestWhoMayLimit(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.call("PUT", "/api/v1/apps/billing/limits", `{"jobs": 2}`).want(200)
	s.call("PUT", "/api/v1/apps/shop/limits", `{"waiting": 2}`).want(200)
	own := s.as(s.newToken("own", auth.Admin, "billing"))
	own.call("PUT", "/api/v1/apps/billing/limits", `{"jobs": 3}`).want(403)
	own.call("DELETE", "/api/v1/apps/billing/limits", nil).want(403)
	own.call("GET", "/api/v1/apps/billing/limits", nil).want(200)
	own.call("GET", "/api/v1/apps/shop/limits", nil).want(404)
	if r := own.call("GET", "/api/v1/limits", nil).want(200); strings.Contains(r.body, "shop") ||
		!strings.Contains(r.body, "billing") {
		t.Errorf("got %s", r.body)
	}

	operator := s.as(s.newToken("operator", auth.Operator))
	operator.call("PUT", "/api/v1/apps/billing/limits", `{"jobs": 3}`).want(403)
	if r := s.call("GET", "/api/v1/apps/billing/limits", nil).want(200); !strings.Contains(r.body, `"jobs":2`) {
		t.Errorf("got %s", r.body)
	}

	for _, body := range []string{`{}`, `{"jobs": 0}`, `{"jobs": -1}`, `{"jobs": "many"}`, `{"job": 1}`,
		`{"jobs": 1.5}`} {
		s.call("PUT", "/api/v1/apps/billing/limits", body).want(422)
	}
}

// TestExplainLimit: history and explain name the limit that a due time was skipped for.
func TestExplainLimit(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.call("PUT", "/api/v1/apps/billing/limits", `{"runs_per_minute": 1}`).want(200)
	s.call("POST", "/api/v1/jobs", `{"app": "billing", "name": "j", "every": "1s", "command": "true"}`).want(201)
	id := s.jobID("billing", "j")
	const reason = "app billing is at its limit of 1 run a minute"
	due := ""
	await(t, "a due time is skipped", 20*time.Second, func() bool {
		r := s.call("GET", "/api/v1/jobs/"+id+"/history", nil).want(200)
		_, text, found := strings.Cut(r.body, `"due":"`)
		due, _, _ = strings.Cut(text, `"`)
		return found && strings.Contains(r.body, `"reason_code":"app_limit_runs_per_minute","reason":"`+reason)
	})

	await(t, "explain names the limit", 20*time.Second, func() bool {
		r := s.call("GET", "/api/v1/jobs/"+id+"/explain?at="+due, nil).want(200)
		return strings.Contains(r.body, `"app_limit"`) && strings.Contains(r.body, reason)
	})
}

// TestKeptOutputLimit: the limit of kept output is a size, and every view of a run says if its
// output was removed.
func TestKeptOutputLimit(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const limits = "/api/v1/apps/default/limits"
	for body, want := range map[string]string{
		`{"output": "1KB"}`:      "write KiB",
		`{"output": "0"}`:        "at least one",
		`{"output": "much"}`:     "is not a size",
		`{"output": "2000TiB"}`:  "between 1B and 1024TiB",
		`{"output": -1}`:         "size such as",
		`{"kept_output": "1Ki"}`: "kept_output",
	} {
		if r := s.call("PUT", limits, body).want(422); !strings.Contains(r.body, want) {
			t.Errorf("%s: %s\nlacks %q", body, r.body, want)
		}
	}

	s.call("PUT", limits, `{"output": "2GiB"}`).want(200)
	id := s.create("loud", object{"command": "echo some text"}).text("id")
	s.exec("REPLACE INTO app_output (app_id, bytes) SELECT id, 4711 FROM app WHERE name = 'default'")
	for _, path := range []string{limits, "/api/v1/limits"} {
		r := s.call("GET", path, nil).want(200)
		if !strings.Contains(r.body, `"output":"2GiB"`) || !strings.Contains(r.body, `"output":4711`) {
			t.Errorf("%s: %s", path, r.body)
		}
	}

	if r := s.call("GET", "/api/v1/audit?kind=limits", nil).want(200); !strings.Contains(r.body, `"output":"2GiB"`) {
		t.Errorf("the audit says %s", r.body)
	}

	s.call("POST", "/api/v1/jobs/"+id+"/run", nil).want(202)
	run := s.ran(id, 1)[0]
	if run.text("output_removed") != "" {
		t.Errorf("before: %v", run)
	}

	s.exec("UPDATE run SET output_kept = 0")
	s.exec("DELETE FROM output")

	const said = "10 bytes were removed, because app default was at its limit of kept output"
	path := "/api/v1/runs/" + run.text("id")
	if run := s.call("GET", path, nil).want(200).object(); run.text("output_removed") != "true" ||
		!strings.Contains(run.text("output"), said) {
		t.Errorf("the run: %v", run)
	}

	for _, query := range []string{"/output", "/output?from=0"} {
		if r := s.call("GET", path+query, nil).want(200); !strings.Contains(r.body, said) {
			t.Errorf("%s: %s", query, r.body)
		}
	}

	if r := s.call("GET", path+"/output?from=10", nil).want(200); strings.Contains(r.body, said) {
		t.Errorf("it is said again to whoever follows: %s", r.body)
	}
	if r := s.call("GET", path+"/output?raw=1", nil).want(200); r.body != "" {
		t.Errorf("the raw output has words of ours in it: %q", r.body)
	}
}
