package session

import (
	"sync"
	"sync/atomic"
	"time"

	"go-crontab/internal/boottime"
	"go-crontab/job"
)

// Clock is MySQL's clock as this node knows it: a reading, carried on by the node's monotonic
// clock. Safe for concurrent use once it was set.
type Clock struct {
	at   atomic.Pointer[reading]
	trip atomic.Int64              // how long the last reading took
	set  atomic.Pointer[time.Time] // when a reading said that MySQL's clock was put forward
	mu   sync.Mutex                // taking a reading
	boot func() time.Duration      // boottime.Now where it is nil; for tests
}

// reading says that MySQL's clock showed db at the monotonic instant mono, give or take err.
type reading struct {
	mono time.Time
	boot time.Duration // the same instant by a clock that also runs while the machine is suspended
	db   job.Micros
	err  time.Duration
}

// drift bounds how much two clocks may diverge in a second.
const drift = 0.0005

// Set takes a reading that was asked for at sent and answered at received. boot is sent by the
// other clock, read before it: who is held up in between finds a suspension too many, and reads
// again. One on the way counts as one behind the reading, since nobody knows whether MySQL looked
// at its clock before it.
//
// The reading that is off by the least is believed: one that took long does not replace one that
// was quick, until that is so old that it may be off by more. Else a link that is slow for a while,
// and then one way sooner than the other, would move the clock by half of its round trip, and
// starts with it.
func (c *Clock) Set(boot time.Duration, sent, received time.Time, db job.Micros) {
	rtt := received.Sub(sent)
	c.trip.Store(int64(rtt))
	r := reading{
		mono: sent.Add(rtt / 2),
		boot: boot + rtt/2,
		db:   db,
		err:  time.Duration(float64(rtt/2)*(1+drift)) + time.Millisecond/10,
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	old, slept := c.at.Load(), false
	if old != nil {
		if d := c.sleep(old); d > leastSleep { // in which MySQL's clock went on, and was not set
			slept = true
			old = &reading{mono: old.mono.Add(-d), db: old.db, err: old.err + leastSleep} // see sleep
		}
	}

	if old != nil && c.stepped(old, &r) {
		// MySQL's clock was set: what it showed before says nothing.
		if r.db > old.now(r.mono) {
			c.set.Store(&received)
		}
	} else if old != nil && !slept && old.errAt(r.mono) < r.err {
		return
	}

	c.at.Store(&r)
}

// stepped tells whether two readings cannot both be right.
func (c *Clock) stepped(old, r *reading) bool {
	diff := time.Duration(r.db-old.now(r.mono)) * time.Microsecond
	return diff.Abs() > old.errAt(r.mono)+r.err
}

// Slept tells whether the machine was suspended since the last reading was asked for. What Now says
// may be late by that until the next one.
func (c *Clock) Slept() bool {
	r := c.at.Load()
	return r != nil && c.sleep(r) > leastSleep
}

// leastSleep is what counts as a suspension. On Linux its two clocks go alike otherwise; elsewhere
// only one of them may follow NTP.
const leastSleep = 100 * time.Millisecond

// sleep is for how long the machine was suspended since a reading. The two clocks cannot be looked
// at at once: who is held up in between finds too little, not too much.
func (c *Clock) sleep(r *reading) time.Duration {
	boot := c.bootNow()
	return boot - r.boot - time.Since(r.mono)
}

func (c *Clock) bootNow() time.Duration {
	if c.boot != nil {
		return c.boot()
	}
	return boottime.Now()
}

// errAt is how far the reading may be off when it is carried on until t.
func (r *reading) errAt(t time.Time) time.Duration {
	return r.err + time.Duration(float64(t.Sub(r.mono))*drift)
}

func (r *reading) now(t time.Time) job.Micros { return r.db.Add(t.Sub(r.mono)) }

// Now is MySQL's clock now. It is zero before the first reading.
func (c *Clock) Now() job.Micros {
	r := c.at.Load()
	if r == nil {
		return 0
	}
	return r.now(time.Now())
}

// RoundTrip is how long the last reading took, from the question to the answer.
func (c *Clock) RoundTrip() time.Duration { return time.Duration(c.trip.Load()) }

// Distance is how long the quickest of the last readings took: what of a round trip is the way, and
// not MySQL being busy.
func (c *Clock) Distance() time.Duration {
	if r := c.at.Load(); r != nil {
		return 2 * r.err
	}
	return 0
}

// PutForward is how long ago a reading said that MySQL's clock was put forward; false: none has.
func (c *Clock) PutForward() (ago time.Duration, ever bool) {
	at := c.set.Load()
	if at == nil {
		return 0, false
	}
	return time.Since(*at), true
}

// Until is how long to wait for an instant of MySQL's clock; negative once it has passed.
func (c *Clock) Until(at job.Micros) time.Duration { return at.Sub(c.Now()) }

// Offset is MySQL's clock minus this node's wall clock. Nothing is decided by it; people look at
// it.
func (c *Clock) Offset() time.Duration {
	wall := time.Now().Round(0)
	return c.Now().Time().Sub(wall)
}
