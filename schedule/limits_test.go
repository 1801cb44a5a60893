package schedule

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// TestAllowance holds the rule by itself: what becomes of a verdict at a limit.
func TestAllowance(t *testing.T) {
	t.Parallel()
	due := job.Task{ID: 1, JobID: 1, Due: t0, DueNow: t0, Attempt: 1}
	with := func(change func(*job.Task)) job.Task { t := due; change(&t); return t }
	var (
		asked    = with(func(t *job.Task) { t.Origin = 7 })
		backfill = with(func(t *job.Task) { t.Origin = -7 })
		retry    = with(func(t *job.Task) { t.Attempt = 2 })
		woken    = with(func(t *job.Task) { t.DueNow = after(time.Second) })
	)
	begins := func(t job.Task) decision { return decision{task: t, verdict: begin} }
	waits := func(t job.Task, kind sql.WaitKind) decision {
		return decision{task: t, verdict: wait, wait: sql.Wait{Kind: kind}}
	}
	full := &allowance{app: "a", limits: job.AppLimits{RunsPerMinute: 60, Waiting: 3}, started: 60, waiting: 3}
	room := &allowance{app: "a", limits: job.AppLimits{RunsPerMinute: 60, Waiting: 3}, started: 59, waiting: 2}
	other := &allowance{app: "a", limits: job.AppLimits{Jobs: 1}, started: 1000, waiting: 1000}

	for name, c := range map[string]struct {
		a       *allowance
		d       decision
		verdict verdict
		reason  string
	}{
		"no limits":                              {nil, begins(due), begin, ""},
		"limits of something else":               {other, begins(due), begin, ""},
		"limits of something else, and it waits": {other, waits(due, sql.WaitJob), wait, ""},
		"there is room":                          {room, begins(due), begin, ""},
		"a due time at the limit":                {full, begins(due), refuse, "app limit: at most 60 runs a minute (app a)"},
		"one that has waited":                    {full, begins(woken), refuse, "app limit: at most 60 runs a minute (app a)"},
		"a retry":                                {full, begins(retry), begin, ""},
		"a run that was admitted":                {full, begins(asked), begin, ""},
		"a due time of a backfill":               {full, begins(backfill), begin, ""},
		"it may wait":                            {room, waits(due, sql.WaitJob), wait, ""},
		"one too many waits for its job":         {full, waits(due, sql.WaitJob), refuse, "app limit: at most 3 waiting runs (app a)"},
		"one too many waits for its group":       {full, waits(due, sql.WaitGroup), refuse, "app limit: at most 3 waiting runs (app a)"},
		"what was asked for would have to wait":  {full, waits(asked, sql.WaitJob), refuse, "app limit: at most 3 waiting runs (app a)"},
		"a retry waits":                          {full, waits(retry, sql.WaitJob), wait, ""},
		"one that has waited waits on":           {full, waits(woken, sql.WaitGroup), wait, ""},
		"a due time of a backfill waits":         {full, waits(backfill, sql.WaitJob), wait, ""},
		"it waits for the end of a pause":        {full, waits(due, sql.WaitPause), wait, ""},
		"it is not to be started anyway":         {full, refused(due, job.Missed, t0, "because"), refuse, "because"},
		"it is given back":                       {full, decision{task: due, verdict: giveBack}, giveBack, ""},
	} {
		d := c.a.judge(c.d, t0)
		if d.verdict != c.verdict || d.run.Reason != c.reason {
			t.Errorf("%s: got verdict %d, reason %q; want %d, %q", name, d.verdict, d.run.Reason, c.verdict, c.reason)
		}
		if d.limit != "" && d.run.Outcome != job.Skipped {
			t.Errorf("%s: it ends %s", name, d.run.Outcome)
		}
	}

	// What a transaction has decided counts for what it decides then.
	d := begins(due)
	room.take(&d)
	if got := room.judge(begins(due), t0); got.verdict != refuse {
		t.Error("a second start of the transaction went over the limit")
	}
	d = begins(asked)
	if room.started = 59; counts(&d) {
		t.Error("a run that was counted when it was asked for counts again")
	}

	// Before its due instant nothing is final: a start before it may leave the minute by then.
	s := scene{job: &sql.JobRow{Job: job.Job{ID: 1, Spec: job.Spec{Name: "j", Every: job.Duration(time.Second), Overlap: job.OverlapAllow}}}, allowance: full}
	if d := decide(due, s, t0-1); d.verdict != hold {
		t.Errorf("a microsecond before it is due: got verdict %d", d.verdict)
	}
	if d := decide(due, s, t0); d.verdict != refuse {
		t.Errorf("when it is due: got verdict %d", d.verdict)
	}
}

