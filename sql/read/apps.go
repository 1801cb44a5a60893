package read

import (
	"context"
	"slices"

	"go-crontab/sql"
)

// appsOf returns the ids of the apps that a filter allows. nil means all apps. none reports whether
// the filter matches no app.
func appsOf(r sql.Reader, app string, apps []string) (ids []int32, none bool, err error) {
	switch {
	case app == "" && apps == nil:
		return nil, false, nil
	case app != "" && apps != nil && !slices.Contains(apps, app):
		return nil, true, nil
	case app != "":
		apps = []string{app}
	}

	for part := range slices.Chunk(apps, idsAtOnce) {
		query := `
			SELECT id
			FROM app FORCE INDEX (name)
			WHERE name IN ` + places(len(part))

		found, err := sql.Select(r, "read apps", scanID, query, texts(part)...)
		if err != nil {
			return nil, false, err
		}

		for _, id := range found {
			ids = append(ids, int32(id))
		}
	}

	slices.Sort(ids)
	return ids, len(ids) == 0, nil
}

// inApps returns the SQL condition that a run belongs to one of some apps. If apps is nil, which
// means all apps, the condition is empty. none reports whether none of the apps exists.
func inApps(r sql.Reader, apps []string) (condition string, none bool, err error) {
	ids, none, err := appsOf(r, "", apps)
	if err == nil && ids != nil {
		condition = " AND r.app_id IN " + list(ids)
	}
	return condition, none, err
}

// name reads one name, or returns sql.ErrNotFound if there is no row.
func name(r sql.Reader, what, query string, args ...any) (string, error) {
	found, err := sql.Select(r, what, scanText, query, args...)
	if err == nil && len(found) == 0 {
		err = sql.ErrNotFound
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// HasJobs reports whether an app has jobs.
func (db *DB) HasJobs(ctx context.Context, app string) (bool, error) {
	const query = `
		SELECT a.name
		FROM app a FORCE INDEX (name)
		WHERE a.name = ? AND EXISTS (SELECT 1 FROM job j FORCE INDEX (listed) WHERE j.app_id = a.id AND j.living = 1)`
	_, err := name(db.Reader(ctx), "look for an app", query, app)
	if err == sql.ErrNotFound {
		return false, nil
	}
	return err == nil, err
}

// Apps lists the apps that have jobs, by name. It reads one index entry per app, no matter how
// large the apps are.
func (db *DB) Apps(ctx context.Context) ([]string, error) {
	const query = `
		SELECT a.name
		FROM app a
		WHERE EXISTS (SELECT 1 FROM job j FORCE INDEX (listed) WHERE j.app_id = a.id AND j.living = 1)
		ORDER BY a.name`
	return sql.Select(db.Reader(ctx), "list apps", scanText, query)
}

// AppsOfJobs returns the app of each job. Deleted jobs are left out.
func (db *DB) AppsOfJobs(ctx context.Context, ids []int64) (map[int64]string, error) {
	out := make(map[int64]string, len(ids))
	for part := range slices.Chunk(ids, idsAtOnce) {
		query := `
			SELECT j.id, a.name
			FROM job j FORCE INDEX (PRIMARY)
			STRAIGHT_JOIN app a FORCE INDEX (PRIMARY) ON a.id = j.app_id
			WHERE j.living = 1 AND j.id IN ` + list(part)
		err := sql.Each(db.Reader(ctx), "read apps of jobs", func(rows *sql.Rows) error {
			var (
				id  int64
				app string
			)
			err := rows.Scan(&id, &app)
			out[id] = app
			return err
		}, query)
		if err != nil {
			return nil, err
		}
	}

	return out, nil
}

// CountJobs counts the living jobs of an app, or of all apps if the name is empty.
func (db *DB) CountJobs(ctx context.Context, app string) (int64, error) {
	const ofAll = `
		SELECT COUNT(*)
		FROM job FORCE INDEX (listed)
		WHERE living = 1`
	const ofApp = `
		SELECT COUNT(*)
		FROM job FORCE INDEX (listed)
		WHERE app_id = (SELECT id FROM app WHERE name = ?) AND living = 1`

	query, args := ofAll, []any(nil)
	if app != "" {
		query, args = ofApp, []any{app}
	}

	n, err := sql.Select(db.Reader(ctx), "count jobs", scanID, query, args...)
	if err != nil {
		return 0, err
	}
	return n[0], nil
}

// AppOfJob returns the app of a living or deleted job, or sql.ErrNotFound.
func (db *DB) AppOfJob(ctx context.Context, id int64) (string, error) {
	const query = `
		SELECT a.name
		FROM job j
		JOIN app a ON a.id = j.app_id
		WHERE j.id = ?`
	return name(db.Reader(ctx), "read app of a job", query, id)
}

// AppOfRun returns the app of an executing or ended run, or sql.ErrNotFound.
func (db *DB) AppOfRun(ctx context.Context, id int64) (string, error) {
	const query = `
		SELECT a.name
		FROM run r
		JOIN app a ON a.id = r.app_id
		WHERE r.id = ? AND r.state IN ('executing', 'ended')`
	return name(db.Reader(ctx), "read app of a run", query, id)
}

// AppsOfJob lists the present app of a job and the apps in its earlier versions.
func (db *DB) AppsOfJob(ctx context.Context, id int64) ([]string, error) {
	const query = `
		SELECT DISTINCT COALESCE(JSON_UNQUOTE(JSON_EXTRACT(definition, '$.app')), '')
		FROM job_version FORCE INDEX (PRIMARY)
		WHERE job_id = ? AND JSON_VALID(definition)`
	app, err := db.AppOfJob(ctx, id)
	if err != nil {
		return nil, err
	}

	apps, err := sql.Select(db.Reader(ctx), "list apps of a job", scanText, query, id)
	if !slices.Contains(apps, app) {
		apps = append(apps, app)
	}
	return apps, err
}

// JobName is the name of a job and its app.
type JobName struct{ App, Name string }

// JobNames returns the names of living and deleted jobs.
func (db *DB) JobNames(ctx context.Context, ids []int64) (map[int64]JobName, error) {
	type row struct {
		id int64
		JobName
	}
	scan := func(rows *sql.Rows) (r row, err error) {
		err = rows.Scan(&r.id, &r.App, &r.Name)
		return r, err
	}

	out := make(map[int64]JobName, len(ids))
	for part := range slices.Chunk(ids, idsAtOnce) {
		query := `
			SELECT j.id, a.name, j.name
			FROM job j FORCE INDEX (PRIMARY)
			STRAIGHT_JOIN app a FORCE INDEX (PRIMARY) ON a.id = j.app_id
			WHERE j.id IN ` + list(part)

		found, err := sql.Select(db.Reader(ctx), "read names of jobs", scan, query)
		if err != nil {
			return nil, err
		}

		for _, r := range found {
			out[r.id] = r.JobName
		}
	}

	return out, nil
}
