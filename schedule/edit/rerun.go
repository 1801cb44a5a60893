package edit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Past is a due time that must run again. Run is its last run, which has ended.
type Past struct {
	Run   int64
	JobID int64
	Due   job.Micros
}

// ErrRanAgain means that the due time has a later run than Past.Run.
var ErrRanAgain = errors.New("the due time has a later run")

// Rerun adds one run of each due time, all as one request in one transaction. It refuses due times
// that have a later run by then. Two requests at the same time lock the same runs, so the second
// request sees the runs of the first. The members of a Galera cluster do not see each other's
// locks. There both requests write the rows of the same runs. The cluster refuses the second
// request, which begins again and then sees the runs of the first.
//
// The caller bounds the number of due times.
func (e *Editor) Rerun(ctx context.Context, past []Past, then func(Asked)) (Asked, error) {
	ids, dues, runs := make([]int64, len(past)), make([]job.Micros, len(past)), make([]int64, len(past))
	for i, p := range past {
		ids[i], dues[i], runs[i] = p.JobID, p.Due, p.Run
	}

	var out Asked
	err := e.record(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
		out = Asked{Due: now}
		seen, err := trip.SeeJobs(tx, slices.Compact(slices.Sorted(slices.Values(ids))))
		if err != nil {
			return nil, err
		}
		out.Done = runnableOf(ids, seen)

		limited, err := holdLimits(tx, out.Done, seen)
		if err != nil {
			return nil, err
		}
		last, err := trip.LockLastRuns(tx, runs)
		if err != nil {
			return nil, err
		}
		for i, p := range past {
			if d := &out.Done[i]; d.Err == nil && !last[p.Run] {
				d.Result, d.Err = job.BulkRefused, ErrRanAgain
			}
		}
		if err := admitRuns(tx, limited, out.Done, seen, now); err != nil {
			return nil, err
		}

		given, err := trip.GivenTo(tx, runs)
		if err != nil {
			return nil, err
		}
		gifts := make([]*job.Given, len(past))
		for i, p := range past {
			gifts[i] = given[p.Run]
		}
		out.Request, err = tx.InsertRequest("rerun", "", sha256.Sum256(fmt.Appendf(nil, "rerun %d", runs)), 0, now)
		if err != nil {
			return nil, err
		}
		line, err := e.insertAsked(ctx, tx, out, dues, gifts, seen, now)
		then(out)
		return line, err
	})
	if err == nil {
		e.wake()
		e.refusedOf(out.Done)
	}
	return out, err
}
