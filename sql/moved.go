package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"slices"

	"go-crontab/job"
)

// A run belongs to the app that its job was in when the run started. A row of history has the number of that app, and table
// job_app has the names of the apps in which a job was before. Of an attempt that executes while its job is moved, run_app has
// the app.

const (
	// appOfRun is the app of a run of history h, whose job is j. Nothing is looked up for a job that was never moved.
	appOfRun = "CASE WHEN h.app = CRC32(j.app) THEN j.app ELSE COALESCE((SELECT b.app FROM job_app b FORCE INDEX (PRIMARY) WHERE b.job_id = h.job_id AND b.number = h.app), j.app) END"
	// appOfTask is the app of a task t that executes, whose job is j.
	appOfTask = "COALESCE((SELECT b.app FROM run_app b FORCE INDEX (PRIMARY) WHERE b.session_id = t.session_id AND b.launch = t.launch), j.app)"
)

// leaveApp notes that a job, whose row is locked, goes from one app to another: the runs that it has had stay behind.
func (tx *Tx) leaveApp(id int64, from, to string) error {
	for _, app := range []string{from, to} {
		if err := tx.checkNumber(id, app); err != nil {
			return err
		}
	}
	if appNumber(from) == appNumber(to) {
		return sameNumber(from, to)
	}
	_, err := tx.exec("note an app of a job", "INSERT INTO job_app (job_id, number, app) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE app = VALUES(app)", id, appNumber(from), from)
	if err != nil {
		return err
	}
	// With the job's row locked none of its tasks is started. One that was noted with an earlier move stays in that app.
	_, err = tx.exec("note apps of attempts", "INSERT INTO run_app (session_id, launch, app)"+
		" SELECT session_id, launch, ? FROM task FORCE INDEX (due) WHERE job_id = ? AND state = 2 ON DUPLICATE KEY UPDATE app = run_app.app", from, id)
	return err
}

// checkNumber refuses an app that shares its number with another one in which the job was: nobody could tell to which of the
// two a run belongs.
func (tx *Tx) checkNumber(id int64, app string) error {
	other := ""
	err := tx.query("look for an app of that number", func(rows *stdsql.Rows) error { return rows.Scan(&other) },
		"SELECT app FROM job_app FORCE INDEX (PRIMARY) WHERE job_id = ? AND number = ? AND app <> ?", id, appNumber(app), app)
	if err == nil && other != "" {
		err = sameNumber(other, app)
	}
	return err
}

func sameNumber(one, other string) error {
	return job.Problems{{Field: "app", Message: fmt.Sprintf("%q and %q have the same checksum, so the runs of a job that was in both could not be told apart; choose another name", one, other)}}
}

// AppsOfJob returns the app of a job, also of a deleted one, and the apps in which it was before; or ErrNotFound.
func (db *DB) AppsOfJob(ctx context.Context, id int64) ([]string, error) {
	var apps []string
	err := db.query(ctx, "read apps of a job", func(rows *stdsql.Rows) error {
		var app string
		err := rows.Scan(&app)
		apps = append(apps, app)
		return err
	}, "SELECT app FROM job FORCE INDEX (PRIMARY) WHERE id = ? UNION ALL SELECT b.app FROM job_app b FORCE INDEX (PRIMARY) WHERE b.job_id = ? AND EXISTS (SELECT 1 FROM job WHERE id = b.job_id)", id, id)
	if err == nil && len(apps) == 0 {
		err = ErrNotFound
	}
	return apps, err
}

// DropRunApps removes the apps of some attempts that have ended: their rows of history say it.
func (db *DB) DropRunApps(ctx context.Context, limit int) (int, error) {
	var over []job.Launch
	err := db.query(ctx, "find apps of attempts that have ended", func(rows *stdsql.Rows) error {
		var l job.Launch
		err := rows.Scan(&l.Session, &l.N)
		over = append(over, l)
		return err
	}, "SELECT b.session_id, b.launch FROM run_app b WHERE NOT EXISTS (SELECT 1 FROM task t FORCE INDEX (owner)"+
		" WHERE t.session_id = b.session_id AND t.launch = b.launch) LIMIT ?", limit)
	if err != nil || len(over) == 0 {
		return 0, err
	}
	return len(over), db.Tx(ctx, func(tx *Tx) error {
		for _, l := range over {
			if _, err := tx.exec("drop app of an attempt", "DELETE FROM run_app WHERE session_id = ? AND launch = ?", l.Session[:], l.N); err != nil {
				return err
			}
		}
		return nil
	})
}

// learnMoved sets the apps of runs whose job was moved while they executed.
func (tx *Tx) learnMoved(runs []job.Run, moved []int64) error {
	for i := range runs {
		r := &runs[i]
		if r.App != "" || !slices.Contains(moved, r.JobID) {
			continue
		}
		err := tx.query("read app of an attempt", func(rows *stdsql.Rows) error { return rows.Scan(&r.App) },
			"SELECT app FROM run_app FORCE INDEX (PRIMARY) WHERE session_id = ? AND launch = ?", r.Launch.Session[:], r.Launch.N)
		if err != nil {
			return err
		}
	}
	return nil
}
