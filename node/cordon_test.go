package node_test

import (
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// sessionOf returns the row of a node's session.
func (c *cluster) sessionOf(name string) sql.SessionRow {
	c.t.Helper()
	rows, err := c.db.Sessions(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}

	for _, r := range rows {
		if r.Node == name {
			return r
		}
	}

	c.t.Fatalf("%s has no session", name)
	return sql.SessionRow{}
}

// TestCordonUnderLoad cordons a busy node repeatedly: after each answer it starts nothing, and no
// due time is lost or doubled.
func TestCordonUnderLoad(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := newLedger()
	busy := func(name string) *member {
		return c.start(name, func(cfg *node.Config) { cfg.Executor, cfg.Slots, cfg.LookAhead = l, 500, time.Second })
	}
	one, two := busy("one"), busy("two")
	first := one.Now().Add(2 * time.Second)
	jobs := c.everySecond(80, first, time.Second)
	until := first.Add(10 * time.Second)
	time.Sleep(time.Until(first) + time.Second)
	for i := range 3 {
		if err := one.Editor().Cordon(t.Context(), "two", "", i%2 == 1); err != nil {
			t.Fatal(err)
		}

		row := c.sessionOf("two")
		if row.Cordoned == 0 || row.CordonSeen != row.Cordoned {
			t.Fatalf("answered before it has obeyed: %+v", row)
		}

		// Starts committed before the answer may still begin within the spawn window.
		now := one.Now().Add(2 * time.Second)
		time.Sleep(3 * time.Second)
		if n := c.count(`
			SELECT COUNT(*)
			FROM run r
			JOIN life l ON l.id = r.session
			WHERE r.state = 'ended' AND l.node = 'two' AND r.started > ?`, now.UnixMicro()); n > 0 {
			t.Errorf("cordon %d: %d runs were started after it was answered", i, n)
		}

		if st := two.Status(); st.Prepared != 0 || !st.Ready {
			t.Errorf("cordon %d: %+v, want nothing prepared, and a node that answers", i, st)
		}
		if err := one.Editor().Uncordon(t.Context(), "two"); err != nil {
			t.Fatal(err)
		}

		taken := one.Now().UnixMicro()
		one.await("it takes work again", 20*time.Second, func() bool {
			return c.count(`
				SELECT COUNT(*)
				FROM run r
				JOIN life l ON l.id = r.session
				WHERE r.state = 'ended' AND l.node = 'two' AND r.started > ?`, taken) > 0
		})
	}

	if d := time.Until(until); d > 0 {
		time.Sleep(d + time.Second)
	}

	c.settled(20*time.Second, until)
	got := account(t, c, l, jobs, until)
	t.Logf("outcomes: %v", got)

	// On a very busy machine, a due time may find the previous one executing.
	if got[job.Succeeded]+got[job.Skipped] != 80*10 {
		t.Errorf("outcomes %v, want %d times succeeded", got, 80*10)
	}
	if n := c.count("SELECT COUNT(*) FROM audit WHERE kind = 'node' AND name = 'two'"); n != 6 {
		t.Errorf("%d lines in the audit, want 6", n)
	}
}

// TestDrainByRequest drains a node that runs a long command: its prepared runs move to other nodes,
// and the command ends where it is.
func TestDrainByRequest(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	release := make(chan struct{})
	l := newLedger()
	l.took = func(a execute.Attempt) time.Duration {
		if a.Command == "long" {
			<-release
		}
		return 0
	}

	one := c.start("one", func(cfg *node.Config) { cfg.Executor = l })
	long := one.create(job.Spec{Name: "long", At: ptr(one.Now()), Command: "long"})
	one.await("it runs", 5*time.Second, func() bool { return one.Status().Executing == 1 })
	soon := one.create(job.Spec{Name: "soon", At: ptr(one.Now().Add(10 * time.Second))})
	one.await("another is prepared", 5*time.Second, func() bool { return one.Status().Prepared == 1 })
	if err := one.Editor().Cordon(t.Context(), "one", "new disk", true); err != nil {
		t.Fatal(err)
	}
	if st := one.Status(); st.Prepared != 0 || st.Executing != 1 {
		t.Errorf("drained: %+v, want nothing prepared and one executing", st)
	}

	// The only node takes nothing: due runs wait, visibly, until there is another node.
	one.await("it waits for a node", 12*time.Second, func() bool {
		waits, err := c.db.Untaken(t.Context(), []int64{soon.ID}, job.MicrosOf(one.Now()), 9)
		return err == nil && len(waits) == 1
	})

	c.start("two", func(cfg *node.Config) { cfg.Executor = l })
	one.await("it runs on the other node", 10*time.Second, func() bool { return len(c.history(soon.ID)) == 1 })
	if r := c.history(soon.ID)[0]; r.Node != "two" || r.Outcome != job.Succeeded {
		t.Errorf("got %+v", r.Run)
	}

	loads, err := c.db.Loads(t.Context())
	if err != nil || loads["one"] != (read.Load{Executing: 1}) {
		t.Errorf("got %+v, %v", loads, err)
	}

	close(release)
	one.await("it is drained", 5*time.Second, func() bool {
		loads, err := c.db.Loads(t.Context())
		return err == nil && loads["one"] == read.Load{}
	})

	if r := c.history(long.ID)[0]; r.Outcome != job.Succeeded || r.Node != "one" {
		t.Errorf("got %+v", r.Run)
	}
}

// TestACordonedNodeComesBackCordoned: a cordon belongs to the node, not to its session.
func TestACordonedNodeComesBackCordoned(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := newLedger()
	one := c.start("one", func(cfg *node.Config) { cfg.Executor = l })
	// the node does not even exist yet
	if err := one.Editor().Cordon(t.Context(), "two", "", false); err != nil {
		t.Fatal(err)
	}

	c.start("two", func(cfg *node.Config) { cfg.Executor = l })
	jobs := one.every(10, 500*time.Millisecond, func(s *job.Spec) { s.Overlap = job.OverlapAllow })
	time.Sleep(5 * time.Second)
	until := one.Now().Add(-time.Second)
	c.settled(10*time.Second, until)
	if got := account(t, c, l, jobs, until); got[job.Succeeded] < 50 || len(got) != 1 {
		t.Errorf("outcomes: %v", got)
	}

	if n := c.count(`
		SELECT COUNT(*)
		FROM run r
		JOIN life l ON l.id = r.session
		WHERE r.state = 'ended' AND l.node = 'two'`); n > 0 {
		t.Errorf("%d runs on the cordoned node", n)
	}

	if row := c.sessionOf("two"); row.CordonSeen == 0 || row.CordonSeen != row.Cordoned {
		t.Errorf("it does not tell that it obeys: %+v", row)
	}
}
