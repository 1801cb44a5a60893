package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"go-crontab/job"
)

// A task that is due and must wait for something stands in state waiting: nobody's, out of the way of claims, with a
// row in waiting that says for what. Whoever ends what it waits for wakes it in the same transaction: it becomes idle
// and is due at that instant. Starts and ends of jobs that may wait hold the job's row, and those of a group the
// group's row, so that nobody begins to wait for what has just ended.

// WaitKind says for what a task waits.
type WaitKind int8

// The kinds of waiting.
const (
	WaitJob   WaitKind = 1 // for runs of its own job
	WaitGroup WaitKind = 2 // for a slot of its group
	WaitNode  WaitKind = 3 // for a node that it may run on
	WaitPause WaitKind = 4 // for the end of a pause: what is planned of a backfill rests in it
)

// Wait is one task that begins to wait.
type Wait struct {
	TaskID, JobID, GroupID int64
	Kind                   WaitKind
	Priority               int
	Due                    job.Micros // its place among those of the same priority: mostly when it was due
	Since                  job.Micros
	Expires                job.Micros // when it ends missed; zero: never
}

// never is when a wait expires that does not.
const never = job.Micros(math.MaxInt64)

// Wait moves tasks, locked by this transaction and found in the given state, to waiting.
func (tx *Tx) Wait(from job.State, waits []Wait) error {
	if len(waits) == 0 {
		return nil
	}
	ids := make([]int64, len(waits))
	args := make([]any, 0, 8*len(waits))
	for i, w := range waits {
		ids[i] = w.TaskID
		if w.Expires == 0 {
			w.Expires = never
		}
		args = append(args, w.TaskID, w.Kind, w.JobID, w.GroupID, -w.Priority, int64(w.Due), int64(w.Since), int64(w.Expires))
	}
	list, idArgs := in([]any{from}, ids)
	n, err := tx.exec("wait", "UPDATE task FORCE INDEX (PRIMARY) SET state = 3, session_id = DEFAULT, launch = DEFAULT WHERE state = ? AND id IN "+list, idArgs...)
	if err != nil {
		return err
	}
	if n != int64(len(ids)) {
		return fmt.Errorf("wait: %d of %d rows: %w", n, len(ids), ErrMoved)
	}
	_, err = tx.exec("insert waiting", "REPLACE INTO waiting (task_id, kind, job_id, group_id, turn, due, since, expires) VALUES "+values(len(waits), 8), args...)
	return err
}

// WakeJobs wakes, of each job whose row this transaction holds, the waiting task that comes next, unless a run of the
// job executes or one that comes before it is about to. The schedule goes before backfills, of which any number may wait
// at any time, but in the jobs in turns, of which a run has just ended that was no backfill's: there a backfill goes
// first. It returns how many it woke.
func (tx *Tx) WakeJobs(jobIDs, turns []int64, now job.Micros) (int, error) {
	next, err := tx.nextOfJobs(jobIDs, turns, now)
	if err != nil {
		return 0, err
	}
	ids, err := tx.wakeable(idsOf(slices.Collect(maps.Values(next))))
	if err != nil {
		return 0, err
	}
	return len(ids), tx.wake(ids, now)
}

