package sql

import (
	"context"
	stdsql "database/sql"

	"go-crontab/job"
)

// ofApps is the condition that a column names one of some apps: nil is all of them, an empty list none.
func ofApps(column string, apps []string) (cond string, args []any) {
	switch {
	case apps == nil:
		return "TRUE", nil
	case len(apps) == 0:
		return "FALSE", nil
	}
	list, args := in(nil, apps)
	return column + " IN " + list, args
}

// appOf runs a query for one app; ErrNotFound when there is no row.
func (db *DB) appOf(ctx context.Context, what, query string, args ...any) (app string, err error) {
	found := false
	err = db.query(ctx, what, func(rows *stdsql.Rows) error { found = true; return rows.Scan(&app) }, query, args...)
	if err == nil && !found {
		err = ErrNotFound
	}
	return app, err
}

// HasJobs reports whether an app has jobs.
func (db *DB) HasJobs(ctx context.Context, app string) (bool, error) {
	_, err := db.appOf(ctx, "look for an app", "SELECT app FROM job FORCE INDEX (app_living) WHERE app = ? AND living = 1 LIMIT 1", app)
	if err == ErrNotFound {
		return false, nil
	}
	return err == nil, err
}

// Apps lists the apps that have jobs. It reads one entry of an index for each, however many jobs there are.
func (db *DB) Apps(ctx context.Context) (apps []string, err error) {
	const next = "SELECT app FROM job FORCE INDEX (app_living) WHERE app > ? AND living = 1 ORDER BY app LIMIT 1"
	for app := ""; ; apps = append(apps, app) {
		app, err = db.appOf(ctx, "find the next app", next, app)
		switch {
		case err == ErrNotFound:
			return apps, nil
		case err != nil:
			return nil, err
		}
	}
}

// AppOfJob returns the app of a job, also of a deleted one; or ErrNotFound.
func (db *DB) AppOfJob(ctx context.Context, id int64) (string, error) {
	return db.appOf(ctx, "read app of a job", "SELECT app FROM job WHERE id = ?", id)
}

// AppOfRun returns the app to which a run belongs, executing or ended; or ErrNotFound.
func (db *DB) AppOfRun(ctx context.Context, l job.Launch) (string, error) {
	// The task first: a run that ends in between is found in history then.
	for _, query := range []string{
		"SELECT " + appOfTask + " FROM task t FORCE INDEX (owner) JOIN job j ON j.id = t.job_id WHERE t.session_id = ? AND t.launch = ?",
		"SELECT " + appOfRun + " FROM history h JOIN job j ON j.id = h.job_id WHERE h.session_id = ? AND h.launch = ?",
	} {
		if app, err := db.appOf(ctx, "read app of a run", query, l.Session[:], l.N); err != ErrNotFound {
			return app, err
		}
	}
	return "", ErrNotFound
}

// AppOfBackfill returns the app to which the job of a backfill belongs, or ErrNotFound.
func (db *DB) AppOfBackfill(ctx context.Context, id int64) (string, error) {
	return db.appOf(ctx, "read app of a backfill", "SELECT j.app FROM backfill b JOIN job j ON j.id = b.job_id WHERE b.id = ?", id)
}

// restrict adds the condition that a column names one of some apps to others.
func restrict(where *[]string, args *[]any, column string, apps []string) {
	cond, values := ofApps(column, apps)
	*where, *args = append(*where, cond), append(*args, values...)
}
