package privatedb

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// watcherScript reads process groups from its input. When the input ends, the script ends the last
// group and removes the folders in its arguments. $1 is the first signal, and $2 the time until
// KILL in tenths of a second. The script gives up if the group still exists 5 s after KILL,
// because dead processes remain on a system where nothing reaps orphans. dash, bash and busybox
// agree only on this form of kill: busybox accepts no --, and dash no negative number after -s.
const watcherScript = `
trap '' HUP INT TERM
group=0
while read -r line; do group=$line; done
signal=$1 limit=$2
shift 2
if [ "$group" -gt 0 ]; then
	n=0
	kill "-$signal" "-$group"
	while kill -0 "-$group"; do
		[ "$n" -eq "$limit" ] && kill -KILL "-$group"
		[ "$n" -ge "$((limit + 50))" ] && break
		sleep 0.1 || sleep 1
		n=$((n + 1))
	done
fi
[ "$#" -eq 0 ] || rm -rf -- "$@"
`

// watcher is the parent's end of the pipe.
type watcher struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// watch starts a watcher that removes the given folders at the end. With hurry the watcher kills
// the server at once, because its data is not needed any more.
func watch(hurry bool, remove []string) (*watcher, error) {
	signal, limit := "TERM", int(patience/(100*time.Millisecond))
	if hurry {
		signal, limit = "KILL", 0
	}

	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()

	args := append([]string{"-c", watcherScript, "sh", signal, fmt.Sprint(limit)}, remove...)
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir = "/"
	cmd.Stdin = in

	// In its own session, the watcher gets no signal from Ctrl-C or a closed terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the watcher: %w", err), out.Close())
	}
	return &watcher{cmd: cmd, pipe: out}, nil
}

// announce names the process group to end. 0 means none.
func (w *watcher) announce(group int) error {
	if _, err := fmt.Fprintln(w.pipe, group); err != nil {
		return fmt.Errorf("tell the watcher about process %d: %w", group, err)
	}
	return nil
}

// close makes the watcher end the server and remove the folders. It waits until that is done.
func (w *watcher) close() error {
	return errors.Join(w.pipe.Close(), ignoreExit(w.cmd.Wait()))
}

// ignoreExit drops the error about an exit code. The watcher's exit code is only that of its last
// command, and a killed watcher does no harm.
func ignoreExit(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}
