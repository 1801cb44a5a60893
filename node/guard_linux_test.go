package node_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/test/faultproxy"
)

// clinging are commands that try to outlive their node. Each process has TOKEN in its command line.
// A command that restarts itself forever stops after a minute, in case it escapes.
var clinging = map[string]string{
	"plain":                       "sleep TOKEN",
	"background":                  "sleep TOKEN & sleep TOKEN & sleep TOKEN",
	"session":                     "setsid sleep TOKEN & sleep TOKEN",
	"daemon":                      "(setsid bash -c 'sleep TOKEN; true' & ); sleep TOKEN",
	"ignores-term":                "trap '' TERM; sleep TOKEN & sleep TOKEN; true",
	"cleared-environment":         "env -i sleep TOKEN & exec env -i sleep TOKEN",
	"cleared-environment-session": "env -i setsid sleep TOKEN & wait",
	"never-still": "export END=$((EPOCHSECONDS+60)) F='trap \"\" TERM; : TOKEN; sleep .0TOKEN; " +
		"((EPOCHSECONDS > END)) || setsid bash -c \"$F\" &'; " +
		"for i in 1 2 3 4 5 6; do setsid bash -c \"$F\" & done; sleep TOKEN",
	"many": "for i in $(seq 30); do (setsid sleep TOKEN &); done; sleep TOKEN",
}

// token returns a text that identifies the processes of a test.
func token(t *testing.T) string {
	token := fmt.Sprintf("8%06d%06d", os.Getpid(), time.Now().UnixMicro()%1e6)
	t.Cleanup(func() {
		for _, pid := range withToken(t, token) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return token
}

// withToken lists the living processes with a token in their command line.
func withToken(t testing.TB, token string) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}

	for _, e := range entries {
		var pid int
		if _, err := fmt.Sscan(e.Name(), &pid); err != nil {
			continue
		}
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline") // empty for a zombie
		if bytes.Contains(line, []byte(token)) {
			pids = append(pids, pid)
		}
	}

	return pids
}

// guardOf finds the guard of a node process.
func guardOf(t testing.TB, parent int) (pid int) {
	t.Helper()
	await(t, "a guard", 10*time.Second, func() bool {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", parent))
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", parent))
		for _, task := range tasks {
			more, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", parent, task.Name()))
			children = append(append(children, ' '), more...)
		}

		for _, child := range strings.Fields(string(children)) {
			name, _ := os.ReadFile("/proc/" + child + "/comm")
			if strings.TrimSpace(string(name)) == "crontab-guard" {
				_, err := fmt.Sscan(child, &pid)
				return err == nil
			}
		}

		return false
	})

	return pid
}

// cling starts the clinging commands on the only node, and waits until they all run.
func (c *cluster) cling(token string, mod func(*job.Spec)) (jobs []job.Job) {
	c.t.Helper()
	soon := time.Now().Add(time.Second).Truncate(time.Microsecond)
	for name, command := range clinging {
		spec := job.Spec{
			Name: name, Every: job.Duration(time.Hour), Start: &soon,
			Command: strings.ReplaceAll(command, "TOKEN", token),
		}
		if mod != nil {
			mod(&spec)
		}
		jobs = append(jobs, c.insert(spec)...)
	}

	await(c.t, "all commands run", 20*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state = 'executing'") == len(jobs) &&
			len(withToken(c.t, token)) >= 50
	})

	time.Sleep(100 * time.Millisecond)
	return jobs
}

// sessionGone waits until a session's row is deleted. It returns the time, and the processes that
// were alive then.
func (c *cluster) sessionGone(name string, limit time.Duration, token string) (time.Time, []int) {
	c.t.Helper()
	await(c.t, "the session of "+name+" gone", limit, func() bool {
		return c.count("SELECT COUNT(*) FROM session WHERE node = ?", name) == 0
	})
	return time.Now(), withToken(c.t, token)
}

// onlyLost checks that each job has a single run, which is lost.
func (c *cluster) onlyLost(jobs []job.Job) {
	c.t.Helper()
	for _, j := range jobs {
		if runs := c.history(j.ID); len(runs) != 1 || runs[0].Outcome != job.Lost {
			c.t.Errorf("%s: got %+v, want one run that is lost", j.Spec.Name, runs)
		}
	}
}

