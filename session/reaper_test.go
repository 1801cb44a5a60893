package session

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/test/faultproxy"
)

// TestWhoIsBuried checks when a peer counts as dead: its beat must not have changed for longer than
// the expiry on this node's own clock, and must be farther than that from MySQL's clock.
func TestWhoIsBuried(t *testing.T) {
	f := setUp(t)
	const expiry = MinExpiry
	for name, c := range map[string]struct {
		waited time.Duration // time between two looks, on this node's own clock
		beats  string        // what happens to the peer's row between the looks
		step   time.Duration // step of MySQL's clock, as this node reads it
		stale  bool          // this node's own lease is stale
		buried bool
	}{
		"silent by both clocks":                        {expiry + 1, "beat_at = beat_at - 6e6", 0, false, true},
		"silent for just the expiry on our clock":      {expiry, "beat_at = beat_at - 6e6", 0, false, false},
		"not long on our clock, whatever MySQL's says": {expiry - time.Second, "beat_at = 1", 0, false, false},
		"long on our clock, not by MySQL's":            {time.Hour, "beat_at = beat_at", 0, false, false},
		"MySQL's clock was put forward by a day": {
			time.Second, "beat_at = beat_at", 24 * time.Hour, false, false,
		},
		"we slept while it beat": {
			time.Hour, "beat = beat + 1, beat_at = 1", 24 * time.Hour, false, false,
		},
		"one beat came, and MySQL's clock was put forward": {
			expiry + 1, "beat = beat + 1", 24 * time.Hour, false, false,
		},
		"silent by both, and MySQL's clock was put back": {
			expiry + 1, "beat_at = beat_at - 6e6", -24 * time.Hour, false, true,
		},
		"not long, and MySQL's clock was put back": {
			expiry - time.Second, "beat_at = beat_at", -24 * time.Hour, false, false,
		},
		"a beat that no clock ever showed": {
			expiry + 1, "beat_at = 9223372036854775807", 0, false, true,
		},
		"one from long before any clock": {
			expiry + 1, "beat_at = -9223372036854775807", 0, false, true,
		},
		"silent by both, but our own lease is stale": {time.Hour, "beat_at = 1", 0, true, false},
		"a row that was there before, of another life's beat": {
			expiry + 1, "beat = beat - 1, beat_at = 1", 0, false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.reset(t)
			s := f.join("one")
			peer := f.peer(200)
			r, _ := f.reaper(s)
			look := func(mono time.Duration) {
				t.Helper()
				if err := r.reap(t.Context(), at(mono)); err != nil {
					t.Fatal(err)
				}
			}

			start := 1000 * time.Hour
			look(start)
			f.exec("UPDATE session SET "+c.beats+" WHERE id = ?", peer[:])
			now := time.Now()
			took(s.Clock, now, now, s.Clock.Now().Add(c.step))
			if c.stale {
				s.lease.clock = func() time.Duration { return time.Duration(s.lease.sent.Load()) + s.Timings.Stale + 1 }
			}

			look(start + c.waited)
			if buried := !f.lives(peer); buried != c.buried {
				t.Errorf("got buried %v, want %v", buried, c.buried)
			}
			if !f.lives(s.id) {
				t.Error("it buried itself")
			}
		})
	}
}

// TestFirstLookBuriesNobody: a new node has not watched any session yet, so it buries none, however
// old the beats are.
func TestFirstLookBuriesNobody(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	peer := f.peer(200)
	f.exec("UPDATE session SET beat_at = 1 WHERE id = ?", peer[:])
	f.exec("UPDATE session SET beat_at = 1 WHERE id = ?", s.id[:])
	r, _ := f.reaper(s)
	for mono := range 3 {
		if err := r.reap(t.Context(), at(time.Duration(mono)*(MinExpiry/2))); err != nil {
			t.Fatal(err)
		}
		if !f.lives(peer) || !f.lives(s.id) {
			t.Errorf("look %d buried somebody", mono+1)
		}
	}

	if err := r.reap(t.Context(), at(MinExpiry+1)); err != nil || f.lives(peer) || !f.lives(s.id) {
		t.Errorf("after the expiry: peer lives %v, own session lives %v, %v; want false, true", f.lives(peer),
			f.lives(s.id), err)
	}
}

