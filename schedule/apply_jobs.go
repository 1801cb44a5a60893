package schedule

import (
	"context"
	"slices"
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
)

// writeJob changes a job that is there, or with nil deletes it.
func (a *applying) writeJob(ctx context.Context, tx *sql.Tx, j *sql.JobRow, live []sql.TaskRow, want *appliedJob) error {
	for _, t := range live {
		if t.State == job.Executing {
			a.window = max(a.window, t.SpawnBy)
		}
	}
	was := j.SpecText
	if want == nil {
		if err := a.remove(tx, j, live, a.now); err != nil {
			return err
		}
		line := jobLine(job.ActionDelete, &j.Job)
		line.Was, a.lines = was, append(a.lines, line)
		return nextVersion(tx, j, a.now)
	}
	wanted := want.pause != nil && *want.pause
	if wanted {
		if err := a.pause(ctx, tx, j, live, job.PauseRequest{}, a.now); err != nil {
			return err
		}
		a.lines = append(a.lines, jobLine(job.ActionPause, &j.Job))
	}
	if !want.same {
		if wanted { // some of them have ended
			var err error
			if live, err = tx.LiveTasks(j.ID); err != nil {
				return err
			}
		}
		spec := want.spec
		p, err := a.replace(tx, j, live, &spec, want.calendars, a.now, a.horizon(0))
		if err != nil {
			return err
		}
		a.take(p)
	}
	if want.pause != nil && !wanted {
		if j.Paused { // else its pause has ended by itself
			if err := a.resumeJob(j, want.calendars); err != nil {
				return err
			}
		}
		a.lines = append(a.lines, jobLine(job.ActionResume, &j.Job))
	}
	if err := nextVersion(tx, j, a.now); err != nil {
		return err
	}
	if !want.same {
		line := jobLine(job.ActionUpdate, &j.Job)
		if j.SpecText != was { // else it was in error, and is planned again
			line.Was, line.Became = was, j.SpecText
		}
		a.lines = append(a.lines, line)
	}
	a.out.Jobs[want.index].Job = j.Job
	return nil
}

// resumeJob gives a paused job its due times back, by its new definition.
func (a *applying) resumeJob(j *sql.JobRow, calendars []*job.Calendar) error {
	j.Calendars, j.CalendarsErr = calendars, nil
	due, err := resumed(j, j.PauseAt(a.now).Words(), a.now, a.now)
	if err != nil {
		return job.Problems{{Field: "schedule", Message: err.Error()}}
	}
	for _, d := range due {
		a.plans.take(d, a.now, a.Session)
	}
	return nil
}

// createJobs writes the new jobs, in the order of their names: of two who create the same one waits for the other.
func (a *applying) createJobs(ctx context.Context, tx *sql.Tx, covers []job.Pause) error {
	var added []*appliedJob
	for i := range a.jobs {
		if j := &a.jobs[i]; j.old == nil {
			added = append(added, j)
		}
	}
	slices.SortFunc(added, func(a, b *appliedJob) int {
		return strings.Compare(a.spec.App+"\x00"+a.spec.Name, b.spec.App+"\x00"+b.spec.Name)
	})
	places := map[string]int{}
	for part := range slices.Chunk(added, createdAtOnce) {
		if err := a.createSome(ctx, tx, part, places, covers); err != nil {
			return err
		}
	}
	return nil
}

// createdAtOnce is how many jobs are written together.
const createdAtOnce = 500

// createSome writes jobs that are new. What follows from them is planned in their order, since the horizon of each depends
// on how much those before it came to.
func (a *applying) createSome(ctx context.Context, tx *sql.Tx, added []*appliedJob, places map[string]int, covers []job.Pause) error {
	jobs := make([]*job.Job, len(added))
	texts := make([]string, len(added))
	for i, want := range added {
		spec := want.spec
		var err error
		if texts[i], err = spec.Encode(); err != nil {
			return err
		}
		j := &job.Job{Spec: spec, Version: 1, Hash: job.HashOf(spec.App, spec.Name), Created: a.now, Updated: a.now, Covers: covers}
		if j.Place, err = placeOnce(tx, &spec, places); err != nil {
			return err
		}
		jobs[i] = j
	}
	due := make([]dueTimes, len(added))
	ahead := 0 // tasks of those before, which are not among the plans yet
	for i, want := range added {
		var err error
		if due[i], err = outset(jobs[i], want.pause != nil, job.ActorOf(ctx).Who, a.now, a.horizon(ahead), want.calendars...); err != nil {
			return err
		}
		ahead += len(due[i].tasks)
	}
	if err := tx.InsertJobs(jobs, texts); err != nil {
		return err
	}
	for i, want := range added {
		j, d := jobs[i], due[i]
		if err := refer(tx, j.ID, &job.Spec{}, &j.Spec); err != nil {
			return err
		}
		for i := range d.tasks {
			d.tasks[i].JobID = j.ID
		}
		if d.missed != nil {
			d.missed.JobID = j.ID
		}
		a.plans.take(d, a.now, a.Session)
		line := jobLine(job.ActionCreate, j)
		line.Became, a.lines = texts[i], append(a.lines, line)
		if want.pause != nil {
			a.lines = append(a.lines, jobLine(job.ActionPause, j))
		}
		a.out.Jobs[want.index].Job = *j
	}
	return nil
}

// placeOnce is placeOf for many definitions, which mostly want the same.
func placeOnce(tx *sql.Tx, spec *job.Spec, known map[string]int) (int, error) {
	key := spec.Selector + "\x00" + spec.Handler
	if id, is := known[key]; is {
		return id, nil
	}
	id, err := placeOf(tx, spec)
	if err == nil {
		known[key] = id
	}
	return id, err
}

// writeLines writes the audit but for one line, which is returned: if it stands, all of it does.
func (a *applying) writeLines(ctx context.Context, tx *sql.Tx) (*job.Entry, error) {
	for _, line := range a.lines {
		line.At, line.Actor = a.now, job.ActorOf(ctx)
	}
	last := len(a.lines) - 1
	return a.lines[last], tx.InsertAudits(a.lines[:last])
}
