package sql

import (
	"cmp"
	"context"
	stdsql "database/sql"
	"fmt"
	"slices"

	"go-crontab/job"

	"github.com/google/uuid"
)

// InsertTasks plans tasks as idle rows. A (job, due, origin) that is there already stays as it is, so that one
// duplicate never fails the others.
func (tx *Tx) InsertTasks(tasks []job.Task) error {
	for part := range slices.Chunk(tasks, 2000) {
		args := make([]any, 0, len(part)*7)
		for _, t := range part {
			args = append(args, t.JobID, int64(t.Due), t.Origin, int64(t.DueNow), t.Hash, t.Place, t.Priority)
		}
		_, err := tx.exec("insert tasks", "INSERT INTO task (job_id, due, origin, due_now, hash, place, priority) VALUES "+values(len(part), 7)+
			" ON DUPLICATE KEY UPDATE origin = task.origin", args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// Slice is what one scan looks at: the idle tasks of a range of hashes (a bucket, or several that adjoin) that
// are due before an instant, those of earlier minutes included.
type Slice struct {
	FromHash, ToHash int // FromHash ≤ hash < ToHash
	Before           job.Micros
	Places           []int // only of these; nil: of any
	Except           []int // and not of these
}

// Candidate is a task that was idle when it was seen.
type Candidate struct {
	ID       int64
	Hash     int
	DueNow   job.Micros
	Place    int
	Priority int
}

// IdleTasks lists idle tasks in any of the slices, the earliest due first. It takes no lock.
func (db *DB) IdleTasks(ctx context.Context, slices []Slice, limit int) ([]Candidate, error) {
	if len(slices) == 0 || limit <= 0 {
		return nil, nil
	}
	query, args := idle(slices, limit)
	return db.candidates(ctx, query, args)
}

// IdleByPriority lists, of the first depth tasks that IdleTasks would list, those with the highest priority.
func (db *DB) IdleByPriority(ctx context.Context, slices []Slice, depth, limit int) ([]Candidate, error) {
	if len(slices) == 0 || limit <= 0 {
		return nil, nil
	}
	query, args := idle(slices, depth)
	return db.candidates(ctx, "SELECT * FROM ("+query+") first ORDER BY priority DESC, due_now LIMIT ?", append(args, limit))
}

// idle is the query for idle tasks in slices.
func idle(slices []Slice, limit int) (query string, args []any) {
	latest := slices[0].Before
	cond := ""
	for i, s := range slices {
		if i > 0 {
			cond += " OR "
		}
		cond += "hash >= ? AND hash < ? AND due_now < ?"
		args = append(args, s.FromHash, s.ToHash, int64(s.Before))
		for _, p := range []struct {
			op   string
			list []int
		}{{" AND place IN ", s.Places}, {" AND place NOT IN ", s.Except}} {
			if len(p.list) > 0 {
				var list string
				list, args = in(args, p.list)
				cond += p.op + list
			}
		}
		latest = max(latest, s.Before)
	}
	return "SELECT id, hash, due_now, place, priority FROM task FORCE INDEX (slice) WHERE state = 0 AND due_now < ? AND (" + cond + ") ORDER BY due_now LIMIT ?",
		append(append([]any{int64(latest)}, args...), limit)
}

func (db *DB) candidates(ctx context.Context, query string, args []any) ([]Candidate, error) {
	var out []Candidate
	err := db.query(ctx, "scan idle tasks", func(rows *stdsql.Rows) error {
		var c Candidate
		err := rows.Scan(&c.ID, &c.Hash, &c.DueNow, &c.Place, &c.Priority)
		out = append(out, c)
		return err
	}, query, args...)
	return out, err
}

// Siblings returns the tasks of jobs that execute or have been woken, by job; of the ordered ones among the jobs also those that
// have not begun and are due before an instant, before which nearly all is due that executes.
func (tx *Tx) Siblings(jobIDs, ordered []int64, before job.Micros) (map[int64][]TaskRow, error) {
	_, out, err := tx.Around(nil, jobIDs, ordered, before)
	return out, err
}

// Around returns tasks as they stand, by id, and the siblings of jobs as Siblings does, in one statement. It takes no
// lock: while this transaction holds the rows of their jobs, nobody but their owner and who finds it dead moves what is
// prepared, and [Tx.Start] finds that out.
func (tx *Tx) Around(tasks []job.Task, jobIDs, ordered []int64, before job.Micros) (own map[int64]TaskRow, others map[int64][]TaskRow, err error) {
	own, others = make(map[int64]TaskRow, len(tasks)), map[int64][]TaskRow{}
	looked, orders := setOf(jobIDs), setOf(ordered)
	var beside, apart []int64 // the tasks that are found where siblings are looked for, and the others
	mine := make(map[int64]bool, len(tasks))
	for _, t := range tasks {
		mine[t.ID] = true
		if looked[t.JobID] && t.Due < before {
			beside = append(beside, t.ID)
		} else {
			apart = append(apart, t.ID)
		}
	}
	var query string
	var args []any
	if len(apart) > 0 {
		query, args = in(nil, apart)
		query = "SELECT 1, " + taskColumns + " FROM task FORCE INDEX (PRIMARY) WHERE id IN " + query
	}
	if len(jobIDs) > 0 {
		if query != "" {
			query += " UNION ALL "
		}
		var list, ahead string
		list, args = in(args, jobIDs)
		state := "state = 2 OR due_now > due" // what has been woken is later than it was due
		args = append(args, int64(before))
		for _, also := range []struct {
			column string
			ids    []int64
		}{{"job_id", ordered}, {"id", beside}} {
			if len(also.ids) > 0 {
				var ids string
				ids, args = in(args, also.ids)
				state += " OR " + also.column + " IN " + ids
			}
		}
		// The bound on due keeps the many tasks that are planned ahead for a frequent job out of the range. What executes
		// behind it began before MySQL's clock was put back: there is an index for that little.
		ahead, args = in(append(args, int64(before), int64(before)), jobIDs)
		query += "SELECT 0, " + taskColumns + " FROM task FORCE INDEX (due) WHERE job_id IN " + list + " AND due < ? AND (" + state + ")" +
			" UNION ALL SELECT 0, " + taskColumns + " FROM task FORCE INDEX (slice) WHERE state = 2 AND due_now >= ? AND due >= ? AND job_id IN " + ahead
	}
	if query == "" {
		return own, others, nil
	}
	err = tx.query("read siblings", func(rows *stdsql.Rows) error {
		var byID bool
		t, err := scanTask(rows, &byID)
		if mine[t.ID] {
			own[t.ID] = t
		}
		if !byID && (t.State == job.Executing || t.DueNow > t.Due || orders[t.JobID]) {
			others[t.JobID] = append(others[t.JobID], t)
		}
		return err
	}, query, args...)
	return own, others, err
}

func setOf(ids []int64) map[int64]bool {
	set := make(map[int64]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// LiveTasks locks and returns all live tasks of one job, whose row the caller holds.
func (tx *Tx) LiveTasks(jobID int64) ([]TaskRow, error) {
	ids := []int64{}
	err := tx.query("list tasks of a job", func(rows *stdsql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, "SELECT id FROM task FORCE INDEX (due) WHERE job_id = ?", jobID)
	if err != nil {
		return nil, err
	}
	rows, err := tx.LockTasks(ids)
	if err != nil {
		return nil, err
	}
	var out []TaskRow
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if r, ok := rows[id]; ok {
			out = append(out, r)
		}
	}
	return out, nil
}

// Withdraw removes tasks, locked by this transaction, that are no due times any more. No run remembers them.
func (tx *Tx) Withdraw(ids []int64) error {
	n, err := tx.remove("withdraw tasks", "task", "id", ids)
	if err == nil && n != int64(len(ids)) {
		err = fmt.Errorf("withdraw tasks: %d of %d rows: %w", n, len(ids), ErrMoved)
	}
	return err
}

// RequestKill asks the session that executes a launch to kill it. False means that it does not execute, or not any
// more.
func (tx *Tx) RequestKill(l job.Launch) (bool, error) {
	var ids []int64
	err := tx.query("find task", func(rows *stdsql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, "SELECT id FROM task FORCE INDEX (owner) WHERE session_id = ? AND launch = ?", l.Session[:], l.N)
	if err != nil {
		return false, err
	}
	rows, err := tx.LockTasks(ids)
	if err != nil {
		return false, err
	}
	for id, r := range rows {
		if r.Is(l, job.Executing) {
			_, err := tx.exec("request kill", "UPDATE task SET kill_requested = 1 WHERE id = ?", id)
			return true, err
		}
	}
	return false, nil
}

// Replace asks for executing tasks, seen by this transaction at their launches, to be killed because a later due time
// takes their place. One that has ended meanwhile is left alone.
func (tx *Tx) Replace(tasks []TaskRow) error {
	for _, t := range tasks {
		_, err := tx.exec("replace", "UPDATE task SET kill_requested = 2 WHERE id = ? AND session_id = ? AND launch = ? AND state = 2 AND kill_requested = 0",
			t.ID, t.Launch.Session[:], t.Launch.N)
		if err != nil {
			return err
		}
	}
	return nil
}

// KillRequest is an executing task that is to be killed.
type KillRequest struct {
	Launch   job.Launch
	Replaced bool // by a later due time; else somebody wants it
}

// KillsRequested lists the executing tasks of a session that are to be killed.
func (db *DB) KillsRequested(ctx context.Context, session uuid.UUID) ([]KillRequest, error) {
	var out []KillRequest
	err := db.query(ctx, "list kill requests", func(rows *stdsql.Rows) error {
		k := KillRequest{Launch: job.Launch{Session: session}}
		err := rows.Scan(&k.Launch.N, &k.Replaced)
		out = append(out, k)
		return err
	}, "SELECT launch, kill_requested = 2 FROM task FORCE INDEX (owner) WHERE session_id = ? AND state = 2 AND kill_requested > 0", session[:])
	return out, err
}

// SessionTasks lists up to limit tasks that a session owns, without locking, ids after the given one.
func (db *DB) SessionTasks(ctx context.Context, session uuid.UUID, after int64, limit int) ([]TaskRow, error) {
	var out []TaskRow
	// Those that nobody wants to be killed are in the order of the index. To read all at once would sort all for each page.
	one := "(SELECT " + taskColumns + " FROM task FORCE INDEX (owner) WHERE session_id = ? AND kill_requested %s 0 AND id > ? ORDER BY id LIMIT ?)"
	err := db.query(ctx, "list tasks of a session", func(rows *stdsql.Rows) error {
		t, err := scanTask(rows)
		out = append(out, t)
		return err
	}, fmt.Sprintf(one+" UNION ALL "+one, "=", "<>"), session[:], after, limit, session[:], after, limit)
	slices.SortFunc(out, func(a, b TaskRow) int { return cmp.Compare(a.ID, b.ID) })
	return out[:min(len(out), limit)], err
}

// Owners lists the sessions that own a task. It reads one entry of an index for each.
func (db *DB) Owners(ctx context.Context) ([]uuid.UUID, error) {
	var out []uuid.UUID
	err := db.query(ctx, "list owners", func(rows *stdsql.Rows) error {
		var id uuid.UUID
		err := rows.Scan(&id)
		out = append(out, id)
		return err
	}, "SELECT DISTINCT session_id FROM task FORCE INDEX (owner) WHERE session_id > "+nobody)
	return out, err
}

// CountIdle counts the idle tasks that are due before an instant, up to most.
func (db *DB) CountIdle(ctx context.Context, before job.Micros, most int) (n int, err error) {
	err = db.query(ctx, "count idle tasks", func(rows *stdsql.Rows) error { return rows.Scan(&n) },
		"SELECT COUNT(*) FROM (SELECT 1 FROM task FORCE INDEX (slice) WHERE state = 0 AND due_now < ? LIMIT ?) ahead", int64(before), most)
	return n, err
}