// TestSilenceCountsFromTheLastBeat: each new beat restarts the wait, and a burial follows the last
// one.
func TestSilenceCountsFromTheLastBeat(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	peer := f.peer(200)
	r, _ := f.reaper(s)
	mono := time.Duration(0)
	for range 4 {
		f.exec("UPDATE session SET beat = beat + 1, beat_at = 1 WHERE id = ?", peer[:])
		for _, wait := range []time.Duration{0, MinExpiry - 1, 1} {
			mono += wait
			if err := r.reap(t.Context(), at(mono)); err != nil || !f.lives(peer) {
				t.Fatalf("%s after its beat: peer lives %v, %v", wait, f.lives(peer), err)
			}
		}
	}

	if err := r.reap(t.Context(), at(mono+1)); err != nil || f.lives(peer) {
		t.Errorf("silent for longer than the expiry: peer lives %v, %v", f.lives(peer), err)
	}
}

// at returns a stopped clock.
func at(mono time.Duration) func() time.Duration { return func() time.Duration { return mono } }

// TestALookThatTakesLong: silence is measured from the end of the look that saw a beat, and not
// from its start.
func TestALookThatTakesLong(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	peer := f.peer(200)
	f.exec("UPDATE session SET beat_at = 1 WHERE id = ?", peer[:])
	r, _ := f.reaper(s)
	mono := time.Duration(0)
	slow := func() time.Duration { now := mono; mono += 3 * time.Second; return now } // each look takes 3 s
	if err := r.reap(t.Context(), slow); err != nil {
		t.Fatal(err)
	}

	seen := mono - 3*time.Second
	if err := r.reap(t.Context(), at(seen+MinExpiry)); err != nil || !f.lives(peer) {
		t.Errorf("silent for just the expiry: peer lives %v, %v", f.lives(peer), err)
	}
	if err := r.reap(t.Context(), at(seen+MinExpiry+1)); err != nil || f.lives(peer) {
		t.Errorf("silent for longer than the expiry: peer lives %v, %v", f.lives(peer), err)
	}
}

// TestBeatBeforeTheBurial: a beat between the look and the burial saves the session.
func TestBeatBeforeTheBurial(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	peer := f.peer(200)
	f.exec("UPDATE session SET beat_at = 1 WHERE id = ?", peer[:])
	r, _ := f.reaper(s)
	if err := r.reap(t.Context(), at(0)); err != nil {
		t.Fatal(err)
	}

	f.proxy.OnCommand(func(c faultproxy.Command) {
		if faultproxy.SQL("DELETE FROM session")(c) {
			f.exec("UPDATE session SET beat = beat + 1 WHERE id = ?", peer[:])
		}
	})

	if err := r.reap(t.Context(), at(2*MinExpiry)); err != nil || !f.lives(peer) {
		t.Errorf("got peer lives %v, %v; want true", f.lives(peer), err)
	}
}

// TestUnknownBurial: whether or not a burial with a lost reply was committed, the next looks
// complete it.
func TestUnknownBurial(t *testing.T) {
	f := setUp(t)
	for name, fate := range map[string]faultproxy.Action{"never arrives": faultproxy.CutBefore(),
		"reply lost": faultproxy.CutAfter()} {
		t.Run(name, func(t *testing.T) {
			f := f.reset(t)
			s := f.join("one")
			dead := f.peer(201)
			f.exec("UPDATE session SET beat_at = 1 WHERE id = ?", dead[:])
			r, _ := f.reaper(s)
			f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("DELETE FROM session"), Action: fate})
			failed := 0
			for look := range 3 {
				if err := r.reap(t.Context(), at(time.Duration(look)*(MinExpiry+1))); err != nil {
					failed++
				}
			}

			if failed != 1 {
				t.Errorf("got %d looks that failed, want 1", failed)
			}

			if f.lives(dead) || !f.gone(dead) {
				t.Errorf("the dead session has its row still: %v, its life is over: %v; want false, true",
					f.lives(dead), f.gone(dead))
			}

			f.want("lines of the audit", 1, "SELECT COUNT(*) FROM audit WHERE action = 'reap'")
		})
	}
}

