package schedule

import (
	"context"
	"slices"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// TestFeedBesideKeptRows: a backfill whose row, or its job's, somebody keeps locked holds up no other, and one goes on beside a
// task of its own that is locked.
func TestFeedBesideKeptRows(t *testing.T) {
	for what, c := range map[string]struct {
		lock string
		fed  int64 // tasks of the first backfill then
	}{
		"the job":            {"SELECT id FROM job WHERE id = ? FOR UPDATE", 1},
		"the backfill":       {"SELECT id FROM backfill WHERE job_id = ? FOR UPDATE", 1},
		"one of its tasks":   {"SELECT id FROM task FORCE INDEX (due) WHERE job_id = ? AND origin < 0 FOR UPDATE", 2},
		"one that has ended": {"DELETE FROM task WHERE job_id = ? AND origin < 0", 2},
	} {
		t.Run(what, func(t *testing.T) {
			f := setUp(t)
			var jobs []job.Job
			for _, name := range []string{"kept", "j"} {
				j := f.create(every(name, time.Hour, -100*time.Hour))
				if _, err := f.editor.Backfill(t.Context(), j.ID, after(-10*time.Hour).Time(), after(-5*time.Hour).Time(), 2, false, ""); err != nil {
					t.Fatal(err)
				}
				jobs = append(jobs, j)
			}
			f.exec("DELETE FROM task WHERE origin < 0 AND due > ?", int64(after(-10*time.Hour))) // one of each has run
			release := f.keep(c.lock, jobs[0].ID)
			feeder := NewFeeder(Feeder{DB: f.planner.DB, Session: f.session, Soon: func() {}, Log: f.planner.Log})
			feed := func() {
				t.Helper()
				if err := feeder.feedAll(t.Context()); err != nil {
					t.Error(err)
				}
			}
			began := time.Now()
			feed()
			if took := time.Since(began); took > 1500*time.Millisecond {
				t.Errorf("it took %s: it waited for what is locked", took)
			}
			f.want("tasks of the other one", 2, "SELECT COUNT(*) FROM task WHERE job_id = ? AND origin < 0", jobs[1].ID)
			f.want("tasks of the one whose row is kept", c.fed, "SELECT COUNT(*) FROM task WHERE job_id = ? AND origin < 0", jobs[0].ID)
			release()
			feed()
			f.want("its tasks in the end", 2, "SELECT COUNT(*) FROM task WHERE job_id = ? AND origin < 0", jobs[0].ID)
		})
	}
}

// TestFeederComesBack: what a feeder finds busy it feeds a moment later, though nothing wakes it again.
func TestFeederComesBack(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", time.Hour, -100*time.Hour))
	if _, err := f.editor.Backfill(t.Context(), j.ID, after(-10*time.Hour).Time(), after(-5*time.Hour).Time(), 2, false, ""); err != nil {
		t.Fatal(err)
	}
	f.exec("DELETE FROM task WHERE origin < 0") // they have run
	release := f.keep("SELECT id FROM job WHERE id = ? FOR UPDATE", j.ID)
	fed := make(chan struct{}, 1)
	s := &looks{Session: f.session, second: release}
	feeder := NewFeeder(Feeder{DB: f.planner.DB, Session: s, Soon: func() { fed <- struct{}{} }, Log: f.planner.Log})
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		_ = feeder.Run(ctx)
		close(over)
	}()
	feeder.Wake()
	select {
	case <-fed:
	case <-time.After(10 * time.Second):
		t.Error("it did not come back")
	}
	stop()
	<-over
	if s.n < 2 {
		release()
	}
	if s.n != 2 {
		t.Errorf("%d looks, want 2", s.n)
	}
}

// looks is a session whose clock is read at each look at a backfill.
type looks struct {
	Session
	n      int
	second func() // called at the second look
}

func (l *looks) Now() job.Micros {
	if l.n++; l.n == 2 {
		l.second()
	}
	return l.Session.Now()
}

// TestBackfillOfWhatIsMissing: due times that have succeeded are looked at many at once, also by a backfill that may have one
// task, and each is counted once.
func TestBackfillOfWhatIsMissing(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", time.Second, -2*time.Hour))
	from, missing := after(-time.Hour), []float64{-2500, -1100, -1098, -50}
	var runs []job.Run
	for i := range 3601 {
		due := from.Add(time.Duration(i) * time.Second)
		if !slices.Contains(missing, due.Sub(t0).Seconds()) {
			runs = append(runs, job.Run{Launch: f.session.Mint(), JobID: j.ID, App: "default", Due: due, Until: due, Count: 1, Attempt: 1, Final: true, Ended: t0,
				Result: job.Result{Outcome: job.Succeeded}})
		}
	}
	if err := f.beside.Tx(t.Context(), func(tx *sql.Tx) error { return tx.InsertRuns(runs) }); err != nil {
		t.Fatal(err)
	}
	b, err := f.editor.Backfill(t.Context(), j.ID, from.Time(), t0.Time(), 1, true, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []float64
	most, feeds := int64(0), 0
	for ; b.State == job.Backfilling && feeds < 100; feeds++ {
		got = append(got, f.seconds("SELECT due FROM task WHERE origin < 0")...)
		f.exec("DELETE FROM task WHERE origin < 0") // it has run
		before := f.planner.DB.Meter().Statements.Load()
		if err := f.planner.DB.Tx(t.Context(), func(tx *sql.Tx) error { _, err := feed(tx, &b, f.session.Now(), nil); return err }); err != nil {
			t.Fatal(err)
		}
		most = max(most, f.planner.DB.Meter().Statements.Load()-before)
	}
	if !slices.Equal(got, missing) {
		t.Errorf("got due times %v, want %v", got, missing)
	}
	if b.Planned != 4 || b.LeftOut != 3597 || b.NextDue != 0 {
		t.Errorf("got %+v, want 4 planned and 3597 left out", b)
	}
	if most > 15 {
		t.Errorf("one feed sent %d statements, want a handful", most)
	}
}
