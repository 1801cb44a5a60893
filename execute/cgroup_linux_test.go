package execute

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"go-crontab/job"
)

// realCgroups creates a cgroup for a test in the real tree.
func realCgroups(t *testing.T, need ...string) *cgroups {
	t.Helper()
	own, err := ownCgroup("/proc")
	if err != nil {
		t.Skip(err)
	}

	base := filepath.Join(own, fmt.Sprintf("execute-test-%d-%s", os.Getpid(), filepath.Base(t.TempDir())))
	if err := os.Mkdir(base, 0o755); err != nil {
		t.Skipf("no cgroup can be made in that of this process: %v", err)
	}

	t.Cleanup(func() {
		for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			err := unix.Rmdir(base)
			if err == nil {
				return
			}
			if time.Now().After(end) {
				t.Errorf("remove the test's cgroup: %v", err)
				return
			}
		}
	})

	c, err := openCgroups(base, "/proc")
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range need {
		if c.lack[name] != nil {
			t.Skipf("%v", c.lack[name])
		}
	}

	return c
}

// inCgroup makes the cgroup of an attempt without any limit in it, for kernels without controllers.
func inCgroup(t *testing.T, c *cgroups, s *Shell, a Attempt) (*command, *group) {
	t.Helper()
	g := s.live.enter()
	tree, err := c.create(a.Session, a.Launch.Run, job.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.plan(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	p.cgroup = tree
	cmd, err := s.begin(context.Background(), g, a, p)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, g
}

// finish does the rest of Execute after the fork.
func finish(ctx context.Context, s *Shell, c *command, g *group) job.Result {
	status, err := c.untilExit(ctx)
	c.untilEmpty(ctx)
	c.leaveCgroup()
	s.live.leave(g)
	c.untilDrained()
	return c.result(status, err)
}

func TestACommandIsBornInItsCgroup(t *testing.T) {
	t.Parallel()
	c := realCgroups(t)
	s := shell(t)
	a := attempt("cat /proc/self/cgroup; sleep .1 & (sleep .01) & wait")
	cmd, g := inCgroup(t, c, s, a)
	dir := cmd.cgroup.dir
	res := finish(context.Background(), s, cmd, g)
	if out := string(res.Output.Head); res.Outcome != job.Succeeded || !strings.HasSuffix(strings.TrimSpace(out), "/run-"+a.Session.String()+"-"+job.RunID(a.Launch.Run)) || res.Reason.Text != "" {
		t.Errorf("got %v %q, in %q", res.Outcome, res.Reason, out)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("its cgroup is still there")
	}
}

// A process that left the group, a grandchild of bash, is still in the cgroup.
func TestWhatLeavesTheGroupDiesInTheCgroup(t *testing.T) {
	t.Parallel()
	c := realCgroups(t)
	s := shell(t)
	const daemon = "(setsid bash -c 'trap \"\" TERM; echo $$ >pid; exec sleep 60' >/dev/null 2>&1 &); while [ ! -s pid ]; do :; done; "
	cmd, g := inCgroup(t, c, s, attempt(daemon+"echo done"))
	dir := cmd.cgroup.dir
	res := finish(context.Background(), s, cmd, g)
	if res.Outcome != job.Succeeded || res.Reason.Text != "it left processes outside its process group, and the node killed them" {
		t.Errorf("got %v %q", res.Outcome, res.Reason)
	}
	if pid := pidIn(t, filepath.Join(s.cfg.Dir, "pid")); alive(pid) {
		t.Errorf("process %d lives", pid)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("its cgroup is still there")
	}

	// KillAll kills such processes as well, at once.
	if err := os.Remove(filepath.Join(s.cfg.Dir, "pid")); err != nil {
		t.Fatal(err)
	}
	cmd, g = inCgroup(t, c, s, attempt(daemon+"sleep 60"))
	pid := pidIn(t, filepath.Join(s.cfg.Dir, "pid"))
	done := make(chan job.Result)
	go func() { done <- finish(context.Background(), s, cmd, g) }()
	if n := s.KillAll(unix.SIGKILL, context.DeadlineExceeded); n != 1 {
		t.Errorf("KillAll: got %d, want 1", n)
	}
	if res := <-done; res.Outcome != job.Killed || alive(pid) {
		t.Errorf("got %v %q, the daemon lives: %v", res.Outcome, res.Reason, alive(pid))
	}
}

// On kernels before 5.14 there is no cgroup.kill.
func TestKillOneByOne(t *testing.T) {
	t.Parallel()
	k := newTree(t, "pids")
	delete(k.files, "cgroup.kill")
	c, err := k.open("")
	if err != nil {
		t.Fatal(err)
	}

	a := attempt("")
	g, err := c.create(a.Session, a.Launch.Run, job.Limits{PIDs: 1})
	if err != nil {
		t.Fatal(err)
	}

	defer g.remove()
	var sleepers []*exec.Cmd
	pids := "0\nx\n"

	for range 2 {
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		sleepers = append(sleepers, cmd)
		pids += fmt.Sprintln(cmd.Process.Pid)
	}

	k.put(g.dir, "cgroup.procs", pids)
	g.kill()

	for _, cmd := range sleepers {
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Errorf("got %v", err)
		}
	}
}

func TestRealSharedLimits(t *testing.T) {
	t.Parallel()
	c := realCgroups(t, "memory", "pids")
	s := shell(t)
	s.cgroups = c
	res := with(t, s, "head -c 200000000 /dev/zero | tail -c 190000000 >/dev/null", job.CommandOptions{Limits: job.Limits{Memory: 32 << 20}})
	wantFailed(t, "memory", res, "killed by SIGKILL; it used more memory than limits.memory (32MiB)")
	res = with(t, s, "for i in {1..30}; do sleep 5 & done; wait", job.CommandOptions{Limits: job.Limits{PIDs: 10}})
	if !strings.Contains(res.Reason.Text, "by limits.pids, 10") {
		t.Errorf("processes: got %v %q", res.Outcome, res.Reason)
	}
	wantOutput(t, "within them", with(t, s, "echo on", job.CommandOptions{Limits: job.Limits{Memory: 64 << 20, PIDs: 10}}), "on\n")
}

// If a fork into a cgroup fails because of the cgroup, the error names it.
func TestAForkIntoACgroupThatIsNone(t *testing.T) {
	t.Parallel()
	k := newTree(t, "pids")
	s := shell(t)
	var err error
	if s.cgroups, err = k.open(""); err != nil {
		t.Fatal(err)
	}
	wantFailed(t, "a folder that is no cgroup", with(t, s, "true", job.CommandOptions{Limits: job.Limits{PIDs: 1}}), "limits: start bash in cgroup "+k.base)
	if entries, err := filepath.Glob(k.base + "/run-*"); err != nil || len(entries) > 0 {
		t.Errorf("left are %v, %v", entries, err)
	}
	wantFailed(t, "no folder to begin in", with(t, s, "true", job.CommandOptions{Dir: "/nonexistent", Limits: job.Limits{PIDs: 1}}), "start bash")
}

// Commands without limits share their session's cgroup, and may leave daemons in it.
func TestTheCgroupOfASession(t *testing.T) {
	t.Parallel()
	c := realCgroups(t)
	s := shell(t)
	s.cgroups = c
	a := attempt("cat /proc/self/cgroup")
	in := func(session uuid.UUID) string {
		t.Helper()
		a.Session = session
		res := run(t, s, a)
		if res.Outcome != job.Succeeded {
			t.Fatalf("got %v %q", res.Outcome, res.Reason)
		}
		return filepath.Base(strings.TrimSpace(string(res.Output.Head)))
	}

	one, two := uuid.New(), uuid.New()
	if got, want := in(one), "run-"+one.String(); got != want || filepath.Join(c.base, got) != s.Cgroups(one) {
		t.Errorf("got %s, want %s", got, want)
	}

	// The next session has its own cgroup, and the last one is removed.
	if got, want := in(two), "run-"+two.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	if _, err := os.Stat(s.Cgroups(one)); err == nil {
		t.Error("the cgroup of the last session is still there")
	}

	// If it is removed from outside, a new one replaces it.
	if err := unix.Rmdir(s.Cgroups(two)); err != nil {
		t.Fatal(err)
	}

	if got, want := in(two), "run-"+two.String(); got != want {
		t.Errorf("after it was removed: got %s, want %s", got, want)
	}

	// If none can be created, commands run without.
	c.instead(two, unix.ENOSYS)
	if got := in(two); strings.HasPrefix(got, "run-") {
		t.Errorf("got %s, want that of this process", got)
	}

	_ = unix.Rmdir(s.Cgroups(two))
}