// nextOfJobs returns the tasks that WakeJobs is to wake, by job.
func (tx *Tx) nextOfJobs(jobIDs, turns []int64, now job.Micros) (map[int64]TaskRow, error) {
	if len(jobIDs) == 0 {
		return nil, nil
	}
	list, args := in(nil, jobIDs)
	rows, err := tx.tasks("read tasks that wait", "SELECT "+taskColumns+" FROM task FORCE INDEX (due) WHERE job_id IN "+list+
		" AND due <= ? ORDER BY job_id, due, id", append(args, int64(now))...)
	if err != nil {
		return nil, err
	}
	kinds, err := tx.waitsOf(rows)
	if err != nil {
		return nil, err
	}
	heads, executes := map[int64]*[2]head{}, map[int64]bool{} // of the schedule, and of backfills
	for _, t := range rows {
		h := heads[t.JobID]
		if h == nil {
			h = new([2]head)
			heads[t.JobID] = h
		}
		line := &h[0]
		if t.Origin < 0 {
			line = &h[1]
		}
		switch {
		case t.State == job.Executing:
			executes[t.JobID] = true
		case line.busy || line.next.ID != 0:
		case t.State == job.Waiting && kinds[t.ID] == WaitJob:
			line.next = t
		case t.State == job.Waiting || t.DueNow <= now: // it waits for something else, or is about to start: it comes first
			line.busy = true
		}
	}
	next := map[int64]TaskRow{}
	for id, h := range heads {
		backfill := h[1].next.ID != 0 && (slices.Contains(turns, id) || h[0] == head{})
		switch {
		case executes[id]:
		case backfill:
			next[id] = h[1].next
		case h[0].next.ID != 0:
			next[id] = h[0].next
		}
	}
	return next, nil
}

func idsOf(rows []TaskRow) []int64 {
	ids := make([]int64, len(rows))
	for i, t := range rows {
		ids[i] = t.ID
	}
	return ids
}

// WakeFree has the transaction wake no tasks but those that nobody else has locked, and wait for none. The others are for
// the sweeper, once they are free.
func (tx *Tx) WakeFree() { tx.wakeFree = true }

// wakeable are those of the waiting tasks that may be woken, see WakeFree.
func (tx *Tx) wakeable(ids []int64) ([]int64, error) {
	if !tx.wakeFree || len(ids) == 0 {
		return ids, nil
	}
	rows, err := tx.lockTasks(ids, " SKIP LOCKED")
	return slices.DeleteFunc(ids, func(id int64) bool { return rows[id].State != job.Waiting }), err
}

// head is who comes next in a line of a job's tasks.
type head struct {
	next TaskRow // who waits for runs of the job; zero: nobody,
	busy bool    // or that the first is about to start, or waits for something else
}

// Wake wakes who comes next after tasks of jobs, whose rows this transaction holds, have ended or do not execute any
// more: in each of the jobs, and in the groups of which a task gives its slot back. It returns how many it woke.
func (tx *Tx) Wake(jobIDs, turns, unslotted []int64, now job.Micros) (int, error) {
	var groups []int64
	if len(unslotted) > 0 {
		var err error
		if groups, err = tx.groupsOf(unslotted); err != nil {
			return 0, err
		}
	}
	if len(groups) == 0 {
		return tx.WakeJobs(jobIDs, turns, now)
	}
	next, err := tx.nextOfJobs(jobIDs, turns, now)
	if err != nil {
		return 0, err
	}
	lock := tx.LockGroupIDs
	if tx.wakeFree { // of a group that somebody keeps locked a slot is given back, and the sweeper wakes who gets it
		lock = tx.LockFreeGroupIDs
	}
	locked, err := lock(groups)
	if err != nil {
		return 0, err
	}
	if err := tx.FreeSlots(unslotted); err != nil {
		return 0, err
	}
	ids, err := tx.queueForSlots(next, groups, now)
	if err != nil {
		return 0, err
	}
	if ids, err = tx.wakeable(ids); err != nil {
		return 0, err
	}
	if err := tx.wake(ids, now); err != nil {
		return 0, err
	}
	n, err := tx.WakeGroups(locked, now)
	return len(ids) + n, err
}

