package privatedb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// settle is how long a lock may stay taken after its holder was killed: a child forked in that instant holds every
// file of its parent until it executes its own program.
const settle = 500 * time.Millisecond

// ErrInUse is of a folder whose database another process runs.
var ErrInUse = errors.New("is in use")

// lockParent makes this process the only parent of the folder. Its number is written down for the error message
// alone: the lock is the flock.
func lockParent(ctx context.Context, dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "parent.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(ctx, f, settle); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s %w by process %s: one database folder has one owner", dir, ErrInUse, firstLine(f))
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	if err := errors.Join(f.Truncate(0), writeAt(f, fmt.Sprintln(os.Getpid()))); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lockServer takes the lock that every server of the folder inherits. If one from a previous life still has it,
// that one is ended first: its parent is dead, or lockParent would not have let us come here.
func lockServer(ctx context.Context, dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "server.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(ctx, f, settle); errors.Is(err, unix.EWOULDBLOCK) {
		if err := evict(ctx, f, dir); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	} else if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return f, nil
}

// evict ends the orphan that holds f. A watcher may be at the same work; both only hasten it.
func evict(ctx context.Context, f *os.File, dir string) error {
	pid := readPID(dir)
	if !ours(pid, dir) {
		pid = 0 // the number was reused, or the file is gone: not for us to kill
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if pid > 0 {
			_ = syscall.Kill(-pid, s) // gone already, or not permitted: the lock tells
		}
		if err := flock(ctx, f, patience); !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
	}
	if pid > 0 {
		return fmt.Errorf("%s is held by server process %d, left over from an earlier run; it does not end: kill it", dir, pid)
	}
	return fmt.Errorf("%s is held by a server left over from an earlier run; find and end it (lsof %s)", dir, f.Name())
}

// flock takes f's lock, trying for at most d. The error is unix.EWOULDBLOCK when somebody keeps it.
func flock(ctx context.Context, f *os.File, d time.Duration) error {
	for end := time.Now().Add(d); ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EINTR && err != unix.EWOULDBLOCK || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(poll):
		}
	}
}

// unlock gives the lock back even while a child forked this instant still holds a copy of f.
func unlock(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}

func pidFile(dir string) string { return filepath.Join(dir, "server.pid") }

func readPID(dir string) int {
	b, err := os.ReadFile(pidFile(dir))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid < 2 {
		return 0
	}
	return pid
}

// ours tells whether process pid was started on the folder: its command line names it. Numbers are reused, and the
// pid file may be older than the machine's last boot.
func ours(pid int, dir string) bool {
	if pid == 0 {
		return false
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		line, err = exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	}
	return err == nil && strings.Contains(string(line), filepath.Join(dir, "data"))
}

func firstLine(f *os.File) string {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0)
	line, _, _ := strings.Cut(string(b[:n]), "\n")
	return line
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}
