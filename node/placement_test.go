package node_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/sql/read"
)

// labelled starts a node with labels.
func (c *cluster) labelled(name string, l execute.Executor, labels map[string]string) *member {
	return c.start(name, func(cfg *node.Config) { cfg.Executor, cfg.Labels = l, labels })
}

// TestPlacement runs jobs with selectors on three nodes with different labels: each where it may,
// on time although its bucket prefers another node, and none twice.
func TestPlacement(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := newLedger()
	one := c.labelled("one", l, map[string]string{"zone": "a", "gpu": ""})
	c.labelled("two", l, map[string]string{"zone": "b"})
	c.labelled("three", l, map[string]string{"zone": "a"})
	where := map[string]string{
		"zone=b":            "two",
		"gpu":               "one",
		"zone in (a), !gpu": "three",
		"node in (one,two)": "one two",
		"!gpu":              "two three",
		"os!=none":          "one two three",
		"":                  "one two three",
	}

	nodes := map[int64]string{}
	var jobs []job.Job
	for selector, names := range where {
		for i := range 6 {
			first := one.Now().Add(1500 * time.Millisecond).Truncate(time.Microsecond)
			j := one.create(job.Spec{
				Name: fmt.Sprint(i, ": ", selector, "."), Every: job.Duration(time.Second), Start: &first,
				Selector: selector,
			})
			jobs = append(jobs, j)
			nodes[j.ID] = names
		}
	}

	time.Sleep(8 * time.Second)
	until := one.Now().Add(-1500 * time.Millisecond)
	c.settled(10*time.Second, until)
	if got := account(t, c, l, jobs, until); got[job.Succeeded] < 5*len(jobs) || got[job.Missed]+got[job.Lost] > 0 {
		t.Errorf("outcomes: %v", got)
	}

	late := 0
	for _, j := range jobs {
		runs := c.history(j.ID)
		for _, r := range runs {
			if !strings.Contains(nodes[j.ID], r.Node) {
				t.Errorf("%q ran on %s, want one of %s", j.Spec.Selector, r.Node, nodes[j.ID])
			}
		}
		if median(runs) > 700*time.Millisecond {
			late++
		}
	}

	// Runs that their bucket's preferred node may not take would always be a second late.
	if late > len(jobs)/6 {
		t.Errorf("%d jobs were late", late)
	}
}

// median returns the lateness of the run in the middle, so that a single stall of the machine does
// not matter.
func median(runs []read.Run) time.Duration {
	if len(runs) == 0 {
		return 0
	}
	late := make([]int64, len(runs))
	for i, r := range runs {
		late[i] = r.Lateness
	}
	slices.Sort(late)
	return time.Duration(late[len(late)/2]) * time.Microsecond
}

// TestNoNodeMatches lets due times wait for a missing node, and run when it is back.
func TestNoNodeMatches(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := newLedger()
	one := c.labelled("one", l, nil)
	once := one.create(job.Spec{Name: "once", At: ptr(one.Now()), Selector: "zone=a, !gpu"})
	often := one.create(job.Spec{
		Name: "often", Every: job.Duration(time.Second), Selector: "zone=a", Overlap: job.OverlapAllow,
	})
	quick := one.create(job.Spec{
		Name: "quick", Every: job.Duration(500 * time.Millisecond), Selector: "zone=a",
		Misfire: job.Misfire{Policy: job.MisfireSkip, After: job.Duration(3 * time.Second)},
	})
	good := one.create(job.Spec{Name: "good", Every: job.Duration(time.Second)})
	one.await("the single due time waits", 10*time.Second, func() bool {
		waits, err := c.db.Untaken(t.Context(), []int64{once.ID}, job.MicrosOf(one.Now()), 10)
		return err == nil && len(waits) == 1
	})

	one.await("what is too late ends missed", 15*time.Second, func() bool { return len(c.history(quick.ID)) >= 4 })
	for _, r := range c.history(quick.ID) {
		if r.Outcome != job.Missed || r.Reason.Text != "no node matches zone=a" || r.Started != 0 {
			t.Errorf("got %+v", r.Run)
		}
	}

	if n := len(c.history(once.ID)) + len(c.history(often.ID)); n != 0 {
		t.Errorf("%d runs of jobs that no node may run", n)
	}

	c.labelled("two", l, map[string]string{"zone": "a"})
	one.await("they run once there is a node", 10*time.Second, func() bool {
		return len(c.history(once.ID)) == 1 && c.count(`
			SELECT COUNT(*)
			FROM run
			WHERE state = 'idle' AND due_now < ?`, one.Now().Add(-3*time.Second).UnixMicro()) == 0
	})

	if r := c.history(once.ID)[0]; r.Outcome != job.Succeeded || r.Node != "two" || r.Lateness < 3_000_000 {
		t.Errorf("got %+v, want it late on two", r.Run)
	}

	one.await("some of each have run", 20*time.Second, func() bool {
		return len(c.history(often.ID)) > 6 && len(c.history(good.ID)) > 6
	})
	until := one.Now().Add(-time.Second)
	c.settled(10*time.Second, until)
	for name, j := range map[string]job.Job{"often": often, "good": good} {
		if got := account(t, c, l, []job.Job{j}, until); got[job.Succeeded] < 5 || got[job.Missed]+got[job.Lost] > 0 {
			t.Errorf("%s: outcomes %v", name, got)
		}
	}
}

