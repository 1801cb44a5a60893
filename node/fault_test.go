package node_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/internal/privatedb"
	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"
)

// behind starts a node whose connections go through a fault proxy.
func (c *cluster) behind(server *privatedb.DB, name string, l execute.Executor, slots int) (*member,
	*faultproxy.Proxy) {
	p := faultproxy.New(c.t, "unix", server.Socket())
	return c.start(name, func(cfg *node.Config) { cfg.DSN, cfg.Executor, cfg.Slots = p.DSN(c.dsn), l, slots }), p
}

func newServer(t testing.TB) (*privatedb.DB, *cluster) {
	t.Helper()
	server := testdb.Server(t)
	if err := server.CreateSchema(t.Context(), "crontab"); err != nil {
		t.Fatal(err)
	}
	return server, newClusterOn(t, server.DSN("crontab"))
}

// TestCommitFates loses COMMITs of every transition, in one way each, and compares the due times
// with the schedule.
func TestCommitFates(t *testing.T) {
	t.Parallel()
	fates := map[string]faultproxy.Action{
		"the commit never arrives":                    faultproxy.CutBefore(),
		"the reply is lost":                           faultproxy.CutAfter(),
		"the commit arrives after its sender is gone": faultproxy.HoldBefore(2500 * time.Millisecond),
		"the server found a deadlock": faultproxy.Error(1213, "40001",
			"Deadlock found when trying to get lock"),
	}

	transitions := map[string]string{
		"claim": "INSERT INTO run ", "start": "SET state = 'executing'", "finish": "SET r.state = 'ended'",
	}
	for name, fate := range fates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, c := newServer(t)
			c.expiry = expiry // which also bounds the patience of a sender
			l := newLedger()
			l.took = func(execute.Attempt) time.Duration { return 450 * time.Millisecond }
			sick, proxy := c.behind(server, "sick", l, 1) // too few slots, so the other node takes runs over
			rules := map[string]*faultproxy.Injected{}
			for transition, statement := range transitions {
				rules[transition] = proxy.Add(faultproxy.Rule{
					Match: faultproxy.CommitOf(statement), Times: 3, Action: fate,
				})
			}

			jobs := c.everySecond(24, sick.Now().Add(3*time.Second), time.Second)
			sick.await("the sick node claims", 20*time.Second, func() bool {
				return c.count("SELECT COUNT(*) FROM run WHERE state <> 'ended'") > 0
			})
			c.start("well", func(cfg *node.Config) { cfg.Executor = l })
			time.Sleep(15 * time.Second)
			until := sick.Now()
			c.settled(20*time.Second, until)
			got := account(t, c, l, jobs, until)
			for transition, rule := range rules {
				t.Logf("%s: injected %d times", transition, rule.Fired())
				if rule.Fired() == 0 {
					t.Errorf("%s: nothing was injected", transition)
				}
			}

			t.Logf("outcomes: %v", got)
			if got[job.Lost] > 0 {
				t.Errorf("%d runs lost, though no node died", got[job.Lost])
			}
		})
	}
}

