package read

import (
	"context"
	"fmt"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

const selectBackfills = `
	SELECT b.id, b.job_id, b.first, b.last, COALESCE(b.next_due, 0), b.done_to, b.parallel, b.missing <> 0, b.total,
		b.planned, b.left_out, b.state, b.who, b.created, b.updated, COALESCE(b.given, '')
	FROM backfill b FORCE INDEX (PRIMARY)`

func scanBackfill(rows *sql.Rows) (b trip.BackfillRow, err error) {
	err = rows.Scan(&b.ID, &b.JobID, &b.First, &b.Last, &b.NextDue, &b.DoneTo, &b.Parallel, &b.Missing, &b.Total,
		&b.Planned, &b.LeftOut, &b.State, &b.Who, &b.Created, &b.Updated, &b.Given)
	return b, err
}

// Backfills lists backfills, latest first. jobID selects one job, apps selects some apps, and
// before selects lower ids. Zero and nil select all. There are only few backfills, so they are read
// at once.
func (db *DB) Backfills(
	ctx context.Context, jobID, before int64, apps []string, limit int,
) ([]trip.BackfillRow, error) {
	r := db.Reader(ctx)
	in, none, err := appsOf(r, "", apps)
	if err != nil || none {
		return nil, err
	}

	where := "TRUE"
	if in != nil {
		where += " AND (SELECT j.app_id FROM job j WHERE j.id = b.job_id) IN " + list(in)
	}
	if jobID != 0 {
		where += fmt.Sprintf(" AND b.job_id = %d", jobID)
	}
	if before != 0 {
		where += fmt.Sprintf(" AND b.id < %d", before)
	}

	query := selectBackfills + `
		WHERE ` + where + `
		ORDER BY b.id DESC
		LIMIT ?`

	return sql.Select(r, "list backfills", scanBackfill, query, limit)
}

// BackfillsAfter lists backfills with higher ids.
func (db Watch) BackfillsAfter(ctx context.Context, id int64, limit int) ([]trip.BackfillRow, error) {
	const query = selectBackfills + `
		WHERE b.id > ?
		ORDER BY b.id
		LIMIT ?`
	return sql.Select(db.Reader(ctx), "read backfills", scanBackfill, query, id, limit)
}

// RunningBackfills lists backfills that are neither done nor cancelled.
func (db Watch) RunningBackfills(ctx context.Context, limit int) ([]trip.BackfillRow, error) {
	const query = selectBackfills + `
		WHERE b.id IN (
			SELECT id
			FROM (SELECT id FROM backfill FORCE INDEX (state) WHERE state = 'running' ORDER BY id LIMIT ?) running)
		ORDER BY b.id`
	return sql.Select(db.Reader(ctx), "read running backfills", scanBackfill, query, limit)
}

// AppOfBackfill returns the app of a backfill's job, or sql.ErrNotFound.
func (db *DB) AppOfBackfill(ctx context.Context, id int64) (string, error) {
	const query = `
		SELECT a.name
		FROM backfill b
		JOIN job j ON j.id = b.job_id
		JOIN app a ON a.id = j.app_id
		WHERE b.id = ?`
	return name(db.Reader(ctx), "read app of a backfill", query, id)
}

// BackfillOutcomes counts the finished due times of a backfill by outcome. Among the skipped due
// times it counts those that had nothing to do. It reads only unsuccessful runs, and computes the
// number of succeeded runs from the rest, which may be a million.
func (db *DB) BackfillOutcomes(
	ctx context.Context, b *trip.BackfillRow,
) (out map[job.Outcome]int64, nothing int64, err error) {
	const query = `
		SELECT n.outcome, COUNT(*), SUM(n.outcome = 'skipped' AND r.started > 0)
		FROM notable n FORCE INDEX (by_job)
		STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.run_id
		WHERE n.job_id = ?
			AND n.outcome IN ('failed', 'timed_out', 'killed', 'lost', 'skipped', 'missed', 'superseded')
			AND n.due BETWEEN ? AND ? AND r.request = ? AND r.final = 1
		GROUP BY n.outcome`

	r := db.Reader(ctx)
	alive, _, err := b.Alive(r)
	if err != nil {
		return nil, 0, err
	}

	out = map[job.Outcome]int64{}
	over := b.Planned - int64(alive)
	scan := func(rows *sql.Rows) (n int64, err error) {
		var outcome string
		var idle int64
		if err := rows.Scan(&outcome, &n, &idle); err != nil {
			return 0, err
		}
		nothing += idle
		o, err := job.ParseOutcome(outcome)
		out[o] = n
		return n, err
	}

	failed, err := sql.Select(r, "count runs of a backfill", scan, query, b.JobID, int64(b.First), int64(b.Last), b.ID)
	for _, n := range failed {
		over -= n
	}

	if over > 0 {
		out[job.Succeeded] = over
	}
	return out, nothing, err
}

// BackfillRuns returns the last attempt of each of some due times of a backfill.
func (db *DB) BackfillRuns(ctx context.Context, b *trip.BackfillRow, dues []job.Micros) (map[job.Micros]Run, error) {
	out := make(map[job.Micros]Run, len(dues))
	for part := range slices.Chunk(dues, idsAtOnce) {
		where := "r.job_id = ? AND r.due IN " + list(part) + " AND r.request = ? ORDER BY r.due, r.attempt"
		rows, err := db.runsWhere(ctx, "read runs of a backfill", where, b.JobID, b.ID)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			out[r.Due] = r
		}
	}
	return out, nil
}

// BackfillRunsIn lists runs of a backfill by due time: the failed runs or the runs that have not
// ended. Failed runs are final runs without success, except runs that had nothing to do.
func (db *DB) BackfillRunsIn(ctx context.Context, b *trip.BackfillRow, failed bool, after job.Micros,
	limit int) ([]Run, error) {
	if !failed {
		const where = `r.job_id = ? AND r.due > ? AND r.due <= ? AND r.request = ? AND r.state <> 'ended'
			ORDER BY r.due
			LIMIT ?`
		return db.runsWhere(ctx, "read runs of a backfill", where, b.JobID, int64(max(after, b.DoneTo)), int64(b.Last),
			b.ID, limit)
	}

	const query = `
		SELECT n.run_id
		FROM notable n FORCE INDEX (by_job)
		STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.run_id
		WHERE n.job_id = ?
			AND n.outcome IN ('failed', 'timed_out', 'killed', 'lost', 'skipped', 'missed', 'superseded')
			AND n.due > ? AND n.due <= ? AND r.request = ? AND r.final = 1
			AND NOT (n.outcome = 'skipped' AND r.started > 0)
		ORDER BY n.due
		LIMIT ?`
	ids, err := sql.Select(db.Reader(ctx), "list failed runs of a backfill", scanID, query, b.JobID, int64(after),
		int64(b.Last), b.ID, limit)
	if err != nil {
		return nil, err
	}

	rows, err := runsByID(db.Reader(ctx), ids)
	var out []Run
	for _, id := range ids {
		if r := rows[id]; r != nil {
			out = append(out, *r)
		}
	}
	return out, err
}
