package sql

import (
	"bytes"
	"cmp"
	"context"
	stdsql "database/sql"
	"slices"
	"strings"

	"go-crontab/job"

	"github.com/google/uuid"
)

// maxOutputBytes bounds the output that one INSERT carries, well below the smallest usual max_allowed_packet
// (16 MiB; a byte may need two when it is quoted).
const maxOutputBytes = 2 << 20

// InsertRuns writes the records of runs, and what was kept of their output. A due time and attempt that has its
// record already is a duplicate key error: no task ends twice; but see LeaveOutRecorded. It puts the runs in order.
func (tx *Tx) InsertRuns(runs []job.Run) error {
	const columns = 21
	if tx.recorded != nil {
		var err error
		if runs, err = tx.unrecorded(runs); err != nil {
			return err
		}
	}
	// They come as they ended. In the order of their launches they fill the pages that are in that order, those of output
	// above all; otherwise these are split again and again, and end up less than half full.
	slices.SortFunc(runs, func(a, b job.Run) int {
		return cmp.Or(bytes.Compare(a.Launch.Session[:], b.Launch.Session[:]), cmp.Compare(a.Launch.N, b.Launch.N))
	})
	if err := tx.learnApps(runs); err != nil {
		return err
	}
	for part := range slices.Chunk(runs, 500) {
		args := make([]any, 0, len(part)*columns)
		for i := range part {
			r := &part[i]
			tx.did.end(r.Outcome, r.Count)
			args = append(args, r.JobID, int64(r.Due), r.Origin, r.Attempt, r.Launch.Session[:], r.Launch.N, r.Final,
				int8(r.Outcome), cut(r.Reason, 512), r.ExitCode, r.Signal, int64(r.Until), r.Count,
				int64(r.Started), int64(r.Ended), r.Lateness, r.Node, r.Output.Bytes,
				r.Output.Kept(), appNumber(r.App), triggerOf(r.Origin))
		}
		_, err := tx.exec("insert runs", "INSERT INTO history (job_id, due, origin, attempt, session_id, launch, final,"+
			" outcome, reason, exit_code, sig, due_last, due_count, started, ended, lateness, node, output_bytes, output_kept, app, trig) VALUES "+
			values(len(part), columns), args...)
		if err != nil {
			return err
		}
	}
	if err := tx.noteRuns(runs); err != nil {
		return err
	}
	return tx.insertOutputs(runs)
}

// LeaveOutRecorded has the transaction write no record of what has one already, a due time and attempt, and adds that to
// left. It is for who was told of a duplicate key: a hand wrote the record, or a restore, and its task is to end all the same.
func (tx *Tx) LeaveOutRecorded(left *[]job.Run) { tx.recorded = left }

// unrecorded returns the runs that have no record.
func (tx *Tx) unrecorded(runs []job.Run) (without []job.Run, err error) {
	has := map[int64]bool{}
	for from := 0; from < len(runs); from += idsAtOnce {
		part := runs[from:min(from+idsAtOnce, len(runs))]
		keys := make([][]int64, len(part))
		for i, r := range part {
			keys[i] = []int64{int64(from + i), r.JobID, int64(r.Due), r.Origin, int64(r.Attempt)}
		}
		err := tx.query("look for records", func(rows *stdsql.Rows) error {
			var i int64
			err := rows.Scan(&i)
			has[i] = true
			return err
		}, "SELECT n.i FROM JSON_TABLE(?, '$[*]' COLUMNS (i BIGINT PATH '$[0]', job_id BIGINT PATH '$[1]', due BIGINT PATH '$[2]', origin BIGINT PATH '$[3]', attempt BIGINT PATH '$[4]')) n"+
			" STRAIGHT_JOIN history h FORCE INDEX (attempt) ON h.job_id = n.job_id AND h.due = n.due AND h.origin = n.origin AND h.attempt = n.attempt", table(keys))
		if err != nil {
			return nil, err
		}
	}
	for i, r := range runs {
		if has[int64(i)] {
			*tx.recorded = append(*tx.recorded, r)
		} else {
			without = append(without, r)
		}
	}
	return without, nil
}

