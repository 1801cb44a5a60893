package schedule

import (
	"maps"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// readBackfills reads the states of backfills. This transaction has locked the rows of the jobs. A
// cancellation needs the same locks, so the states stay true until the commit.
func (s *scene) readBackfills(tx *sql.Tx, runs []trip.Run) error {
	backfills := map[int64]bool{}
	for i := range runs {
		if runs[i].Kind == trip.Backfill {
			backfills[runs[i].Request] = true
		}
	}
	states, err := trip.BackfillStates(tx, slices.Sorted(maps.Keys(backfills)))
	for _, j := range s.jobs {
		j.backfills = states
	}
	return err
}

// cancelledBackfill: after a cancellation, runs of the backfill that have not begun do not start,
// and failed runs are not retried.
func cancelledBackfill(r *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if r.Kind == trip.Backfill && j.backfills[r.Request] == trip.BackfillCancelled {
		return refusal(job.Skipped, job.ReasonBackfillCancelled, "the backfill was cancelled")
	}
	return nil
}
