package result

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Reaper ends the executing runs of dead sessions as lost. It makes their prepared runs idle, so
// other nodes start them on time. It never waits for a locked row: it leaves the run to the next
// look, which then comes soon. Any number of nodes may reap at once, because each change is
// guarded by owner and launch.
//
// If the reaper misses a prepared run, the run becomes overdue, and any node starts it.
type Reaper struct{ ReaperConfig }

// ReaperConfig is what a reaper works with.
type ReaperConfig struct {
	DB          *sql.DB
	Exclusion   *lock.Exclusion
	Session     Session
	Lookout     interface{ NothingHeld() bool } // reports that no session held runs a moment ago
	Wake        loop.Wake                       // a session was buried
	WakeOverdue loop.Wake                       // runs became idle
	Definitions Definitions
	Log         *slog.Logger
}

// NewReaper returns a reaper. The caller runs it.
func NewReaper(cfg ReaperConfig) *Reaper { return &Reaper{cfg} }

const (
	reapPeriod = 2 * time.Second
	// leftPeriod is the longest pause after a look that met locked rows. The pause is random. A
	// start locks its job's row, and some jobs are due every two seconds. With a fixed pause, each
	// look could come just when such a job starts.
	leftPeriod   = reapPeriod / 4
	reapBatch    = 200
	releaseBatch = 800
)

// Run reaps until ctx is over.
func (r *Reaper) Run(ctx context.Context) error {
	return loop.Loop{
		First:  loop.Jitter(reapPeriod),
		Period: reapPeriod,
		Wake:   r.Wake,
		Log:    r.Log,
		Failed: "cannot end the runs of dead sessions, trying again",
	}.Run(ctx, func(ctx context.Context, woken bool) (pause time.Duration, err error) {
		if !woken && r.Lookout.NothingHeld() {
			return 0, loop.ErrSkipped
		}
		_, left, err := r.Reap(ctx)
		if left {
			pause = loop.Jitter(leftPeriod)
		}
		return pause, err
	})
}

// Reap looks for dead sessions once. It returns the number of ended runs. left reports whether
// runs remain because their rows were locked.
//
// A session without a row is dead for good: a session commits its row before it claims anything,
// and its number is never used again.
func (r *Reaper) Reap(ctx context.Context) (lost int, left bool, err error) {
	// Read the owners first and the sessions second. In the opposite order, a session that
	// registers between the two reads would look dead.
	reader := r.DB.Reader(ctx)
	owners, err := trip.Owners(reader)
	if err != nil || len(owners) == 0 {
		return 0, false, err
	}
	living, err := trip.Living(reader)
	if err != nil {
		return 0, false, err
	}

	var failed []error
	for _, owner := range owners {
		if _, lives := living[owner]; lives {
			continue
		}
		n, some, err := r.bury(ctx, owner)
		lost, left = lost+n, left || some
		failed = append(failed, err) // a failure does not stop the others
	}
	return lost, left, errors.Join(failed...)
}

// bury releases the prepared runs of a dead session, and ends its executing runs. Prepared runs
// come first because they may be due right now.
func (r *Reaper) bury(ctx context.Context, dead trip.Owner) (lost int, left bool, err error) {
	failed := r.release(ctx, dead)
	node, err := trip.NodeOf(r.DB.Reader(ctx), dead)
	if err != nil {
		return 0, false, errors.Join(failed, err)
	}
	lost, left, err = r.endAll(ctx, dead, node)
	return lost, left, errors.Join(failed, err)
}

// release makes the prepared runs of a dead session idle.
func (r *Reaper) release(ctx context.Context, dead trip.Owner) error {
	after := trip.Held{}
	after.DueNow = math.MinInt64
	for {
		runs, err := trip.Startable(
			r.DB.Reader(ctx), []trip.Owner{dead}, trip.Prepared, after, math.MaxInt64, releaseBatch)
		if err != nil || len(runs) == 0 {
			return err
		}

		launches := make([]trip.Launch, len(runs))
		for i := range runs {
			launches[i] = runs[i].Launch
		}

		released := int64(0)
		err = r.Exclusion.Do(ctx, lock.Change{
			Name:   "release",
			Rows:   func(tx *sql.Tx) (err error) { released, err = trip.ReleaseDead(tx, dead, launches); return err },
			Settle: func(*sql.Tx) error { return nil }, // the next look reads the result
			Sets:   func() {},                          // no set of this node holds them
		})
		if err != nil {
			return err
		}

		if released > 0 {
			r.WakeOverdue.Up()
		}
		after = runs[len(runs)-1]
	}
}

