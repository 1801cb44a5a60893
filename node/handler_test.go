package node_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/node"
)

// embedded starts a node with handlers, which register adds.
func (c *cluster) embedded(name string, register func(*node.Node), mod func(*node.Config)) *member {
	c.t.Helper()
	cfg := node.Config{DSN: c.dsn, Name: name, Expiry: c.expiry, Log: logger(c.t, name), SpoolDir: c.t.TempDir()}
	if mod != nil {
		mod(&cfg)
	}

	n, err := node.New(cfg)
	if err != nil {
		c.t.Fatal(err)
	}

	register(n)
	ctx, stop := context.WithCancel(context.Background())
	m := &member{n, c.t, stop, stop, make(chan error, 1)}
	go func() { m.done <- n.Run(ctx) }()
	c.t.Cleanup(m.drain)
	m.await("ready", 10*time.Second, func() bool { return n.Status().Ready })
	return m
}

// TestHandlers runs jobs of Go functions on the nodes that have them, and on no other.
func TestHandlers(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	type invoice struct{ Customer string }
	var seen atomic.Pointer[string]
	c.embedded("one", func(n *node.Node) {
		n.Handle("invoice", node.JSON(func(_ context.Context, in invoice, a node.Attempt) error {
			if said := fmt.Sprint(in.Customer, " ", a.Job, " ", a.App, " ", a.Attempt, " ",
				a.Due.UnixMicro()); a.Job == "good" {
				seen.Store(&said)
			}
			return nil
		}))

		n.Handle("mail/panics", func(context.Context, node.Attempt) error { panic("the mail is full") })
		n.Handle("fails", func(context.Context, node.Attempt) error { return errors.New("no luck") })
		n.Handle("slow", func(ctx context.Context, _ node.Attempt) error { <-ctx.Done(); return context.Cause(ctx) })
	}, nil)

	two := c.start("two", nil) // without handlers
	jobs := two.Jobs()
	past := two.Now().Add(-30 * time.Minute)
	add := func(name, handler, payload string, mod func(*job.Spec)) job.Job {
		// overdue: it fires at once
		spec := job.Spec{Name: name, Handler: handler, Payload: payload, At: &past}
		if mod != nil {
			mod(&spec)
		}
		j, err := jobs.Create(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}

	asked := time.Now()
	good := add("good", "invoice", `{"Customer":"ann"}`, nil)
	for what, c := range map[string]struct {
		job     job.Job
		outcome job.Outcome
		reason  string
		output  string
	}{
		"a payload":  {good, job.Succeeded, "", ""},
		"no payload": {add("empty", "invoice", "", nil), job.Succeeded, "", ""},
		"a payload of no use": {
			add("bad", "invoice", "{", nil), job.Failed, "payload: unexpected end of JSON input", "",
		},
		"a panic":  {add("panics", "mail/panics", "", nil), job.Failed, "panic: the mail is full", "handler_test.go"},
		"an error": {add("fails", "fails", "", nil), job.Failed, "no luck", ""},
		"a timeout": {
			add("slow", "slow", "", func(s *job.Spec) { s.Timeout = job.Duration(100 * time.Millisecond) }),
			job.TimedOut, "the handler ran longer than its timeout of 100ms", "",
		},
	} {
		run := lastRun(t, two.Node, c.job.ID)
		if run.Outcome != c.outcome || !strings.Contains(run.Reason.Text, c.reason) || run.Node != "one" ||
			!strings.Contains(string(run.Output.Head), c.output) {
			t.Errorf("%s: got %+v with output %q", what, run, run.Output.Head)
		}
	}

	t.Logf("all ended after %s", time.Since(asked).Round(time.Millisecond))
	if r := lastRun(t, two.Node, good.ID); r.Lateness > int64(5*time.Second/time.Microsecond)+30*60*1e6 ||
		r.Due != job.MicrosOf(past) {
		t.Errorf("the overdue instant: got %+v", r)
	}

	if said, want := *seen.Load(), fmt.Sprint("ann good default 1 ", past.UnixMicro()); said != want {
		t.Errorf("the handler was told %q, want %q", said, want)
	}
	if n := c.count(`
		SELECT COUNT(*)
		FROM run r
		JOIN life l ON l.id = r.session
		WHERE r.state = 'ended' AND l.node <> 'one'`); n != 0 {
		t.Errorf("%d runs on the node that has no handler", n)
	}
}

// lastRun waits for the last run of a job.
func lastRun(t *testing.T, n *node.Node, id int64) job.Run {
	t.Helper()
	var out job.Run
	await(t, "the run of job "+fmt.Sprint(id), 10*time.Second, func() bool {
		runs, err := n.Jobs().History(t.Context(), id, 1)
		if err != nil || len(runs) == 0 || !runs[0].Final {
			return false
		}
		full, err := n.Reads().Run(t.Context(), runs[0].Launch.Run)
		out = full.Run
		return err == nil
	})

	return out
}

// TestAnUnknownHandler: jobs wait, visibly, for a handler that no node has, and also while its node
// is gone.
func TestAnUnknownHandler(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	one := c.start("one", nil)
	j, err := one.Jobs().Create(t.Context(),
		job.Spec{
			Name: "lonely", Handler: "nobody.has-it", Every: job.Duration(time.Second),
			Misfire: job.Misfire{Policy: job.MisfireSkip, After: job.Duration(3 * time.Second)},
		})
	if err != nil {
		t.Fatal(err)
	}

	one.await("it waits, and is missed", 15*time.Second, func() bool {
		waits, err := c.db.Untaken(t.Context(), []int64{j.ID}, job.MicrosOf(one.Now()), 9)
		return err == nil && len(waits) > 0 && len(c.history(j.ID)) > 1
	})

	for _, r := range c.history(j.ID) {
		if r.Outcome != job.Missed || r.Reason.Text != "no node matches handler/nobody.has-it" {
			t.Errorf("got %+v", r.Run)
		}
	}

	c.embedded("late", func(n *node.Node) {
		n.Handle("nobody.has-it", func(context.Context, node.Attempt) error { return nil })
	}, nil)
	one.await("it runs", 10*time.Second, func() bool {
		return c.count(`
			SELECT COUNT(*)
			FROM run r
			JOIN life l ON l.id = r.session
			WHERE r.job_id = ? AND r.outcome = 'succeeded' AND l.node = 'late'`, j.ID) > 0
	})
}

// TestDisabledHandler: while a handler is disabled its jobs start nowhere, and their due times show
// the reason.
func TestDisabledHandler(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var calls, others atomic.Int64
	register := func(n *node.Node) {
		n.Handle("busy", func(context.Context, node.Attempt) error { calls.Add(1); return nil })
		n.Handle("other", func(context.Context, node.Attempt) error { others.Add(1); return nil })
	}

	one, two := c.embedded("one", register, nil), c.embedded("two", register, nil)
	var busy []job.Job
	for i := range 5 {
		j, err := one.Jobs().Create(t.Context(), job.Spec{
			Name: fmt.Sprint("busy ", i, "."), Handler: "busy", Every: job.Duration(100 * time.Millisecond),
		})
		if err != nil {
			t.Fatal(err)
		}
		busy = append(busy, j)
	}

	if _, err := one.Jobs().Create(t.Context(),
		job.Spec{Name: "other", Handler: "other", Every: job.Duration(200 * time.Millisecond)}); err != nil {
		t.Fatal(err)
	}

	for i := range 3 {
		one.await("it is called", 10*time.Second, func() bool {
			before := calls.Load()
			time.Sleep(300 * time.Millisecond)
			return calls.Load() > before
		})

		ctx := job.WithActor(t.Context(), job.Actor{Who: "ann"})
		if err := two.Jobs().DisableHandler(ctx, "busy", fmt.Sprint("bug ", i)); err != nil {
			t.Fatal(err)
		}

		before, beforeOthers := calls.Load(), others.Load()
		time.Sleep(time.Second)
		if after := calls.Load(); after != before {
			t.Errorf("%d calls after the disabling was answered", after-before)
		}

		one.await("another handler is called", 15*time.Second, func() bool { return others.Load() > beforeOthers })
		if err := one.Jobs().EnableHandler(t.Context(), "busy"); err != nil {
			t.Fatal(err)
		}
	}

	until := one.Now()
	c.settled(10*time.Second, until)
	reasons := map[string]int{}
	for _, j := range busy {
		for _, r := range c.history(j.ID) {
			if r.Outcome == job.Skipped {
				reasons[r.Reason.Text]++
			} else if r.Outcome != job.Succeeded {
				t.Errorf("got %+v", r.Run)
			}
		}
	}

	for i := range 3 {
		if why := fmt.Sprint("handler busy is disabled by ann: bug ", i); reasons[why] < 10 {
			t.Errorf("%d runs say %q; all: %v", reasons[why], why, reasons)
		}
	}

	if n := c.count(`
		SELECT COUNT(*)
		FROM audit
		WHERE kind = 'handler' AND name = 'busy' AND who IN ('ann', 'one')`); n != 6 {
		t.Errorf("%d lines in the audit, want 6", n)
	}
}

// TestHandlersOnly: a node with HandlersOnly takes no other jobs, and those are not late because of
// it.
func TestHandlersOnly(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.embedded("web", func(n *node.Node) {
		n.Handle("page", func(context.Context, node.Attempt) error { return nil })
	}, func(cfg *node.Config) { cfg.HandlersOnly = true })
	worker := c.start("worker", nil)
	var commands []job.Job
	for i := range 8 {
		commands = append(commands, worker.create(job.Spec{
			Name: fmt.Sprint("command ", i, "."), Every: job.Duration(time.Second), Overlap: job.OverlapAllow,
		}))
	}

	page, err := worker.Jobs().Create(t.Context(), job.Spec{
		Name: "page", Handler: "page", Every: job.Duration(time.Second),
	})
	if err != nil {
		t.Fatal(err)
	}

	sly := worker.create(job.Spec{Name: "sly", At: ptr(worker.Now()), Selector: "handler/page"})
	time.Sleep(6 * time.Second)

	// Commands that wait because of the other node are late always, not just while the machine is busy.
	worker.await("commands are on time", 30*time.Second, func() bool {
		late := 0
		for _, j := range commands {
			runs := c.history(j.ID) // the latest come last
			if median(runs[max(0, len(runs)-6):]) > 700*time.Millisecond {
				late++
			}
		}
		return late <= 1
	})

	for _, j := range commands {
		runs := c.history(j.ID)
		if len(runs) < 3 {
			t.Errorf("%s ran %d times", j.Spec.Name, len(runs))
		}

		for _, r := range runs {
			if r.Node != "worker" || r.Outcome != job.Succeeded {
				t.Errorf("got %+v", r.Run)
			}
		}
	}

	if runs := c.history(sly.ID); len(runs) != 1 || runs[0].Outcome != job.Failed ||
		runs[0].Reason.Code != job.ReasonExecutorMissing {
		t.Errorf("a command with the selector of a handler: got %+v", runs)
	}

	if runs := c.history(page.ID); len(runs) < 3 || runs[0].Node != "web" {
		t.Errorf("the handler ran %d times", len(runs))
	}
}

// TestJobsFromCode adds, finds, changes and runs jobs like a program that embeds a node.
func TestJobsFromCode(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	idle, err := node.New(node.Config{DSN: c.dsn, Name: "idle", Expiry: c.expiry, Log: logger(t, "idle")})
	if err != nil {
		t.Fatal(err)
	}

	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := idle.Jobs().Create(soon, job.Spec{}); err == nil || !strings.Contains(err.Error(), "call Run") {
		t.Errorf("a node that does not run: got %v", err)
	}

	n := c.embedded("one", func(n *node.Node) {
		n.Handle("greet", func(_ context.Context, a node.Attempt) error { return nil })
	}, nil)
	jobs, ctx := n.Jobs(), t.Context()
	spec := job.Spec{
		Name: "greet", Handler: "greet", Every: job.Duration(time.Hour), Owner: "ann",
		Labels: map[string]string{"team": "data"},
	}

	first, err := jobs.Ensure(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := jobs.Ensure(ctx, spec); err != nil || again.ID != first.ID || again.Version != first.Version {
		t.Errorf("the same definition again: got %+v, %v, want no change of version %d", again, err, first.Version)
	}

	spec.Payload = "world"
	second, err := jobs.Ensure(ctx, spec)
	if err != nil || second.ID != first.ID || second.Version != first.Version+1 ||
		!second.Spec.Start.Equal(*first.Spec.Start) {
		t.Errorf("another payload: got %+v, %v, want the next version and the same phase", second, err)
	}

	if _, err := jobs.Create(ctx, spec); !errors.Is(err, node.ErrExists) {
		t.Errorf("create it again: got %v, want %v", err, node.ErrExists)
	}

	var invalid job.Problems
	if _, err := jobs.Create(ctx, job.Spec{Name: "x", Handler: "a b", Every: 1, Selector: "("}); !errors.As(err,
		&invalid) || len(invalid) < 3 {
		t.Errorf("a bad definition: got %v", err)
	}

	for i := range 3 {
		if _, err := jobs.Create(ctx,
			job.Spec{
				Name: fmt.Sprint("other ", i, "."), Command: "true", Every: job.Duration(time.Hour),
				Labels: map[string]string{"team": "web"},
			}); err != nil {
			t.Fatal(err)
		}
	}

	for what, c := range map[string]struct {
		query node.JobQuery
		want  int
	}{
		"all": {node.JobQuery{}, 4}, "of an owner": {node.JobQuery{Owner: "ann"}, 1}, "with a label": {
			node.JobQuery{Labels: map[string]string{"team": "web"}}, 3,
		},
	} {
		got := 0
		for _, err := range jobs.List(ctx, c.query) {
			if err != nil {
				t.Fatal(err)
			}
			got++
		}

		if got != c.want {
			t.Errorf("%s: got %d jobs, want %d", what, got, c.want)
		}
	}

	asked, err := jobs.Run(ctx, first.ID, "key")
	if err != nil {
		t.Fatal(err)
	}
	if run, err := jobs.Wait(ctx, asked); err != nil || run.Outcome != job.Succeeded || run.Request != asked.Request {
		t.Errorf("got %+v, %v", run, err)
	}

	if j, err := jobs.Pause(ctx, first.ID, job.PauseRequest{Reason: "holiday"}); err != nil || !j.Paused ||
		j.PausedBy != "one" {
		t.Errorf("pause: got %+v, %v", j, err)
	}

	if j, err := jobs.Resume(ctx, first.ID); err != nil || j.Paused {
		t.Errorf("resume: got %+v, %v", j, err)
	}
	if err := jobs.Delete(ctx, first.ID); err != nil {
		t.Error(err)
	}
	if _, err := jobs.Get(ctx, first.ID); !errors.Is(err, node.ErrNotFound) {
		t.Errorf("a deleted job: got %v, want %v", err, node.ErrNotFound)
	}

	n.drain()
	if _, err := jobs.Create(ctx, spec); !errors.Is(err, node.ErrStopped) {
		t.Errorf("after the node has stopped: got %v, want %v", err, node.ErrStopped)
	}
	if err := n.Run(ctx); err == nil {
		t.Error("a node ran twice")
	}
}

// TestHandleSlips: a mistake of the program is a panic with a reason.
func TestHandleSlips(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	f := func(context.Context, node.Attempt) error { return nil }
	n := c.embedded("one", func(n *node.Node) { n.Handle("a", f) }, nil)
	fresh := func() *node.Node {
		m, err := node.New(node.Config{DSN: c.dsn, Name: "two", Log: logger(t, "two")})
		if err != nil {
			t.Fatal(err)
		}
		m.Handle("a", f)
		return m
	}

	for what, slip := range map[string]func(){
		"already running": func() { n.Handle("b", f) },
		"is empty":        func() { fresh().Handle("", f) },
		"a to z":          func() { fresh().Handle("a b", f) },
		"nor taken":       func() { fresh().Handle("a", f) },
		"function":        func() { fresh().Handle("b", nil) },
	} {
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, what) {
					t.Errorf("got panic %q, want %q", p, what)
				}
			}()
			slip()
		}()
	}

	if _, err := node.New(node.Config{DSN: c.dsn, Name: "x", Labels: map[string]string{"node": "y"}}); err == nil ||
		!strings.Contains(err.Error(), "set by the node itself") {
		t.Errorf("a label of the node's own: got %v", err)
	}
}
