package node_test

import (
	"syscall"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/node"
)

// TestTenThousandDueTimes runs them on three nodes: none twice, none missing.
func TestTenThousandDueTimes(t *testing.T) {
	t.Parallel()
	long(t)
	c := newCluster(t)
	l := newLedger()
	var nodes []*member
	for _, name := range []string{"one", "two", "three"} {
		nodes = append(nodes, c.start(name, func(cfg *node.Config) { cfg.Executor, cfg.Slots = l, 2000 }))
	}

	first := nodes[0].Now().Add(4 * time.Second)
	jobs := c.everySecond(500, first, time.Second)
	until := first.Add(20 * time.Second)
	time.Sleep(time.Until(until) + 2*time.Second)
	c.settled(90*time.Second, until)
	got := account(t, c, l, jobs, until)
	t.Logf("outcomes: %v", got)
	n := 0
	for _, k := range got {
		n += k
	}

	if n != 10_000 {
		t.Errorf("%d due times, want 10,000", n)
	}
	if shares := c.count(`
		SELECT COUNT(DISTINCT l.node)
		FROM run r
		JOIN life l ON l.id = r.session
		WHERE r.state = 'ended'`); shares != 3 {
		t.Errorf("%d nodes took part, want 3", shares)
	}
}

// TestKill9 kills a node that is executing a long command. Another node takes over, the long run
// ends lost, and prepared runs start on the other node.
func TestKill9(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := newLedgerFile(t)
	doomed := c.process("doomed")
	long := c.insert(job.Spec{
		Name: "long", Every: job.Duration(time.Hour),
		Start: ptr(time.Now().Add(time.Second).Truncate(time.Microsecond)), Command: l.command("60"),
	})[0]
	await(t, "the long command", 10*time.Second, func() bool { return len(l.read()) == 1 })
	well := c.start("well", nil)
	short := well.every(6, time.Second, func(s *job.Spec) { s.Command = l.command("0") })
	time.Sleep(2 * time.Second)
	doomed.signal(syscall.SIGKILL)
	killed := time.Now()
	well.await("the long run ended lost", c.expiry+10*time.Second, func() bool {
		runs := c.history(long.ID)
		return len(runs) == 1 && runs[0].Outcome == job.Lost
	})

	t.Logf("taken over after %s", time.Since(killed).Round(time.Millisecond))
	time.Sleep(2 * time.Second)
	until := well.Now()
	c.settled(20*time.Second, until)
	outcomes := map[job.Outcome]int{}
	for _, j := range short {
		for _, r := range c.history(j.ID) {
			outcomes[r.Outcome]++
		}
	}

	t.Logf("short runs: %v", outcomes)
	if outcomes[job.Succeeded] == 0 {
		t.Error("no short run succeeded")
	}
	if outcomes[job.Missed] > 0 {
		t.Errorf("%d due times were missed", outcomes[job.Missed])
	}

	// One run per job was executing or starting, and one more may have ended unwritten. Ten seconds
	// of runs were prepared.
	if got, want := outcomes[job.Lost], 2*len(short); got > want {
		t.Errorf("%d short runs are lost, want %d at most: what was only prepared is not", got, want)
	}
	l.check()
}

// TestStop stops a node process for longer than its lease and continues it: it starts nothing under
// the stale lease, and its commands are dead soon.
func TestStop(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.expiry = expiry
	l := newLedgerFile(t)
	stopped := c.process("stopped")
	well := c.start("well", nil)
	well.every(12, time.Second, func(s *job.Spec) { s.Command = l.command("0.1") })
	time.Sleep(4 * time.Second)
	await(t, "it executes its share", 10*time.Second, func() bool {
		return c.count(`
			SELECT COUNT(*)
			FROM run r
			JOIN life l ON l.id = r.session
			WHERE l.node = 'stopped' AND r.outcome = 'succeeded'`) > 0
	})

	old := c.sessionOf("stopped").ID
	stopped.signal(syscall.SIGSTOP)
	at := well.Now().Add(time.Second) // a start committed before may count from its due time
	time.Sleep(3 * expiry)
	stopped.signal(syscall.SIGCONT)
	await(t, "a new session", 15*time.Second, func() bool {
		return stopped.hasEnded() || c.count("SELECT COUNT(*) FROM session WHERE node = 'stopped'") == 1
	})

	// Its guard has killed it: it was stopped just before a start, which must not continue.
	if stopped.hasEnded() {
		stopped = c.process("stopped")
	}

	time.Sleep(3 * time.Second)
	c.settled(20*time.Second, well.Now())
	l.check()
	if n := c.count(`
		SELECT COUNT(*)
		FROM run r
		JOIN life l ON l.id = r.session
		WHERE r.state = 'ended' AND l.session = ? AND r.started > ?`, old[:], at.UnixMicro()); n > 0 {
		t.Errorf("%d runs were started by the node that was stopped, as if it had not been", n)
	}

	stopped.signal(syscall.SIGTERM)
	if code := stopped.exit(); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
}

