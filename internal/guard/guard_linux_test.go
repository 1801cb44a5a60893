package guard

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// kinds are commands that try to survive, and the numbers of their processes. TOKEN is in the
// command line of each. The command that restarts itself forever stops after a minute, should it
// escape.
var kinds = map[string]struct {
	command   string
	processes int
}{
	"a plain one":                    {"sleep TOKEN", 1},
	"one with background children":   {"sleep TOKEN & sleep TOKEN & sleep TOKEN; true", 3},
	"one with a child in a session":  {"setsid sleep TOKEN & sleep TOKEN; true", 2},
	"a daemon":                       {"(setsid bash -c 'sleep TOKEN; true' & ); sleep TOKEN; true", 4},
	"one that ignores SIGTERM":       {"trap '' TERM; sleep TOKEN & sleep TOKEN; true", 2},
	"one that stops itself":          {"sleep TOKEN & kill -STOP $$; sleep TOKEN", 1},
	"one with a cleared environment": {"env -i sleep TOKEN & exec env -i sleep TOKEN", 2},
	"the same in a session":          {"env -i setsid sleep TOKEN & wait", 1},
	"the same in a shell of its own": {"env -i bash -c 'setsid sleep TOKEN & sleep TOKEN; true' & wait", 2},
	"one that has changed its group": {"set -m; sleep TOKEN & sleep TOKEN & wait", 2},
	"one that never stands still": {
		"export END=$((EPOCHSECONDS+60)) F='trap \"\" TERM; : TOKEN; sleep .0TOKEN; " +
			"((EPOCHSECONDS > END)) || setsid bash -c \"$F\" &'; " +
			"for i in 1 2 3 4 5 6 7 8; do setsid bash -c \"$F\" & done; sleep TOKEN; true", 4,
	},
	"one with many processes everywhere": {
		"for i in $(seq 60); do (setsid sleep TOKEN &); done; sleep TOKEN; true", 61,
	},
}

// TestKill kills a node with commands of all kinds. At the burial none of their processes may live.
func TestKill(t *testing.T) {
	t.Parallel()
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, nil)
			s.starts(k.command, k.processes)
			_ = s.cmd.Process.Kill()
			killed := time.Now()
			if got, want := s.buried(), "buried "+s.Session+", 0 alive"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}

			t.Logf("buried after %s", time.Since(killed).Round(time.Millisecond))
			s.ended(s.pid)
			if left := withToken(s.token); len(left) > 0 {
				t.Errorf("processes %v live", left)
			}
		})
	}
}

// TestAtOnce kills a node that executes all kinds at once.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	for _, k := range kinds {
		s.starts(k.command, k.processes)
	}

	_ = s.cmd.Process.Kill()
	killed := time.Now()
	if got, want := s.buried(), "buried "+s.Session+", 0 alive"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	t.Logf("buried after %s", time.Since(killed).Round(time.Millisecond))
}

// TestUnknownGroup has the node die between the fork and the write of the group.
func TestUnknownGroup(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	s.order("unknown sleep %s & sleep %[1]s; true", s.token)
	_ = s.cmd.Process.Kill() // perhaps before bash has begun
	if got, want := s.buried(), "buried "+s.Session+", 0 alive"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	time.Sleep(100 * time.Millisecond)
	if left := withToken(s.token); len(left) > 0 {
		t.Errorf("processes %v live", left)
	}
}

// TestOthersLive checks that processes of no running command are left alone.
func TestOthersLive(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	other := exec.Command("sleep", "60") // as of another session of the same node
	other.Env = []string{"PATH=" + os.Getenv("PATH"), "GOCRONTAB_SEAT=other-1"}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}

	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	// An attempt that has ended and left a daemon.
	daemon := s.leaves()
	s.order("run sleep %s9", s.token)
	s.await("the second", func() bool { return len(withToken(s.token+"9")) == 1 })
	_ = s.cmd.Process.Kill()
	s.buried()
	for what, pid := range map[string]int{"the daemon of an attempt that has ended": daemon,
		"a command of another session": other.Process.Pid} {
		if !isAlive(pid) {
			t.Errorf("%s was killed", what)
		}
	}

	if left := withToken(s.token + "9"); len(left) > 0 {
		t.Errorf("%v of the running attempt live", left)
	}
}

// TestOver checks that the guard of a node that ended properly does nothing more.
func TestOver(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	daemon := s.leaves()
	s.order("over")
	s.ended(s.pid)
	_ = s.cmd.Process.Kill()
	time.Sleep(200 * time.Millisecond)
	if !isAlive(daemon) {
		t.Error("what was left behind on purpose was killed")
	}

	if s.isBuried() {
		t.Error("it was buried")
	}
}

