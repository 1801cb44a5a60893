package edit

import (
	"context"
	"errors"
	"fmt"

	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// Apply makes the cluster match a set of files in one transaction, completely or not at all. It
// writes only differences, so a repeated Apply changes nothing.
//
// Apply first looks without locks: it reads the current state, lists the changes, and validates
// them. A dry run ends here. Then Apply makes the changes in the same steps as other requests. If
// something has changed since the look, it looks again.
//
// The files may come from a folder that nodes follow. If these files are applied already, Apply
// does nothing. If they are an earlier state of the folder, the error is job.ErrBehind.
//
// Other errors: job.Problems for invalid files, job.Conflicts for jobs that are not at the wanted
// version, and job.ErrChanged if others kept changing the same things.
func (e *Editor) Apply(ctx context.Context, want job.Apply) (job.Applied, error) {
	if err := want.Check(e.Session.Now().Time()); err != nil {
		return job.Applied{}, err
	}
	a := &applying{Editor: e, want: &want}
	if want.DryRun {
		_, err := a.look(ctx, e.Session.Now())
		return a.out, err
	}

	if want.Force {
		ctx = job.WithForce(ctx)
	}
	done, err := e.apply(ctx, batch{
		all: true, looks: true, list: a.look, calendars: a.changedCalendars, before: a.before, after: a.after,
	})
	switch {
	case errors.Is(err, errApplied):
		return job.Applied{}, nil
	case err != nil:
		return job.Applied{}, err
	}
	a.learn(done)
	return a.out, a.passedUnchanged(ctx)
}

// errApplied means that the files of the folder are applied already.
var errApplied = errors.New("it is already applied")

// applying is an Apply with the findings of its latest try.
type applying struct {
	*Editor
	want *job.Apply
	now  job.Micros

	folder *job.FolderState // as last read; nil: the files belong to no folder

	// The findings of look.
	groups    []appliedGroup
	calendars []appliedCalendar
	channels  []appliedAlert
	rules     []appliedAlert
	retention []appliedRetention
	pauses    []appliedPause
	jobs      []appliedJob
	gone      []read.Job             // to be deleted
	secrets   map[job.AppSecret]bool // existing secrets that jobs name
	apps      map[string]int32       // numbers of the apps to pause

	changes []Change
	places  []int // index of each change's job in out.Jobs; -1: not reported
	out     job.Applied
}

type appliedGroup struct {
	job.GroupSpec
	was trip.Group // zero: it is new
}

type appliedCalendar struct {
	*job.Calendar
	was   trip.CalendarRow // zero: it is new
	isNew bool
	same  bool
}

type appliedJob struct {
	index     int // in the Apply
	spec      job.Spec
	old       *read.Job // nil: it is new
	calendars []*job.Calendar
	same      bool  // the definition is as wanted; the pause may differ
	pause     *bool // the wanted state; nil: unchanged
	warnings  []problem.Text
}

func (j *appliedJob) action() job.Applying {
	switch {
	case j.old == nil:
		return job.Created
	case j.same && j.pause == nil:
		return job.Unchanged
	}
	return job.Updated
}

func (a *applying) read() *read.DB { return &read.DB{DB: a.DB} }

// learn completes the answer with the ids and versions of changed jobs.
func (a *applying) learn(done []Done) {
	for i, d := range done {
		if at := a.places[i]; at >= 0 && a.out.Jobs[at].Action != job.Deleted {
			a.out.Jobs[at].Job.ID, a.out.Jobs[at].Job.Version = d.ID, int64(d.Version)
		}
	}
}

// passedUnchanged waits until no node can act on an older state of the jobs and pauses that this
// request left unchanged. An earlier request may have only just changed them, and a repeated
// request must not return before the original one.
func (a *applying) passedUnchanged(ctx context.Context) error {
	var running []int64
	for i := range a.jobs {
		if j := &a.jobs[i]; j.action() == job.Unchanged && j.old.Running != 0 {
			running = append(running, j.old.Running)
		}
	}

	// The change is committed, so a failed read must not look like a failed change.
	window, err := trip.SpawnBy(a.DB.Reader(ctx), running, a.now+job.SpawnWindow)
	if err != nil {
		return &sql.Unknown{Err: fmt.Errorf("the change is made, but a run that was starting may still begin: %w", err)}
	}
	if err := a.passed(ctx, window); err != nil {
		return err
	}

	for i := range a.pauses {
		if !a.pauses[i].over {
			return a.seen(ctx, 0)
		}
	}
	return nil
}
