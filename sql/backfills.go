package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"slices"

	"go-crontab/job"
)

const backfillColumns = "b.id, b.job_id, b.first, b.last, b.next_due, b.parallel, b.total, b.planned, b.missing, b.left_out, b.state, b.who, b.created, b.updated"

func scanBackfill(rows *stdsql.Rows) (job.Backfill, error) {
	var b job.Backfill
	var next stdsql.NullInt64
	err := rows.Scan(&b.ID, &b.JobID, &b.From, &b.To, &next, &b.Parallel, &b.Total, &b.Planned, (*flag)(&b.Missing), &b.LeftOut, &b.State, &b.Who, &b.Created, &b.Updated)
	b.NextDue = job.Micros(next.Int64)
	return b, err
}

// InsertBackfill writes a new backfill, under the id of its request.
func (tx *Tx) InsertBackfill(b *job.Backfill) error {
	_, err := tx.exec("insert backfill", "INSERT INTO backfill (id, job_id, first, last, next_due, parallel, total, planned, missing, left_out, state, who, created, updated)"+
		" VALUES (?, ?, ?, ?, NULLIF(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?)", b.ID, b.JobID, int64(b.From), int64(b.To), int64(b.NextDue), b.Parallel, b.Total, b.Planned,
		b.Missing, b.LeftOut, b.State, cut(b.Who, 128), int64(b.Created), int64(b.Updated))
	return err
}

// LockBackfill locks and returns a backfill, or ErrNotFound. Its job's row is locked before.
func (tx *Tx) LockBackfill(id int64) (job.Backfill, error) { return tx.lockBackfill(id, "") }

// LockFreeBackfill is LockBackfill if nobody else has locked the row: it waits for none, and says ErrNotFound of that, too.
func (tx *Tx) LockFreeBackfill(id int64) (job.Backfill, error) {
	return tx.lockBackfill(id, " SKIP LOCKED")
}

func (tx *Tx) lockBackfill(id int64, how string) (job.Backfill, error) {
	var out []job.Backfill
	err := tx.query("lock backfill", func(rows *stdsql.Rows) error {
		b, err := scanBackfill(rows)
		out = append(out, b)
		return err
	}, "SELECT "+backfillColumns+" FROM backfill b WHERE b.id = ? FOR UPDATE"+how, id)
	return first(out, err)
}

// UpdateBackfill writes how far a backfill is, whose row this transaction has locked.
func (tx *Tx) UpdateBackfill(b *job.Backfill) error {
	n, err := tx.exec("update backfill", "UPDATE backfill SET next_due = NULLIF(?, 0), planned = ?, left_out = ?, state = ?, updated = GREATEST(updated + 1, ?) WHERE id = ?",
		int64(b.NextDue), b.Planned, b.LeftOut, b.State, int64(b.Updated), b.ID)
	if err == nil && n != 1 {
		err = fmt.Errorf("update backfill %d: %w", b.ID, ErrMoved)
	}
	return err
}

const ofBackfill = " FROM task FORCE INDEX (due) WHERE job_id = ? AND due BETWEEN ? AND ? AND origin = ?"

// CountBackfillTasks counts the live tasks of a backfill, whose row the caller holds: whoever adds to them does. It takes no lock,
// and counts those that are just ending.
func (tx *Tx) CountBackfillTasks(b *job.Backfill) (n int, err error) {
	err = tx.query("count tasks of a backfill", func(rows *stdsql.Rows) error { return rows.Scan(&n) }, "SELECT COUNT(*)"+ofBackfill,
		b.JobID, int64(b.From), int64(b.To), b.Origin())
	return n, err
}

// BackfillTasks locks and returns the live tasks of a backfill, whose job's row the caller holds.
func (tx *Tx) BackfillTasks(b *job.Backfill) ([]TaskRow, error) {
	rows, err := tx.tasks("list tasks of a backfill", "SELECT "+taskColumns+ofBackfill, b.JobID, int64(b.From), int64(b.To), b.Origin())
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	locked, err := tx.LockTasks(ids)
	var out []TaskRow
	for _, id := range ids {
		if r, ok := locked[id]; ok {
			out = append(out, r)
		}
	}
	return out, err
}

// CancelledBackfills tells which of the backfills are cancelled, whose jobs' rows the caller holds.
func (tx *Tx) CancelledBackfills(ids []int64) (map[int64]bool, error) {
	out := map[int64]bool{}
	if len(ids) == 0 {
		return out, nil
	}
	list, args := in(nil, ids)
	err := tx.query("read cancelled backfills", func(rows *stdsql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		out[id] = true
		return err
	}, "SELECT id FROM backfill WHERE id IN "+list+" AND state = 2", args...)
	return out, err
}

