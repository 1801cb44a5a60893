package sql

import (
	"context"
	stdsql "database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go-crontab/job"
)

// A pause of an app or of the cluster is one row, whatever the number of its jobs. It stops starts as soon as it is
// committed, because whoever reads a job reads with it the pauses that cover it. The jobs themselves are changed one
// by one, as the planner meets them: then they are held, and have no due times. Once no live pause covers a held job,
// a planner releases it; so no job stays held, whoever died in between.

// coverColumns read, beside a job, the pauses of the cluster and of its app that were not ended yet. They take no
// lock, also where the job's row is locked.
const coverColumns = "(SELECT " + coverObject + " FROM pause p WHERE p.app = '' AND p.ended = 0)," +
	" (SELECT " + coverObject + " FROM pause p WHERE p.app = job.app AND p.ended = 0)"

const coverObject = "JSON_OBJECT('App', p.app, 'By', p.who, 'Reason', p.reason, 'Since', p.since, 'Until', p.until)"

func decodeCovers(columns [2]stdsql.NullString) ([]job.Pause, error) {
	var out []job.Pause
	for _, c := range columns {
		if !c.Valid {
			continue
		}
		var p job.Pause
		if err := json.Unmarshal([]byte(c.String), &p); err != nil {
			return nil, fmt.Errorf("read a pause: %w", err)
		}
		p.Scope = scopeOf(p.App)
		out = append(out, p)
	}
	return out, nil
}

func scopeOf(app string) job.Scope {
	if app == "" {
		return job.ScopeCluster
	}
	return job.ScopeApp
}

// PauseRow is a pause of an app or of the cluster.
type PauseRow struct {
	job.Pause
	Ended bool // it is over since Until, and the audit says so
}

const pauseColumns = "app, who, reason, since, until, ended"

func pauseRows(out *[]PauseRow) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var p PauseRow
		err := rows.Scan(&p.App, &p.By, &p.Reason, &p.Since, &p.Until, (*flag)(&p.Ended))
		p.Scope = scopeOf(p.App)
		*out = append(*out, p)
		return err
	}
}

// Pauses lists the pauses of apps and of the cluster, also those that are over and still have jobs to release.
func (db *DB) Pauses(ctx context.Context) ([]PauseRow, error) {
	var out []PauseRow
	err := db.query(ctx, "list pauses", pauseRows(&out), "SELECT "+pauseColumns+" FROM pause ORDER BY app")
	return out, err
}

// SharePauses is Pauses, and keeps others from ending or changing them until this transaction is over: whoever holds a
// job for one does so while it lasts.
func (tx *Tx) SharePauses() ([]PauseRow, error) {
	var out []PauseRow
	err := tx.query("share pauses", pauseRows(&out), "SELECT "+pauseColumns+" FROM pause ORDER BY app LOCK IN SHARE MODE")
	return out, err
}

// LockPause locks and returns the pause of an app, or with "" that of the cluster, or ErrNotFound.
func (tx *Tx) LockPause(app string) (PauseRow, error) {
	var out []PauseRow
	err := tx.query("lock pause", pauseRows(&out), "SELECT "+pauseColumns+" FROM pause WHERE app = ? FOR UPDATE", app)
	return first(out, err)
}

// PutPause writes a pause that begins, or goes on with another reason or end.
func (tx *Tx) PutPause(p job.Pause) error {
	values := []any{int64(p.Until), p.Reason, cut(p.By, 128), int64(p.Since)}
	_, err := tx.exec("put pause", "INSERT INTO pause (app, until, reason, who, since) VALUES (?, ?, ?, ?, ?)"+
		" ON DUPLICATE KEY UPDATE until = ?, reason = ?, who = ?, since = ?, ended = 0", slices.Concat([]any{p.App}, values, values)...)
	return err
}

// EndPause ends a pause that was not ended yet, as of an instant. It tells whether it did.
func (tx *Tx) EndPause(app string, at job.Micros) (bool, error) {
	n, err := tx.exec("end pause", "UPDATE pause SET until = ?, ended = 1 WHERE app = ? AND ended = 0", int64(at), app)
	return n == 1, err
}

// DropPause removes a pause that was ended at an instant, if nobody has begun it anew.
func (tx *Tx) DropPause(app string, ended job.Micros) error {
	_, err := tx.exec("drop pause", "DELETE FROM pause WHERE app = ? AND until = ? AND ended = 1", app, int64(ended))
	return err
}

