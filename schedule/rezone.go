package schedule

import (
	"context"
	"log/slog"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Rezoner has jobs planned anew where nodes have got other time zone data than they were planned by: a cursor that was computed by
// other rules may lie behind a due time, which nobody would plan, or be none. It looks at all jobs once, and marks those whose cursor is
// not where their schedule has it now, as a changed calendar does.
//
// It waits until all nodes have the same data: before that, what one had planned anew another one would plan by its own again. So none
// wins, and they cannot fight. One node of the cluster does it: the first. If that dies, the next one begins anew, and what is planned
// anew already stays as it is. What is paused or held is planned anew when that ends, in any case.
type Rezoner struct {
	DB      *sql.DB
	Session Session
	Zones   string // the time zone data of this node, see job.ZoneData
	Log     *slog.Logger

	seen         string // what the look through all jobs goes by, see sql.Unzoned
	last         int64  // the last job that it came to
	jobs, marked int64  // how many it looked at, and how many of these it marked
}

const (
	rezonePeriod = 10 * time.Second
	rezoneBatch  = 200
	// rezonePause is between two batches: planning goes on beside it.
	rezonePause = 20 * time.Millisecond
)

// Run looks until ctx ends.
func (r *Rezoner) Run(ctx context.Context) error {
	wait := rezonePeriod
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = rezonePeriod
		more, err := r.look(ctx, r.Session.Now())
		switch {
		case err != nil && ctx.Err() == nil:
			r.Log.Warn("cannot look for jobs to be planned by new time zone data, trying again", "error", err)
		case more:
			wait = rezonePause
		}
	}
}

// look takes one batch, and tells whether there are more.
func (r *Rezoner) look(ctx context.Context, now job.Micros) (more bool, err error) {
	if index, _, _ := r.Session.Share(); index != 0 || !r.Session.Fresh() {
		r.seen = ""
		return false, nil
	}
	seen, is, err := r.DB.Unzoned(ctx, r.Zones)
	if err != nil {
		return false, err
	}
	if !is {
		r.seen = ""
		return false, nil
	}
	if seen != r.seen {
		r.seen, r.last, r.jobs, r.marked = seen, 0, 0, 0
	}
	found, err := r.DB.JobsBehind(ctx, r.last, rezoneBatch)
	if err != nil {
		return false, err
	}
	rows := make([]*sql.JobRow, len(found))
	for i := range found {
		rows[i] = &found[i]
	}
	if err := r.DB.LearnCalendars(ctx, rows...); err != nil {
		return false, err
	}
	var ids []int64
	for _, j := range rows {
		if misplaced(j, now) {
			ids = append(ids, j.ID)
		}
	}
	if len(ids) > 0 {
		err := r.DB.Tx(ctx, func(tx *sql.Tx) error {
			_, err := tx.ReplanJobs(ids, now)
			return err
		})
		if err != nil {
			return false, err // unknown too: they are marked, or found again
		}
	}
	r.jobs, r.marked = r.jobs+int64(len(rows)), r.marked+int64(len(ids))
	if len(rows) > 0 {
		r.last = rows[len(rows)-1].ID
	}
	if len(rows) == rezoneBatch {
		return true, nil
	}
	done, err := r.DB.PlannedBy(ctx, seen, r.Zones)
	if err == nil && done {
		r.Log.Info("all jobs are planned by the time zone data of all nodes", "jobs", r.jobs, "planned_anew", r.marked)
	}
	r.seen = "" // if a node has joined meanwhile, once more
	return false, err
}

// misplaced tells whether the cursor of a job is not its first due time from now on. Where due times before it are planned already it
// looks as if it were, and planning them anew changes nothing.
func misplaced(j *sql.JobRow, now job.Micros) bool {
	zoned := j.Spec.Timezone != "" && j.Spec.Timezone != "UTC"
	if !zoned && j.Spec.Calendars == nil || j.Paused || j.Held || j.NextDue != 0 && j.NextDue <= now {
		return false
	}
	s, err := compile(j)
	return err == nil && firstAfter(s, now) != j.NextDue
}
