package result

import (
	"context"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// mendDelays gives a due time to each job with a delay that has lost it: no run of the schedule is
// left whose end would give the next due time. That happens only if rows were removed outside the
// program. mendDelays returns the number of jobs.
func mendDelays(ctx context.Context, db *sql.DB, now job.Micros) (mended int, err error) {
	const query = `
		SELECT j.id
		FROM job_ref w FORCE INDEX (PRIMARY)
		STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = w.job_id
		WHERE w.kind = 7 AND j.living = 1 AND j.error = '' AND IF(j.paused, j.parked, j.next_due) IS NULL`
	scan := func(rows *sql.Rows) (id int64, err error) { err = rows.Scan(&id); return id, err }
	found, err := sql.Select(db.Reader(ctx), "look for jobs with a delay and no due time", scan, query)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	still, err := idleDelays(db.Reader(ctx), found)
	if err != nil || len(still) == 0 {
		return 0, err
	}
	read, err := trip.Definitions(db.Reader(ctx), still)
	if err != nil {
		return 0, err
	}

	err = db.Tx(ctx, func(tx *sql.Tx) error {
		mended = 0
		locked, err := trip.LockJobs(tx, still)
		if err != nil {
			return err
		}
		ends, err := trip.LastScheduled(tx, still, lastDue)
		if err != nil {
			return err
		}

		var delayed []trip.Delayed
		for _, d := range read {
			spec, err := job.DecodeSpec(d.Text)
			j, last := locked[d.JobID], ends[d.JobID]
			if err != nil || spec.Delay == 0 || j == nil || j.Version != d.Version || last.Run != 0 && last.State != trip.Ended {
				continue
			}
			if at := spec.NextDelayed(last.Ended, max(now, spec.FirstDelayed(now))); at != 0 {
				delayed = append(delayed, trip.Delayed{JobID: d.JobID, Due: lastDue, At: at})
			}
		}
		mended = len(delayed)
		return trip.MoveDelayed(tx, delayed)
	})
	return mended, err
}

// lastDue is after every due time.
const lastDue job.Micros = 1<<63 - 1

// idleDelays returns the jobs whose scheduled runs have all ended, or that have no such run.
func idleDelays(r sql.Reader, jobs []int64) ([]int64, error) {
	ends, err := trip.LastScheduled(r, jobs, lastDue)
	return slices.DeleteFunc(jobs, func(id int64) bool {
		last := ends[id]
		return last.Run != 0 && last.State != trip.Ended
	}), err
}
