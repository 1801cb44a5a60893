package node_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/internal/boottime"
	"go-crontab/job"
	"go-crontab/node"
)

// byApp has a separate executor for each app.
type byApp map[string]execute.Executor

func (x byApp) Execute(ctx context.Context, a execute.Attempt) job.Result {
	return x[a.App].Execute(ctx, a)
}

// TestAppPauseHolds pauses a busy app, and the whole cluster, repeatedly: after each answer none of
// its jobs starts, and other jobs continue.
func TestAppPauseHolds(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l, others := newLedger(), newLedger()
	both := func(cfg *node.Config) { cfg.Executor = byApp{"busy": l, "other": others} }
	n, other := c.start("one", both), c.start("two", both)
	for range 15 {
		n.create(job.Spec{
			App: "busy", Name: "busy " +
				string(rune('a'+c.count("SELECT COUNT(*) FROM job"))), Every: job.Duration(100 * time.Millisecond),
		})
	}

	n.create(job.Spec{App: "other", Name: "other", Every: job.Duration(100 * time.Millisecond)})
	for i, app := range []string{"busy", "", "busy"} {
		begun, _ := l.counts()
		n.await("it is busy", 15*time.Second, func() bool { now, _ := l.counts(); return now > begun+30 })
		time.Sleep(time.Duration(i) * 13 * time.Millisecond)
		if _, err := other.Editor().PauseApp(t.Context(), app, job.PauseRequest{Reason: "load"}); err != nil {
			t.Fatal(err)
		}

		before, _ := l.counts()
		went, _ := others.counts()
		time.Sleep(700 * time.Millisecond)
		if after, _ := l.counts(); after != before {
			t.Errorf("pause of %q: %d runs started after it was answered", app, after-before)
		}
		if goes, _ := others.counts(); app == "" && goes > went {
			t.Errorf("pause of the cluster: %d runs of another app", goes-went)
		}

		if app != "" {
			n.await("another app goes on", 15*time.Second, func() bool {
				goes, _ := others.counts()
				return goes > went
			})
		}

		if err := n.Editor().ResumeApp(t.Context(), app); err != nil {
			t.Fatal(err)
		}
	}

	begun, _ := l.counts()
	n.await("it is busy again", 15*time.Second, func() bool { now, _ := l.counts(); return now > begun+30 })
	if _, doubles := l.counts(); doubles != 0 {
		t.Errorf("%d due times were executed twice", doubles)
	}

	n.await("the pauses are over", 10*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM stop WHERE until = 0") == 0
	})
	const unexplained = `
		SELECT COUNT(*)
		FROM run
		WHERE outcome = 'skipped'
			AND COALESCE(reason_code, '')
				NOT IN ('app_paused', 'cluster_paused', 'previous_run_executing', 'previous_run_waiting')`
	if k := c.count(unexplained); k != 0 {
		t.Errorf("%d runs were skipped for another reason", k)
	}
}

// TestPauseEndsThoughItsNodeDied kills the node that would have resumed a job and an app.
func TestPauseEndsThoughItsNodeDied(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	doomed := c.process("doomed")
	well := c.start("well", nil)
	j := well.create(job.Spec{Name: "alone", Every: job.Duration(time.Second)})
	held := well.create(job.Spec{App: "a", Name: "with its app", Every: job.Duration(time.Second)})
	until := job.MicrosOf(well.Now().Add(10 * time.Second))
	if _, err := well.Editor().Pause(t.Context(), j.ID, job.PauseRequest{Until: until}); err != nil {
		t.Fatal(err)
	}

	if _, err := well.Editor().PauseApp(t.Context(), "a", job.PauseRequest{Until: until}); err != nil {
		t.Fatal(err)
	}

	from := job.MicrosOf(well.Now())
	doomed.signal(syscall.SIGKILL)
	for _, j := range []job.Job{j, held} {
		well.await("it runs again", 20*time.Second, func() bool {
			runs := c.history(j.ID)
			return len(runs) > 0 && runs[len(runs)-1].Outcome == job.Succeeded && runs[len(runs)-1].Due >= until
		})

		counted := 0
		for _, r := range c.history(j.ID) {
			if r.Outcome == job.Succeeded && r.Started > from && r.Started < until {
				t.Errorf("%s: started at %s, though it was paused until %s", j.Spec.Name, r.Started, until)
			}
			if r.Count > 1 && (r.Reason.Code == job.ReasonJobPaused || r.Reason.Code == job.ReasonAppPaused) {
				counted++
			}
		}

		if counted > 1 {
			t.Errorf("%s: %d counted runs for one pause", j.Spec.Name, counted)
		}
	}

	for _, kind := range []string{"job", "app"} {
		if n := c.count(`
			SELECT COUNT(*)
			FROM audit
			WHERE kind = ? AND action = 'resume' AND who = 'go-crontab' AND origin = 'well'`, kind); n != 1 {
			t.Errorf("%d lines of the audit say that the pause of the %s ended, want 1", n, kind)
		}
	}

	well.await("the dead node's line", 20*time.Second, func() bool {
		return c.count(`
			SELECT COUNT(*)
			FROM audit
			WHERE kind = 'session' AND action = 'reap' AND name = 'doomed'`) == 1
	})
}

// TestAnswersKnowOfSlowClocks: when a node has just read that MySQL's clock was put forward, its
// answers wait for the nodes that have not read that yet, see edit.Editor.
func TestAnswersKnowOfSlowClocks(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.start("one", nil)
	if got := n.Editor().Session.Unsettled(); got != 0 {
		t.Errorf("before anything was set: got %s, want none", got)
	}

	boot, now := boottime.Now(), time.Now()
	n.Clock().Set(boot, now, now, n.Clock().Now().Add(time.Hour)) // the next beat puts it back
	if got, want := n.Editor().Session.Unsettled(), c.expiry*4/10; got <= want/2 || got > want {
		t.Errorf("put forward: got %s, want %s", got, want)
	}
}

// TestASecondPauseHoldsToo pauses a job twice: the second answer must not come before the first
// pause could be answered.
func TestASecondPauseHoldsToo(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.start("one", func(cfg *node.Config) { cfg.Executor = newLedger() })
	j := n.create(job.Spec{Name: "yearly", Schedule: "0 0 1 1 *"})

	// The other session has a row, or its run would end lost at once.
	_, err := c.db.Raw().Exec(`
		INSERT INTO session (id, node, started, beat_at)
		VALUES ('somebody else', 'other', 1, ?)`, n.Now().UnixMicro())
	if err != nil {
		t.Fatal(err)
	}

	c.exec("INSERT INTO life (session, node, started) VALUES ('somebody else', 'other', 1)")
	spawnBy := n.Now().Add(5 * time.Second)
	c.exec(`
		INSERT INTO run (id, job_id, app_id, due, due_now, kind, hash, state, owner, claim, started, spawn_by)
		SELECT 77, ?, 1, 1, 1, 'schedule', 0, 'executing', id, 1, 1, ?
		FROM life
		WHERE node = 'other'`, j.ID, spawnBy.UnixMicro())

	c.exec("UPDATE job SET running = 77, begun_to = 1 WHERE id = ?", j.ID)
	impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := n.Editor().Pause(impatient, j.ID, job.PauseRequest{}); err == nil {
		t.Fatal("the first pause was answered while an attempt might still begin")
	}
	if _, err := n.Editor().Pause(t.Context(), j.ID, job.PauseRequest{}); err != nil {
		t.Fatal(err)
	}

	if early := spawnBy.Sub(n.Now()); early > 0 {
		t.Errorf("the second pause was answered %s before the attempt could no more begin", early)
	}
}
