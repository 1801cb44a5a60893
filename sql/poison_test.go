package sql

import (
	"math"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/job"
)

// TestHighestNumbers has a hand write the highest number into what is counted for all: it is counted on.
func TestHighestNumbers(t *testing.T) {
	f := setUp(t)
	id := session(1)
	f.tx(func(tx *Tx) error { return tx.InsertSession(SessionRow{ID: id, Node: "one"}) })
	pulse, err := OpenPulse(f.dsn, DefaultTimeouts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pulse.Close() })
	f.exec("UPDATE locks SET n = ?", int64(math.MaxInt64))
	f.exec("UPDATE alert_work SET n = ?, lost = ?, template_failures = ?", int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64))
	f.exec("UPDATE session SET beat = ?", int64(math.MaxInt64))
	f.exec("UPDATE chore SET removed = ?, archived = ?", int64(math.MaxInt64), int64(math.MaxInt64))
	for range 2 {
		before := f.number("SELECT n FROM locks WHERE id = 0")
		f.tx(func(tx *Tx) error { return tx.TakeLocks([]LockID{LockSessions}) })
		if now := f.number("SELECT n FROM locks WHERE id = 0"); now == before {
			t.Errorf("a lock was taken and its row stays at %d", now)
		}
		beat := f.number("SELECT beat FROM session")
		if there, err := pulse.Beat(t.Context(), id, Vitals{}); !there || err != nil {
			t.Errorf("beat behind %d: got %t, %v", beat, there, err)
		}
		if now := f.number("SELECT beat FROM session"); now == beat {
			t.Errorf("a session has beaten and stays at %d", now)
		}
		w, err := f.db.AlertWork(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.tx(func(tx *Tx) error {
			if ok, err := tx.StepAlerts(w, 2); err != nil || !ok {
				t.Errorf("step of alerts behind %d: got %t, %v", w.N, ok, err)
			}
			if err := tx.LoseAlerts(1); err != nil {
				return err
			}
			if err := tx.TemplateFailed(); err != nil {
				return err
			}
			return tx.alertsChanged()
		})
		if now, err := f.db.AlertWork(t.Context()); err != nil || now.N == w.N || now.Changes == w.Changes {
			t.Errorf("work on alerts: got %+v, %v; want another than %+v", now, err, w)
		}
		if mine, _, err := f.db.TakeChore(t.Context(), ChoreRetention, id, time.Minute); !mine || err != nil {
			t.Errorf("take chore: got %t, %v", mine, err)
		}
		if err := f.db.TellChore(t.Context(), id, ChoreDone{Removed: 3, Archived: 3}); err != nil {
			t.Errorf("tell of chore: %v", err)
		}
	}
}

// TestChoreOfNobody: nobody is held up by an end of a turn that is so far ahead that a hand must have written it.
func TestChoreOfNobody(t *testing.T) {
	f := setUp(t)
	take := func(id uuid.UUID) bool {
		t.Helper()
		mine, _, err := f.db.TakeChore(t.Context(), ChoreRetention, id, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return mine
	}
	one, other := session(1), session(2)
	if !take(one) || take(other) {
		t.Error("the chore is not that of who took it first")
	}
	f.exec("UPDATE chore SET until = ?", int64(math.MaxInt64))
	if !take(other) || take(one) {
		t.Error("the chore is held by nobody and taken by nobody, or by two")
	}
}

// TestUnreadableFigures: what cannot be read of one keeps nobody from seeing the others.
func TestUnreadableFigures(t *testing.T) {
	f := setUp(t)
	var lates job.Lates
	lates[1] = 4
	f.tx(func(tx *Tx) error {
		return tx.PutFigures(uuid.New(), []Figure{{At: 10, Starts: 1, Late: lates}, {At: 20, Starts: 2, Late: lates}}, 0)
	})
	f.exec("UPDATE figure SET late = '\x00' WHERE at = 10")
	got, err := f.db.Figures(t.Context(), 0)
	if err != nil || len(got) != 2 || got[0].Starts != 1 || got[0].Late[1] != 0 || got[1].Late[1] != 4 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestBeatsOfAHand: a row whose last beat is of no time that there is keeps nobody out who has another expiry.
func TestBeatsOfAHand(t *testing.T) {
	f := setUp(t)
	f.tx(func(tx *Tx) error { return tx.InsertSession(SessionRow{ID: session(1), Node: "gone"}) })
	for i, at := range []int64{math.MinInt64, math.MaxInt64} {
		f.exec("REPLACE INTO setting (name, value) VALUES ('session_expiry_ms', '20000')")
		f.exec("UPDATE session SET beat_at = ?", at)
		f.tx(func(tx *Tx) error {
			return tx.JoinExpiry(time.Duration(5+i)*time.Second, func(uuid.UUID, int64) time.Duration { return time.Minute })
		})
	}
}
