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

// Exclusion is the process-level mutex around MySQL's transactions. One serves a whole node.
// Whoever waits for it may give up: somebody can be holding it for as long as MySQL is away, and a
// node must stop all the same.
type Exclusion struct {
	db  *sql.DB
	log *slog.Logger
	// Took is told how long each change took, with what it waited for and however it ended; nil:
	// nobody counts. It is set before the first one.
	Took func(name string, took time.Duration)

	sem *semaphore.Weighted // first come, first served, so that no stream of changes keeps out who wants to be alone
}

// alone is the weight of who wants to be alone; a change among others weighs 1.
const alone = math.MaxInt32

// New returns the exclusion of a node.
func New(db *sql.DB, log *slog.Logger) *Exclusion {
	return &Exclusion{db: db, log: log, sem: semaphore.NewWeighted(alone)}
}

// Change is one transition of some runs.
type Change struct {
	// Name says what it is, for logs: "claim", "start", …
	Name string
	// Locks are the lock rows to take first.
	Locks []sql.LockID
	// Rows changes the rows. It may run several times; the last time counts.
	Rows func(tx *sql.Tx) error
	// Settle finds out, by locking reads, what stands of a Rows whose commit is unknown, and notes
	// it where Sets will look. It may run several times; the last time counts. Where several
	// servers take writes, a locking read on one does not wait for a commit on another. So unless
	// it is no matter whether the commit still arrives, Settle writes a row that Rows has written:
	// the one that comes second is refused then.
	Settle func(tx *sql.Tx) error
	// Sets makes the sets say what the rows say. It runs at most once, and only when the rows are
	// known.
	Sets func()
}

// settlePause is how long a settling read waits before it is tried again.
const settlePause = 100 * time.Millisecond

// Do makes a change. An error means that no row was changed and Sets did not run, with one
// exception: when ctx ends before an unknown commit is settled, the rows may have been changed.
// Then the session is over, its sets are about to be thrown away, and its rows are found by their
// owner.
func (e *Exclusion) Do(ctx context.Context, c Change) error {
	return e.hold(ctx, 1, c)
}

// Alone makes a change while no other change is under way.
func (e *Exclusion) Alone(ctx context.Context, c Change) error {
	return e.hold(ctx, alone, c)
}

// Quiet returns once every change that was under way is over, its sets included, or with an error
// when ctx ends first.
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
	if e.Took != nil {
		began := time.Now()
		defer func() { e.Took(c.Name, time.Since(began)) }()
	}
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
		e.log.Warn("commit unknown, settling", "change", c.Name, "error", err)
		if err := e.settle(ctx, c); err != nil {
			return err
		}
	}

	// If we die here, the rows stand and no set knows them: they are found by their owner, whose
	// session has ended with us.
	failpoint.Here("before the sets of", c.Name)
	c.Sets()
	failpoint.Here("behind the sets of", c.Name)
	return nil
}

// settle reads until a reading is known to be good: its own commit must be known, for what it wrote
// stands then between what was read and a commit that still arrives.
func (e *Exclusion) settle(ctx context.Context, c Change) error {
	for {
		err := e.db.Tx(ctx, c.Settle)
		if err == nil {
			e.log.Info("commit settled", "change", c.Name)
			return nil
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("settle %s: %w", c.Name, context.Cause(ctx))
		case <-time.After(settlePause):
		}
	}
}
