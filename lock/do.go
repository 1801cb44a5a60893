package lock

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"go-crontab/internal/failpoint"
	"go-crontab/sql"

	"golang.org/x/sync/semaphore"
)

// Exclusion is the mutex of a process around its MySQL transactions. A whole node shares one
// Exclusion. Another change may hold it while MySQL is away, and the node must still be able to
// stop. So a wait for it ends with the context.
type Exclusion struct {
	db      *sql.DB
	log     *slog.Logger
	metrics Metrics

	// sem is fair, so that a stream of changes cannot starve Alone.
	sem *semaphore.Weighted
}

// alone is the weight of an exclusive change; an ordinary change weighs 1.
const alone = math.MaxInt32

// Metrics receives the duration of each change, including its wait, even if the change failed.
type Metrics interface {
	Changed(name string, took time.Duration)
}

// Unmeasured are Metrics that measure nothing.
type Unmeasured struct{}

// Changed does nothing.
func (Unmeasured) Changed(string, time.Duration) {}

// New returns the exclusion of a node.
func New(db *sql.DB, metrics Metrics, log *slog.Logger) *Exclusion {
	return &Exclusion{db: db, log: log, metrics: metrics, sem: semaphore.NewWeighted(alone)}
}

// Change is a transition of runs.
type Change struct {
	// Name names the change in logs: "claim", "start", …
	Name string
	// Locks are the lock rows to take first.
	Locks []sql.LockID
	// Rows changes the rows. It may run several times. Only its last run counts.
	Rows func(tx *sql.Tx) error
	// Settle runs if the commit of Rows is unknown. It finds out, by locking reads, which effects
	// of Rows were written, and stores the answer for Sets. It may run several times. Only its
	// last run counts.
	//
	// On a multi-writer cluster, a locking read on one server does not wait for a commit on
	// another server. So Settle also writes a row that Rows has written: then the cluster refuses
	// the later of the two commits. If a late commit does no harm, Settle need not do so.
	Settle func(tx *sql.Tx) error
	// Sets updates the sets in memory to match the rows. It runs at most once, and only when the
	// rows are known.
	Sets func()
}

// settlePause is the pause before a settling read is tried again.
const settlePause = 100 * time.Millisecond

// Do makes a change. After an error, no row was changed and Sets did not run. There is one
// exception: if ctx ends before an unknown commit is settled, the rows may have changed. Then the
// session is over, its sets are about to be dropped, and its rows are found by their owner.
func (e *Exclusion) Do(ctx context.Context, c Change) error {
	return e.hold(ctx, 1, c)
}

// Alone makes a change while no other change is in progress.
func (e *Exclusion) Alone(ctx context.Context, c Change) error {
	return e.hold(ctx, alone, c)
}

// Quiet returns once every change in progress is over, including its Sets. If ctx ends first,
// Quiet returns an error.
func (e *Exclusion) Quiet(ctx context.Context) error {
	if err := e.sem.Acquire(ctx, alone); err != nil {
		return context.Cause(ctx)
	}
	e.sem.Release(alone)
	return nil
}

func (e *Exclusion) hold(ctx context.Context, weight int64, c Change) error {
	if e.sem.Acquire(ctx, weight) != nil {
		return fmt.Errorf("%s: %w", c.Name, context.Cause(ctx))
	}
	defer e.sem.Release(weight)

	began := time.Now()
	defer func() { e.metrics.Changed(c.Name, time.Since(began)) }()
	return e.do(ctx, c)
}

func (e *Exclusion) do(ctx context.Context, c Change) error {
	err := e.db.Tx(ctx, func(tx *sql.Tx) error {
		if err := tx.TakeLocks(c.Locks); err != nil {
			return err
		}
		return c.Rows(tx)
	})

	switch {
	case err == nil: // applied
	case !sql.IsUnknown(err): // refused
		return err
	default: // unknown
		e.log.Warn("the outcome of a commit is unknown, checking it", "change", c.Name, "error", err)
		if err := e.settle(ctx, c); err != nil {
			return err
		}
	}

	// If we die here, the rows are written but no set has them. The rows are found by their owner,
	// whose session has ended with us.
	failpoint.Here("before the sets of", c.Name)
	c.Sets()
	failpoint.Here("behind the sets of", c.Name)
	return nil
}

// settle repeats Settle until its own commit is known to be applied. Only then is a late commit of
// Rows certainly refused.
func (e *Exclusion) settle(ctx context.Context, c Change) error {
	for {
		err := e.db.Tx(ctx, c.Settle)
		if err == nil {
			e.log.Info("the outcome of the commit is known", "change", c.Name)
			return nil
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("settle %s: %w", c.Name, context.Cause(ctx))
		case <-time.After(settlePause):
		}
	}
}
