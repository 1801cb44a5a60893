package edit

import (
	"context"
	"errors"

	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// Apply makes the cluster have what a set of files wants: all of it, in one transaction, or nothing. What is as wanted already is
// not written, so that the same Apply again changes nothing.
//
// It looks first, without locks: what is there, what is to be done, and whether all of that is valid. This is all that a dry run
// does. Then it makes the changes as every change is made; if something is not as it was seen, it looks again.
//
// Of a folder that nodes follow nothing is done if it holds what is applied already, and job.ErrBehind says that it holds what was
// applied earlier. job.Problems say what is wrong, job.Conflicts which jobs are not at the version that is wanted, job.ErrChanged
// that others kept changing the same.
func (e *Editor) Apply(ctx context.Context, want job.Apply) (job.Applied, error) {
	if err := want.Check(e.Session.Now().Time()); err != nil {
		return job.Applied{}, err
	}
	a := &applying{Editor: e, want: &want}
	if want.DryRun {
		_, err := a.look(ctx, e.Session.Now())
		return a.out, err
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

// errApplied means that a folder holds what is applied.
var errApplied = errors.New("it is applied already")

// applying is an Apply as the latest try has seen it.
type applying struct {
	*Editor
	want *job.Apply
	now  job.Micros

	folder *job.FolderState // as it was seen; nil: these are no folder's files

	// What look has found.
	groups    []appliedGroup
	calendars []appliedCalendar
	channels  []appliedAlert
	rules     []appliedAlert
	retention []appliedRetention
	pauses    []appliedPause
	jobs      []appliedJob
	gone      []read.Job             // to be deleted
	secrets   map[job.AppSecret]bool // the secrets that exist, of those that jobs name
	apps      map[string]int32       // numbers of the apps that are to be paused

	changes []Change
	places  []int // of the changes in out.Jobs; -1: the job is not told
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
	same      bool  // but for the pause
	pause     *bool // what that is to be; nil: as it is
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

// learn tells of the jobs what the change has made of them.
func (a *applying) learn(done []Done) {
	for i, d := range done {
		if at := a.places[i]; at >= 0 && a.out.Jobs[at].Action != job.Deleted {
			a.out.Jobs[at].Job.ID, a.out.Jobs[at].Job.Version = d.ID, int64(d.Version)
		}
	}
}

// passedUnchanged waits for what an earlier request may have changed of the jobs and the pauses that this one finds as it wants them:
// a repeated request must not return before the original one.
func (a *applying) passedUnchanged(ctx context.Context) error {
	var running []int64
	for i := range a.jobs {
		if j := &a.jobs[i]; j.action() == job.Unchanged && j.old.Running != 0 {
			running = append(running, j.old.Running)
		}
	}
	window, err := trip.SpawnBy(a.DB.Reader(ctx), running, a.now+job.SpawnWindow)
	if err == nil {
		err = a.passed(ctx, window)
	}
	if err != nil {
		return err
	}
	for i := range a.pauses {
		if !a.pauses[i].over {
			return a.seen(ctx, 0)
		}
	}
	return nil
}