// HeldApps lists the apps that have held jobs, but for those that are known to be paused. It reads one entry of an index
// for each, however many jobs there are.
func (db *DB) HeldApps(ctx context.Context, paused []string) ([]string, error) {
	cond, args := "", []any{""}
	if len(paused) > 0 {
		var list string
		list, args = in(args, paused)
		cond = " AND app NOT IN " + list // the server makes ranges of it
	}
	var out []string
	for n := 0; n == len(out); n++ {
		err := db.query(ctx, "find app of held jobs", func(rows *stdsql.Rows) error {
			var app string
			err := rows.Scan(&app)
			out = append(out, app)
			return err
		}, "SELECT app FROM job FORCE INDEX (held) WHERE held = 1 AND app > ?"+cond+" ORDER BY app LIMIT 1", args...)
		if err != nil {
			return nil, err
		}
		if len(out) > n {
			args[0] = out[n]
		}
	}
	return out, nil
}

// HeldJobs lists, in order, ids of held jobs of an app whose hashes lie in any of the slices, those after the given one.
func (db *DB) HeldJobs(ctx context.Context, app string, mine []Slice, after int64, limit int) ([]int64, error) {
	if len(mine) == 0 {
		return nil, nil
	}
	cond, args := "", []any{app, after}
	for i, s := range mine {
		if i > 0 {
			cond += " OR "
		}
		cond += "hash >= ? AND hash < ?"
		args = append(args, s.FromHash, s.ToHash)
	}
	return db.ids(ctx, "list held jobs", "SELECT id FROM job FORCE INDEX (held) WHERE held = 1 AND app = ? AND id > ? AND ("+cond+") ORDER BY id LIMIT ?", append(args, limit)...)
}

// Stoppable lists jobs of an app, or with "" of the cluster, that a pause is to hold because something of them is planned
// that nobody has started: the jobs of at most so many scheduled tasks in a state, of the hashes in the slices, that are
// due from an instant on and before until, unless that is zero. It returns when the last of the tasks is due, and
// whether there may be more.
func (db *DB) Stoppable(ctx context.Context, app string, mine []Slice, state job.State, from, until job.Micros, limit int) (jobs []int64, last job.Micros, more bool, err error) {
	if len(mine) == 0 {
		return nil, 0, false, nil
	}
	cond, args := "", []any{state, int64(from)}
	if until != 0 {
		cond, args = " AND t.due_now < ?", append(args, int64(until))
	}
	for i, s := range mine {
		op := " OR "
		if i == 0 {
			op = " AND ("
		}
		cond, args = cond+op+"t.hash >= ? AND t.hash < ?", append(args, s.FromHash, s.ToHash)
	}
	cond += ")"
	if app != "" {
		cond, args = cond+" AND j.app = ?", append(args, app)
	}
	n := 0
	err = db.query(ctx, "list jobs to hold", func(rows *stdsql.Rows) error {
		var id int64
		err := rows.Scan(&id, &last)
		jobs, n = append(jobs, id), n+1
		return err
	}, "SELECT t.job_id, t.due_now FROM task t FORCE INDEX (slice) STRAIGHT_JOIN job j ON j.id = t.job_id WHERE t.state = ? AND t.due_now >= ?"+cond+
		" AND t.origin = 0 AND j.paused = 0 AND j.held = 0 AND j.living = 1 ORDER BY t.due_now LIMIT ?", append(args, limit)...)
	slices.Sort(jobs)
	return slices.Compact(jobs), last, n == limit, err
}

// Held is a job that gets no due times any more because its app or the cluster is paused.
type Held struct {
	JobID   int64
	At      job.Micros
	LastDue job.Micros // raised to this
}

// HoldJobs takes the cursors from jobs whose rows this transaction has locked.
func (tx *Tx) HoldJobs(held []Held) error {
	if len(held) == 0 {
		return nil
	}
	rows := make([][]int64, len(held))
	for i, h := range held {
		rows[i] = []int64{h.JobID, int64(h.At), int64(h.LastDue)}
	}
	n, err := tx.exec("hold jobs", "UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', at BIGINT PATH '$[1]', last BIGINT PATH '$[2]')) n"+
		" STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = n.id SET j.held = 1, j.replan = 0, j.paused_at = n.at, j.next_due = NULL, j.last_due = GREATEST(j.last_due, n.last)"+
		" WHERE j.paused = 0 AND j.held = 0 AND j.living = 1", table(rows))
	if err == nil && n != int64(len(held)) {
		err = fmt.Errorf("hold jobs: %d of %d rows: %w", n, len(held), ErrMoved)
	}
	return err
}

