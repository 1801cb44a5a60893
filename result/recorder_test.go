package result

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
	"go-crontab/sql"
)

// TestBatches: outcomes share transactions, up to a bound.
func TestBatches(t *testing.T) {
	f := setUp(t)
	all := f.outcomes(2*finishBatch + 3)
	f.putAll(all)
	if n := f.recorder.Waiting(); n != len(all) {
		t.Errorf("%d outcomes wait, want %d", n, len(all))
	}
	before := f.proxy.Counts().Commits
	f.recorder.Flush(t.Context())
	if n := f.proxy.Counts().Commits - before; n != 3 {
		t.Errorf("got %d commits, want 3", n)
	}
	f.want("records", len(all), "SELECT COUNT(*) FROM history WHERE outcome = 1 AND final = 1 AND started = due AND ended = due + 5")
	f.want("tasks", 0, "SELECT COUNT(*) FROM task")
	for _, o := range all {
		if f.written[o.Task.ID] != 1 {
			t.Fatalf("task %d: said to be written %d times, want once", o.Task.ID, f.written[o.Task.ID])
		}
	}
}

// TestRecorderRuns: what comes one by one is written soon, a few at a time, by several who put and flush at once.
func TestRecorderRuns(t *testing.T) {
	f := setUp(t)
	all := f.outcomes(300)
	var mu sync.Mutex
	for _, o := range all {
		written := o.Written
		o.Written = func() {
			mu.Lock()
			defer mu.Unlock()
			written()
		}
	}
	ctx, stop := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.recorder.Run(ctx) }()
	before := f.proxy.Counts().Commits
	var putting sync.WaitGroup
	for part := range 3 {
		putting.Go(func() {
			for i, o := range all[part*100 : part*100+100] {
				f.recorder.Put(o)
				if i%40 == 0 {
					f.recorder.Push(t.Context())
				}
			}
		})
	}
	putting.Wait()
	f.recorder.Flush(t.Context())
	over := errors.New("over")
	stop(over)
	if err := <-ended; err != over {
		t.Errorf("got %v, want %v", err, over)
	}
	f.recorded(all)
	if n := f.proxy.Counts().Commits - before; n > 100 {
		t.Errorf("got %d commits for 300 outcomes that came at once, want far fewer", n)
	}
}

// TestStaleOutcomes: where the row is not at the launch that ended any more, a peer has written the run or will. Ours is
// dropped, and the others of its batch are written.
func TestStaleOutcomes(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"a peer wrote it lost":                 "DELETE FROM task WHERE id = ?",
		"a peer freed it":                      "UPDATE task SET state = 0, session_id = NULL, launch = NULL WHERE id = ?",
		"another session claimed it":           "UPDATE task SET state = 1, session_id = 'somebody else' WHERE id = ?",
		"another session executes it":          "UPDATE task SET session_id = 'somebody else' WHERE id = ?",
		"this node executes it anew":           "UPDATE task SET launch = launch + 1000 WHERE id = ?",
		"this launch is prepared, not started": "UPDATE task SET state = 1 WHERE id = ?",
	} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			all := f.outcomes(3)
			f.exec(change, all[1].Task.ID)
			left := f.number("SELECT COUNT(*) FROM task WHERE id = ?", all[1].Task.ID)
			f.putAll(all)
			if err := f.recorder.finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, o := range all {
				if f.written[o.Task.ID] != 1 {
					t.Errorf("task %d: said to be written %d times, want once", o.Task.ID, f.written[o.Task.ID])
				}
			}
			f.want("records of the others", 2, "SELECT COUNT(*) FROM history")
			f.want("records of the stale one", 0, "SELECT COUNT(*) FROM history WHERE due = ?", int64(all[1].Run.Due))
			f.want("its row", left, "SELECT COUNT(*) FROM task")
		})
	}
}

