package read

import (
	"fmt"
	"slices"
	"testing"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// skipped fills a job with runs that ended without beginning, one due each microsecond from an
// instant on.
func (f *fixture) skipped(jobID int64, from job.Micros, n int) {
	f.Helper()
	f.numbers(n)
	f.exec(`INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash, outcome, ended, final)
		SELECT ? * 100000 + n, ?, 1, ? + n - 1, 'schedule', 'ended', -2, 1, 1, 1, 'skipped', 1, 1
		FROM num`, jobID, jobID, int64(from))
}

// TestNotRunInParts: among jobs with very many runs that never began, each call reads a few parts,
// and no part twice.
func TestNotRunInParts(t *testing.T) {
	const since, records = job.Micros(1_000_000), 30_000
	f := setUp(t)
	const never, once, few, gone = 1, 2, 3, 4
	f.jobs(4)
	f.skipped(never, since, records)
	f.skipped(once, since, records)
	f.skipped(few, since, 20)
	f.exec("UPDATE run SET started = 1 WHERE job_id = ? AND due = ?", once, int64(since)+records/2)
	f.exec("UPDATE job SET begun_to = ?, next_due = ?", int64(since)+records, int64(since)+3*records)

	looks := map[int64]*RunLook{}
	call := func(what string, since job.Micros, most int64, found, open []int64) {
		t.Helper()
		var gotFound, gotOpen []int64
		f.readsAtMost(most, what, func() {
			var err error
			if gotFound, gotOpen,
				err = watch(f.db).NotRun(t.Context(), looks, []int64{never, once, few, gone}, since); err != nil {
				t.Fatal(err)
			}
		})

		if !slices.Equal(gotFound, found) || !slices.Equal(gotOpen, open) {
			t.Errorf("%s: got %v, and %v that are not known, want %v and %v", what, gotFound, gotOpen, found, open)
		}
	}

	const part, little = lookParts*lookRows + 1500, 1500 // opening tables reads rows too
	call("the first parts", since, part, []int64{few}, []int64{never, once})
	call("the next parts", since, part, []int64{few}, []int64{never})
	call("the last parts", since, part, []int64{never, few}, nil)
	call("once more", since, little, []int64{never, few}, nil)
	call("from later on", since+5, little, []int64{never, few}, nil)
	call("from earlier on", since-1, part, []int64{few}, []int64{never})
	call("and further", since-1, part, []int64{never, few}, nil)
	looks[never].Began = since + 6
	call("one has begun that was due before others", since+5, little, []int64{few}, nil)
	call("and is of before", since+7, little, []int64{never, few}, nil)
	call("behind all due times", since+2*records, little, []int64{never, once, few, gone}, nil)
}

// TestNotRun: executing jobs, jobs resumed since and jobs without a future due time are left out.
func TestNotRun(t *testing.T) {
	const since = job.Micros(1_000_000)
	f := setUp(t)
	f.jobs(8)
	f.exec("UPDATE job SET begun_to = 1, next_due = ?, living = 1, paused = 0, error = ''", int64(2*since))
	f.exec("UPDATE job SET next_due = NULL WHERE id IN (2, 3)")
	f.exec("UPDATE job SET error = 'no such zone' WHERE id = 3")
	f.exec("UPDATE job SET resumed = ? WHERE id = 4", int64(since))
	f.exec("UPDATE job SET begun_to = 0 WHERE id IN (6, 7)")
	f.exec("UPDATE job SET next_due = ? WHERE id = 7", int64(since)-1)
	f.exec(`INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash, started)
		VALUES (1, 5, 1, 2, 'schedule', 'executing', 7, 1, 2, 1, 2)`)
	f.exec("UPDATE job_version SET definition = '{\"start\":\"2099-01-01T00:00:00Z\"}' WHERE job_id = 8")

	found, open, err := watch(f.db).NotRun(t.Context(), map[int64]*RunLook{}, []int64{1, 2, 3, 4, 5, 6, 7, 8}, since)
	if want := []int64{1, 3, 7}; err != nil || !slices.Equal(found, want) || len(open) > 0 {
		t.Errorf("got %v and %v that are not known, %v; want %v", found, open, err, want)
	}
}

// TestHeldRuns: each late or long run is listed once, earliest first, even if many have the same
// time, and no more runs are read than listed.
func TestHeldRuns(t *testing.T) {
	const n, limit = 3000, 64
	f := setUp(t)
	f.numbers(n)
	f.exec(`INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash)
		SELECT n, n, 1, 1, 'schedule', ELT(1 + n MOD 3, 'idle', 'prepared', 'executing'),
			ELT(1 + n MOD 3, 0, 7, 8), 1, 1 + n DIV 900, n MOD 4
		FROM num`)
	f.exec("ANALYZE TABLE run")
	for _, c := range []struct {
		what  string
		owner trip.Owner
		list  func(after LatePlace) ([]LateRun, error)
	}{
		{"idle", 0, func(after LatePlace) ([]LateRun, error) { return f.db.LateRuns(t.Context(), after, 4, limit) }},
		{"prepared", 7, func(after LatePlace) ([]LateRun, error) {
			return f.db.LateRuns(t.Context(), after, 4, limit)
		}},
		{"executing", 8, func(after LatePlace) ([]LateRun, error) {
			return watch(f.db).UnendedRuns(t.Context(), after, 4, limit)
		}},
	} {
		var got []string
		at := LatePlace{Owner: c.owner}
		for page := 0; ; page++ {
			var rows []LateRun
			f.readsAtMost(300+2*limit, fmt.Sprintf("%s, page %d", c.what, page), func() { rows = must(c.list(at)) })
			for _, r := range rows {
				got, at = append(got, fmt.Sprint(r.ID)), r.LatePlace
			}
			if len(rows) < limit {
				break
			}
		}

		want := f.texts(`
			SELECT id
			FROM run
			WHERE state = ? AND due_now < IF(state = 'executing', 99, 4)
			ORDER BY due_now, hash, id`, c.what)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %d runs, want %d", c.what, len(got), len(want))
		}
	}

	if got := must(watch(f.db).Holders(t.Context())); !slices.Equal(got, []trip.Owner{0, 7, 8}) {
		t.Errorf("holders: got %v", got)
	}
}

