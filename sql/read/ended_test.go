package read

import (
	"fmt"
	"testing"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

func (f *fixture) tx(fn func(*sql.Tx) error) {
	f.Helper()
	if err := f.db.Tx(f.Context(), fn); err != nil {
		f.Fatal(err)
	}
}

// insertRuns inserts prepared runs of session 1, one per job from job 1 on.
func (f *fixture) insertRuns(n int) (out []trip.Launch) {
	f.Helper()
	runs := make([]trip.Run, n)
	for i := range runs {
		l := trip.Launch{Run: int64(1)<<32 + int64(i), Claim: 1}
		runs[i] = trip.Run{
			Launch: l, JobID: int64(i + 1), AppID: 1, Kind: trip.Schedule, Attempt: 1, Due: epoch, DueNow: epoch,
		}
		out = append(out, l)
	}

	f.tx(func(tx *sql.Tx) error { return trip.Insert(tx, 1, runs) })
	return out
}

func (f *fixture) endings(after int64) (out string) {
	f.Helper()
	for _, e := range must(watch(f.db).EndedAfter(f.Context(), after, 1000)) {
		for _, n := range e.Runs {
			out += fmt.Sprintf("%d:%d:%s ", n.Run-1<<32, n.JobID, n.Outcome)
		}
		out += "| "
	}
	return out
}

// TestEndsAreNoted: each way to end runs informs subscribers, once.
func TestEndsAreNoted(t *testing.T) {
	f := setUp(t)
	f.jobs(10)
	l := f.insertRuns(8)
	f.tx(func(tx *sql.Tx) error { _, err := trip.Start(tx, 1, 0, false, l[:4], epoch, 1); return err })

	ends := make([]trip.End, 4)
	for i := range ends {
		ends[i] = trip.End{Launch: l[i], JobID: int64(i + 1), Outcome: job.Succeeded, Final: true, Ended: epoch}
	}

	ends[1].Outcome, ends[1].Reason = job.Failed, job.Reason{Code: job.ReasonExitCode, Text: "exit status 1"}
	finish := func(tx *sql.Tx) error { _, err := trip.FinishAlone(tx, 1, ends[:2]); return err }
	f.tx(finish)
	f.tx(finish) // repeated, as after an unknown commit

	f.exec(`
		UPDATE run
		SET state = 'ended', owner = -2, outcome = 'lost'
		WHERE id = ?`, l[2].Run) // somebody else was quicker

	f.tx(func(tx *sql.Tx) error { _, err := trip.FinishAlone(tx, 1, ends[2:]); return err })
	f.tx(func(tx *sql.Tx) error {
		_, err := trip.Refuse(tx, 1, []trip.Refusal{{Launch: l[4], Outcome: job.Skipped, Reason: job.Reason{Code: job.ReasonQueueFull, Text: "overlap"}}}, epoch)
		return err
	})

	f.exec("UPDATE run SET state = 'waiting', owner = -1 WHERE id = ?", l[5].Run)
	f.tx(func(tx *sql.Tx) error { return trip.Supersede(tx, 1, []trip.Refusal{{Launch: l[5]}}, epoch) })
	f.tx(func(tx *sql.Tx) error {
		return trip.InsertCounted(tx,
			[]trip.Counted{{Run: 1<<32 + 20, JobID: 9, AppID: 1, First: epoch, Last: epoch + 5, Count: 3,
				Outcome: job.Missed}}, epoch)
	})

	if got, want := f.endings(0),
		"0:1:succeeded 1:2:failed | 3:4:succeeded | 4:5:skipped | 5:6:superseded | 20:9:missed | "; got != want {
		f.Errorf("got  %s\nwant %s", got, want)
	}

	notable := f.listed(RunFilter{Outcome: job.Failed})
	if len(notable) != 1 || notable[0].ID != l[1].Run {
		f.Errorf("failed runs: got %v", notable)
	}
	if got, want := f.number("SELECT COUNT(*) FROM notable"), int64(4); got != want {
		f.Errorf("got %d notable runs, want %d", got, want)
	}
}

// TestFollowEnds: subscribers read on by ids and re-read spans, and old rows are removed.
func TestFollowEnds(t *testing.T) {
	f := setUp(t)
	f.jobs(200)
	l := f.insertRuns(120)
	f.tx(func(tx *sql.Tx) error { _, err := trip.Start(tx, 1, 0, false, l, epoch, 1); return err })
	for i := range l {
		f.tx(func(tx *sql.Tx) error {
			_, err := trip.FinishAlone(tx, 1, []trip.End{
				{Launch: l[i], JobID: int64(i + 1), Outcome: job.Succeeded, Ended: epoch},
			})
			return err
		})
	}

	last, _, err := watch(f.db).LastIDs(f.Context())
	if err != nil || last != 120 {
		f.Errorf("last id: got %d, %v", last, err)
	}

	f.readsAtMost(60, "what ended, the last few", func() {
		if got := must(watch(f.db).EndedAfter(f.Context(), 110, 1000)); len(got) != 10 {
			f.Errorf("got %d endings, want 10", len(got))
		}
	})

	if got := must(watch(f.db).EndedAfter(f.Context(), 0, 60)); len(got) != 60 {
		f.Errorf("got %d endings, want 60", len(got))
	}

	spans := must(watch(f.db).EndedIn(f.Context(), []sql.Span{{From: 3, To: 4}, {From: 118, To: 200}}))
	if got := fmt.Sprint(len(spans), spans[0].ID, spans[4].ID); got != "5 3 120" {
		f.Errorf("spans: got %s", got)
	}
	if rows := must(watch(f.db).RunsOf(f.Context(), spans)); len(rows) != 5 || rows[0].ID != l[2].Run {
		f.Errorf("runs of endings: got %d", len(rows))
	}

	f.exec("UPDATE ending SET at = id")
	f.tx(func(tx *sql.Tx) error {
		n, err := trip.DropNotes(tx, 50, 1000, 30)
		if n != 30 {
			f.Errorf("dropped %d rows, want 30", n)
		}
		return err
	})

	f.tx(func(tx *sql.Tx) error {
		n, err := trip.DropNotes(tx, 50, 1000, 30)
		if n != 19 {
			f.Errorf("dropped %d rows, want 19", n)
		}
		return err
	})
}
