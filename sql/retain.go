package sql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"time"

	"go-crontab/job"

	"github.com/google/uuid"
)

// Retentions are the rules of apps, and, under "", of the cluster. One that cannot be read, since a hand wrote it, is an
// error: nothing is to go by a rule that nobody can read.
func (db *DB) Retentions(ctx context.Context) (map[string]job.Retention, error) {
	out := map[string]job.Retention{}
	err := db.query(ctx, "read retention", retentionRows(out), "SELECT app, spec FROM retention")
	return out, err
}

// UnreadableRule is that the rule of an app, or of the cluster, "", is none that this version knows.
type UnreadableRule struct {
	App string
	Err error
}

func (e *UnreadableRule) Error() string {
	if e.App == "" {
		return "the rule of the cluster cannot be read: " + e.Err.Error()
	}
	return fmt.Sprintf("the rule of app %q cannot be read: %v", e.App, e.Err)
}

func (e *UnreadableRule) Unwrap() error { return e.Err }

func retentionRows(out map[string]job.Retention) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var app, spec string
		if err := rows.Scan(&app, &spec); err != nil {
			return err
		}
		r, err := job.DecodeRetention(spec)
		if err != nil {
			return &UnreadableRule{app, err}
		}
		out[app] = r
		return nil
	}
}

// LockRetention reads a rule and keeps others from changing it; nil when there is none. It locks the cluster's rule too: so
// the first rule of an app, which has no row to lock, waits for HoldRules as well.
func (tx *Tx) LockRetention(app string) (*job.Retention, error) {
	var out *job.Retention
	err := tx.query("lock retention", func(rows *stdsql.Rows) error {
		var of, spec string
		if err := rows.Scan(&of, &spec); err != nil || of != app {
			return err
		}
		r, err := job.DecodeRetention(spec)
		if err != nil {
			r = job.Retention{} // whoever writes it anew mends it
		}
		out = &r
		return nil
	}, "SELECT app, spec FROM retention FORCE INDEX (PRIMARY) WHERE app IN ('', ?) ORDER BY app FOR UPDATE", app)
	return out, err
}

// PutRetention writes a rule. An empty one of an app is no row.
func (tx *Tx) PutRetention(app string, r job.Retention, who string, now job.Micros) error {
	if app != "" && r == (job.Retention{}) {
		_, err := tx.Exec("drop retention", "DELETE FROM retention WHERE app = ?", app)
		return err
	}
	_, err := tx.Exec("put retention", "INSERT INTO retention (app, spec, who, updated) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE spec = VALUES(spec), who = VALUES(who), updated = VALUES(updated)",
		app, r.Encode(), Cut(who, 128), int64(now))
	return err
}

// Names of chores.
const (
	ChoreRetention = "retention" // removes records
	ChoreOutput    = "output"    // removes output of apps over their limit
)

// Chore is how something stands that one node at a time does for all.
type Chore struct {
	Session  uuid.UUID // who does it; uuid.Nil: nobody
	Until    job.Micros
	At       int64 // how far it is
	Ended    job.Micros
	Removed  int64
	Archived int64
	Failures int64
	Error    string
	ErrorAt  job.Micros
}

// Retaining is how the removal of records stands.
func (db *DB) Retaining(ctx context.Context) (c Chore, err error) {
	err = db.query(ctx, "read chore", func(rows *stdsql.Rows) error {
		var session []byte
		err := rows.Scan(&session, &c.Until, &c.At, &c.Ended, &c.Removed, &c.Archived, &c.Failures, &c.Error, &c.ErrorAt)
		c.Session, _ = uuid.FromBytes(session)
		return err
	}, "SELECT session_id, until, at_id, ended, removed, archived, failures, error, error_at FROM chore WHERE name = 'retention'")
	return c, err
}

// TakeChore has a session do a chore for a while, unless another one does. It tells whether it does, and how far the one
// before it was. An end so far ahead that nobody writes it is a hand's, and holds nobody up.
func (db *DB) TakeChore(ctx context.Context, name string, session uuid.UUID, hold time.Duration) (mine bool, at int64, err error) {
	err = db.Tx(ctx, func(tx *Tx) error {
		n, err := tx.Exec("take chore", "UPDATE chore FORCE INDEX (PRIMARY) SET session_id = ?, until = "+Clock+" + ? WHERE name = ? AND (session_id = ? OR session_id IS NULL OR until < "+Clock+" OR until > "+Clock+" + ?)",
			session[:], hold.Microseconds(), name, session[:], 2*hold.Microseconds())
		if mine = n == 1; err != nil || !mine {
			return err
		}
		return tx.query("read chore", func(rows *stdsql.Rows) error { return rows.Scan(&at) }, "SELECT at_id FROM chore WHERE name = ?", name)
	})
	return mine && err == nil, at, err
}

// ChoreDone is what a session did of it since it said so last.
type ChoreDone struct {
	At                int64 // how far it is
	Ended             job.Micros
	Removed, Archived int64
	Failures          int64 // since a round without any
	Error             string
	ErrorAt           job.Micros
}

// TellChore writes down what a session did of the removal of records.
func (db *DB) TellChore(ctx context.Context, session uuid.UUID, d ChoreDone) error {
	return db.Tx(ctx, func(tx *Tx) error {
		_, err := tx.Exec("tell of chore", "UPDATE chore FORCE INDEX (PRIMARY) SET at_id = ?, ended = GREATEST(ended, ?), "+Added("removed")+", "+Added("archived")+", failures = ?,"+
			" error = IF(? = '', error, ?), error_at = GREATEST(error_at, ?) WHERE name = 'retention' AND session_id = ?",
			d.At, int64(d.Ended), d.Removed, d.Archived, d.Failures, Cut(d.Error, 512), Cut(d.Error, 512), int64(d.ErrorAt), session[:])
		return err
	})
}

// ErrUnreadable is that the stored output of a run is not what this version writes: a newer one did, or it is damaged.
var ErrUnreadable = errors.New("stored output cannot be read")

// HoldRules keeps others from changing the rules of an app and of the cluster, or returns ErrMoved if they are not the given ones any
// more.
func (tx *Tx) HoldRules(app string, rules map[string]job.Retention) error {
	found := map[string]job.Retention{}
	err := tx.query("hold retention", retentionRows(found), `
		SELECT app, spec
		FROM retention FORCE INDEX (PRIMARY)
		WHERE app IN ('', ?)
		ORDER BY app
		LOCK IN SHARE MODE`, app)
	if err == nil && (found[""] != rules[""] || found[app] != rules[app]) {
		err = fmt.Errorf("hold the rules of app %q: %w", app, ErrMoved)
	}
	return err
}
