package edit

import (
	"context"
	"slices"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// plan lists the changes of jobs: one for each job that differs from the files or must be pruned.
// Other jobs get a change if they name a calendar that changes.
func (a *applying) plan(ctx context.Context) error {
	changed := map[string]bool{}
	for _, c := range a.changedCalendars() {
		changed[c.Name()] = true
	}
	planned := map[int64]bool{}
	for i := range a.jobs {
		if c := a.jobs[i].change(changed); c != nil {
			a.add(*c, a.jobs[i].index)
			planned[c.ID] = true
		}
	}
	for i := range a.gone {
		j := &a.gone[i]
		a.add(Change{Action: job.ActionDelete, ID: j.ID, Changes: j.Changes}, len(a.want.Jobs)+i)
		planned[j.ID] = true
	}

	for _, c := range a.changedCalendars() {
		users, err := trip.Referring(a.DB.Reader(ctx), trip.RefCalendar, c.Name())
		if err != nil {
			return err
		}
		for _, id := range users {
			if !planned[id] {
				a.add(Change{Action: recalendar, ID: id}, -1)
				planned[id] = true
			}
		}
	}
	return nil
}

func (a *applying) add(c Change, place int) {
	a.changes, a.places = append(a.changes, c), append(a.places, place)
}

// changedCalendars lists the calendars to write.
func (a *applying) changedCalendars() (out []*job.Calendar) {
	for _, c := range a.calendars {
		if !c.same {
			out = append(out, c.Calendar)
		}
	}
	return out
}

// change returns the change of a job. It is nil if the job is as wanted.
func (j *appliedJob) change(changed map[string]bool) *Change {
	spec := j.spec
	c := &Change{Action: job.ActionUpdate, Spec: &spec, Paused: j.pause, Past: true}
	if j.old == nil {
		c.Action = job.ActionCreate
		return c
	}
	c.ID, c.Changes = j.old.ID, j.old.Changes

	renewed := slices.ContainsFunc(j.spec.Calendars, func(name string) bool { return changed[name] })
	switch {
	case !j.same:
		return c
	case j.pause == nil:
		return nil // plan adds a change if a calendar has changed
	case renewed:
		return c
	case *j.pause:
		return &Change{Action: job.ActionPause, ID: c.ID, Changes: c.Changes}
	}
	return &Change{Action: job.ActionResume, ID: c.ID, Changes: c.Changes}
}

// planned reports whether all the given jobs are among the changes.
func (b *batch) planned(jobs []int64) bool {
	ids := make(map[int64]bool, len(b.changes))
	for i := range b.changes {
		ids[b.changes[i].ID] = true
	}
	return !slices.ContainsFunc(jobs, func(id int64) bool { return !ids[id] })
}
