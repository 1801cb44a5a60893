package read

import (
	"context"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// RunsDue returns the runs of a job that are due in [from, before), in any state. They are ordered
// by due time, request and attempt. A run before the range may count due times in the range. Then
// that run comes first.
func (db *DB) RunsDue(ctx context.Context, jobID int64, from, before job.Micros, limit int) ([]Run, error) {
	earlier, err := db.countedBefore(ctx, jobID, from)
	if err != nil {
		return nil, err
	}

	const where = `r.job_id = ? AND r.due >= ? AND r.due < ?
		ORDER BY r.due, r.request, r.attempt
		LIMIT ?`
	rows, err := db.runsWhere(ctx, "read runs of a range", where, jobID, int64(from), int64(before), limit)
	return append(earlier, rows...), err
}

// countedBefore returns the last run of the schedule that is due before an instant, if that run
// also counts due times at or after the instant.
func (db *DB) countedBefore(ctx context.Context, jobID int64, from job.Micros) ([]Run, error) {
	const where = `r.job_id = ? AND r.due < ? AND r.request = 0
		ORDER BY r.due DESC, r.request DESC, r.attempt DESC
		LIMIT 1`
	rows, err := db.runsWhere(ctx, "read run before a range", where, jobID, int64(from))
	if len(rows) == 1 && rows[0].Until < from {
		rows = nil
	}
	return rows, err
}

// SlotCount counts due times of a schedule in one part of a range.
type SlotCount struct {
	Part    int64 // from 0
	State   trip.State
	Outcome job.Outcome
	Ahead   bool // due later than now
	N       int64
	Last    job.Micros // the latest of these due times
}

// CountSlots divides [from, before) into parts of equal length. In each part it counts the due
// times of a job's schedule, by their last attempts. Runs of other apps than the given ones do not
// count. nil means all apps. Runs that count several due times are returned separately, at most
// limit of them and of all apps.
func (db *DB) CountSlots(ctx context.Context, jobID int64, from, before, length, now job.Micros,
	limit int, apps []string) (counts []SlotCount, several []Run, err error) {
	in, none, err := inApps(db.Reader(ctx), apps)
	if err != nil || none {
		return nil, nil, err
	}

	query := `
		SELECT (r.due - ?) DIV ?, r.state, r.outcome, r.due > ?, COUNT(*), MAX(r.due)
		FROM run r FORCE INDEX (attempt)
		WHERE r.job_id = ? AND r.due >= ? AND r.due < ? AND r.request <= 0 AND (r.final = 1 OR r.state <> 'ended')
			AND COALESCE(r.due_count, 1) = 1` + in + `
		GROUP BY 1, 2, 3, 4`
	scan := func(rows *sql.Rows) (c SlotCount, err error) {
		var outcome string
		err = rows.Scan(&c.Part, &c.State, &outcome, &c.Ahead, &c.N, &c.Last)
		if c.State == trip.Ended {
			c.Outcome, _ = job.ParseOutcome(outcome)
		}
		return c, err
	}

	counts, err = sql.Select(db.Reader(ctx), "count runs of a range", scan, query, int64(from), int64(length),
		int64(now), jobID, int64(from), int64(before))
	if err != nil {
		return nil, nil, err
	}

	if several, err = db.countedBefore(ctx, jobID, from); err != nil {
		return nil, nil, err
	}
	const where = `r.job_id = ? AND r.due >= ? AND r.due < ? AND r.request = 0 AND r.due_count > 1
		ORDER BY r.due, r.request, r.attempt
		LIMIT ?`
	more, err := db.runsWhere(ctx, "read counted runs of a range", where, jobID, int64(from), int64(before), limit)
	return counts, append(several, more...), err
}
