package session

import (
	"context"
	"database/sql/driver"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/boottime"
	"go-crontab/test/faultproxy"
)

func (f *fixture) heartbeat(s *Session) *Heartbeat {
	return NewHeartbeat(HeartbeatConfig{Session: s, Pulse: f.pulse(), Node: loaded{}, Log: f.log})
}

// loaded is a node with some runs.
type loaded struct{}

func (loaded) Load() (prepared, executing int) { return 3, 4 }
func (loaded) Works() bool                     { return true }
func (loaded) Renewed(time.Duration)           {}

func TestBeat(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	h := f.heartbeat(s)
	s.draining.Store(true)
	f.exec("UPDATE session SET beat_at = 1")
	before := boottime.Now()
	if err := h.beat(t.Context()); err != nil {
		t.Fatal(err)
	}

	if sent := time.Duration(s.lease.sent.Load()); sent < before || sent > boottime.Now() {
		t.Errorf("got a lease that counts from %s, want from the beat, after %s", sent, before)
	}

	f.want("its row", 1, `
		SELECT COUNT(*)
		FROM session
		WHERE beat = 1 AND beat_at > 1 AND prepared = 3 AND executing = 4 AND draining = 1`)

	if off := s.Now().Sub(s.Now()); off > 0 || s.Now() == 0 {
		t.Errorf("got clock %s", s.Now())
	}
}

// TestLeaseCountsFromTheSending: a slow answer only proves that the session was alive at the
// request.
func TestLeaseCountsFromTheSending(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	h := f.heartbeat(s)
	s.lease.clock = boottime.Now
	if err := h.beat(t.Context()); err != nil { // opens the connection
		t.Fatal(err)
	}

	const slow = 400 * time.Millisecond
	f.proxy.Add(faultproxy.Rule{Match: faultproxy.SQL("UPDATE session"), Action: faultproxy.Hold(slow)})
	if err := h.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	if age := s.Age(); age < slow {
		t.Errorf("got a lease of age %s, want at least the %s for which the answer was under way", age, slow)
	}
}

// TestBeatBehindTheEnd: a beat after the end of the session is not mistaken for a burial.
func TestBeatBehindTheEnd(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	h := f.heartbeat(s)
	if err := h.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.End(t.Context(), f.db); err != nil {
		t.Fatal(err)
	}

	if err := h.beat(t.Context()); err != nil || s.Lost() {
		t.Errorf("got %v, lost: %v; want that it is nothing new", err, s.Lost())
	}
}

// TestFailedBeats: a beat that may not have arrived renews nothing, even if the row shows it.
func TestFailedBeats(t *testing.T) {
	f := setUp(t)
	for name, c := range map[string]struct {
		rule    faultproxy.Rule
		arrived int64
	}{
		"it never arrives": {
			faultproxy.Rule{Match: faultproxy.SQL("UPDATE session"), Action: faultproxy.CutBefore()}, 0,
		},
		"its answer is lost": {
			faultproxy.Rule{Match: faultproxy.SQL("UPDATE session"), Action: faultproxy.CutAfter()}, 1,
		},
		"it is refused": {
			faultproxy.Rule{Match: faultproxy.SQL("UPDATE session"),
				Action: faultproxy.Error(1205, "HY000", "Lock wait timeout")}, 0,
		},
		"the clock cannot be read": {
			faultproxy.Rule{Match: faultproxy.SQL("^SELECT .*UNIX_TIMESTAMP"), Action: faultproxy.CutAfter()}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.reset(t)
			s := f.join("one")
			h := f.heartbeat(s)
			f.proxy.Add(c.rule)
			before := s.lease.sent.Load()
			if err := h.beat(t.Context()); err == nil {
				t.Error("got no error")
			}
			if after := s.lease.sent.Load(); after != before {
				t.Errorf("the lease was renewed by %s", time.Duration(after-before))
			}

			if s.Lost() {
				t.Error("the session is lost")
			}

			f.want("beats in the row", c.arrived, "SELECT beat FROM session")
			if err := h.beat(t.Context()); err != nil || s.lease.sent.Load() == before {
				t.Errorf("the next beat: got %v, want it to renew the lease", err)
			}
		})
	}
}

