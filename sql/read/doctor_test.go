package read

import (
	"fmt"
	"testing"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// TestDoctor: the doctor's questions about jobs and runs are answered without reading ended runs.
func TestDoctor(t *testing.T) {
	f := setUp(t)
	f.jobs(5000)
	f.runs(5000, 10_000)
	named := func(j *NamedJob) int64 { return j.ID }
	stuck := func(r *StuckRun) int64 { return r.Run }

	f.readsAtMost(40, "broken jobs", func() {
		if got := ids(must(checks(f.db).BrokenJobs(f.Context(), 3)), named); got != "6 509 1012" {
			f.Errorf("broken: got jobs %s", got)
		}
	})

	f.readsAtMost(40, "jobs paused for long", func() {
		if got := ids(must(checks(f.db).JobsPausedBefore(f.Context(), 5, 2)), named); got != "5 406" {
			f.Errorf("paused: got jobs %s", got)
		}
	})

	f.exec("UPDATE job SET next_due = 9000000000 + id WHERE id BETWEEN 10 AND 19")
	if got := must(checks(f.db).JobsDueBehind(f.Context(), 1000, 20)); len(got) != 10 || got[0].ID != 19 {
		f.Errorf("due far ahead: got %v", got)
	}

	f.exec("UPDATE job SET next_due = id * 10000000 WHERE id > 20")
	herds := must(checks(f.db).Herds(f.Context(), 1<<60, 3, 5))
	if len(herds) != 2 || herds[0].Jobs != 11 || len(herds[0].Some) != 10 {
		f.Errorf("herds: got %+v", herds)
	}

	f.exec("UPDATE life SET gone = 5 WHERE id = 2")
	f.exec("UPDATE run SET state = 'prepared', started = 0 WHERE id = 10001")
	f.exec("UPDATE run SET state = 'idle', owner = 0, started = 0 WHERE id = 10006")
	late := epoch + 1<<40
	if got := must(checks(f.db).OrphanRuns(f.Context(), late)); len(got) != 19 || got[0].Text != "node-2" {
		f.Errorf("orphans: got %v", got)
	}

	idle, prepared, err := checks(f.db).UnbegunRuns(f.Context(), late)
	if got := ids(idle, stuck) + ", " + ids(prepared, stuck); err != nil || got != "10006, 10001" {
		f.Errorf("unbegun: got %s, %v", got, err)
	}

	f.readsAtMost(400, "long runs", func() {
		if got := must(checks(f.db).LongRuns(f.Context(), epoch+10_010_000)); len(got) == 0 || got[0].Run != 10_002 {
			f.Errorf("long runs: got %v", got)
		}
	})

	f.exec("UPDATE run SET outcome = 'failed' WHERE job_id = 2 AND id > 9900")
	f.exec("UPDATE run SET outcome = 'skipped', started = 0, reason_code = 'job_paused', reason = 'the job is paused' WHERE id = 9950")
	f.exec("UPDATE run SET outcome = 'skipped', started = due, reason_code = 'nothing_to_do', reason = 'x' WHERE id = 9960")
	spells := must(f.db.spells(f.Context(), []NamedJob{{ID: 2}}))
	if len(spells) != 1 || spells[0].N != 9 || spells[0].Unbegun {
		f.Errorf("spells: got %+v, want one of 9 failures", spells)
	}
}

// TestBackfills: lists of backfills, and the outcomes of a backfill's due times.
func TestBackfills(t *testing.T) {
	f := setUp(t)
	f.jobs(100)
	f.exec(`INSERT INTO backfill (id, job_id, first, last, next_due, done_to, parallel, total, planned, state,
		created, updated) VALUES
		(1, 2, 100, 199, NULL, 99, 2, 100, 100, 'done', 1, 1), (2, 3, 100, 199, 150, 99, 2, 100, 50, 'running', 1, 1),
		(3, 1, 100, 199, NULL, 99, 2, 100, 100, 'cancelled', 1, 1)`)
	f.exec(`INSERT INTO run (id, job_id, app_id, due, due_now, hash, kind, request, state, owner, claim, outcome, final)
		SELECT n, 3, 4, 99 + n, 99 + n, 1, 'backfill', 2, IF(n > 48, 'executing', 'ended'), IF(n > 48, 1, -2),
			1, IF(n > 48, 'none', IF(n = 7, 'failed', 'succeeded')), n <= 48
		FROM num WHERE n <= 50`)
	f.exec(`
		INSERT INTO notable (outcome, due, run_id, app_id, job_id)
		SELECT outcome, due, id, app_id, job_id
		FROM run
		WHERE outcome = 'failed'`)

	backfill := func(b *trip.BackfillRow) int64 { return b.ID }
	got := fmt.Sprint(
		ids(must(f.db.Backfills(f.Context(), 0, 0, nil, 2)), backfill), "; ",
		ids(must(f.db.Backfills(f.Context(), 0, 2, nil, 2)), backfill), "; ",
		ids(must(f.db.Backfills(f.Context(), 0, 0, []string{"rare"}, 2)), backfill), "; ",
		ids(must(f.db.Backfills(f.Context(), 3, 0, nil, 2)), backfill), "; ",
		ids(must(watch(f.db).BackfillsAfter(f.Context(), 1, 5)), backfill), "; ",
		ids(must(watch(f.db).RunningBackfills(f.Context(), 5)), backfill))

	if want := "3 2; 1; 3; 2; 2 3; 2"; got != want {
		f.Errorf("got %s, want %s", got, want)
	}

	row := must(f.db.Backfills(f.Context(), 3, 0, nil, 1))[0]
	outcomes, _, err := f.db.BackfillOutcomes(f.Context(), &row)
	if err != nil {
		f.Fatal(err)
	}
	if len(outcomes) != 2 || outcomes[job.Failed] != 1 || outcomes[job.Succeeded] != 47 {
		f.Errorf("outcomes: got %v", outcomes)
	}
	if app := must(f.db.AppOfBackfill(f.Context(), 3)); app != "rare" {
		f.Errorf("app: got %q", app)
	}
}