// TestLiveRunsOf: the runs of some jobs are found among all runs, up to a bound.
func TestLiveRunsOf(t *testing.T) {
	f := setUp(t)
	f.numbers(1000)
	f.exec(`INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash)
		SELECT n, n MOD 100, 1, n, IF(n = 7, 'backfill', 'schedule'),
			ELT(1 + n DIV 300, 'idle', 'waiting', 'executing', 'ended'),
			ELT(1 + n DIV 300, 0, -1, 7, -2), 1, IF(n DIV 300 = 1, 1 << 60, n), 1
		FROM num`)

	id := func(r *LateRun) int64 { return r.ID }
	runs, all, err := watch(f.db).LiveRunsOf(t.Context(), []int64{7, 8}, 808)
	if got := ids(runs, id); err != nil || !all ||
		got != "8 107 108 207 208 607 608 707 708 807 307 308 407 408 507 508" {
		t.Errorf("got %s, all: %v, %v", got, all, err)
	}

	f.numbers(liveMost)
	f.exec(`INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash)
		SELECT 10000 + n, 99, 1, 10000 + n, 'schedule', 'idle', 0, 1, 1, 1 FROM num`)
	if _, all, err = watch(f.db).LiveRunsOf(t.Context(), []int64{7}, 808); err != nil || all {
		t.Errorf("of very many: got %v, %v; want it said that not all were looked at", all, err)
	}
}

// TestFirstCursor: the earliest due time without a run, except in some apps.
func TestFirstCursor(t *testing.T) {
	f := setUp(t)
	if at := must(watch(f.db).FirstCursor(t.Context(), nil)); at != 0 {
		t.Errorf("without jobs: got %d", at)
	}

	f.jobs(100)
	f.exec("UPDATE job SET next_due = IF(id = 3, NULL, id)")
	first := must(watch(f.db).FirstCursor(t.Context(), nil))
	other := must(watch(f.db).FirstCursor(t.Context(), []int32{41, 3})) // the apps of jobs 1, 98, and 2, 42, 82
	if first != 1 || other != 4 {
		t.Errorf("got %d and %d, want 1 and 4", first, other)
	}
}
