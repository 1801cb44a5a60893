package api

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"go-crontab/auth"
	"go-crontab/job"
	"go-crontab/sql"
)

// change makes, of a job as it stands, what the client wants it to be.
type change func(old *sql.JobRow) (jobBody, error)

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
	return func(old *sql.JobRow) (jobBody, error) {
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
			return invalidField(field, "is %q, but the path says %q; leave it out, or rename the job by its id", cutShort(given), cutShort(path))
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
func (s *Server) upsert(ctx context.Context, b jobBody, pre precondition) (j job.Job, isNew bool, err error) {
	for range maxTries {
		old, err := s.cfg.DB.JobNamed(ctx, b.spec.App, b.spec.Name)
		if errors.Is(err, sql.ErrNotFound) {
			if err := pre.absent(); err != nil {
				return job.Job{}, false, err
			}
			j, err = s.create(ctx, b)
			if err == nil || !errors.Is(err, sql.ErrExists) {
				return j, true, err
			}
			continue
		}
		if err != nil {
			return job.Job{}, false, err
		}
		j, err = s.edit(ctx, old.ID, pre.before(s.replaceBy(b)))
		if err == nil || !errors.Is(err, sql.ErrNotFound) {
			return j, false, err
		}
	}
	return job.Job{}, false, job.ErrChanged
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
	j, err := s.edit(r.Context(), id, pre.before(func(old *sql.JobRow) (jobBody, error) {
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

// edit reads a job, makes of it what the client wants, and writes that if nobody changed the job meanwhile.
//
// Definition and pause are separate changes. A job is paused before its definition changes and resumed after, so that
// if we die between the two it is paused: nothing runs of which nobody knows whether it was wanted, and the same
// request again does the rest. What can be refused is looked at before.
func (s *Server) edit(ctx context.Context, id int64, want change) (job.Job, error) {
	half := false
	for range maxTries {
		j, stands, err := s.tryEdit(ctx, id, want)
		if half = half || stands; !errors.Is(err, job.ErrChanged) {
			return j, lookAt(halfDone(half, err), "GET /api/v1/jobs/%d shows what stands; the same request again does no harm.", id)
		}
		time.Sleep(rand.N(20 * time.Millisecond))
	}
	return job.Job{}, job.ErrChanged
}

// tryEdit tells as well whether it left half of the change behind: the job is paused, or has its definition.
func (s *Server) tryEdit(ctx context.Context, id int64, want change) (_ job.Job, half bool, _ error) {
	old, err := s.jobByID(ctx, id)
	if err != nil {
		return job.Job{}, false, err
	}
	if !auth.Of(ctx).MayIn(admin, old.Spec.App) {
		return job.Job{}, false, sql.ErrNotFound // it was moved into another app since the request was let in
	}
	b, err := want(&old)
	if err != nil {
		return job.Job{}, false, err
	}
	if err := mayWrite(ctx, b.spec.App); err != nil {
		return job.Job{}, false, err
	}
	if err := s.checkFree(ctx, id, &b.spec); err != nil {
		return job.Job{}, false, err
	}
	e, err := s.editor()
	if err != nil {
		return job.Job{}, false, err
	}
	j := old.Job
	if b.paused != nil && *b.paused {
		// Also of a paused job: the answer then waits for what an earlier pause is still waiting for.
		if j, err = e.Pause(job.WithVersion(ctx, old.Version), id, job.PauseRequest{}); err != nil {
			return job.Job{}, false, err
		}
		half = !old.Paused
		if seen := old.Version; j.Version != seen && (old.Paused || j.Version != seen+1) {
			return job.Job{}, half, job.ErrChanged // by somebody who came in before the pause
		}
	}
	// A definition in error is written again also when it is the same, so that it is planned again.
	if old.SpecErr != nil || old.Error != "" || !b.spec.Same(&old.Spec) {
		if j, err = e.Update(ctx, id, j.Version, b.spec); err != nil {
			return job.Job{}, half, err
		}
		half = true
	}
	if b.paused != nil && !*b.paused && j.Paused {
		j, err = e.Resume(job.WithVersion(ctx, j.Version), id)
		return j, half, err
	}
	return j, false, nil
}

// halfDone is the error of a second step after a first one that stands.
func halfDone(half bool, err error) error {
	if !half || err == nil {
		return err
	}
	return &sql.Unknown{Err: fmt.Errorf("half of the change stands: %v", err)} // whatever that is: it would say that nothing stands
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
