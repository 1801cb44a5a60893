package sql

import (
	stdsql "database/sql"
	"fmt"
	"slices"

	"go-crontab/job"

	"github.com/google/uuid"
)

// The state machine of a task. Each transition locks its rows by primary key, keeps those that are still what
// the caller believes (session, launch, state), and moves them in one statement.
//
//	           plan                claim                start                  finish
//	(job row) ──────▶ idle ───────────────▶ prepare ───────────────▶ executing ──────────▶ (history row)
//	                   ▲                      │ │ │ refuse                │        lose        ▲
//	                   ├──────── free ────────┘ │ └───────────────────────┼────────────────────┤
//	                   ├─ wake ─── waiting ◀────┘ wait                    │                    │
//	                   │              └── expire ─────────────────────────┼────────────────────┘
//	                   └──────── free (never spawned), retry ─────────────┘

// TaskRow is a task as its row says.
type TaskRow struct {
	job.Task
	State   job.State
	Started job.Micros
	SpawnBy job.Micros
	Wish    Wish // of the attempt that executes, or was to: it stays with the task when that is given back
}

// Wish says whether an attempt is to be killed.
type Wish int8

// Wishes.
const (
	KillIt    Wish = 1 // somebody wants that
	ReplaceIt Wish = 2 // a later due time takes its place
)

// Is tells whether the row is still at the launch's step.
func (r *TaskRow) Is(l job.Launch, s job.State) bool { return r.Launch == l && r.State == s }

// A task that nobody owns has the defaults in session_id and launch, nobody and 0, or, if a version before wrote it, NULL. No
// default is NULL, so that a row is as long before a claim as after it: one that grows is written anew, and the pages of
// many that grow are split.
const nobody = "x'00000000000000000000000000000000'"

const taskColumns = "id, job_id, due, origin, due_now, hash, place, priority, state, attempt, session_id, launch, started, spawn_by, kill_requested"

// scanTask reads a task, and what stands before its columns.
func scanTask(rows *stdsql.Rows, before ...any) (TaskRow, error) {
	var row struct { // one piece of the heap
		TaskRow
		session uuid.NullUUID
	}
	t := &row.TaskRow
	dest := [...]any{whole[int64]{&t.ID}, whole[int64]{&t.JobID}, whole[job.Micros]{&t.Due}, whole[int64]{&t.Origin}, whole[job.Micros]{&t.DueNow},
		whole[int]{&t.Hash}, whole[int]{&t.Place}, whole[int]{&t.Priority}, whole[job.State]{&t.State}, whole[int]{&t.Attempt},
		&row.session, whole[int64]{&t.Launch.N}, whole[job.Micros]{&t.Started}, whole[job.Micros]{&t.SpawnBy}, whole[Wish]{&t.Wish}}
	var err error
	if len(before) == 0 {
		err = rows.Scan(dest[:]...)
	} else {
		err = rows.Scan(append(before, dest[:]...)...)
	}
	t.Launch.Session = row.session.UUID
	return *t, err
}

func (tx *Tx) tasks(what, query string, args ...any) ([]TaskRow, error) {
	var out []TaskRow
	err := tx.query(what, func(rows *stdsql.Rows) error {
		t, err := scanTask(rows)
		out = append(out, t)
		return err
	}, query, args...)
	return out, err
}

// LockTasks locks the rows that still exist and returns them by id. It waits for whoever holds them, the COMMIT
// of a transaction given up for lost included: it is how an unknown commit is settled.
func (tx *Tx) LockTasks(ids []int64) (map[int64]TaskRow, error) { return tx.lockTasks(ids, "") }

// LockFreeTasks is LockTasks for those rows that nobody else has locked. It waits for none. Those that are locked are busy;
// those that are in neither answer do not exist.
func (tx *Tx) LockFreeTasks(ids []int64) (out map[int64]TaskRow, busy map[int64]bool, err error) {
	if out, err = tx.lockTasks(ids, " SKIP LOCKED"); err != nil || len(out) == len(ids) {
		return out, nil, err
	}
	var missing []int64
	for _, id := range ids {
		if _, ok := out[id]; !ok {
			missing = append(missing, id)
		}
	}
	busy, err = tx.existing("task", missing)
	return out, busy, err
}

