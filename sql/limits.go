package sql

import (
	"context"
	stdsql "database/sql"

	"go-crontab/job"

	"github.com/google/uuid"
)

// What a hand wrote below zero is no limit.
const limitColumns = "GREATEST(COALESCE(jobs, 0), 0), GREATEST(COALESCE(runs_per_minute, 0), 0)," +
	" GREATEST(COALESCE(waiting, 0), 0), GREATEST(COALESCE(output, 0), 0)"

// startsColumn leaves room to add up what a hand wrote.
const startsColumn = "LEAST(GREATEST(starts, 0), 1000000000)"

// Limits returns the limits of all apps that have some.
func (db *DB) Limits(ctx context.Context) (map[string]job.AppLimits, error) {
	out := map[string]job.AppLimits{}
	err := db.query(ctx, "read limits", func(rows *stdsql.Rows) error {
		var app string
		var l job.AppLimits
		err := rows.Scan(&app, &l.Jobs, &l.RunsPerMinute, &l.Waiting, &l.Output)
		out[app] = l
		return err
	}, "SELECT app, "+limitColumns+" FROM app_limit")
	return out, err
}

// HoldLimits returns the limits of an app and keeps others from counting against them until this transaction is over.
// Nothing is locked where there are none. It writes the row, as TakeLocks does, for engines with several writers.
func (tx *Tx) HoldLimits(app string) (l job.AppLimits, found bool, err error) {
	n, err := tx.Exec("hold limits", "UPDATE app_limit FORCE INDEX (PRIMARY) SET "+Next("taken")+" WHERE app = ?", app)
	if err != nil || n == 0 {
		return l, false, err
	}
	err = tx.query("read limits", func(rows *stdsql.Rows) error {
		found = true
		return rows.Scan(&l.Jobs, &l.RunsPerMinute, &l.Waiting, &l.Output)
	}, "SELECT "+limitColumns+" FROM app_limit FORCE INDEX (PRIMARY) WHERE app = ?", app)
	return l, found, err
}

// PutLimits writes the limits of an app in place of those before.
func (tx *Tx) PutLimits(app string, l job.AppLimits, who string, now job.Micros) error {
	null := func(n int64) any {
		if n == 0 {
			return nil
		}
		return n
	}
	_, err := tx.Exec("put limits", `
		INSERT INTO app_limit (app, jobs, runs_per_minute, waiting, output, who, updated)
		VALUES (?, ?, ?, ?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE
			jobs = VALUES(jobs), runs_per_minute = VALUES(runs_per_minute), waiting = VALUES(waiting),
			output = VALUES(output), who = VALUES(who), updated = VALUES(updated)`,
		app, null(l.Jobs), null(l.RunsPerMinute), null(l.Waiting), null(int64(l.Output)), Cut(who, 128), int64(now))
	return err
}

// DropLimits removes the limits of an app.
func (tx *Tx) DropLimits(app string) error {
	_, err := tx.Exec("drop limits", "DELETE FROM app_limit WHERE app = ?", app)
	return err
}

const appStarts = "SELECT at, " + startsColumn + " FROM app_start FORCE INDEX (PRIMARY) WHERE app = ? AND at >= ?"

func startRows(out job.Starts) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var at, n int64
		err := rows.Scan(&at, &n)
		out[at] += n
		return err
	}
}

// AppStarts returns the starts of an app since a second, whoever started them.
func (tx *Tx) AppStarts(app string, since int64) (job.Starts, error) {
	out := job.Starts{}
	err := tx.query("read starts of an app", startRows(out), appStarts, app, since)
	return out, err
}

// AppStarts returns the starts of an app since a second, whoever started them.
func (db *DB) AppStarts(ctx context.Context, app string, since int64) (job.Starts, error) {
	out := job.Starts{}
	err := db.query(ctx, "read starts of an app", startRows(out), appStarts, app, since)
	return out, err
}

// AddAskedRuns counts runs that somebody asks for. The caller holds the limits of the app.
func (tx *Tx) AddAskedRuns(app string, at, runs int64) error {
	_, err := tx.Exec("count asked runs", `
		INSERT INTO app_start (app, at, session_id, starts)
		VALUES (?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE starts = `+startsColumn+` + VALUES(starts)`,
		app, at, uuid.Nil[:], runs)
	return err
}

// StartsBeside returns the starts of some apps since a second, those of one session left out.
func (db *DB) StartsBeside(ctx context.Context, apps []string, since int64, session uuid.UUID) (map[string]job.Starts, error) {
	out := map[string]job.Starts{}
	if len(apps) == 0 {
		return out, nil
	}
	list, args := In([]any{since, session[:]}, apps)
	err := db.query(ctx, "read starts of apps", func(rows *stdsql.Rows) error {
		var (
			app   string
			at, n int64
		)
		err := rows.Scan(&app, &at, &n)
		if out[app] == nil {
			out[app] = job.Starts{}
		}
		out[app][at] += n
		return err
	}, "SELECT app, at, "+startsColumn+" FROM app_start FORCE INDEX (PRIMARY) WHERE at >= ? AND session_id <> ? AND app IN "+list, args...)
	return out, err
}

// TellStarts writes how many starts a session has had in some seconds. They are absolute numbers, so it does no harm to
// write them twice.
func (db *DB) TellStarts(ctx context.Context, session uuid.UUID, starts map[string]job.Starts) error {
	const columns = 4
	var args []any
	for app, of := range starts {
		for at, n := range of {
			args = append(args, app, at, session[:], n)
		}
	}
	if len(args) == 0 {
		return nil
	}
	return db.Tx(ctx, func(tx *Tx) error {
		_, err := tx.Exec("tell of starts", "INSERT INTO app_start (app, at, session_id, starts) VALUES "+
			Values(len(args)/columns, columns)+" ON DUPLICATE KEY UPDATE starts = VALUES(starts)", args...)
		return err
	})
}

// DropStarts removes some of the counts that are older than a second, or later than another one: MySQL's clock was put
// back since. It returns how many it removed.
func (db *DB) DropStarts(ctx context.Context, before, behind int64, limit int) (removed int, err error) {
	const query = `
		DELETE FROM app_start
		WHERE at < ? OR at > ?
		LIMIT ?`
	return removed, db.Tx(ctx, func(tx *Tx) error {
		n, err := tx.Exec("drop old starts", query, before, behind, limit)
		removed = int(n)
		return err
	})
}
