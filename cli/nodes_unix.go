//go:build unix

package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// nodeCommands are the commands that run nodes.
func nodeCommands(c *console) []*cobra.Command {
	return []*cobra.Command{devCommand(c), serveCommand(c), benchCommand(c)}
}

// hiddenCommands are the commands that nodeCommands start.
func hiddenCommands(c *console) []*cobra.Command { return []*cobra.Command{benchNodeCommand(c)} }

// isLocked reports whether a process holds a lock on a file.
func isLocked(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}
