// Package compensate frees the rows of this session that no set of it knows.
//
// It is the net beside the settling of unknown commits, and the one way back to idle for what a node gives up on its
// own: a start that was never spawned because the lease was stale or its window had passed, tasks for which there was
// no free slot, and everything prepared when a node drains. Whoever gives a task up takes it out of its set and calls
// [Compensator.Wake]; the row follows here.
//
// A row that stands executing for this session and is in no set was never spawned by this process: a spawned attempt
// leaves the executing set only once its run is known to be written. So it goes back to idle, to be started elsewhere
// or by the misfire policy.
package compensate

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// Set is one of the sets that mirror rows.
type Set interface {
	Has(task int64, l job.Launch) bool
}

// Compensator compares the rows of one session with its sets.
type Compensator struct {
	DB        *sql.DB
	Exclusion *lock.Exclusion
	Session   uuid.UUID
	Sets      []Set
	Freed     func() // called when tasks became idle
	// NothingOwned tells that the session owned no row a moment ago, so that a look is not worth a statement; nil: nobody knows.
	NothingOwned func() bool
	Log          *slog.Logger

	wake chan struct{}
}

const (
	period = 3 * time.Second
	batch  = 500
	page   = 2000
)

// New sets what has no useful zero value.
func New(c Compensator) *Compensator {
	c.wake = make(chan struct{}, 1)
	return &c
}

// Wake asks for a look now: something was given up.
func (c *Compensator) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run looks until ctx ends.
func (c *Compensator) Run(ctx context.Context) error {
	wait := rand.N(period)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
			if wait == period && c.NothingOwned != nil && c.NothingOwned() {
				continue
			}
		case <-c.wake:
		}
		wait = period
		if _, err := c.Compensate(ctx); err != nil && ctx.Err() == nil {
			c.Log.Warn("cannot look for tasks of this node that no set has, trying again", "error", err)
			wait = period / 10
		}
	}
}

// Compensate takes one look at all rows of the session and returns how many it owns still.
func (c *Compensator) Compensate(ctx context.Context) (owned int, err error) {
	for after := int64(0); ; {
		began := time.Now()
		rows, err := c.DB.SessionTasks(ctx, c.Session, after, page)
		if err != nil {
			return owned, err
		}
		if len(rows) > 0 {
			after = rows[len(rows)-1].ID
		}
		unknown := c.unknown(rows)
		if len(unknown) > 0 {
			// Most of them are between a commit and the change of a set that follows once that is known here, a round trip
			// later at most. Who is sure has to be alone, and that holds up every start.
			select {
			case <-ctx.Done():
				return owned, context.Cause(ctx)
			case <-time.After(min(time.Since(began), time.Second)):
			}
			unknown = c.unknown(unknown) // of these alone: others have ended since
		}
		owned += len(rows)
		for len(unknown) > 0 {
			n := min(batch, len(unknown))
			freed, err := c.free(ctx, ids(unknown[:n]))
			if err != nil {
				return owned, err
			}
			owned -= freed
			unknown = unknown[n:]
		}
		if len(rows) < page {
			return owned, nil
		}
	}
}

// unknown are the rows that are in no set now.
func (c *Compensator) unknown(rows []sql.TaskRow) (out []sql.TaskRow) {
	for _, r := range rows {
		if !c.known(r) {
			out = append(out, r)
		}
	}
	return out
}

func ids(rows []sql.TaskRow) (out []int64) {
	for _, r := range rows {
		out = append(out, r.ID)
	}
	return out
}

func (c *Compensator) known(r sql.TaskRow) bool {
	for _, s := range c.Sets {
		if s.Has(r.ID, r.Launch) {
			return true
		}
	}
	return false
}

// free looks again at rows that seemed to be in no set, now alone: a claim or a start may have been between its rows
// and its set when they were read.
func (c *Compensator) free(ctx context.Context, ids []int64) (int, error) {
	var idle []int64
	err := c.Exclusion.Alone(ctx, lock.Change{
		Name: "compensate",
		Rows: func(tx *sql.Tx) error {
			idle = nil
			rows, _, err := tx.LockFreeTasks(ids) // nothing else goes on here: a row that somebody has locked is for the next look
			if err != nil {
				return err
			}
			for _, id := range ids {
				if r, ok := rows[id]; ok && r.Launch.Session == c.Session && !c.known(r) {
					idle = append(idle, id)
				}
			}
			return tx.Free(idle)
		},
		// Whatever stands of it: the next look sees what is left.
		Settle: func(*sql.Tx) error { return nil },
		Sets:   func() {},
	})
	if err != nil {
		return 0, err
	}
	if len(idle) > 0 {
		c.Log.Info("gave tasks back", "tasks", len(idle))
		c.Freed()
	}
	return len(idle), nil
}
