package schedule

import (
	"fmt"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// TestChangesKeepWhatHadBegun: a due time whose start was committed before it was due, and which was given back because
// nothing was spawned, is no less one than it was: planning goes on behind it, so a change that withdrew it would lose it.
func TestChangesKeepWhatHadBegun(t *testing.T) {
	f := setUp(t)
	begin := func(t *testing.T) (*fixture, job.Job) {
		f := f.anew(t)
		f.session.set(after(-time.Second))
		j := f.create(every("j", 10*time.Second, 0))
		f.claimer.claim(t.Context(), f.session.Now(), 0)
		f.starter.lead.measure(100 * time.Millisecond)
		f.session.set(after(-100 * time.Millisecond))
		f.starter.start(t.Context(), f.session.Now())
		if len(f.executing.added) != 1 || f.executing.added[0].Due != t0 {
			t.Fatalf("got attempts %+v, want the one due in 100 ms", f.executing.added)
		}
		f.executing.added = nil
		f.exec("UPDATE task SET state = 0, session_id = NULL, launch = NULL, started = 0, spawn_by = 0 WHERE state = 2") // compensation: its session was lost
		f.session.set(after(-50 * time.Millisecond))
		return f, j
	}
	t.Run("an edit", func(t *testing.T) {
		f, j := begin(t)
		f.update(j, func(s *job.Spec) { s.Command = "other" })
		f.reach(t0)
		if len(f.executing.added) != 1 || f.executing.added[0].Due != t0 || f.executing.added[0].Spec.Command != "other" {
			t.Errorf("got attempts %+v, want the due time, with the new definition", f.executing.added)
		}
	})
	t.Run("a pause", func(t *testing.T) {
		f, j := begin(t)
		if _, err := f.editor.Pause(t.Context(), j.ID, job.PauseRequest{}); err != nil {
			t.Fatal(err)
		}
		f.session.set(after(5 * time.Second))
		if _, err := f.editor.Resume(t.Context(), j.ID); err != nil {
			t.Fatal(err)
		}
		f.want("records of the due time", 1, "SELECT COUNT(*) FROM history WHERE due = ?", int64(t0))
	})
	t.Run("a delete", func(t *testing.T) {
		f, j := begin(t)
		if err := f.editor.Delete(t.Context(), j.ID); err != nil {
			t.Fatal(err)
		}
		f.want("records of the due time", 1, "SELECT COUNT(*) FROM history WHERE due = ?", int64(t0))
	})
}

// TestWithdrawnTakesNoPlace: a due time that an edit has withdrawn takes the place of no other, though it is prepared here
// beside it still.
func TestWithdrawnTakesNoPlace(t *testing.T) {
	f := setUp(t)
	spec := every("j", time.Second, 0)
	spec.Overlap = job.OverlapReplace
	f.session.set(after(-time.Second))
	j := f.create(spec)
	f.claimer.claim(t.Context(), f.session.Now(), 0)
	// The lease is stale for a moment, and somebody makes it a job that is due once an hour.
	other := node(t, f.dsn, 2)
	other.session.set(after(500 * time.Millisecond))
	other.update(j, func(s *job.Spec) {
		start := after(time.Hour).Time()
		s.Every, s.Start = job.Duration(time.Hour), &start
	})
	f.session.set(after(1100 * time.Millisecond))
	f.starter.start(t.Context(), f.session.Now())
	f.wantRuns("of the due time that stayed", j.ID)
	if len(f.executing.added) != 1 || f.executing.added[0].Due != t0 {
		t.Errorf("got attempts %+v, want the due time that stayed", f.executing.added)
	}
}

// TestFewerSlots: who was woken for a slot that has been taken away does not start beyond those that are left.
func TestFewerSlots(t *testing.T) {
	f := setUp(t)
	f.group("g", 3)
	for i := range 6 {
		spec := at(fmt.Sprint("job ", i), t0)
		spec.Group = "g"
		f.create(spec)
	}
	f.reach(t0)
	f.want("execute", 3, "SELECT COUNT(*) FROM task WHERE state = 2")
	f.finish()
	f.session.set(after(time.Second))
	if err := f.sweeper().sweep(t.Context(), f.session.Now()); err != nil {
		t.Fatal(err)
	}
	f.want("were woken", 3, "SELECT COUNT(*) FROM task JOIN slot ON task_id = id WHERE state = 0")
	f.group("g", 1)
	f.reach(after(2 * time.Second))
	f.want("execute", 1, "SELECT COUNT(*) FROM task WHERE state = 2")
	for i := range 2 {
		f.finish()
		f.sweep(after(time.Duration(3+i) * time.Second))
		f.want("execute", 1, "SELECT COUNT(*) FROM task WHERE state = 2")
	}
	f.finish()
	f.want("are left", 0, "SELECT COUNT(*) FROM task")
}

// TestQueuedKeepsItsPlace: a due time that was woken and has to wait once more, for a slot of its group now, is not put
// out of the queue by one that came when it was about to start.
func TestQueuedKeepsItsPlace(t *testing.T) {
	f := setUp(t)
	f.group("g", 1)
	spec := every("j", time.Second, 0)
	spec.Overlap, spec.Queue, spec.Group = job.OverlapQueue, 2, "g"
	f.session.set(after(-time.Second))
	j := f.create(spec)
	for i := range 3 {
		f.reach(after(time.Duration(i) * time.Second))
	}
	f.want("wait", 2, "SELECT COUNT(*) FROM waiting WHERE kind = 1")
	// The first one ends, and another job takes the slot.
	f.finish()
	other := at("other", after(2500*time.Millisecond))
	other.Group = "g"
	o := f.create(other)
	f.reach(after(2500 * time.Millisecond))
	f.executes(o)
	f.session.set(after(2600 * time.Millisecond))
	if err := f.sweeper().sweep(t.Context(), f.session.Now()); err != nil {
		t.Fatal(err)
	}
	f.want("woken", 1, "SELECT COUNT(*) FROM task WHERE state = 0 AND due = ?", int64(after(time.Second)))
	// The next due time, which was prepared before, is due when nobody has claimed that one yet.
	f.session.set(after(3 * time.Second))
	f.starter.start(t.Context(), f.session.Now())
	f.reach(after(3100 * time.Millisecond))
	f.wantRuns("of those that wait", j.ID, "succeeded 0..0×1 ")
	f.want("wait", 3, "SELECT COUNT(*) FROM waiting WHERE job_id = ?", j.ID)
}

// TestCancelledBackfill: what a cancelled backfill has not begun is not started, and what has begun has an end on record.
func TestCancelledBackfill(t *testing.T) {
	f := setUp(t)
	begin := func(t *testing.T) (*fixture, job.Job, job.Backfill) {
		f.exec("TRUNCATE TABLE backfill")
		f := f.anew(t)
		spec := every("j", time.Hour, -100*time.Hour)
		spec.Retry = job.Retry{Attempts: 3, Backoff: job.Duration(time.Second)}
		j := f.create(spec)
		b, err := f.editor.Backfill(t.Context(), j.ID, after(-10*time.Hour).Time(), after(-5*time.Hour).Time(), 1, false, "")
		if err != nil {
			t.Fatal(err)
		}
		f.exec("DELETE FROM task WHERE origin = 0")
		f.exec("UPDATE job SET next_due = NULL")
		f.reach(t0)
		f.executes(j)
		return f, j, b
	}
	cancel := func(f *fixture, b job.Backfill) {
		f.Helper()
		f.session.set(after(time.Hour)) // no window is open
		if _, err := f.editor.CancelBackfill(f.Context(), b.ID); err != nil {
			f.Fatal(err)
		}
	}
	t.Run("an attempt that was never spawned", func(t *testing.T) {
		f, _, b := begin(t)
		cancel(f, b)
		f.executing.added = nil
		f.exec("UPDATE task SET state = 0, session_id = NULL, launch = NULL, started = 0, spawn_by = 0 WHERE state = 2") // compensation
		f.reach(after(time.Hour + time.Second))
		f.executes()
		f.want("records", 1, "SELECT COUNT(*) FROM history WHERE origin < 0 AND final = 1 AND outcome = 6")
	})
	t.Run("a retry of what executed", func(t *testing.T) {
		f, j, b := begin(t)
		cancel(f, b)
		f.retry(j.ID, after(time.Hour))
		f.reach(after(time.Hour + time.Second))
		f.executes()
		f.want("records", 1, "SELECT COUNT(*) FROM history WHERE origin < 0 AND final = 1 AND outcome = 6 AND attempt = 2")
	})
	t.Run("a retry that is to come", func(t *testing.T) {
		f, j, b := begin(t)
		f.retry(j.ID, after(2*time.Hour))
		cancel(f, b)
		f.reach(after(3 * time.Hour))
		f.executes()
		f.want("records", 1, "SELECT COUNT(*) FROM history WHERE origin < 0 AND final = 1 AND outcome = 6 AND attempt = 2")
	})
}

// TestBackfillRestsInAPause: what is planned of a backfill is not started in a pause, and is when it has ended.
func TestBackfillRestsInAPause(t *testing.T) {
	f := setUp(t)
	spec := every("j", time.Hour, -100*time.Hour)
	spec.Overlap = job.OverlapSkip
	j := f.create(spec)
	if _, err := f.editor.Backfill(t.Context(), j.ID, after(-10*time.Hour).Time(), after(-5*time.Hour).Time(), 3, false, ""); err != nil {
		t.Fatal(err)
	}
	f.session.set(after(time.Second))
	f.reach(after(time.Second))
	if _, err := f.editor.Pause(t.Context(), j.ID, job.PauseRequest{}); err != nil {
		t.Fatal(err)
	}
	f.finish()
	for i := range 3 {
		f.sweep(after(time.Duration(2+i) * time.Second))
	}
	f.executes()
	f.want("of the backfill live", 2, "SELECT COUNT(*) FROM task WHERE origin < 0")
	// One that somebody asks for is no backfill.
	if _, err := f.editor.RunNow(t.Context(), j.ID, ""); err != nil {
		t.Fatal(err)
	}
	f.reach(after(5 * time.Second))
	f.want("executes", 1, "SELECT COUNT(*) FROM task WHERE state = 2 AND origin > 0")
	if _, err := f.editor.Resume(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	f.sweep(after(10 * time.Second))
	f.want("waits for the pause", 0, "SELECT COUNT(*) FROM waiting WHERE kind = 4")
	f.finish()
	f.sweep(after(11 * time.Second))
	f.executes(j)
}

// TestRestedBackfillNeedsNoGap: what of a backfill waited for the end of a pause goes on then, also where runs that it may
// overlap never cease.
func TestRestedBackfillNeedsNoGap(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", time.Hour, -100*time.Hour))
	b, err := f.editor.Backfill(t.Context(), j.ID, after(-10*time.Hour).Time(), after(-5*time.Hour).Time(), 3, false, "")
	if err != nil {
		t.Fatal(err)
	}
	f.pauseApp(job.DefaultApp, "", after(10*time.Second))
	f.reach(after(time.Second))
	f.executes()
	f.want("wait for the pause", 3, "SELECT COUNT(*) FROM waiting WHERE kind = 4")
	if _, err := f.editor.RunNow(t.Context(), j.ID, ""); err != nil {
		t.Fatal(err)
	}
	f.reach(after(2 * time.Second))
	f.sweep(after(9 * time.Second))
	f.executes(j)
	f.sweep(after(10 * time.Second))
	f.want("of the backfill", 3, "SELECT COUNT(*) FROM task WHERE state = 2 AND origin = ?", b.Origin())
}

// TestEditIntoAGroup: runs of a job that execute when it is put into a group count among those of the group.
func TestEditIntoAGroup(t *testing.T) {
	f := setUp(t)
	f.group("g", 1)
	f.group("other", 1)
	f.session.set(after(-time.Second))
	j := f.create(every("j", time.Second, 0))
	f.reach(t0)
	f.executes(j)
	f.session.set(after(100 * time.Millisecond))
	j = f.update(j, func(s *job.Spec) { s.Group = "g" })
	f.reach(after(time.Second))
	f.executes(j)
	f.want("wait for a slot", 1, "SELECT COUNT(*) FROM waiting WHERE kind = 2")
	j = f.update(j, func(s *job.Spec) { s.Group = "other" })
	f.reach(after(1500 * time.Millisecond))
	f.executes(j)
	f.want("hold a slot of the first group", 0, "SELECT COUNT(*) FROM slot JOIN grp ON id = group_id WHERE name = 'g'")
	f.finish()
	f.sweep(after(1900 * time.Millisecond))
	f.executes(j)
}

// TestEditBehindAPause: an edit that comes when a pause has ended by itself, and no planner has seen it yet, loses none of
// the due times since.
func TestEditBehindAPause(t *testing.T) {
	f := setUp(t)
	edit := func(f *fixture, j job.Job) {
		f.Helper()
		f.session.set(after(100 * time.Second))
		now, err := f.beside.Job(f.Context(), j.ID)
		if err != nil {
			f.Fatal(err)
		}
		f.update(now.Job, func(s *job.Spec) { s.Command = "other" })
		f.want("tasks of what was due behind the end", 1, "SELECT COUNT(*) FROM task WHERE due = ?", int64(after(90*time.Second)))
	}
	t.Run("of its app", func(t *testing.T) {
		f := f.anew(t)
		j := f.create(in("a", every("j", 30*time.Second, 30*time.Second)))
		f.pauseApp("a", "", after(80*time.Second))
		f.look(after(10 * time.Second))
		f.want("held", 1, "SELECT held FROM job")
		edit(f, j)
	})
	t.Run("of its own", func(t *testing.T) {
		f := f.anew(t)
		j := f.create(every("j", 30*time.Second, 30*time.Second))
		if _, err := f.editor.Pause(t.Context(), j.ID, job.PauseRequest{Until: after(80 * time.Second)}); err != nil {
			t.Fatal(err)
		}
		edit(f, j)
	})
}

// TestGivenBackHoldsNoSlot: what was given back keeps nobody from a slot, though its due time lies far ahead since MySQL's
// clock was put back.
func TestGivenBackHoldsNoSlot(t *testing.T) {
	f := setUp(t)
	f.group("g", 1)
	a, b := at("a", t0), at("b", after(-30*time.Minute))
	a.Group, b.Group = "g", "g"
	f.create(a)
	f.reach(t0)
	f.want("executes", 1, "SELECT COUNT(*) FROM task JOIN slot ON task_id = id WHERE state = 2")
	f.session.set(after(-time.Hour))
	err := f.beside.Tx(t.Context(), func(tx *sql.Tx) error { return tx.Free([]int64{f.executing.added[0].ID}) }) // compensation: it was not spawned
	if err != nil {
		t.Fatal(err)
	}
	f.executing.added = nil
	j := f.create(b)
	f.reach(after(-30 * time.Minute))
	f.session.set(after(-30*time.Minute + time.Second))
	s := f.sweeper()
	s.rounds = tidyEvery - 1
	for range 2 {
		if err := s.sweep(t.Context(), f.session.Now()); err != nil {
			t.Fatal(err)
		}
	}
	f.reach(after(-30*time.Minute + 2*time.Second))
	f.executes(j)
	f.finish()
	f.reach(t0)
	f.want("executes with a slot", 1, "SELECT COUNT(*) FROM task JOIN slot ON task_id = id WHERE state = 2")
}