// TestALockedSessionKeepsNoOther: while another transaction locks the row of one dead session, the
// others are still buried.
func TestALockedSessionKeepsNoOther(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	locked, free := f.peer(201), f.peer(202)
	f.exec("UPDATE session SET beat_at = 1 WHERE node = 'peer'")
	r, calls := f.reaper(s)
	if err := r.reap(t.Context(), at(0)); err != nil {
		t.Fatal(err)
	}

	holder, err := f.direct.Raw().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec("SELECT id FROM session WHERE id = ? FOR UPDATE", locked[:]); err != nil {
		t.Fatal(err)
	}
	if err := r.reap(t.Context(), at(MinExpiry+1)); err == nil {
		t.Error("who could not be buried is not told")
	}

	if !f.lives(locked) || f.lives(free) || len(calls.buried) != 1 {
		t.Errorf("the locked one lives: %v, the other: %v, told %d times; want true, false, once", f.lives(locked),
			f.lives(free), len(calls.buried))
	}

	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := r.reap(t.Context(), at(MinExpiry+2)); err != nil || f.lives(locked) || len(calls.buried) != 2 {
		t.Errorf("the one that is free again lives: %v, told %d times, %v; want false, twice", f.lives(locked),
			len(calls.buried), err)
	}
}

// TestMembers: the live sessions that do not drain share the work, and the claimer is informed of
// changes.
func TestMembers(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	r, calls := f.reaper(s)
	mono := time.Duration(0)
	check := func(what string, index, of int, tells bool) {
		t.Helper()
		calls.forget()
		if err := r.reap(t.Context(), at(mono)); err != nil {
			t.Fatal(err)
		}

		i, n := s.Share()
		if i != index || n != of || (len(calls.changed) > 0) != tells {
			t.Errorf("%s: got share %d of %d, told %d times; want %d of %d, told: %v", what, i, n, len(calls.changed), index,
				of, tells)
		}

		if m := s.members.Load(); !slices.IsSortedFunc(m.IDs,
			func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }) {
			t.Errorf("%s: got members %v, want them in one order on all nodes", what, m.IDs)
		}
	}

	check("alone", 0, 1, true)
	check("still alone", 0, 1, false)
	low, high := uuid.UUID{15: 1}, uuid.UUID{0: 255, 1: 255}
	f.exec(`
		INSERT INTO session (id, node, started, beat_at)
		VALUES (?, 'low', 1, 1), (?, 'high', 1, 1)`, low[:], high[:])
	check("with two others", 1, 3, true)
	f.exec("UPDATE session SET draining = 1 WHERE id = ?", low[:])
	check("one of them drains", 0, 2, true)
	f.exec("UPDATE session SET draining = 1 WHERE id = ?", s.id[:])
	check("we drain", -1, 1, true)
	f.exec("UPDATE session SET draining = 0 WHERE id = ?", s.id[:])
	mono += MinExpiry + 1
	check("the others are dead", 0, 1, true)
}

// TestReaperRuns: a dead session is buried without a wake, and Buried is called.
func TestReaperRuns(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	s.Timings.Scan, s.Timings.Expiry = 10*time.Millisecond, 200*time.Millisecond
	dead := f.peer(201)
	f.exec("UPDATE session SET beat_at = 1 WHERE id = ?", dead[:])
	r, calls := f.reaper(s)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	select {
	case <-calls.buried:
	case <-time.After(10 * time.Second):
		t.Error("not within 10 s: a dead session is buried")
	}

	if f.lives(dead) || !f.gone(dead) {
		t.Errorf("it has its row still: %v, its life is over: %v; want false, true", f.lives(dead), f.gone(dead))
	}

	end()
	if err := <-done; err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
