package node_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// gauge is an executor that records which attempts ran at the same time, and of which due times.
type gauge struct {
	mu          sync.Mutex
	now, most   map[string]int // by job, and by "" for all jobs
	order       []string       // "job attempt" in order of their beginning
	began, over map[string]time.Time
	took        func(execute.Attempt) time.Duration
	outcome     func(execute.Attempt) job.Outcome
}

func newGauge(took time.Duration) *gauge {
	return &gauge{
		now: map[string]int{}, most: map[string]int{}, began: map[string]time.Time{},
		over: map[string]time.Time{}, took: func(execute.Attempt) time.Duration { return took },
	}
}

func (g *gauge) Execute(ctx context.Context, a execute.Attempt) job.Result {
	g.mu.Lock()
	for _, k := range []string{a.Job, ""} {
		g.now[k]++
		g.most[k] = max(g.most[k], g.now[k])
	}

	g.order = append(g.order, fmt.Sprintf("%s %d", a.Job, a.Attempt))
	g.mu.Unlock()
	r := job.Result{Outcome: job.Succeeded}
	if g.outcome != nil {
		r.Outcome = g.outcome(a)
	}

	select {
	case <-ctx.Done():
		r = job.Result{Outcome: job.Killed, Reason: job.Reason{
			Code: job.CodeOf(context.Cause(ctx), job.ReasonNodeStopped), Text: context.Cause(ctx).Error(),
		}}
	case <-time.After(g.took(a)):
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range []string{a.Job, ""} {
		g.now[k]--
	}

	return r
}

func (g *gauge) peak(job string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.most[job]
}

func (g *gauge) begun() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.order)
}

// outcomes counts the final runs of a job by outcome.
func (c *cluster) outcomes(id int64) map[job.Outcome]int {
	c.t.Helper()
	out := map[job.Outcome]int{}
	for _, r := range c.history(id) {
		if r.Final {
			out[r.Outcome] += int(r.Count)
		}
	}
	return out
}

// burst adds a job that is due n times at a distance of apart, from a second from now.
func (m *member) burst(name string, n int, apart time.Duration, change func(*job.Spec)) job.Job {
	m.t.Helper()
	start := m.Now().Add(time.Second).Truncate(time.Millisecond)
	spec := job.Spec{Name: name, Every: job.Duration(apart), Start: &start, MaxFires: int64(n)}
	if change != nil {
		change(&spec)
	}
	return m.create(spec)
}

// TestQueue: due times that arrive faster than they finish wait and run one after the other, in
// order. Due times that find the queue full are skipped.
func TestQueue(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	g := newGauge(300 * time.Millisecond)
	n := c.start("one", func(cfg *node.Config) { cfg.Executor = g })
	c.start("two", func(cfg *node.Config) { cfg.Executor = g })
	j := n.burst("queue", 10, 50*time.Millisecond, func(s *job.Spec) { s.Overlap, s.Queue = job.OverlapQueue, 5 })
	await(t, "all due times have a run", 30*time.Second, func() bool { return len(c.history(j.ID)) == 10 })
	if got := g.peak("queue"); got != 1 {
		t.Errorf("%d runs at once", got)
	}

	got := c.outcomes(j.ID)
	// The more slowly the due times arrive, the more succeed.
	if got[job.Succeeded] < 6 || got[job.Succeeded]+got[job.Skipped] != 10 {
		t.Errorf("got %v; want the one that executes and five in the queue succeeded, the others skipped", got)
	}

	var end job.Micros
	for _, r := range c.history(j.ID) {
		if r.Outcome == job.Skipped && r.Reason.Code != job.ReasonQueueFull {
			t.Errorf("skipped for %q", r.Reason)
		}
		if r.Outcome == job.Succeeded {
			if r.Started < end {
				t.Errorf("due %s began at %s, before the one before it ended at %s", r.Due, r.Started, end)
			}
			end = r.Ended
		}
	}

	c.nothingWaits()
}

// nothingWaits checks that no run is waiting, and that groups count their used slots.
func (c *cluster) nothingWaits() {
	c.t.Helper()
	if n := c.count("SELECT COUNT(*) FROM run WHERE state = 'waiting'"); n != 0 {
		c.t.Errorf("%d runs wait for nothing", n)
	}

	if n := c.count(`
		SELECT COUNT(*)
		FROM grp g
		WHERE taken <> (SELECT COUNT(*) FROM run r WHERE r.grp = g.id AND r.state = 'executing')`); n != 0 {
		c.t.Errorf("%d groups count other slots than are taken", n)
	}
}

