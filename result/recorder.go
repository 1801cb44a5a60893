package result

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// Outcome is an attempt that is over, with its run as it is to be written.
type Outcome struct {
	Task    job.Task
	Run     job.Run
	Again   job.Micros // when the task is to be started once more; zero if that was its last attempt
	Awaited bool       // another task may wait for this end: of the job, or in its group
	Group   string     // the job's group, "" for none
	Live    bool       // pieces of its output may be in the table chunk, see Live.End
	Written func()     `json:"-"` // called once the run is known to be written, by us or by a peer

	put      time.Time // when the recorder got it
	recorded bool      // history has a record of its due time and attempt already
	aside    bool      // it waits for a row that somebody else holds
}

// Recorder writes outcomes in batches: those that arrive while one batch is being written make the next.
type Recorder struct {
	Lanes func() int // how many batches are written at once, see sql.Lanes; nil: one. It is set before Run.

	exclusion *lock.Exclusion
	now       func() job.Micros // MySQL's clock
	woken     func()            // called when tasks that waited became idle
	log       *slog.Logger

	mu      sync.Mutex
	waiting []*Outcome
	passed  int // how many have left their place among the waiting: they are written, or went behind the others
	wake    chan struct{}
	writing chan struct{} // held by the one who writes
	batch   int
	patient bool // somebody holds a row for long: what needs it is set aside, see free
}

const (
	finishBatch = 800
	// gather is how long an outcome waits for others to share its transaction.
	gather   = 10 * time.Millisecond
	minRetry = 50 * time.Millisecond
	maxRetry = 2 * time.Second
)

// New returns a recorder. Run it. now is MySQL's clock; woken is called when tasks that waited became idle.
func New(x *lock.Exclusion, now func() job.Micros, woken func(), log *slog.Logger) *Recorder {
	return &Recorder{exclusion: x, now: now, woken: woken, log: log, wake: make(chan struct{}, 1), writing: make(chan struct{}, 1), batch: finishBatch}
}

// Put takes an outcome. It never blocks; the executing set bounds how many wait: while there are too many, it takes no
// more attempts.
func (r *Recorder) Put(o *Outcome) {
	o.Run.Output.Pack() // here, and not while rows are locked
	r.mu.Lock()
	o.put = time.Now()
	r.waiting = append(r.waiting, o)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Waiting is how many outcomes are not known to be written.
func (r *Recorder) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}

// Age is for how long the oldest of them has waited, zero if there is none. What was refused alone stands behind
// younger ones.
func (r *Recorder) Age() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return 0
	}
	return time.Since(slices.MinFunc(r.waiting, func(a, b *Outcome) int { return a.put.Compare(b.put) }).put)
}

// Run writes until ctx ends, one batch after another.
func (r *Recorder) Run(ctx context.Context) error {
	retry := minRetry
	for {
		if r.Waiting() == 0 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-r.wake:
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(gather):
		}
		retry = r.pause(ctx, retry, r.finish(ctx))
	}
}

// Flush writes what waits now, and returns when it has or ctx ends. It leaves to Run what comes meanwhile: a session that
// ends must not wait for the outcomes of the next one.
func (r *Recorder) Flush(ctx context.Context) {
	for range 2 { // what MySQL refused alone went behind all others, and can be written now
		r.pass(ctx, maxRetry)
	}
}

// Push writes what waits now. It leaves to Run what comes meanwhile and what cannot be written at once: a start that
// asks for it must not wait for either.
func (r *Recorder) Push(ctx context.Context) { r.pass(ctx, 4*minRetry) }

// pass returns when all that waits now is written or was refused alone, when pauses after errors have become longer than
// the patience, or when ctx ends.
func (r *Recorder) pass(ctx context.Context, patience time.Duration) {
	r.mu.Lock()
	end := r.passed + len(r.waiting)
	r.mu.Unlock()
	for retry := minRetry; retry <= patience && ctx.Err() == nil && !r.hasPassed(end); {
		if err := r.finish(ctx); !r.hasPassed(end) {
			retry = r.pause(ctx, retry, err)
		}
	}
}

func (r *Recorder) hasPassed(end int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.passed >= end
}

// pause is what comes behind a batch: nothing, or after an error a while. It returns for how long the next one is to be.
func (r *Recorder) pause(ctx context.Context, retry time.Duration, err error) time.Duration {
	if err == nil {
		return minRetry
	}
	var wake chan struct{}
	if errors.Is(err, errAllBusy) {
		wake = r.wake // what comes may need none of these rows
	} else if ctx.Err() == nil {
		r.log.Warn("cannot write outcomes yet, trying again", "waiting", r.Waiting(), "error", err, "again_in", retry)
	}
	select {
	case <-ctx.Done():
	case <-wake:
	case <-time.After(retry):
	}
	return min(2*retry, maxRetry)
}

