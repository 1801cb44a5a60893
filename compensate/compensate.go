// Package compensate makes rows and memory agree again. A run that executes for this session by its
// row, and in no set of this process, was never spawned here: a spawned run leaves its set only
// when its end is known to be written. It is made idle, and starts again.
//
// Prepared runs need no compensation. One that is in no set becomes overdue, and any node starts
// it.
package compensate

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Compensator releases the executing runs of a session that no set of its process knows.
type Compensator struct {
	DB        *sql.DB
	Exclusion *lock.Exclusion
	Session   interface{ Number() trip.Owner }
	// Known reports whether a set holds the launch, or a transaction with an unknown end is being
	// settled for it.
	Known func(trip.Launch) bool
	Freed func() // called when runs became idle
	Log   *slog.Logger

	signal chan struct{}
}

// New completes a compensator. Run it.
func New(c Compensator) *Compensator {
	c.signal = make(chan struct{}, 1)
	return &c
}

// Look makes the next look come at once: the executing set has forgotten a run that it did not
// spawn.
func (c *Compensator) Look() {
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

const (
	period = 10 * time.Second
	page   = 500
)

// Run compensates until ctx is over.
func (c *Compensator) Run(ctx context.Context) error {
	wait := rand.N(period)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		case <-c.signal:
		}

		wait = period
		if _, err := c.Compensate(ctx); err != nil && ctx.Err() == nil {
			c.Log.Warn("cannot compare rows and sets, trying again", "error", err)
		}
	}
}

// Compensate makes one look at all executing runs, and returns how many it released.
func (c *Compensator) Compensate(ctx context.Context) (released int, err error) {
	for after := (trip.Held{}); ; {
		runs, err := trip.ExecutingRuns(c.DB.Reader(ctx), c.Session.Number(), after, page)
		if err != nil {
			return released, err
		}

		if strange := c.unknown(runs); len(strange) > 0 {
			n, err := c.release(ctx, strange)
			released += n
			if err != nil {
				return released, err
			}
		}

		if len(runs) < page {
			return released, nil
		}
		after = runs[len(runs)-1]
	}
}

func (c *Compensator) unknown(runs []trip.Held) (out []trip.Launch) {
	for i := range runs {
		if !c.Known(runs[i].Launch) {
			out = append(out, runs[i].Launch)
		}
	}
	return out
}

// release looks again while nothing else of the node changes rows or sets: a run may have started
// or ended since it was read.
func (c *Compensator) release(ctx context.Context, strange []trip.Launch) (released int, err error) {
	err = c.Exclusion.Alone(ctx, lock.Change{
		Name: "compensate",
		Rows: func(tx *sql.Tx) error {
			var still []trip.Launch
			for _, l := range strange {
				if !c.Known(l) {
					still = append(still, l)
				}
			}
			n, err := trip.Release(tx, c.Session.Number(), trip.Executing, still)
			released = int(n)
			return err
		},
		Settle: func(*sql.Tx) error { return nil }, // the next look sees what stands
		Sets:   func() {},
	})
	if released > 0 && err == nil {
		c.Log.Warn("released runs that were started and never spawned", "runs", released)
		c.Freed()
	}

	return released, err
}