// TestKill9OfCommands kills a node that executes all kinds of commands: they are all dead when its
// session is, and other nodes take over at once.
func TestKill9OfCommands(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	doomed, token := c.process("doomed"), token(t)
	jobs := c.cling(token, nil)
	flag := t.TempDir() + "/again"
	again := c.insert(job.Spec{
		Name: "again", Every: job.Duration(time.Hour), Start: ptr(time.Now().Truncate(time.Microsecond)),
		OnLost:  job.LostRerun,
		Command: fmt.Sprintf("[ $GOCRONTAB_ATTEMPT = 1 ] && exec sleep %s; touch %s", token, flag),
	})[0]

	await(t, "the last command", 20*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE job_id = ? AND state = 'executing'", again.ID) == 1
	})
	c.start("well", nil)
	doomed.signal(syscall.SIGKILL)
	killed := time.Now()
	gone, alive := c.sessionGone("doomed", c.expiry+10*time.Second, token)
	if len(alive) > 0 {
		t.Errorf("processes %v live though the session is buried", alive)
	}

	await(t, "the next attempt", 20*time.Second, func() bool { _, err := os.Stat(flag); return err == nil })
	started := time.Now()
	await(t, "all runs lost", 20*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE outcome = ?", job.Lost) == len(jobs)+1
	})
	t.Logf("buried after %s, the next attempt begun after %s, all runs lost after %s",
		gone.Sub(killed).Round(time.Millisecond), started.Sub(killed).Round(time.Millisecond),
		time.Since(killed).Round(time.Millisecond))
	if n := c.count(`
		SELECT COUNT(*)
		FROM audit
		WHERE action = 'reap' AND name = 'doomed' AND reason LIKE '%guard%'`); n != 1 {
		t.Errorf("%d lines in the audit say so, want 1", n)
	}
}

// TestStopOfCommands stops a node process for three expiries: its commands are dead before its
// session can expire, and the session is not buried earlier.
func TestStopOfCommands(t *testing.T) {
	t.Parallel()
	long(t)
	c := newCluster(t)
	c.expiry = 3 * expiry // to leave time between the commands' death and the session's
	stopped, token := c.process("stopped"), token(t)
	jobs := c.cling(token, nil)
	well := c.start("well", nil)
	stopped.signal(syscall.SIGSTOP)
	began := time.Now()
	await(t, "the commands' death", c.expiry, func() bool { return len(withToken(t, token)) == 0 })
	dead := time.Now()
	if n := c.count("SELECT COUNT(*) FROM session WHERE node = 'stopped'"); n != 1 {
		t.Errorf("%d sessions of the stopped node when its commands are dead, want 1: it has not expired", n)
	}

	gone, _ := c.sessionGone("stopped", 2*c.expiry, token)
	t.Logf("commands dead after %s, session buried after %s", dead.Sub(began).Round(time.Millisecond),
		gone.Sub(began).Round(time.Millisecond))
	well.await("all runs lost", 20*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE outcome = ?", job.Lost) == len(jobs)
	})
	time.Sleep(time.Until(began.Add(3 * c.expiry)))
	stopped.signal(syscall.SIGCONT)
	await(t, "a new session", 20*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM session WHERE node = 'stopped'") == 1
	})
	next := guardOf(t, stopped.cmd.Process.Pid)
	stopped.signal(syscall.SIGTERM)
	if code := stopped.exit(); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}

	await(t, "the end of its guard", 10*time.Second, func() bool { return syscall.Kill(next, 0) != nil })
	c.onlyLost(jobs)
}

// TestStopShorterThanTheExpiry stops a node just until its guard has killed its commands, so that
// the node itself writes their outcome. They are lost, including commands that end well when asked
// to stop.
func TestStopShorterThanTheExpiry(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.expiry = 3 * expiry
	stopped, token := c.process("stopped"), token(t)
	soon := time.Now().Add(time.Second).Truncate(time.Microsecond)
	var jobs []job.Job
	for _, end := range []string{"exit 0", "exit 143", "trap - TERM; kill $$"} {
		jobs = append(jobs,
			c.insert(job.Spec{
				Name: strings.ReplaceAll(end, " ", "-"), Every: job.Duration(time.Hour), Start: &soon,
				Command: fmt.Sprintf("trap '%s' TERM; : %s; while :; do sleep .1; done", end, token),
			})...)
	}

	await(t, "all commands run", 20*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state = 'executing'") == len(jobs) &&
			len(withToken(t, token)) >= len(jobs)
	})

	time.Sleep(100 * time.Millisecond)
	stopped.signal(syscall.SIGSTOP)
	await(t, "the commands' death", c.expiry, func() bool { return len(withToken(t, token)) == 0 })
	stopped.signal(syscall.SIGCONT)
	await(t, "their records", 20*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state = 'ended'") == len(jobs)
	})
	c.onlyLost(jobs)
}