// TestQueueOfDeadNode: a run of a dead node holds up the queue no longer than its lease.
func TestQueueOfDeadNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.expiry = 2 * expiry
	g := newGauge(100 * time.Millisecond)
	n := c.start("survivor", func(cfg *node.Config) { cfg.Executor, cfg.LookAhead = g, time.Second })
	j := n.burst("queue", 3, 200*time.Millisecond, func(s *job.Spec) {
		s.Overlap, s.Start = job.OverlapQueue, ptr(s.Start.Add(4*time.Second))
	})

	// A session that never beats is executing the first due time.
	dead := c.deadSession(1)
	first := trip.Run{
		Launch: trip.Launch{Run: int64(dead)<<32 + 1, Claim: 1}, JobID: j.ID, AppID: 1, Version: 1,
		Kind: trip.Schedule, Attempt: 1, Due: job.MicrosOf(*j.Spec.Start), DueNow: job.MicrosOf(*j.Spec.Start),
		Hash: j.Hash,
	}

	if err := c.db.Tx(t.Context(), func(tx *sql.Tx) error {
		if err := trip.MoveCursors(tx,
			[]trip.Cursor{{JobID: j.ID, Next: first.Due.Add(200 * time.Millisecond)}}); err != nil {
			return err
		}

		if err := trip.Insert(tx, dead, []trip.Run{first}); err != nil {
			return err
		}
		if _, err := trip.Start(tx, dead, 0, false, []trip.Launch{first.Launch}, first.Due, 0); err != nil {
			return err
		}
		return trip.MarkBegun(tx, []trip.Begun{{JobID: j.ID, To: first.Due, Running: first.Launch.Run}})
	}); err != nil {
		t.Fatal(err)
	}

	await(t, "the queue goes on", 30*time.Second, func() bool { return c.outcomes(j.ID)[job.Succeeded] == 2 })
	if got := c.outcomes(j.ID); got[job.Lost] != 1 {
		t.Errorf("got %v; want one lost", got)
	}

	c.nothingWaits()
}

func (c *cluster) exec(query string, args ...any) {
	c.t.Helper()
	if _, err := c.db.Raw().Exec(query, args...); err != nil {
		c.t.Fatal(err)
	}
}

// TestReplace: each due time replaces the executing run, on any node, and no two runs overlap.
func TestReplace(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	g := newGauge(time.Hour)
	n := c.start("one", func(cfg *node.Config) { cfg.Executor = g })
	c.start("two", func(cfg *node.Config) { cfg.Executor = g })
	j := n.burst("replace", 4, 1500*time.Millisecond, func(s *job.Spec) { s.Overlap = job.OverlapReplace })
	await(t, "three have lost their place", 40*time.Second, func() bool { return len(c.history(j.ID)) == 3 })
	await(t, "the last one executes", 20*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state = 'executing'") == 1
	})
	if got := g.peak("replace"); got != 1 {
		t.Errorf("%d runs at once", got)
	}

	for _, r := range c.history(j.ID) {
		if r.Outcome != job.Superseded && (r.Outcome != job.Killed || r.Reason.Code != job.ReasonReplaced) {
			t.Errorf("due %s: %s, %q", r.Due, r.Outcome, r.Reason)
		}
	}

	c.nothingWaits()
}

