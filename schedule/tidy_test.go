package schedule

import (
	"log/slog"
	"testing"
	"time"
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
