package api

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/schedule/edit"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// change makes, of a job as it stands, what the client wants it to be.
type change func(old *read.Job) (jobBody, error)

// putJob: PUT /api/v1/jobs/{id}
func (s *Server) putJob(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	body, err := readObject(r)
	if err != nil {
		return err
	}
	b, err := wholeJob(body)
	if err != nil {
		return err
	}
	pre, err := preconditionOf(r)
	if err != nil {
		return err
	}
	j, err := s.edit(r.Context(), id, pre.before(s.replaceBy(b)))
	if err != nil {
		return err
	}
	return s.answerJob(w, r, http.StatusOK, j)
}

func (s *Server) replaceBy(b jobBody) change {
	return func(old *read.Job) (jobBody, error) {
		b := b
		b.spec.KeepStart(&old.Spec)
		return b, s.complete(&b.spec)
	}
}

// putJobNamed: PUT /api/v1/apps/{app}/jobs/{name}
func (s *Server) putJobNamed(w http.ResponseWriter, r *http.Request) error {
	app, name, err := appAndName(r)
	if err != nil {
		return err
	}
	body, err := readObject(r)
	if err != nil {
		return err
	}
	b, err := wholeJob(body)
	if err != nil {
		return err
	}
	for field, pair := range map[string][2]*string{"app": {&b.spec.App, &app}, "name": {&b.spec.Name, &name}} {
		if given, path := *pair[0], *pair[1]; given != "" && given != path {
			return invalidField(field, problem.NotAsThePathSays.Advise("leave it out, or rename the job by its id"), cutShort(given), cutShort(path))
		}
		*pair[0] = *pair[1]
	}
	pre, err := preconditionOf(r)
	if err != nil {
		return err
	}
	j, isNew, err := s.upsert(r.Context(), b, pre)
	switch {
	case err != nil:
		return err
	case isNew:
		return s.created(w, r, j)
	}
	return s.answerJob(w, r, http.StatusOK, j)
}

// upsert changes the job of that name or creates it. Others may create and delete it at the same time.
func (s *Server) upsert(ctx context.Context, b jobBody, pre precondition) (j *read.Job, isNew bool, err error) {
	for range maxTries {
		old, err := s.cfg.DB.JobNamed(ctx, b.spec.App, b.spec.Name)
		if errors.Is(err, sql.ErrNotFound) {
			if err := pre.absent(); err != nil {
				return nil, false, err
			}
			j, err = s.create(ctx, b)
			if err == nil || !errors.Is(err, sql.ErrExists) {
				return j, true, err
			}
			continue
		}
		if err != nil {
			return nil, false, err
		}
		j, err = s.edit(ctx, old.ID, pre.before(s.replaceBy(b)))
		if err == nil || !errors.Is(err, sql.ErrNotFound) {
			return j, false, err
		}
	}
	return nil, false, job.ErrChanged
}

// patchJob: PATCH /api/v1/jobs/{id}
func (s *Server) patchJob(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	patch, err := readObject(r)
	if err != nil {
		return err
	}
	pre, err := preconditionOf(r)
	if err != nil {
		return err
	}
	j, err := s.edit(r.Context(), id, pre.before(func(old *read.Job) (jobBody, error) {
		if old.SpecErr != nil {
			return jobBody{}, unreadable.problem("There is nothing that a patch could be applied to; replace the whole definition with PUT.")
		}
		b, err := patched(&old.Spec, patch)
		if err != nil {
			return jobBody{}, err
		}
		return b, s.complete(&b.spec)
	}))
	if err != nil {
		return err
	}
	return s.answerJob(w, r, http.StatusOK, j)
}

// maxTries bounds how often a change is made anew because somebody else changed the job in between. One of those who
// meet always gets through.
const maxTries = 20