// queueForSlots has those of the tasks that come next in jobs of the groups wait for a slot like all others who do: if they
// were woken, one that waits for it already would get it, also where they have the higher priority. One of a backfill, of which
// there is always a next one, comes behind those that wait already. It returns the others.
func (tx *Tx) queueForSlots(next map[int64]TaskRow, groups []int64, now job.Micros) (others []int64, err error) {
	if len(next) == 0 {
		return nil, nil
	}
	list, args := in([]any{RefGroup}, slices.Sorted(maps.Keys(next)))
	among, args := in(args, groups)
	byGroup, backfills := map[int64][]int64{}, []int64(nil)
	err = tx.query("read groups of jobs", func(rows *stdsql.Rows) error {
		var jobID, group int64
		err := rows.Scan(&jobID, &group)
		byGroup[group] = append(byGroup[group], next[jobID].ID)
		if next[jobID].Origin < 0 {
			backfills = append(backfills, next[jobID].ID)
		}
		delete(next, jobID)
		return err
	}, "SELECT r.job_id, g.id FROM job_ref r JOIN grp g ON g.name = r.name WHERE r.kind = ? AND r.job_id IN "+list+" AND g.id IN "+among, args...)
	if err != nil {
		return nil, err
	}
	for group, ids := range byGroup {
		list, args := in([]any{group}, ids)
		n, err := tx.exec("queue for slots", "UPDATE waiting FORCE INDEX (PRIMARY) SET kind = 2, group_id = ? WHERE task_id IN "+list+" AND kind = 1", args...)
		if err == nil && n != int64(len(ids)) {
			err = fmt.Errorf("queue for slots: %d of %d rows: %w", n, len(ids), ErrMoved)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(backfills) > 0 {
		list, args := in([]any{int64(now)}, backfills)
		if _, err := tx.exec("queue behind all", "UPDATE waiting FORCE INDEX (PRIMARY) SET due = ? WHERE task_id IN "+list, args...); err != nil {
			return nil, err
		}
	}
	return idsOf(slices.Collect(maps.Values(next))), nil
}

// groupsOf lists, in order, the groups of which any of the tasks holds a slot.
func (tx *Tx) groupsOf(tasks []int64) ([]int64, error) {
	var out []int64
	list, args := in(nil, tasks)
	err := tx.query("read groups of tasks", func(rows *stdsql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		out = append(out, id)
		return err
	}, "SELECT DISTINCT group_id FROM slot WHERE task_id IN "+list+" ORDER BY group_id", args...)
	return out, err
}

// WaitDues tells which places tasks that wait have among their equals, by task.
func (tx *Tx) WaitDues(ids []int64) (map[int64]job.Micros, error) {
	out := map[int64]job.Micros{}
	if len(ids) == 0 {
		return out, nil
	}
	list, args := in(nil, ids)
	err := tx.query("read places of who waits", func(rows *stdsql.Rows) error {
		var id int64
		var due job.Micros
		err := rows.Scan(&id, &due)
		out[id] = due
		return err
	}, "SELECT task_id, due FROM waiting FORCE INDEX (PRIMARY) WHERE task_id IN "+list, args...)
	return out, err
}

// waitsOf tells for what each waiting one of the tasks waits.
func (tx *Tx) waitsOf(rows []TaskRow) (map[int64]WaitKind, error) {
	var ids []int64
	for _, t := range rows {
		if t.State == job.Waiting {
			ids = append(ids, t.ID)
		}
	}
	out := make(map[int64]WaitKind, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	list, args := in(nil, ids)
	err := tx.query("read waiting", func(rows *stdsql.Rows) error {
		var id int64
		var kind WaitKind
		err := rows.Scan(&id, &kind)
		out[id] = kind
		return err
	}, "SELECT task_id, kind FROM waiting WHERE task_id IN "+list, args...)
	return out, err
}

// wake makes waiting tasks idle and due now.
func (tx *Tx) wake(ids []int64, now job.Micros) error {
	if len(ids) == 0 {
		return nil
	}
	list, args := in([]any{int64(now)}, ids)
	n, err := tx.exec("wake tasks", "UPDATE task FORCE INDEX (PRIMARY) SET state = 0, due_now = GREATEST(due_now, ?) WHERE id IN "+list+" AND state = 3", args...)
	if err != nil {
		return err
	}
	if n != int64(len(ids)) {
		return fmt.Errorf("wake: %d of %d rows: %w", n, len(ids), ErrMoved)
	}
	return tx.DropWaits(ids)
}

// WakeTasks wakes waiting tasks that the caller has locked and found in that state.
func (tx *Tx) WakeTasks(ids []int64, now job.Micros) error { return tx.wake(ids, now) }

// Reconsider wakes those of the tasks, locked by this transaction, that wait for runs of their job or for a slot: their
// job was edited, and may let them start, or have them wait for something else.
func (tx *Tx) Reconsider(tasks []TaskRow, now job.Micros) error {
	kinds, err := tx.waitsOf(tasks)
	if err != nil {
		return err
	}
	var ids []int64
	for _, t := range tasks {
		if kind := kinds[t.ID]; kind == WaitJob || kind == WaitGroup {
			ids = append(ids, t.ID)
		}
	}
	return tx.wake(ids, now)
}

// DropWaits removes what is known of the waiting of tasks, which do not wait any more.
func (tx *Tx) DropWaits(ids []int64) error {
	_, err := tx.remove("delete waiting", "waiting", "task_id", ids)
	return err
}

// StuckJobs lists, in order, jobs with a task that waits for runs of the job although none executes, those with an id
// after the given one: somebody died, or the one that comes before it waits for something else. It takes no lock, and
// reads an entry of an index for each job of which a task waits for its runs, and what executes: what waits for something else, such
// as nodes, may be far more, and so may the tasks of each job. Only where the kind is asked for as well does the server hop from job to job.
func (db *DB) StuckJobs(ctx context.Context, after int64, limit int) ([]int64, error) {
	return db.ids(ctx, "list stuck jobs", "SELECT w.job_id FROM (SELECT DISTINCT kind, job_id FROM waiting FORCE INDEX (stuck) WHERE kind = 1 AND job_id > ?) w"+
		" LEFT JOIN (SELECT DISTINCT job_id FROM task FORCE INDEX (slice) WHERE state = 2) x ON x.job_id = w.job_id"+
		" WHERE x.job_id IS NULL ORDER BY w.job_id LIMIT ?", after, limit)
}

// RestedTask is a task that waits for the end of a pause that is over.
type RestedTask struct{ TaskID, JobID int64 }

// RestedTasks lists tasks that wait for the end of a pause, of jobs that no pause covers. It takes no lock.
func (db *DB) RestedTasks(ctx context.Context, now job.Micros, limit int) ([]RestedTask, error) {
	var out []RestedTask
	err := db.query(ctx, "list rested tasks", func(rows *stdsql.Rows) error {
		var r RestedTask
		err := rows.Scan(&r.TaskID, &r.JobID)
		out = append(out, r)
		return err
	}, "SELECT w.task_id, w.job_id FROM waiting w FORCE INDEX (grp) LEFT JOIN job j ON j.id = w.job_id WHERE w.kind = 4 AND NOT COALESCE(j.paused, 0)"+
		" AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.app IN ('', j.app) AND p.ended = 0 AND (p.until = 0 OR p.until > ?)) LIMIT ?", int64(now), limit)
	return out, err
}

// StuckGroups lists groups in which a task waits although there is a free slot, or one of a task that was to begin before an
// instant and has not. It takes no lock.
func (db *DB) StuckGroups(ctx context.Context, before job.Micros) ([]int64, error) {
	return db.ids(ctx, "list stuck groups", "SELECT g.id FROM (SELECT DISTINCT group_id FROM waiting FORCE INDEX (grp) WHERE kind = 2) w JOIN grp g ON g.id = w.group_id"+
		" WHERE (SELECT COUNT(*) FROM slot s JOIN task h ON h.id = s.task_id AND (h.state = 2 OR h.state < 2 AND h.due_now >= ?) WHERE s.group_id = g.id) < g.slots", int64(before))
}

// ExpiredWait is a task whose waiting has lasted too long.
type ExpiredWait struct{ TaskID, JobID int64 }

// ExpiredWaits lists tasks whose waiting has lasted too long. It takes no lock.
func (db *DB) ExpiredWaits(ctx context.Context, now job.Micros, limit int) ([]ExpiredWait, error) {
	var out []ExpiredWait
	err := db.query(ctx, "list expired waits", func(rows *stdsql.Rows) error {
		var e ExpiredWait
		err := rows.Scan(&e.TaskID, &e.JobID)
		out = append(out, e)
		return err
	}, "SELECT task_id, job_id FROM waiting FORCE INDEX (expires) WHERE kind < 3 AND expires <= ? ORDER BY expires LIMIT ?", int64(now), limit)
	return out, err
}

// Sweep removes rows of waiting and slot whose task has gone or does not wait any more, some of them at a time. They
// count for nothing meanwhile. It wakes tasks that wait without such a row, or for a slot of a group that is gone.
func (db *DB) Sweep(ctx context.Context, now job.Micros) error {
	stray, err := db.strayWaits(ctx)
	if err != nil {
		return err
	}
	empty, err := db.ids(ctx, "list stray slots", "SELECT s.task_id FROM slot s LEFT JOIN task t ON t.id = s.task_id WHERE t.id IS NULL LIMIT ?", sweepRows)
	if err != nil {
		return err
	}
	forgotten, err := db.forgottenWaits(ctx)
	if err != nil || len(stray)+len(empty)+len(forgotten) == 0 {
		return err
	}
	return db.Tx(ctx, func(tx *Tx) error {
		// Looked at once more, now with the tasks locked: one that is just beginning to wait has its row already.
		rows, err := tx.LockTasks(append(slices.Clone(stray), forgotten...))
		if err != nil {
			return err
		}
		waiting, err := tx.waitsOf(slices.Collect(maps.Values(rows)))
		if err != nil {
			return err
		}
		lost := forgotten[:0:0] // a hand did that: they wait for nothing that anybody knows
		for _, id := range forgotten {
			if r, ok := rows[id]; ok && r.State == job.Waiting && (waiting[id] == 0 || waiting[id] == WaitGroup) {
				lost = append(lost, id)
			}
		}
		if err := tx.wake(lost, now); err != nil {
			return err
		}
		gone := stray[:0:0]
		for _, id := range stray {
			if r, ok := rows[id]; !ok || r.State != job.Waiting {
				gone = append(gone, id)
			}
		}
		if err := tx.DropWaits(gone); err != nil {
			return err
		}
		return tx.FreeSlots(empty) // ids of tasks never come back
	})
}

// strayWaits lists rows of waiting whose task has gone or does not wait any more. However many tasks wait, each statement is short.
func (db *DB) strayWaits(ctx context.Context) (stray []int64, err error) {
	const tasks = " LEFT JOIN task t ON t.id = w.task_id"
	const is = "t.id IS NULL OR t.state <> 3"
	for from, looked := int64(0), sweepPart; looked == sweepPart && len(stray) < sweepRows; {
		var last, found int64
		err := db.query(ctx, "look for stray waits", func(rows *stdsql.Rows) error { return rows.Scan(&last, &looked, &found) },
			"SELECT COALESCE(MAX(w.task_id), 0), COUNT(*), COALESCE(SUM("+is+"), 0) FROM (SELECT task_id FROM waiting FORCE INDEX (PRIMARY) WHERE task_id > ? ORDER BY task_id LIMIT ?) w"+tasks, from, sweepPart)
		if err != nil {
			return nil, err
		}
		if found > 0 {
			ids, err := db.ids(ctx, "list stray waits", "SELECT w.task_id FROM waiting w FORCE INDEX (PRIMARY)"+tasks+" WHERE w.task_id > ? AND w.task_id <= ? AND ("+is+") LIMIT ?", from, last, sweepRows)
			if err != nil {
				return nil, err
			}
			stray = append(stray, ids...)
		}
		from = last
	}
	return stray, nil
}

// forgottenWaits lists tasks that wait without a row in waiting, or for a slot of a group that is gone. As a rule there are none:
// then as many rows as tasks that wait are counted in two indexes. A stray row may hide one until it is removed.
func (db *DB) forgottenWaits(ctx context.Context) ([]int64, error) {
	some := false
	err := db.query(ctx, "look for forgotten tasks", func(rows *stdsql.Rows) error { return rows.Scan(&some) },
		"SELECT (SELECT COUNT(*) FROM task FORCE INDEX (slice) WHERE state = 3) > (SELECT COUNT(*) FROM waiting FORCE INDEX (expires))"+
			" OR EXISTS (SELECT 1 FROM waiting w FORCE INDEX (grp) LEFT JOIN grp g ON g.id = w.group_id WHERE w.kind = 2 AND g.id IS NULL)")
	if err != nil || !some {
		return nil, err
	}
	return db.ids(ctx, "list forgotten tasks", "SELECT t.id FROM task t FORCE INDEX (slice) LEFT JOIN waiting w ON w.task_id = t.id WHERE t.state = 3"+
		" AND (w.task_id IS NULL OR w.kind = 2 AND NOT EXISTS (SELECT 1 FROM grp g WHERE g.id = w.group_id)) LIMIT ?", sweepRows)
}

// FreeIdleSlots takes slots from some tasks that have not begun and are due later: MySQL's clock was put back since they were
// woken, or started and given back. Once they are due, their starts ask for one as all others do. A start holds the group's
// row when it looks who holds a slot, so that none goes by one that is taken away here.
func (db *DB) FreeIdleSlots(ctx context.Context, now job.Micros) error {
	later := now.Add(time.Second)
	ids, err := db.ids(ctx, "list idle slots", "SELECT s.task_id FROM slot s STRAIGHT_JOIN task t ON t.id = s.task_id WHERE t.state < 2 AND t.due_now > ? LIMIT ?", int64(later), sweepRows)
	if err != nil || len(ids) == 0 {
		return err
	}
	return db.Tx(ctx, func(tx *Tx) error {
		groups, err := tx.groupsOf(ids)
		if err != nil {
			return err
		}
		if _, err := tx.LockGroupIDs(groups); err != nil {
			return err
		}
		rows, err := tx.LockTasks(ids)
		if err != nil {
			return err
		}
		return tx.FreeSlots(slices.DeleteFunc(slices.Clone(ids), func(id int64) bool {
			r, ok := rows[id]
			return !ok || r.State == job.Executing || r.DueNow <= later
		}))
	})
}

// sweepRows is how many rows of each kind one sweep removes, give or take those of one statement, and sweepPart how many one
// statement of it looks at.
const sweepRows, sweepPart = 500, 20_000

// ids runs a query for a list of ids.
func (db *DB) ids(ctx context.Context, what, query string, args ...any) ([]int64, error) {
	var out []int64
	err := db.query(ctx, what, idRows(&out), query, args...)
	return out, err
}

func idRows(out *[]int64) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		*out = append(*out, id)
		return err
	}
}

// WaitRow is a task that waits, for people.
type WaitRow struct {
	JobID      int64
	Kind       WaitKind
	Group      string
	Due, Since job.Micros
	Expires    job.Micros // zero: never
	Place      int
}

// Waiting lists what waits of some jobs, the earliest due first.
func (db *DB) Waiting(ctx context.Context, jobIDs []int64, limit int) ([]WaitRow, error) {
	if len(jobIDs) == 0 {
		return nil, nil
	}
	list, args := in(nil, jobIDs)
	var out []WaitRow
	err := db.query(ctx, "list waiting tasks", func(rows *stdsql.Rows) error {
		var w WaitRow
		err := rows.Scan(&w.JobID, &w.Kind, &w.Group, &w.Due, &w.Since, &w.Expires, &w.Place)
		if w.Expires == never {
			w.Expires = 0
		}
		out = append(out, w)
		return err
	}, "SELECT w.job_id, w.kind, COALESCE(g.name, ''), t.due, w.since, w.expires, t.place FROM waiting w FORCE INDEX (job) JOIN task t ON t.id = w.task_id"+
		" LEFT JOIN grp g ON g.id = w.group_id WHERE w.job_id IN "+list+" AND t.state = 3 ORDER BY t.due LIMIT ?", append(args, limit)...)
	return out, err
}