// TestFinishFates: whatever becomes of a finish's commit, each run is written once and then said to be.
func TestFinishFates(t *testing.T) {
	t.Parallel()
	commit := faultproxy.CommitOf("INSERT INTO history")
	insert := faultproxy.SQL("INSERT INTO history")
	for name, c := range map[string]struct {
		rule  faultproxy.Rule
		fails bool // the first attempt
		left  int  // outcomes that wait after it
	}{
		"the reply is lost":                {faultproxy.Rule{Match: commit, Action: faultproxy.CutAfter()}, false, 0},
		"the commit never arrives":         {faultproxy.Rule{Match: commit, Action: faultproxy.CutBefore()}, false, 3},
		"the link is cut before":           {faultproxy.Rule{Match: insert, Action: faultproxy.CutBefore()}, true, 3},
		"the link is cut after":            {faultproxy.Rule{Match: insert, Action: faultproxy.CutAfter()}, true, 3},
		"a deadlock":                       {faultproxy.Rule{Match: insert, Action: faultproxy.Error(1213, "40001", "Deadlock")}, false, 0},
		"the disk is full":                 {faultproxy.Rule{Match: insert, Times: 2, Action: faultproxy.Error(1114, "HY000", "full")}, true, 3},
		"the server has no right to write": {faultproxy.Rule{Match: insert, Times: 4, Action: faultproxy.Error(1142, "42000", "denied")}, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			all := f.outcomes(3)
			for _, o := range all {
				o.Run.Reason, o.Run.Output = "as it was", job.Output{Head: []byte("kept"), Bytes: 4}
			}
			f.putAll(all)
			f.proxy.Add(c.rule)
			err := f.recorder.finish(t.Context())
			if (err != nil) != c.fails || f.recorder.Waiting() != c.left {
				t.Errorf("got %v, %d wait; want an error: %v, and %d", err, f.recorder.Waiting(), c.fails, c.left)
			}
			if len(f.written) != 3-c.left {
				t.Errorf("%d are said to be written, want %d", len(f.written), 3-c.left)
			}
			f.recorder.Flush(t.Context())
			f.recorded(all)
			f.want("records with all that they had", 3, "SELECT COUNT(*) FROM history h JOIN output o USING (session_id, launch) WHERE h.reason = 'as it was' AND o.head = 'kept'")
		})
	}
}

// TestPoisonedOutcomes: a row that MySQL refuses holds up no other, and is written without what was refused.
func TestPoisonedOutcomes(t *testing.T) {
	f := setUp(t)
	all := f.outcomes(40)
	bad := all[7]
	bad.Run.Signal, bad.Run.Reason = strings.Repeat("SIG", 20), "as it was"
	bad.Run.Output = job.Output{Head: []byte("kept"), Bytes: 4}
	f.putAll(all)
	f.recorder.Flush(t.Context())
	f.recorded(all)
	f.want("records of the bad one", 1, "SELECT COUNT(*) FROM history WHERE launch = ? AND sig = '' AND output_bytes = 0 AND reason LIKE 'MySQL refused the record of this run: %too long%'", bad.Run.Launch.N)
}

// TestHopelessOutcome: one that MySQL never takes waits behind all others, old and new.
func TestHopelessOutcome(t *testing.T) {
	f := setUp(t)
	all := f.outcomes(24)
	f.exec("CREATE TRIGGER refuse BEFORE INSERT ON history FOR EACH ROW IF NEW.due = 1003 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'never'; END IF")
	f.putAll(all[:12])
	ctx, stop := context.WithCancel(t.Context())
	steps := 0
	for ; f.recorder.Waiting() > 1 && steps < 60; steps++ {
		f.recorder.finish(ctx)
	}
	f.putAll(all[12:])
	for ; f.recorder.Waiting() > 1 && steps < 120; steps++ {
		f.recorder.finish(ctx)
	}
	stop()
	f.want("records", 23, "SELECT COUNT(*) FROM history")
	f.want("tasks", 1, "SELECT COUNT(*) FROM task WHERE due = 1003")
	if f.recorder.Waiting() != 1 || len(f.written) != 23 {
		t.Errorf("%d wait and %d are written after %d steps, want 1 and 23", f.recorder.Waiting(), len(f.written), steps)
	}
	f.exec("DROP TRIGGER refuse")
	f.recorder.Flush(t.Context())
	f.recorded(all)
}

// TestRecordThatIsThere: history has a record of the due time and attempt under another launch. No task ends twice, and
// none stays for ever.
func TestRecordThatIsThere(t *testing.T) {
	f := setUp(t)
	all := f.outcomes(5)
	f.exec("INSERT INTO history (job_id, due, session_id, launch, outcome, due_last, ended) VALUES (1, 1002, 'somebody else', 1, 5, 1002, 1)")
	f.putAll(all)
	f.recorder.Flush(t.Context())
	f.want("tasks", 0, "SELECT COUNT(*) FROM task")
	f.want("records", 5, "SELECT COUNT(*) FROM history")
	f.want("the record that was there", 1, "SELECT COUNT(*) FROM history WHERE due = 1002 AND outcome = 5")
	if len(f.written) != 5 {
		t.Errorf("%d are said to be written, want 5", len(f.written))
	}
}

