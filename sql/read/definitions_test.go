package read

import (
	"fmt"
	"testing"

	"go-crontab/job"
)

// TestDefinitions reads definitions in parts, up to a bound.
func TestDefinitions(t *testing.T) {
	f := setUp(t)
	f.exec("INSERT INTO app (id, name) VALUES (1, 'a')")
	for i := range 10 {
		more := ""
		if i%2 == 1 {
			more = `, "limits": {"memory": 1}, "selector": "gpu"`
		}
		zone := []string{"UTC", "Asia/Tokyo"}[i%2]
		f.exec("INSERT INTO job (id, app_id, name, hash, next_due) VALUES (?, 1, ?, 1, 9)", 100*i+1, i)
		f.exec(`
			INSERT INTO job_version (job_id, version, definition, created)
			VALUES (?, 1, ?, 1)`, 100*i+1, `{"timezone": "`+zone+`"`+more+`}`)
	}

	for most, want := range map[int]struct {
		zones string
		all   bool
	}{
		1:  {"[{1 a 0 1 UTC}]", false},
		9:  {"[{101 a 1 4 Asia/Tokyo} {1 a 0 5 UTC}]", false},
		10: {"[{101 a 1 5 Asia/Tokyo} {1 a 0 5 UTC}]", true},
	} {
		list, all, err := checks(f.db).ZonesInUse(t.Context(), most)
		if got := fmt.Sprint(list); err != nil || got != want.zones || all != want.all {
			t.Errorf("zones of %d: got %s, %v, %v; want %+v", most, got, all, err, want)
		}
	}

	for _, c := range []struct {
		most, limit, jobs int
		all               bool
	}{{5, 9, 2, false}, {10, 9, 5, true}, {10, 3, 3, true}} {
		list, all, err := checks(f.db).LimitedJobs(t.Context(), c.most, c.limit)
		if err != nil || len(list) != c.jobs || all != c.all {
			t.Errorf("%+v: got %d jobs, %v, %v", c, len(list), all, err)
		}
		placed := 0
		all, err = checks(f.db).PlacedJobs(t.Context(), c.most, func(j PlacedJob) bool { placed++; return placed == c.limit })
		if err != nil || placed != c.jobs || all != c.all {
			t.Errorf("%+v: got %d jobs with selectors, %v, %v", c, placed, all, err)
		}
	}

	f.numbers(2 * definitionsAtOnce)
	f.exec("INSERT INTO job (app_id, name, hash) SELECT 1, CONCAT('b ', n), 1 FROM num")
	parts := 0
	all, err := f.db.definitions(t.Context(), 1_000_000, definitionsAtOnce, func(from, to int64) (bool, error) {
		parts++
		return false, nil
	})
	if err != nil || !all || parts != 3 {
		t.Errorf("read in %d parts, %v, %v", parts, all, err)
	}
}

// TestForgotten: the jobs that were due since a backup are counted, and single due times are named.
func TestForgotten(t *testing.T) {
	f := setUp(t)
	f.jobs(10)
	future := int64(1) << 60
	f.exec("UPDATE job SET next_due = ?, living = 1", future)
	f.exec("UPDATE job SET next_due = 5 WHERE id IN (2, 3)")
	f.exec("UPDATE job_version SET definition = '{\"at\":\"2020-01-01T00:00:00Z\"}' WHERE job_id IN (3, 4, 5)")
	for i, r := range []struct {
		job   int
		state job.State
		owner int
		due   int64
	}{{3, job.Idle, 0, 7}, {4, job.Executing, 7, 7}, {5, job.Prepared, 7, future}, {6, job.Ended, -2, 7},
		{7, job.Waiting, -1, 7}} {
		f.exec(`
			INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash)
			VALUES (?, ?, 1, ?, 'schedule', ?, ?, 1, ?, 1)`,
			i+1, r.job, r.due, r.state, r.owner, r.due)
	}

	got, err := f.db.Forgotten(t.Context())
	if once := ids(got.Once, func(j *NamedJob) int64 { return j.ID }); err != nil || got.Jobs != 4 ||
		got.Running != 1 || once != "3 4" {
		t.Errorf("got %+v, %v", got, err)
	}
}
