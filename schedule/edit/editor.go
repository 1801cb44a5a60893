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

	mu   sync.Mutex
	apps map[string]int32
}

// Change is what somebody wants to do to a job.
type Change struct {
	Action  job.Action // create, update, rollback, pause, resume, delete, or recalendar
	ID      int64      // of the job, unless it is to be created
	Changes int32      // how often the job must have been changed before; zero: any number
	Spec    *job.Spec  // of create, update and rollback, with its defaults
	Paused  bool       // of create: it begins paused
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
	errAgain = errors.New("the job changes too often; try again")
)

const (
	// tries is how often a change begins again, and againPause the first pause before that. Each pause is twice as long.
	tries      = 8
	againPause = 5 * time.Millisecond
	// windowMargin is added to a spawn window, for what two readings of MySQL's clock may differ.
	windowMargin = 100 * time.Millisecond
	// longestWindow bounds the wait for a spawn window: MySQL's clock may have been put back behind the start.
	longestWindow = 5 * time.Second
)

// Apply makes changes in one transaction, each of another job. A change that cannot be made is refused by itself, and does not
// hold up the others.
func (e *Editor) Apply(ctx context.Context, changes []Change) ([]Done, error) {
	return e.apply(ctx, batch{changes: changes})
}

// ApplyAll makes all changes, or none: a refused one is the error.
func (e *Editor) ApplyAll(ctx context.Context, changes []Change) ([]Done, error) {
	return e.apply(ctx, batch{changes: changes, all: true})
}

// batch is what one transaction does.
type batch struct {
	changes  []Change
	list     func(context.Context) ([]Change, error)  // makes the changes anew at each try; nil: they are given
	all      bool                                     // or none
	before   func(*sql.Tx, batch) (*job.Entry, error) // what comes before the jobs in the lock order; nil: nothing
	calendar *job.Calendar                            // that before writes
	now      job.Micros                               // when the changes are made
	actor    job.Actor
}

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
		if b.changes, err = b.list(ctx); err != nil {
			return nil, 0, err
		}
	}
	views, err := e.see(ctx, b)
	if err != nil {
		return nil, 0, err
	}

	err = e.DB.Record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		var first *job.Entry
		if b.before != nil {
			if first, err = b.before(tx, b); err != nil {
				return nil, err
			}
		}
		verdicts, until, err := decide(tx, views, b, last)
		if err != nil {
			return nil, err
		}
		window = until
		done, err = write(tx, e.Session, verdicts, b)
		if err != nil {
			return nil, err
		}
		if o := job.OnceOf(ctx); o != nil && len(done) == 1 {
			o.JobID = done[0].ID
		}
		return note(tx, verdicts, first, b)
	})
	if errors.Is(err, sql.ErrMoved) {
		err = errAgain
	}
	return done, window, err
}

// passed waits until a spawn window has passed. Runs that started under an old definition have been spawned by then, or never
// will be.
func (e *Editor) passed(ctx context.Context, window job.Micros) error {
	wait := min(window.Sub(e.Session.Now()), longestWindow) + windowMargin
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