// TestLockedRowsHoldUpNoOther: while somebody holds the row of a task, of a job or of a group, all outcomes that need none
// of these are written, and these once they are free.
func TestLockedRowsHoldUpNoOther(t *testing.T) {
	for what, lock := range map[string]string{
		"a task":  "SELECT id FROM task WHERE id = (SELECT MIN(id) + 3 FROM task) FOR UPDATE",
		"a job":   "SELECT id FROM job WHERE name = 'awaited' FOR UPDATE",
		"a group": "SELECT id FROM grp WHERE name = 'g' FOR UPDATE", "a group, by its id": "SELECT id FROM grp WHERE id = 1 FOR UPDATE",
	} {
		t.Run(what, func(t *testing.T) {
			f := setUp(t)
			f.exec("INSERT INTO grp (name, slots, created, updated) VALUES ('g', 1, 1, 1)")
			f.exec("INSERT INTO job (app, name, hash, spec, created, updated) VALUES ('a', 'awaited', 1, '{}', 1, 1)")
			all := f.outcomes(20)
			for i, o := range all {
				switch {
				case what == "a job" && i == 3:
					o.Awaited, o.Task.JobID = true, int64(f.number("SELECT id FROM job WHERE name = 'awaited'"))
				case strings.HasPrefix(what, "a group") && i == 3:
					o.Group = "g"
				}
			}
			holder, err := f.beside.Raw().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := holder.Exec(lock); err != nil {
				t.Fatal(err)
			}
			f.putAll(all[:10])
			began := time.Now()
			f.recorder.Flush(t.Context())
			f.want("records beside the lock", 9, "SELECT COUNT(*) FROM history")
			if took, most := time.Since(began), 2*sql.DefaultTimeouts.LockWait; took > most {
				t.Errorf("these took %v: want one wait for a lock and no more, below %v", took, most)
			}
			// A reply is lost: that is settled without the row that is held.
			f.putAll(all[10:12])
			f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("INSERT INTO history"), Action: faultproxy.CutAfter()})
			if err := f.recorder.finish(t.Context()); err != nil {
				t.Error(err)
			}
			f.want("records behind a lost reply", 11, "SELECT COUNT(*) FROM history")
			// What is set aside is known to be, also while batches are written in which it is not.
			before := f.proxy.Counts().Commits
			f.putAll(all[12:])
			for _, n := range []int{4, 4, 4} {
				f.recorder.batch = n
				if err := f.recorder.finish(t.Context()); err != nil || !f.recorder.patient {
					t.Errorf("got %v, and it knows of a row that is held: %v", err, f.recorder.patient)
				}
			}
			f.want("records of later batches", 19, "SELECT COUNT(*) FROM history")
			if n := f.proxy.Counts().Commits - before; n != 3 {
				t.Errorf("later batches took %d commits, want 3", n)
			}
			if err := f.recorder.finish(t.Context()); !errors.Is(err, errAllBusy) || f.recorder.Waiting() != 1 {
				t.Errorf("with nothing else: got %v, %d wait", err, f.recorder.Waiting())
			}
			if err := holder.Rollback(); err != nil {
				t.Fatal(err)
			}
			f.recorder.Flush(t.Context())
			f.recorded(all)
			if f.recorder.patient {
				t.Error("it still sets aside what is locked")
			}
		})
	}
}

// TestALockedWaiterHoldsUpNobody: while somebody holds the row of a task that waits for the end of another, that end is
// written with all the others. Who looks for what nobody woke wakes it.
func TestALockedWaiterHoldsUpNobody(t *testing.T) {
	f := setUp(t)
	all := f.outcomes(5)
	f.exec("INSERT INTO job (app, name, hash, spec, created, updated) VALUES ('a', 'awaited', 1, '{}', 1, 1)")
	all[3].Awaited, all[3].Task.JobID = true, int64(f.number("SELECT id FROM job WHERE name = 'awaited'"))
	f.exec("INSERT INTO task (job_id, hash, due, due_now, state) VALUES (?, 1, 1, 1, 3)", all[3].Task.JobID)
	f.exec("INSERT INTO waiting (task_id, kind, job_id, due, since, expires) SELECT id, 1, job_id, 1, 1, 1 << 62 FROM task WHERE state = 3")
	holder, err := f.beside.Raw().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback()
	if _, err := holder.Exec("SELECT id FROM task WHERE state = 3 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	f.putAll(all)
	began := time.Now()
	f.recorder.Flush(t.Context())
	f.want("records", 5, "SELECT COUNT(*) FROM history")
	f.want("who waits", 1, "SELECT COUNT(*) FROM task WHERE state = 3")
	if took, most := time.Since(began), 2*sql.DefaultTimeouts.LockWait; took > most {
		t.Errorf("that took %v: want one wait for a lock and no more, below %v", took, most)
	}
}

// TestFlushGivesUp: the end of the context ends it while MySQL is away, and nothing is forgotten.
func TestFlushGivesUp(t *testing.T) {
	f := setUp(t)
	all := f.outcomes(3)
	if age := f.recorder.Age(); age != 0 {
		t.Errorf("nothing waits, for %v", age)
	}
	put := time.Now()
	f.putAll(all)
	f.proxy.Refuse()
	f.proxy.CutAll()
	for name, write := range map[string]func(context.Context){"flush": f.recorder.Flush, "push": f.recorder.Push} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		write(ctx)
		cancel()
		if n := f.recorder.Waiting(); n != 3 || len(f.written) != 0 {
			t.Errorf("%s: %d wait and %d are written, want 3 and none", name, n, len(f.written))
		}
	}
	// Whoever starts tasks does not wait for MySQL to come back.
	done := make(chan bool)
	go func() { f.recorder.Push(t.Context()); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("push waits until MySQL is back")
	}
	if age, least, most := f.recorder.Age(), 200*time.Millisecond, time.Since(put); age < least || age > most {
		t.Errorf("the oldest waits for %v, want %v to %v", age, least, most)
	}
	f.proxy.Heal()
	f.recorder.Flush(t.Context())
	f.recorded(all)
	if age := f.recorder.Age(); age != 0 {
		t.Errorf("all are written, and the oldest waits for %v", age)
	}
}

