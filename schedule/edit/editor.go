package edit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql"
)

// Session is the life of the node process that makes the changes.
type Session interface {
	Now() job.Micros        // the clock of MySQL
	Mint(n int) (run int64) // the first of n unused run ids

	// Unsettled returns how long some node may still use an old reading of MySQL's clock, after the
	// clock was put forward. Zero: no node does.
	Unsettled() time.Duration
}

// Config configures an Editor.
type Config struct {
	DB      *sql.DB
	Session Session
	Metrics interface{ Limited(job.Limit) } // counts changes that a limit of an app refuses

	// StopsSeen is the time after the commit of a stop in which nodes may still start runs against
	// it, see schedule.StopsSeen. Zero means the usual spawn window.
	StopsSeen time.Duration

	// After a change there may be runs to claim, start or kill at once.
	WakeClaimer, WakeOverdue, WakeWishes loop.Wake
}

// Editor makes people's changes. It answers once a change holds everywhere: from then on no node
// starts a run under an old definition.
//
// If a commit is unknown, the editor settles it before it answers. If MySQL stays out of reach, the
// error is sql.Unknown, and the client must check.
type Editor struct {
	Config

	mu   sync.Mutex
	apps map[string]int32
}

// New returns an editor.
func New(cfg Config) *Editor { return &Editor{Config: cfg} }

// wake wakes the loops of this node that may have work after a change.
func (e *Editor) wake() {
	e.WakeClaimer.Up()
	e.WakeOverdue.Up()
	e.WakeWishes.Up()
}

// Change is a requested change of a job.
type Change struct {
	Action  job.Action // create, update, rollback, pause, resume, delete, or recalendar
	ID      int64      // of the job; not used by create
	Changes int32      // required number of earlier changes of the job; zero: any
	Spec    *job.Spec  // for create, update and rollback, with its defaults
	Paused  *bool      // for create and update: the new pause state; nil: unchanged (a new job: not paused)
	Force   bool       // for delete: even if other jobs follow the job
	Past    bool       // for create and update: accept a single due time in the past
	Pause   job.PauseRequest
	Reason  string // for the audit

	// Finished is for delete: only a job without further due times whose runs are all over.
	Finished bool
}

// recalendar is the change of a job after a change of its calendars.
const recalendar job.Action = "calendar"

// Done is the result of a change.
type Done struct {
	Result  job.BulkResult
	Err     error // the reason of a refusal
	ID      int64
	Version int32
	Changes int32
}

var (
	// ErrLocked means that another transaction keeps the row of the job locked.
	ErrLocked = errors.New("another change keeps the job locked; try again later")
	// errAgain means that a row has changed since it was read. Then the change begins again.
	errAgain = fmt.Errorf("the row keeps changing; try again: %w", job.ErrChanged)
)

const (
	// tries bounds the attempts at a change. The pause after the first attempt is againPause. Each
	// further pause is twice as long.
	tries      = 8
	againPause = 5 * time.Millisecond
	// windowMargin is added to a spawn window, because two readings of MySQL's clock may differ.
	windowMargin = 100 * time.Millisecond
	// longestWindow bounds the wait for a spawn window, in case MySQL's clock was put back after
	// the start. It is the longest window and lead that a node can have.
	longestWindow = 10500 * time.Millisecond
)

// Each makes changes of different jobs in one transaction. If a change is refused, the others are
// still made.
func (e *Editor) Each(ctx context.Context, changes []Change) ([]Done, error) {
	return e.apply(ctx, batch{changes: changes})
}

// All makes all changes or none. If a change is refused, the first refusal is the error.
func (e *Editor) All(ctx context.Context, changes []Change) ([]Done, error) {
	return e.apply(ctx, batch{changes: changes, all: true})
}

// batch is the content of a transaction.
type batch struct {
	changes []Change

	// list computes the changes, again in each try. If list is nil, changes has them.
	list  func(context.Context, job.Micros) ([]Change, error)
	all   bool // all changes or none
	looks bool // list reads the jobs, and is called again if a job has changed since

	// before writes the rows that precede jobs in the lock order, and after writes the rest. Both
	// may be nil.
	before writing
	after  func(*sql.Tx, batch, []Done) ([]*job.Entry, error)

	calendars func() []*job.Calendar // the calendars that before writes; may be nil
	now       job.Micros             // the time of the changes
	actor     job.Actor
}

