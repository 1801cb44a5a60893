package privatedb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// initialise makes the data folder unless it exists. It makes the folder under another name and
// renames it when it is complete. The caller holds both locks.
func (db *DB) initialise(ctx context.Context) error {
	leftovers, err := filepath.Glob(filepath.Join(globEscape(db.dir), "data.new-*"))
	if err != nil {
		return err
	}

	for _, path := range append(leftovers, db.temp()) {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}

	if err := os.Mkdir(db.temp(), 0o700); err != nil {
		return err
	}

	switch info, err := os.Stat(db.data()); {
	case err == nil:
		return checkData(db.data(), info)
	case !errors.Is(err, os.ErrNotExist):
		return err
	}

	fresh, err := os.MkdirTemp(db.dir, "data.new-")
	if err != nil {
		return err
	}
	if err := db.fill(ctx, fresh); err != nil {
		return errors.Join(fmt.Errorf("make the data folder %s: %w", db.data(), err), os.RemoveAll(fresh))
	}

	return os.Rename(fresh, db.data())
}

// fill makes a data folder in an empty folder.
func (db *DB) fill(ctx context.Context, fresh string) error {
	if seed := db.options.Seed; seed != "" {
		return os.CopyFS(fresh, os.DirFS(seed))
	}
	args, err := db.initArgs(fresh)
	if err != nil {
		return err
	}
	return db.run(ctx, args)
}

// initArgs returns the command that fills an empty folder. root has no password, because the mode
// of the folder decides who can reach the socket.
func (db *DB) initArgs(fresh string) ([]string, error) {
	if !db.server.MariaDB {
		args := append([]string{db.server.Path, "--no-defaults", "--initialize-insecure", "--datadir=" + fresh},
			asRoot()...)
		return append(args, db.tuning()...), nil
	}

	script, base, err := db.server.installer()
	if err != nil {
		return nil, err
	}

	// Leave out asRoot. With its flag, the script would call a chown, which fails if the path has
	// spaces. Without the flag, the script also runs as root.
	args := []string{script, "--no-defaults", "--datadir=" + fresh, "--auth-root-authentication-method=normal",
		"--skip-test-db", "--skip-name-resolve",
		"--force", // works even if "localhost" does not resolve, as in a container without /etc/hosts
	}

	if base != "" {
		args = append(args, "--basedir="+base)
	}
	return append(args, db.tuning()...), nil
}

// run executes a command and waits for its end.
func (db *DB) run(ctx context.Context, args []string) error {
	p, err := db.spawn(args)
	if err != nil {
		return err
	}

	for !p.exited() {
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), p.kill())
		case <-time.After(poll):
		}
	}

	if p.status.ExitStatus() != 0 {
		return fmt.Errorf("%s: %s%s", args[0], p.ending(), db.tail(p))
	}
	return nil
}

// checkData refuses a data folder of another user. A server of root would leave files that the
// owner cannot open. For other users, the server's own message would be less clear.
func checkData(path string, info os.FileInfo) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}

	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, and this process runs as user %d; use that user or another folder",
			path, st.Uid, os.Geteuid())
	}

	if info.Mode().Perm() != 0o700 {
		return os.Chmod(path, 0o700) // a user that reaches the socket inside is root in the database
	}
	return nil
}

// globEscape escapes the special characters of filepath.Glob.
func globEscape(path string) string {
	escaped := make([]byte, 0, len(path))
	for i := range len(path) {
		switch path[i] {
		case '*', '?', '[', '\\':
			escaped = append(escaped, '\\')
		}
		escaped = append(escaped, path[i])
	}
	return string(escaped)
}
