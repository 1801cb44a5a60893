package node

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"go-crontab/job"
	"go-crontab/schedule/edit"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// Jobs changes and lists the jobs of the cluster from code. What changes something waits until the
// node has a session; who cannot wait gives it a context with a deadline. Changes are made in the
// name of the context's actor (job.WithActor), or else in that of the node.
type Jobs struct{ n *Node }

// Jobs returns access to the cluster's jobs.
func (n *Node) Jobs() Jobs { return Jobs{n} }

// edit hands the editor to fn.
func (j Jobs) edit(ctx context.Context, fn func(context.Context, *edit.Editor) error) error {
	e, err := j.n.awaitEditor(ctx)
	if err != nil {
		return err
	}
	if job.ActorOf(ctx).Who == job.Anonymous {
		ctx = job.WithActor(ctx, job.Actor{Who: j.n.cfg.Name, Origin: "program"})
	}
	return fn(ctx, e)
}

// Create adds a job. ErrExists means that its app has one of that name.
func (j Jobs) Create(ctx context.Context, spec job.Spec) (out job.Job, err error) {
	return j.change(ctx, func(ctx context.Context, e *edit.Editor) (edit.Done, error) {
		return e.Create(ctx, spec, false)
	})
}

// change makes a change of one job, and returns the job as it is then.
func (j Jobs) change(ctx context.Context, fn func(context.Context, *edit.Editor) (edit.Done, error)) (out job.Job,
	err error) {
	var done edit.Done
	err = j.edit(ctx, func(ctx context.Context, e *edit.Editor) (err error) {
		done, err = fn(ctx, e)
		return err
	})
	if err != nil {
		return out, err
	}

	row, err := j.n.reads().Job(ctx, done.ID)
	return row.Job, err
}

// Ensure has the job of a name be as spec says, and adds it if it is not there: what a program
// calls at its start, on all its nodes at once. A job that is as spec says already is left alone,
// and so is whether it is paused.
func (j Jobs) Ensure(ctx context.Context, spec job.Spec) (out job.Job, err error) {
	if err := j.n.AwaitReady(ctx); err != nil {
		return out, err
	}
	if spec.App == "" {
		spec.App = job.DefaultApp
	}

	for range ensureTries {
		old, err := j.Named(ctx, spec.App, spec.Name)
		if errors.Is(err, ErrNotFound) {
			out, err = j.Create(ctx, spec)
			if !errors.Is(err, ErrExists) {
				return out, err
			}
			continue // somebody else was faster
		}

		if err != nil {
			return out, err
		}
		if isSame(old.Spec, spec, j.n.Now()) {
			return old, nil
		}

		out, err = j.Update(ctx, old.ID, old.Changes, keepStart(spec, &old.Spec))
		if !errors.Is(err, job.ErrChanged) && !errors.Is(err, ErrNotFound) {
			return out, err
		}
	}

	return out, job.ErrChanged
}

// ensureTries bounds how often Ensure begins anew because others change the job at the same time.
const ensureTries = 20

// isSame tells whether two definitions say the same.
func isSame(old, spec job.Spec, now time.Time) bool {
	spec = keepStart(spec, &old)
	spec.Defaults(now)
	a, err1 := old.Encode()
	b, err2 := spec.Encode()
	return err1 == nil && err2 == nil && a == b
}

// keepStart has a definition that replaces another go on from its first due time, where that came
// from its creation.
func keepStart(spec job.Spec, old *job.Spec) job.Spec {
	if spec.Start == nil && (spec.Every != 0 && spec.Every == old.Every ||
		spec.Every == 0 && spec.MaxFires != 0 && spec.MaxFires == old.MaxFires) {
		spec.Start = old.Start
	}
	return spec
}

// Update replaces the definition of a job that people have changed so often, see job.Job.Changes;
// zero: any number of times. job.ErrChanged means that somebody else was faster.
func (j Jobs) Update(ctx context.Context, id int64, changes int32, spec job.Spec) (out job.Job, err error) {
	return j.change(ctx, func(ctx context.Context, e *edit.Editor) (edit.Done, error) {
		return e.Update(ctx, id, changes, spec)
	})
}

// Pause stops the due times of a job until it is resumed.
func (j Jobs) Pause(ctx context.Context, id int64, r job.PauseRequest) (out job.Job, err error) {
	return j.change(ctx, func(ctx context.Context, e *edit.Editor) (edit.Done, error) { return e.Pause(ctx, id, r) })
}

