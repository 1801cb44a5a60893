//go:build unix

package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// defaultStateDir is where a node keeps what must outlive its process.
func defaultStateDir(node string) (string, error) {
	return appDir("XDG_STATE_HOME", ".local/state", "/var/lib/go-crontab", fileName(node))
}

// fileName makes one path element of a node's name, which may hold anything.
func fileName(node string) string {
	name := url.PathEscape(node)
	if name == "." || name == ".." {
		name = "node-" + name
	}
	return name
}

// errTaken tells that another process uses a state folder.
var errTaken = errors.New("another node on this machine uses it; give each its own --node")

// lockDir makes a folder and takes it for this process, whose end gives it back: two nodes that replay one spool would
// remove each other's outcomes.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}

	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}

	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errTaken
		}
		return nil, fmt.Errorf("state folder %s: %w", dir, err)
	}

	return f, nil
}

// takeStateDir settles where outcomes are spooled, "" for nowhere. A folder that was asked for must work. Without one,
// a node that cannot have the usual folder (a container's file system is often read-only) runs all the same: it loses
// outcomes only when MySQL is out of reach while it stops.
func takeStateDir(asked, node string, log *slog.Logger) (dir string, release func(), err error) {
	dir = asked
	if dir == "" {
		dir, err = defaultStateDir(node)
	}

	var f *os.File
	if err == nil {
		f, err = lockDir(dir)
	}

	switch {
	case err == nil:
		return dir, func() { f.Close() }, nil
	case asked != "":
		return "", nil, err
	}

	log.Warn("no state folder: outcomes that cannot be written while this node stops are lost", "error", err)
	return "", func() {}, nil
}