// Succeeded tells which of a job's due times have a run that succeeded, whoever asked for it.
func (tx *Tx) Succeeded(jobID int64, dues []job.Micros) (map[job.Micros]bool, error) {
	out := map[job.Micros]bool{}
	if len(dues) == 0 {
		return out, nil
	}
	list, args := in([]any{jobID}, dues)
	err := tx.query("read succeeded due times", func(rows *stdsql.Rows) error {
		var due job.Micros
		err := rows.Scan(&due)
		out[due] = true
		return err
	}, "SELECT DISTINCT due FROM history FORCE INDEX (attempt) WHERE job_id = ? AND due IN "+list+" AND outcome = 1", args...)
	return out, err
}

// HungryBackfills lists, in order, backfills with an id after the given one that are neither done nor cancelled, and have
// fewer live tasks than they may have, or none left to come. It takes no lock.
func (db *DB) HungryBackfills(ctx context.Context, after int64, limit int) ([]job.Backfill, error) {
	const live = "(SELECT COUNT(*) FROM task t FORCE INDEX (due) WHERE t.job_id = b.job_id AND t.due BETWEEN b.first AND b.last AND t.origin = -b.id)"
	return db.backfills(ctx, "b.state = 0 AND b.id > ? AND IF(b.next_due IS NULL, "+live+" = 0, "+live+" < b.parallel) ORDER BY b.id LIMIT ?", after, limit)
}

// Backfill returns one backfill, or ErrNotFound.
func (db *DB) Backfill(ctx context.Context, id int64) (job.Backfill, error) {
	out, err := db.backfills(ctx, "b.id = ?", id)
	return first(out, err)
}

// Backfills lists backfills, of one job if it is not zero, of some apps or, with nil, of all, the latest first, those
// with an id before the given one if that is not zero.
func (db *DB) Backfills(ctx context.Context, jobID, before int64, apps []string, limit int) ([]job.Backfill, error) {
	where, args := "1 = 1", []any{}
	if apps != nil {
		cond, values := ofApps("j.app", apps)
		where, args = "(SELECT "+cond+" FROM job j WHERE j.id = b.job_id)", values
	}
	if jobID != 0 {
		where, args = where+" AND b.job_id = ?", append(args, jobID)
	}
	if before != 0 {
		where, args = where+" AND b.id < ?", append(args, before)
	}
	return db.backfills(ctx, where+" ORDER BY b.id DESC LIMIT ?", append(args, limit)...)
}

func (db *DB) backfills(ctx context.Context, where string, args ...any) ([]job.Backfill, error) {
	var out []job.Backfill
	err := db.query(ctx, "read backfills", func(rows *stdsql.Rows) error {
		b, err := scanBackfill(rows)
		out = append(out, b)
		return err
	}, "SELECT "+backfillColumns+" FROM backfill b WHERE "+where, args...)
	return out, err
}

// BackfillOutcomes counts the final runs of a backfill by outcome. Those that succeeded, of which there may be a million, are
// what is left of all others: indexes say how many due times have a run and are not to be tried again, and which runs did not
// succeed, so that only these are read.
func (db *DB) BackfillOutcomes(ctx context.Context, b *job.Backfill) (map[job.Outcome]int64, error) {
	out := map[job.Outcome]int64{}
	var ended int64
	const which = " WHERE job_id = ? AND due BETWEEN ? AND ? AND origin = ?"
	args := []any{b.JobID, int64(b.From), int64(b.To), b.Origin()}
	err := db.query(ctx, "count runs of a backfill", func(rows *stdsql.Rows) error {
		var o job.Outcome
		var n int64
		err := rows.Scan(&o, &n)
		if o == 0 {
			ended += n
		} else {
			out[o], ended = n, ended-n
		}
		return err
	}, "SELECT 0, (SELECT COUNT(*) FROM history FORCE INDEX (attempt)"+which+" AND attempt = 1) - (SELECT COUNT(*) FROM task FORCE INDEX (due)"+which+" AND attempt > 1)"+
		" UNION ALL SELECT h.outcome, COUNT(*) FROM notable n FORCE INDEX (PRIMARY) STRAIGHT_JOIN history h FORCE INDEX (PRIMARY) ON h.id = n.id"+
		" WHERE n.job_id = ? AND n.outcome IN (2, 3, 4, 5, 6, 7, 8) AND n.trig = 2 AND n.due BETWEEN ? AND ? AND h.origin = ? AND h.final = 1 GROUP BY h.outcome",
		slices.Concat(args, args, args)...)
	if ended > 0 {
		out[job.Succeeded] = ended
	}
	return out, err
}
