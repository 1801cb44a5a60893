package result

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Session is the session whose runs end: one life of a node process.
type Session interface {
	Number() trip.Owner
	Now() job.Micros        // the clock of MySQL
	Mint(n int) (run int64) // the first of n unused run ids
}

// Config is what a recorder works with.
type Config struct {
	Exclusion   *lock.Exclusion
	Session     Session
	Executing   Executing
	WakeOverdue loop.Wake // waiting runs became idle
	Definitions Definitions
	Names       Names
	Log         *slog.Logger
}

// Names returns the full name of a job for the log. A nil Names knows only ids.
type Names func(jobID int64) string

func (n Names) of(jobID int64) string {
	if n == nil {
		return fmt.Sprintf("id %d", jobID)
	}
	return n(jobID)
}

// Executing is the set of executing runs.
type Executing interface {
	// Written removes runs whose ends are written, or whose rows belong to another owner now.
	Written([]trip.Launch)
}

// Recorder writes the ends of runs, many in one transaction.
type Recorder struct {
	Config

	mu      sync.Mutex
	waiting []trip.End
	urgent  bool                 // a waiting end lets another run begin
	kept    map[trip.Launch]bool // ends that the last try postponed: the row of the run, job or group was locked
	failing time.Time            // start of the series of failed transactions; zero: the last one succeeded
	pause   time.Duration        // after the last transaction, if it failed
	signal  loop.Wake            // wakes Run
	writing chan struct{}        // a semaphore for the writer
	batch   sql.Batch            // used by the writer
}

const (
	finishBatch = 800
	// gather is the time for which an end waits for other ends to share its transaction.
	gather = 10 * time.Millisecond
)

// busyPause is the pause before the next try when the row of a run, job or group was locked. The
// pause doubles each time. An urgent end cuts it short.
func busyPause(times int) time.Duration { return min(time.Second, 5*time.Millisecond<<min(times, 8)) }

// New returns a recorder. The caller runs it.
func New(cfg Config) *Recorder {
	return &Recorder{
		Config: cfg,
		signal: loop.NewWake(), writing: make(chan struct{}, 1), batch: sql.NewBatch(finishBatch),
	}
}

// Put queues the end of a run, and compresses its output. It never blocks. Urgent ends do not wait
// for others.
func (r *Recorder) Put(e trip.End, urgent bool) {
	e.Output.Pack()

	r.mu.Lock()
	r.waiting = append(r.waiting, e)
	r.urgent = r.urgent || urgent
	wake := r.urgent || len(r.waiting) == 1 || len(r.waiting) == finishBatch
	r.mu.Unlock()

	if wake {
		r.signal.Up()
	}
}

// Run writes ends until ctx is over.
func (r *Recorder) Run(ctx context.Context) error {
	kept := 0
	for {
		if err := r.await(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil { // Flush writes the waiting ends
			return context.Cause(ctx)
		}

		busy, err := r.finish(ctx)
		pause, wake := time.Duration(0), loop.Wake(nil)
		if !busy {
			kept = 0
		}

		switch {
		case err != nil && ctx.Err() == nil:
			r.Log.Warn("cannot write results of runs, trying again", "error", err)
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

// await returns shortly after the first end has come. If an end is urgent or the batch is full,
// await returns at once.
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

// pushTries bounds the batches that a start waits for.
const pushTries = 3

// Push writes waiting ends of jobs that are about to start. Without it, a start could find a run
// still executing that has already ended on this node. If the ends cannot be written at once, Push
// gives up.
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

// finish writes one batch: first the independent ends, then the others. busy reports whether ends
// were postponed because rows were locked.
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
	if sql.IsLockWait(err) { // a run's row is locked: the transaction below skips locked rows
		others, err = ends, nil
	}
	if err == nil && len(others) > 0 {
		f := &finisher{
			exclusion: r.Exclusion, session: r.Session, owner: r.Session.Number(), wakeOverdue: r.WakeOverdue,
			definitions: r.Definitions,
		}
		err = f.finish(ctx, others, func(done, left []trip.End) {
			busy = len(left) > 0
			r.settled(done, left)
		})
	}

	r.batch.Took(len(ends), err)
	r.noteFailure(err)
	if r.batch.Culprit() {
		r.Log.Error("MySQL rejects the result of a run", "run", ends[0].Launch, "job", r.Names.of(ends[0].JobID),
			"error", err)
		r.settled(nil, ends[:1])
		return true, nil
	}
	return busy, err
}

// finishAlone writes the independent ends (no waiting run, no slot, no retry) in one statement
// that reads no other row. Nearly all ends are independent. finishAlone returns the other ends.
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
		Settle: write, // ends that are written already are not written again
		// If we die before this, the ends are in the rows, and no other node needs the set.
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

// settled removes written ends from the queue, and moves postponed ends to the back of the queue.
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
		r.Executing.Written(launchesOf(written))
	}
}

// Waiting returns the number of ends that are not known to be written.
func (r *Recorder) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}

// spooled returns the ends that are not known to be written. It leaves out the rest of large
// outputs, because that vanishes with this process.
func (r *Recorder) spooled() []Spooled {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Spooled, len(r.waiting))
	for i, e := range r.waiting {
		e.Output.Parts, e.Output.PartBytes = 0, 0
		out[i] = Spooled{r.Session.Number(), e}
	}
	return out
}
