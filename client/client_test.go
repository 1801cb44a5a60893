package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/client"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/test/testdb"
)

// connect runs a node with its API until the end of the test, and returns a client.
func connect(t *testing.T) *client.Client {
	t.Helper()

	dsn := testdb.DSN(t)
	if err := node.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}

	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	n, err := node.New(node.Config{DSN: dsn, Name: "one", Expiry: 5 * time.Second, Log: log})
	if err != nil {
		t.Fatal(err)
	}

	n.Handle("greet", func(_ context.Context, a node.Attempt) error {
		fmt.Fprintf(a.Out, "hello %s\n", a.Payload)
		return nil
	})

	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := n.Run(ctx); err != nil {
			t.Errorf("node: %v", err)
		}
	}()
	t.Cleanup(func() { stop(); <-done })

	if err := n.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}

	serving := api.New(api.Config{
		DB: n.Reads(), Now: n.Now, Ready: n.Ready, Node: "one", Log: log,
		Editor: api.EditorOf(n.Editor),
	})

	server := httptest.NewServer(serving)
	t.Cleanup(server.Close)
	t.Cleanup(serving.Close)

	token, err := auth.Issuer{DB: n.Reads().DB}.Bootstrap(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}

	c, err := client.New(server.URL+"/", client.WithToken(token))
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// TestFigures calls the methods for figures, backfills and reruns.
func TestFigures(t *testing.T) {
	t.Parallel()

	c, ctx := connect(t), t.Context()
	j, err := c.Create(ctx, job.Spec{App: "ops", Name: "hourly", Schedule: "0 * * * *", Timezone: "UTC", Command: "false"})
	if err != nil {
		t.Fatal(err)
	}

	hour := time.Now().UTC().Truncate(time.Hour)
	last := hour.Add(-2 * time.Hour)
	b, err := c.StartBackfill(ctx, j.ID, client.BackfillRange{From: hour.Add(-3 * time.Hour), To: &last, Parallel: 2}, "k")
	if err != nil || b.Total != 2 || b.App != "ops" || b.Job != "hourly" {
		t.Fatalf("start a backfill: got %+v, %v", b, err)
	}
	for b.State != "done" {
		time.Sleep(50 * time.Millisecond)
		if b, err = c.GetBackfill(ctx, b.ID); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := c.CancelBackfill(ctx, b.ID); err != nil || again.State != "done" {
		t.Errorf("cancel it when it is done: got %+v, %v", again, err)
	}

	listed, failed := 0, 0
	for found, err := range c.Backfills(ctx, j.ID) {
		if err != nil || found.ID != b.ID {
			t.Errorf("list backfills: got %+v, %v", found, err)
		}
		listed++
	}
	for due, err := range c.BackfillDues(ctx, b.ID, "failed") {
		if err != nil || due.State != "failed" {
			t.Errorf("list its due times: got %+v, %v", due, err)
		}
		failed++
	}
	if listed != 1 || failed != 2 {
		t.Errorf("got %d backfills and %d failed due times, want 1 and 2", listed, failed)
	}

	stats, err := c.JobStats(ctx, client.StatsFilter{App: "ops", Window: 12 * time.Hour, Limit: 5})
	if err != nil || stats.Totals.Failed != 2 || len(stats.Items) != 1 || stats.Items[0].Job != "hourly" {
		t.Errorf("figures of jobs: got %+v, %v", stats, err)
	}
	if counts, err := c.Counts(ctx); err != nil || counts.Ready != 1 {
		t.Errorf("counts: got %+v, %v", counts, err)
	}
	slots, err := c.Slots(ctx, client.SlotsFilter{From: hour.Add(-4 * time.Hour), To: hour, JobID: j.ID, Most: 100})
	if err != nil || len(slots.Items) != 1 || slots.Items[0].JobID != j.ID {
		t.Errorf("slots: got %+v, %v", slots, err)
	}

	filter := client.RerunFilter{From: hour.Add(-4 * time.Hour), App: "ops", Outcome: "failed"}
	if would, err := c.TryRerun(ctx, filter); err != nil || !would.DryRun || would.Started != 2 {
		t.Errorf("a rerun would: got %+v, %v", would, err)
	}
	first, err := c.Rerun(ctx, filter, "k2")
	if err != nil || first.Started != 2 || first.Request == "" {
		t.Errorf("rerun: got %+v, %v", first, err)
	}
	if again, err := c.Rerun(ctx, filter, "k2"); err != nil || again.Request != first.Request {
		t.Errorf("rerun with the same key: got %+v, %v", again, err)
	}
}

// TestJobs calls all methods for jobs.
func TestJobs(t *testing.T) {
	t.Parallel()

	c, ctx := connect(t), t.Context()
	spec := job.Spec{App: "ops", Name: "a/b ü", Schedule: "0 3 * * *", Timezone: "Europe/Berlin", Command: "echo <&>",
		Owner: "ann", Labels: map[string]string{"team": "data"},
		Timeout: job.Duration(time.Minute), Retry: job.Retry{Attempts: 3, On: []job.Outcome{job.Failed}},
		Misfire: job.Misfire{Policy: job.MisfireSkip}}

	j, err := c.Create(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	if j.ID == "" || j.App != "ops" || j.Name != spec.Name || j.Command != spec.Command || j.Timeout != spec.Timeout ||
		j.Retry.On[0] != job.Failed || j.Status != "active" || j.NextDue == nil || j.Created.IsZero() {
		t.Errorf("got %+v", j)
	}
	if _, err := c.Create(ctx, spec); !client.IsExists(err) || client.IsNotFound(err) {
		t.Errorf("the same again: got %v", err)
	}

	var p *client.Problem
	if _, err := c.Create(ctx, job.Spec{Name: "x", Schedule: "61 * * * *", Command: "true"}); !errors.As(err, &p) ||
		p.Status != 422 || len(p.Errors) != 1 || p.Errors[0].Field != "schedule" || p.RequestID == "" {
		t.Errorf("a bad schedule: got %#v", err)
	}

	again, err := c.Put(ctx, spec)
	if err != nil || again.ID != j.ID || again.Version != j.Version {
		t.Errorf("put the same: got %+v, %v", again, err)
	}

	spec.Command = "echo again"
	if again, err = c.Put(ctx, spec); err != nil || again.Version != j.Version+1 || again.Command != "echo again" {
		t.Errorf("put another: got %+v, %v", again, err)
	}

	// A job as read can be sent back.
	if again, err = c.Update(ctx, j.ID, again.Spec); err != nil || again.Version != j.Version+1 {
		t.Errorf("update by what was read: got %+v, %v", again, err)
	}
	if again, err = c.Patch(ctx, j.ID, map[string]any{"owner": nil, "selector": "zone=a"}); err != nil ||
		again.Owner != "" || again.Selector != "zone=a" || len(again.Warnings) == 0 {
		t.Errorf("patch: got %+v, %v", again, err)
	}
	if found, err := c.Named(ctx, "ops", spec.Name); err != nil || found.ID != j.ID {
		t.Errorf("by its name: got %+v, %v", found, err)
	}

	if paused, err := c.Pause(ctx, j.ID, "disk"); err != nil || !paused.Paused || paused.NextDue != nil {
		t.Errorf("pause: got %+v, %v", paused, err)
	}
	if resumed, err := c.Resume(ctx, j.ID); err != nil || resumed.Paused {
		t.Errorf("resume: got %+v, %v", resumed, err)
	}
	if next, err := c.Next(ctx, j.ID, 3); err != nil || len(next) != 3 || next[0].Due.Hour() != 3 {
		t.Errorf("next: got %+v, %v", next, err)
	}

	for i := range 3 {
		if _, err := c.Create(ctx, job.Spec{
			Name: fmt.Sprint("more ", i, "."), Every: job.Duration(time.Hour), Command: "true", Owner: "bob",
		}); err != nil {
			t.Fatal(err)
		}
	}

	for f, want := range map[client.JobFilter]int{
		{}: 4, {Owner: "bob"}: 3, {Label: "team=data"}: 1, {App: "none"}: 0, {Status: "paused"}: 0,
	} {
		n := 0
		for _, err := range c.List(ctx, f) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != want {
			t.Errorf("%+v: got %d jobs, want %d", f, n, want)
		}
	}

	for range c.List(ctx, client.JobFilter{}) {
		break // stop early
	}

	for _, err := range c.List(ctx, client.JobFilter{Status: "odd"}) {
		if err == nil {
			t.Error("an odd state: got no error")
		}
	}

	if err := c.Delete(ctx, j.ID); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(ctx, j.ID); !client.IsNotFound(err) {
		t.Errorf("a deleted job: got %v", err)
	}
}

// TestRuns starts jobs, waits for them, reads what they wrote, and kills one.
func TestRuns(t *testing.T) {
	t.Parallel()

	c, ctx := connect(t), t.Context()
	j, err := c.Create(ctx, job.Spec{
		Name: "by hand", Schedule: "0 0 1 1 *", Command: "echo one; sleep 0.7; echo two; exit 3",
	})
	if err != nil {
		t.Fatal(err)
	}

	asked, err := c.Run(ctx, j.ID, "key")
	if err != nil {
		t.Fatal(err)
	}

	if same, err := c.Run(ctx, j.ID, "key"); err != nil || same.Request != asked.Request {
		t.Errorf("the same key: got %+v, %v", same, err)
	}

	run, err := c.Wait(ctx, asked)
	if err != nil || run.Outcome != job.Failed || run.Succeeded() || run.ExitCode == nil || *run.ExitCode != 3 ||
		run.Node != "one" || run.Request != asked.Request || run.Ended == nil {
		t.Fatalf("got %+v, %v", run, err)
	}

	if out, err := c.Output(ctx, run.ID); err != nil || string(out) != "one\ntwo\n" {
		t.Errorf("output: got %q, %v", out, err)
	}

	greet, err := c.Create(ctx, job.Spec{Name: "greet", Schedule: "0 0 1 1 *", Handler: "greet", Payload: "wörld"})
	if err != nil {
		t.Fatal(err)
	}

	if run, err = c.RunAndWait(ctx, greet.ID); err != nil || !run.Succeeded() {
		t.Fatalf("got %+v, %v", run, err)
	}

	var out bytes.Buffer
	if err := c.Follow(ctx, run.ID, &out); err != nil || out.String() != "hello wörld\n" {
		t.Errorf("follow: got %q, %v", out.String(), err)
	}

	long, err := c.Create(ctx, job.Spec{Name: "long", Schedule: "0 0 1 1 *", Command: "echo begun; sleep 60"})
	if err != nil {
		t.Fatal(err)
	}

	if asked, err = c.Run(ctx, long.ID, ""); err != nil {
		t.Fatal(err)
	}

	var running *client.Run
	for end := time.Now().Add(10 * time.Second); running == nil && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for r, err := range c.Runs(ctx, client.RunFilter{JobID: long.ID, State: "running"}) {
			if err != nil {
				t.Fatal(err)
			}
			running = r
		}
	}

	if running == nil {
		t.Fatal("it does not run")
	}

	followed := make(chan string)
	go func() {
		var out bytes.Buffer
		err := c.Follow(ctx, running.ID, &out)
		followed <- fmt.Sprint(out.String(), err)
	}()

	if _, err := c.Kill(ctx, running.ID); err != nil {
		t.Fatal(err)
	}
	if run, err = c.Wait(ctx, asked); err != nil || run.Outcome != job.Killed || run.ID != running.ID {
		t.Errorf("got %+v, %v", run, err)
	}
	if got := <-followed; !strings.HasSuffix(got, "<nil>") {
		t.Errorf("followed: got %q", got)
	}

	soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()

	if _, err := c.Wait(soon, &client.Requested{JobID: long.ID, Due: time.Now(), Request: "0"}); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("who waits for what never comes: got %v", err)
	}
}

