package privatedb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// makeDir chooses and makes the folder. Its path is absolute.
func (db *DB) makeDir() (err error) {
	if db.temporary() {
		db.dir, err = os.MkdirTemp("", "gocrontab-db-")
		return err
	}

	if db.dir, err = filepath.Abs(db.options.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(db.dir, 0o700); err != nil {
		return err
	}

	// A later start recognizes a server by this path in its command line, so resolve symbolic
	// links.
	if db.dir, err = filepath.EvalSymlinks(db.dir); err != nil {
		return err
	}
	if strings.Contains(db.dir, ":") {
		return errors.New("the path has a colon, which the database server does not accept; use another folder")
	}
	return nil
}

// socketMax is the longest socket path that works everywhere, in bytes. On BSD and macOS, sun_path
// has 104 bytes.
const socketMax = 100

// placeSocket chooses the path of the socket. The socket is in the data folder if that path is
// short enough and fits into a DSN. If not, the socket gets its own folder with a short path.
func (db *DB) placeSocket() error {
	db.socket = filepath.Join(db.data(), "sock")
	if len(db.socket) <= socketMax && fitsDSN(db.socket) {
		return nil
	}

	for _, temp := range []string{os.TempDir(), "/tmp"} {
		if len(temp) > socketMax-len("/gocrontab-0123456789/sock") || !fitsDSN(temp) {
			continue
		}
		dir, err := os.MkdirTemp(temp, "gocrontab-")
		if err != nil {
			return err
		}
		db.socket = filepath.Join(dir, "sock")
		return nil
	}

	return fmt.Errorf("no folder for a socket: %s is too long or contains @; set TMPDIR to another folder",
		os.TempDir())
}

// fitsDSN reports whether a DSN can contain the path of a socket. A path with an @ does not fit,
// because a DSN parser takes everything before the last @ as user and password.
func fitsDSN(path string) bool { return !strings.Contains(path, "@") }

// removals returns the folders that are removed with the server.
func (db *DB) removals() (dirs []string) {
	if db.temporary() {
		dirs = append(dirs, db.dir)
	}
	if dir := filepath.Dir(db.socket); dir != db.data() {
		dirs = append(dirs, dir)
	}
	return dirs
}

func (db *DB) temp() string    { return filepath.Join(db.dir, "tmp") }
func (db *DB) data() string    { return filepath.Join(db.dir, "data") }
func (db *DB) logPath() string { return filepath.Join(db.dir, "server.log") }