// endAll ends the executing runs of a dead session.
func (r *Reaper) endAll(ctx context.Context, dead trip.Owner, node string) (lost int, left bool, err error) {
	for after := (trip.Held{}); ; {
		runs, err := trip.ExecutingRuns(r.DB.Reader(ctx), dead, after, reapBatch)
		if err != nil || len(runs) == 0 {
			return lost, left, err
		}
		n, some, err := r.end(ctx, dead, node, runs)
		lost, left = lost+n, left || some
		if err != nil {
			return lost, left, err
		}
		after = runs[len(runs)-1]
	}
}

// end writes the ends of runs in one transaction.
func (r *Reaper) end(ctx context.Context, dead trip.Owner, node string, runs []trip.Held) (lost int, left bool, err error) {
	ends, specs, err := r.lost(ctx, runs)
	if err != nil {
		return 0, false, err
	}
	if err := r.keepOutput(ctx, ends); err != nil {
		return 0, false, err
	}

	f := &finisher{
		exclusion: r.Exclusion, session: r.Session, owner: dead, wakeOverdue: r.WakeOverdue,
		definitions: r.Definitions,
		audit:       func(ends []trip.End) *job.Entry { return r.resetLine(node, ends) },
	}

	var written []trip.End
	err = f.finish(ctx, ends, func(done, locked []trip.End) { written, left = done, len(locked) > 0 })
	if err == nil && len(written) > 0 {
		r.Log.Error("runs lost: their node stopped responding", "node", node, "runs", len(written))
		r.logLost(node, written, runs, specs)
	}

	return len(written), left, err
}

// logLost logs each run that a dead node has lost.
func (r *Reaper) logLost(node string, ends []trip.End, runs []trip.Held, specs map[int64]*job.Spec) {
	due := make(map[trip.Launch]job.Micros, len(runs))
	for i := range runs {
		due[runs[i].Launch] = runs[i].Due
	}

	for i := range ends {
		e := &ends[i]
		name := fmt.Sprintf("id %d", e.JobID)
		if spec := specs[e.JobID]; spec != nil {
			name = spec.FullName()
		}
		r.Log.Warn("run failed", "job", name, "outcome", e.Outcome.String(), "reason", e.Reason.Text,
			"run", e.Launch, "due", due[e.Launch], "node", node)
	}
}

// lost returns the ends of runs whose node is gone, and the definitions of their jobs. If the job
// allows a retry, the retry is due at once.
func (r *Reaper) lost(ctx context.Context, runs []trip.Held) ([]trip.End, map[int64]*job.Spec, error) {
	jobs := map[int64]bool{}
	for i := range runs {
		jobs[runs[i].JobID] = true
	}
	read, err := trip.Definitions(r.DB.Reader(ctx), slices.Sorted(maps.Keys(jobs)))
	if err != nil {
		return nil, nil, err
	}
	specs := map[int64]*job.Spec{}
	for _, d := range read {
		if spec, err := job.DecodeSpec(d.Text); err == nil { // a job that cannot be read has no retries
			specs[d.JobID] = &spec
		}
	}

	now := r.Session.Now()
	ends := make([]trip.End, len(runs))
	for i := range runs {
		h := &runs[i]
		ends[i] = trip.End{
			Launch: h.Launch, JobID: h.JobID, Outcome: job.Lost, Final: true, Ended: now,
			Reason: job.Reason{Code: job.ReasonNodeLost, Text: "its node stopped responding while it was running"},
		}
		if spec, known := specs[h.JobID]; known {
			if _, again := spec.Again(h.Attempt, job.Lost, 0); again {
				ends[i].Again, ends[i].Final = now, false
			}
		}
	}
	return ends, specs, nil
}

// resetLine returns the audit line for the ended runs of a dead session.
func (r *Reaper) resetLine(node string, ends []trip.End) *job.Entry {
	again := 0
	for i := range ends {
		if !ends[i].Final {
			again++
		}
	}
	return &job.Entry{
		At: r.Session.Now(), Actor: job.Actor{Who: job.Itself}, Action: job.ActionReset,
		Kind: job.KindSession, Name: node,
		Reason: fmt.Sprintf("its session ended without it: %d runs lost, %d of them started again", len(ends), again),
	}
}

// keepOutput gives lost runs the live output that their node has written. A node that only seemed
// dead may write more output later. Live removes that output.
func (r *Reaper) keepOutput(ctx context.Context, ends []trip.End) error {
	outputs, err := trip.Outputs(r.DB.Reader(ctx), launchesOf(ends))
	for i := range ends {
		e := &ends[i]
		if o, written := outputs[e.Launch]; written {
			o.Pack()
			e.Output, e.Live = o, true
		}
	}
	return err
}