// limit gives an app limits, and has the nodes know of it.
func (f *fixture) limit(app string, l job.AppLimits, nodes ...*fixture) {
	f.Helper()
	if err := f.editor.PutLimits(f.Context(), app, l); err != nil {
		f.Fatal(err)
	}
	for _, n := range append(nodes, f) {
		if n.starter.Limits == nil {
			n.starter.Limits = &Limiter{DB: n.planner.DB, Session: n.session, Log: slog.New(slog.NewTextHandler(f.Output(), nil))}
		}
		n.lookAtLimits()
	}
}

func (f *fixture) lookAtLimits() {
	f.Helper()
	if err := f.starter.Limits.look(f.Context(), f.session.Now()); err != nil {
		f.Fatal(err)
	}
}

// TestJobLimit: an app gets no more jobs than its limit, however they come, and whoever comes at the same time.
func TestJobLimit(t *testing.T) {
	f := setUp(t)
	f.editor.Soon = func() {} // that of the fixture counts, and is not for many at once
	f.limit("a", job.AppLimits{Jobs: 3})
	spec := func(app string, n int) job.Spec {
		return job.Spec{App: app, Name: fmt.Sprintf("j%d", n), Command: "true", Every: job.Duration(time.Hour)}
	}

	const many = 12
	results := make([]error, many)
	var all sync.WaitGroup
	for n := range many {
		all.Go(func() { _, results[n] = f.editor.Create(t.Context(), spec("a", n), false) })
	}
	all.Wait()
	refused := 0
	for _, err := range results {
		var over *job.OverLimit
		switch {
		case errors.As(err, &over):
			refused++
		case err != nil:
			t.Fatal(err)
		}
	}
	f.want("jobs of the app", 3, "SELECT COUNT(*) FROM job WHERE app = 'a' AND living = 1")
	if refused != many-3 {
		t.Errorf("%d were refused", refused)
	}

	over := func(what string, err error) {
		t.Helper()
		var over *job.OverLimit
		if !errors.As(err, &over) || over.App != "a" || over.Most != 3 || over.Has != 3 {
			t.Errorf("%s: got %v", what, err)
		}
	}
	other := f.create(spec("b", 0))
	moved := other.Spec
	moved.App, moved.Name = "a", "moved"
	_, err := f.editor.Update(t.Context(), other.ID, other.Version, moved)
	over("a move", err)
	wanted := job.Apply{Jobs: []job.Wanted{{Spec: spec("a", 100)}, {Spec: spec("b", 100)}}}
	_, err = f.editor.Apply(t.Context(), wanted)
	over("an apply", err)
	wanted.DryRun = true
	_, err = f.editor.Apply(t.Context(), wanted)
	over("a dry run", err)
	f.want("jobs of the other app", 1, "SELECT COUNT(*) FROM job WHERE app = 'b' AND living = 1")

	// One that goes makes room, and an edit in place needs none.
	id := f.number("SELECT MIN(id) FROM job WHERE app = 'a'")
	if err := f.editor.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := f.editor.Update(t.Context(), other.ID, other.Version, moved); err != nil {
		t.Fatal(err)
	}
	if err := f.editor.PutLimits(t.Context(), "a", job.AppLimits{Jobs: 1}); err != nil {
		t.Fatal(err)
	}
	moved.Command = "false"
	if _, err := f.editor.Update(t.Context(), other.ID, other.Version+1, moved); err != nil {
		t.Errorf("an edit of a job of an app that is over its limit: %v", err)
	}
	if err := f.editor.DeleteLimits(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	f.create(spec("a", 200))
	f.want("lines of the audit", 3, "SELECT COUNT(*) FROM audit WHERE kind = 'limits' AND app = 'a'")
}

// TestJobLimitOfAnotherApp: who holds the limits of one app holds up none of another.
func TestJobLimitOfAnotherApp(t *testing.T) {
	f := setUp(t)
	f.limit("a", job.AppLimits{Jobs: 3})
	tx, err := f.beside.Raw().Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("SELECT * FROM app_limit WHERE app = 'a' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	f.create(job.Spec{App: "b", Name: "j", Every: job.Duration(time.Hour)})
}

// TestAskedRunsOfAnApp: no more runs are let through than the limit has room for, however many ask at once.
func TestAskedRunsOfAnApp(t *testing.T) {
	f := setUp(t)
	f.editor.Soon = func() {} // that of the fixture counts, and is not for many at once
	f.limit("a", job.AppLimits{RunsPerMinute: 5})
	var jobs []job.Job
	for n := range 4 {
		jobs = append(jobs, f.create(job.Spec{App: "a", Name: fmt.Sprintf("j%d", n), Schedule: "0 0 1 * *", Overlap: job.OverlapAllow}))
	}
	const many = 16
	results := make([]error, many)
	var all sync.WaitGroup
	for n := range many {
		all.Go(func() { _, results[n] = f.editor.RunNow(t.Context(), jobs[n%len(jobs)].ID, "") })
	}
	all.Wait()
	for _, err := range results {
		var over *job.OverLimit
		if err != nil && (!errors.As(err, &over) || over.Limit != job.LimitRuns || over.After != time.Minute) {
			t.Errorf("got %v", err)
		}
	}
	f.want("runs that were asked for", 5, "SELECT COUNT(*) FROM task WHERE origin > 0")

	bulk := job.Bulk{Action: job.ActionRun, Jobs: []job.Seen{{ID: jobs[0].ID, Version: 1}}}
	if err := f.editor.Bulk(t.Context(), &bulk); err != nil {
		t.Fatal(err)
	}
	if done := bulk.Done[0]; done.Result != job.BulkRefused || !strings.Contains(done.Why, "at most 5 a minute") {
		t.Errorf("a bulk run: got %+v", done)
	}
	_, err := f.editor.Backfill(t.Context(), jobs[0].ID, after(-40*24*time.Hour).Time(), t0.Time(), 1, false, "")
	if !errors.As(err, new(*job.OverLimit)) {
		t.Errorf("a backfill: got %v", err)
	}

	f.session.set(after(time.Minute))
	if _, err := f.editor.RunNow(t.Context(), jobs[0].ID, ""); err != nil {
		t.Errorf("a minute later: %v", err)
	}
}

// TestRunLimit: due times beyond the limit end skipped and say why; those of other apps begin. A minute later the app has
// room again.
func TestRunLimit(t *testing.T) {
	f := setUp(t)
	every := job.Duration(time.Second)
	f.create(job.Spec{App: "a", Name: "j", Every: every, Overlap: job.OverlapAllow})
	f.create(job.Spec{App: "b", Name: "j", Every: every, Overlap: job.OverlapAllow})
	f.limit("a", job.AppLimits{RunsPerMinute: 5})

	f.runFor(20 * time.Second)
	f.want("starts of the app", 5, "SELECT COUNT(*) FROM task t JOIN job j ON j.id = t.job_id WHERE j.app = 'a' AND t.state = 2")
	f.want("skipped due times of the app", 15, `SELECT COUNT(*) FROM history h JOIN job j ON j.id = h.job_id
		WHERE j.app = 'a' AND h.outcome = 6 AND h.reason = 'app limit: at most 5 runs a minute (app a)'`)
	f.want("starts of the other app", 20, "SELECT COUNT(*) FROM task t JOIN job j ON j.id = t.job_id WHERE j.app = 'b' AND t.state = 2")

	f.runFor(60 * time.Second)
	f.want("starts of the app in eighty seconds", 10, "SELECT COUNT(*) FROM task t JOIN job j ON j.id = t.job_id WHERE j.app = 'a' AND t.state = 2")
}

// runFor moves the clock on by seconds, and starts what is due.
func (f *fixture) runFor(d time.Duration) {
	f.Helper()
	f.executing.slots = 1000
	for end := f.session.Now().Add(d); f.session.Now() < end; {
		at := f.session.Now().Add(time.Second).Sub(t0)
		f.plan(at)
		f.start(at)
		f.lookAtLimits()
	}
}

// TestRunLimitOfThreeNodes: between two looks each node may start what was left, and no more; behind the next look none
// starts anything.
func TestRunLimitOfThreeNodes(t *testing.T) {
	f := setUp(t)
	nodes := []*fixture{f, node(t, f.dsn, 2), node(t, f.dsn, 3)}
	f.limit("a", job.AppLimits{RunsPerMinute: 4}, nodes[1:]...)
	start := func(n *fixture, times int) (begun int) {
		for range times {
			allowed := n.starter.Limits.allowances(t0).of("a")
			d := allowed.judge(decision{task: job.Task{Due: t0, DueNow: t0, Attempt: 1}, verdict: begin, run: job.Run{App: "a"}}, t0)
			if d.verdict == begin {
				begun++
			}
			d.run.App, d.attempt.At = "a", t0
			n.starter.Limits.took([]decision{d})
		}
		return begun
	}

	if got := start(nodes[0], 3); got != 3 {
		t.Fatalf("the first node started %d", got)
	}
	for _, n := range nodes {
		n.lookAtLimits()
	}
	total := 3
	for _, n := range nodes { // one is left, and each believes that it may have it
		got := start(n, 10)
		if got > 1 {
			t.Errorf("node %d started %d where one was left", n.session.id[0], got)
		}
		total += got
	}
	if most := 4 + len(nodes) - 1; total > most {
		t.Errorf("%d starts, more than the limit and one for each other node: %d", total, most)
	}
	for _, n := range nodes {
		n.lookAtLimits()
	}
	for _, n := range nodes { // the first to look have not seen the starts of the last one
		n.lookAtLimits()
		if got := start(n, 10); got != 0 {
			t.Errorf("node %d started %d behind the look", n.session.id[0], got)
		}
	}
	f.want("starts in the table", int64(total), "SELECT SUM(starts) FROM app_start WHERE app = 'a'")
}

// TestWaitingLimit: what would wait beyond the limit ends skipped and says why, and nobody may ask for a run then.
func TestWaitingLimit(t *testing.T) {
	f := setUp(t)
	queue := job.Spec{App: "a", Name: "j", Every: job.Duration(time.Second), Overlap: job.OverlapQueue, Queue: 100}
	j := f.create(queue)
	queue.App = "b"
	f.create(queue)
	f.limit("a", job.AppLimits{Waiting: 3})

	f.runFor(10 * time.Second) // the first one executes all the time
	f.want("waiting tasks of the app", 3, "SELECT COUNT(*) FROM waiting w JOIN job j ON j.id = w.job_id WHERE j.app = 'a'")
	f.want("skipped due times of the app", 6, `SELECT COUNT(*) FROM history h JOIN job j ON j.id = h.job_id
		WHERE j.app = 'a' AND h.outcome = 6 AND h.reason = 'app limit: at most 3 waiting runs (app a)'`)
	f.want("waiting tasks of the other app", 9, "SELECT COUNT(*) FROM waiting w JOIN job j ON j.id = w.job_id WHERE j.app = 'b'")

	var over *job.OverLimit
	if _, err := f.editor.RunNow(t.Context(), j.ID, ""); !errors.As(err, &over) || over.Limit != job.LimitWaiting || over.Has != 3 {
		t.Errorf("a run by hand: got %v", err)
	}
}

// TestBackfillAtTheLimit: a backfill waits for its app to have room, and loses nothing.
func TestBackfillAtTheLimit(t *testing.T) {
	f := setUp(t)
	j := f.create(job.Spec{App: "a", Name: "j", Schedule: "0 0 1 1 *", Overlap: job.OverlapAllow})
	b, err := f.editor.Backfill(t.Context(), j.ID, after(-3*366*24*time.Hour).Time(), t0.Time(), 1, false, "")
	if err != nil {
		t.Fatal(err)
	}
	f.limit("a", job.AppLimits{RunsPerMinute: 1})
	f.starter.Limits.count("a", t0)
	f.exec("DELETE FROM task")
	feedOne := func() (planned int) {
		t.Helper()
		err := f.planner.DB.Tx(t.Context(), func(tx *sql.Tx) (err error) {
			planned, err = feed(tx, &b, f.session.Now(), f.starter.Limits)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return planned
	}
	if n := feedOne(); n != 0 {
		t.Errorf("%d due times were planned at the limit", n)
	}
	f.session.set(after(time.Minute))
	if n := feedOne(); n != 1 {
		t.Errorf("%d due times were planned a minute later", n)
	}
}

// TestNoLimitsNoStatements: while no app has limits nothing is asked for them.
func TestNoLimitsNoStatements(t *testing.T) {
	f := setUp(t)
	g, err := f.planner.DB.Glance(t.Context(), sql.GlanceOf{})
	if err != nil {
		t.Fatal(err)
	}
	lookout := &Lookout{}
	lookout.last.Store(&glimpse{g, time.Now()})
	l := &Limiter{DB: f.planner.DB, Session: f.session, Lookout: lookout}
	sent := f.planner.DB.Meter().Statements.Load()
	if err := l.look(t.Context(), t0); err != nil {
		t.Fatal(err)
	}
	if l.allowances(t0) != nil {
		t.Error("a start would look for limits")
	}
	if n := f.planner.DB.Meter().Statements.Load() - sent; n != 0 {
		t.Errorf("%d statements", n)
	}
	f.limit("a", job.AppLimits{Jobs: 1})
	if g, err := f.planner.DB.Glance(t.Context(), sql.GlanceOf{}); err != nil || !g.Limits {
		t.Errorf("the lookout does not see limits: %+v, %v", g, err)
	}
}
