package sql

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"go-crontab/job"
)

// row reads a task beside the code under test.
func (f *fixture) row(id int64) (out TaskRow, there bool) {
	f.Helper()
	f.tx(func(tx *Tx) error {
		rows, err := tx.LockTasks([]int64{id})
		out, there = rows[id]
		return err
	})
	return out, there
}

// TestTrip takes one task through all its states and back, and looks at its row at each.
func TestTrip(t *testing.T) {
	f := setUp(t)
	jobID := f.newJob("j")
	f.tx(func(tx *Tx) error {
		return tx.InsertTasks([]job.Task{{JobID: jobID, Due: 100, DueNow: 130, Origin: 4, Hash: 7}})
	})
	id := f.number("SELECT id FROM task")
	idle := TaskRow{Task: job.Task{ID: id, JobID: jobID, Due: 100, DueNow: 130, Origin: 4, Hash: 7, Attempt: 1}}
	check := func(what string, want TaskRow) {
		t.Helper()
		got, there := f.row(id)
		if d := cmp.Diff(want, got); d != "" || !there {
			t.Errorf("%s: there %v, got (+) is not what it should be (-):\n%s", what, there, d)
		}
	}
	check("planned", idle)

	took := f.claimed(session(1), 50, []int64{id})
	prepared := idle
	prepared.Launch, prepared.State = job.Launch{Session: session(1), N: 50}, job.Prepare
	check("claimed", prepared)
	if d := cmp.Diff([]job.Task{prepared.Task}, took); d != "" {
		t.Errorf("claim: returned (+) is not its row (-):\n%s", d)
	}

	f.tx(func(tx *Tx) error { return tx.Start(f.prepared([]int64{id}), 120, 1000) })
	executing := prepared
	executing.State, executing.Started, executing.SpawnBy = job.Executing, 120, 1130
	check("started before it is due", executing)
	f.tx(func(tx *Tx) error { return tx.Free([]int64{id}) })
	check("freed", idle)

	f.claimed(session(2), 60, []int64{id})
	f.tx(func(tx *Tx) error { return tx.Start(f.prepared([]int64{id}), 500, 1000) })
	executing.Launch, executing.Started, executing.SpawnBy = job.Launch{Session: session(2), N: 60}, 500, 1500
	check("started late", executing)

	f.tx(func(tx *Tx) error { return tx.End([]int64{id}, []job.Run{run(executing.Task, job.Succeeded)}) })
	if got, there := f.row(id); there {
		t.Errorf("ended: got %+v, want no row", got)
	}
	f.want("runs", 1, "SELECT COUNT(*) FROM history WHERE job_id = ? AND due = 100 AND origin = 4", jobID)
}

