// Package compensate makes rows and memory agree again. The row of a run may say that this session
// is executing it, although no set of this process has it. Such a run was never spawned here,
// because a spawned run leaves its set only when its end is known to be written. The run becomes
// idle and starts again.
//
// Prepared runs need no compensation. A prepared run without a set becomes overdue, and any node
// starts it.
package compensate

import (
	"context"
	"log/slog"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Config configures a Compensator.
type Config struct {
	DB        *sql.DB
	Exclusion *lock.Exclusion
	Session   interface{ Number() trip.Owner }
	// Executing is the executing set of the process. Has also returns true for a launch while an
	// unknown commit of that launch is being settled.
	Executing   interface{ Has(trip.Launch) bool }
	Wake        loop.Wake // the executing set has dropped a run that it did not spawn
	WakeOverdue loop.Wake // runs became idle
	Log         *slog.Logger
}

// Compensator releases executing runs of a session that are in no set of its process.
type Compensator struct{ Config }

// New returns a compensator, ready to Run.
func New(cfg Config) *Compensator { return &Compensator{cfg} }

const (
	period = 10 * time.Second
	again  = time.Second // pause after an error or a release: the commit of a release may have been lost
	page   = 500
)

// Run compensates until ctx ends.
func (c *Compensator) Run(ctx context.Context) error {
	return loop.Loop{
		First:  loop.Jitter(period),
		Period: period,
		Retry:  again,
		Wake:   c.Wake,
		Log:    c.Log,
		Failed: "cannot look for runs that this node must release, trying again",
	}.Run(ctx, func(ctx context.Context, _ bool) (pause time.Duration, err error) {
		released, err := c.Compensate(ctx)
		if released > 0 {
			pause = again
		}
		return pause, err
	})
}

// Compensate compares all executing runs once, and returns the number of runs that it released.
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
		if !c.Executing.Has(runs[i].Launch) {
			out = append(out, runs[i].Launch)
		}
	}
	return out
}

// release checks the runs again while no other change of the node is in progress, because a run
// may have started or ended since it was read.
func (c *Compensator) release(ctx context.Context, strange []trip.Launch) (released int, err error) {
	err = c.Exclusion.Alone(ctx, lock.Change{
		Name: "compensate",
		Rows: func(tx *sql.Tx) error {
			var still []trip.Launch
			for _, l := range strange {
				if !c.Executing.Has(l) {
					still = append(still, l)
				}
			}
			n, err := trip.Release(tx, c.Session.Number(), trip.Executing, still)
			released = int(n)
			return err
		},
		// An unknown commit is not looked up: the next comparison sees its result.
		Settle: func(*sql.Tx) error { return nil },
		Sets:   func() {},
	})
	if released > 0 && err == nil {
		c.Log.Warn("released runs that were marked started but not executed", "runs", released)
		c.WakeOverdue.Up()
	}

	return released, err
}
