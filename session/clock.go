package session

import (
	"sync"
	"sync/atomic"
	"time"

	"go-crontab/internal/boottime"
	"go-crontab/job"
)

// Clock is MySQL's clock as this node knows it: a reading, extrapolated with the node's monotonic
// clock. Once it has been set, it is safe for concurrent use.
type Clock struct {
	at   atomic.Pointer[reading]
	trip atomic.Int64              // duration of the last reading
	set  atomic.Pointer[time.Time] // when a reading showed that MySQL's clock was put forward
	mu   sync.Mutex                // serializes Set
	boot func() time.Duration      // boottime.Now, except in tests
}

// NewClock returns a clock that has not been set yet.
func NewClock() *Clock { return &Clock{boot: boottime.Now} }

// reading says that MySQL's clock showed db at the monotonic instant mono, with an error of at
// most err.
type reading struct {
	mono time.Time
	boot time.Duration // the same instant on a clock that does not stop while the machine is suspended
	db   job.Micros
	err  time.Duration
}

// drift bounds how far two clocks diverge, in seconds per second.
const drift = 0.0005

// Set takes a reading of MySQL's clock that was requested at sent and answered at received. boot
// is the boot time, read before sent. A delay between these two looks like a suspension, and only
// causes another reading. A suspension during the request counts as a suspension after the
// reading, because MySQL may have read its clock earlier.
//
// Set keeps the reading with the smallest error. A slow reading replaces a quick one only when the
// quick one is so old that its error may be larger. Without this rule, a connection that is slow
// in one direction for a while would move the clock, and with it the starts, by half of the round
// trip.
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
		if d := c.sleep(old); d > leastSleep { // MySQL's clock ran on during the suspension
			slept = true
			old = &reading{mono: old.mono.Add(-d), db: old.db, err: old.err + leastSleep} // see sleep
		}
	}

	if old != nil && c.stepped(old, &r) {
		// MySQL's clock was set: earlier readings are void.
		if r.db > old.now(r.mono) {
			c.set.Store(&received)
		}
	} else if old != nil && !slept && old.errAt(r.mono) < r.err {
		return
	}

	c.at.Store(&r)
}

// stepped reports whether two readings contradict each other.
func (c *Clock) stepped(old, r *reading) bool {
	diff := time.Duration(r.db-old.now(r.mono)) * time.Microsecond
	return diff.Abs() > old.errAt(r.mono)+r.err
}

// Slept reports whether the machine was suspended since the last reading. After a suspension, Now
// may be late by its duration until the next reading.
func (c *Clock) Slept() bool {
	r := c.at.Load()
	return r != nil && c.sleep(r) > leastSleep
}

// leastSleep is the shortest suspension that counts. On Linux the monotonic and the boot clock
// differ only by suspensions. On other systems perhaps only one of the two follows NTP, so the two
// drift apart a little.
const leastSleep = 100 * time.Millisecond

// sleep returns the time for which the machine was suspended since a reading. The two clocks
// cannot be read at the same instant. A delay between the two reads makes the result too small,
// never too large.
func (c *Clock) sleep(r *reading) time.Duration {
	boot := c.boot()
	return boot - r.boot - time.Since(r.mono)
}

// errAt bounds the error of the reading when it is extrapolated to instant t.
func (r *reading) errAt(t time.Time) time.Duration {
	return r.err + time.Duration(float64(t.Sub(r.mono))*drift)
}

func (r *reading) now(t time.Time) job.Micros { return r.db.Add(t.Sub(r.mono)) }

// Now returns the present time of MySQL's clock, or zero before the first reading.
func (c *Clock) Now() job.Micros {
	r := c.at.Load()
	if r == nil {
		return 0
	}
	return r.now(time.Now())
}

// RoundTrip returns the duration of the last reading, from request to answer.
func (c *Clock) RoundTrip() time.Duration { return time.Duration(c.trip.Load()) }

// PutForward returns the time since a reading showed that MySQL's clock was put forward. ever is
// false if no reading has shown that.
func (c *Clock) PutForward() (ago time.Duration, ever bool) {
	at := c.set.Load()
	if at == nil {
		return 0, false
	}
	return time.Since(*at), true
}

// Until returns the wait until an instant of MySQL's clock; negative if the instant has passed.
func (c *Clock) Until(at job.Micros) time.Duration { return at.Sub(c.Now()) }

// Offset returns MySQL's clock minus this node's wall clock. It is only for display; no decision
// depends on it.
func (c *Clock) Offset() time.Duration {
	wall := time.Now().Round(0)
	return c.Now().Time().Sub(wall)
}
