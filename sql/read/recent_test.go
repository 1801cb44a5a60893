package read

import (
	"slices"
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
		recent = must(f.db.RecentRuns(f.Context(), []int64{2, 3}, 12, nil))
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
		if got := must(f.db.RecentRuns(f.Context(), page, 12, nil)); len(got) != 200 {
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

// TestRunsOfOneApp: runs of a job that began in another app are left out.
func TestRunsOfOneApp(t *testing.T) {
	f := setUp(t)
	f.jobs(1000)
	f.runs(1000, 2000)
	f.exec("UPDATE run SET app_id = 4 WHERE job_id = 2 AND id <= 1000")
	f.exec("UPDATE run SET due_count = 2, due_last = due + 1 WHERE job_id = 2 AND id IN (500, 1500)")

	count := func(apps ...string) (n int64) {
		counts, several, err := f.db.CountSlots(f.Context(), 2, epoch, epoch+3_000_000, 1_000_000, epoch+3_000_000, 9, apps)
		if err != nil || len(several) != 2 {
			t.Errorf("got %d runs that count several due times, %v", len(several), err)
		}
		for _, c := range counts {
			n += c.N
		}
		return n
	}
	all, before, after := count(), count("app-4"), count("app-3")
	if before == 0 || after == 0 || before+after != all {
		t.Errorf("slots: got %d before and %d after the move, %d in all", before, after, all)
	}

	recent := must(f.db.RecentRuns(f.Context(), []int64{2}, 400, []string{"app-3"}))[2].Runs
	if len(recent) == 0 || slices.ContainsFunc(recent, func(r RecentRun) bool { return r.ID <= 1000 }) {
		t.Errorf("recent runs: got %+v", recent)
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
