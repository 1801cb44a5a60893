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

// Jobs changes and lists the jobs of the cluster from code. Changes wait until the node has a
// session; use a context with a deadline to bound the wait. In the audit, changes are made by the
// context's actor (job.WithActor), or by the node if there is none.
type Jobs struct{ n *Node }

// Jobs returns access to the cluster's jobs.
func (n *Node) Jobs() Jobs { return Jobs{n} }

// edit calls fn with the editor.
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

// Create adds a job. ErrExists means that its app already has one with that name.
func (j Jobs) Create(ctx context.Context, spec job.Spec) (out job.Job, err error) {
	return j.change(ctx, func(ctx context.Context, e *edit.Editor) (edit.Done, error) {
		return e.Create(ctx, spec, false)
	})
}

// change changes a job, and returns the job after the change.
func (j Jobs) change(
	ctx context.Context, fn func(context.Context, *edit.Editor) (edit.Done, error),
) (out job.Job, err error) {
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

// Ensure adds the job that spec describes. If a job of that name exists, Ensure changes it to
// match spec. A program can call Ensure at its start, on all its nodes at once. It does not touch
// a job that already matches, and never pauses or resumes a job.
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
			continue // a concurrent change was faster
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

// ensureTries bounds the attempts of Ensure when others change the job at the same time.
const ensureTries = 20

// isSame reports whether two definitions are equivalent.
func isSame(old, spec job.Spec, now time.Time) bool {
	spec = keepStart(spec, &old)
	spec.Defaults(now)
	a, err1 := old.Encode()
	b, err2 := spec.Encode()
	return err1 == nil && err2 == nil && a == b
}

// keepStart returns spec with the start of the old definition, if spec has none. That start was
// set when the job was created.
func keepStart(spec job.Spec, old *job.Spec) job.Spec {
	if spec.Start == nil && (spec.Every != 0 && spec.Every == old.Every ||
		spec.Every == 0 && spec.MaxFires != 0 && spec.MaxFires == old.MaxFires) {
		spec.Start = old.Start
	}
	return spec
}

// Update replaces the definition of a job. The job's change count (job.Job.Changes) must still be
// changes; zero skips that check. job.ErrChanged means that another change was faster.
func (j Jobs) Update(ctx context.Context, id int64, changes int32, spec job.Spec) (out job.Job, err error) {
	return j.change(ctx, func(ctx context.Context, e *edit.Editor) (edit.Done, error) {
		return e.Update(ctx, id, changes, spec)
	})
}

// Pause stops the due times of a job until it is resumed.
func (j Jobs) Pause(ctx context.Context, id int64, r job.PauseRequest) (out job.Job, err error) {
	return j.change(ctx, func(ctx context.Context, e *edit.Editor) (edit.Done, error) { return e.Pause(ctx, id, r) })
}

// Resume continues the due times of a paused job.
func (j Jobs) Resume(ctx context.Context, id int64) (out job.Job, err error) {
	return j.change(ctx, func(ctx context.Context, e *edit.Editor) (edit.Done, error) { return e.Resume(ctx, id) })
}

// Delete ends a job; its history stays.
func (j Jobs) Delete(ctx context.Context, id int64) error {
	return j.edit(ctx, func(ctx context.Context, e *edit.Editor) error { _, err := e.Delete(ctx, id); return err })
}

// Run starts a job once, now. Repeated calls with the same key refer to the same run. key may be
// empty.
func (j Jobs) Run(ctx context.Context, id int64, key string) (out job.Requested, err error) {
	return j.RunWith(ctx, id, nil, key)
}

// RunWith is Run with values of the job's parameters; job.ValueOf makes them.
func (j Jobs) RunWith(
	ctx context.Context, id int64, params map[string]job.Value, key string,
) (out job.Requested, err error) {
	err = j.edit(ctx, func(ctx context.Context, e *edit.Editor) error {
		asked, err := e.RunWith(ctx, []int64{id}, 0, params, key)
		if err == nil && len(asked.Done) > 0 {
			err = asked.Done[0].Err
		}
		out = job.Requested{JobID: id, Due: asked.Due, Request: asked.Request}
		return err
	})
	return out, err
}

// DisableHandler stops the starts of jobs with a handler, on all nodes, until the handler is
// enabled again. Due times of these jobs end skipped, with the reason.
func (j Jobs) DisableHandler(ctx context.Context, key, reason string) error {
	return j.edit(ctx, func(ctx context.Context, e *edit.Editor) error { return e.DisableHandler(ctx, key, reason) })
}

// EnableHandler undoes DisableHandler.
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

// Named returns the job with a name.
func (j Jobs) Named(ctx context.Context, app, name string) (job.Job, error) {
	row, err := j.n.reads().JobNamed(ctx, app, name)
	return row.Job, err
}

// JobQuery selects jobs. Zero fields do not restrict.
type JobQuery struct {
	App    string
	Name   string // a part of the name
	Owner  string
	Labels map[string]string // all must match
	Status job.Status
}

// listPage is the number of jobs that List reads at a time.
const listPage = 200

// List yields jobs in the order of ids. If the query has a name, the order is that of the matching
// parts of names. An error ends the list, and is yielded last.
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

// History returns the runs of a job, latest first.
func (j Jobs) History(ctx context.Context, id int64, limit int) ([]job.Run, error) {
	rows, err := j.n.reads().Runs(ctx, read.RunFilter{JobID: id, Limit: limit})
	runs := make([]job.Run, len(rows))
	for i, row := range rows {
		runs[i] = row.Run
	}
	return runs, err
}

// runLook is the pause between checks for the end of a run.
const runLook = 50 * time.Millisecond

// Wait waits until a request made with Run is over. It returns the last run of the request, with
// the head and tail of its output.
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
