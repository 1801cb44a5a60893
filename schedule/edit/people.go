package edit

import (
	"context"
	"errors"
	"fmt"

	"go-crontab/job"
)

// Create writes a new job. It has no due times while it is paused.
func (e *Editor) Create(ctx context.Context, spec job.Spec, paused bool) (Done, error) {
	return e.one(ctx, Change{Action: job.ActionCreate, Spec: &spec, Paused: &paused})
}

// Update gives a job another definition. If the definition names another app, the job moves to
// that app. Runs that are already due stay and start under the new definition. changes is the
// required number of earlier changes of the job; zero: any.
func (e *Editor) Update(ctx context.Context, id int64, changes int32, spec job.Spec) (Done, error) {
	return e.one(ctx, Change{Action: job.ActionUpdate, ID: id, Changes: changes, Spec: &spec})
}

// UpdateAnd is Update that also pauses or resumes the job, in the same step.
func (e *Editor) UpdateAnd(ctx context.Context, id int64, changes int32, spec job.Spec, paused bool) (Done, error) {
	return e.one(ctx, Change{Action: job.ActionUpdate, ID: id, Changes: changes, Spec: &spec, Paused: &paused})
}

// Rollback is Update with the definition of an earlier version.
func (e *Editor) Rollback(ctx context.Context, id int64, changes int32, spec job.Spec, earlier int32) (Done, error) {
	reason := fmt.Sprintf("to version %d", earlier)
	return e.one(ctx, Change{Action: job.ActionRollback, ID: id, Changes: changes, Spec: &spec, Reason: reason})
}

// Pause stops the due times of a job until it is resumed, or until the end in the request. If the
// job is already paused, Pause replaces the reason and the end.
func (e *Editor) Pause(ctx context.Context, id int64, r job.PauseRequest) (Done, error) {
	if err := r.Validate(e.Session.Now()); err != nil {
		return Done{}, err
	}
	return e.one(ctx, Change{Action: job.ActionPause, ID: id, Pause: r})
}

// Resume lets a paused job go on from where it was paused. Its misfire policy decides about due
// times during the pause.
func (e *Editor) Resume(ctx context.Context, id int64) (Done, error) {
	return e.one(ctx, Change{Action: job.ActionResume, ID: id})
}

// Delete ends a job. Executing runs go on to their ends, and the history stays.
func (e *Editor) Delete(ctx context.Context, id int64) (Done, error) {
	return e.one(ctx, Change{Action: job.ActionDelete, ID: id})
}

// errUnfinished means that a job is not finished, although the change requires it.
var errUnfinished = errors.New("the job has not finished")

// DeleteFinished deletes the jobs that are still finished and that nobody has changed since they
// were judged. All others stay. It returns the number of deleted jobs.
func (e *Editor) DeleteFinished(ctx context.Context, jobs []job.FinishedJob) (deleted int, err error) {
	changes := make([]Change, len(jobs))
	for i, j := range jobs {
		changes[i] = Change{
			Action: job.ActionDelete, ID: j.ID, Changes: j.Changes, Finished: true, Reason: "keep_job " + j.Keep.String(),
		}
	}

	done, err := e.Each(ctx, changes)
	for _, d := range done {
		if d.Result == job.BulkChanged {
			deleted++
		}
	}
	return deleted, err
}

// one makes one change. If ctx requires a number of earlier changes, the job must have exactly that
// number.
func (e *Editor) one(ctx context.Context, c Change) (Done, error) {
	if at := int32(job.VersionOf(ctx)); at != 0 {
		if c.Changes != 0 && c.Changes != at {
			return Done{}, job.ErrChanged
		}
		c.Changes = at
	}
	done, err := e.All(ctx, []Change{c})
	if err != nil {
		return Done{}, err
	}
	return done[0], nil
}