// TestMovedRowsAreRefused: a transition whose rows are not where its caller believes changes nothing at all, also none
// of the rows that are.
func TestMovedRowsAreRefused(t *testing.T) {
	f := setUp(t)
	one, two := session(1), session(2)
	for name, c := range map[string]struct {
		move       func(f *fixture, id int64) // what somebody did to the middle one of three prepared tasks
		transition func(tx *Tx, ids []int64, tasks []job.Task) error
	}{
		"start: freed meanwhile": {
			func(f *fixture, id int64) { f.tx(func(tx *Tx) error { return tx.Free([]int64{id}) }) },
			func(tx *Tx, _ []int64, tasks []job.Task) error { return tx.Start(tasks, 1, 1) }},
		"start: claimed by another session": {
			func(f *fixture, id int64) {
				f.tx(func(tx *Tx) error { return tx.Free([]int64{id}) })
				f.claimed(two, 1, []int64{id})
			},
			func(tx *Tx, _ []int64, tasks []job.Task) error { return tx.Start(tasks, 1, 1) }},
		"start: executing already": {
			func(f *fixture, id int64) {
				f.tx(func(tx *Tx) error { return tx.Start(f.prepared([]int64{id}), 1, 1) })
			},
			func(tx *Tx, _ []int64, tasks []job.Task) error { return tx.Start(tasks, 1, 1) }},
		"start: gone": {
			func(f *fixture, id int64) { f.exec("DELETE FROM task WHERE id = ?", id) },
			func(tx *Tx, _ []int64, tasks []job.Task) error { return tx.Start(tasks, 1, 1) }},
		"free: freed meanwhile": {
			func(f *fixture, id int64) { f.tx(func(tx *Tx) error { return tx.Free([]int64{id}) }) },
			func(tx *Tx, ids []int64, _ []job.Task) error { return tx.Free(ids) }},
		"free: gone": {
			func(f *fixture, id int64) { f.exec("DELETE FROM task WHERE id = ?", id) },
			func(tx *Tx, ids []int64, _ []job.Task) error { return tx.Free(ids) }},
		"end: gone": {
			func(f *fixture, id int64) { f.exec("DELETE FROM task WHERE id = ?", id) },
			func(tx *Tx, ids []int64, tasks []job.Task) error {
				return tx.End(ids, []job.Run{run(tasks[0], job.Succeeded), run(tasks[1], job.Succeeded), run(tasks[2], job.Succeeded)})
			}},
		"retry: it never began": {
			func(f *fixture, id int64) {},
			func(tx *Tx, ids []int64, tasks []job.Task) error {
				return tx.Retry([]Again{{ids[1], 99}}, []job.Run{run(tasks[1], job.Failed)})
			}},
		"retry: gone": {
			func(f *fixture, id int64) {
				f.tx(func(tx *Tx) error { return tx.Start(f.prepared([]int64{id}), 1, 1) })
				f.exec("DELETE FROM task WHERE id = ?", id)
			},
			func(tx *Tx, ids []int64, tasks []job.Task) error {
				return tx.Retry([]Again{{ids[1], 99}}, []job.Run{run(tasks[1], job.Failed)})
			}},
		"withdraw: gone": {
			func(f *fixture, id int64) { f.exec("DELETE FROM task WHERE id = ?", id) },
			func(tx *Tx, ids []int64, _ []job.Task) error { return tx.Withdraw(ids) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			ids := f.tasks(f.newJob(name), 10, 20, 30)
			tasks := f.claimed(one, 100, ids)
			c.move(f, ids[1])
			before := f.table()
			f.refused(name, ErrMoved, func(tx *Tx) error { return c.transition(tx, ids, tasks) })
			if d := cmp.Diff(before, f.table()); d != "" {
				t.Errorf("it changed rows, from (-) to (+):\n%s", d)
			}
			f.want("runs", 0, "SELECT COUNT(*) FROM history")
		})
	}
}

// table is all tasks.
func (f *fixture) table() (out []TaskRow) {
	f.Helper()
	f.tx(func(tx *Tx) (err error) {
		out, err = tx.tasks("read all", "SELECT "+taskColumns+" FROM task ORDER BY id")
		return err
	})
	return out
}

// TestClaimTakesWhatIsIdle: the ids that somebody else was faster with are left out and stay as they are.
func TestClaimTakesWhatIsIdle(t *testing.T) {
	f := setUp(t)
	ids := f.tasks(f.newJob("j"), 10, 20, 30, 40, 50)
	f.claimed(session(1), 1, ids[1:2])
	f.claimed(session(1), 2, ids[3:4])
	f.tx(func(tx *Tx) error { return tx.Start(f.prepared(ids[3:4]), 1, 1) })
	f.exec("DELETE FROM task WHERE id = ?", ids[4])
	theirs, _ := f.row(ids[1])
	var took []job.Task
	f.tx(func(tx *Tx) (err error) {
		took, err = tx.Claim(session(2), 1000, []int64{ids[2], ids[1], ids[0], ids[3], ids[4]})
		return err
	})
	if len(took) != 2 || took[0].ID != ids[2] || took[1].ID != ids[0] {
		t.Fatalf("took %+v, want tasks %d and %d, in the order asked for", took, ids[2], ids[0])
	}
	for _, got := range took {
		want := job.Launch{Session: session(2), N: 1000 + got.ID - ids[0]}
		row, _ := f.row(got.ID)
		if got.Launch != want || !row.Is(want, job.Prepare) {
			t.Errorf("task %d: got launch %s, in its row %s %s; want %s in both, and prepare", got.ID, got.Launch, row.Launch, row.State, want)
		}
	}
	if now, _ := f.row(ids[1]); now != theirs {
		t.Errorf("another session's task: got %+v, want it as it was, %+v", now, theirs)
	}
	f.tx(func(tx *Tx) (err error) { took, err = tx.Claim(session(3), 1, ids); return err })
	if took != nil {
		t.Errorf("nothing idle: took %+v, want none", took)
	}
}