// TestNodesAndHandlers cordons the only node, and disables a handler.
func TestNodesAndHandlers(t *testing.T) {
	t.Parallel()

	c, ctx := connect(t), t.Context()
	nodes, err := c.Nodes(ctx)
	if err != nil || len(nodes) != 1 || nodes[0].State != "ready" || nodes[0].Labels["node"] != "one" ||
		!slices.Equal(nodes[0].Handlers, []string{"greet"}) {
		t.Errorf("got %+v, %v", nodes, err)
	}

	if n, err := c.Cordon(ctx, "one", "disk"); err != nil || n.State != "cordoned" || n.Reason != "disk" ||
		n.Since == nil {
		t.Errorf("cordon: got %+v, %v", n, err)
	}
	if n, err := c.Drain(ctx, "one", ""); err != nil || !n.Drained {
		t.Errorf("drain: got %+v, %v", n, err)
	}
	if n, err := c.Uncordon(ctx, "one"); err != nil || n.Cordoned {
		t.Errorf("uncordon: got %+v, %v", n, err)
	}

	if h, err := c.DisableHandler(ctx, "greet", "bug"); err != nil || !h.Disabled || h.Key != "greet" {
		t.Errorf("disable: got %+v, %v", h, err)
	}
	if all, err := c.Handlers(ctx); err != nil || len(all) != 1 || all[0].Reason != "bug" {
		t.Errorf("got %+v, %v", all, err)
	}
	if h, err := c.EnableHandler(ctx, "greet"); err != nil || h.Disabled {
		t.Errorf("enable: got %+v, %v", h, err)
	}
}

