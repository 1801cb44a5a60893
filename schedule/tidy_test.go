package schedule

import (
	"log/slog"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// TestOldRequestsGo: an Idempotency-Key and its answer are kept for a day. What came of the request stays.
func TestOldRequestsGo(t *testing.T) {
	f := setUp(t)
	j := f.create(every("a", time.Hour, time.Hour))
	if _, err := f.editor.RunNow(t.Context(), j.ID, "old"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * tidyBatch / 2 { // more than one batch
		f.exec("INSERT INTO request (kind, idem_key, job_id, digest, created) VALUES ('x', ?, 0, REPEAT('x', 32), ?)", i, int64(t0))
	}
	day := t0.Add(RequestsKept)
	f.exec("INSERT INTO request (kind, idem_key, job_id, digest, created) VALUES ('x', 'younger', 0, REPEAT('x', 32), ?)", int64(t0.Add(time.Second)))
	tidier := &Tidier{DB: f.beside, Trip: f.beside, Session: f.session, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if _, err := tidier.tidy(t.Context(), day); err != nil {
		t.Fatal(err)
	}
	f.want("requests a day later", 3*tidyBatch/2+2, "SELECT COUNT(*) FROM request")
	if _, err := tidier.tidy(t.Context(), day.Add(time.Microsecond)); err != nil {
		t.Fatal(err)
	}
	f.want("requests after that", 1, "SELECT COUNT(*) FROM request")
	f.want("the younger one", 1, "SELECT COUNT(*) FROM request WHERE idem_key = 'younger'")
	f.want("the run that was asked for", 1, "SELECT COUNT(*) FROM task WHERE origin > 0")
}

// TestMovedJobsExecute: the runs of a job that was moved into another app are listed there, also while one that was moved
// before it executes. Those of that one are when its attempt has ended, which writes the app that it began in.
func TestMovedJobsExecute(t *testing.T) {
	f := setUp(t)
	f.session.set(after(-time.Second))
	first, second := f.create(in("old", every("first", time.Hour, 0))), f.create(in("old", every("second", time.Hour, 0)))
	f.reach(t0)
	f.succeed(second.ID)
	f.session.set(after(time.Minute))
	for _, j := range []job.Job{first, second} {
		f.update(j, func(s *job.Spec) { s.App = "new" })
	}
	tidier := &Tidier{DB: f.beside, Trip: f.beside, Session: f.session, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	tidy := func() {
		t.Helper()
		if _, err := tidier.tidy(t.Context(), f.session.Now()); err != nil {
			t.Fatal(err)
		}
	}
	const listed = "SELECT COUNT(*) FROM history WHERE job_id = ? AND app = CRC32('new')"
	tidy()
	f.want("runs of the second job in its app", 1, listed, second.ID)
	f.want("moved jobs that are left", 1, "SELECT COUNT(*) FROM moved")
	err := f.beside.Tx(t.Context(), func(tx *sql.Tx) error {
		s := f.executing.added[0]
		return tx.End([]int64{s.ID}, []job.Run{{
			Launch: s.Launch, JobID: s.JobID, App: "old", Due: s.Due, Until: s.Due, Count: 1, Attempt: s.Attempt, Final: true, Ended: f.session.Now(),
			Result: job.Result{Outcome: job.Succeeded},
		}})
	})
	if err != nil {
		t.Fatal(err)
	}
	tidy()
	f.want("runs of the first job in its app", 1, listed, first.ID)
	f.want("moved jobs that are left", 0, "SELECT COUNT(*) FROM moved")
}

// TestMovedBehindAnAttempt: an attempt executes, that began in the old app, while its job has more records that are due later than one
// batch takes. They are listed in the new app at once, and it is when it has ended.
func TestMovedBehindAnAttempt(t *testing.T) {
	f := setUp(t)
	f.session.set(after(-time.Second))
	j := f.create(in("old", every("j", time.Hour, 0)))
	f.reach(t0)
	const later = 2*tidyBatch + 100
	for n := 1; n <= later; n++ { // as of a job of which a backfill's attempt executes
		f.exec("INSERT INTO history (job_id, due, attempt, session_id, launch, outcome, due_last, ended, app) VALUES (?, ?, 1, REPEAT('x', 16), ?, 1, ?, 1, CRC32('old'))",
			j.ID, int64(after(time.Duration(n)*time.Minute)), n, int64(after(time.Duration(n)*time.Minute)))
	}
	f.session.set(after(time.Minute))
	f.update(j, func(s *job.Spec) { s.App = "new" })
	tidier := &Tidier{DB: f.beside, Trip: f.beside, Session: f.session, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	tidy := func() {
		t.Helper()
		for range 3 {
			if _, err := tidier.tidy(t.Context(), f.session.Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	const listed = "SELECT COUNT(*) FROM history WHERE job_id = ? AND app = CRC32('new')"
	tidy()
	f.want("runs in the new app, while one executes", later, listed, j.ID)
	f.want("moved jobs that are left", 1, "SELECT COUNT(*) FROM moved")
	err := f.beside.Tx(t.Context(), func(tx *sql.Tx) error {
		s := f.executing.added[0]
		return tx.End([]int64{s.ID}, []job.Run{{
			Launch: s.Launch, JobID: s.JobID, App: "old", Due: s.Due, Until: s.Due, Count: 1, Attempt: s.Attempt, Final: true, Ended: f.session.Now(),
			Result: job.Result{Outcome: job.Succeeded},
		}})
	})
	if err != nil {
		t.Fatal(err)
	}
	tidy()
	f.want("runs in the new app", later+1, listed, j.ID)
	f.want("moved jobs that are left", 0, "SELECT COUNT(*) FROM moved")
}
