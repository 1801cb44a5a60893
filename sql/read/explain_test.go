package read

import (
	"errors"
	"fmt"
	"testing"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

func runID(r *Run) int64 { return r.ID }

// TestExplain: the runs of an instant are found, whether scheduled or requested, live or ended.
func TestExplain(t *testing.T) {
	f := setUp(t)
	f.jobs(1000)
	f.runs(1000, 10_000)
	due := epoch + 500_000 // run 500 of job 2
	f.exec(`
		INSERT INTO run (id, job_id, app_id, due, due_now, hash, kind, request, attempt, state, owner, claim)
		VALUES (900001, 2, 1, ?, ?, 1, 'schedule', 0, 2, 'idle', 0, 1),
			(900002, 2, 1, ?, ?, 1, 'manual', 7, 1, 'executing', 1, 1)`, due, due, due, due)

	f.readsAtMost(700, "runs of a due time", func() {
		if got := ids(must(f.db.RunsAt(f.Context(), 2, due)), runID); got != "500" {
			f.Errorf("ended: got runs %s", got)
		}
	})

	f.exec("UPDATE run SET due_last = due + 3000, due_count = 4 WHERE id = 500")
	if got := ids(must(f.db.RunsAt(f.Context(), 2, due+2000)), runID); got != "500" {
		f.Errorf("counted: got runs %s", got)
	}
	if got := ids(must(f.db.RunsAt(f.Context(), 2, due+4000)), runID); got != "" {
		f.Errorf("between due times: got runs %s", got)
	}
	if r := must(f.db.LiveAt(f.Context(), 2, due)); r.ID != 900001 || r.Attempt != 2 {
		f.Errorf("live: got run %d", r.ID)
	}

	if _, err := f.db.LiveAt(f.Context(), 2, due+5000); !errors.Is(err, sql.ErrNotFound) {
		f.Errorf("no live run: got %v", err)
	}
	if got := ids(must(f.db.AskedAt(f.Context(), 2, due, due+1)), runID); got != "900002" {
		f.Errorf("asked for: got runs %s", got)
	}
}

// TestWaiting: runs in the queues of jobs, and current runs that wait for slots.
func TestWaiting(t *testing.T) {
	f := setUp(t)
	f.jobs(10)
	insert := func(id, jobID int64, due, place job.Micros) {
		f.exec(`
			INSERT INTO run (id, job_id, app_id, due, due_now, hash, kind, state, owner, claim)
			VALUES (?, ?, 1, ?, ?, 1, 'schedule', 'waiting', -1, 1)`, id, jobID, due, place)
	}

	for id, jobID := range map[int64]int64{1: 1, 2: 2, 3: 2, 4: 3} {
		r := trip.Run{JobID: jobID, Due: epoch + job.Micros(id)*1_000_000}
		insert(id, jobID, r.Due, trip.JobPlace(&r))
	}

	r := trip.Run{JobID: 4, Due: epoch}
	insert(5, 4, epoch, trip.GroupPlace(&r, 1, 0))
	f.exec("UPDATE job SET running = 5 WHERE id = 4")
	f.exec("INSERT INTO job_ref (kind, name, job_id) VALUES (?, 'db', 4)", trip.RefGroup)

	got := ""
	for _, w := range must(f.db.Waiting(f.Context(), []int64{2, 3, 4, 5}, 10)) {
		got += fmt.Sprint(w.Run, ":", w.JobID, ":", w.Group, " ")
	}

	if want := "5:4:db 2:2: 3:2: 4:3: "; got != want {
		f.Errorf("got %q, want %q", got, want)
	}
}

// TestAmounts: live runs are counted by state, without reading ended runs.
func TestAmounts(t *testing.T) {
	f := setUp(t)
	f.jobs(100)
	f.runs(100, 20_000)
	f.exec("UPDATE run SET state = 'prepared' WHERE state = 'executing' LIMIT 10")
	f.exec("UPDATE run SET state = 'idle', owner = 0 WHERE state = 'executing' LIMIT 7")
	f.exec("UPDATE run SET state = 'waiting', owner = -1 WHERE state = 'executing' LIMIT 5")
	f.readsAtMost(700, "amounts", func() {
		got := must(f.db.Amounts(f.Context(), epoch+1<<40, 1000))
		if want := (Amounts{Executing: 38, Prepared: 10, Waiting: 5, Backlog: 17}); got != want {
			f.Errorf("got %+v, want %+v", got, want)
		}
	})

	if got := must(watch(f.db).Attempting(f.Context(), 100)); len(got) != 38 {
		f.Errorf("got %d attempts, want 38", len(got))
	}

	idle := must(f.db.LateRuns(f.Context(), LatePlace{Owner: trip.NoOwner}, epoch+1<<40, 4))
	more := must(f.db.LateRuns(f.Context(), idle[3].LatePlace, epoch+1<<40, 10))
	if len(idle) != 4 || len(more) != 3 || idle[3].ID == more[0].ID {
		f.Errorf("late runs: got %d and %d", len(idle), len(more))
	}

	jobs := must(watch(f.db).AlertJobs(f.Context(), []int64{1, 49}))
	if len(jobs) != 2 || jobs[1].Gone || !jobs[49].Gone || jobs[1].Labels["env"] != "prod" {
		f.Errorf("jobs for alerts: got %+v", jobs)
	}
	if after := must(watch(f.db).AlertJobsAfter(f.Context(), 47, 3)); fmt.Sprint(after[0].ID, after[1].ID) != "48 50" {
		f.Errorf("jobs for alerts: got %+v", after)
	}
}

// TestRetention: removal by number, bytes and age; with a run goes everything that belongs to it.
func TestRetention(t *testing.T) {
	f := setUp(t)
	f.jobs(1000)
	f.runs(1000, 30_000) // 6,000 of job 2, one in 5 ms
	f.exec("UPDATE run SET output_kept = 10, output_bytes = 10 WHERE job_id = 2 AND id <= 30000")
	f.exec(`
		INSERT INTO output (run_id, head, tail)
		SELECT id, '0123456789', ''
		FROM run
		WHERE job_id = 2 AND id <= 100`)

	f.exec("UPDATE run SET outcome = 'failed' WHERE id = 25")
	f.exec(`
		INSERT INTO notable (outcome, due, run_id, app_id, job_id)
		SELECT outcome, due, id, app_id, job_id
		FROM run
		WHERE id = 25`)

	at := func(n int64) job.Micros { return epoch + job.Micros(n*1000) }

	f.readsAtMost(300, "the latest 100 runs", func() {
		if got := must(retention(f.db).LastDues(f.Context(), 2, 100)); got != at(30_000-99*5) {
			f.Errorf("latest 100 runs: got %v", got)
		}
	})

	if got := must(retention(f.db).LastDues(f.Context(), 2, 7000)); got != 0 {
		f.Errorf("more runs than there are: got %v", got)
	}
	if got := must(retention(f.db).LastBytes(f.Context(), 2, 1000)); got != at(30_000-100*5)+1 {
		f.Errorf("latest 1,000 bytes: got %v", got)
	}
	if got := must(retention(f.db).LastBytes(f.Context(), 2, 100_000)); got != 0 {
		f.Errorf("more bytes than there are: got %v", got)
	}

	cut := Cut{JobID: 2, Due: at(101), To: at(101), Ended: at(90), Failed: at(1)}
	if got := must(retention(f.db).LookAhead(f.Context(), cut)); got != cut.Due {
		f.Errorf("look ahead: got %v", got)
	}

	old := must(retention(f.db).OldRuns(f.Context(), cut, 100))
	// ended 2 ms after they were due; run 25 has failed
	if len(old) != 16 || old[0].ID != 5 || old[15].ID != 85 {
		f.Errorf("old runs: got %v", old)
	}

	cut.Failed = at(90)
	old = must(retention(f.db).OldRuns(f.Context(), cut, 100))
	with := must(f.db.RunsWithOutput(f.Context(), []int64{25, 5}))
	if len(with) != 2 || string(with[0].Output.Head) != "0123456789" {
		f.Errorf("runs with output: got %+v", with)
	}

	before := f.number("SELECT COUNT(*) FROM run")
	f.tx(func(tx *sql.Tx) error {
		if err := trip.DropRuns(tx, old); err != nil {
			return err
		}
		return trip.HoldVersion(tx, 2, 1)
	})

	got := fmt.Sprint(before-f.number("SELECT COUNT(*) FROM run"), f.number("SELECT COUNT(*) FROM output"),
		f.number("SELECT COUNT(*) FROM notable WHERE run_id = 25"))
	if got != "17 3 0" {
		f.Errorf("got runs dropped, outputs left, notes left: %s", got)
	}

	if err := f.db.Tx(f.Context(), func(tx *sql.Tx) error { return trip.HoldVersion(tx, 2, 2) }); !errors.Is(err,
		sql.ErrMoved) {
		f.Errorf("another version: got %v", err)
	}

	f.exec(`UPDATE job_version SET definition = '{"keep":{"runs":5}}' WHERE job_id = 3`)
	f.exec(`UPDATE job_version SET definition = '{"keep":{"runs":"x"}}' WHERE job_id = 4`)
	kept := must(retention(f.db).KeptJobs(f.Context(), 1, 3))
	if len(kept) != 3 || kept[0].Oldest != at(90) || kept[1].Keep.Runs != 5 || kept[2].Oldest != 0 {
		f.Errorf("kept jobs: got %+v", kept)
	}
}