// TestEditorFates loses COMMITs of changes made by people.
func TestEditorFates(t *testing.T) {
	t.Parallel()
	for name, fate := range map[string]faultproxy.Action{"never arrives": faultproxy.CutBefore(),
		"reply lost": faultproxy.CutAfter()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, c := newServer(t)
			n, proxy := c.behind(server, "sick", newLedger(), 0)
			lose := func(statement string) {
				t.Helper()
				lost := proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf(statement), Action: fate})
				t.Cleanup(func() {
					if lost.Fired() == 0 {
						t.Errorf("no commit of %s was lost", statement)
					}
				})
			}

			ctx := t.Context()
			lose("INSERT INTO job ")
			j := n.create(job.Spec{Name: "once", Schedule: "0 0 1 1 *"})
			if k := c.count("SELECT COUNT(*) FROM job"); k != 1 {
				t.Fatalf("%d jobs after one create", k)
			}

			lose(`SET j\.app_id`)
			_, err := n.Editor().Pause(ctx, j.ID, job.PauseRequest{})
			if j = n.job(j.ID); err != nil || !j.Paused || j.Changes != 2 {
				t.Fatalf("pause: %+v, %v", j, err)
			}

			lose(`SET j\.app_id`)
			_, err = n.Editor().Resume(ctx, j.ID)
			if j = n.job(j.ID); err != nil || j.Paused || j.Changes != 3 {
				t.Fatalf("resume: %+v, %v", j, err)
			}

			lose("INSERT INTO request")
			r, err := n.Editor().RunNow(ctx, []int64{j.ID}, 0, "")
			if err != nil || r.Request == 0 {
				t.Fatalf("run now: %+v, %v", r, err)
			}

			n.await("its run", 5*time.Second, func() bool { return len(c.history(j.ID)) > 0 })
			lose(`SET j\.app_id`)
			if _, err := n.Editor().Delete(ctx, j.ID); err != nil {
				t.Fatalf("delete: %v", err)
			}
			if runs := c.history(j.ID); len(runs) != 1 || runs[0].Outcome != job.Succeeded {
				t.Errorf("runs: %+v, want one", runs)
			}
		})
	}
}

// TestServerRestarts kills MySQL under load, twice.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	server, c := newServer(t)
	l := newLedger()
	n := c.start("one", func(cfg *node.Config) { cfg.Executor = l })
	c.start("two", func(cfg *node.Config) { cfg.Executor = l })
	jobs := n.every(8, time.Second, nil)
	for range 2 {
		time.Sleep(4 * time.Second)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := server.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
	}

	time.Sleep(4 * time.Second)
	until := n.Now()
	c.settled(30*time.Second, until)
	t.Logf("outcomes: %v", account(t, c, l, jobs, until))
}

// TestPartition cuts a node off, silently and for longer than its lease. Its commands are killed
// before other nodes start its work, it rejoins by itself, and no due time is lost.
func TestPartition(t *testing.T) {
	t.Parallel()
	server, c := newServer(t)
	c.expiry = 3 * expiry // the death of the command may take a while
	l := newLedger()
	killed := make(chan time.Time, 100)
	sick, proxy := c.behind(server, "sick", executorFunc(func(ctx context.Context, a execute.Attempt) job.Result {
		r := l.Execute(ctx, a)
		if a.Command == "long" {
			<-ctx.Done()
			killed <- time.Now()
			return job.Result{Outcome: job.Killed, Reason: job.Reason{
				Code: job.CodeOf(context.Cause(ctx), job.ReasonNodeStopped), Text: context.Cause(ctx).Error(),
			}}
		}
		return r
	}), 0)

	long := sick.create(job.Spec{
		Name: "long", Every: job.Duration(time.Hour), Command: "long",
		Start: ptr(sick.Now().Add(500 * time.Millisecond)),
	})

	jobs := sick.every(8, time.Second, nil)
	sick.await("the long run", 5*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE job_id = ? AND state = 'executing'", long.ID) == 1
	})
	well := c.start("well", func(cfg *node.Config) { cfg.Executor = l })
	old := sick.Status().Session
	cut := time.Now()
	proxy.Blackhole(faultproxy.BothWays)
	dead := <-killed
	if d := dead.Sub(cut); d > c.expiry*8/10 {
		t.Errorf("the command lived %s without a lease, longer than %s", d, c.expiry*8/10)
	}

	well.await("the session buried", 2*c.expiry+5*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM session") == 1
	})
	proxy.CutAll()
	proxy.Heal()
	sick.await("a new session", 10*time.Second, func() bool {
		st := sick.Status()
		return st.Ready && st.Session != old
	})

	time.Sleep(3 * time.Second)
	until := well.Now()
	c.settled(20*time.Second, until)
	t.Logf("outcomes: %v", account(t, c, l, jobs, until))
	if r := c.history(long.ID); len(r) != 1 || r[0].Outcome != job.Lost {
		t.Errorf("long run: %+v, want one that is lost", r)
	}
}

