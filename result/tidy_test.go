package result

import (
	"context"
	"errors"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// sharing is a session with a share of the chores.
type sharing struct {
	living
	index, of int
}

func (s *sharing) Share() (index, of int) { return s.index, s.of }

func (f *fixture) tidier() *Tidier {
	return NewTidier(TidierConfig{
		DB: f.beside, Session: &sharing{of: 1}, Lookout: lookout{}, Audit: 400 * 24 * time.Hour, Log: f.log(),
	})
}

// tidy makes a tidier look at an instant, until nothing is left.
func (f *fixture) tidy(x *Tidier, now job.Micros) {
	f.Helper()
	for more := true; more; {
		var err error
		if more, err = x.Tidy(f.Context(), now); err != nil {
			f.Fatal(err)
		}
	}
}

// TestOldRequestsGo: an Idempotency-Key and its answer are kept for a day. The runs of the request
// stay.
func TestOldRequestsGo(t *testing.T) {
	f := setUp(t)
	const at = job.Micros(1_800_000_000_000_000)
	f.exec(`INSERT INTO request (kind, idem_key, job_id, digest, created)
		WITH RECURSIVE n AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM n WHERE id < 40)
		SELECT 'x', CONCAT('old-', a.id, '-', b.id), 0, REPEAT('x', 32), ? FROM n a JOIN n b LIMIT 1234`, int64(at))
	f.exec("INSERT INTO request (kind, idem_key, job_id, digest, created) VALUES ('x', 'younger', 0, REPEAT('x', 32), ?)", int64(at+1_000_000))
	f.executing(1)
	f.exec("UPDATE run SET request = (SELECT MIN(id) FROM request)")

	x := f.tidier()
	f.tidy(x, at.Add(RequestsKept))
	f.want("requests a day later", 1235, "SELECT COUNT(*) FROM request")
	f.tidy(x, at.Add(RequestsKept)+1)
	f.want("requests after that", 1, "SELECT COUNT(*) FROM request")
	f.want("the younger one", 1, "SELECT COUNT(*) FROM request WHERE idem_key = 'younger'")
	f.want("the run that was asked for", 1, "SELECT COUNT(*) FROM run WHERE request > 0")
}

// TestOldStartsGo: counts of starts go after some minutes, as do counts from the future, left by a
// change of MySQL's clock.
func TestOldStartsGo(t *testing.T) {
	f := setUp(t)
	now := job.Micros(1_800_000_000_000_000)
	for _, ago := range []time.Duration{time.Hour, time.Minute, 0, -time.Hour} {
		f.exec("INSERT INTO app_start (app, at, session_id, starts) VALUES ('x', ?, '', 1)", job.SecondOf(now.Add(-ago)))
	}
	f.tidy(f.tidier(), now)
	f.want("counts", 2, "SELECT COUNT(*) FROM app_start")
	f.want("counts of the last minutes", 2, "SELECT COUNT(*) FROM app_start WHERE at BETWEEN ? AND ?", job.SecondOf(now)-60, job.SecondOf(now))
}

// TestOldNotesGo: old notes of ends go, except for the latest and for uncounted ones.
func TestOldNotesGo(t *testing.T) {
	f := setUp(t)
	const at = job.Micros(1_800_000_000_000_000)
	notes := func(n int) {
		for range n {
			f.exec("INSERT INTO ending (at, runs) VALUES (?, '')", int64(at))
		}
	}
	notes(1200)
	x := f.tidier()
	f.tidy(x, at.Add(NotesKept))
	f.want("notes that are not old", 1200, "SELECT COUNT(*) FROM ending")
	f.tidy(x, at.Add(NotesKept)+1)
	f.want("old notes", 1, "SELECT COUNT(*) FROM ending")
	f.want("the latest", 1200, "SELECT id FROM ending")

	notes(10)
	follow := func(tx *sql.Tx) error { return trip.FollowNotes(tx, 1205) }
	if err := f.beside.Tx(t.Context(), follow); err != nil {
		t.Fatal(err)
	}
	f.tidy(x, at.Add(NotesKept)+1)
	f.want("notes that are not counted", 5, "SELECT COUNT(*) FROM ending WHERE id > 1205")
	f.want("notes that are counted", 0, "SELECT COUNT(*) FROM ending WHERE id <= 1205")

	f.tidy(x, at.Add(notesHeld)+1)
	f.want("notes that nobody has counted for long", 1, "SELECT COUNT(*) FROM ending")
	f.want("who counts by them", 0, "SELECT COUNT(*) FROM app_output WHERE app_id = 0")
}

// TestOneNodeTidies: a node that is not the first removes nothing.
func TestOneNodeTidies(t *testing.T) {
	f := setUp(t)
	f.exec("INSERT INTO request (kind, idem_key, job_id, digest, created) VALUES ('x', 'old', 0, REPEAT('x', 32), 1)")
	x := f.tidier()
	share := x.Session.(*sharing)
	share.now = 1_800_000_000_000_000
	share.index, share.of = 1, 2
	f.runFor(x, 3*time.Second)
	f.want("requests beside another node", 1, "SELECT COUNT(*) FROM request")

	share.index = 0
	f.runFor(x, 3*time.Second)
	f.want("requests of the first node", 0, "SELECT COUNT(*) FROM request")
}

// runFor makes a tidier run for a while.
func (f *fixture) runFor(x *Tidier, d time.Duration) {
	ctx, stop := context.WithTimeout(f.Context(), d)
	defer stop()
	if err := x.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		f.Errorf("got %v", err)
	}
}
