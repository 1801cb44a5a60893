package api_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/schedule/edit"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
	"go-crontab/test/faultproxy"
)

// broken is an editor whose changes end as a test asks.
type broken struct {
	err    error // of every method except those in fine
	fine   string
	during func(context.Context)

	mu    sync.Mutex
	calls []string
	ctx   error // of the last call, after during
}

func (b *broken) call(ctx context.Context, name string) error {
	if b.during != nil {
		b.during(ctx)
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls, b.ctx = append(b.calls, name), ctx.Err()
	if strings.Contains(b.fine, name) {
		return nil
	}
	return b.err
}

// done is the result of changing job 1, which exists.
func (b *broken) done(ctx context.Context, name string) (edit.Done, error) {
	return edit.Done{ID: 1}, b.call(ctx, name)
}

func (b *broken) Create(ctx context.Context, _ job.Spec, _ bool) (edit.Done, error) {
	return b.done(ctx, "Create")
}

func (b *broken) Update(ctx context.Context, _ int64, _ int32, _ job.Spec) (edit.Done, error) {
	return b.done(ctx, "Update")
}

func (b *broken) UpdateAnd(ctx context.Context, _ int64, _ int32, _ job.Spec, paused bool) (edit.Done, error) {
	return b.done(ctx, fmt.Sprint("UpdateAnd ", paused))
}

func (b *broken) Rollback(ctx context.Context, _ int64, _ int32, _ job.Spec, _ int32) (edit.Done, error) {
	return b.done(ctx, "Rollback")
}

func (b *broken) Pause(ctx context.Context, _ int64, _ job.PauseRequest) (edit.Done, error) {
	return b.done(ctx, "Pause")
}

func (b *broken) Resume(ctx context.Context, _ int64) (edit.Done, error) {
	return b.done(ctx, "Resume")
}
func (b *broken) Delete(ctx context.Context, _ int64) (edit.Done, error) {
	return b.done(ctx, "Delete")
}

func (b *broken) Bulk(ctx context.Context, _ *job.Bulk) error { return b.call(ctx, "Bulk") }

func (b *broken) Apply(ctx context.Context, _ job.Apply) (job.Applied, error) {
	return job.Applied{}, b.call(ctx, "Apply")
}

func (b *broken) RunWith(
	ctx context.Context, _ []int64, _ job.Micros, _ map[string]job.Value, _ string,
) (edit.Asked, error) {
	return edit.Asked{}, b.call(ctx, "RunNow")
}

func (b *broken) Rerun(ctx context.Context, _ []edit.Past, _ func(edit.Asked)) (edit.Asked, error) {
	return edit.Asked{}, b.call(ctx, "Rerun")
}

func (b *broken) Kill(ctx context.Context, _ job.Launch) error { return b.call(ctx, "Kill") }

func (b *broken) Backfill(ctx context.Context, _ int64, _ edit.Range, _ string) (trip.BackfillRow, error) {
	return trip.BackfillRow{}, b.call(ctx, "Backfill")
}

func (b *broken) CancelBackfill(ctx context.Context, _ int64) (trip.BackfillRow, error) {
	return trip.BackfillRow{}, b.call(ctx, "CancelBackfill")
}

func (b *broken) PauseApp(ctx context.Context, _ string, _ job.PauseRequest) (job.Pause, error) {
	return job.Pause{}, b.call(ctx, "PauseApp")
}

func (b *broken) ResumeApp(ctx context.Context, _ string) error { return b.call(ctx, "ResumeApp") }

func (b *broken) PutGroup(ctx context.Context, _ job.GroupSpec) (trip.Group, error) {
	return trip.Group{}, b.call(ctx, "PutGroup")
}

func (b *broken) DeleteGroup(ctx context.Context, _ string) error { return b.call(ctx, "DeleteGroup") }

func (b *broken) PutCalendar(ctx context.Context, _ job.CalendarSpec, _ int64) (bool, error) {
	return false, b.call(ctx, "PutCalendar")
}

func (b *broken) DeleteCalendar(ctx context.Context, _ string) error {
	return b.call(ctx, "DeleteCalendar")
}

func (b *broken) Cordon(ctx context.Context, _, _ string, _ bool) error { return b.call(ctx, "Cordon") }
func (b *broken) Uncordon(ctx context.Context, _ string) error          { return b.call(ctx, "Uncordon") }

func (b *broken) DisableHandler(ctx context.Context, _, _ string) error {
	return b.call(ctx, "DisableHandler")
}

func (b *broken) EnableHandler(ctx context.Context, _ string) error {
	return b.call(ctx, "EnableHandler")
}

func (b *broken) PutLimits(ctx context.Context, _ string, _ job.AppLimits) error {
	return b.call(ctx, "PutLimits")
}

func (b *broken) DeleteLimits(ctx context.Context, _ string) error {
	return b.call(ctx, "DeleteLimits")
}

func (b *broken) PutRetention(ctx context.Context, _ string, _ job.Retention) error {
	return b.call(ctx, "PutRetention")
}

// changes are one request for each kind of change of job 1, which exists and runs.
var changes = []struct{ method, path, body, look string }{
	{
		"POST", "/api/v1/jobs", `{"name": "ü/1", "command": "true", "schedule": "@daily"}`,
		"GET /api/v1/apps/default/jobs/%C3%BC%2F1 ",
	},
	{"PUT", "/api/v1/jobs/1", `{"name": "there", "command": "false", "schedule": "@daily"}`, "GET /api/v1/jobs/1 "},
	{"PATCH", "/api/v1/jobs/1", `{"command": "false"}`, "GET /api/v1/jobs/1 "},
	{"PATCH", "/api/v1/jobs/1", `{"paused": true}`, "GET /api/v1/jobs/1 "},
	{"PUT", "/api/v1/apps/default/jobs/there", `{"command": "false", "schedule": "@daily"}`, "GET /api/v1/jobs/1 "},
	{
		"PUT", "/api/v1/apps/default/jobs/new", `{"command": "false", "schedule": "@daily"}`,
		"GET /api/v1/apps/default/jobs/new ",
	},
	{"DELETE", "/api/v1/jobs/1", "", "GET /api/v1/jobs/1 "},
	{"POST", "/api/v1/jobs/1/pause", "", "GET /api/v1/jobs/1 "},
	{"POST", "/api/v1/jobs/1/resume", "", "GET /api/v1/jobs/1 "},
	{"POST", "/api/v1/apps/a/pause?absent=ok", `{"reason": "x"}`, "GET /api/v1/pauses "},
	{"POST", "/api/v1/apps/a/resume?absent=ok", "", "GET /api/v1/pauses "},
	{"POST", "/api/v1/cluster/pause", "", "GET /api/v1/pauses "},
	{"POST", "/api/v1/jobs/1/run", "", "GET /api/v1/runs?job_id=1 "},
	{"PUT", "/api/v1/calendars/c", `{"exclude_weekdays": ["sun"]}`, "GET /api/v1/calendars/c "},
	{"DELETE", "/api/v1/calendars/c", "", "GET /api/v1/calendars/c "},
	{"POST", "/api/v1/nodes/knoten-1/cordon", `{"reason": "x"}`, "GET /api/v1/nodes "},
	{"POST", "/api/v1/nodes/knoten-1/drain", "", "GET /api/v1/nodes "},
	{"POST", "/api/v1/nodes/knoten-1/uncordon", "", "GET /api/v1/nodes "},
	{"POST", "/api/v1/handlers/mail/disable", "", "GET /api/v1/handlers "},
	{"POST", "/api/v1/handlers/mail/enable", "", "GET /api/v1/handlers "},
	{"PUT", "/api/v1/cluster/retention", `{"age": "720h"}`, "GET /api/v1/retention "},
	{"PUT", "/api/v1/apps/a/retention", `{"runs": 7}`, "GET /api/v1/retention "},
	{"POST", "/api/v1/bulk/pause?app=default", "", "GET /api/v1/audit "},
	{"POST", "/api/v1/bulk/delete?name=there", "", "GET /api/v1/audit "},
	{
		"POST", "/api/v1/apply", `{"jobs": [{"name": "x", "command": "true", "schedule": "@daily"}]}`,
		"GET /api/v1/export ",
	},
}

// TestFailedChanges lets each kind of change fail in each possible way.
func TestFailedChanges(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", nil)
	editor := &broken{}
	s.madeUp = true
	s.cfg.Editor = func() api.Editor { return editor }
	s.serve()
	for name, tc := range map[string]struct {
		err     error
		status  int
		problem string
		logged  bool
	}{
		"unknown": {
			fmt.Errorf("x: %w", &sql.Unknown{Err: errors.New("SELECT secret: invalid connection")}), 503,
			"unknown-outcome", true,
		},
		"too slow":         {context.DeadlineExceeded, 503, "unavailable", true},
		"a bug":            {errors.New("SELECT secret FROM job: Error 1054"), 500, "internal", true},
		"gone meanwhile":   {fmt.Errorf("job 1: %w", sql.ErrNotFound), 404, "not-found", false},
		"changed for ever": {job.ErrChanged, 409, "changed", false},
		"name taken":       {fmt.Errorf("job a/secret: %w", sql.ErrExists), 409, "exists", false},
		"refused":          {job.Wrong("schedule", problem.Empty), 422, "invalid", false},
	} {
		for _, c := range changes {
			editor.err = tc.err
			if name == "gone meanwhile" && strings.Contains(c.path, "/apps/") ||
				name == "name taken" && strings.HasSuffix(c.path, "/new") {
				continue // tried again
			}

			r := s.call(c.method, c.path, c.body, "Content-Type", "application/json")
			o := r.object()
			if r.status != tc.status || o.text("type") != api.TypePrefix+tc.problem {
				t.Errorf("%s: %s %s: got %d %s, want %d %s", name, c.method, c.path, r.status, r.body, tc.status,
					tc.problem)
			}

			if strings.Contains(r.body, "secret") || strings.Contains(r.body, "Error 1054") {
				t.Errorf("%s: %s %s: the answer tells what is not for clients: %s", name, c.method, c.path, r.body)
			}

			if tc.problem == "unknown-outcome" && !strings.Contains(o.text("detail"), c.look) {
				t.Errorf("%s: %s %s: got %q, want it to say to look at %s", name, c.method, c.path, o.text("detail"),
					c.look)
			}

			if (r.header.Get("Retry-After") != "") != (tc.status == 503) {
				t.Errorf("%s: got %d with Retry-After %q", name, tc.status, r.header.Get("Retry-After"))
			}
			if tc.logged && !s.logs.has("level=WARN msg=\"request not served\" request="+o.text("request_id")) {
				t.Errorf("%s: the log says nothing of request %s", name, o.text("request_id"))
			}
		}
	}
}

// TestChangeOfDefinitionAndPause: both are one change; an unchanged definition is not written.
func TestChangeOfDefinitionAndPause(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", nil)
	s.create("paused", object{"paused": true})
	editor := &broken{}
	s.madeUp = true
	s.cfg.Editor = func() api.Editor { return editor }
	s.serve()
	for _, c := range []struct{ path, body, want string }{
		{"/api/v1/jobs/1", `{"paused": true, "command": "false"}`, "[UpdateAnd true]"},
		{"/api/v1/jobs/1", `{"paused": false, "command": "false"}`, "[UpdateAnd false]"},
		{"/api/v1/jobs/1", `{"command": "false"}`, "[Update]"},
		{"/api/v1/jobs/1", `{"command": "true"}`, "[]"},
		{"/api/v1/jobs/1", `{"paused": true}`, "[Pause]"},
		{"/api/v1/jobs/1", `{"paused": false}`, "[]"},
		{"/api/v1/jobs/2", `{"paused": true}`, "[Pause]"}, // it waits until the earlier pause is complete
		{"/api/v1/jobs/2", `{"paused": false}`, "[Resume]"},
	} {
		editor.calls = nil
		s.call("PATCH", c.path, c.body).want(200)
		if got := fmt.Sprint(editor.calls); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.path, c.body, got, c.want)
		}
	}
}

