package read

import (
	"context"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// askedMost bounds how many manual and backfill runs are returned for a range.
const askedMost = 2 * job.MaxAttempts

// runsWhere reads runs of a job through the index of its due times.
func (db *DB) runsWhere(ctx context.Context, what, where string, args ...any) ([]Run, error) {
	query := selectRuns + `
		FROM run r FORCE INDEX (attempt)` + joinNames + `
		WHERE ` + where
	rows, err := sql.Select(db.Reader(ctx), what, scanRun, query, args...)
	out := make([]Run, len(rows))
	for i := range rows {
		out[i] = *rows[i]
	}
	return out, err
}

// RunsAt returns the ended runs of a due time of a job's schedule. Attempts are in order. The
// result may be a single run that counts several due times, including this one.
func (db *DB) RunsAt(ctx context.Context, jobID int64, due job.Micros) ([]Run, error) {
	// Some runs count a range of due times. Within a schedule these ranges do not overlap. So only
	// the runs of the latest due time up to this one can match.
	const where = `r.job_id = ? AND r.request = 0 AND r.due <= ? AND r.state = 'ended'
		ORDER BY r.due DESC, r.request DESC, r.attempt DESC
		LIMIT ?`
	near, err := db.runsWhere(ctx, "read runs of a due time", where, jobID, int64(due), job.MaxAttempts)
	if err != nil {
		return nil, err
	}

	slices.Reverse(near)
	return slices.DeleteFunc(near, func(r Run) bool { return r.Until < due || r.Due != near[len(near)-1].Due }), nil
}

// LiveAt returns the run of a scheduled due time of a job if the run has not ended. Otherwise it
// returns sql.ErrNotFound.
func (db *DB) LiveAt(ctx context.Context, jobID int64, due job.Micros) (Run, error) {
	const where = `r.job_id = ? AND r.due = ? AND r.request = 0 AND r.state <> 'ended'
		ORDER BY r.attempt DESC
		LIMIT 1`
	rows, err := db.runsWhere(ctx, "read run of a due time", where, jobID, int64(due))
	if err == nil && len(rows) == 0 {
		err = sql.ErrNotFound
	}
	if err != nil {
		return Run{}, err
	}

	return rows[0], nil
}

// AskedAt returns the manual and backfill runs due in [from, before), ended or not. They are
// ordered by due time, request and attempt.
func (db *DB) AskedAt(ctx context.Context, jobID int64, from, before job.Micros) ([]Run, error) {
	const where = `r.job_id = ? AND r.due >= ? AND r.due < ? AND r.request <> 0
		ORDER BY r.due, r.request, r.attempt
		LIMIT ?`
	return db.runsWhere(ctx, "read runs that were asked for", where, jobID, int64(from), int64(before), askedMost)
}

// Wait is a waiting run.
type Wait struct {
	JobID int64
	Run   int64
	Due   job.Micros
	Kind  trip.Kind
	Group string // the group for whose slot the run waits; empty: it waits for runs of its job
}

// Waiting lists the waiting runs of jobs, earliest due first. It lists the runs in the queue of
// each job, and the current run of each job if that run waits for a slot. If the runs of a job may
// overlap, several may wait for slots, and only the current one is listed.
func (db *DB) Waiting(ctx context.Context, jobs []int64, limit int) ([]Wait, error) {
	if len(jobs) == 0 {
		return nil, nil
	}

	r := db.Reader(ctx)
	scan := func(rows *sql.Rows) (w Wait, err error) {
		err = rows.Scan(&w.JobID, &w.Run, &w.Due, &w.Kind, &w.Group)
		return w, err
	}

	var out []Wait
	for part := range slices.Chunk(jobs, idsAtOnce) {
		inLines := `
			SELECT job_id, id, due, kind, ''
			FROM run FORCE INDEX (live)
			WHERE ` + trip.InJobLines(part) + `
			ORDER BY due_now
			LIMIT ?`

		found, err := sql.Select(r, "list waiting runs", scan, inLines, limit)
		if err != nil {
			return nil, err
		}

		out = append(out, found...)

		forSlots := `
			SELECT j.id, r.id, r.due, r.kind, COALESCE(f.name, '')
			FROM job j FORCE INDEX (PRIMARY)
			STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = j.running AND r.state = 'waiting' AND r.due_now < 0
			LEFT JOIN job_ref f FORCE INDEX (job) ON f.job_id = j.id AND f.kind = ?
			WHERE j.id IN ` + list(part)

		if found, err = sql.Select(r, "list runs that wait for slots", scan, forSlots, trip.RefGroup); err != nil {
			return nil, err
		}
		out = append(out, found...)
	}

	slices.SortFunc(out, func(a, b Wait) int { return int(a.Due - b.Due) })
	return out[:min(len(out), limit)], nil
}
