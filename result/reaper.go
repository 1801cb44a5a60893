package result

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Reaper ends the executing runs of dead sessions as lost. It waits for no locked row: what it cannot end now, the next look ends.
// Any number of nodes may reap at once, since an end is guarded by owner and launch.
//
// Prepared runs of a dead session need no reaper: they become overdue, and any node starts them.
type Reaper struct {
	DB        *sql.DB
	Exclusion *lock.Exclusion
	Session   Session
	// Living lists the sessions that have a row. A session that is missing is dead for good: its row is committed before it
	// claims anything, and its number is never used again.
	Living func(context.Context) (map[trip.Owner]bool, error)
	// NodeOf is the name of the node that had a session, "" if nobody knows.
	NodeOf func(trip.Owner) string
	// SpecOf returns the current definition of a job, nil if it cannot be used.
	SpecOf func(jobID int64) *job.Spec
	Woken  func() // called when runs became idle
	Log    *slog.Logger
}

const (
	reapPeriod = 2 * time.Second
	reapBatch  = 200
)

// Run reaps until ctx is over.
func (r *Reaper) Run(ctx context.Context) error {
	wait := rand.N(reapPeriod)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = reapPeriod
		if _, err := r.Reap(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("cannot end the runs of dead sessions, trying again", "error", err)
		}
	}
}

// Reap makes one look, and returns how many runs it ended.
func (r *Reaper) Reap(ctx context.Context) (lost int, err error) {
	// Owners first, sessions second. The other way round, a session that registers between the two reads would look dead.
	owners, err := trip.Owners(r.DB.Reader(ctx))
	if err != nil || len(owners) == 0 {
		return 0, err
	}
	living, err := r.Living(ctx)
	if err != nil {
		return 0, err
	}
	for _, owner := range owners {
		if living[owner] {
			continue
		}
		n, err := r.bury(ctx, owner)
		lost += n
		if err != nil {
			return lost, err
		}
	}
	return lost, nil
}

// bury ends the executing runs of one dead session.
func (r *Reaper) bury(ctx context.Context, dead trip.Owner) (lost int, err error) {
	for after := (trip.Held{}); ; {
		runs, err := trip.ExecutingRuns(r.DB.Reader(ctx), dead, after, reapBatch)
		if err != nil || len(runs) == 0 {
			return lost, err
		}
		n, err := r.end(ctx, dead, runs)
		lost += n
		if err != nil {
			return lost, err
		}
		after = runs[len(runs)-1]
	}
}

// end writes the ends of some runs in one transaction.
func (r *Reaper) end(ctx context.Context, dead trip.Owner, runs []trip.Held) (lost int, err error) {
	ends := r.lost(dead, runs)
	if err := r.keepOutput(ctx, ends); err != nil {
		return 0, err
	}
	f := &finisher{r.Exclusion, r.Session, dead, r.Woken}
	err = f.finish(ctx, ends, func(done, _ []trip.End) { lost = len(done) })
	if err == nil && lost > 0 {
		r.Log.Warn("runs of a dead session are lost", "session", dead, "node", r.NodeOf(dead), "runs", lost)
	}
	return lost, err
}

// lost are the ends of runs whose node is gone.
func (r *Reaper) lost(dead trip.Owner, runs []trip.Held) []trip.End {
	now, reason := r.Session.Now(), fmt.Sprintf("its node %s is gone", r.NodeOf(dead))
	ends := make([]trip.End, len(runs))
	for i := range runs {
		h := &runs[i]
		ends[i] = trip.End{Launch: h.Launch, JobID: h.JobID, Outcome: job.Lost, Final: true, Ended: now, Reason: reason}
		if spec := r.SpecOf(h.JobID); spec != nil {
			if delay, again := spec.Again(h.Attempt, job.Lost, 0); again {
				ends[i].Again, ends[i].Final = now.Add(delay), false
			}
		}
	}
	return ends
}

// keepOutput gives lost runs the output that their node had written for readers. What a node writes that only seemed dead comes too late,
// and Live removes it.
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