// edit reads a job, makes of it what the client wants, and writes that if nobody changed the job meanwhile. Definition and pause
// change together.
func (s *Server) edit(ctx context.Context, id int64, want change) (*read.Job, error) {
	var j *read.Job
	err := persist(func() (err error) { j, err = s.tryEdit(ctx, id, want); return err })
	return j, lookAt(err, "GET /api/v1/jobs/%d shows what stands; the same request again does no harm.", id)
}

// persistFor is how long a change is made anew because others change the job, or keep it locked. A request has some more time.
const persistFor = 10 * time.Second

// persist makes a change anew while others change the job, or keep it locked.
func persist(do func() error) error {
	began := time.Now()
	for try := 1; ; try++ {
		err := do()
		if !othersWere(err) || try == maxTries || time.Since(began) > persistFor {
			return err
		}
		time.Sleep(rand.N(20 * time.Millisecond))
	}
}

// othersWere reports whether others were there first: the same change may be made in a moment.
func othersWere(err error) bool {
	return errors.Is(err, job.ErrChanged) || errors.Is(err, edit.ErrLocked)
}

func (s *Server) tryEdit(ctx context.Context, id int64, want change) (*read.Job, error) {
	old, err := s.jobByID(ctx, id)
	if err != nil {
		return nil, err
	}
	if !auth.Of(ctx).MayIn(admin, old.Spec.App) {
		return nil, sql.ErrNotFound // it was moved into another app since the request was let in
	}
	b, err := want(&old)
	if err != nil {
		return nil, err
	}
	if err := mayWrite(ctx, b.spec.App); err != nil {
		return nil, err
	}
	if err := s.checkFree(ctx, id, &b.spec); err != nil {
		return nil, err
	}
	e, err := s.editor()
	if err != nil {
		return nil, err
	}

	done, err := writeEdit(ctx, e, &old, b)
	if err != nil || done == nil {
		return &old, err
	}
	return s.jobAfter(ctx, *done)
}

// writeEdit makes the change that turns a job into what the client wants; nil: it is so already.
func writeEdit(ctx context.Context, e Editor, old *read.Job, b jobBody) (*edit.Done, error) {
	// A definition in error is written again also when it is the same, so that its due times are computed again.
	rewrite := old.SpecErr != nil || old.Error != "" || !b.spec.Same(&old.Spec)
	seen := job.WithVersion(ctx, int64(old.Changes))

	var done edit.Done
	var err error
	switch {
	case rewrite && b.paused != nil:
		done, err = e.UpdateAnd(ctx, old.ID, old.Changes, b.spec, *b.paused)
	case rewrite:
		done, err = e.Update(ctx, old.ID, old.Changes, b.spec)
	case b.paused != nil && *b.paused: // also of a paused job: the answer then waits for what an earlier pause is still waiting for
		done, err = e.Pause(seen, old.ID, job.PauseRequest{})
	case b.paused != nil && old.Paused:
		done, err = e.Resume(seen, old.ID)
	default:
		return nil, nil
	}
	return &done, err
}

// showFor is how long a job may take to be read that was changed.
const showFor = 5 * time.Second

// jobAfter reads a job that was changed. The change stands, so a reading that fails now must not look like a change that failed. A
// client that has gone may ask again under its key, and gets the answer then.
func (s *Server) jobAfter(ctx context.Context, done edit.Done) (*read.Job, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), showFor)
	defer stop()
	j, err := s.cfg.DB.Job(ctx, done.ID)
	if err != nil {
		return nil, &sql.Unknown{Err: fmt.Errorf("the change stands; the job cannot be shown: %w", err)}
	}
	return &j, nil
}

// checkFree looks whether the name that a job is to have belongs to another one.
func (s *Server) checkFree(ctx context.Context, id int64, spec *job.Spec) error {
	other, err := s.cfg.DB.JobNamed(ctx, spec.App, spec.Name)
	switch {
	case errors.Is(err, sql.ErrNotFound), err == nil && other.ID == id:
		return nil
	case err == nil:
		return sql.ErrExists
	}
	return err
}
