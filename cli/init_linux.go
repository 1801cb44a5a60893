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

// initGrace limits how long we wait for the node's guard after the node has ended. The guard kills
// the node's commands and informs the other nodes.
const initGrace = 5 * time.Second

// beInit runs args in a child process if this is process 1, as in a container without an init. It
// returns the child's exit code.
//
// When process 1 ends, the kernel kills all other processes immediately. If the node were process 1
// and were killed, its guard could not clean up. The other nodes would then have to wait until the
// node's lease expires. Process 1 also reaps orphaned processes.
//
// The child is not process 1, so it does not start another child.
func beInit(args []string, in io.Reader, out, errs io.Writer) (code int, done bool) {
	if os.Getpid() != 1 {
		return 0, false
	}

	guard.Conceal() // process 1 has the node's environment, with secrets
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(errs, "go-crontab as process 1:", err)
		return exitFailed, true
	}

	// Subscribe before the start, so that no signal is lost.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGCHLD)
	defer signal.Stop(signals)

	cmd := exec.Command(self, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs

	// The child gets its own process group. Otherwise it would receive Ctrl-C twice: from the
	// terminal and from us.
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

// collect reaps all children and forwards signals to child. It returns the child's exit code, or
// 128 plus the signal that killed it.
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