// again reports whether an error means that a job has changed since list looked at it.
func (b *batch) again(err error) bool {
	return b.looks &&
		(errors.Is(err, sql.ErrExists) || errors.Is(err, sql.ErrNotFound) || errors.Is(err, job.ErrChanged))
}

// writing is a part of a transaction. It returns its audit lines.
type writing func(*sql.Tx, batch) ([]*job.Entry, error)

func (e *Editor) apply(ctx context.Context, b batch) ([]Done, error) {
	b.actor = job.ActorOf(ctx)
	for try, pause := 1, againPause; ; try, pause = try+1, 2*pause {
		done, window, err := e.once(ctx, b, try == tries)
		switch {
		case err == nil:
			e.wake()
			// Wait even if nothing has changed: a repeated request must not return before the
			// original one.
			return done, e.passed(ctx, window)
		case !errors.Is(err, errAgain) || try == tries:
			return nil, err
		}

		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// once makes one try: it reads, judges and writes. It returns the results, and the end of the last
// spawn window of the changed jobs.
func (e *Editor) once(ctx context.Context, b batch, last bool) (done []Done, window job.Micros, err error) {
	b.now = e.Session.Now()
	if b.list != nil {
		if b.changes, err = b.list(ctx, b.now); err != nil {
			return nil, 0, err
		}
	}
	if job.Forced(ctx) {
		b.changes = slices.Clone(b.changes)
		for i := range b.changes {
			b.changes[i].Force = true
		}
	}
	views, err := e.see(ctx, b)
	if err != nil {
		return nil, 0, err
	}

	err = e.DB.Record(ctx, func(tx *sql.Tx) (line *job.Entry, err error) {
		done, window, line, err = e.transact(ctx, tx, views, b, last)
		return line, err
	})
	if errors.Is(err, sql.ErrMoved) || b.again(err) {
		err = errAgain
	}
	return done, window, e.refused(err)
}

// transact is the transaction of a change. It returns the last audit line, which the caller writes.
func (e *Editor) transact(
	ctx context.Context, tx *sql.Tx, views []*view, b batch, last bool,
) (done []Done, window job.Micros, line *job.Entry, err error) {
	var lines []*job.Entry
	if b.before != nil {
		if lines, err = b.before(tx, b); err != nil {
			return nil, 0, nil, err
		}
	}

	verdicts, linked, window, err := decide(tx, views, b, last)
	if err != nil {
		return nil, 0, nil, err
	}
	if done, err = write(tx, e.Session, verdicts, linked, b); err != nil {
		return nil, 0, nil, err
	}
	if o := job.OnceOf(ctx); o != nil && len(done) == 1 {
		o.JobID = done[0].ID
	}
	lines = append(lines, linesOf(verdicts)...)

	if b.after != nil {
		more, err := b.after(tx, b, done)
		if err != nil {
			return nil, 0, nil, err
		}
		lines = append(lines, more...)
	}
	line, err = note(tx, lines, b)
	return done, window, line, err
}

// refused counts a refusal by a limit, and returns the error.
func (e *Editor) refused(err error) error {
	var over *job.OverLimit
	if errors.As(err, &over) {
		e.Metrics.Limited(over.Limit)
	}
	return err
}

// passed waits until a spawn window has passed. From then on no run can begin under an old
// definition.
func (e *Editor) passed(ctx context.Context, window job.Micros) error {
	wait := min(window.Sub(e.Session.Now()), longestWindow) + windowMargin
	wait = max(wait, min(e.Session.Unsettled(), longestWindow)) // the window may be open by an old reading of the clock
	if window == 0 || wait <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		err := context.Cause(ctx)
		return &sql.Unknown{Err: fmt.Errorf("the change is made, but a run that was starting may still begin: %w", err)}
	case <-time.After(wait):
		return nil
	}
}
