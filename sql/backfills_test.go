package sql

import (
	stdsql "database/sql"
	"maps"
	"math/rand/v2"
	"testing"

	"go-crontab/job"
)

// TestBackfillOutcomes holds what is counted by indexes against the rows themselves, among other runs of the same due times:
// those of the schedule, of another backfill, and attempts that were followed by others.
func TestBackfillOutcomes(t *testing.T) {
	f := setUp(t)
	r := rand.New(rand.NewPCG(1, 2))
	b := job.Backfill{ID: 7, JobID: 3, From: 10, To: 300}
	var runs []job.Run
	launch := int64(0)
	run := func(due, origin int64, attempt int, o job.Outcome, final bool) {
		launch++
		runs = append(runs, job.Run{Launch: job.Launch{Session: session(1), N: launch}, JobID: b.JobID, App: "a", Due: job.Micros(due), Until: job.Micros(due), Count: 1,
			Origin: origin, Attempt: attempt, Final: final, Ended: 1, Result: job.Result{Outcome: o}})
	}
	for due := range int64(310) {
		for _, origin := range []int64{0, 4, -7, -8} {
			attempts := 1 + r.IntN(3)
			live := r.IntN(10) == 0
			for n := 1; n <= attempts; n++ {
				final := n == attempts && !live
				o := job.Failed
				if final {
					o = job.Outcome(1 + r.IntN(int(job.LastOutcome)))
				}
				run(due, origin, n, o, final)
			}
			if live {
				f.exec("INSERT INTO task (job_id, due, origin, due_now, hash, attempt) VALUES (?, ?, ?, ?, 0, ?)", b.JobID, due, origin, due, attempts+1)
			}
		}
		if due > 290 { // begun, and not ended yet
			f.exec("INSERT INTO task (job_id, due, origin, due_now, hash) VALUES (?, ?, -7, ?, 0)", b.JobID, 1000+due, due)
		}
	}
	f.tx(func(tx *Tx) error { return tx.InsertRuns(runs) })
	want := map[job.Outcome]int64{}
	err := f.db.query(t.Context(), "count", func(rows *stdsql.Rows) error {
		var o job.Outcome
		var n int64
		err := rows.Scan(&o, &n)
		want[o] = n
		return err
	}, "SELECT outcome, COUNT(*) FROM history WHERE job_id = ? AND due BETWEEN ? AND ? AND origin = ? AND final = 1 GROUP BY outcome", b.JobID, int64(b.From), int64(b.To), b.Origin())
	if err != nil || len(want) != int(job.LastOutcome) {
		t.Fatalf("counted %v, %v", want, err)
	}
	if got, err := f.db.BackfillOutcomes(t.Context(), &b); err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	none := job.Backfill{ID: 9, JobID: 3, From: 10, To: 300}
	if got, err := f.db.BackfillOutcomes(t.Context(), &none); err != nil || len(got) != 0 {
		t.Errorf("of one that has not begun: got %v, %v", got, err)
	}
}
