package schedule

import (
	"log/slog"
	"strings"
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

// TestMovedJobsExecute: an attempt that executes while its job is moved stays in the app in which it was started, over a second move,
// and also when nobody but a peer knows how it ended. What starts later belongs to the new app.
func TestMovedJobsExecute(t *testing.T) {
	f := setUp(t)
	f.session.set(after(-time.Second))
	lost, told := f.create(in("old", every("lost", time.Hour, 0))), f.create(in("old", every("told", time.Hour, 0)))
	f.reach(t0)
	f.session.set(after(time.Minute))
	for _, app := range []string{"new", "newer"} {
		for _, j := range []*job.Job{&lost, &told} {
			*j = f.update(*j, func(s *job.Spec) { s.App = app })
		}
	}
	tidier := &Tidier{DB: f.beside, Trip: f.beside, Session: f.session, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	tidy := func() {
		t.Helper()
		if _, err := tidier.tidy(t.Context(), f.session.Now()); err != nil {
			t.Fatal(err)
		}
	}
	tidy()
	f.want("attempts that were moved about", 2, "SELECT COUNT(*) FROM run_app WHERE app = 'old'")

	for _, s := range f.executing.added {
		if app, err := f.beside.AppOfRun(t.Context(), s.Launch); err != nil || app != "old" {
			t.Errorf("while it executes: got app %q, %v", app, err)
		}
		run := job.Run{
			Launch: s.Launch, JobID: s.JobID, App: "old", Due: s.Due, Until: s.Due, Count: 1, Attempt: s.Attempt, Final: true, Ended: f.session.Now(),
			Result: job.Result{Outcome: job.Succeeded},
		}
		if s.JobID == lost.ID {
			run.App, run.Outcome = "", job.Lost
		}
		if err := f.beside.Tx(t.Context(), func(tx *sql.Tx) error { return tx.End([]int64{s.ID}, []job.Run{run}) }); err != nil {
			t.Fatal(err)
		}
		if app, err := f.beside.AppOfRun(t.Context(), s.Launch); err != nil || app != "old" {
			t.Errorf("when it has ended: got app %q, %v", app, err)
		}
	}
	tidy()
	f.want("attempts that are left", 0, "SELECT COUNT(*) FROM run_app")
	f.want("their records", 2, "SELECT COUNT(*) FROM history WHERE app = CRC32('old')")

	f.session.set(after(time.Hour - time.Second))
	f.reach(after(time.Hour))
	for _, s := range f.executing.added[2:] {
		if app, err := f.beside.AppOfRun(t.Context(), s.Launch); err != nil || app != "newer" {
			t.Errorf("a later run: got app %q, %v", app, err)
		}
	}
}

// TestAppsOfOneNumber: a job is not moved between apps whose runs nobody could tell apart.
func TestAppsOfOneNumber(t *testing.T) {
	f := setUp(t)
	f.session.set(after(-time.Second))
	j := f.create(in("plumless", every("j", time.Hour, 0)))
	spec := j.Spec
	spec.App = "buckeroo"
	if _, err := f.editor.Update(t.Context(), j.ID, j.Version, spec); err == nil || !strings.Contains(err.Error(), "same checksum") {
		t.Errorf("got %v", err)
	}
	j = f.update(j, func(s *job.Spec) { s.App = "other" })
	if _, err := f.editor.Update(t.Context(), j.ID, j.Version, spec); err == nil || !strings.Contains(err.Error(), "same checksum") {
		t.Errorf("by way of another app: got %v", err)
	}
	f.update(j, func(s *job.Spec) { s.App = "plumless" })
}
