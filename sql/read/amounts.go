package read

import (
	"context"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Amounts are the numbers of live runs by state. Each is counted up to a bound.
type Amounts struct {
	Executing, Prepared, Waiting int64
	Backlog                      int64 // due, and neither started nor waiting
}

// Amounts counts the runs that have not ended. In each state it counts up to most runs.
func (db *DB) Amounts(ctx context.Context, at job.Micros, most int) (Amounts, error) {
	r := db.Reader(ctx)
	owners, err := trip.Owners(r)
	if err != nil {
		return Amounts{}, err
	}

	held := "FALSE"
	if len(owners) > 0 {
		held = "owner IN " + list(owners)
	}

	count := func(where string) string {
		return `(
			SELECT COUNT(*)
			FROM (SELECT 1 FROM run FORCE INDEX (live) WHERE ` + where + ` LIMIT ?) some)`
	}

	query := `
		SELECT ` + count(held) + `, ` + count(held+" AND due_now <= "+begunBy+" AND state = 'executing'") + `, ` +
		count("owner = -1") + `, ` + count("owner = 0 AND due_now <= ?") + `, ` +
		count(held+" AND due_now <= ? AND state = 'prepared'")

	scan := func(rows *sql.Rows) (n [5]int64, err error) {
		err = rows.Scan(&n[0], &n[1], &n[2], &n[3], &n[4])
		return n, err
	}

	found, err := sql.Select(r, "count runs", scan, query, most, most, most, int64(at), most, int64(at), most)
	if err != nil {
		return Amounts{}, err
	}

	n := found[0]
	return Amounts{
		Executing: n[1],
		Prepared:  max(0, n[0]-n[1]),
		Waiting:   n[2],
		Backlog:   min(n[3]+n[4], int64(most)),
	}, nil
}

// ActiveJobs counts the jobs with a next due time.
func (db *DB) ActiveJobs(ctx context.Context) (int64, error) {
	const query = `
		SELECT COUNT(*)
		FROM job FORCE INDEX (claim)
		WHERE next_due IS NOT NULL`

	scan := func(rows *sql.Rows) (n int64, err error) {
		err = rows.Scan(&n)
		return n, err
	}

	found, err := sql.Select(db.Reader(ctx), "count active jobs", scan, query)
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

// Attempt is an executing run. DueNow is the time at which the attempt was to begin.
type Attempt struct {
	Run     int64
	JobID   int64
	DueNow  job.Micros
	Started job.Micros // when its start was committed
}

// Attempting lists executing runs.
func (db Watch) Attempting(ctx context.Context, limit int) ([]Attempt, error) {
	r := db.Reader(ctx)
	owners, err := trip.Owners(r)
	if err != nil || len(owners) == 0 {
		return nil, err
	}

	query := `
		SELECT id, job_id, due_now, started
		FROM run FORCE INDEX (live)
		WHERE owner IN ` + list(owners) + ` AND due_now <= ` + begunBy + ` AND state = 'executing'
		LIMIT ?`

	scan := func(rows *sql.Rows) (a Attempt, err error) {
		err = rows.Scan(&a.Run, &a.JobID, &a.DueNow, &a.Started)
		return a, err
	}

	return sql.Select(r, "list all executing runs", scan, query, limit)
}

// ExecutingByID reads the runs that are still executing.
func (db *DB) ExecutingByID(ctx context.Context, ids []int64) ([]Run, error) {
	rows, err := runsByID(db.Reader(ctx), ids)
	var out []Run
	for _, id := range ids {
		if r := rows[id]; r != nil && r.Executing {
			out = append(out, *r)
		}
	}
	return out, err
}

// LatePlace is a position in the list of late runs.
type LatePlace struct {
	Owner  trip.Owner
	DueNow job.Micros
	Hash   int
	ID     int64
}

// LateRun is a run that is late: it has not begun, or has not ended.
type LateRun struct {
	LatePlace
	JobID   int64
	Due     job.Micros
	Kind    trip.Kind
	Attempt int
	State   trip.State
	Node    string // where it executes; only UnendedRuns reads it
}

// LateRuns lists the runs of one owner (after.Owner) that were due before an instant and have not
// begun. It begins after a position. For WaitingOwner it reads all waiting runs, because their
// due_now is a place in a line and not a time.
func (db *DB) LateRuns(ctx context.Context, after LatePlace, before job.Micros, limit int) ([]LateRun, error) {
	query := `
		SELECT owner, due_now, hash, id, job_id, due, kind, attempt, state
		FROM run FORCE INDEX (live)
		WHERE owner = ? AND due_now >= ? AND (due_now > ? OR hash > ? OR hash = ? AND id > ?)
			AND due < ? AND state <> 'executing'`

	args := []any{
		int32(after.Owner), int64(after.DueNow), int64(after.DueNow), after.Hash, after.Hash, after.ID, int64(before),
	}
	if after.Owner != trip.WaitingOwner {
		query += `
			AND due_now < ?`
		args = append(args, int64(before))
	}

	query += `
		ORDER BY due_now, hash, id
		LIMIT ?`

	scan := func(rows *sql.Rows) (l LateRun, err error) {
		err = rows.Scan(&l.Owner, &l.DueNow, &l.Hash, &l.ID, &l.JobID, &l.Due, &l.Kind, &l.Attempt, &l.State)
		return l, err
	}

	return sql.Select(db.Reader(ctx), "look for late runs", scan, query, append(args, limit)...)
}

// AlertJobs reads living and deleted jobs in the form that alert rules use.
func (db Watch) AlertJobs(ctx context.Context, ids []int64) (map[int64]job.AlertJob, error) {
	rows, err := jobsByID(db.Reader(ctx), ids)
	out := make(map[int64]job.AlertJob, len(rows))
	for id, j := range rows {
		out[id] = j.forAlerts()
	}
	return out, err
}

// AlertJobsAfter lists living jobs that are not paused, by id.
func (db Watch) AlertJobsAfter(ctx context.Context, after int64, limit int) ([]job.AlertJob, error) {
	query := selectJobs + `
		FROM job j FORCE INDEX (PRIMARY)` + joinDefinitions + `
		WHERE j.id > ? AND j.living = 1 AND j.paused = 0
		ORDER BY j.id
		LIMIT ?`

	rows, err := sql.Select(db.Reader(ctx), "list jobs for alerts", scanJob, query, after, limit)
	out := make([]job.AlertJob, len(rows))
	for i, j := range rows {
		out[i] = j.forAlerts()
	}

	return out, err
}

func (j *Job) forAlerts() job.AlertJob {
	return job.AlertJob{
		ID:       j.ID,
		App:      j.Spec.App,
		Name:     j.Spec.Name,
		Owner:    j.Spec.Owner,
		Labels:   j.Spec.Labels,
		Timezone: j.Spec.Timezone,
		Ping:     j.Spec.Ping,
		Paused:   j.Paused,
		Gone:     j.Deleted,
		Created:  j.Created,
	}
}
