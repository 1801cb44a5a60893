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

// settle bounds the time for which a lock may stay taken after its holder was killed. If the holder
// has just forked, the child keeps all files of its parent open until its exec.
const settle = 500 * time.Millisecond

// ErrInUse is the error for a folder whose database another process runs.
var ErrInUse = errors.New("is in use")

// lockParent makes this process the only parent of the folder. The lock itself is the flock. The
// process id in the file is only for error messages.
func lockParent(ctx context.Context, dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "parent.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}

	if err := flock(ctx, f, settle); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s %w by process %s; only one process can use a database folder", dir, ErrInUse,
				firstLine(f))
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}

	if err := errors.Join(f.Truncate(0), writeAt(f, fmt.Sprintln(os.Getpid()))); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lockServer takes the lock that every server of the folder inherits. If an earlier server still
// holds the lock, lockServer ends that server first. Its parent is dead, because we hold the
// parent's lock.
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

// evict ends the orphaned server that holds the lock of f, and takes the lock. A watcher may end
// the server at the same time, which does no harm.
func evict(ctx context.Context, f *os.File, dir string) error {
	pid := readPID(dir)
	if !ours(pid, dir) {
		pid = 0 // the id was reused, or the file is missing: kill nothing
	}

	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if pid > 0 {
			_ = syscall.Kill(-pid, s) // an error is fine: the lock shows the result
		}
		if err := flock(ctx, f, patience); !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
	}

	if pid > 0 {
		return fmt.Errorf("%s is in use by server process %d of an earlier run, which does not end; kill it",
			dir, pid)
	}

	return fmt.Errorf("%s is in use by a server of an earlier run; find it with lsof %s and end it", dir, f.Name())
}

// flock takes the lock of f, and tries for at most d. If another process keeps the lock, the error
// is unix.EWOULDBLOCK.
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

// unlock releases the lock even while a child that was just forked holds a copy of f.
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

// ours reports whether the command line of process pid names the folder. The pid alone proves
// nothing: ids are reused, and the pid file may be older than the last boot.
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
