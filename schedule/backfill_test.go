package schedule

import (
	"slices"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

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
		if err := f.planner.DB.Tx(t.Context(), func(tx *sql.Tx) error { _, err := feed(tx, &b, f.session.Now()); return err }); err != nil {
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
