package read

import (
	"testing"

	"go-crontab/job"
)

// TestRecentRuns: the latest runs of many jobs are read with few rows, however many runs they have.
func TestRecentRuns(t *testing.T) {
	f := setUp(t)
	f.jobs(1000)
	f.runs(1000, 20_000)
	f.exec("UPDATE job SET running = 20060 WHERE id = 3")

	var recent map[int64]*Recent
	f.readsAtMost(200, "the latest 12 runs of two jobs", func() {
		recent = must(f.db.RecentRuns(f.Context(), []int64{2, 3}, 12))
	})

	frequent := recent[2]
	if len(frequent.Runs) != 12 || !frequent.More || !frequent.Runs[0].Executing || frequent.Executing != 0 {
		t.Errorf("a frequent job: got %+v", frequent)
	}
	for i, r := range frequent.Runs {
		if r.JobID != 2 || i > 0 && r.Due >= frequent.Runs[i-1].Due {
			t.Errorf("run %d: got %+v", i, r)
		}
	}
	if recent[3].Executing == 0 || recent[3].More && len(recent[3].Runs) < 12 {
		t.Errorf("a job whose run with the turn executes: got %+v", recent[3])
	}

	page := make([]int64, 200)
	for i := range page {
		page[i] = int64(100 + i)
	}
	f.readsAtMost(200*40, "the latest 12 runs of a page", func() {
		if got := must(f.db.RecentRuns(f.Context(), page, 12)); len(got) != 200 {
			t.Errorf("a page: got %d jobs", len(got))
		}
	})

	for _, j := range must(f.db.FailedJobs(f.Context())) {
		want := f.number("SELECT MAX(due) FROM run WHERE job_id = ? AND outcome = 'failed'", j.JobID)
		if int64(j.Due) != want {
			t.Errorf("job %d: got its latest failure at %d, want %d", j.JobID, j.Due, want)
		}
	}
}

// TestWindow: the runs of a window are read up to a bound, and rare failures are found anyway.
func TestWindow(t *testing.T) {
	f := setUp(t)
	f.jobs(1000)
	f.runs(1000, 20_000)
	w := Window{From: epoch + 1_000_000, To: epoch + 20_000_000, Most: 500}
	f.readsAtMost(1200, "500 runs of a window", func() {
		runs, since, err := f.db.RunsOfWindow(f.Context(), w)
		if err != nil || len(runs) > 500 || len(runs) < 490 || since <= w.From || since > w.To {
			t.Errorf("got %d runs since %d, %v", len(runs), since, err)
		}
		for _, r := range runs {
			if r.Due < since || r.Outcome == job.Succeeded && r.Took == 0 {
				t.Errorf("got %+v", r)
			}
		}
	})

	f.readsAtMost(100, "the failures of a window", func() {
		failed, since, err := f.db.FailuresOfWindow(f.Context(), w)
		if got := ids(failed, func(r *Fared) int64 { return r.Run }); got != "19997 14998 9999 5000" || since != w.From || err != nil {
			t.Errorf("got %s since %d, %v", got, since, err)
		}
	})

	w.Most, w.App = 100_000, "rare"
	runs, since, err := f.db.RunsOfWindow(f.Context(), w)
	want := f.number(`SELECT COUNT(*) FROM run WHERE app_id = 41 AND state = 'ended' AND due BETWEEN ? AND ?`,
		int64(w.From), int64(w.To))
	if err != nil || int64(len(runs)) != want || want == 0 || since != w.From {
		t.Errorf("one app: got %d runs since %d, %v; want %d", len(runs), since, err, want)
	}
}
