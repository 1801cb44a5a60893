package session

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"go-crontab/internal/boottime"
	"go-crontab/job"
	"go-crontab/test/faultproxy"
)

// epoch is an instant of MySQL's clock.
const epoch = job.Micros(1_800_000_000_000_000)

// took gives a clock a reading that was requested at sent and answered at received, without a
// suspension in between.
func took(c *Clock, sent, received time.Time, db job.Micros) {
	boot := c.boot() // before the request, as in ReadClock
	c.Set(boot-time.Since(sent), sent, received, db)
}

// TestClockIsCarriedOn: between readings the clock runs with the node's monotonic clock.
func TestClockIsCarriedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewClock()
		if got := c.Now(); got != 0 {
			t.Errorf("before the first reading: got %s, want none", got)
		}

		took(c, time.Now(), time.Now(), epoch)
		for _, after := range []time.Duration{0, time.Microsecond, time.Second, time.Hour, 1000 * time.Hour} {
			time.Sleep(after)
			if got, want := c.Now(), epoch.Add(time.Since(c.at.Load().mono)); got != want {
				t.Errorf("%s later: got %s, want %s", after, got, want)
			}
		}

		if got := c.Until(c.Now().Add(time.Minute)); got != time.Minute {
			t.Errorf("a minute ahead: got %s to wait", got)
		}
		if got := c.Until(c.Now().Add(-time.Minute)); got != -time.Minute {
			t.Errorf("a minute ago: got %s to wait", got)
		}

		wall := time.Now().Add(-7 * time.Hour)
		took(c, time.Now(), time.Now(), job.MicrosOf(wall))
		if got := c.Offset(); got != -7*time.Hour {
			t.Errorf("MySQL's clock is seven hours behind this node's: got offset %s", got)
		}
	})
}

// TestASuspensionIsNoticed: a machine that was suspended for less than its lease starts nothing
// until MySQL's clock has been read. The new reading is believed, and does not count as a clock
// that was set.
func TestASuspensionIsNoticed(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	slept := time.Duration(0)
	s.Clock.boot = func() time.Duration { return boottime.Now() + slept }
	h := f.heartbeat(s)
	if err := h.beat(t.Context()); err != nil || !s.Fresh() {
		t.Fatalf("before: %v, fresh: %v", err, s.Fresh())
	}

	slept = 5 * time.Second
	if s.Fresh() {
		t.Error("it is fresh by a reading from before the suspension")
	}

	select {
	case <-s.beatNow:
	default:
		t.Error("it does not ask for a beat at once")
	}

	at := s.Now()
	// its error is larger than that of the previous reading
	took(s.Clock, time.Now(), time.Now().Add(time.Millisecond), at.Add(slept))
	if _, ever := s.Clock.PutForward(); ever {
		t.Error("it takes MySQL's clock for put forward")
	}
	if gone := s.Now().Sub(at); !s.Fresh() || gone < slept-time.Second {
		t.Errorf("behind the reading: fresh %v, its clock has gone on by %s", s.Fresh(), gone)
	}

	slept *= 2
	took(s.Clock, time.Now(), time.Now(), s.Now().Add(time.Hour))
	if _, ever := s.Clock.PutForward(); !ever {
		t.Error("it does not notice that MySQL's clock was put forward in a suspension")
	}
}

// TestASuspensionWhileMySQLIsAsked: a reading that contains a suspension is not used, wherever on
// its way that was, and the next reading does not look like a clock that was put forward.
func TestASuspensionWhileMySQLIsAsked(t *testing.T) {
	t.Parallel()
	const gone = 5 * time.Second
	for name, counted := range map[string]time.Duration{"before MySQL looked at its clock": gone, "behind that": 0} {
		slept := time.Duration(0)
		c := &Clock{boot: func() time.Duration { return boottime.Now() + slept }}
		start := time.Now()
		mysql := func(at time.Time) job.Micros { return epoch.Add(at.Sub(start) + slept) }
		took(c, start, start, mysql(start))
		boot, sent := c.boot(), time.Now()
		db := mysql(sent).Add(counted)
		slept = gone
		c.Set(boot, sent, sent, db)
		if !c.Slept() {
			t.Errorf("%s: it goes by the reading", name)
		}

		next := time.Now()
		took(c, next, next, mysql(next))
		if at := c.at.Load(); at.db != mysql(next) || c.Slept() {
			t.Errorf("%s: got %s from the next reading, want %s; slept: %v", name, at.db, mysql(next), c.Slept())
		}
		if _, ever := c.PutForward(); ever {
			t.Errorf("%s: it takes MySQL's clock for put forward", name)
		}
	}
}