func (tx *Tx) insertOutputs(runs []job.Run) error {
	var (
		args []any
		size int
	)
	flush := func() error {
		if len(args) == 0 {
			return nil
		}
		_, err := tx.exec("insert output", "INSERT INTO output (session_id, launch, head, tail, encoding) VALUES "+values(len(args)/5, 5), args...)
		args, size = nil, 0
		return err
	}
	for i := range runs {
		r := &runs[i]
		if r.Output.Bytes == 0 {
			continue
		}
		head, tail := r.Output.Head, r.Output.Tail
		if head == nil { // would be NULL
			head = []byte{}
		}
		if tail == nil {
			tail = []byte{}
		}
		args = append(args, r.Launch.Session[:], r.Launch.N, head, tail, int8(r.Output.Encoding))
		size += len(head) + len(tail)
		if size >= maxOutputBytes || len(args) >= 5*500 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// RunRow is a run as people ask for it, with the names that its row refers to.
type RunRow struct {
	ID int64 // of its row in history; while it executes, of its task
	job.Run
	Job       string
	Executing bool
	Kept      int64 // bytes of output that were kept
}

// OutputRemoved reports whether its output was removed since, because its app was at its limit. Of what a run writes something
// is kept otherwise.
func (r *RunRow) OutputRemoved() bool { return !r.Executing && r.Output.Bytes > 0 && r.Kept == 0 }

// Place is where a list of runs stands.
func (r *RunRow) Place() *RunPlace {
	return &RunPlace{ID: r.ID, Due: r.Due, Origin: r.Origin, Attempt: r.Attempt}
}

// RunPlace is a place in a list of runs. Which of its fields count depends on the list.
type RunPlace struct {
	ID      int64
	Due     job.Micros
	Origin  int64
	Attempt int
}

const runColumns = "h.id, h.job_id, h.due, h.origin, h.attempt, h.session_id, h.launch, h.final, h.outcome, h.reason, h.exit_code," +
	" h.sig, h.due_last, h.due_count, h.started, h.ended, h.lateness, h.node, h.output_bytes, h.output_kept, " + appOfRun + ", j.name"

// scanRun reads a run, and what stands before its columns.
func scanRun(rows *stdsql.Rows, before ...any) (RunRow, error) {
	var (
		r       RunRow
		session uuid.UUID
	)
	err := rows.Scan(append(before, &r.ID, &r.JobID, &r.Due, &r.Origin, &r.Attempt, &session, &r.Launch.N, (*flag)(&r.Final), &r.Outcome, &r.Reason, &r.ExitCode,
		&r.Signal, &r.Until, &r.Count, &r.Started, &r.Ended, &r.Lateness, &r.Node, &r.Output.Bytes, &r.Kept, &r.App, &r.Job)...)
	r.Launch.Session = session
	return r, err
}

func (db *DB) executing(ctx context.Context, index, where string, args ...any) ([]RunRow, error) {
	var out []RunRow
	err := db.query(ctx, "list executing tasks", func(rows *stdsql.Rows) error {
		var (
			r       RunRow
			session uuid.UUID
			dueNow  job.Micros
		)
		err := rows.Scan(&r.ID, &r.JobID, &r.Due, &dueNow, &r.Origin, &r.Attempt, &session, &r.Launch.N, &r.Started, &r.Node, &r.App, &r.Job)
		r.Launch.Session, r.Executing, r.Count, r.Until = session, true, 1, r.Due
		r.Started = max(r.Started, dueNow) // the start is committed a little before the due instant, at which it is spawned
		r.Lateness = int64(r.Started - dueNow)
		out = append(out, r)
		return err
	}, "SELECT t.id, t.job_id, t.due, t.due_now, t.origin, t.attempt, t.session_id, t.launch, t.started, COALESCE(s.node, ''), "+appOfTask+", j.name"+
		" FROM task t FORCE INDEX ("+index+") STRAIGHT_JOIN job j ON j.id = t.job_id LEFT JOIN session s ON s.id = t.session_id WHERE "+where+
		" ORDER BY t.due DESC, t.id DESC LIMIT ?", args...)
	return out, err
}

// Run returns one run, ended or executing, with the output that was kept of an ended one.
func (db *DB) Run(ctx context.Context, l job.Launch) (RunRow, error) {
	out, err := db.executing(ctx, "owner", "t.session_id = ? AND t.launch = ?", l.Session[:], l.N, 1)
	if err != nil {
		return RunRow{}, err
	}
	if len(out) == 1 {
		return out[0], nil
	}
	err = db.query(ctx, "read run", func(rows *stdsql.Rows) error {
		r, err := scanRun(rows)
		out = append(out, r)
		return err
	}, "SELECT "+runColumns+" FROM history h JOIN job j ON j.id = h.job_id WHERE h.session_id = ? AND h.launch = ?", l.Session[:], l.N)
	if err != nil {
		return RunRow{}, err
	}
	if len(out) == 0 {
		return RunRow{}, ErrNotFound
	}
	r := out[0]
	err = db.query(ctx, "read output", func(rows *stdsql.Rows) error {
		return rows.Scan(&r.Output.Head, &r.Output.Tail, &r.Output.Encoding)
	}, "SELECT head, tail, encoding FROM output WHERE session_id = ? AND launch = ?", l.Session[:], l.N)
	if err == nil {
		err = r.Output.Unpack()
	}
	return r, err
}

// cut shortens s to at most n runes, the last of which then is an ellipsis.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// RunsAt returns the runs that stand for a due time of a job's schedule, its attempts in order. One row may count it
// among others.
func (db *DB) RunsAt(ctx context.Context, jobID int64, due job.Micros) ([]RunRow, error) {
	var near []RunRow
	// Runs of one schedule do not overlap, so only those of the latest due time up to this one can be meant.
	err := db.query(ctx, "read runs of a due time", func(rows *stdsql.Rows) error {
		r, err := scanRun(rows)
		near = append(near, r)
		return err
	}, "SELECT "+runColumns+" FROM history h FORCE INDEX (attempt) JOIN job j ON j.id = h.job_id"+
		" WHERE h.job_id = ? AND h.origin = 0 AND h.due <= ? ORDER BY h.due DESC, h.origin DESC, h.attempt DESC LIMIT ?", jobID, int64(due), job.MaxAttempts)
	if err != nil {
		return nil, err
	}
	slices.Reverse(near)
	return slices.DeleteFunc(near, func(r RunRow) bool { return r.Until < due || r.Due != near[len(near)-1].Due }), nil
}

// RunsAskedAt returns the runs due from one instant until before another that no schedule has made: somebody asked for them,
// by hand or with a backfill. Those of one due time and origin follow each other, its attempts in order.
func (db *DB) RunsAskedAt(ctx context.Context, jobID int64, from, before job.Micros) ([]RunRow, error) {
	var runs []RunRow
	err := db.query(ctx, "read runs that were asked for", func(rows *stdsql.Rows) error {
		r, err := scanRun(rows)
		runs = append(runs, r)
		return err
	}, "SELECT "+runColumns+" FROM history h FORCE INDEX (attempt) JOIN job j ON j.id = h.job_id"+
		" WHERE h.job_id = ? AND h.due >= ? AND h.due < ? AND h.origin <> 0 ORDER BY h.due, h.origin, h.attempt LIMIT ?", jobID, int64(from), int64(before), askedMost)
	return runs, err
}

// askedMost is how many rows of runs that were asked for are returned for one instant.
const askedMost = 2 * job.MaxAttempts

// TasksAskedAt returns the live tasks of such due times.
func (db *DB) TasksAskedAt(ctx context.Context, jobID int64, from, before job.Micros) ([]TaskRow, error) {
	var out []TaskRow
	err := db.query(ctx, "read task that was asked for", func(rows *stdsql.Rows) error {
		t, err := scanTask(rows)
		out = append(out, t)
		return err
	}, "SELECT "+taskColumns+" FROM task FORCE INDEX (due) WHERE job_id = ? AND due >= ? AND due < ? AND origin <> 0 ORDER BY due, origin LIMIT ?", jobID, int64(from), int64(before), askedMost)
	return out, err
}

// TaskAt returns the live task of a due time of a job's schedule, or ErrNotFound.
func (db *DB) TaskAt(ctx context.Context, jobID int64, due job.Micros) (TaskRow, error) {
	var out []TaskRow
	err := db.query(ctx, "read task of a due time", func(rows *stdsql.Rows) error {
		t, err := scanTask(rows)
		out = append(out, t)
		return err
	}, "SELECT "+taskColumns+" FROM task WHERE job_id = ? AND due = ? AND origin = 0", jobID, int64(due))
	return first(out, err)
}