// existing tells which rows there are, without a lock.
func (tx *Tx) existing(table string, ids []int64) (map[int64]bool, error) {
	out := map[int64]bool{}
	for part := range slices.Chunk(ids, idsInAll) {
		which, args := oneOf("id", nil, part)
		err := tx.query("look for busy rows", func(rows *stdsql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			out[id] = true
			return err
		}, "SELECT id FROM "+table+" FORCE INDEX (PRIMARY) WHERE "+which, args...)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (tx *Tx) lockTasks(ids []int64, how string) (map[int64]TaskRow, error) {
	out := make(map[int64]TaskRow, len(ids))
	if len(ids) > idsInAll {
		ids = slices.Sorted(slices.Values(ids)) // the parts too are locked in order
	}
	for part := range slices.Chunk(ids, idsInAll) {
		which, args := oneOf("id", nil, part)
		// The hint keeps a small table from being scanned, and rows of others from being waited for.
		rows, err := tx.tasks("lock tasks", "SELECT "+taskColumns+" FROM task FORCE INDEX (PRIMARY) WHERE "+which+" ORDER BY id FOR UPDATE"+how, args...)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			out[r.ID] = r
		}
	}
	return out, nil
}

// Claim moves idle tasks to prepare for session and returns those it took; ids that are not idle any more, or that
// somebody else has locked, are left out: it waits for none. Each gets the launch counter base + id − smallest id: spread as the ids are, one statement mints
// them all. The session must have reserved that range.
func (tx *Tx) Claim(session uuid.UUID, base int64, ids []int64) ([]job.Task, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.lockTasks(ids, " SKIP LOCKED")
	if err != nil {
		return nil, err
	}
	offset := base - slices.Min(ids)
	took := make([]job.Task, 0, len(rows))
	for _, id := range ids {
		if r, ok := rows[id]; ok && r.State == job.Idle {
			r.Launch = job.Launch{Session: session, N: id + offset}
			took = append(took, r.Task)
		}
	}
	if len(took) == 0 {
		return nil, nil
	}
	for part := range slices.Chunk(taskIDs(took), idsInAll) {
		which, args := oneOf("id", []any{session[:], offset}, part)
		n, err := tx.exec("claim", "UPDATE task FORCE INDEX (PRIMARY) SET state = 1, session_id = ?, launch = id + ? WHERE "+which+" AND state = 0", args...)
		if err == nil && n != int64(len(part)) {
			err = fmt.Errorf("claim: %d of %d rows: %w", n, len(part), ErrMoved)
		}
		if err != nil {
			return nil, err
		}
	}
	tx.did.claimed, tx.did.any = tx.did.claimed+int64(len(took)), true
	return took, nil
}

// Start moves tasks that are prepared at their launches, and whose jobs' rows this transaction has locked, to executing. It
// raises last_due of the jobs and writes each, as MarkStarted does. A task that is not what the caller believes fails the
// transaction: that is the guard, and no lock is taken before. Nothing may be spawned for a task after
// max(due_now, now) + window.
func (tx *Tx) Start(tasks []job.Task, now job.Micros, window int64) error {
	if len(tasks) == 0 {
		return nil
	}
	of := map[int64]int{} // how many of each job
	launches := make([]int64, len(tasks))
	for i, t := range tasks {
		launches[i] = t.Launch.N
		of[t.JobID]++
	}
	// As in EndAt, id and launch belong together.
	list, args := in([]any{int64(now), int64(now), window, tasks[0].Launch.Session[:]}, taskIDs(tasks))
	counters, args := in(args, launches)
	n, err := tx.exec("start", "UPDATE task t FORCE INDEX (PRIMARY) STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = t.job_id"+ // a scan would wait for rows of others
		" SET state = 2, started = ?, spawn_by = GREATEST(due_now, ?) + ?, j.last_due = GREATEST(j.last_due, IF(t.origin = 0, t.due, 0)), j.starts = j.starts + 1"+
		" WHERE t.session_id = ? AND t.state = 1 AND t.id IN "+list+" AND t.launch IN "+counters, args...)
	if want := int64(len(tasks) + len(of)); err == nil && n != want { // rows of both tables count
		err = fmt.Errorf("start: %d of %d rows: %w", n, want, ErrMoved)
	}
	if err == nil && len(of) < len(tasks) { // each job is written once, with the first task that it meets: is that the latest?
		err = tx.MarkStarted(marksOf(slices.DeleteFunc(slices.Clone(tasks), func(t job.Task) bool { return of[t.JobID] == 1 })))
	}
	tx.did.started, tx.did.any = tx.did.started+int64(len(tasks)), true
	return err
}

// End removes tasks, locked by this transaction and still at the launches of runs, and writes their runs.
func (tx *Tx) End(ids []int64, runs []job.Run) error {
	n, err := tx.remove("end tasks", "task", "id", ids)
	if err := ended(n, len(ids), err); err != nil || len(ids) == 0 {
		return err
	}
	return tx.InsertRuns(runs)
}

// EndAt removes tasks that execute at their launches of one session, launches[i] being that of ids[i], and writes their runs.
// No row needs to be locked before. One that is at something else is ErrMoved, and nothing of it may stand.
func (tx *Tx) EndAt(session uuid.UUID, ids, launches []int64, runs []job.Run) error {
	if len(ids) == 0 {
		return nil
	}
	// A launch is of one task alone: of a row whose launch is one of these, the id is that at the same place.
	for i := 0; i < len(ids); i += idsInAll {
		n := min(idsInAll, len(ids)-i)
		which, args := oneOf("t.id", []any{session[:]}, ids[i:i+n])
		counters, args := oneOf("t.launch", args, launches[i:i+n])
		gone, err := tx.exec("end tasks", "DELETE t FROM task t FORCE INDEX (PRIMARY) WHERE t.session_id = ? AND t.state = 2 AND "+which+" AND "+counters, args...)
		if err := ended(gone, n, err); err != nil {
			return err
		}
	}
	return tx.InsertRuns(runs)
}

// ended tells whether as many tasks were removed as there should have been.
func ended(n int64, want int, err error) error {
	if err == nil && n != int64(want) {
		err = fmt.Errorf("end tasks: %d of %d rows: %w", n, want, ErrMoved)
	}
	return err
}

// Again is a task whose attempt is over and which is to be started once more.
type Again struct {
	ID     int64
	DueNow job.Micros
}

// Retry moves tasks, locked by this transaction and still at the launches of runs, back to idle for their next
// attempt, and writes the runs of this one.
func (tx *Tx) Retry(again []Again, runs []job.Run) error {
	if len(again) == 0 {
		return nil
	}
	rows := make([][]int64, len(again))
	for i, a := range again {
		rows[i] = []int64{a.ID, int64(a.DueNow)}
	}
	n, err := tx.exec("retry tasks", "UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', due_now BIGINT PATH '$[1]')) n"+
		" STRAIGHT_JOIN task t FORCE INDEX (PRIMARY) ON t.id = n.id SET t.state = 0, t.session_id = DEFAULT, t.launch = DEFAULT, t.started = 0, t.spawn_by = 0, t.kill_requested = 0,"+
		" t.attempt = t.attempt + 1, t.due_now = GREATEST(t.due, n.due_now) WHERE t.state = 2", table(rows))
	if err != nil {
		return err
	}
	if n != int64(len(again)) {
		return fmt.Errorf("retry tasks: %d of %d rows: %w", n, len(again), ErrMoved)
	}
	return tx.InsertRuns(runs)
}

// Free moves tasks, locked by this transaction and found in prepare or executing, back to idle. The caller
// knows that nothing was spawned for them. What was to be killed still is: the next start ends it.
func (tx *Tx) Free(ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	list, args := in(nil, ids)
	n, err := tx.exec("free tasks", "UPDATE task FORCE INDEX (PRIMARY) SET state = 0, session_id = DEFAULT, launch = DEFAULT, started = 0, spawn_by = 0"+
		" WHERE id IN "+list+" AND state > 0", args...)
	if err == nil && n != int64(len(ids)) {
		err = fmt.Errorf("free tasks: %d of %d rows: %w", n, len(ids), ErrMoved)
	}
	tx.did.freed, tx.did.any = tx.did.freed+n, true
	return err
}

func marksOf(tasks []job.Task) []Mark {
	marks := make([]Mark, len(tasks))
	for i, t := range tasks {
		marks[i] = MarkOf(t)
	}
	return marks
}

func taskIDs(tasks []job.Task) []int64 {
	ids := make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	return ids
}
