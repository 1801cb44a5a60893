package schedule

import (
	"maps"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// readCancelled reads which backfills are cancelled. Whoever cancels one locks the row of its job, which this transaction holds.
func (s *scene) readCancelled(tx *sql.Tx, runs []trip.Run) error {
	backfills := map[int64]bool{}
	for i := range runs {
		if runs[i].Kind == trip.Backfill {
			backfills[runs[i].Request] = true
		}
	}
	cancelled, err := trip.CancelledBackfills(tx, slices.Sorted(maps.Keys(backfills)))
	for _, j := range s.jobs {
		j.cancelled = cancelled
	}
	return err
}

// cancelledBackfill: what has not begun of a backfill is not started any more, and what has begun is not tried again.
func cancelledBackfill(r *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if r.Kind == trip.Backfill && j.cancelled[r.Request] {
		return refusal(job.Skipped, job.ReasonBackfillCancelled, "the backfill was cancelled")
	}
	return nil
}