// TestRelativeSocket kills a node that reaches MySQL by a path relative to its working directory:
// its guard does the same.
func TestRelativeSocket(t *testing.T) {
	t.Parallel()
	server, c := newServer(t)
	dir, socket := filepath.Split(server.Socket())
	near := &cluster{t: t, dsn: strings.Replace(c.dsn, server.Socket(), socket, 1), db: c.db, expiry: c.expiry}
	if near.dsn == c.dsn {
		t.Fatalf("the socket %s is not in the DSN", server.Socket())
	}

	doomed := near.processIn(dir, "doomed")
	doomed.says(`msg="the guard is running"`) // before that, the guard does not have the DSN
	doomed.signal(syscall.SIGKILL)
	c.sessionGone("doomed", 2*c.expiry, "") // there is no peer to bury it
}

// TestPartitionOfCommands cuts a node process off: its commands, including processes outside their
// groups, are dead before its session expires. It comes back with a new session and a new guard.
func TestPartitionOfCommands(t *testing.T) {
	t.Parallel()
	server, c := newServer(t)
	proxy := faultproxy.New(t, "unix", server.Socket())
	c.expiry = expiry
	behind := &cluster{t: t, dsn: proxy.DSN(c.dsn), db: c.db, expiry: c.expiry}
	sick, token := behind.process("sick"), token(t)
	jobs := c.cling(token, nil)
	well := c.start("well", nil)
	old := guardOf(t, sick.cmd.Process.Pid)
	proxy.Blackhole(faultproxy.BothWays)
	cut := time.Now()
	await(t, "the commands' death", expiry, func() bool { return len(withToken(t, token)) == 0 })
	t.Logf("commands dead after %s", time.Since(cut).Round(time.Millisecond))
	c.sessionGone("sick", 2*expiry, token)
	proxy.CutAll()
	proxy.Heal()
	await(t, "a new session", 20*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM session WHERE node = 'sick'") == 1
	})
	if next := guardOf(t, sick.cmd.Process.Pid); next == old {
		t.Error("the guard of the lost session guards the new one")
	}

	well.await("all runs ended", 20*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state = 'ended'") == len(jobs)
	})
	c.onlyLost(jobs)
}

// TestAHandlerThatStays: a node whose handler does not return when its lease is over is killed
// before another node may start the job's next run.
func TestAHandlerThatStays(t *testing.T) {
	t.Parallel()
	server, c := newServer(t)
	proxy := faultproxy.New(t, "unix", server.Socket())
	c.expiry = 3 * expiry // to leave time between the node's death and its session's
	sick := (&cluster{t: t, dsn: proxy.DSN(c.dsn), db: c.db, expiry: c.expiry}).process("sick")
	j := c.insert(job.Spec{
		Name: "stays", Every: job.Duration(time.Hour), Start: ptr(time.Now().Truncate(time.Microsecond)),
		Handler: "stays",
	})[0]
	await(t, "the handler", 20*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE job_id = ? AND state = 'executing'", j.ID) == 1
	})
	well := c.start("well", nil)
	proxy.Blackhole(faultproxy.BothWays)
	cut := time.Now()
	sick.exit()
	if took := time.Since(cut); took > c.expiry {
		t.Errorf("the node was killed after %s, and its session expired before", took)
	}

	if s := sick.cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGKILL {
		t.Errorf("the node ended with %v, want SIGKILL", s)
	}
	if n := c.count("SELECT COUNT(*) FROM session WHERE node = 'sick'"); n != 1 {
		t.Error("its session was buried before")
	}

	well.await("the run lost", 3*c.expiry, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE outcome = ?", job.Lost) == 1
	})
}