// TestUnshownChanges: a committed change that cannot be shown does not look like a failed one.
func TestUnshownChanges(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("hourly", object{"schedule": "0 * * * *"})
	proxy := faultproxy.Before(t, s.dsn)
	reads, err := sql.Open(proxy.DSN(s.dsn), sql.DefaultTimeouts, 4)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { reads.Close() })
	s.cfg.DB = &read.DB{DB: reads}
	s.serve()
	cut := func(statement string) *faultproxy.Injected {
		return proxy.Add(faultproxy.Rule{Match: faultproxy.SQL(statement), Times: -1, Action: faultproxy.CutBefore()})
	}
	const count = "FROM notable n FORCE INDEX"

	rule := cut(count)
	now := s.node.Now()
	body := object{
		"from": now.Add(-30 * time.Hour).Format(time.RFC3339), "to": now.Add(-20 * time.Hour).Format(time.RFC3339),
	}
	first := s.call("POST", "/api/v1/jobs/1/backfill", body, "Idempotency-Key", "k").want(202).object()
	if rule.Fired() == 0 || first.text("state") != "running" || first.text("total") != "10" {
		t.Errorf("got %v; want the backfill, not counted", first)
	}

	if list := s.call("GET", "/api/v1/backfills", nil).want(200).object().items("items"); len(list) != 1 ||
		list[0].text("id") != first.text("id") {
		t.Errorf("got %v; want the backfill, not counted", list)
	}

	s.call("GET", "/api/v1/backfills/"+first.text("id"), nil).want(503)
	unknown := func(method, path string, body any, look string) {
		t.Helper()
		r := s.call(method, path, body).want(503)
		if !strings.Contains(r.body, "unknown-outcome") || strings.Contains(r.body, "nothing was changed") ||
			!strings.Contains(r.body, look) {
			t.Errorf("%s %s: got %s, want it to say to look at %s", method, path, r.body, look)
		}
	}

	unknown("POST", "/api/v1/backfills/"+first.text("id")+"/cancel", nil, "GET /api/v1/backfills/"+first.text("id"))
	rule.Remove()
	again := s.call("POST", "/api/v1/jobs/1/backfill", body, "Idempotency-Key", "k").want(202).object()
	if list := s.call("GET", "/api/v1/backfills", nil).want(200).object().items("items"); len(list) != 1 ||
		again.text("id") != first.text("id") || again.text("state") != "cancelled" {
		t.Errorf("got %v and then %v, want the same backfill, cancelled", first, again)
	}

	rule = cut("FROM grp g")
	unknown("PUT", "/api/v1/groups/g", object{"slots": 3}, "GET the group")
	rule.Remove()
	if g := s.call("GET", "/api/v1/groups/g", nil).want(200).object(); g.text("slots") != "3" {
		t.Errorf("got %v", g)
	}

	s.call("POST", "/api/v1/apps/a/pause?absent=ok", nil).want(200)
	rule = cut("FROM stop")
	unknown("POST", "/api/v1/apps/a/resume?absent=ok", nil, "GET /api/v1/pauses")
	rule.Remove()
	if list := s.call("GET", "/api/v1/pauses", nil).want(200).object().items("items"); len(list) != 0 {
		t.Errorf("got %v, want no pause", list)
	}
}

