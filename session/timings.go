package session

import (
	"fmt"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// DefaultExpiry is the time without a beat after which a session counts as dead.
const DefaultExpiry = 20 * time.Second

// MinExpiry and maxExpiry bound the expiry. MySQL's timeouts are whole seconds, so a shorter
// expiry does not work.
const (
	MinExpiry = 5 * time.Second
	maxExpiry = 10 * time.Minute
)

// killLatency bounds the time for a SIGKILL to arrive and the processes to end.
const killLatency = time.Second

// Timings are all derived from the expiry, so the nodes of a cluster need the same expiry and
// nothing else.
type Timings struct {
	Expiry time.Duration // peers bury a session that is silent for this time
	Beat   time.Duration // between beats
	Scan   time.Duration // between scans for dead sessions
	Stale  time.Duration // no run starts under a lease older than this
	Kill   time.Duration // commands get SIGTERM when the lease is this old
	Grace  time.Duration // commands get SIGKILL this time after SIGTERM
	End    time.Duration // a node that is still active is killed when its lease is this old
	SQL    sql.Timeouts
}

// NewTimings derives the timings, or returns an error if the expiry cannot work.
func NewTimings(expiry time.Duration) (Timings, error) {
	if expiry < MinExpiry || expiry > maxExpiry {
		return Timings{}, fmt.Errorf("session expiry: %s, want %s to %s",
			job.Duration(expiry), job.Duration(MinExpiry), job.Duration(maxExpiry))
	}

	t := Timings{
		Expiry: expiry,
		Beat:   expiry / 10,
		Scan:   min(500*time.Millisecond, expiry/10),
		Stale:  expiry * 4 / 10,
		Kill:   expiry * 6 / 10,
		Grace:  expiry / 10,
		End:    expiry * 75 / 100,
		SQL: sql.Timeouts{
			Dial:     max(time.Second, expiry/10),
			Read:     max(1500*time.Millisecond, expiry*15/100),
			LockWait: max(time.Second, (expiry / 10).Truncate(time.Second)),
			Idle:     (expiry * 4 / 10).Truncate(time.Second),
		},
	}

	return t, t.check()
}

func (t Timings) check() error {
	dead := (max(t.Kill+t.Grace, t.End) + killLatency) * 101 / 100
	switch {
	case dead >= t.Expiry:
		return fmt.Errorf("commands would be dead only after %s, want less than the session expiry %s", dead, t.Expiry)
	case !(t.SQL.LockWait < t.SQL.Read && t.SQL.Read < t.Stale):
		return fmt.Errorf("want lock wait (%s) < read timeout (%s) < stale lease (%s)", t.SQL.LockWait, t.SQL.Read,
			t.Stale)
	}
	return nil
}
