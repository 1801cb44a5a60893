package result

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Session is the life of the node process whose runs end.
type Session interface {
	Number() trip.Owner
	Now() job.Micros        // the clock of MySQL
	Mint(n int) (run int64) // the first of n run ids that nobody else uses
}

// Recorder writes the ends of runs, many in one transaction.
type Recorder struct {
	Exclusion *lock.Exclusion
	Session   Session
	Log       *slog.Logger
	Written   func([]trip.End) // called with ends whose rows are known to be written, or to belong to somebody else
	Woken     func()           // called when runs that waited became idle; nil: nobody asks

	mu      sync.Mutex
	waiting []trip.End
	urgent  bool                 // an end among them lets another run begin
	kept    map[trip.Launch]bool // whose rows, or those of their jobs, somebody had locked at the last try
	failing time.Time            // since when every transaction has failed; zero: the last one did not
	pause   time.Duration        // after the last transaction, if it failed
	signal  chan struct{}
	writing chan struct{} // held by whoever writes
	batch   sql.Batch     // of whoever writes
}

const (
	finishBatch = 800
	// gather is how long an end waits for others that share its transaction.
	gather = 10 * time.Millisecond
)

// busyPause is how long an end waits for the next try when somebody has locked the row of its run, job or group: twice as long each
// time. An urgent end that comes meanwhile shortens it.
func busyPause(times int) time.Duration { return min(time.Second, 5*time.Millisecond<<min(times, 8)) }

// New returns a recorder. Run it.
func New(x *lock.Exclusion, s Session, log *slog.Logger, written func([]trip.End)) *Recorder {
	return &Recorder{
		Exclusion: x, Session: s, Log: log, Written: written,
		signal: make(chan struct{}, 1), writing: make(chan struct{}, 1), batch: sql.NewBatch(finishBatch),
	}
}

// Put takes the end of a run, and compresses its output. It never blocks. Urgent ends are not kept waiting for others.
func (r *Recorder) Put(e trip.End, urgent bool) {
	e.Output.Pack()
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
	kept := 0
	for {
		if err := r.await(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil { // ends that wait are written by Flush
			return context.Cause(ctx)
		}
		busy, err := r.finish(ctx)
		pause, wake := time.Duration(0), (chan struct{})(nil)
		if !busy {
			kept = 0
		}
		switch {
		case err != nil && ctx.Err() == nil:
			r.Log.Warn("cannot write how runs ended, trying again", "error", err)
			pause = r.pauseAfterFailure()
		case busy:
			pause, wake = busyPause(kept), r.signal
			kept++
		}
		if pause > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			case <-wake:
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

// pushTries bounds how many batches a start waits for.
const pushTries = 3

// Push writes the ends of jobs that are about to start, if some wait: a start must not find a run executing that this node knows
// to be over. It gives up when they cannot be written at once.
func (r *Recorder) Push(ctx context.Context, jobs []int64) {
	if r.Waiting() == 0 {
		return
	}
	starting := make(map[int64]bool, len(jobs))
	for _, id := range jobs {
		starting[id] = true
	}
	for range pushTries {
		if !r.holds(starting) {
			return
		}
		if busy, err := r.finish(ctx); busy || err != nil {
			return
		}
	}
}

func (r *Recorder) holds(jobs map[int64]bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.waiting {
		if jobs[r.waiting[i].JobID] {
			return true
		}
	}
	return false
}

// finish writes one batch: first the ends that concern nobody else, then the others. It reports whether some could not be written
// because somebody has locked rows that they need.
func (r *Recorder) finish(ctx context.Context) (busy bool, err error) {
	select {
	case r.writing <- struct{}{}:
		defer func() { <-r.writing }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	r.mu.Lock()
	ends := append([]trip.End(nil), r.waiting[:min(len(r.waiting), r.batch.Size())]...)
	r.mu.Unlock()
	if len(ends) == 0 {
		return false, nil
	}

	others, err := r.finishAlone(ctx, ends)
	if sql.IsLockWait(err) { // somebody keeps the row of a run locked: together with what concerns others, such rows are skipped
		others, err = ends, nil
	}
	if err == nil && len(others) > 0 {
		f := &finisher{exclusion: r.Exclusion, session: r.Session, owner: r.Session.Number(), woken: r.Woken}
		err = f.finish(ctx, others, func(done, left []trip.End) {
			busy = len(left) > 0
			r.settled(done, left)
		})
	}
	r.batch.Took(len(ends), err)
	r.noteFailure(err)
	if r.batch.Culprit() {
		r.Log.Error("MySQL refuses how a run ended", "run", ends[0].Launch, "job_id", ends[0].JobID, "error", err)
		r.settled(nil, ends[:1])
		return true, nil
	}
	return busy, err
}

// finishAlone writes the ends of runs that nobody waits for, that hold no slot and that are not tried again. These are nearly
// all: one statement by which no other row is read. It returns the others.
func (r *Recorder) finishAlone(ctx context.Context, ends []trip.End) (others []trip.End, err error) {
	var alone, again []trip.End
	for _, e := range ends {
		if e.Again == 0 && !r.isKept(e.Launch) {
			alone = append(alone, e)
		} else {
			again = append(again, e)
		}
	}
	if len(alone) == 0 {
		return again, nil
	}

	var done []trip.End
	session := r.Session.Number()
	write := func(tx *sql.Tx) error {
		done, others = alone, again
		n, err := trip.FinishAlone(tx, session, alone)
		if err != nil || n == int64(len(alone)) {
			return err
		}
		ended, err := trip.EndedAmong(tx, launchesOf(alone))
		done = nil
		for _, e := range alone {
			if ended[e.Launch] {
				done = append(done, e)
			} else {
				others = append(others, e)
			}
		}
		return err
	}
	err = r.Exclusion.Do(ctx, lock.Change{
		Name:   "finish",
		Rows:   write,
		Settle: write, // what was written already is not written again
		// If we die before this, the rows say how the runs ended, and nobody misses the set.
		Sets: func() { r.settled(done, nil) },
	})
	return others, err
}

func launchesOf(ends []trip.End) []trip.Launch {
	out := make([]trip.Launch, len(ends))
	for i := range ends {
		out[i] = ends[i].Launch
	}
	return out
}

// settled removes written ends from the queue, and moves those that cannot be written yet to its end.
func (r *Recorder) settled(written, later []trip.End) {
	gone, last := make(map[trip.Launch]bool, len(written)), make(map[trip.Launch]bool, len(later))
	for i := range written {
		gone[written[i].Launch] = true
	}
	for i := range later {
		last[later[i].Launch] = true
	}

	r.mu.Lock()
	r.kept = last
	rest, behind := r.waiting[:0:0], []trip.End(nil)
	for _, e := range r.waiting {
		switch {
		case gone[e.Launch]:
		case last[e.Launch]:
			behind = append(behind, e)
		default:
			rest = append(rest, e)
		}
	}
	r.waiting = append(rest, behind...)
	r.urgent = r.urgent && len(r.waiting) > 0
	r.mu.Unlock()
	if len(written) > 0 {
		r.Written(written)
	}
}

// Waiting is how many ends are not known to be written.
func (r *Recorder) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}

// spooled are the ends that are not known to be written.
func (r *Recorder) spooled() []Spooled {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Spooled, len(r.waiting))
	for i, e := range r.waiting {
		out[i] = Spooled{r.Session.Number(), e}
	}
	return out
}
