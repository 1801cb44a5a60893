package sql

import (
	"context"
	stdsql "database/sql"
	"strings"

	"go-crontab/job"
)

// What is here is read for whoever watches the cluster. It reads ends of indexes, and takes no lock.

// Span is a range of ids, both ends included.
type Span struct{ From, To int64 }

// within writes the condition that an id is in one of some spans.
func within(spans []Span) (string, []any) {
	args := make([]any, 0, 2*len(spans))
	for _, s := range spans {
		args = append(args, s.From, s.To)
	}
	return "(id BETWEEN ? AND ?" + strings.Repeat(" OR id BETWEEN ? AND ?", len(spans)-1) + ")", args
}

// EndedRow is a run that has ended, without what it takes a look at other rows to know.
type EndedRow struct {
	ID, JobID int64
	Outcome   job.Outcome
}

// EndedAfter lists runs by id, those that come behind one.
func (db *DB) EndedAfter(ctx context.Context, after int64, limit int) ([]EndedRow, error) {
	return db.ended(ctx, "id > ? ORDER BY id LIMIT ?", after, limit)
}

// EndedIn lists the runs that there are in spans of ids.
func (db *DB) EndedIn(ctx context.Context, spans []Span) ([]EndedRow, error) {
	cond, args := within(spans)
	return db.ended(ctx, cond+" ORDER BY id", args...)
}

func (db *DB) ended(ctx context.Context, cond string, args ...any) ([]EndedRow, error) {
	var out []EndedRow
	err := db.query(ctx, "read ended runs", func(rows *stdsql.Rows) error {
		var r EndedRow
		err := rows.Scan(&r.ID, &r.JobID, &r.Outcome)
		out = append(out, r)
		return err
	}, "SELECT id, job_id, outcome FROM history FORCE INDEX (PRIMARY) WHERE "+cond, args...)
	return out, err
}

// LastIDs are the greatest ids of runs and of the audit that can be seen, 0 where there is none.
func (db *DB) LastIDs(ctx context.Context) (run, line int64, err error) {
	err = db.query(ctx, "read last ids", func(rows *stdsql.Rows) error { return rows.Scan(&run, &line) },
		"SELECT COALESCE((SELECT MAX(id) FROM history), 0), COALESCE((SELECT MAX(id) FROM audit), 0)")
	return run, line, err
}

// RunsByID reads runs that have ended.
func (db *DB) RunsByID(ctx context.Context, ids []int64) (map[int64]RunRow, error) {
	return db.runsByID(ctx, ids)
}

// Lines of the audit as these two return them have no definitions.
const lineColumns = "id, at, who, origin, action, kind, ref, app, name, reason, '', ''"

// LinesAfter lists lines of the audit by id, those that come behind one.
func (db *DB) LinesAfter(ctx context.Context, after int64, limit int) ([]job.Entry, error) {
	return db.lines(ctx, "id > ? ORDER BY id LIMIT ?", after, limit)
}

// LinesIn lists the lines of the audit that there are in spans of ids.
func (db *DB) LinesIn(ctx context.Context, spans []Span) ([]job.Entry, error) {
	cond, args := within(spans)
	return db.lines(ctx, cond+" ORDER BY id", args...)
}

func (db *DB) lines(ctx context.Context, cond string, args ...any) ([]job.Entry, error) {
	var out []job.Entry
	err := db.query(ctx, "read audit", auditRows(&out), "SELECT "+lineColumns+" FROM audit FORCE INDEX (PRIMARY) WHERE "+cond, args...)
	return out, err
}

// Attempting is an attempt that executes: the id of its task, which all attempts of a due time have, and when it was to
// be started, which no other attempt of it has.
type Attempting struct {
	Task   int64
	DueNow job.Micros
}

// Attempting lists what executes.
func (db *DB) Attempting(ctx context.Context, limit int) ([]Attempting, error) {
	var out []Attempting
	err := db.query(ctx, "list what executes", func(rows *stdsql.Rows) error {
		var a Attempting
		err := rows.Scan(&a.Task, &a.DueNow)
		out = append(out, a)
		return err
	}, "SELECT id, due_now FROM task FORCE INDEX (slice) WHERE state = 2 LIMIT ?", limit)
	return out, err
}

// ExecutingByTask reads attempts that execute by the ids of their tasks; those that are over meanwhile are left out.
func (db *DB) ExecutingByTask(ctx context.Context, ids []int64) ([]RunRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, args := in(nil, ids)
	return db.executing(ctx, "PRIMARY", "t.state = 2 AND t.id IN "+list, append(args, len(ids))...)
}

// JobsOfTasks counts tasks that execute by their jobs.
func (db *DB) JobsOfTasks(ctx context.Context, ids []int64) (map[int64]int64, error) {
	out := map[int64]int64{}
	if len(ids) == 0 {
		return out, nil
	}
	list, args := in(nil, ids)
	err := db.query(ctx, "count tasks by job", func(rows *stdsql.Rows) error {
		var id, n int64
		err := rows.Scan(&id, &n)
		out[id] = n
		return err
	}, "SELECT job_id, COUNT(*) FROM task FORCE INDEX (PRIMARY) WHERE state = 2 AND id IN "+list+" GROUP BY job_id", args...)
	return out, err
}

// JobName is how a job is called.
type JobName struct{ App, Name string }

// JobNames tells how jobs are called, deleted ones included.
func (db *DB) JobNames(ctx context.Context, ids []int64) (map[int64]JobName, error) {
	out := make(map[int64]JobName, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	list, args := in(nil, ids)
	err := db.query(ctx, "read names of jobs", func(rows *stdsql.Rows) error {
		var (
			id int64
			n  JobName
		)
		err := rows.Scan(&id, &n.App, &n.Name)
		out[id] = n
		return err
	}, "SELECT id, app, name FROM job FORCE INDEX (PRIMARY) WHERE id IN "+list, args...)
	return out, err
}

// BackfillsAfter lists backfills behind an id.
func (db *DB) BackfillsAfter(ctx context.Context, id int64, limit int) ([]job.Backfill, error) {
	return db.backfills(ctx, "b.id > ? ORDER BY b.id LIMIT ?", id, limit)
}

// LastBackfill is the id of the latest backfill, 0 if there is none.
func (db *DB) LastBackfill(ctx context.Context) (int64, error) {
	rows, err := db.backfills(ctx, "b.id > 0 ORDER BY b.id DESC LIMIT 1")
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].ID, nil
}

// RunningBackfills lists backfills that are neither done nor cancelled.
func (db *DB) RunningBackfills(ctx context.Context, limit int) ([]job.Backfill, error) {
	return db.backfills(ctx, "b.state = 0 ORDER BY b.id LIMIT ?", limit)
}
