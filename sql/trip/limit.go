package trip

import (
	"context"

	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// CountJobs counts the living jobs of an app, including new jobs of this transaction.
func CountJobs(r sql.Reader, app string) (int64, error) {
	const query = `
		SELECT COUNT(*)
		FROM job FORCE INDEX (listed)
		WHERE app_id = (SELECT id FROM app WHERE name = ?) AND living = 1`
	found, err := sql.Select(r, "count jobs of an app", scanID, query, app)
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

// CountWaiting counts the waiting runs of an app, up to most. It reads the waiting runs of all
// apps.
func CountWaiting(r sql.Reader, app string, most int64) (int64, error) {
	const query = `
		SELECT COUNT(*)
		FROM (
			SELECT 1
			FROM run FORCE INDEX (live)
			WHERE owner = -1 AND app_id = (SELECT id FROM app WHERE name = ?)
			LIMIT ?) some`
	found, err := sql.Select(r, "count waiting runs of an app", scanID, query, app, most)
	if err != nil {
		return 0, err
	}

	return found[0], nil
}

// A negative limit means no limit. It comes only from a change outside the program.
const limitColumns = "GREATEST(COALESCE(jobs, 0), 0), GREATEST(COALESCE(runs_per_minute, 0), 0)," +
	" GREATEST(COALESCE(waiting, 0), 0), GREATEST(COALESCE(output, 0), 0)"

// startsColumn is bounded, so that a change outside the program cannot make the sum overflow.
const startsColumn = "LEAST(GREATEST(starts, 0), 1000000000)"

// Limits returns the limits of all apps with limits.
func Limits(r sql.Reader) (map[string]job.AppLimits, error) {
	out := map[string]job.AppLimits{}
	err := sql.Each(r, "read limits", func(rows *sql.Rows) error {
		var app string
		var l job.AppLimits
		err := rows.Scan(&app, &l.Jobs, &l.RunsPerMinute, &l.Waiting, &l.Output)
		out[app] = l
		return err
	}, "SELECT app, "+limitColumns+" FROM app_limit")
	return out, err
}

// HoldLimits returns the limits of an app, and keeps others from counting against them until this
// transaction is over. For an app without limits it locks nothing. For multi-writer clusters, it
// locks the row by writing it, as TakeLocks does.
func HoldLimits(tx *sql.Tx, app string) (l job.AppLimits, found bool, err error) {
	hold := `
		UPDATE app_limit FORCE INDEX (PRIMARY)
		SET ` + sql.Next("taken") + `
		WHERE app = ?`
	n, err := tx.Exec("lock limits", hold, app)
	if err != nil || n == 0 {
		return l, false, err
	}
	err = sql.Each(tx, "read limits", func(rows *sql.Rows) error {
		found = true
		return rows.Scan(&l.Jobs, &l.RunsPerMinute, &l.Waiting, &l.Output)
	}, "SELECT "+limitColumns+" FROM app_limit FORCE INDEX (PRIMARY) WHERE app = ?", app)
	return l, found, err
}

// AppStarts returns the starts of an app from the second `since` on: the starts of all sessions,
// and requested runs.
func AppStarts(r sql.Reader, app string, since int64) (job.Starts, error) {
	out := job.Starts{}
	scan := func(rows *sql.Rows) error {
		var at, n int64
		err := rows.Scan(&at, &n)
		out[at] += n
		return err
	}
	const query = "SELECT at, " + startsColumn + " FROM app_start FORCE INDEX (PRIMARY) WHERE app = ? AND at >= ?"
	return out, sql.Each(r, "read starts of an app", scan, query, app, since)
}

// AddAskedRuns counts manual runs against the limits of their app when they are requested. The
// caller holds the limits of the app.
func AddAskedRuns(tx *sql.Tx, app string, at, runs int64) error {
	_, err := tx.Exec("count asked runs", `
		INSERT INTO app_start (app, at, session_id, starts)
		VALUES (?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE starts = `+startsColumn+` + VALUES(starts)`,
		app, at, uuid.Nil[:], runs)
	return err
}

// StartsBeside returns the starts of the apps from the second `since` on. It leaves out the starts
// of the given session.
func StartsBeside(r sql.Reader, apps []string, since int64, session uuid.UUID) (map[string]job.Starts, error) {
	out := map[string]job.Starts{}
	if len(apps) == 0 {
		return out, nil
	}

	list, args := sql.In([]any{since, session[:]}, apps)
	query := `
		SELECT app, at, ` + startsColumn + `
		FROM app_start FORCE INDEX (PRIMARY)
		WHERE at >= ? AND session_id <> ? AND app IN ` + list

	err := sql.Each(r, "read starts of apps", func(rows *sql.Rows) error {
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
	}, query, args...)
	return out, err
}

// TellStarts writes the starts of a session, by app and second. The numbers are absolute, so
// writing them twice is harmless.
func TellStarts(ctx context.Context, db *sql.DB, session uuid.UUID, starts map[string]job.Starts) error {
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

	return db.Tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec("count starts", "INSERT INTO app_start (app, at, session_id, starts) VALUES "+
			sql.Values(len(args)/columns, columns)+" ON DUPLICATE KEY UPDATE starts = VALUES(starts)", args...)
		return err
	})
}