// TestClientHangsUp: a change continues when its client disconnects.
func TestClientHangsUp(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", nil)
	entered, left := make(chan bool), make(chan bool)
	editor := &broken{during: func(ctx context.Context) {
		entered <- true
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
		close(left)
	}}

	s.cfg.Editor = func() api.Editor { return editor }
	s.serve()
	ctx, hangUp := context.WithCancel(context.Background())
	go func() { <-entered; hangUp() }()
	s.hang(ctx, "POST", "/api/v1/jobs/1/pause")
	<-left
	await(t, "the change ends", 5*time.Second, func() bool {
		editor.mu.Lock()
		defer editor.mu.Unlock()
		return len(editor.calls) == 1
	})

	if editor.ctx != nil {
		t.Errorf("the change was interrupted: %v", editor.ctx)
	}
}

func TestNoSession(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", nil)
	s.cfg.Editor = func() api.Editor { return nil }
	s.serve()
	before := s.counts()
	for _, c := range changes {
		r := s.call(c.method, c.path, c.body, "Content-Type", "application/json")
		if r.status != 503 || !strings.Contains(r.body, api.TypePrefix+"no-session") ||
			r.header.Get("Retry-After") == "" {
			t.Errorf("%s %s: got %d %s %v, want 503 no-session", c.method, c.path, r.status, r.body, r.header)
		}
	}

	if after := s.counts(); after != before {
		t.Errorf("%s became %s", before, after)
	}

	s.call("GET", "/api/v1/jobs/1", nil).want(200)
	s.cfg.Now = func() time.Time { return time.Time{} }
	s.serve()
	for _, path := range []string{"/api/v1/jobs/1/next", "/api/v1/cluster"} {
		s.call("GET", path, nil).want(503)
	}

	s.call("GET", "/api/v1/jobs/1/next?from=2030-01-01T00:00:00Z", nil).want(200)
	s.call("POST", "/api/v1/jobs", `{"name": "x", "command": "true", "every": "1h"}`).want(503)
}