// TestStopped stops a node. Its commands must be dead before the session expires, and the node must
// be neither killed nor buried.
func TestStopped(t *testing.T) {
	t.Parallel()
	s := newStub(t, mortal)
	for _, name := range []string{"a daemon", "one that ignores SIGTERM", "one with a cleared environment"} {
		s.starts(kinds[name].command, kinds[name].processes)
	}

	stopped := time.Now()
	_ = s.cmd.Process.Signal(unix.SIGSTOP)
	s.await("the commands' death", func() bool { return len(withToken(s.token)) == 0 })
	took := time.Since(stopped)
	t.Logf("dead %s after the stop, with an expiry of %s", took.Round(time.Millisecond), s.Expiry)
	if took < s.Expiry*55/100 || took > s.Expiry {
		t.Errorf("the commands died %s after the stop, want %s to %s", took, s.Expiry*6/10, s.Expiry)
	}

	time.Sleep(s.Expiry)
	if s.isBuried() || !isAlive(s.cmd.Process.Pid) {
		t.Error("a node that can begin nothing was killed or buried")
	}

	_ = s.cmd.Process.Signal(unix.SIGCONT)
	// which may come now, or later
	output := slices.DeleteFunc(s.order("is"), func(line string) bool { return line == "lapsed" })
	if strings.Join(output, ", ") != "is false" {
		t.Errorf("when it goes on it says %q, want that its lease has lapsed", output)
	}

	// A command that it starts all the same does not live long.
	s.order("run sleep %s", s.token)
	s.await("the stale command's death", func() bool { return len(withToken(s.token)) == 0 })
	s.order("lost")
	if output := s.order("sweep"); len(output) > 0 && output[0] != "lapsed" {
		t.Errorf("sweep: %q", output)
	}

	s.order("over")
	s.ended(s.pid)
}

// TestStoppedInside stops a node that executes a handler, or is about to fork. The node must die
// before its session may be taken over.
func TestStoppedInside(t *testing.T) {
	t.Parallel()
	s := newStub(t, mortal)
	s.starts(kinds["a daemon"].command, kinds["a daemon"].processes)
	s.order("inside")
	stopped := time.Now()
	_ = s.cmd.Process.Signal(unix.SIGSTOP)
	if got, want := s.buried(), "buried "+s.Session+", 0 alive"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	if took := time.Since(stopped); took < s.Expiry*5/10 || took > 2*s.Expiry {
		t.Errorf("buried %s after the stop, want about %s", took, s.Expiry*75/100)
	}
	if isAlive(s.cmd.Process.Pid) {
		t.Error("the node lives")
	}
}

// TestStopping checks that handlers of a stopping node have time, whether they use it or not, as
// the node keeps its session. When the lease lapses, handlers and node are killed.
func TestStopping(t *testing.T) {
	t.Parallel()
	for what, orders := range map[string][]string{"no beats any more": {"silent"},
		"it has stopped": {"silent", "part"}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, func(c *stubConfig) { c.Expiry = 4 * time.Second })
			s.starts(kinds["a daemon"].command, kinds["a daemon"].processes)
			s.order("inside")
			s.order("stopping")
			s.await("the commands' death", func() bool { return len(withToken(s.token)) == 0 })
			time.Sleep(s.Expiry / 2)
			if !isAlive(s.cmd.Process.Pid) {
				t.Fatal("the node was killed while its lease was fresh")
			}

			for _, order := range orders {
				s.order("%s", order)
			}

			if got, want := s.buried(), "buried "+s.Session+", 0 alive"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestStoppedBehindAFork stops a node that has forked but has not written the group yet.
func TestStoppedBehindAFork(t *testing.T) {
	t.Parallel()
	s := newStub(t, mortal)
	s.order("unknown sleep %s", s.token)
	s.await("the command", func() bool { return len(withToken(s.token)) > 0 })
	_ = s.cmd.Process.Signal(unix.SIGSTOP)
	s.await("the command's death", func() bool { return len(withToken(s.token)) == 0 })
	time.Sleep(s.Expiry)
	if !isAlive(s.cmd.Process.Pid) {
		t.Error("the node was killed, which could begin nothing")
	}
}

// TestCutOff stops the beats. The commands must die though the node lives, including processes
// outside their groups.
func TestCutOff(t *testing.T) {
	t.Parallel()
	s := newStub(t, mortal)
	s.starts(kinds["a daemon"].command, kinds["a daemon"].processes)
	s.order("silent")
	began := time.Now()
	s.await("the commands' death", func() bool { return len(withToken(s.token)) == 0 })
	if took := time.Since(began); took > s.Expiry {
		t.Errorf("they died after %s, the session expires after %s", took, s.Expiry)
	}
}

// TestLost checks that the node kills its own commands, and the guard the processes outside their
// groups.
func TestLost(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	s.starts("(setsid sleep TOKEN &); sleep TOKEN; true", 3)
	s.order("lost")
	for _, pid := range withToken(s.token) {
		if p, err := stat(pid, nil); err == nil && p.pgrp != p.session {
			_ = unix.Kill(-p.pgrp, unix.SIGKILL)
		}
	}

	s.order("leave") // it keeps the processes that it has left
	if output := s.order("sweep"); len(output) > 0 {
		t.Errorf("sweep: %q", output)
	}
	if left := withToken(s.token); len(left) > 0 {
		t.Errorf("processes %v live", left)
	}

	s.order("over")
	s.ended(s.pid)
}

// TestGuardDies kills and stops guards. The next guard must take over the running commands.
func TestGuardDies(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	s.starts(kinds["a daemon"].command, kinds["a daemon"].processes)
	for what, sig := range map[string]unix.Signal{"killed": unix.SIGKILL, "stopped": unix.SIGSTOP} {
		old := s.guarded()
		if err := unix.Kill(old, sig); err != nil {
			t.Fatal(err)
		}

		if sig == unix.SIGSTOP { // a dead guard may be replaced before we look
			s.await("nothing may begin while the guard is stopped", func() bool {
				return s.order("is")[0] == "is false"
			})
		}

		s.await("a new guard in place of the one that was "+what, func() bool { return s.guarded() != old })
		if isAlive(old) {
			t.Errorf("the guard that was %s lives beside the new one", what)
		}
	}

	if n := len(withToken(s.token)); n != kinds["a daemon"].processes {
		t.Errorf("%d processes live, want %d", n, kinds["a daemon"].processes)
	}

	_ = s.cmd.Process.Kill()
	if got, want := s.buried(), "buried "+s.Session+", 0 alive"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSignals sends the signals that whole groups get: only SIGKILL and SIGSTOP affect a guard.
func TestSignals(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1,
		unix.SIGUSR2, unix.SIGALRM} {
		if err := unix.Kill(s.pid, sig); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}

	if got := s.guarded(); got != s.pid || !isComm(s.pid) {
		t.Errorf("guard %d was replaced by %d", s.pid, got)
	}
	if sid, err := unix.Getsid(s.pid); err != nil || sid != s.pid {
		t.Errorf("session %d, %v: want one of its own", sid, err)
	}
}

// TestHidden looks at a guard as a command could: it holds little, shows nothing, and passes
// nothing on.
func TestHidden(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	out := filepath.Join(t.TempDir(), "out")
	s.order("run ls -l /proc/$$/fd >%s.new; mv %[1]s.new %[1]s", out)
	s.await("the command's word", func() bool { _, err := os.Stat(out); return err == nil })
	fds, _ := os.ReadFile(out)
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.pid))
	if err != nil {
		t.Fatal(err)
	}

	var held []string
	for _, e := range entries {
		to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", s.pid, e.Name()))
		// The Go runtime has some of its own.
		if to != "/dev/null" && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/sys/") &&
			!strings.HasSuffix(to, "/log") {
			held = append(held, to)
			if strings.Contains(string(fds), strings.Fields(to)[0]) {
				t.Errorf("the command has %s, too:\n%s", to, fds)
			}
		}
	}

	if len(held) != 3 {
		t.Errorf("the guard holds %q, want memory, a pipe and a socket", held)
	}
	for _, file := range []string{"cmdline", "environ"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.pid, file))
		if err != nil || strings.Contains(string(text), s.token) {
			t.Errorf("%s shows the DSN, or nothing: %q, %v", file, text, err)
		}
	}
}

