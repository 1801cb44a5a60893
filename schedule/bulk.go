package schedule

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// Bulk does the same to several jobs, in one transaction: what want.Done says stands, or nothing does. A job that is not
// as it was seen any more, or of which the change makes no sense, is refused by itself and does not hold up the others.
// It is answered as each change would be: once nothing starts any more that was not to start.
//
// How many jobs one transaction locks is for the caller to bound.
func (e *Editor) Bulk(ctx context.Context, want *job.Bulk) error {
	now := e.Session.Now()
	if want.Action == job.ActionPause {
		if err := want.Pause.Validate(now); err != nil {
			return err
		}
	}
	var b *bulk
	err := e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		b = &bulk{Editor: e, want: want, now: now}
		return b.rows(ctx, tx)
	})
	if err != nil {
		return err
	}
	// If we die here all of it stands, and planners and claims find it by themselves.
	if b.plans.soon {
		e.Soon()
	}
	return e.passed(ctx, b.window)
}

// bulk is one try.
type bulk struct {
	*Editor
	want   *job.Bulk
	now    job.Micros
	plans  plans
	window job.Micros // until when something of the jobs may still be spawned
	lines  []*job.Entry
}

// rows is the transaction. It locks as every edit does: pauses, jobs, tasks.
func (b *bulk) rows(ctx context.Context, tx *sql.Tx) (*job.Entry, error) {
	b.want.Done = make([]job.Bulked, len(b.want.Jobs))
	ids := make([]int64, len(b.want.Jobs))
	for i, s := range b.want.Jobs {
		ids[i] = s.ID
	}
	slices.Sort(ids)
	pauses, err := tx.SharePauses()
	if err != nil {
		return nil, err
	}
	locked, err := tx.LockJobs(ids)
	if err != nil {
		return nil, err
	}
	var jobs []*sql.JobRow // that are as they were seen
	which := map[int64]int{}
	for i, s := range b.want.Jobs {
		switch j := locked[s.ID]; {
		case j == nil || j.Deleted:
			b.want.Done[i] = job.Refused("it is deleted")
		case j.Version != s.Version:
			b.want.Done[i] = job.Refused("somebody has changed it meanwhile")
			b.want.Done[i].Version = j.Version
		default:
			j.Covers = inForce(pauses)
			which[j.ID], jobs = i, append(jobs, j)
		}
	}
	if b.want.Action == job.ActionRun {
		err = b.run(tx, jobs, which)
	} else {
		err = b.edit(ctx, tx, jobs, pauses, which)
	}
	if err != nil {
		return nil, err
	}
	if err := b.plans.write(tx); err != nil {
		return nil, err
	}
	return b.audit(ctx, tx)
}

// run asks for a run of each job: a request of its own.
func (b *bulk) run(tx *sql.Tx, jobs []*sql.JobRow, which map[int64]int) error {
	limited, err := holdLimits(tx, jobs)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		done := b.want.Of(&j.Job, j.SpecErr)
		if done.Result == job.BulkChanged && limited[j.Spec.App] {
			switch err := admit(tx, j.Spec.App, b.now); {
			case errors.As(err, new(*job.OverLimit)):
				done = job.Refused(b.refusals(err).Error())
			case err != nil:
				return err
			}
		}
		if done.Result == job.BulkChanged {
			var err error
			done.Origin, err = tx.InsertRequest("run", "", sha256.Sum256(fmt.Appendf(nil, "run %d", j.ID)), j.ID, b.now)
			if err != nil {
				return err
			}
			b.plans.tasks = append(b.plans.tasks, job.Task{JobID: j.ID, Due: b.now, DueNow: b.now, Origin: done.Origin, Hash: j.Hash, Place: j.Place, Priority: j.Spec.Priority})
			b.plans.soon = true
			b.lines = append(b.lines, jobLine(job.ActionRun, &j.Job))
		}
		b.want.Done[which[j.ID]] = done
	}
	return nil
}

// edit pauses, resumes or deletes the jobs.
func (b *bulk) edit(ctx context.Context, tx *sql.Tx, jobs []*sql.JobRow, pauses []sql.PauseRow, which map[int64]int) error {
	if err := tx.LearnCalendars(jobs...); err != nil {
		return err
	}
	ids := make([]int64, len(jobs))
	woken := map[int64]bool{} // whose own pause has ended by itself
	for i, j := range jobs {
		late, err := wakeUpLate(tx, j, pauses, b.now, b.Session)
		if err != nil {
			return err
		}
		b.plans.soon = b.plans.soon || late != nil && late.soon
		woken[j.ID] = late != nil && len(late.resumed) > 0
		if err := catchUp(tx, j, b.now, b.Session); err != nil {
			return err
		}
		ids[i] = j.ID
	}
	live, err := tx.LiveTasksOf(ids, math.MaxInt)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		for _, t := range live[j.ID] {
			if t.State == job.Executing {
				b.window = max(b.window, t.SpawnBy)
			}
		}
		done, err := b.editJob(ctx, tx, j, live[j.ID], woken[j.ID])
		if err != nil {
			return err
		}
		b.want.Done[which[j.ID]] = done
	}
	return nil
}

// editJob does it to one job. woken tells that its pause has ended by itself, and that no row says so yet.
func (b *bulk) editJob(ctx context.Context, tx *sql.Tx, j *sql.JobRow, live []sql.TaskRow, woken bool) (job.Bulked, error) {
	done := b.want.Of(&j.Job, j.SpecErr)
	switch {
	case done.Result == job.BulkChanged:
	case woken: // if that does not stand, a planner does it
		err := nextVersion(tx, j, b.now)
		done.Version = j.Version
		return done, err
	default:
		return done, nil
	}
	line := jobLine(b.want.Action, &j.Job)
	switch b.want.Action {
	case job.ActionPause:
		line.Reason, line.Became = b.want.Pause.Reason, untilText(b.want.Pause.Until)
		if err := b.pause(ctx, tx, j, live, b.want.Pause, b.now); err != nil {
			return done, err
		}
	case job.ActionResume:
		due, err := resumed(j, j.PauseAt(b.now).Words(), b.now, b.now)
		if err != nil { // nothing of it was written
			return job.Refused(err.Error()), nil
		}
		for _, d := range due {
			b.plans.take(d, b.now, b.Session)
		}
	case job.ActionDelete:
		line.Was = j.SpecText
		if err := b.remove(tx, j, live, b.now); err != nil {
			return done, err
		}
	default:
		return done, fmt.Errorf("%q is nothing that is done to many jobs", b.want.Action)
	}
	if err := nextVersion(tx, j, b.now); err != nil {
		return done, err
	}
	if done.Version = j.Version; j.Deleted {
		done.Version = 0
	}
	b.lines = append(b.lines, line)
	return done, nil
}

// audit writes a line for each job but one, which is returned: if it stands, all of it does.
func (b *bulk) audit(ctx context.Context, tx *sql.Tx) (*job.Entry, error) {
	if len(b.lines) == 0 {
		return nil, nil
	}
	for _, line := range b.lines {
		line.At, line.Actor = b.now, job.ActorOf(ctx)
	}
	last := len(b.lines) - 1
	return b.lines[last], tx.InsertAudits(b.lines[:last])
}
