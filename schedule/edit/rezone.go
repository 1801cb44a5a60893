package edit

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Rezoner looks at all jobs once after the time zone data of the nodes has changed. It moves
// cursors that were computed with older data. Such a cursor may no longer be a due time. It may
// also be too late: due times before it would never be claimed.
//
// Rezoner waits until all nodes have the same data. A node with other data would move the cursors
// back. Only the first node of the cluster moves cursors. If that node dies, the next one starts
// over, and finds the moved cursors in place.
type Rezoner struct {
	RezonerConfig

	seen  string // the setting `zones` when this pass over all jobs began, see unzoned
	last  int64  // id of the last job that was looked at
	again bool   // a job could not be moved: all jobs need another look
	jobs  int    // number of jobs looked at
	moved int    // number of jobs moved
}

// RezonerConfig configures a Rezoner.
type RezonerConfig struct {
	Editor  *Editor
	Session interface {
		Now() job.Micros
		Fresh() bool
		Share() (index, of int)
	}
	Zones string // this node's time zone data, see job.ZoneData
	Log   *slog.Logger
}

// NewRezoner returns a rezoner. The caller runs it.
func NewRezoner(cfg RezonerConfig) *Rezoner { return &Rezoner{RezonerConfig: cfg} }

const (
	rezonePeriod = 10 * time.Second
	rezoneBatch  = 200
	// rezonePause is the pause between two batches, in which claims go on.
	rezonePause = 20 * time.Millisecond
	// rezoneAhead is how far ahead of now runs may already exist. A cursor that lies closer is
	// always computed again.
	rezoneAhead = 30 * time.Second
)

// Run looks until ctx is over.
func (r *Rezoner) Run(ctx context.Context) error {
	return loop.Loop{
		First:  rezonePeriod,
		Period: rezonePeriod,
		Log:    r.Log,
		Failed: "cannot recompute due times with new time zone data, trying again",
	}.Run(ctx, func(ctx context.Context, _ bool) (pause time.Duration, err error) {
		more, err := r.look(ctx)
		if more && err == nil {
			pause = rezonePause
		}
		return pause, err
	})
}

// look takes one batch, and reports whether there are more.
func (r *Rezoner) look(ctx context.Context) (more bool, err error) {
	if index, _ := r.Session.Share(); index != 0 || !r.Session.Fresh() {
		r.seen = ""
		return false, loop.ErrSkipped
	}
	seen, is, err := unzoned(r.Editor.DB.Reader(ctx), r.Zones)
	if err != nil || !is {
		r.seen = ""
		return false, err
	}
	if seen != r.seen {
		r.seen, r.last, r.again, r.jobs, r.moved = seen, 0, false, 0, 0
	}

	found, err := trip.JobsAfter(r.Editor.DB.Reader(ctx), r.last, rezoneBatch)
	if err != nil {
		return false, err
	}
	if err := r.move(ctx, found); err != nil {
		return false, err // also after an unknown commit: the next try finds the moved jobs in place
	}
	r.jobs += len(found)
	if len(found) == rezoneBatch {
		r.last = found[len(found)-1].JobID
		return true, nil
	}
	if r.again {
		r.last, r.again = 0, false
		return false, nil
	}

	done, err := plannedBy(ctx, r.Editor.DB, seen, r.Zones)
	if err == nil && done && r.jobs > 0 {
		r.Log.Info("checked all due times against new time zone data", "jobs", r.jobs, "moved", r.moved)
	}
	r.seen = "" // if a node has joined since, all jobs need another look
	return false, err
}

// move recomputes the cursors that do not fit the schedules of their jobs.
func (r *Rezoner) move(ctx context.Context, jobs []trip.Zoned) error {
	ids := make([]int64, len(jobs))
	for i := range jobs {
		ids[i] = jobs[i].JobID
	}
	read, err := trip.Definitions(r.Editor.DB.Reader(ctx), ids)
	if err != nil {
		return err
	}
	definitions := make(map[int64]trip.Definition, len(read))
	for _, d := range read {
		definitions[d.JobID] = d
	}

	var changes []Change
	for _, j := range jobs {
		if d, known := definitions[j.JobID]; known && misplaced(j, d, r.Session.Now()) {
			changes = append(changes, Change{Action: recalendar, ID: j.JobID})
		}
	}
	if len(changes) == 0 {
		return nil
	}

	done, err := r.Editor.Each(job.WithActor(ctx, job.Actor{Who: job.Itself}), changes)
	for _, d := range done {
		switch {
		case errors.Is(d.Err, ErrLocked):
			r.again = true
		case d.Result == job.BulkChanged:
			r.moved++
		}
	}
	return err
}

// misplaced reports whether the cursor of a job must be computed again: the cursor is not at the
// next due time of the schedule, or it is within rezoneAhead. For a schedule that is too expensive
// to compute, misplaced returns false.
func misplaced(j trip.Zoned, d trip.Definition, now job.Micros) bool {
	spec, err := job.DecodeSpec(d.Text)
	if err != nil || j.Paused || j.NextDue != 0 && j.NextDue <= now {
		return false
	}

	if spec.Timezone == "" || spec.Timezone == "UTC" {
		return false
	}
	if j.NextDue != 0 && j.NextDue < now.Add(rezoneAhead) {
		return true
	}

	s, err := spec.Compile(d.Calendars...)
	if err != nil {
		return false
	}
	work := job.NewWork(context.Background(), job.DefiningWork)

	next := job.Micros(0)
	if at, ok := work.On(s).Next((now.Add(rezoneAhead) - 1).Time()); ok {
		next = job.MicrosOf(at)
	}
	return next != j.NextDue && work.Err() == nil
}

// unzoned reports whether every session uses the caller's time zone data while some jobs were still
// planned with older data. seen is the value of the setting, for plannedBy.
func unzoned(r sql.Reader, zones string) (seen string, is bool, err error) {
	others := 0
	const query = `
		SELECT COALESCE((SELECT value FROM setting WHERE name = 'zones'), ''),
			(SELECT COUNT(*) FROM session WHERE zones <> ?)`
	scan := func(rows *sql.Rows) error { return rows.Scan(&seen, &others) }
	err = sql.Each(r, "read time zone data", scan, query, zones)
	return seen, strings.HasPrefix(seen, "?") && others == 0, err
}

// plannedBy writes the setting `zones`: all jobs are planned with these data. If the setting is no
// longer `seen`, a node with different data has joined. Then plannedBy writes nothing and returns
// false.
func plannedBy(ctx context.Context, db *sql.DB, seen, zones string) (bool, error) {
	n := int64(0)
	err := db.Tx(ctx, func(tx *sql.Tx) (err error) {
		n, err = tx.Exec("record time zone data", `
			UPDATE setting
			SET value = ?
			WHERE name = 'zones' AND value = ?`, zones, seen)
		return err
	})
	return n == 1, err
}
