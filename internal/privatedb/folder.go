package privatedb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// makeDir settles on an absolute folder and makes it.
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
	// The path without symbolic links is how the next life recognises a server of this folder.
	if db.dir, err = filepath.EvalSymlinks(db.dir); err != nil {
		return err
	}
	if strings.Contains(db.dir, ":") {
		return errors.New("a colon in the path ends it for the server: use another folder")
	}
	return nil
}

// socketMax is the longest socket path that fits everywhere, in bytes: sun_path holds 104 on BSD and macOS.
const socketMax = 100

// placeSocket keeps the socket with the data when its path is short enough and fits into a DSN, else in a short folder of
// its own.
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
	return fmt.Errorf("no folder for a socket: %s is too long, or has an @ in it; have TMPDIR name another one", os.TempDir())
}

// fitsDSN tells whether the path of a socket can stand in a DSN: what stands before its last @ is taken for the password.
func fitsDSN(path string) bool { return !strings.Contains(path, "@") }

// removals are the folders that go with the server.
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
