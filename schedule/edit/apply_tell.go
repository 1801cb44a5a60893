package edit

import (
	"encoding/json"
	"fmt"

	"go-crontab/job"
)

// tell makes the answer: the list of differences.
func (a *applying) tell() {
	a.out = job.Applied{}
	for _, g := range a.groups {
		o := job.AppliedObject{Name: g.Name, Action: job.Unchanged}
		if slots, rate := g.Limits(); g.was.Slots != slots || g.was.Rate != rate {
			if o.Action = job.Created; g.was.ID != 0 {
				o.Action = job.Updated
			}
			o.Changes = job.GroupOf("", g.was.Slots, g.was.Rate).Diff(job.GroupOf("", slots, rate))
		}
		a.out.Groups = append(a.out.Groups, o)
	}
	for _, c := range a.calendars {
		o := job.AppliedObject{Name: c.Name(), Action: job.Unchanged}
		if !c.same {
			var was *job.CalendarSpec
			if o.Action = job.Created; !c.isNew {
				o.Action = job.Updated
			}
			if c.was.Calendar != nil {
				was = c.was.Calendar.Spec()
			}
			o.Changes = was.Diff(c.Spec())
		}
		a.out.Calendars = append(a.out.Calendars, o)
	}

	a.out.Channels, a.out.Rules = tellAlerts(a.channels), tellAlerts(a.rules)
	for i := range a.retention {
		a.out.Retention = append(a.out.Retention, a.retention[i].tell())
	}
	for i := range a.pauses {
		a.out.Pauses = append(a.out.Pauses, a.pauses[i].tell())
	}
	for i := range a.jobs {
		a.out.Jobs = append(a.out.Jobs, a.jobs[i].tell())
	}
	for _, r := range a.gone {
		a.out.Jobs = append(a.out.Jobs, job.AppliedJob{Action: job.Deleted, Job: r.Job})
	}
}

func (j *appliedJob) tell() job.AppliedJob {
	out := job.AppliedJob{Action: j.action()}
	if j.old != nil {
		out.Job = j.old.Job
	}

	out.Job.Spec = j.spec
	if out.Action == job.Unchanged {
		return out
	}

	var was *job.Spec
	if j.old != nil && j.old.SpecErr == nil {
		was = &j.old.Spec
	}

	out.Changes, out.Warnings = was.Diff(&j.spec), j.warnings
	if j.pause != nil {
		change := job.Change{Field: "paused", Becomes: json.RawMessage(fmt.Sprint(*j.pause))}
		if j.old != nil {
			change.Was = json.RawMessage(fmt.Sprint(!*j.pause))
		}
		out.Changes, out.Job.Paused = append(out.Changes, change), *j.pause
	}

	return out
}