// TestClaimsExclude: sessions that claim the same tasks at once share them out; nobody gets one that another has.
func TestClaimsExclude(t *testing.T) {
	f := setUp(t)
	var due []job.Micros
	for i := range 200 {
		due = append(due, job.Micros(10+i))
	}
	ids := f.tasks(f.newJob("j"), due...)
	const sessions = 6
	took := make([][]job.Task, sessions)
	var all sync.WaitGroup
	for s := range sessions {
		all.Go(func() {
			for at := range 10 {
				part := ids[at*20 : at*20+20]
				err := f.db.Tx(f.Context(), func(tx *Tx) error {
					got, err := tx.Claim(session(byte(1+s)), int64(1+at*1000), part)
					if err == nil {
						took[s] = append(took[s], got...)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	owner := map[int64]uuid.UUID{}
	for _, tasks := range took {
		for _, got := range tasks {
			if other, taken := owner[got.ID]; taken {
				t.Errorf("task %d was given to %s and to %s", got.ID, other, got.Launch.Session)
			}
			owner[got.ID] = got.Launch.Session
			if row, _ := f.row(got.ID); !row.Is(got.Launch, job.Prepare) {
				t.Errorf("task %d: its row says %s %s, its claimer was told %s", got.ID, row.Launch, row.State, got.Launch)
			}
		}
	}
	if len(owner) != len(ids) {
		t.Errorf("%d of %d tasks were claimed", len(owner), len(ids))
	}
}

// TestManyAtOnce: far from MySQL a claim and an end take more tasks than one list of ids has, and read no others.
func TestManyAtOnce(t *testing.T) {
	f := setUp(t)
	const n = idsInAll + 300
	dues := make([]job.Micros, n)
	for i := range dues {
		dues[i] = job.Micros(i + 1)
	}
	ids := f.tasks(f.newJob("j"), dues...)
	beside := f.tasks(f.newJob("another"), dues...)
	f.exec("ANALYZE TABLE task")
	before := handlerReads(t, f.db)
	took := f.claimed(session(1), 50, ids)
	if read := handlerReads(t, f.db) - before; len(took) != n || read > 3*n {
		t.Errorf("claimed %d of %d, with %d rows read; want no more than each is locked and changed for", len(took), n, read)
	}
	launches := make([]int64, n)
	runs := make([]job.Run, n)
	for i, task := range took {
		ids[i], launches[i], runs[i] = task.ID, task.Launch.N, run(task, job.Succeeded)
	}
	f.tx(func(tx *Tx) error {
		for part := range slices.Chunk(took, idsAtOnce) {
			if err := tx.Start(part, 500, 1000); err != nil {
				return err
			}
		}
		return nil
	})
	launches[n-1]++
	f.refused("one is at another launch", ErrMoved, func(tx *Tx) error { return tx.EndAt(session(1), ids, launches, runs) })
	launches[n-1]--
	f.tx(func(tx *Tx) error { return tx.EndAt(session(1), ids, launches, runs) })
	f.want("runs", n, "SELECT COUNT(*) FROM history")
	f.want("tasks that are left", int64(len(beside)), "SELECT COUNT(*) FROM task")
	f.tx(func(tx *Tx) error { return tx.End(beside, nil) })
	f.want("tasks that are left", 0, "SELECT COUNT(*) FROM task")
}

// TestLockTasksWaits: the settling read must not see what was before a transaction that is still under way.
func TestLockTasksWaits(t *testing.T) {
	f := setUp(t)
	ids := f.tasks(f.newJob("j"), 10)
	moved, finish, done := make(chan bool), make(chan bool), make(chan error, 1)
	go func() {
		done <- f.db.Tx(f.Context(), func(tx *Tx) error {
			_, err := tx.Claim(session(1), 1, ids)
			moved <- true
			<-finish
			return err
		})
	}()
	<-moved
	read := make(chan TaskRow, 1)
	go func() { row, _ := f.row(ids[0]); read <- row }()
	f.awaitLockWait()
	close(finish)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := <-read; got.State != job.Prepare {
		t.Errorf("got %s, want the state that the other one left, prepare", got.State)
	}
}

// TestPlannedTwice: a due time that is there already stays as it is and does not fail the others.
func TestPlannedTwice(t *testing.T) {
	f := setUp(t)
	jobID := f.newJob("j")
	ids := f.tasks(jobID, 10, 20)
	f.claimed(session(1), 5, ids[:1])
	before, _ := f.row(ids[0])
	again := f.tasks(jobID, 10, 20, 30)
	if again[0] != ids[0] || again[1] != ids[1] {
		t.Errorf("got ids %v, want %v and another", again, ids)
	}
	if now, _ := f.row(ids[0]); now != before {
		t.Errorf("got %+v, want it as it was, %+v", now, before)
	}
	f.tx(func(tx *Tx) error {
		return tx.InsertTasks([]job.Task{{JobID: jobID, Due: 10, DueNow: 10, Origin: 1}, {JobID: jobID, Due: 10, DueNow: 10, Origin: 1}})
	})
	f.want("tasks", 4, "SELECT COUNT(*) FROM task")
	many := make([]job.Task, 2503) // more than one statement takes
	for i := range many {
		many[i] = job.Task{JobID: jobID + 1, Due: job.Micros(1 + i), DueNow: job.Micros(1 + i)}
	}
	f.tx(func(tx *Tx) error { return tx.InsertTasks(many) })
	f.want("tasks of another job", 2503, "SELECT COUNT(*) FROM task WHERE job_id = ?", jobID+1)
}

// TestNothingToDo: an empty batch is no statement and no error.
func TestNothingToDo(t *testing.T) {
	f := setUp(t)
	f.tx(func(tx *Tx) error {
		rows, err := tx.LockTasks(nil)
		if err != nil || len(rows) != 0 {
			t.Errorf("lock: got %v, %v", rows, err)
		}
		took, err := tx.Claim(session(1), 1, nil)
		if err != nil || took != nil {
			t.Errorf("claim: got %v, %v", took, err)
		}
		siblings, err := tx.Siblings(nil, nil, 1)
		if err != nil || len(siblings) != 0 {
			t.Errorf("siblings: got %v, %v", siblings, err)
		}
		for what, err := range map[string]error{
			"start": tx.Start(nil, 1, 1), "end": tx.End(nil, nil), "free": tx.Free(nil), "withdraw": tx.Withdraw(nil), "insert": tx.InsertTasks(nil),
			"runs": tx.InsertRuns(nil), "mark": tx.MarkStarted(nil), "cursors": tx.MoveCursors(nil), "locks": tx.TakeLocks(nil),
		} {
			if err != nil {
				t.Errorf("%s: got %v", what, err)
			}
		}
		return nil
	})
	if found, err := f.db.IdleTasks(t.Context(), nil, 10); err != nil || found != nil {
		t.Errorf("no slice: got %v, %v", found, err)
	}
	if found, err := f.db.IdleTasks(t.Context(), []Slice{{ToHash: job.Hashes, Before: 99}}, 0); err != nil || found != nil {
		t.Errorf("no limit: got %v, %v", found, err)
	}
}

// TestRetry: a task goes back to idle for its next attempt, and its run is written.
func TestRetry(t *testing.T) {
	f := setUp(t)
	ids := f.tasks(f.newJob("j"), 10, 20)
	tasks := f.claimed(session(1), 1, ids)
	f.tx(func(tx *Tx) error { return tx.Start(f.prepared(ids), 5, 1) })
	f.exec("UPDATE task SET kill_requested = 1")
	other, _ := f.row(ids[1])
	f.tx(func(tx *Tx) error { return tx.Retry([]Again{{ids[0], 777}}, []job.Run{run(tasks[0], job.Failed)}) })
	got, _ := f.row(ids[0])
	want := TaskRow{Task: job.Task{ID: ids[0], JobID: tasks[0].JobID, Due: 10, DueNow: 777, Hash: 7, Attempt: 2}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("got (+) is not what it should be (-):\n%s", d)
	}
	if now, _ := f.row(ids[1]); now != other {
		t.Errorf("the other task: got %+v, want it as it was, %+v", now, other)
	}
	f.want("records", 1, "SELECT COUNT(*) FROM history")
	f.want("requests to kill it", 0, "SELECT kill_requested FROM task WHERE id = ?", ids[0])
}

// TestKillRequests: only the launch that executes can be killed, and a task that is given back is to be killed still.
func TestKillRequests(t *testing.T) {
	f := setUp(t)
	ids := f.tasks(f.newJob("j"), 10, 20, 30)
	tasks := f.claimed(session(1), 1, ids)
	f.tx(func(tx *Tx) error { return tx.Start(f.prepared(ids[:2]), 5, 1) })
	for name, c := range map[string]struct {
		launch job.Launch
		want   bool
	}{
		"it executes":                 {tasks[0].Launch, true},
		"it is only prepared":         {tasks[2].Launch, false},
		"a launch that never was":     {job.Launch{Session: session(1), N: 99}, false},
		"the counter of another life": {job.Launch{Session: session(2), N: tasks[1].Launch.N}, false},
	} {
		var found bool
		f.tx(func(tx *Tx) (err error) { found, err = tx.RequestKill(c.launch); return err })
		if found != c.want {
			t.Errorf("%s: got found %v, want %v", name, found, c.want)
		}
	}
	requested := func(what string, want ...int64) {
		t.Helper()
		kills, err := f.db.KillsRequested(t.Context(), session(1))
		var got []int64
		for _, k := range kills {
			got = append(got, k.Launch.N)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v; want %v", what, got, err, want)
		}
	}
	requested("asked for", tasks[0].Launch.N)
	f.tx(func(tx *Tx) error { return tx.Free(ids[:1]) })
	requested("freed")
	f.claimed(session(1), 500, ids[:1])
	f.tx(func(tx *Tx) error { return tx.Start(f.prepared(ids[:1]), 5, 1) })
	requested("started anew", 500)
}

// TestSessionTasks: the tasks of a session come in the order of their ids, page by page, whatever is asked of them.
func TestSessionTasks(t *testing.T) {
	f := setUp(t)
	jobID, me := f.newJob("j"), session(1)
	const tasks = 23
	for i := range tasks {
		kill := []int{0, 0, 1, 0, 2, 77, -3}[i%7]
		f.exec("INSERT INTO task (job_id, due, due_now, hash, state, session_id, launch, kill_requested) VALUES (?, ?, ?, 0, 2, ?, ?, ?)", jobID, i, i, me[:], i, kill)
	}
	for _, limit := range []int{1, 4, tasks - 1, tasks, tasks + 1} {
		var got []job.Micros
		for after := int64(0); ; {
			rows, err := f.db.SessionTasks(t.Context(), me, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				got = append(got, r.Due)
			}
			if len(rows) < limit {
				break
			}
			after = rows[len(rows)-1].ID
		}
		if len(got) != tasks || !slices.IsSorted(got) {
			t.Errorf("%d at once: got %d, %v", limit, len(got), got)
		}
	}
}