// TestABeatIsSuspended: a beat during which the machine was suspended requests the next one at
// once.
func TestABeatIsSuspended(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	var slept atomic.Int64
	s.Clock.boot = func() time.Duration { return boottime.Now() + time.Duration(slept.Load()) }
	h := f.heartbeat(s)
	if err := h.beat(t.Context()); err != nil || !s.Fresh() {
		t.Fatalf("before: %v, fresh: %v", err, s.Fresh())
	}

	asked := f.proxy.Statements() + 2 // the statements of the beat and the clock
	f.proxy.Delay(faultproxy.ToClient, 300*time.Millisecond)
	beaten := make(chan error, 1)
	go func() { beaten <- h.beat(t.Context()) }()
	for f.proxy.Statements() < asked {
		time.Sleep(time.Millisecond)
	}

	slept.Store(int64(5 * time.Second))
	if err := <-beaten; err != nil {
		t.Fatal(err)
	}

	select {
	case <-s.beatNow:
	default:
		t.Error("it does not ask for another at once")
	}

	if s.Fresh() {
		t.Error("it is fresh by a reading that the suspension fell into")
	}
}

// TestClockBelieves checks which of several readings the clock uses. The instants are those of a
// node's clock that agrees with MySQL's, except for the error of each reading.
func TestClockBelieves(t *testing.T) {
	t.Parallel()
	type asked struct {
		at  time.Duration // after the start
		rtt time.Duration
		off time.Duration // error of the answer against MySQL's clock in the middle of the round trip
	}
	ms := func(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }
	again := func(n int, r asked) (out []asked) {
		for range n {
			out = append(out, r)
			r.at += time.Second
		}
		return out
	}

	for name, c := range map[string]struct {
		readings []asked
		want     time.Duration // error of the clock at the end
	}{
		"the only reading": {[]asked{{0, ms(10), ms(4)}}, ms(4)},
		"a faster one replaces a slow one": {
			[]asked{{0, ms(100), ms(40)}, {ms(1000), ms(2), ms(0.5)}}, ms(0.5),
		},
		"a slow one does not replace a fast one": {
			[]asked{{0, ms(2), ms(0.5)}, {ms(1000), ms(100), ms(40)}}, ms(0.5),
		},
		"as fast a one, later": {
			[]asked{{0, ms(2), ms(0.5)}, {ms(1000), ms(2), ms(-0.5)}}, ms(-0.5),
		},
		"a slow one, once the fast one has drifted": {
			[]asked{{0, ms(2), ms(0.5)}, {99 * time.Second, ms(100), ms(40)}}, ms(40),
		},
		"a slow one, before the fast one has drifted": {
			[]asked{{0, ms(2), ms(0.5)}, {90 * time.Second, ms(100), ms(40)}}, ms(0.5),
		},
		"the fast one, however many slow ones come": {
			append([]asked{{0, ms(2), ms(0.5)}}, again(60, asked{time.Second, ms(100), ms(40)})...), ms(0.5),
		},
		"MySQL's clock was put forward": {
			[]asked{{0, ms(2), 0}, {ms(1000), ms(100), time.Hour}}, time.Hour,
		},
		"MySQL's clock was put back": {
			[]asked{{0, ms(2), 0}, {ms(1000), ms(100), -time.Hour}}, -time.Hour,
		},
		"put forward, and slow and fast ones behind": {
			[]asked{{0, ms(2), 0}, {ms(1000), ms(100), time.Hour}, {ms(2000), ms(4), time.Hour + ms(1)}},
			time.Hour + ms(1),
		},
		"put forward and back again": {
			[]asked{{0, ms(2), 0}, {ms(1000), ms(2), time.Hour}, {ms(2000), ms(100), ms(7)}}, ms(7),
		},
		"both cannot be right": {
			[]asked{{0, ms(10), ms(-6)}, {ms(1000), ms(20), ms(10)}}, ms(10),
		},
		"both can be right": {[]asked{{0, ms(10), ms(-5)}, {ms(1000), ms(20), ms(10)}}, ms(-5)},
		"put forward by less than can be seen over a delay": {[]asked{{0, ms(2), 0}, {ms(1000), ms(100), ms(50)}}, 0},
	} {
		start := time.Now()
		clock := NewClock()
		for _, r := range c.readings {
			sent := start.Add(r.at)
			took(clock, sent, sent.Add(r.rtt), epoch.Add(r.at+r.rtt/2+r.off))
		}

		at := start.Add(time.Hour)
		if got := clock.at.Load().now(at).Sub(epoch.Add(time.Hour)); got != c.want {
			t.Errorf("%s: got a clock that is %s off, want %s", name, got, c.want)
		}
	}
}

