package node_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/test/faultproxy"
)

// TestAnEndThatMySQLRefusesHoldsUpNobody has MySQL refuse how one run ended.
func TestAnEndThatMySQLRefusesHoldsUpNobody(t *testing.T) {
	t.Parallel()
	c := newLawlessCluster(t)
	l := newLedger()
	written := make(chan struct{})
	l.took = func(a execute.Attempt) time.Duration {
		if a.Job == "odd" {
			<-written
		}
		return 300 * time.Millisecond
	}
	n := c.start("one", func(cfg *node.Config) { cfg.Executor, cfg.Slots = l, 8 })
	odd := n.create(job.Spec{Name: "odd", At: ptr(n.Now())})
	n.await("it runs", 5*time.Second, func() bool { return n.Status().Executing == 1 })
	c.exec(fmt.Sprintf("CREATE TRIGGER refuses BEFORE UPDATE ON run FOR EACH ROW IF NEW.job_id = %d AND NEW.state = 'ended' THEN"+
		" SIGNAL SQLSTATE '22001' SET MESSAGE_TEXT = 'no end'; END IF", odd.ID))
	close(written)
	jobs := n.every(6, time.Second, func(s *job.Spec) { s.Overlap = job.OverlapAllow })
	time.Sleep(6 * time.Second)
	until := n.Now().Add(-1500 * time.Millisecond)
	n.await("the others ended", 15*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state <> 'ended' AND due < ? AND job_id <> ?", until.UnixMicro(), odd.ID) == 0
	})
	c.exec("DROP TRIGGER refuses")
	n.await("its end is written once it can be", 10*time.Second, func() bool { return len(c.history(odd.ID)) == 1 })
	got := account(t, c, l, jobs, until)
	t.Logf("outcomes: %v", got)
	if got[job.Succeeded] < 20 || got[job.Skipped] > 0 {
		t.Errorf("outcomes of the others: %v, want all succeeded", got)
	}
}

// TestATroubleOfTheServerBreaksNoJob has MySQL refuse what a claim writes, for reasons that say nothing about a job.
func TestATroubleOfTheServerBreaksNoJob(t *testing.T) {
	t.Parallel()
	server, c := newServer(t)
	n, proxy := c.behind(server, "one", newLedger(), 0)
	full := proxy.Add(faultproxy.Rule{Match: faultproxy.SQL("INSERT INTO run"), Times: 12, Action: faultproxy.Error(1142, "42000", "INSERT command denied")})
	jobs := c.everySecond(4, n.Now().Add(15*time.Second), time.Second)
	n.await("the server's trouble", 20*time.Second, func() bool { return full.Fired() >= 12 || c.count("SELECT COUNT(*) FROM job WHERE error <> ''") > 0 })
	n.await("all are claimed", 15*time.Second, func() bool {
		return c.count("SELECT COUNT(DISTINCT job_id) FROM run WHERE state <> 'ended'") == len(jobs)
	})
}