// TestCgroups checks that no process escapes from a cgroup.
func TestCgroups(t *testing.T) {
	t.Parallel()
	base := cgroupBase(t)
	var cgroup string
	s := newStub(t, func(c *stubConfig) {
		cgroup = filepath.Join(base, "run-"+c.Session)
		if err := os.Mkdir(cgroup, 0o755); err != nil {
			t.Skip(err)
		}
		c.Cgroups = cgroup
	})

	t.Cleanup(func() { _ = unix.Rmdir(cgroup) })
	// It clears its environment, leaves its group and session, and loses its parent.
	s.starts("env -i setsid bash -c '(setsid sleep TOKEN &)'; sleep TOKEN; true", 3)
	s.leaves()
	s.order("run sleep %s9", s.token)
	s.await("the last", func() bool { return len(withToken(s.token+"9")) == 1 })
	_ = s.cmd.Process.Kill()

	// The daemon of the ended attempt is recognized by its environment.
	if got, want := s.buried(), "buried "+s.Session+", 1 alive"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// cgroupBase returns a folder in which cgroups can be made.
func cgroupBase(t *testing.T) string {
	for _, dir := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil {
			if _, err := os.Stat(filepath.Join(dir, "cgroup.controllers")); err == nil {
				return dir
			}
		}
	}
	t.Skip("no cgroup v2 to write to")
	return ""
}

// TestFull checks that no attempt begins without a seat.
func TestFull(t *testing.T) {
	t.Parallel()
	c := stubConfig{Expiry: time.Second}
	cfg := c.guard(nil)
	cfg.Seats = 2
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}

	one, two := g.Enter(1, false), g.Enter(2, false)
	if one == nil || two == nil || g.Enter(3, false) != nil {
		t.Error("want two seats and no third")
	}

	one.Leave()
	if g.Enter(4, true) == nil {
		t.Error("a seat that was left is not vacant")
	}
	if got := g.memory.read(); len(got) != 2 || got[0].run != 4 || got[0].inside != working || got[1].run != 2 {
		t.Errorf("got %+v", got)
	}

	g.Lost()
	two.Leave()
	if got := g.memory.read(); len(got) != 2 || got[0].inside != working {
		t.Errorf("after the loss: got %+v, want both", got)
	}
	if g.Alive() {
		t.Error("alive without a process")
	}
}
