package privatedb

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

func TestServerEndsWithItsParent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do  string
		end func(*os.Process) error
	}{
		"by kill -9":  {"stay", (*os.Process).Kill},
		"by kill -15": {"stay", func(p *os.Process) error { return p.Signal(syscall.SIGTERM) }},
		"by os.Exit":  {"exit", func(*os.Process) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := live(t, helper(t, tc.do, ""))
			if err := tc.end(l.cmd.Process); err != nil {
				t.Fatal(err)
			}

			_ = l.cmd.Wait()
			eventually(t, "the temporary folder is gone", func() bool {
				_, err := os.Stat(l.dir)
				return errors.Is(err, os.ErrNotExist)
			})

			if err := syscall.Kill(l.server, 0); err == nil && !zombie(l.server) {
				t.Errorf("server %d lives on", l.server)
			}
		})
	}
}

func TestNextLifeFindsTheData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := live(t, helper(t, "stay", dir))
	l.die(t)
	eventually(t, "the server has ended", func() bool { return !alive(t, dir) })
	write(t, start(t, small(dir)))
}

// TestOrphanIsEvicted kills the parent and its watcher, which leaves a server.
func TestOrphanIsEvicted(t *testing.T) {
	t.Parallel()
	for name, watched := range map[string]bool{
		"nobody ends it but the next start": false,
		"its watcher is at it already":      true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l := live(t, helper(t, "stay", dir))
			if !watched {
				if err := syscall.Kill(l.watcher, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}

			l.die(t)
			if !watched && !alive(t, dir) {
				t.Fatal("the server ended without a watcher: nothing is tested here")
			}

			db := start(t, small(dir))
			if db.PID() == l.server {
				t.Errorf("got the old server %d", l.server)
			}
		})
	}
}

func TestForeignProcessIsNotKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()

	// The pid file of an earlier boot has the number of a foreign process.
	if ours(os.Getpid(), dir) {
		t.Error("this test passes for a server")
	}

	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}

	defer func() { _ = sleep.Process.Kill(); _ = sleep.Wait() }()
	if ours(sleep.Process.Pid, dir) {
		t.Error("sleep passes for a server")
	}
}

func TestParentKilledDuringFirstStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := helper(t, "stay", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	eventually(t, "the data folder is being made", func() bool {
		made, _ := filepath.Glob(filepath.Join(dir, "data.new-*", "*"))
		return len(made) > 0
	})

	life{cmd: cmd}.die(t)
	if _, err := os.Stat(filepath.Join(dir, "data")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a half-made data folder has the name of a whole one (%v)", err)
	}

	write(t, start(t, small(dir)))
}

// TestAsNormalUser matters when tests run as root, as in containers. Otherwise all other tests
// cover it.
func TestAsNormalUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("we are a normal user")
	}

	dir, err := os.MkdirTemp("", "privatedb-user-")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	const nobody = 65534
	binary, data := filepath.Join(dir, "test"), filepath.Join(dir, "db")
	if out, err := exec.Command("cp", os.Args[0], binary).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(data, 0o700), os.Chown(data, nobody, nobody)); err != nil {
		t.Fatal(err)
	}

	cmd := helper(t, "stay", data)
	cmd.Path, cmd.Dir = binary, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	l := live(t, cmd)
	l.die(t)
	eventually(t, "the server has ended", func() bool { return !alive(t, data) })

	if db, err := Start(t.Context(), small(data)); err == nil {
		db.Stop()
		t.Error("root takes another user's data folder")
	}
}

// zombie reports whether a process is dead and not reaped yet.
func zombie(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err != nil || len(out) > 0 && out[0] == 'Z'
}