// TestGroup: jobs of a group share its slots in the whole cluster. Higher priority goes first.
// Added slots are used at once.
func TestGroup(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	g := newGauge(250 * time.Millisecond)
	var nodes []*member
	for i := range 3 {
		nodes = append(nodes, c.start(fmt.Sprint("node", i), func(cfg *node.Config) { cfg.Executor = g }))
	}

	if _, err := nodes[0].Editor().PutGroup(t.Context(), job.GroupSpec{Name: "db", Slots: 2}); err != nil {
		t.Fatal(err)
	}

	at := nodes[0].Now().Add(10 * time.Second).UTC()
	var jobs []job.Job
	for i := range 12 {
		spec := job.Spec{Name: fmt.Sprint("low ", i), At: &at, Group: "db"}
		if i < 4 {
			spec.Name, spec.Priority = fmt.Sprint("high ", i), 10
		}
		jobs = append(jobs, nodes[i%3].create(spec))
	}

	await(t, "all have run", 40*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE outcome = 'succeeded'") == 12
	})
	if got := g.peak(""); got != 2 {
		t.Errorf("%d runs at once, the group has 2 slots", got)
	}

	// The first two starts are random, or the first four if two nodes start at the same moment.
	// Among waiting runs, high priority goes first.
	order := g.begun()
	last := 0
	for i, name := range order {
		if strings.HasPrefix(name, "high") {
			last = i
		}
	}

	if last > 8 {
		t.Errorf("got the order %v; want what has a high priority first", order)
	}

	c.nothingWaits()

	release := make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free)
	g.took = func(execute.Attempt) time.Duration { <-release; return 0 }
	at = nodes[0].Now().Add(time.Second).UTC()
	for i := range 6 {
		jobs = append(jobs, nodes[0].create(job.Spec{Name: fmt.Sprint("more ", i), At: &at, Group: "db"}))
	}

	await(t, "four wait", 10*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state = 'waiting'") == 4
	})
	if _, err := nodes[1].Editor().PutGroup(t.Context(), job.GroupSpec{Name: "db", Slots: 6}); err != nil {
		t.Fatal(err)
	}

	await(t, "all execute", 10*time.Second, func() bool { return g.peak("") == 6 })
	free()
	await(t, "all have run", 10*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE outcome = 'succeeded'") == 18
	})
	if got := g.peak(""); got != 6 {
		t.Errorf("%d runs at once, the group has 6 slots", got)
	}
	if err := nodes[0].Editor().DeleteGroup(t.Context(), "db"); err == nil {
		t.Error("a group was deleted that jobs refer to")
	}

	for _, j := range jobs {
		if _, err := nodes[0].Editor().Delete(t.Context(), j.ID); err != nil {
			t.Fatal(err)
		}
	}

	if err := nodes[0].Editor().DeleteGroup(t.Context(), "db"); err != nil {
		t.Error(err)
	}
}

// TestGroupOfRetries: between its attempts a run leaves its slot to others, and so does a run that
// fails finally.
func TestGroupOfRetries(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	g := newGauge(100 * time.Millisecond)
	g.outcome = func(a execute.Attempt) job.Outcome {
		if a.Job == "fails" {
			return job.Failed
		}
		return job.Succeeded
	}

	n := c.start("one", func(cfg *node.Config) { cfg.Executor = g })
	if _, err := n.Editor().PutGroup(t.Context(), job.GroupSpec{Name: "one", Slots: 1}); err != nil {
		t.Fatal(err)
	}

	at := n.Now().Add(time.Second).UTC()
	fails := n.create(job.Spec{
		Name: "fails", At: &at, Group: "one", Retry: job.Retry{Attempts: 3, Backoff: job.Duration(time.Second)},
	})
	for i := range 5 {
		n.create(job.Spec{Name: fmt.Sprint("other ", i), At: &at, Group: "one"})
	}

	await(t, "all have run", 30*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE final = 1") == 6
	})
	if got := g.peak(""); got != 1 {
		t.Errorf("%d runs at once, the group has one slot", got)
	}
	if n := len(c.history(fails.ID)); n != 3 {
		t.Errorf("%d attempts, want 3", n)
	}

	c.nothingWaits()
}

// TestNothingToDo: a run that began and had nothing to do gives its slot and its turn to the next one.
func TestNothingToDo(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	g := newGauge(100 * time.Millisecond)
	g.outcome = func(execute.Attempt) job.Outcome { return job.Skipped }
	n := c.start("one", func(cfg *node.Config) { cfg.Executor = g })
	if _, err := n.Editor().PutGroup(t.Context(), job.GroupSpec{Name: "one", Slots: 1}); err != nil {
		t.Fatal(err)
	}

	at := n.Now().Add(time.Second).UTC()
	for i := range 3 {
		n.create(job.Spec{
			Name: fmt.Sprint("alone ", i), At: &at, Group: "one", Retry: job.Retry{Attempts: 3, Backoff: job.Duration(1)},
		})
	}
	n.burst("queued", 3, 10*time.Millisecond, func(s *job.Spec) { s.Overlap = job.OverlapQueue })
	await(t, "all have run", 30*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE final = 1 AND outcome = 'skipped' AND started > 0") == 6
	})
	if n := c.count("SELECT COUNT(*) FROM run"); n != 6 {
		t.Errorf("%d runs, want 6: nothing is tried again", n)
	}
	c.nothingWaits()
}