// TestNoDatabase sends requests to a server without its database.
func TestNoDatabase(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("user:secret@tcp(127.0.0.1:1)/x", sql.DefaultTimeouts, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	s := &site{t: t, logs: &logs{t: t}, token: wellFormed}
	s.cfg = api.Config{
		DB: &read.DB{DB: db}, Now: time.Now, Editor: func() api.Editor { return &broken{err: errors.New("x")} },
		Ready: func() error { return errors.New("no session") },
		Log:   slog.New(slog.NewTextHandler(s.logs, nil)),
	}

	s.serve()
	for _, path := range []string{
		"/api/v1/jobs", "/api/v1/jobs/1", "/api/v1/apps/a/jobs/b", "/api/v1/jobs/1/history", "/api/v1/jobs/1/next",
		"/api/v1/runs", "/api/v1/cluster",
		"/api/v1/runs/1", "/api/v1/runs/1/output",
	} {
		r := s.call("GET", path, nil).want(503)
		id := r.object().text("request_id")
		if !strings.Contains(r.body, api.TypePrefix+"unavailable") || strings.Contains(r.body, "127.0.0.1:1") ||
			r.header.Get("Retry-After") == "" {
			t.Errorf("%s: got %s", path, r.body)
		}
		if !s.logs.has(id) || !s.logs.has("connection refused") || s.logs.has("secret") {
			t.Errorf("%s: the log does not say why, or more than it may", path)
		}
	}

	s.call("GET", "/healthz", nil).want(200)
	s.call("GET", "/readyz", nil).want(503)
	s.call("GET", "/", nil).want(200)
	s.call("POST", "/api/v1/preview", `{"schedule": "@daily"}`).want(503) // the caller cannot be identified
	s.as("").call("GET", "/api/v1/jobs", nil).want(401)
}

// TestDatabaseErrorsAreHidden drops the tables under a server: clients must not see MySQL's messages.
func TestDatabaseErrorsAreHidden(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", nil)
	s.stopNode()
	s.reopen()
	if _, err := s.db.Raw().Exec("RENAME TABLE job TO job_gone, run TO run_gone"); err != nil {
		t.Fatal(err)
	}

	for _, path := range []string{"/api/v1/jobs", "/api/v1/jobs/1", "/api/v1/runs"} {
		r := s.call("GET", path, nil).want(500)
		if strings.Contains(r.body, "job_gone") || strings.Contains(r.body, "1146") ||
			strings.Contains(r.body, "doesn't exist") {
			t.Errorf("%s: got %s", path, r.body)
		}
		if !s.logs.has(r.object().text("request_id")) {
			t.Errorf("%s: the log does not know the request", path)
		}
	}
}

// hang sends a request and gives up when ctx ends.
func (s *site) hang(ctx context.Context, method, path string) {
	req := httptest.NewRequestWithContext(ctx, method, s.url+path, nil)
	req.RequestURI = ""
	req.Header.Set("Authorization", "Bearer "+s.token)
	if resp, err := s.http.Do(req); err == nil {
		resp.Body.Close()
	}
}
