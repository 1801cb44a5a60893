package privatedb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Stop ends the server: TERM and after 20 s KILL, or KILL at once if its data is temporary. It
// releases the folder, and removes a temporary folder. Later calls do nothing.
func (db *DB) Stop() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.stopped {
		return nil
	}

	db.stopped = true
	defer running.Delete(db)
	var errs []error
	if p := db.process; p != nil {
		if db.temporary() {
			errs = append(errs, p.kill())
		} else {
			errs = append(errs, p.stop())
		}
	}

	if db.child != nil {
		errs = append(errs, os.RemoveAll(pidFile(db.dir)), unlock(db.child))
	}
	if db.watcher != nil {
		errs = append(errs, db.watcher.close())
	}
	if db.log != nil {
		errs = append(errs, db.log.Close())
	}

	if db.temporary() && db.dir != "" {
		errs = append(errs, os.RemoveAll(db.dir)) // the watcher has removed it, unless it never started
	}

	// Unlock last: until here, no other process may use the folder.
	if db.parent != nil {
		errs = append(errs, unlock(db.parent))
	}
	return errors.Join(errs...)
}

// Kill ends the server, like kill -9, and returns when the server is gone. The folder stays
// locked. Restart starts the server again.
func (db *DB) Kill() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.stopped {
		return errStopped
	}
	return db.process.kill()
}

// Restart ends the server if it lives (TERM, after 20 s KILL) and starts it on the same data,
// socket and port. ctx bounds only the start. After an error the server is down, and Restart may be
// called again.
func (db *DB) Restart(ctx context.Context) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.stopped {
		return errStopped
	}
	if err := db.process.stop(); err != nil {
		return err
	}
	if err := db.launch(ctx); err != nil {
		return fmt.Errorf("restart the private database in %s: %w", db.dir, err)
	}

	return nil
}

var errStopped = errors.New("the private database was stopped")

// Wait blocks until the current server has ended for any reason, including Stop, Kill and Restart.
// It returns the cause of ctx, or an error with the last lines of the server's log.
func (db *DB) Wait(ctx context.Context) error {
	db.mu.Lock()
	p := db.process
	db.mu.Unlock()
	for !p.exited() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * poll):
		}
	}

	return fmt.Errorf("the private database in %s ended: %s%s", db.dir, p.ending(), db.tail(p))
}