// TestOddServers: the error describes any invalid response.
func TestOddServers(t *testing.T) {
	t.Parallel()

	answer := func(status int, body string) *client.Client {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				t.Errorf("the token was not sent: %q", r.Header.Get("Authorization"))
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(server.Close)

		c, err := client.New(server.URL, client.WithToken("secret"), client.WithHTTP(server.Client()))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}

	const problem = `{"type":"urn:go-crontab:problem:%s","title":"T","status":7,"detail":"D","future":[1]}`
	for name, tc := range map[string]struct {
		status        int
		body, want    string
		away, unknown bool
	}{
		"not a go-crontab":   {502, "<html>", "502 Bad Gateway, not that of a go-crontab", false, false},
		"an answer in pages": {200, "<html>", "cannot read the response", false, false},
		"a node that starts": {503, fmt.Sprintf(problem, "no-session"), "T: D", true, false},
		"an unknown outcome": {503, fmt.Sprintf(problem, "unknown-outcome"), "T: D", false, true},
		"something else":     {409, fmt.Sprintf(problem, "changed"), "T: D", false, false},
	} {
		_, err := answer(tc.status, tc.body).Get(t.Context(), "1")
		if err == nil || !strings.Contains(err.Error(), tc.want) || client.IsAway(err) != tc.away ||
			client.IsUnknown(err) != tc.unknown {
			t.Errorf("%s: got %v, away %t, unknown %t", name, err, client.IsAway(err), client.IsUnknown(err))
		}
	}

	for _, server := range []string{"", "127.0.0.1:8610", "ftp://x", "http://", "://"} {
		if _, err := client.New(server); err == nil {
			t.Errorf("server %q: got no error", server)
		}
	}
}

