package edit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Bulk makes the same change of several jobs in one transaction. It writes the results to
// want.Done. It refuses single jobs that have changed since they were read, and single jobs for
// which the change makes no sense. If Bulk itself fails, nothing has changed.
//
// The caller bounds the number of jobs, because the transaction locks them all.
func (e *Editor) Bulk(ctx context.Context, want *job.Bulk) error {
	switch want.Action {
	case job.ActionRun:
		return e.bulkRun(ctx, want)
	case job.ActionPause:
		if err := want.Pause.Validate(e.Session.Now()); err != nil {
			return err
		}
	case job.ActionResume, job.ActionDelete:
	default:
		return fmt.Errorf("the action %q does not exist for many jobs", want.Action)
	}

	changes := make([]Change, len(want.Jobs))
	for i, s := range want.Jobs {
		changes[i] = Change{Action: want.Action, ID: s.ID, Changes: s.Changes, Pause: want.Pause}
	}
	_, err := e.apply(ctx, batch{
		changes: changes,
		after: func(_ *sql.Tx, _ batch, done []Done) ([]*job.Entry, error) {
			want.Done = bulked(done, want.Action == job.ActionDelete)
			return nil, nil
		},
	})
	return err
}

// bulkRun adds a run of each job, all under one request. It does not lock the jobs. If a job
// changes meanwhile, its run starts under the new definition.
func (e *Editor) bulkRun(ctx context.Context, want *job.Bulk) error {
	ids := make([]int64, len(want.Jobs))
	for i, s := range want.Jobs {
		ids[i] = s.ID
	}

	var out Asked
	err := e.record(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
		seen, err := trip.SeeJobs(tx, ids)
		if err != nil {
			return nil, err
		}
		out = Asked{Due: now, Done: runnableOf(ids, seen)}
		for i, s := range want.Jobs {
			if d := &out.Done[i]; d.Err == nil && seen[s.ID].Changes != s.Changes {
				d.Result, d.Err, d.Version = job.BulkRefused, job.ErrChanged, seen[s.ID].Version
			}
		}

		give(out.Done, seen, nil) // jobs with required parameters are refused
		if err := limitRuns(tx, out.Done, seen, now); err != nil {
			return nil, err
		}
		out.Request, err = tx.InsertRequest("run", "", sha256.Sum256(fmt.Appendf(nil, "run %d", ids)), 0, now)
		if err != nil {
			return nil, err
		}

		line, err := e.insertAsked(ctx, tx, out, nil, nil, seen, now)
		want.Done = bulked(out.Done, false)
		for i := range want.Done {
			if want.Done[i].Result == job.BulkChanged {
				want.Done[i].Request = out.Request
			}
		}
		return line, err
	})
	if err == nil {
		e.wake()
		e.refusedOf(out.Done)
	}
	return err
}

// bulked returns the results for the API. Deleted jobs have no version.
func bulked(done []Done, deleted bool) []job.Bulked {
	out := make([]job.Bulked, len(done))
	for i := range done {
		d := &done[i]
		out[i] = job.Bulked{Result: d.Result, Version: int64(d.Version)}
		switch {
		case errors.Is(d.Err, sql.ErrNotFound):
			out[i] = job.Refused(problem.JobDeleted.Of())
		case errors.Is(d.Err, job.ErrChanged):
			out[i].Why = problem.ChangedMeanwhile.Of()
		case d.Err != nil:
			out[i].Why = problem.Of(d.Err)
		case deleted:
			out[i].Version = 0
		}
	}

	return out
}
