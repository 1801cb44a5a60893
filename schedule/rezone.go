package schedule

import (
	"context"
	"log/slog"
	"maps"
	"slices"
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

	seen         string  // what the look through all jobs goes by, see sql.Unzoned
	last         int64   // the last job that it came to
	busy         []int64 // those to be marked whose rows somebody else had locked
	jobs, marked int64   // how many it looked at, and how many of these it marked
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
	if !r.Session.Fresh() {
		return false, nil
	}
	if index, _, _ := r.Session.Share(); index != 0 {
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
		r.seen, r.last, r.busy, r.jobs, r.marked = seen, 0, nil, 0, 0
	}
	found, err := r.DB.JobsBehind(ctx, r.last, rezoneBatch)
	if err != nil {
		return false, err
	}
	ids, err := r.toMark(ctx, found, now)
	if err != nil {
		return false, err
	}
	last, again := len(found) < rezoneBatch, 0
	if last { // those that were locked, once more
		again = min(len(r.busy), rezoneBatch)
		ids = append(ids, r.busy[:again]...)
	}
	busy, err := r.mark(ctx, ids, now)
	if err != nil {
		return false, err // unknown too: they are marked, or found again
	}
	r.busy = append(r.busy[again:], busy...)
	r.jobs, r.marked = r.jobs+int64(len(found)), r.marked+int64(len(ids)-len(busy))
	if len(found) > 0 {
		r.last = found[len(found)-1].ID
	}
	switch {
	case !last:
		return true, nil
	case len(busy) > 0:
		r.Log.Warn("jobs cannot be planned by new time zone data yet: somebody has their rows locked", "jobs", len(r.busy), "job_id", busy[0])
		return false, nil
	case len(r.busy) > 0:
		return true, nil
	}
	done, err := r.DB.PlannedBy(ctx, seen, r.Zones)
	if err == nil && done {
		r.Log.Info("all jobs are planned by the time zone data of all nodes", "jobs", r.jobs, "planned_anew", r.marked)
	}
	r.seen = "" // if a node has joined meanwhile, once more
	return false, err
}

// toMark are those of some jobs that are to be planned anew.
func (r *Rezoner) toMark(ctx context.Context, found []sql.JobRow, now job.Micros) (ids []int64, err error) {
	rows := make([]*sql.JobRow, len(found))
	for i := range found {
		rows[i] = &found[i]
	}
	if err := r.DB.LearnCalendars(ctx, rows...); err != nil {
		return nil, err
	}
	for _, j := range rows {
		if misplaced(j, nil, now) {
			ids = append(ids, j.ID)
		}
	}
	ahead, err := r.DB.PlannedAhead(ctx, ids, now)
	if err != nil {
		return nil, err
	}
	for _, j := range rows {
		if len(ahead[j.ID]) > 0 && !misplaced(j, ahead[j.ID], now) {
			ids = slices.DeleteFunc(ids, func(id int64) bool { return id == j.ID })
		}
	}
	return ids, nil
}

// mark has jobs planned anew, but for those whose rows somebody else has locked: who waited for one would hold up the starts of all others.
func (r *Rezoner) mark(ctx context.Context, ids []int64, now job.Micros) (busy []int64, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = r.DB.Tx(ctx, func(tx *sql.Tx) error {
		free, locked, err := tx.LockFreeJobs(ids)
		if err != nil {
			return err
		}
		busy = slices.Sorted(maps.Keys(locked))
		_, err = tx.ReplanJobs(slices.Sorted(maps.Keys(free)), now)
		return err
	})
	return busy, err
}

// misplaced tells whether the due times of a job from now on, which are those that are planned and its cursor, are not the first that
// its schedule has.
func misplaced(j *sql.JobRow, planned []job.Micros, now job.Micros) bool {
	zoned := j.Spec.Timezone != "" && j.Spec.Timezone != "UTC"
	if !zoned && j.Spec.Calendars == nil || j.Paused || j.Held || j.NextDue != 0 && j.NextDue <= now {
		return false
	}
	s, err := compile(j)
	if err != nil {
		return false
	}
	work := job.NewWork(context.Background(), job.DefiningWork)
	s = work.On(s)
	at := now
	for _, due := range planned {
		if j.NextDue != 0 && due >= j.NextDue { // planned since the job was read
			break
		}
		if at = firstAfter(s, at); at != due {
			return work.Err() == nil
		}
	}
	return firstAfter(s, at) != j.NextDue && work.Err() == nil // one that is too expensive stays as it is
}