// Resume gives a paused job its due times back.
func (j Jobs) Resume(ctx context.Context, id int64) (out job.Job, err error) {
	return j.change(ctx, func(ctx context.Context, e *edit.Editor) (edit.Done, error) { return e.Resume(ctx, id) })
}

// Delete ends a job; its history stays.
func (j Jobs) Delete(ctx context.Context, id int64) error {
	return j.edit(ctx, func(ctx context.Context, e *edit.Editor) error { _, err := e.Delete(ctx, id); return err })
}

// Run starts a job once, now. The same key is the same run, however often it is asked for; it may
// be empty.
func (j Jobs) Run(ctx context.Context, id int64, key string) (out job.Requested, err error) {
	err = j.edit(ctx, func(ctx context.Context, e *edit.Editor) error {
		asked, err := e.RunNow(ctx, []int64{id}, 0, key)
		if err == nil && len(asked.Done) > 0 {
			err = asked.Done[0].Err
		}
		out = job.Requested{JobID: id, Due: asked.Due, Request: asked.Request}
		return err
	})
	return out, err
}

// DisableHandler has jobs with a handler not started on any node until it is enabled: their due
// times end skipped, for the reason.
func (j Jobs) DisableHandler(ctx context.Context, key, reason string) error {
	return j.edit(ctx, func(ctx context.Context, e *edit.Editor) error { return e.DisableHandler(ctx, key, reason) })
}

// EnableHandler takes DisableHandler back.
func (j Jobs) EnableHandler(ctx context.Context, key string) error {
	return j.edit(ctx, func(ctx context.Context, e *edit.Editor) error { return e.EnableHandler(ctx, key) })
}

// Get returns a job.
func (j Jobs) Get(ctx context.Context, id int64) (job.Job, error) {
	row, err := j.n.reads().Job(ctx, id)
	if err == nil && row.Deleted {
		err = ErrNotFound
	}
	return row.Job, err
}

// Named returns the job of a name.
func (j Jobs) Named(ctx context.Context, app, name string) (job.Job, error) {
	row, err := j.n.reads().JobNamed(ctx, app, name)
	return row.Job, err
}

// JobQuery says which jobs to list. Zero fields do not restrict.
type JobQuery struct {
	App    string
	Name   string // contained in the name
	Owner  string
	Labels map[string]string // all of them
	Status job.Status
}

// listPage is how many jobs are read at once.
const listPage = 200

// List yields jobs in the order of their ids, those whose names contain something in the order of
// the names from there on, and an error at last if one stopped it.
func (j Jobs) List(ctx context.Context, q JobQuery) iter.Seq2[job.Job, error] {
	return func(yield func(job.Job, error) bool) {
		f := read.JobFilter{
			App:    q.App,
			Name:   q.Name,
			Owner:  q.Owner,
			Labels: q.Labels,
			Status: q.Status,
			Limit:  listPage,
		}
		for {
			page, err := j.n.reads().JobPage(ctx, f)
			if err != nil {
				yield(job.Job{}, err)
				return
			}

			for _, row := range page.Rows {
				if !yield(row.Job, nil) {
					return
				}
			}

			if page.Next == nil {
				return
			}
			f.After, f.Part = page.Next.ID, page.Next.Part
		}
	}
}

// History returns the latest runs of a job, the last first.
func (j Jobs) History(ctx context.Context, id int64, limit int) ([]job.Run, error) {
	rows, err := j.n.reads().Runs(ctx, read.RunFilter{JobID: id, Limit: limit})
	runs := make([]job.Run, len(rows))
	for i, row := range rows {
		runs[i] = row.Run
	}
	return runs, err
}

// runLook is between looks at whether a run has ended.
const runLook = 50 * time.Millisecond

// Wait returns the last run of what was asked for by Run, once it has ended. It carries the first
// and the last part of the output.
func (j Jobs) Wait(ctx context.Context, asked job.Requested) (job.Run, error) {
	f := read.RunFilter{JobID: asked.JobID, From: asked.Due, To: asked.Due + 1, Limit: job.MaxAttempts}
	for {
		rows, err := j.n.reads().Runs(ctx, f)
		if err != nil && !sql.IsAway(err) {
			return job.Run{}, err
		}

		for _, row := range rows {
			if row.Request == asked.Request && row.Final {
				full, err := j.n.reads().Run(ctx, row.ID)
				return full.Run, err
			}
		}

		select {
		case <-ctx.Done():
			return job.Run{}, fmt.Errorf("run of job %d: %w", asked.JobID, context.Cause(ctx))
		case <-time.After(runLook):
		}
	}
}