// TestFlushLeavesWhatComesMeanwhile: a session that ends waits for its outcomes, not for those that another one goes on to put.
func TestFlushLeavesWhatComesMeanwhile(t *testing.T) {
	f := setUp(t)
	all := f.outcomes(10)
	for i, o := range all[:9] {
		written := o.Written
		o.Written = func() {
			written()
			f.recorder.Put(all[i+1])
		}
	}
	f.recorder.Put(all[0])
	f.recorder.Flush(t.Context())
	if f.written[all[0].Task.ID] != 1 || len(f.written) > 2 {
		t.Errorf("%d of 10 are written that came one after another, want the first and hardly more", len(f.written))
	}
	for range all {
		f.recorder.Flush(t.Context())
	}
	f.recorded(all)
}

// TestPushWritesAllThatWaits, also where a transaction takes fewer outcomes than it might, since others wait for these.
func TestPushWritesAllThatWaits(t *testing.T) {
	f := setUp(t)
	f.recorder.Lanes = func() int { return 2 }
	all := f.outcomes(2 * finishBatch)
	for _, o := range all {
		o.Awaited = true
	}
	f.putAll(all)
	f.recorder.Push(t.Context())
	if n := f.recorder.Waiting(); n != 0 {
		t.Errorf("%d of %d outcomes wait still", n, len(all))
	}
}

// TestFlushPassesTheHopeless: it ends although MySQL refuses an outcome whenever its turn comes, and has written the others.
func TestFlushPassesTheHopeless(t *testing.T) {
	f := setUp(t)
	f.exec("CREATE TRIGGER refuse BEFORE INSERT ON history FOR EACH ROW IF NEW.due = 1000 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'never'; END IF")
	f.putAll(f.outcomes(3))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if f.recorder.Flush(ctx); ctx.Err() != nil {
		t.Error("it waits for an outcome that is never written")
	}
	if n := f.recorder.Waiting(); n != 1 || len(f.written) != 2 {
		t.Errorf("%d wait and %d are written, want 1 and 2", n, len(f.written))
	}
}

// TestAgain: an attempt that is to be followed by another leaves its record, and its task idle.
func TestAgain(t *testing.T) {
	f := setUp(t)
	all := f.outcomes(2)
	all[0].Again, all[0].Run.Final = 5000, false
	f.putAll(all)
	f.recorder.Flush(t.Context())
	f.want("records", 1, "SELECT COUNT(*) FROM history WHERE due = 1000 AND final = 0 AND attempt = 1")
	f.want("records of the other", 1, "SELECT COUNT(*) FROM history WHERE due = 1001 AND final = 1")
	f.want("tasks for the next attempt", 1, "SELECT COUNT(*) FROM task WHERE due = 1000 AND due_now = 5000 AND state = 0 AND attempt = 2 AND session_id = DEFAULT(session_id) AND launch = 0 AND started = 0")
	f.want("tasks", 1, "SELECT COUNT(*) FROM task")
	if len(f.written) != 2 {
		t.Errorf("%d are said to be written, want 2", len(f.written))
	}
}

// TestLanes: far from MySQL a transaction takes more outcomes, unless one of them is to be found out that MySQL refuses.
func TestLanes(t *testing.T) {
	t.Parallel()
	r := New(nil, nil, nil, slog.New(slog.DiscardHandler))
	r.Lanes = func() int { return 2 }
	if got := r.most(); got != 2*finishBatch {
		t.Fatalf("got %d at once, want twice as many as near MySQL", got)
	}
	for n := r.most(); n > 1; n = r.most() {
		if r.isolate(make([]*Outcome, n), errors.New("refused")); r.most() >= n {
			t.Fatalf("got %d at once after %d were refused", r.most(), n)
		}
	}
}
