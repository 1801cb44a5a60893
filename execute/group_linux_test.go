package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"go-crontab/job"
)

// Without a pidfd everything works by number, as on old kernels.
func TestWithoutPidfd(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"a quick end":          "true",
		"a leftover in the bg": "sleep 60 >/dev/null 2>&1 & echo $! >pid",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shell(t, func(c *Config) { c.PipeWait = hasty })
			g := s.live.enter()
			c, err := s.start(context.Background(), g, attempt(command))
			if err != nil {
				t.Fatal(err)
			}
			_ = g.exit.Close()
			g.exit = nil
			status, err := c.untilExit(t.Context())
			c.untilEmpty(t.Context())
			s.live.leave(g)
			c.untilDrained()
			if res := c.result(status, err); res.Outcome != job.Succeeded {
				t.Errorf("got %v %q", res.Outcome, res.Reason)
			}
			if b, err := os.ReadFile(filepath.Join(s.cfg.Dir, "pid")); err == nil && alive(pidIn(t, filepath.Join(s.cfg.Dir, "pid"))) {
				t.Errorf("process %s lives", b)
			}
		})
	}
}

// A reused number is a stranger's: it gets no signal.
func TestAReusedNumberIsLeftAlone(t *testing.T) {
	t.Parallel()
	stranger := exec.Command("sleep", "60")
	stranger.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	ours := &group{pgid: stranger.Process.Pid, reaped: true}
	ours.signal(unix.SIGKILL)
	if !ours.empty(true) {
		t.Error("a stranger's group was taken for ours")
	}
	time.Sleep(20 * time.Millisecond)
	if !alive(stranger.Process.Pid) {
		t.Error("a stranger was killed")
	}
	_ = stranger.Process.Kill()
	_ = stranger.Wait()
}

func TestOnlyZombies(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if onlyZombies(pid) {
		t.Error("while it lives: got true")
	}
	_ = cmd.Process.Kill()
	eventually(t, "a zombie is seen", func() bool { return onlyZombies(pid) })
	_ = cmd.Wait()
	if onlyZombies(pid) {
		t.Error("with nobody in the group: got true")
	}
}

// As the init of a container we inherit the orphans of our commands, and must collect them.
func TestOrphansAreCollectedByASubreaper(t *testing.T) {
	if os.Getenv("EXECUTE_SUBREAPER") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestOrphansAreCollectedByASubreaper$", "-test.v")
		cmd.Env = append(os.Environ(), "EXECUTE_SUBREAPER=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	s := shell(t, func(c *Config) { c.PipeWait = hasty })
	for _, command := range []string{"sleep .1 >/dev/null 2>&1 &", "sleep 60 >/dev/null 2>&1 &", "(sleep 60 & sleep 60) & sleep 60"} {
		a := attempt(command)
		a.Timeout = 500 * time.Millisecond
		res := run(t, s, a)
		if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); !errors.Is(err, unix.ECHILD) {
			t.Errorf("%s: children after %v %q: got %v, want ECHILD", command, res.Outcome, res.Reason, err)
		}
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	for stat, want := range map[string]struct {
		state byte
		pgid  int
	}{
		"12 (bash) S 1 12 12 0 -1": {'S', 12},
		"12 (a) Z 1 ) R 4 5 6":     {'R', 5},
		"12 (a":                    {0, 0},
		"":                         {0, 0},
		"12 (a) Z":                 {0, 0},
	} {
		if state, pgid := parseStat([]byte(stat)); state != want.state || pgid != want.pgid {
			t.Errorf("%q: got %c %d, want %c %d", stat, state, pgid, want.state, want.pgid)
		}
	}
}

// Waiting for a command must not cost a thread: a node may have a thousand of them.
func TestWaitingTakesNoThread(t *testing.T) {
	s := shell(t)
	const n = 60
	before := threads(t)
	done := make(chan struct{}, n)
	for range n {
		go func() { run(t, s, attempt("echo >>started; exec sleep 60")); done <- struct{}{} }()
	}
	eventually(t, "all started", func() bool {
		b, _ := os.ReadFile(filepath.Join(s.cfg.Dir, "started"))
		return len(b) == n
	})
	if got := threads(t); got > before+n/2 {
		t.Errorf("threads: had %d, got %d with %d commands", before, got, n)
	}
	s.KillAll(unix.SIGKILL, nil)
	for range n {
		<-done
	}
}

func threads(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(tasks)
}

// pidIn reads a pid that a command wrote to a file.
func pidIn(t testing.TB, path string) (pid int) {
	t.Helper()
	eventually(t, "a pid in "+path, func() bool {
		b, _ := os.ReadFile(path)
		n, _ := fmt.Sscan(string(b), &pid)
		return n == 1 && strings.HasSuffix(string(b), "\n")
	})
	return pid
}

// alive reports whether pid exists and is no zombie.
func alive(pid int) bool {
	if unix.Kill(pid, 0) == unix.ESRCH {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !os.IsNotExist(err)
	}
	state, _ := parseStat(stat)
	return state != 'Z' && state != 'X'
}