// ReleaseJobs gives held jobs, whose rows this transaction has locked, their cursors back. Seen does not count.
func (tx *Tx) ReleaseJobs(cursors []Cursor) error {
	if len(cursors) == 0 {
		return nil
	}
	rows := make([][]int64, len(cursors))
	for i, c := range cursors {
		rows[i] = []int64{c.JobID, c.Version, int64(c.Next), int64(c.LastDue)}
	}
	n, err := tx.exec("release jobs", "UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', version BIGINT PATH '$[1]', next BIGINT PATH '$[2]',"+
		" last BIGINT PATH '$[3]')) n STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = n.id"+
		" SET j.held = 0, j.finished = 0, j.paused_at = 0, j.next_due = NULLIF(n.next, 0), j.last_due = GREATEST(j.last_due, n.last)"+
		" WHERE j.held <> 0 AND j.paused = 0 AND j.living = 1 AND j.version = n.version", table(rows))
	if err == nil && n != int64(len(cursors)) {
		err = fmt.Errorf("release jobs: %d of %d rows: %w", n, len(cursors), ErrMoved)
	}
	return err
}

// LiveTasksOf locks and returns the live tasks of jobs, whose rows the caller holds, by job: of the first so many jobs
// that they are not many more than most, and of one at least. A job that is left out is not in the answer.
func (tx *Tx) LiveTasksOf(jobIDs []int64, most int) (map[int64][]TaskRow, error) {
	if len(jobIDs) == 0 {
		return nil, nil
	}
	byJob := map[int64][]int64{}
	err := tx.query("list tasks of jobs", func(rows *stdsql.Rows) error {
		var id, jobID int64
		err := rows.Scan(&id, &jobID)
		byJob[jobID] = append(byJob[jobID], id)
		return err
	}, "SELECT t.id, t.job_id FROM "+eachOf+"task t FORCE INDEX (due) ON t.job_id = n.id", numbers(jobIDs))
	if err != nil {
		return nil, err
	}
	out, ids := map[int64][]TaskRow{}, []int64{}
	for _, id := range jobIDs {
		if len(ids) > 0 && len(ids)+len(byJob[id]) > most {
			break
		}
		out[id], ids = nil, append(ids, byJob[id]...)
	}
	slices.Sort(ids)
	rows, err := tx.LockTasks(ids)
	for _, id := range ids {
		if r, ok := rows[id]; ok {
			out[r.JobID] = append(out[r.JobID], r)
		}
	}
	return out, err
}

// MayStart looks for tasks of the schedule and of backfills of an app, or with "" of the cluster, whose start is committed,
// or may be on its way because they are prepared and due before soon, or within so long of MySQL's clock, which the caller
// may not have read since it was put forward; ahead may be 0. It returns how many are on their way, until when something may
// be spawned for the others (zero: there are none), and what soon came to.
func (db *DB) MayStart(ctx context.Context, app string, soon job.Micros, ahead time.Duration) (onTheirWay int, window, by job.Micros, err error) {
	bound, args := "?", []any{int64(soon)}
	if ahead > 0 {
		bound, args = "GREATEST(?, "+now+" + ?)", append(args, ahead.Microseconds())
	}
	cond, args := "", slices.Concat(args, args)
	if app != "" {
		cond, args = " AND EXISTS (SELECT 1 FROM job j WHERE j.id = t.job_id AND j.app = ?)", append(args, app)
	}
	err = db.query(ctx, "look for starts", func(rows *stdsql.Rows) error { return rows.Scan(&onTheirWay, &window, &by) },
		"SELECT COALESCE(SUM(t.state = 1), 0), COALESCE(MAX(t.spawn_by), 0), "+bound+" FROM task t FORCE INDEX (slice)"+
			" WHERE (t.state = 1 AND t.due_now < "+bound+" OR t.state = 2) AND t.origin <= 0"+cond, args...)
	return onTheirWay, window, by, err
}

// CountJobs counts the living jobs of an app, or with "" of the cluster.
func (db *DB) CountJobs(ctx context.Context, app string) (n int64, err error) {
	cond, args := "", []any(nil)
	if app != "" {
		cond, args = " AND app = ?", []any{app}
	}
	err = db.query(ctx, "count jobs", func(rows *stdsql.Rows) error { return rows.Scan(&n) }, "SELECT COUNT(*) FROM job FORCE INDEX (name) WHERE living = 1"+cond, args...)
	return n, err
}
