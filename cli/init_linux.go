package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"go-crontab/internal/guard"
)

// initGrace is how long an init waits, after the node has ended, for what the node leaves behind: its guard, which kills the
// node's commands and tells the other nodes.
const initGrace = 5 * time.Second

// beInit runs args in a child if this is process 1, as in a container without an init of its own, and returns the
// child's exit code. When process 1 ends the kernel kills all others at once: the guard of a node that was killed could not bury it,
// and the other nodes would wait for its lease to end. Process 1 also collects processes that nobody else waits for.
//
// The child is another process than process 1, so this happens once.
func beInit(args []string, in io.Reader, out, errs io.Writer) (code int, done bool) {
	if os.Getpid() != 1 {
		return 0, false
	}

	guard.Conceal() // it has the node's environment
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(errs, "go-crontab as process 1:", err)
		return exitFailed, true
	}

	// Before the start: a signal that arrives between the two waits in the channel.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGCHLD)
	defer signal.Stop(signals)

	cmd := exec.Command(self, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs

	// A group of its own, or Ctrl-C would reach it twice: from the terminal and from us.
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, int(f.Fd())
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(errs, "go-crontab as process 1:", err)
		return exitFailed, true
	}

	return collect(cmd.Process.Pid, signals), true
}

// collect waits for all children, hands signals on to child, and returns its exit code: 128 and the number of the signal if one
// has killed it.
func collect(child int, signals <-chan os.Signal) int {
	code, running := 0, true
	var late <-chan time.Time
	for {
		for {
			var status unix.WaitStatus
			pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if errors.Is(err, unix.ECHILD) {
				return code
			}
			if err != nil || pid == 0 {
				break
			}

			if pid != child {
				continue
			}

			running, late = false, time.After(initGrace)
			code = status.ExitStatus()
			if status.Signaled() {
				code = 128 + int(status.Signal())
			}
		}
		select {
		case s := <-signals:
			if sig, ok := s.(unix.Signal); ok && sig != unix.SIGCHLD && running {
				_ = unix.Kill(child, sig)
			}
		case <-late:
			return code
		}
	}
}