// finish writes one batch.
func (r *Recorder) finish(ctx context.Context) error {
	select {
	case r.writing <- struct{}{}:
		defer func() { <-r.writing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r.mu.Lock()
	batch := append([]*Outcome(nil), r.waiting[:min(len(r.waiting), r.most())]...)
	r.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	if len(batch) > finishBatch && slices.ContainsFunc(batch, (*Outcome).wakes) {
		batch = batch[:finishBatch] // more statements than two are about them, which take no more
	}
	ids := make([]int64, len(batch))
	for i, o := range batch {
		ids[i] = o.Task.ID
	}
	var stale, again, aside map[*Outcome]bool
	var left map[int64]bool // tasks of those that are set aside
	woken, waited := 0, false
	session, sure := surely(batch)
	sure = sure && !r.patient
	change := lock.Change{
		Name: "finish",
		Rows: func(tx *sql.Tx) (err error) {
			if waited {
				tx.WakeFree()
			}
			defer func() {
				if sql.IsLockWait(err) { // the next try waits for none: all outcomes stand meanwhile, and starts behind their jobs' rows
					r.patient, waited, sure = true, true, false
				}
			}()
			stale, again, aside, left = map[*Outcome]bool{}, nil, nil, map[int64]bool{}
			var (
				jobs []int64
				rows map[int64]sql.TaskRow
			)
			if r.patient {
				jobs, rows, aside, err = free(tx, batch)
			} else if jobs, err = lockAwaited(tx, batch); err == nil && !sure {
				rows, err = tx.LockTasks(ids)
			}
			if err != nil {
				return err
			}
			var (
				ended       []int64
				launches    []int64
				unslotted   []int64
				turns       []int64 // jobs of which a run has ended that is no backfill's
				retried     []sql.Again
				runs, tried []job.Run
				live        []job.Launch
			)
			for _, o := range batch {
				if aside[o] {
					left[o.Task.ID] = true
					continue
				}
				if t, ok := rows[o.Task.ID]; !sure && (!ok || !t.Is(o.Task.Launch, job.Executing)) {
					stale[o] = true
					continue
				}
				tryAgain := o.Again != 0 && rows[o.Task.ID].Wish == 0 // what was to be killed, and failed before, is not tried again
				if tryAgain {
					retried = append(retried, sql.Again{ID: o.Task.ID, DueNow: o.Again})
				} else {
					ended, launches = append(ended, o.Task.ID), append(launches, o.Task.Launch.N)
				}
				if o.Live {
					live = append(live, o.Task.Launch)
				}
				if o.Group != "" || tryAgain { // an edit may have put the job into a group since; what has ended holds nothing anyway
					unslotted = append(unslotted, o.Task.ID)
				}
				if o.Awaited && o.Task.Origin >= 0 {
					turns = append(turns, o.Task.JobID)
				}
				switch {
				case o.recorded:
				case tryAgain:
					tried = append(tried, o.Run)
				default:
					run := o.Run
					run.Final = true
					runs = append(runs, run)
				}
			}
			if err := tx.DropChunks(live); err != nil {
				return err
			}
			if err := tx.Retry(retried, tried); err != nil {
				return err
			}
			if sure {
				err = tx.EndAt(session, ended, launches, runs)
			} else {
				err = tx.End(ended, runs)
			}
			if err != nil {
				return err
			}
			woken, err = tx.Wake(jobs, turns, unslotted, r.now())
			return err
		},
		Settle: func(tx *sql.Tx) error {
			rows, err := tx.LockTasks(slices.DeleteFunc(ids, func(id int64) bool { return left[id] })) // of the others nothing was sent
			again = map[*Outcome]bool{}
			for _, o := range batch {
				if t, ok := rows[o.Task.ID]; ok && t.Is(o.Task.Launch, job.Executing) {
					again[o] = true
				}
			}
			return err
		},
		// If we die before this, the runs are written and nobody misses the set.
		Sets: func() { r.written(batch, stale, again, aside) },
	}
	err := r.exclusion.Do(ctx, change)
	if sure && errors.Is(err, sql.ErrMoved) { // a peer has ended one of them, or somebody took it: which?
		sure = false
		err = r.exclusion.Do(ctx, change)
	}
	switch {
	case err == nil && len(aside) == len(batch):
		err = errAllBusy
	case err == nil && r.patient:
		r.mu.Lock()
		r.patient = slices.ContainsFunc(r.waiting, func(o *Outcome) bool { return o.aside })
		r.mu.Unlock()
	case sql.IsRefused(err) || sql.IsLockWait(err):
		r.isolate(batch, err)
	}
	if woken > 0 && err == nil {
		r.woken()
	}
	return err
}

// errAllBusy is that each of a batch needs a row that somebody else holds.
var errAllBusy = errors.New("somebody holds the rows of all of them")

// most is how many outcomes one transaction takes. The lock is held.
func (r *Recorder) most() int {
	if r.batch == finishBatch && r.Lanes != nil {
		return r.batch * r.Lanes()
	}
	return r.batch
}

// wakes tells whether another task may wait for this end, or the task goes on.
func (o *Outcome) wakes() bool { return o.Awaited || o.Group != "" || o.Again != 0 }

// surely tells whether all of a batch are the last attempts of their tasks, by one session. Such rows need not be looked at:
// they are removed if all of them are what we believe. It returns the session.
func surely(batch []*Outcome) (session uuid.UUID, sure bool) {
	session = batch[0].Task.Launch.Session
	for _, o := range batch {
		if o.Again != 0 || o.Task.Launch.Session != session {
			return session, false
		}
	}
	return session, true
}

// free locks what lockAwaited and LockTasks lock, but for rows that somebody else has locked, and returns the outcomes that need
// one of those: they are to be written later. So a row that stays locked for long, by a hand or for a node that fell silent
// in the middle of a transaction, holds up what needs it, and no other. (Of what waits for these ends Wake locks rows, too: it
// does wait for one of those, and the next try leaves it to the sweeper.)
func free(tx *sql.Tx, batch []*Outcome) (jobs []int64, rows map[int64]sql.TaskRow, aside map[*Outcome]bool, err error) {
	ids, groups := awaited(batch)
	locked, busy, err := tx.LockFreeJobs(ids)
	if err != nil {
		return nil, nil, nil, err
	}
	_, held, err := tx.LockFreeGroups(groups)
	if err != nil {
		return nil, nil, nil, err
	}
	tasks := make([]int64, len(batch))
	for i, o := range batch {
		tasks[i] = o.Task.ID
	}
	rows, taken, err := tx.LockFreeTasks(tasks)
	aside = map[*Outcome]bool{}
	for _, o := range batch {
		if o.Awaited && busy[o.Task.JobID] || held[o.Group] || taken[o.Task.ID] {
			aside[o] = true
		}
	}
	return slices.Sorted(maps.Keys(locked)), rows, aside, err
}

// lockAwaited locks the jobs, and the groups, of attempts for whose end another task may wait, so that none begins to
// wait while they end, and returns the jobs.
func lockAwaited(tx *sql.Tx, batch []*Outcome) ([]int64, error) {
	jobs, groups := awaited(batch)
	if _, err := tx.LockJobs(jobs); err != nil {
		return nil, err
	}
	_, err := tx.LockGroups(groups)
	return jobs, err
}

// awaited lists, in order, the jobs and the groups of attempts for whose end another task may wait.
func awaited(batch []*Outcome) (jobs []int64, groups []string) {
	for _, o := range batch {
		if o.Awaited {
			jobs = append(jobs, o.Task.JobID)
		}
		if o.Group != "" {
			groups = append(groups, o.Group)
		}
	}
	slices.Sort(jobs)
	slices.Sort(groups)
	return slices.Compact(jobs), slices.Compact(groups)
}

// written takes what is known to be written out of the waiting ones. What was set aside goes behind them.
func (r *Recorder) written(batch []*Outcome, stale, again, aside map[*Outcome]bool) {
	r.mu.Lock()
	var rest, behind []*Outcome
	for _, o := range batch {
		if aside[o] && !o.aside {
			r.log.Warn("outcome cannot be written yet: somebody holds the row of its task, job or group", "run", o.Run.Launch, "job_id", o.Run.JobID, "due", o.Run.Due)
		}
		o.aside = aside[o]
		switch {
		case again[o]:
			rest = append(rest, o)
		case aside[o]:
			behind = append(behind, o)
		}
	}
	r.waiting = slices.Concat(rest, r.waiting[len(batch):], behind)
	r.passed += len(batch) - len(rest)
	r.batch = min(finishBatch, 2*r.batch)
	r.mu.Unlock()
	for _, o := range batch {
		switch {
		case again[o] || aside[o]:
			continue
		case stale[o]:
			r.log.Warn("run was ended by a peer before its outcome could be written", "run", o.Run.Launch, "job_id", o.Run.JobID, "due", o.Run.Due, "outcome", o.Run.Outcome)
		default:
			r.log.Debug("run ended", "run", o.Run.Launch, "job_id", o.Run.JobID, "due", o.Run.Due, "outcome", o.Run.Outcome, "reason", o.Run.Reason)
		}
		if o.Written != nil {
			o.Written()
		}
	}
}

// isolate makes the next batch smaller after MySQL refused one, so that one outcome that cannot be written does not
// hold up the others. Alone and refused again, it goes behind them, and is written without what was refused if that is
// to blame: without its output and reason, or, where its due time and attempt have a record already, not at all.
func (r *Recorder) isolate(batch []*Outcome, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(batch) > 1 {
		r.batch = min(finishBatch, len(batch)) / 2 // below a whole one, which lanes would multiply
		return
	}
	o := batch[0]
	r.waiting = append(r.waiting[1:], o)
	r.passed++
	switch {
	case !sql.BlamesRows(err):
		return // the others may be refused as well
	case sql.IsDuplicate(err):
		o.recorded = true
		r.log.Error("run ends without a record: its due time and attempt have one", "run", o.Run.Launch, "job_id", o.Run.JobID, "due", o.Run.Due,
			"outcome", o.Run.Outcome, "reason", o.Run.Reason)
		return
	}
	o.Run.Output, o.Run.Signal = job.Output{}, ""
	o.Run.Reason = "MySQL refused the record of this run: " + err.Error()
}