// TestDrain stops a node like a deployment: its prepared runs start on time on other nodes, its
// executing runs end, and its session ends.
func TestDrain(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := newLedger()
	leaving := c.start("leaving", func(cfg *node.Config) { cfg.Executor = l })
	staying := c.start("staying", func(cfg *node.Config) { cfg.Executor = l })
	jobs := staying.every(20, time.Second, nil)
	time.Sleep(3 * time.Second)
	begin := time.Now()
	leaving.drain()
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("the drain took %s", took)
	}

	if n := c.count("SELECT COUNT(*) FROM session"); n != 1 {
		t.Errorf("%d sessions after the drain, want 1", n)
	}

	time.Sleep(4 * time.Second)
	until := staying.Now()
	c.settled(10*time.Second, until)
	got := account(t, c, l, jobs, until)
	if got[job.Succeeded] < 20*5 || got[job.Lost]+got[job.Missed]+got[job.Killed] > 0 {
		t.Errorf("outcomes: %v", got)
	}
	if n := c.count("SELECT COUNT(*) FROM run WHERE state = 'ended' AND started > due + 10000000"); n > 0 {
		t.Errorf("%d runs were more than 10 s late", n)
	}
}

// TestDrainKills stops a node whose command does not end within the grace.
func TestDrainKills(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.start("one", func(cfg *node.Config) { cfg.Grace = time.Second })
	j := n.create(job.Spec{Name: "stubborn", At: ptr(n.Now()), Command: "trap '' TERM; sleep 60 & wait; sleep 60"})
	n.await("it runs", 5*time.Second, func() bool { return n.Status().Executing == 1 })
	time.Sleep(300 * time.Millisecond)
	begin := time.Now()
	n.drain()
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("the drain took %s", took)
	}

	if runs := c.history(j.ID); len(runs) != 1 || runs[0].Outcome != job.Killed {
		t.Errorf("runs: %+v, want one that was killed", runs)
	}
}

// TestLostIsRunAgain kills a node whose command may run twice: the run ends lost, and the next
// attempt begins on another node.
func TestLostIsRunAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := newLedgerFile(t)
	doomed := c.process("doomed")
	spec := job.Spec{
		Name: "again", Every: job.Duration(time.Hour),
		Start: ptr(time.Now().Add(time.Second).Truncate(time.Microsecond)), OnLost: job.LostRerun,
	}

	spec.Command = "[ $GOCRONTAB_ATTEMPT = 1 ] || exit 0; " + l.command("30")
	j := c.insert(spec)[0]
	await(t, "the first attempt", 10*time.Second, func() bool { return len(l.read()) == 1 })
	c.start("well", nil)
	doomed.signal(syscall.SIGKILL)
	await(t, "the second attempt", 2*c.expiry+10*time.Second, func() bool { return len(c.history(j.ID)) == 2 })
	first, second := c.history(j.ID)[0], c.history(j.ID)[1]
	if first.Attempt > second.Attempt {
		first, second = second, first
	}

	if first.Outcome != job.Lost || first.Final || second.Outcome != job.Succeeded || !second.Final ||
		second.Attempt != 2 || second.Due != first.Due {
		t.Errorf("got %+v, then %+v", first.Run, second.Run)
	}
}
