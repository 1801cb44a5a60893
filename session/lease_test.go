package session

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go-crontab/internal/boottime"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// TestLeaseIsNeverMovedBack: for any order of answers, the lease counts from the latest beat sent.
func TestLeaseIsNeverMovedBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Hour
		l := lease{clock: func() time.Duration { return now }}
		latest := time.Duration(0)
		for _, sent := range rapid.SliceOf(rapid.Int64Range(1, int64(time.Hour))).Draw(t, "sent") {
			l.renew(time.Duration(sent))
			latest = max(latest, time.Duration(sent))
			if got := l.age(); got != now-latest {
				t.Fatalf("renewed from %s: got age %s, want %s", time.Duration(sent), got, now-latest)
			}
		}
	})

	l := lease{clock: boottime.Now} // on the machine's own clock, with many goroutines
	var all sync.WaitGroup
	base := boottime.Now()
	for i := range 8 {
		all.Go(func() {
			for n := range 1000 {
				l.renew(base - time.Duration(1000*i+n))
			}
		})
	}

	all.Wait()
	if got := l.sent.Load(); got != int64(base) {
		t.Errorf("got a lease that counts from %d, want the latest, %d", got, base)
	}
	if age := l.age(); age < 0 || age > time.Minute {
		t.Errorf("got age %s of a lease that was just renewed", age)
	}
}

// bubble returns a session in a synctest bubble. Its lease counts from the start.
func bubble(expiry time.Duration) (*Session, *recorded) {
	timings, err := NewTimings(expiry)
	if err != nil {
		panic(err)
	}
	s := &Session{Timings: timings, Clock: NewClock(), id: uuid.New()}
	start := time.Now()
	s.lease.clock = func() time.Duration { return time.Since(start) }
	s.ctx, s.lost = context.WithCancelCause(context.Background())
	return s, new(recorded)
}

// recorded collects log lines.
type recorded struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorded) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, string(p))
	return len(p), nil
}

func (r *recorded) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

// said counts the log lines that contain a text.
func (r *recorded) said(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lines {
		if strings.Contains(l, text) {
			n++
		}
	}
	return n
}

// TestWatchdog lets a lease age, and checks right before and after each important instant.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, log := bubble(20 * time.Second) // it checks every 100 ms
		start := time.Now()
		done := make(chan error, 1)
		go func() { done <- NewWatchdog(s, log.logger()).Run(t.Context()) }()
		at := func(d time.Duration, fresh, lost bool, stale, freshAgain int) {
			t.Helper()
			time.Sleep(d - time.Since(start))
			synctest.Wait()
			if s.Fresh() != fresh || s.Lost() != lost || s.Age() != s.lease.age() {
				t.Errorf("%s: got fresh %v, lost %v; want %v, %v", d, s.Fresh(), s.Lost(), fresh, lost)
			}
			if a, b := log.said("lease stale"), log.said("lease fresh again, starting runs"); a != stale || b != freshAgain {
				t.Errorf("%s: said %d times stale and %d times fresh, want %d and %d", d, a, b, stale, freshAgain)
			}
		}

		at(0, true, false, 0, 0)
		at(8*time.Second, true, false, 0, 0) // the oldest fresh lease

		// Older: nothing starts, whether the watchdog has checked or not.
		at(8*time.Second+1, false, false, 0, 0)
		at(8100*time.Millisecond, false, false, 1, 0) // it has checked
		at(11*time.Second, false, false, 1, 0)        // it logs that only once
		s.lease.renew(10 * time.Second)               // the answer to a beat that was sent a second ago
		at(11*time.Second, true, false, 1, 0)
		at(11100*time.Millisecond, true, false, 1, 1)
		at(18*time.Second, true, false, 1, 1)
		at(18100*time.Millisecond, false, false, 2, 1)
		at(22*time.Second, false, false, 2, 1) // not older than Kill
		at(22100*time.Millisecond-1, false, false, 2, 1)
		at(22100*time.Millisecond, false, true, 2, 1)
		if err := <-done; err != ErrLapsed {
			t.Errorf("got %v, want %v", err, ErrLapsed)
		}

		if cause := context.Cause(s.Context()); cause != ErrLapsed {
			t.Errorf("got a session that ended with %v, want %v", cause, ErrLapsed)
		}
		if n := log.said("lease expired, killing all commands"); n != 1 {
			t.Errorf("said %d times that commands are killed, want once", n)
		}

		s.lease.renew(22 * time.Second) // too late
		if s.Fresh() || !s.Lost() {
			t.Error("a session came back to life")
		}
	})
}

// TestWatchdogStops: the regular end of a node is no loss of its session.
func TestWatchdogStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, log := bubble(5 * time.Second)
		stop := errors.New("drained")
		ctx, end := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { end(stop) })
		if err := NewWatchdog(s, log.logger()).Run(ctx); err != stop {
			t.Errorf("got %v, want %v", err, stop)
		}
		if s.Lost() || !s.Fresh() {
			t.Error("the session is lost")
		}

		s.Lose(errors.New("the node has left"))
		if s.Lost() || s.Fresh() {
			t.Errorf("after it left: got lost %v, fresh %v; want neither", s.Lost(), s.Fresh())
		}

		s.Lose(ErrBuried)
		if s.Lost() {
			t.Error("the first cause does not count")
		}
	})
}

// TestWatchdogAlwaysInTime: for any series of beats, the session is lost if and only if the lease
// was ever older than Kill, and then within one tick.
func TestWatchdogAlwaysInTime(t *testing.T) {
	t.Parallel()
	type beat struct{ pause, took time.Duration }
	rapid.Check(t, func(rt *rapid.T) {
		expiry := time.Duration(rapid.IntRange(5000, 60_000).Draw(rt, "expiry")) * time.Millisecond
		beats := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) beat {
			most := rapid.SampledFrom([]time.Duration{expiry / 10, expiry / 2, expiry}).Draw(t, "most")
			return beat{
				time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, "pause")),
				time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, "took")),
			}
		}), 0, 12).Draw(rt, "beats")

		var lostAt, due time.Duration
		synctest.Test(t, func(*testing.T) {
			s, log := bubble(expiry)
			start := time.Now()
			stop := context.AfterFunc(s.Context(), func() { lostAt = time.Since(start) })
			defer stop()
			ctx, end := context.WithCancel(context.Background())
			go NewWatchdog(s, log.logger()).Run(ctx)
			due = s.Timings.Kill // when the lease will be too old without another beat
			for _, b := range beats {
				time.Sleep(b.pause)
				sent := time.Since(start)
				time.Sleep(b.took)
				if time.Since(start) > due {
					break // too old before the answer came
				}
				s.lease.renew(sent)
				due = max(due, sent+s.Timings.Kill)
			}

			time.Sleep(2 * expiry)
			synctest.Wait()
			end()
			synctest.Wait()
		})

		if late := lostAt - due; late <= 0 || late > expiry/200 {
			rt.Fatalf(
				"the lease was too old %s after the start and the session was lost after %s: %s late, want more than "+
					"0 and at most %s", due, lostAt, late, expiry/200)
		}
	})
}