// TestASecondPauseHoldsToo pauses a job twice: the second answer must not come before what the first one waits for.
func TestASecondPauseHoldsToo(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.start("one", func(cfg *node.Config) { cfg.Executor = newLedger() })
	j := n.create(job.Spec{Name: "yearly", Schedule: "0 0 1 1 *"})
	// The other session has a row, or its run would be lost at once as that of a dead one.
	_, err := c.db.Raw().Exec("INSERT INTO session (id, node, started, beat_at) VALUES ('somebody else', 'other', 1, ?)", n.Now().UnixMicro())
	if err != nil {
		t.Fatal(err)
	}
	c.exec("INSERT INTO life (session, node, started) VALUES ('somebody else', 'other', 1)")
	spawnBy := n.Now().Add(5 * time.Second)
	c.exec("INSERT INTO run (id, job_id, app_id, due, due_now, kind, hash, state, owner, claim, started, spawn_by)"+
		" SELECT 77, ?, 1, 1, 1, 'schedule', 0, 'executing', id, 1, 1, ? FROM life WHERE node = 'other'", j.ID, spawnBy.UnixMicro())
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

// TestADrainEndsWhileMySQLIsAway loses MySQL in the middle of giving a run back, and stops the node.
func TestADrainEndsWhileMySQLIsAway(t *testing.T) {
	t.Parallel()
	server, c := newServer(t)
	c.expiry = expiry // the drain may last as long as the lease
	n, proxy := c.behind(server, "one", newLedger(), 0)
	held := proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("SET state = 'idle'"), Action: faultproxy.Hold(0)})
	n.every(4, 100*time.Millisecond, nil)
	c.exec("INSERT INTO run (id, job_id, app_id, due, due_now, kind, hash, state, owner, claim, started, spawn_by)" +
		" SELECT 77, 1, 1, 1, 1, 'schedule', 0, 'executing', id, 1, 1, 1 FROM life")
	n.await("the run is given back", 10*time.Second, func() bool { return held.Fired() > 0 })
	proxy.Blackhole(faultproxy.BothWays)
	held.Release()
	time.Sleep(500 * time.Millisecond)
	begin := time.Now()
	n.drain()
	t.Logf("the drain took %s", time.Since(begin))
}

// TestABacklogIsWorkedOffAtFullSpeed makes far more due at once than there are slots.
func TestABacklogIsWorkedOffAtFullSpeed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := newLedger()
	l.took = func(execute.Attempt) time.Duration { return 50 * time.Millisecond }
	n := c.start("one", func(cfg *node.Config) { cfg.Executor, cfg.Slots = l, 8 })
	start := n.Now().Add(4 * time.Second).Truncate(time.Microsecond)
	var specs []job.Spec
	for i := range 400 {
		specs = append(specs, job.Spec{Name: fmt.Sprint(i), Every: job.Duration(time.Hour), Start: &start})
	}
	c.insert(specs...)
	n.await("claimed", 5*time.Second, func() bool {
		return c.count("SELECT (SELECT COUNT(*) FROM run WHERE state <> 'ended') + (SELECT COUNT(*) FROM run WHERE state = 'ended')") == 400
	})
	n.await("all ended", 60*time.Second, func() bool { return c.count("SELECT COUNT(*) FROM run WHERE state = 'ended'") == 400 })
	took := n.Now().Sub(start)
	t.Logf("400 runs of 50 ms in 8 slots took %s", took)
	if took > 40*time.Second {
		t.Errorf("took %s, want about 4 s", took)
	}
}

// TestAnEditOfAnOverdueInstantEndsItOnce edits a job with a single due time that has passed and was not started.
func TestAnEditOfAnOverdueInstantEndsItOnce(t *testing.T) {
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
	n := c.start("one", func(cfg *node.Config) { cfg.Executor, cfg.Slots = l, 1 })
	n.create(job.Spec{Name: "blocks", At: ptr(n.Now()), Command: "block"})
	n.await("no slot is free", 5*time.Second, func() bool { return n.Status().Executing == 1 })
	j := n.create(job.Spec{Name: "late", At: ptr(n.Now().Add(-30 * time.Minute))})
	spec := j.Spec
	spec.Misfire.Policy = job.MisfireSkip
	if _, err := n.Editor().Update(t.Context(), j.ID, j.Changes, spec); err != nil {
		t.Fatal(err)
	}
	close(release)
	n.await("it ended", 5*time.Second, func() bool { return c.count("SELECT COUNT(*) FROM run WHERE state <> 'ended'") == 0 })
	// A claim or a start ends it, whichever comes first after the edit.
	if runs := c.history(j.ID); len(runs) != 1 || runs[0].Outcome != job.Missed || runs[0].Reason.Code != job.ReasonMisfire {
		t.Errorf("runs: %+v, want one that was missed", runs)
	}
}
