package edit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Session is the life of the node process that makes the changes.
type Session interface {
	Now() job.Micros        // the clock of MySQL
	Mint(n int) (run int64) // the first of n run ids that nobody else uses
}

// Editor makes people's changes. Each is answered once it holds everywhere: nothing starts under an old definition any more.
//
// A change whose commit is unknown is settled before it is answered. If MySQL stays out of reach, the error is sql.Unknown,
// and the client must look.
type Editor struct {
	DB      *sql.DB
	Session Session
	Soon    func() // called when something may have to be claimed or started at once

	// StopsSeen is how long after the commit of a stop nodes may still start something against it, see schedule.StopsSeen.
	// Zero: as long as nodes with the usual spawn window may.
	StopsSeen time.Duration

	// Unsettled is how long some node may still use what MySQL's clock was before it was put forward; nil or zero: none does.
	Unsettled func() time.Duration

	Limited func(job.Limit) // called when a limit of an app refuses a change; nil: nobody counts

	mu   sync.Mutex
	apps map[string]int32
}

// Change is what somebody wants to do to a job.
type Change struct {
	Action  job.Action // create, update, rollback, pause, resume, delete, or recalendar
	ID      int64      // of the job, unless it is to be created
	Changes int32      // how often the job must have been changed before; zero: any number
	Spec    *job.Spec  // of create, update and rollback, with its defaults
	Paused  *bool      // of create and update: whether it is paused then; nil: as it is, and a new job is not
	Past    bool       // of create and update: a single due time that has passed is no error
	Pause   job.PauseRequest
	Reason  string // for the audit
}

// recalendar is the change of a job whose calendars have changed.
const recalendar job.Action = "calendar"

// Done is what became of a change.
type Done struct {
	Result  job.BulkResult
	Err     error // why it was refused
	ID      int64
	Version int32
	Changes int32
}

var (
	// ErrLocked means that somebody else keeps the row of a job locked.
	ErrLocked = errors.New("somebody else keeps the job locked; try again later")
	// errAgain means that a row was not as it was seen: the change begins again.
	errAgain = fmt.Errorf("it changes too often; try again: %w", job.ErrChanged)
)

const (
	// tries is how often a change begins again, and againPause the first pause before that. Each pause is twice as long.
	tries      = 8
	againPause = 5 * time.Millisecond
	// windowMargin is added to a spawn window, for what two readings of MySQL's clock may differ.
	windowMargin = 100 * time.Millisecond
	// longestWindow bounds the wait for a spawn window: MySQL's clock may have been put back behind the start. No node has a
	// longer window, its lead included.
	longestWindow = 10500 * time.Millisecond
)

// Each makes changes in one transaction, each of another job. A change that cannot be made is refused by itself, and does not
// hold up the others.
func (e *Editor) Each(ctx context.Context, changes []Change) ([]Done, error) {
	return e.apply(ctx, batch{changes: changes})
}

// All makes all changes, or none: a refused one is the error.
func (e *Editor) All(ctx context.Context, changes []Change) ([]Done, error) {
	return e.apply(ctx, batch{changes: changes, all: true})
}

// batch is what one transaction does.
type batch struct {
	changes   []Change
	list      func(context.Context, job.Micros) ([]Change, error) // makes the changes anew at each try; nil: they are given
	all       bool                                                // or none
	looks     bool                                                // list has looked at the jobs: if one is not so any more, it looks again
	before    writing                                             // what comes before the jobs in the lock order; nil: nothing
	after     func(*sql.Tx, batch, []Done) ([]*job.Entry, error)  // and behind them
	calendars func() []*job.Calendar                              // that before writes; nil: none
	now       job.Micros                                          // when the changes are made
	actor     job.Actor
}

// again reports whether an error means that a job is not as list has seen it.
func (b *batch) again(err error) bool {
	return b.looks && (errors.Is(err, sql.ErrExists) || errors.Is(err, sql.ErrNotFound) || errors.Is(err, job.ErrChanged))
}

// writing is a part of a transaction. It returns its lines of the audit.
type writing func(*sql.Tx, batch) ([]*job.Entry, error)

func (e *Editor) apply(ctx context.Context, b batch) ([]Done, error) {
	b.actor = job.ActorOf(ctx)
	for try, pause := 1, againPause; ; try, pause = try+1, 2*pause {
		done, window, err := e.once(ctx, b, try == tries)
		switch {
		case err == nil:
			e.Soon()
			// Also when nothing changed: a repeated request must not return before the original one.
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

// once sees, judges and writes. It returns what became of the changes, and until when something of their jobs may still be spawned.
func (e *Editor) once(ctx context.Context, b batch, last bool) (done []Done, window job.Micros, err error) {
	b.now = e.Session.Now()
	if b.list != nil {
		if b.changes, err = b.list(ctx, b.now); err != nil {
			return nil, 0, err
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

// transact is the transaction of a change. It returns the last line of the audit, which is still to be written.
func (e *Editor) transact(
	ctx context.Context, tx *sql.Tx, views []*view, b batch, last bool,
) (done []Done, window job.Micros, line *job.Entry, err error) {
	var lines []*job.Entry
	if b.before != nil {
		if lines, err = b.before(tx, b); err != nil {
			return nil, 0, nil, err
		}
	}

	verdicts, window, err := decide(tx, views, b, last)
	if err != nil {
		return nil, 0, nil, err
	}
	if done, err = write(tx, e.Session, verdicts, b); err != nil {
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

// refused tells whoever counts them of a change that a limit refused.
func (e *Editor) refused(err error) error {
	var over *job.OverLimit
	if e.Limited != nil && errors.As(err, &over) {
		e.Limited(over.Limit)
	}
	return err
}

// passed waits until a spawn window has passed. Runs that started under an old definition have been spawned by then, or never
// will be.
func (e *Editor) passed(ctx context.Context, window job.Micros) error {
	wait := min(window.Sub(e.Session.Now()), longestWindow) + windowMargin
	if e.Unsettled != nil { // by a clock that is behind, it has not passed
		wait = max(wait, min(e.Unsettled(), longestWindow))
	}
	if window == 0 || wait <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return &sql.Unknown{Err: fmt.Errorf("the change is made; a run that was starting may still begin: %w", context.Cause(ctx))}
	case <-time.After(wait):
		return nil
	}
}
