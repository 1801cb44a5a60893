package read

import (
	"context"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// Job is a job as stored. SpecErr is set if the definition cannot be decoded, because a newer
// version or a person wrote it. Such a job harms no other job.
type Job struct {
	job.Job
	AppID    int32
	Parked   job.Micros // the cursor while paused; zero: none
	Resumed  job.Micros // end of its last pause
	Running  int64      // its current run, which may have ended
	SpecText string
	SpecErr  error

	Calendars    []*job.Calendar // the calendars that it uses, see LearnCalendars
	CalendarsErr error           // some calendar cannot be decoded
}

const selectJobs = `
	SELECT j.id, j.app_id, a.name, j.name, j.living IS NULL, j.hash, j.version, j.changes, j.paused <> 0,
		COALESCE(j.next_due, 0), COALESCE(j.parked, 0), j.resumed, j.begun_to, j.running, j.error,
		COALESCE(v.definition, ''), COALESCE(c.created, v.created, 0),
		GREATEST(COALESCE(v.created, 0), j.resumed, COALESCE(p.since, 0)),
		COALESCE(p.since, 0), COALESCE(p.until, 0), COALESCE(p.who, ''), COALESCE(p.reason, '')`

// joinDefinitions joins apps, definitions and pauses to jobs.
const joinDefinitions = `
	STRAIGHT_JOIN app a FORCE INDEX (PRIMARY) ON a.id = j.app_id
	LEFT JOIN job_version v FORCE INDEX (PRIMARY) ON v.job_id = j.id AND v.version = j.version
	LEFT JOIN job_version c FORCE INDEX (PRIMARY) ON c.job_id = j.id AND c.version = 1
	LEFT JOIN job_pause p FORCE INDEX (PRIMARY) ON p.job_id = j.id`

func scanJob(rows *sql.Rows) (*Job, error) {
	var (
		j         Job
		app, name string
	)
	err := rows.Scan(&j.ID, &j.AppID, &app, &name, &j.Deleted, &j.Hash, &j.Version, &j.Changes, &j.Paused,
		&j.NextDue, &j.Parked, &j.Resumed, &j.LastDue, &j.Running, &j.Error,
		&j.SpecText, &j.Created, &j.Updated, &j.PausedAt, &j.PauseUntil, &j.PausedBy, &j.PauseReason)
	if err != nil {
		return nil, err
	}

	if j.Spec, j.SpecErr = job.DecodeSpec(j.SpecText); j.SpecErr != nil {
		j.Spec.App, j.Spec.Name = app, name // so that people recognize the job
	}
	return &j, nil
}

func jobsByID(r sql.Reader, ids []int64) (map[int64]*Job, error) {
	out := make(map[int64]*Job, len(ids))
	for part := range slices.Chunk(ids, idsAtOnce) {
		query := selectJobs + `
			FROM job j FORCE INDEX (PRIMARY)` + joinDefinitions + `
			WHERE j.id IN ` + list(part)
		rows, err := sql.Select(r, "read jobs", scanJob, query)
		if err != nil {
			return nil, err
		}

		for _, j := range rows {
			out[j.ID] = j
		}
	}

	return out, cover(r, out)
}

// Job returns a living or deleted job, or sql.ErrNotFound.
func (db *DB) Job(ctx context.Context, id int64) (Job, error) {
	rows, err := jobsByID(db.Reader(ctx), []int64{id})
	if err == nil && rows[id] == nil {
		err = sql.ErrNotFound
	}
	if err != nil {
		return Job{}, err
	}
	return *rows[id], nil
}

// JobNamed returns the living job with a name, or sql.ErrNotFound.
func (db *DB) JobNamed(ctx context.Context, app, name string) (Job, error) {
	n := job.Name{App: app, Name: name}
	found, err := db.JobsNamed(ctx, []job.Name{n})
	if err != nil {
		return Job{}, err
	}

	j, ok := found[n]
	if !ok {
		return Job{}, sql.ErrNotFound
	}
	return j, nil
}

// JobOnceNamed returns the id of the living job with a name. If there is none, it returns the id of
// the last deleted job with that name. If there is none either, it returns sql.ErrNotFound.
func (db *DB) JobOnceNamed(ctx context.Context, app, name string) (int64, error) {
	const query = `
		SELECT id
		FROM job FORCE INDEX (name)
		WHERE app_id = (SELECT id FROM app WHERE name = ?) AND name = ?
		ORDER BY living IS NULL, id DESC
		LIMIT 1`
	ids, err := sql.Select(db.Reader(ctx), "find a job by its name", scanID, query, app, name)
	if err == nil && len(ids) == 0 {
		err = sql.ErrNotFound
	}
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// JobsNamed returns the living jobs with the given names.
func (db *DB) JobsNamed(ctx context.Context, names []job.Name) (map[job.Name]Job, error) {
	byApp := map[string][]string{}
	for _, n := range names {
		byApp[n.App] = append(byApp[n.App], n.Name)
	}

	reader := db.Reader(ctx)
	found := make(map[int64]*Job, len(names))
	for app, names := range byApp {
		for part := range slices.Chunk(names, idsAtOnce) {
			query := selectJobs + `
					FROM job j FORCE INDEX (name)` + joinDefinitions + `
					WHERE j.app_id = (SELECT id FROM app WHERE name = ?) AND j.living = 1
						AND j.name IN ` + places(len(part))

			rows, err := sql.Select(reader, "read jobs by name", scanJob, query, append([]any{app}, texts(part)...)...)
			if err != nil {
				return nil, err
			}

			for _, j := range rows {
				found[j.ID] = j
			}
		}
	}

	if err := cover(reader, found); err != nil {
		return nil, err
	}

	out := make(map[job.Name]Job, len(found))
	for _, j := range found {
		out[job.Name{App: j.Spec.App, Name: j.Spec.Name}] = *j
	}

	return out, nil
}

// LivingJobs returns the living jobs with the given ids.
func (db *DB) LivingJobs(ctx context.Context, ids []int64) (map[int64]Job, error) {
	rows, err := jobsByID(db.Reader(ctx), ids)
	out := make(map[int64]Job, len(rows))
	for id, j := range rows {
		if !j.Deleted {
			out[id] = *j
		}
	}
	return out, err
}

const (
	// latestRun is the state of the last due run of a job's schedule. Manual and backfill runs may
	// come before it in the index.
	latestRun = `(
		SELECT r.state
		FROM run r FORCE INDEX (attempt)
		WHERE r.job_id = j.id AND r.request = 0
		ORDER BY r.job_id DESC, r.due DESC, r.request DESC, r.attempt DESC
		LIMIT 1)`

	// turnRun is the state of a job's current run.
	turnRun = `(
		SELECT r.state
		FROM run r FORCE INDEX (PRIMARY)
		WHERE r.id = j.running)`

	// isLive is the condition that the job's schedule has a run that has not ended. If runs
	// overlap, it tests only the last due run and the current run.
	isLive = "(COALESCE(" + latestRun + ", 'ended') <> 'ended' OR COALESCE(" + turnRun + ", 'ended') <> 'ended')"

	// firstAhead is the earliest due time of a job's schedule whose run has not begun. It is after
	// begun_to, as all such due times are.
	firstAhead = `(
		SELECT r.due
		FROM run r FORCE INDEX (attempt)
		WHERE r.job_id = j.id AND r.due > j.begun_to AND r.request = 0 AND r.state <> 'ended'
		ORDER BY r.job_id, r.due
		LIMIT 1)`
)

// LiveJobs returns the jobs whose schedule has a live run. The value is the earliest due time whose
// run has not begun, or zero if all have begun.
func (db *DB) LiveJobs(ctx context.Context, ids []int64) (map[int64]job.Micros, error) {
	type row struct {
		id    int64
		ahead job.Micros
		live  bool
	}
	scan := func(rows *sql.Rows) (r row, err error) {
		err = rows.Scan(&r.id, &r.ahead, &r.live)
		return r, err
	}

	out := map[int64]job.Micros{}
	for part := range slices.Chunk(ids, idsAtOnce) {
		query := `
			SELECT j.id, COALESCE(` + firstAhead + `, 0), ` + isLive + `
			FROM job j FORCE INDEX (PRIMARY)
			WHERE j.id IN ` + list(part)

		found, err := sql.Select(db.Reader(ctx), "read runs of jobs", scan, query)
		if err != nil {
			return nil, err
		}

		for _, r := range found {
			if r.live || r.ahead != 0 {
				out[r.id] = r.ahead
			}
		}
	}

	return out, nil
}

// Version is a former or current definition of a job.
type Version struct {
	Version  int64
	At       job.Micros
	Who      string
	SpecText string
	Spec     job.Spec
	SpecErr  error
}

// Versions lists the definitions of a job up to version upTo, latest first. If upTo is zero, it
// lists all.
func (db *DB) Versions(ctx context.Context, id, upTo int64, limit int) ([]Version, error) {
	const query = `
		SELECT version, created, who, definition
		FROM job_version FORCE INDEX (PRIMARY)
		WHERE job_id = ? AND (? = 0 OR version <= ?)
		ORDER BY version DESC
		LIMIT ?`
	scan := func(rows *sql.Rows) (v Version, err error) {
		err = rows.Scan(&v.Version, &v.At, &v.Who, &v.SpecText)
		v.Spec, v.SpecErr = job.DecodeSpec(v.SpecText)
		return v, err
	}

	return sql.Select(db.Reader(ctx), "list versions", scan, query, id, upTo, upTo, limit)
}