// TestClockErrorIsBounded: for any long or asymmetric round trips, and any divergence of the two
// clocks within bounds, the clock is never further off than it claims, and no step is reported
// without one.
func TestClockErrorIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := 1 + drift*rapid.Float64Range(-1, 1).Draw(t, "drift")
		start := time.Now()
		mysql := func(at time.Time) job.Micros { return epoch.Add(time.Duration(float64(at.Sub(start)) * rate)) }
		duration := func(label string, most time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, label))
		}
		c := NewClock()
		now := start
		for range rapid.IntRange(1, 30).Draw(t, "readings") {
			sent := now
			there := duration("there",
				rapid.SampledFrom([]time.Duration{time.Millisecond, 50 * time.Millisecond, 3 * time.Second}).Draw(t,
					"most"))
			back := duration("back",
				rapid.SampledFrom([]time.Duration{time.Millisecond, 50 * time.Millisecond, 3 * time.Second}).Draw(t,
					"most"))
			received := sent.Add(there + back)
			before := c.at.Load()
			took(c, sent, received, mysql(sent.Add(there)))
			if r := c.at.Load(); before != nil && before.errAt(r.mono) < r.err {
				t.Fatalf("a step was seen where there was none, after readings %+v and %+v", *before, *r)
			}

			now = received
			for range 2 {
				r := c.at.Load()
				off, bound := time.Duration(r.now(now)-mysql(now))*time.Microsecond, r.errAt(now)
				if off.Abs() > bound {
					t.Fatalf("%s after the start: got %s off, want at most %s (reading %+v)", now.Sub(start), off,
						bound, *r)
				}
				now = now.Add(duration("pause", 10*time.Minute))
			}
		}
	})
}

// TestClockStepIsSeenAtOnce: after any earlier readings, the first reading after a large step is
// believed.
func TestClockStepIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := NewClock()
		now, shift := time.Now(), time.Duration(0)
		start := now
		for range rapid.IntRange(1, 40).Draw(t, "readings") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, "pause")))
			if rapid.IntRange(0, 4).Draw(t, "steps") == 0 {
				shift += rapid.SampledFrom(
					[]time.Duration{-24 * time.Hour, -time.Minute, time.Minute, 24 * time.Hour}).Draw(t, "step")
			}

			rtt := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "rtt"))
			took(c, now, now.Add(rtt), epoch.Add(now.Sub(start)+rtt/2+shift))
			now = now.Add(rtt)
			r := c.at.Load()
			if off := r.now(now).Sub(epoch.Add(now.Sub(start) + shift)); off.Abs() > r.errAt(now) {
				t.Fatalf("got %s off, want at most %s", off, r.errAt(now))
			}
		}
	})
}

// TestClockIsShared serves the race detector.
func TestClockIsShared(t *testing.T) {
	t.Parallel()
	c := NewClock()
	took(c, time.Now(), time.Now(), epoch)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				took(c, time.Now(), time.Now(), c.Now())
			}
		})

		all.Go(func() {
			for last := c.Now(); last < epoch; last = c.Now() {
				t.Errorf("got %s, before the first reading", last)
				return
			}
		})
	}

	all.Wait()
}

// TestUnsettled: when a reading shows that MySQL's clock was put forward, other nodes may use the
// old clock while their leases are fresh. The first reading of a process shows no step.
func TestUnsettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		timings, err := NewTimings(DefaultExpiry)
		if err != nil {
			t.Fatal(err)
		}

		began := time.Now()
		s := &Session{Timings: timings, Clock: &Clock{boot: func() time.Duration { return time.Since(began) }}}
		shift := time.Duration(0)
		read := func() {
			now := time.Now()
			took(s.Clock, now, now.Add(2*time.Millisecond), job.MicrosOf(now.Add(time.Millisecond+shift)))
			time.Sleep(2 * time.Millisecond)
		}

		want := func(when string, want time.Duration) {
			t.Helper()
			if got := s.Unsettled(); got != want {
				t.Errorf("%s: got %s, want %s", when, got, want)
			}
		}

		want("before the first reading", 0)
		read()
		want("the first reading", 0)
		shift -= time.Hour
		read()
		want("put back", 0)
		for _, step := range []time.Duration{time.Hour, time.Second} {
			shift += step
			read()
			want("put forward by "+step.String(), timings.Expiry*4/10)
			time.Sleep(time.Second)
			read()
			want("a second later", timings.Expiry*4/10-time.Second-2*time.Millisecond)
			time.Sleep(timings.Expiry * 4 / 10)
			want("when no lease can be as old", 0)
		}
	})
}
