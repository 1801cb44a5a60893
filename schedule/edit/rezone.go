package edit

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Rezoner moves the cursors of jobs where nodes have got other time zone data than the cursors were computed with. Such a cursor may lie
// behind a due time, which nobody would claim, or be none. It looks at all jobs once.
//
// It waits until all nodes have the same data: else what one node had moved, another one would move back. One node does it, the first.
// If that dies, the next one begins anew, and finds in place what was moved.
type Rezoner struct {
	Editor  *Editor
	Session interface {
		Now() job.Micros
		Fresh() bool
		Share() (index, of int)
	}
	Zones string // the time zone data of this node, see job.ZoneData
	Log   *slog.Logger

	seen  string // what the look through all jobs goes by, see sql.Unzoned
	last  int64  // the last job that it came to
	again bool   // a job could not be moved: it takes another look through all of them
	jobs  int    // how many it looked at
	moved int    // how many of these it moved
}

const (
	rezonePeriod = 10 * time.Second
	rezoneBatch  = 200
	// rezonePause is between two batches: claims go on beside it.
	rezonePause = 20 * time.Millisecond
	// rezoneAhead is how far ahead of now runs may exist already: jobs that are due so soon are always computed anew.
	rezoneAhead = 30 * time.Second
)

// Run looks until ctx is over.
func (r *Rezoner) Run(ctx context.Context) error {
	wait := rezonePeriod
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = rezonePeriod
		more, err := r.look(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			r.Log.Warn("cannot compute due times by new time zone data, trying again", "error", err)
		case more:
			wait = rezonePause
		}
	}
}

// look takes one batch, and reports whether there are more.
func (r *Rezoner) look(ctx context.Context) (more bool, err error) {
	if index, _ := r.Session.Share(); index != 0 || !r.Session.Fresh() {
		r.seen = ""
		return false, nil
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
		return false, err // unknown too: those that were moved are found in place
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
	if err == nil && done {
		r.Log.Info("all due times are those of the time zone data of all nodes", "jobs", r.jobs, "moved", r.moved)
	}
	r.seen = "" // if a node has joined meanwhile, once more
	return false, err
}

// move has the cursors of those jobs computed anew that are not where their schedules have them.
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

// misplaced reports whether the cursor of a job is not where its schedule has it now. A job that is too expensive to compute stays as
// it is.
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

// unzoned tells whether all sessions compute with the same time zone data as the caller, and not all jobs were planned by that. seen is
// what the setting says, for plannedBy.
func unzoned(r sql.Reader, zones string) (seen string, is bool, err error) {
	others := 0
	err = sql.Each(r, "read time zone data", func(rows *sql.Rows) error { return rows.Scan(&seen, &others) },
		"SELECT COALESCE((SELECT value FROM setting WHERE name = 'zones'), ''), (SELECT COUNT(*) FROM session WHERE zones <> ?)", zones)
	return seen, strings.HasPrefix(seen, "?") && others == 0, err
}

// plannedBy notes that all jobs are planned by some time zone data, unless a node with other data joined since seen was read. It tells
// whether it did.
func plannedBy(ctx context.Context, db *sql.DB, seen, zones string) (bool, error) {
	n := int64(0)
	err := db.Tx(ctx, func(tx *sql.Tx) (err error) {
		n, err = tx.Exec("note time zone data", "UPDATE setting SET value = ? WHERE name = 'zones' AND value = ?", zones, seen)
		return err
	})
	return n == 1, err
}