// TestGuardDies kills the guard of a node, then stops it. Nothing begins until there is a new
// guard, and executing runs continue.
func TestGuardDies(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n, token := c.start("one", nil), token(t)
	long := n.create(job.Spec{Name: "long", At: ptr(n.Now()), Command: "sleep " + token})
	n.await("the long command", 10*time.Second, func() bool { return len(withToken(t, token)) > 0 })
	short := n.create(job.Spec{Name: "short", Every: job.Duration(20 * time.Millisecond), Overlap: job.OverlapAllow})
	first := n.Status().Guard
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}

	n.await("a new guard", 10*time.Second, func() bool { return n.Status().Guard != first && n.Status().Ready })
	second := n.Status().Guard
	if err := syscall.Kill(second, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}

	n.await("not ready without a guard", 10*time.Second, func() bool { return !n.Status().Ready })
	from := n.Now()
	n.await("another guard", 20*time.Second, func() bool { return n.Status().Guard != second && n.Status().Guard != 0 })
	to := n.Now() // the new guard may not be known to live yet
	n.await("ready again", 20*time.Second, func() bool { return n.Status().Ready })
	again := n.Now()
	n.await("short commands again", 20*time.Second, func() bool {
		return c.count(`
			SELECT COUNT(*)
			FROM run
			WHERE state = 'ended' AND job_id = ? AND started > ?`, short.ID, again.UnixMicro()) > 10
	})

	// Starts that checked the guard before it was missed may still be in progress.
	const margin = 100 * time.Millisecond
	if k := c.count(`
		SELECT COUNT(*)
		FROM run
		WHERE state = 'ended' AND job_id = ? AND started BETWEEN ? AND ?`, short.ID, from.Add(margin).UnixMicro(),
		to.UnixMicro()); k > 0 {
		t.Errorf("%d commands were started without a guard", k)
	}

	if len(withToken(t, token)) == 0 || len(c.history(long.ID)) > 0 {
		t.Error("the running command has ended with a guard")
	}
}

// TestNoGuardComes kills each guard that a node gets: other nodes run what it had prepared.
func TestNoGuardComes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	one := c.start("one", nil)
	at := one.Now().Add(9 * time.Second)
	const jobs = 20
	for i := range jobs {
		one.create(job.Spec{Name: fmt.Sprint("job ", i), At: &at})
	}

	one.await("all prepared", 20*time.Second, func() bool { return one.Status().Prepared == jobs })
	c.start("two", nil)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				if guard := one.Status().Guard; guard != 0 { // 0 before it is up
					_ = syscall.Kill(guard, syscall.SIGKILL)
				}
			}
		}
	}()

	defer func() { close(stop); <-stopped }()
	one.await("what the node without a guard had prepared", 30*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE outcome = ?", job.Succeeded) == jobs
	})
	if here := c.count(`
		SELECT COUNT(*)
		FROM run r
		JOIN life l ON l.id = r.session
		WHERE r.state = 'ended' AND l.node = 'one'`); here == jobs {
		t.Error("all of it was run by the node without a guard")
	}
}

// TestKill9OfBoth: if its guard is dead too, a node's commands survive, and its peers wait until
// its session expires.
func TestKill9OfBoth(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.expiry = expiry
	doomed, token := c.process("doomed"), token(t)
	c.cling(token, nil)
	c.start("well", nil)
	helper := guardOf(t, doomed.cmd.Process.Pid)
	silent := time.Now()
	doomed.signal(syscall.SIGSTOP) // otherwise it would get a new guard
	if err := syscall.Kill(helper, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}

	doomed.signal(syscall.SIGKILL)
	gone, alive := c.sessionGone("doomed", 3*expiry, token)
	if took := gone.Sub(silent); took < expiry*6/10 { // measured from the last beat
		t.Errorf("buried after %s, before it expired", took)
	}
	if len(alive) == 0 {
		t.Error("somebody has killed the commands: say so in docs/internals/invariants.md")
	}
}

// TestNoGuard runs a node without a guard.
func TestNoGuard(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.start("one", func(cfg *node.Config) { cfg.NoGuard = true })
	j := n.create(job.Spec{Name: "once", At: ptr(n.Now())})
	n.await("its run", 10*time.Second, func() bool { return len(c.history(j.ID)) == 1 })
	if st := n.Status(); st.Guard != 0 || !st.Ready {
		t.Errorf("status %+v, want ready and no guard", st)
	}
}
