package result

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Session is the life of the node process whose runs end.
type Session interface {
	Number() trip.Owner
}

// Recorder writes the ends of runs, many in one transaction.
type Recorder struct {
	Exclusion *lock.Exclusion
	Session   Session
	Log       *slog.Logger
	Written   func([]trip.End) // called with ends whose rows are known to be written, or to belong to somebody else

	mu      sync.Mutex
	waiting []trip.End
	urgent  bool // an end among them lets another run begin
	signal  chan struct{}
	batch   sql.Batch
}

const (
	finishBatch = 800
	// gather is how long an end waits for others that share its transaction.
	gather = 10 * time.Millisecond
)

// New returns a recorder. Run it.
func New(x *lock.Exclusion, s Session, log *slog.Logger, written func([]trip.End)) *Recorder {
	return &Recorder{Exclusion: x, Session: s, Log: log, Written: written, signal: make(chan struct{}, 1), batch: sql.NewBatch(finishBatch)}
}

// Put takes the end of a run. It never blocks. Urgent ends are not kept waiting for others.
func (r *Recorder) Put(e trip.End, urgent bool) {
	r.mu.Lock()
	r.waiting = append(r.waiting, e)
	r.urgent = r.urgent || urgent
	wake := r.urgent || len(r.waiting) == 1 || len(r.waiting) == finishBatch
	r.mu.Unlock()
	if wake {
		select {
		case r.signal <- struct{}{}:
		default:
		}
	}
}

// Run writes ends until ctx is over.
func (r *Recorder) Run(ctx context.Context) error {
	for {
		if err := r.await(ctx); err != nil {
			return err
		}
		if err := r.finish(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("cannot write how runs ended, trying again", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(r.batch.Pause()):
			}
		}
	}
}

// await returns when there is something to write, a moment after the first of it.
func (r *Recorder) await(ctx context.Context) error {
	deadline := (<-chan time.Time)(nil)
	for {
		r.mu.Lock()
		n, urgent := len(r.waiting), r.urgent
		r.mu.Unlock()
		if urgent || n >= finishBatch {
			return nil
		}
		if n > 0 && deadline == nil {
			deadline = time.After(gather)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline:
			return nil
		case <-r.signal:
		}
	}
}

// finish writes one batch.
func (r *Recorder) finish(ctx context.Context) error {
	r.mu.Lock()
	ends := r.waiting[:min(len(r.waiting), r.batch.Size())]
	r.mu.Unlock()
	if len(ends) == 0 {
		return nil
	}

	session := r.Session.Number()
	err := r.Exclusion.Do(ctx, lock.Change{
		Name: "finish",
		Rows: func(tx *sql.Tx) error {
			_, err := trip.Finish(tx, session, ends)
			return err // rows that are not ours any more were not changed: somebody wrote these runs as lost
		},
		Settle: func(tx *sql.Tx) error {
			_, err := trip.Finish(tx, session, ends) // what was written already is not written again
			return err
		},
		Sets: func() { r.written(ends) },
	})
	r.batch.Took(len(ends), err)
	if r.batch.Culprit() {
		r.Log.Error("MySQL refuses how a run ended", "run", ends[0].Launch, "job_id", ends[0].JobID, "error", err)
		r.putLast(ends[0])
		return nil
	}
	return err
}

func (r *Recorder) written(ends []trip.End) {
	done := append([]trip.End(nil), ends...)
	r.mu.Lock()
	r.waiting = append(r.waiting[:0], r.waiting[len(ends):]...)
	r.urgent = r.urgent && len(r.waiting) > 0
	r.mu.Unlock()
	r.Written(done)
}

// putLast moves the first end behind the others: they go on without it.
func (r *Recorder) putLast(e trip.End) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(append(r.waiting[:0], r.waiting[1:]...), e)
}

// Waiting is how many ends are not known to be written.
func (r *Recorder) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}
