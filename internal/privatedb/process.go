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

// patience is how long a server gets to shut down before it is killed.
const patience = 20 * time.Second

// poll is the pause between two looks at a process. Looking costs a system call; waiting would cost a goroutine
// per server for its whole life, which every leak check of every test would find.
const poll = 5 * time.Millisecond

// launcherScript becomes the program in its arguments once told to. Until then it is nothing but a process id: if
// the parent dies before the watcher knows that id, the input ends and the program never starts.
const launcherScript = `read -r go && exec "$@" </dev/null`

// process is a child that leads a process group and that the watcher knows.
type process struct {
	pid      int
	watcher  *watcher
	logStart int64 // the log's size when it started

	mu     sync.Mutex
	reaped bool
	status syscall.WaitStatus
}

// spawn starts a program that holds lock open as long as it lives and writes to log.
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
	// Plain files only. A pipe read by a goroutine of ours would break with us, and our own stderr, held open by
	// the server, would keep `go test` waiting.
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
	// If we die here, the watcher ends a launcher that waits for this line and gets an end of file instead.
	if _, err := fmt.Fprintln(out, "go"); err != nil {
		return nil, errors.Join(fmt.Errorf("let process %d go: %w", p.pid, err), p.kill())
	}
	return p, nil
}

// exited tells whether the process has ended, and reaps it when it has.
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
		// From here on the number may become somebody else's.
		_ = p.watcher.announce(0)
		return true
	}
}

// signal sends s to the process group, if it still has its leader.
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

// kill ends the process without ceremony and returns when it is gone.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !p.waitFor(patience) {
		return fmt.Errorf("process %d survives SIGKILL", p.pid)
	}
	return nil
}

// stop asks the process to end and kills it when it takes longer than patience.
func (p *process) stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	if p.waitFor(patience) {
		return nil
	}
	return p.kill()
}

// waitFor tells whether the process ended within d.
func (p *process) waitFor(d time.Duration) bool {
	for end := time.Now().Add(d); !p.exited(); time.Sleep(poll) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// ending says how the process ended. Only after exited.
func (p *process) ending() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status.Signaled() {
		return p.status.Signal().String()
	}
	return fmt.Sprintf("exit code %d", p.status.ExitStatus())
}