// TestRedirectIsNoAnswer: a redirected change is an error.
func TestRedirectIsNoAnswer(t *testing.T) {
	t.Parallel()

	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, "{}")
			return
		}
		http.Redirect(w, r, "/there", http.StatusMovedPermanently)
	}))
	defer s.Close()

	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}

	if err := c.Delete(t.Context(), "7"); err == nil || !strings.Contains(err.Error(), "301") {
		t.Errorf("got %v", err)
	}
}

// TestDo sends requests for which there is no method.
func TestDo(t *testing.T) {
	t.Parallel()

	asked := 0
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"type":"urn:go-crontab:problem:too-many-requests","title":"slower"}`)
			return
		}

		body, _ := io.ReadAll(r.Body)
		got = fmt.Sprintln(r.Method, r.URL, r.Header.Get("Content-Type"), r.Header.Get("Idempotency-Key"),
			r.Header.Get("If-Match"), string(body))
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusPreconditionFailed)
			fmt.Fprint(w, `{"type":"urn:go-crontab:problem:stale","title":"stale","version":4,"request_id":"r7",
				"errors":[{"field":"a","message":"m","code":"c","values":["v"]}]}`)
			return
		}
		w.Header().Set("Output-Next", "3")
		fmt.Fprint(w, "abc")
	}))
	defer s.Close()

	c, err := client.New(s.URL, client.WithTimeout(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}

	answer, header, err := c.Do(t.Context(), client.Request{
		Method: http.MethodPost, Path: "/p", Query: url.Values{"q": {"1"}}, Key: "once",
		Body: client.Document{Media: "text/csv", Data: []byte("x,y")},
	})
	if err != nil || string(answer) != "abc" || header.Get("Output-Next") != "3" || asked != 2 ||
		got != "POST /p?q=1 text/csv once  x,y\n" {
		t.Errorf("got %q, %v after %d requests: %s", answer, err, asked, got)
	}

	var p *client.Problem
	_, _, err = c.Do(t.Context(), client.Request{Method: http.MethodPut, Path: "/p", Match: `"3"`, Body: "b"})
	if !errors.As(err, &p) || !p.IsType("stale") || p.Version != 4 || p.RequestID != "r7" || p.Foreign != "" ||
		len(p.Errors) != 1 || p.Errors[0].Code != "c" || got != "PUT /p application/json  \"3\" \"b\"\n" {
		t.Errorf("got %#v: %s", err, got)
	}
}
