package privatedb

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// watcherScript ends the process group last announced on its input when the input ends, then removes the folders
// given as arguments. $1 is the first signal to send, $2 how many tenths of a second to wait before KILL. It gives
// up on a group that outlives KILL by 5 s: an unreaped process, where nothing reaps orphans. The form of kill is the
// one that dash, bash and busybox agree on: busybox takes no --, dash no negative number after -s.
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

// watch starts a watcher that removes the given folders at the end. With hurry the server's data is to be thrown
// away, and it is killed at once.
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
	// A session of its own: neither Ctrl-C nor a closed terminal reaches it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the watcher: %w", err), out.Close())
	}
	return &watcher{cmd: cmd, pipe: out}, nil
}

// announce names the process group to end; 0 is none.
func (w *watcher) announce(group int) error {
	if _, err := fmt.Fprintln(w.pipe, group); err != nil {
		return fmt.Errorf("tell the watcher about process %d: %w", group, err)
	}
	return nil
}

// close lets the watcher do its work and waits for it.
func (w *watcher) close() error {
	return errors.Join(w.pipe.Close(), ignoreExit(w.cmd.Wait()))
}

// ignoreExit drops the exit code: the watcher's is that of its last command, and a killed watcher harms nobody.
func ignoreExit(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}