// TestTheOnlyNodeDies kills the only node that a job may run on: its due times wait, visibly, until
// the node is back.
func TestTheOnlyNodeDies(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := newLedgerFile(t)
	well := c.start("well", nil)
	doomed := c.process("doomed")
	j := well.create(job.Spec{
		Name: "there", Every: job.Duration(time.Second), Selector: "node=doomed", Command: l.command("0"),
	})
	well.await("it runs there", 10*time.Second, func() bool { return len(c.history(j.ID)) >= 2 })
	doomed.signal(syscall.SIGKILL)
	well.await("due times wait for it", c.expiry+15*time.Second, func() bool {
		waits, err := c.db.Untaken(t.Context(), []int64{j.ID}, job.MicrosOf(well.Now()), 10)
		return err == nil && len(waits) > 0
	})

	again := c.process("doomed")
	well.await("it has caught up", 20*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state <> 'ended' AND due < ?",
			well.Now().Add(-3*time.Second).UnixMicro()) == 0
	})

	again.signal(syscall.SIGTERM)
	again.exit()
	for _, r := range c.history(j.ID) {
		switch r.Outcome {
		case job.Succeeded, job.Skipped: // a due time may find the previous one executing
		case job.Lost:
		default:
			t.Errorf("got %+v", r.Run)
		}
		if r.Outcome == job.Succeeded && r.Node != "doomed" {
			t.Errorf("ran on %s", r.Node)
		}
	}

	l.check()
}

// TestAnEditMovesWhatIsOverdue changes the selector of a job whose due times wait, and of a job
// that a busy node has prepared.
func TestAnEditMovesWhatIsOverdue(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	release := make(chan struct{})
	l := newLedger()
	l.took = func(a execute.Attempt) time.Duration {
		if a.Command == "block" {
			<-release
		}
		return 0
	}

	one := c.start("one", func(cfg *node.Config) { cfg.Executor, cfg.Slots = l, 1 })
	c.labelled("two", l, nil)
	lost := one.create(job.Spec{Name: "lost", At: ptr(one.Now()), Selector: "zone=nowhere"})
	one.create(job.Spec{Name: "blocks", At: ptr(one.Now()), Selector: "node=one", Command: "block"})
	one.await("no slot is free", 5*time.Second, func() bool { return one.Status().Executing == 1 })
	stuck := one.create(job.Spec{Name: "stuck", At: ptr(one.Now()), Selector: "node=one"})
	one.await("one waits for a node, the other one for a slot", 10*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state = 'idle' AND job_id = ?", lost.ID) == 1 &&
			c.count("SELECT COUNT(*) FROM run WHERE job_id = ?", stuck.ID) == 1
	})

	for _, j := range []job.Job{lost, stuck} {
		spec := j.Spec
		spec.Selector = "node=two"
		if _, err := one.Editor().Update(t.Context(), j.ID, j.Changes, spec); err != nil {
			t.Fatal(err)
		}
	}

	one.await("both ran", 10*time.Second, func() bool {
		return len(c.history(lost.ID)) == 1 && len(c.history(stuck.ID)) == 1
	})
	close(release)
	for _, j := range []job.Job{lost, stuck} {
		if r := c.history(j.ID)[0]; r.Outcome != job.Succeeded || r.Node != "two" {
			t.Errorf("%s: got %+v", j.Spec.Name, r.Run)
		}
	}
}
