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

// defaultStateDir returns the folder for data that must outlive the process.
func defaultStateDir(node string) (string, error) {
	return appDir("XDG_STATE_HOME", ".local/state", "/var/lib/go-crontab", fileName(node))
}

// fileName converts a node's name to a single path element. The name may contain any character.
func fileName(node string) string {
	name := url.PathEscape(node)
	if name == "." || name == ".." {
		name = "node-" + name
	}
	return name
}

// errTaken means that another process uses a state folder.
var errTaken = errors.New("another node on this machine uses it; give each node its own --node or --state-dir")

// lockDir creates a folder and locks it until the process ends. Otherwise two nodes could send the
// same spooled outcomes and delete each other's.
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

// takeStateDir chooses the folder in which outcomes are spooled, or "" for none. A folder that the
// user has set must work. If the user has set none, a node also runs without a usable folder,
// because a container's file system is often read-only. Such a node loses outcomes only if it
// cannot reach MySQL while it stops.
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

	log.Warn("no state folder: if MySQL is away while this node stops, outcomes of runs are lost; set --state-dir",
		"error", err)
	return "", func() {}, nil
}