// TestBuried: a session learns from its beat that its row is gone, and stays lost.
func TestBuried(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	h := f.heartbeat(s)
	if err := h.beat(t.Context()); err != nil {
		t.Fatal(err)
	}

	before := s.lease.sent.Load()
	f.exec("DELETE FROM session")
	if err := h.beat(t.Context()); err != ErrBuried {
		t.Errorf("got %v, want %v", err, ErrBuried)
	}

	if cause := context.Cause(s.Context()); cause != ErrBuried || !s.Lost() || s.Fresh() {
		t.Errorf("got a session that ended with %v, lost %v, fresh %v; want %v, true, false", cause, s.Lost(),
			s.Fresh(), ErrBuried)
	}

	if s.lease.sent.Load() != before {
		t.Error("the beat of a buried session renewed its lease")
	}
}

// TestFirstBeatBeforeItsRow: the first beat may reach a server that does not have the session's row
// yet. That is no burial unless it lasts.
func TestFirstBeatBeforeItsRow(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	h := f.heartbeat(s)
	f.exec("CREATE TABLE elsewhere LIKE session")
	f.exec("INSERT INTO elsewhere SELECT * FROM session")
	f.exec("DELETE FROM session")
	if err := h.beat(t.Context()); !errors.Is(err, errNotYet) || s.Lost() {
		t.Errorf("got %v, lost: %v", err, s.Lost())
	}

	f.exec("INSERT INTO session SELECT * FROM elsewhere")
	if err := h.beat(t.Context()); err != nil {
		t.Error(err)
	}

	f.exec("DELETE FROM session")
	if err := h.beat(t.Context()); err != ErrBuried {
		t.Errorf("behind a beat that met it: got %v", err)
	}

	s = f.join("two")
	h = f.heartbeat(s)
	f.exec("DELETE FROM session")
	s.lease.clock = func() time.Duration { return time.Duration(s.lease.sent.Load()) + s.Timings.Beat }
	if err := h.beat(t.Context()); err != ErrBuried {
		t.Errorf("when that lasts: got %v", err)
	}
}

// TestHeartbeatRuns: it beats at once, retries a failed beat soon, beats at once when the node
// drains, and ends with its context.
func TestHeartbeatRuns(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	s.Timings.Beat = time.Hour // so that any further beat has a different reason
	h := f.heartbeat(s)
	stop := errors.New("stopped")
	ctx, end := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	beats := func(n int64) {
		t.Helper()
		for until := time.Now().Add(10 * time.Second); f.number("SELECT beat FROM session") < n; time.Sleep(
			5 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("not within 10 s: beat %d", n)
			}
		}
	}

	go func() { done <- h.Run(ctx) }()
	beats(1)
	s.Drain()
	beats(2)
	f.want("draining", 1, "SELECT draining FROM session")
	end(stop)
	if err := <-done; err != stop {
		t.Errorf("got %v, want %v", err, stop)
	}

	s.Timings.Beat = 6 * time.Second // an eighth of that after a failed beat
	failing := f.proxy.Add(faultproxy.Rule{
		Match: faultproxy.SQL("UPDATE session"), Times: 2, Action: faultproxy.Error(1205, "HY000", "busy"),
	})
	ctx, stopAgain := context.WithCancel(t.Context())
	defer stopAgain()
	var said strings.Builder
	again := make(chan struct{})
	h.Log = slog.New(slog.NewTextHandler(writerFunc(func(line []byte) (int, error) {
		if said.Write(line); strings.Contains(string(line), "heartbeats succeed again") {
			close(again)
		}
		return len(line), nil
	}), nil))

	go func() { done <- h.Run(ctx) }()
	beats(3)
	select {
	case <-again:
	case <-time.After(10 * time.Second):
		t.Error("the log does not say that it beats again")
	}

	if n := failing.Fired(); n != 2 {
		t.Errorf("got %d failed beats, want 2", n)
	}

	stopAgain()
	<-done
	if got := said.String(); strings.Count(got, "beat failed") != 2 || strings.Count(got, "\n") != 3 {
		t.Errorf("the log says %s, want two beats that failed and one line when it beats again", got)
	}
}

// TestHeartbeatOnANewConnection: a beat that succeeds on a new connection is not worth a line, since
// the one that failed on the old connection was not either.
func TestHeartbeatOnANewConnection(t *testing.T) {
	f := setUp(t)
	h := f.heartbeat(f.join("one"))
	var said strings.Builder
	h.Log = slog.New(slog.NewTextHandler(&said, nil))
	if wait := h.failed(driver.ErrBadConn, time.Millisecond); wait != 0 {
		t.Errorf("it waits %s", wait)
	}
	h.succeeded()
	if said.Len() > 0 {
		t.Errorf("the log says %s", said.String())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
