package privatedb

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// patience is the time for a server to shut down before it is killed.
const patience = 20 * time.Second

// poll is the pause between two checks of a process. A check costs one system call. To wait for
// the process instead, a goroutine would have to live as long as the server, and the leak check of
// every test would report it.
const poll = 5 * time.Millisecond

// launcherScript waits for a line, and then becomes the program in its arguments. The parent sends
// the line when the watcher knows the process id. If the parent dies first, the input ends and the
// program never starts.
const launcherScript = `read -r go && exec "$@" </dev/null`

// process is a child that leads a process group and is known to the watcher.
type process struct {
	pid      int
	watcher  *watcher
	logStart int64 // size of the log at the start

	mu     sync.Mutex
	reaped bool
	status syscall.WaitStatus
}

// spawn starts a program that writes to log and, while it lives, keeps the file lock open.
func spawn(w *watcher, log, lock *os.File, env []string, args ...string) (*process, error) {
	info, err := log.Stat()
	if err != nil {
		return nil, err
	}

	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	defer out.Close()

	cmd := exec.Command("/bin/sh", append([]string{"-c", launcherScript, "sh"}, args...)...)
	cmd.Dir, cmd.Env = "/", env

	// Give the program only plain files. A pipe to one of our goroutines would break when we die.
	// If the server kept our stderr open, `go test` would wait for the server.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, log, log
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}

	p := &process{pid: cmd.Process.Pid, watcher: w, logStart: info.Size()}
	if err := cmd.Process.Release(); err != nil { // exited reaps it, not os.Process
		return nil, errors.Join(err, p.kill())
	}
	if err := w.announce(p.pid); err != nil {
		return nil, errors.Join(err, p.kill())
	}

	// If we die here, the launcher gets an end of file instead of this line, and the watcher ends
	// the launcher.
	if _, err := fmt.Fprintln(out, "go"); err != nil {
		return nil, errors.Join(fmt.Errorf("release process %d: %w", p.pid, err), p.kill())
	}
	return p, nil
}

// exited reports whether the process has ended, and reaps it.
func (p *process) exited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return true
	}

	for {
		pid, err := syscall.Wait4(p.pid, &p.status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if pid != p.pid && err != syscall.ECHILD {
			return false
		}

		p.reaped = true
		// From now on another process may get the id.
		_ = p.watcher.announce(0)
		return true
	}
}

// signal sends s to the process group. It does nothing if the leader was reaped.
func (p *process) signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	if err := syscall.Kill(-p.pid, s); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("send %s to process group %d: %w", s, p.pid, err)
	}
	return nil
}

// kill kills the process and returns when it is gone.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !p.waitFor(patience) {
		return fmt.Errorf("process %d is still running after SIGKILL", p.pid)
	}
	return nil
}

// stop sends SIGTERM, and kills the process if it takes longer than patience.
func (p *process) stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	if p.waitFor(patience) {
		return nil
	}
	return p.kill()
}

// waitFor reports whether the process ended within d.
func (p *process) waitFor(d time.Duration) bool {
	for end := time.Now().Add(d); !p.exited(); time.Sleep(poll) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// ending describes how the process ended. Call it only after exited has returned true.
func (p *process) ending() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status.Signaled() {
		return p.status.Signal().String()
	}
	return fmt.Sprintf("exit code %d", p.status.ExitStatus())
}