// TestStartDeadline: a run that waits longer than its deadline ends missed, and does not start
// later.
func TestStartDeadline(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	g := newGauge(8 * time.Second)
	n := c.start("one", func(cfg *node.Config) { cfg.Executor = g })
	j := n.burst("deadline", 3, 100*time.Millisecond, func(s *job.Spec) {
		s.Overlap, s.StartDeadline = job.OverlapQueue, job.Duration(5*time.Second)
	})
	await(t, "all due times have a run", 20*time.Second, func() bool { return len(c.history(j.ID)) == 3 })
	if got := c.outcomes(j.ID); got[job.Succeeded] != 1 || got[job.Missed] != 2 {
		t.Errorf("got %v; want one succeeded, two missed", got)
	}

	for _, r := range c.history(j.ID) {
		if r.Outcome == job.Missed && (r.Reason.Code != job.ReasonWaitDeadline || r.Ended.Sub(r.Due) > 20*time.Second) {
			t.Errorf("due %s ended %s: %q", r.Due, r.Ended, r.Reason)
		}
	}

	c.nothingWaits()
}

// TestMisfireAll: after an outage, the latest due times are caught up one after the other, in
// order. A single run counts the others.
func TestMisfireAll(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	g := newGauge(20 * time.Millisecond)
	n := c.start("one", func(cfg *node.Config) { cfg.Executor = g })
	j := n.create(job.Spec{
		Name: "all", Every: job.Duration(10 * time.Second), Misfire: job.Misfire{Policy: job.MisfireAll, MaxCount: 5},
	})
	n.drain()

	// For twenty minutes nothing was planned for it.
	c.exec("DELETE FROM run WHERE state <> 'ended'")
	c.exec(`
		UPDATE job_version
		SET definition = JSON_SET(definition, '$.start', '2026-01-01T00:00:00Z')
		WHERE job_id = ?`, j.ID)

	c.exec("UPDATE job SET next_due = next_due - 1200000000 WHERE id = ?", j.ID)
	c.start("two", func(cfg *node.Config) { cfg.Executor = g })
	await(t, "five are caught up", 20*time.Second, func() bool { return c.outcomes(j.ID)[job.Succeeded] >= 5 })
	if got := g.peak("all"); got != 1 {
		t.Errorf("%d runs at once", got)
	}

	var counted int64
	var last job.Micros
	for _, r := range c.history(j.ID) {
		switch r.Outcome {
		case job.Missed:
			counted += r.Count
		case job.Succeeded:
			if r.Started < last {
				t.Errorf("due %s began at %s, before an earlier one", r.Due, r.Started)
			}
			last = r.Started
		}
	}

	if counted < 100 || counted > 120 {
		t.Errorf("%d due times were counted as missed; want about 110", counted)
	}
	c.nothingWaits()
}

// TestRateOfGroups: three nodes start the runs of a group at close to its rate, by the times of the
// processes never more, and the highest priority first.
func TestRateOfGroups(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	g := newGauge(20 * time.Millisecond)
	var nodes []*member
	for i := range 3 {
		nodes = append(nodes, c.start(fmt.Sprint("node", i), func(cfg *node.Config) { cfg.Executor = g }))
	}

	const runs, rate, period = 60, 10, 2 * time.Second
	if _, err := nodes[0].Editor().PutGroup(t.Context(), job.GroupSpec{Name: "api", Rate: "10/2s"}); err != nil {
		t.Fatal(err)
	}

	at := nodes[0].Now().Add(15 * time.Second).UTC()
	for i := range runs {
		spec := job.Spec{Name: fmt.Sprint("low ", i), At: &at, Group: "api", Priority: 1}
		if i%2 == 0 {
			spec.Name, spec.Priority = fmt.Sprint("high ", i), 10
		}
		nodes[i%3].create(spec)
	}

	await(t, "all have run", 60*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE outcome = 'succeeded'") == runs
	})

	const above = `
		SELECT COUNT(*)
		FROM run a
		WHERE (SELECT COUNT(*) FROM run b WHERE b.started >= a.started AND b.started < a.started + ?) > ?`
	// A loaded machine spawns a process a little after its start was decided.
	if n := c.count(above, (period - 200*time.Millisecond).Microseconds(), rate); n > 0 {
		t.Errorf("%d starts begin a period with more than %d", n, rate)
	}
	t.Logf("%d starts begin a period with more, by the times of the processes", c.count(above, period.Microseconds(), rate))

	took := time.Duration(c.count("SELECT MAX(started) - MIN(started) FROM run")) * time.Microsecond
	ideal := period * (runs/rate - 1)
	t.Logf("%d starts took %s, the rate allows %s", runs, took, ideal)
	if took > 2*ideal { // on a loaded machine
		t.Errorf("%d starts took %s, want at most %s", runs, took, 2*ideal)
	}

	last := 0
	order := g.begun()
	for i, name := range order {
		if strings.HasPrefix(name, "high") {
			last = i
		}
	}
	if last > runs/2+2*rate {
		t.Errorf("got the order %v; want what has a high priority first", order)
	}
	c.nothingWaits()
}
