package schedule

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Apply makes the cluster have what a set of files wants: all of it, in one transaction, or nothing. What is as wanted
// already is not written, so that the same Apply again changes nothing.
//
// It looks first, without locks: what is there, what is to be done, and whether all of that is valid. This is all that a
// dry run does. Then it locks what it is going to change, in the order in which everybody does, and makes sure that it
// is still what was seen; if it is not, it looks again. It is answered as each single change would be: once no attempt
// starts under an old definition any more.
//
// Of a folder that nodes follow nothing is done if it holds what is applied already, and job.ErrBehind tells that it
// holds what was applied earlier.
//
// job.Problems say what is wrong, job.Conflicts which jobs are not at the version that is wanted, job.ErrChanged that
// others kept changing the same.
func (e *Editor) Apply(ctx context.Context, want job.Apply) (job.Applied, error) {
	if err := want.Check(e.Session.Now().Time()); err != nil {
		return job.Applied{}, err
	}
	for range applyTries {
		a := &applying{Editor: e, want: &want, now: e.Session.Now()}
		err := a.lookAtFolder(ctx)
		if err == nil && a.applied {
			return job.Applied{}, nil
		}
		if err == nil {
			err = a.look(ctx)
		}
		if err == nil && !want.DryRun {
			err = a.write(ctx)
		}
		switch {
		case err == nil:
			return a.out, nil
		case !errors.Is(err, errApplyMoved) && !errors.Is(err, sql.ErrExists):
			return job.Applied{}, err
		}
		time.Sleep(rand.N(20 * time.Millisecond))
	}
	return job.Applied{}, job.ErrChanged
}

const (
	// applyTries bounds how often it looks again because others change the same at the same time. One of those who meet
	// always gets through.
	applyTries = 20
	// shortHorizon is up to when jobs get their due times once there are planRows of them: until the planner has come to
	// all of these jobs. It looks each second.
	shortHorizon = 4 * time.Second
)

// errApplyMoved tells that what was seen is not so any more.
var errApplyMoved = errors.New("others have changed something of it meanwhile")

// applying is one try.
type applying struct {
	*Editor
	want *job.Apply
	now  job.Micros

	folder  *job.FolderState // as it was seen; nil: these are no folder's files
	applied bool             // the folder holds what is applied

	// What look has found to do.
	groups    []appliedGroup
	calendars []appliedCalendar
	channels  []appliedAlert
	rules     []appliedAlert
	retention []appliedRetention
	pauses    []appliedPause
	jobs      []appliedJob
	gone      []sql.JobRow           // to be deleted
	named     []string               // groups that jobs name
	secrets   map[job.AppSecret]bool // those that exist of the ones that jobs name

	// What the transaction, or a dry run, has come to.
	out    job.Applied
	plans  plans
	window job.Micros
	lines  []*job.Entry
	woken  int
}

type appliedGroup struct {
	job.GroupSpec
	was sql.Group // zero: it is new
}

type appliedCalendar struct {
	*job.Calendar
	was   sql.CalendarRow // zero: it is new
	isNew bool
	same  bool
}

type appliedJob struct {
	index     int // in the Apply
	spec      job.Spec
	old       *sql.JobRow // nil: it is new
	calendars []*job.Calendar
	same      bool  // but for the pause
	pause     *bool // what that is to be; nil: as it is
	warnings  []string
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