type executorFunc func(context.Context, execute.Attempt) job.Result

func (f executorFunc) Execute(ctx context.Context, a execute.Attempt) job.Result { return f(ctx, a) }

func ptr[T any](v T) *T { return &v }

// TestAnEndThatMySQLRefusesHoldsUpNobody lets MySQL refuse the end of one run.
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
	c.exec(
		fmt.Sprintf(
			"CREATE TRIGGER refuses BEFORE UPDATE ON run FOR EACH ROW IF NEW.job_id = %d AND NEW.state = 'ended' THEN"+
				" SIGNAL SQLSTATE '22001' SET MESSAGE_TEXT = 'no end'; END IF", odd.ID))

	close(written)
	jobs := n.every(6, time.Second, func(s *job.Spec) { s.Overlap = job.OverlapAllow })
	time.Sleep(6 * time.Second)
	until := n.Now().Add(-1500 * time.Millisecond)
	n.await("the others ended", 15*time.Second, func() bool {
		return c.count(`
			SELECT COUNT(*)
			FROM run
			WHERE state <> 'ended' AND due < ? AND job_id <> ?`, until.UnixMicro(), odd.ID) == 0
	})

	c.exec("DROP TRIGGER refuses")
	n.await("its end is written once it can be", 10*time.Second, func() bool { return len(c.history(odd.ID)) == 1 })
	got := account(t, c, l, jobs, until)
	t.Logf("outcomes: %v", got)
	if got[job.Succeeded] < 20 || got[job.Skipped] > 0 {
		t.Errorf("outcomes of the others: %v, want all succeeded", got)
	}
}

// TestATroubleOfTheServerBreaksNoJob lets MySQL refuse the writes of a claim, for reasons unrelated
// to the job.
func TestATroubleOfTheServerBreaksNoJob(t *testing.T) {
	t.Parallel()
	server, c := newServer(t)
	n, proxy := c.behind(server, "one", newLedger(), 0)
	full := proxy.Add(faultproxy.Rule{
		Match: faultproxy.SQL("INSERT INTO run"), Times: 12,
		Action: faultproxy.Error(1142, "42000", "INSERT command denied"),
	})

	jobs := c.everySecond(4, n.Now().Add(15*time.Second), time.Second)
	n.await("the server's trouble", 20*time.Second, func() bool {
		return full.Fired() >= 12 || c.count("SELECT COUNT(*) FROM job WHERE error <> ''") > 0
	})
	n.await("all are claimed", 15*time.Second, func() bool {
		return c.count("SELECT COUNT(DISTINCT job_id) FROM run WHERE state <> 'ended'") == len(jobs)
	})
}

// TestADrainEndsWhileMySQLIsAway loses MySQL while a prepared run is being released, and stops the
// node.
func TestADrainEndsWhileMySQLIsAway(t *testing.T) {
	t.Parallel()
	server, c := newServer(t)
	c.expiry = expiry // the drain may take as long as the lease
	n, proxy := c.behind(server, "one", newLedger(), 0)
	held := proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("SET state = 'idle'"), Action: faultproxy.Hold(0)})
	n.every(4, 100*time.Millisecond, nil)
	c.exec(`
		INSERT INTO run (id, job_id, app_id, due, due_now, kind, hash, state, owner, claim, started, spawn_by)
		SELECT 77, 1, 1, 1, 1, 'schedule', 0, 'executing', id, 1, 1, 1
		FROM life`)

	n.await("the run is given back", 10*time.Second, func() bool { return held.Fired() > 0 })
	proxy.Blackhole(faultproxy.BothWays)
	held.Release()
	time.Sleep(500 * time.Millisecond)
	begin := time.Now()
	n.drain()
	t.Logf("the drain took %s", time.Since(begin))
}
