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

// change computes the wanted state of a job from its present state.
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
			return invalidField(field, problem.NotAsThePathSays.Advise("leave it out; to rename the job, change it by its id"),
				cutShort(given), cutShort(path))
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

// upsert changes the named job, or creates it. If others create or delete the job at the same time,
// upsert tries again.
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
			return jobBody{}, unreadable.problem(
				"A patch needs a readable definition. Replace the whole definition with PUT.")
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

// maxTries limits the attempts at a change that collides with other changes. When changes collide,
// one of them always succeeds.
const maxTries = 20

// edit reads a job, applies a change, and writes the result if the job was not changed in between.
// The definition and the pause are written together.
func (s *Server) edit(ctx context.Context, id int64, want change) (*read.Job, error) {
	var j *read.Job
	err := persist(func() (err error) { j, err = s.tryEdit(ctx, id, want); return err })
	return j, lookAt(err, "GET /api/v1/jobs/%d shows the current state. You can safely repeat the request.", id)
}

// persistFor is how long a change is tried again while others change or lock the job. The deadline
// of a request is longer.
const persistFor = 10 * time.Second

// persist repeats a change while others change or lock the job.
func persist(do func() error) error {
	began := time.Now()
	for try := 1; ; try++ {
		err := do()
		if !collided(err) || try == maxTries || time.Since(began) > persistFor {
			return err
		}
		time.Sleep(rand.N(20 * time.Millisecond))
	}
}

// collided reports whether others changed or locked the job first, so that the change may be
// repeated.
func collided(err error) bool {
	return errors.Is(err, job.ErrChanged) || errors.Is(err, edit.ErrLocked)
}

func (s *Server) tryEdit(ctx context.Context, id int64, want change) (*read.Job, error) {
	old, err := s.jobByID(ctx, id)
	if err != nil {
		return nil, err
	}
	if !auth.Of(ctx).MayIn(admin, old.Spec.App) {
		return nil, sql.ErrNotFound // the job has moved to another app since the request was admitted
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

// writeEdit makes the change to a job. It returns nil if there is nothing to change.
func writeEdit(ctx context.Context, e Editor, old *read.Job, b jobBody) (*edit.Done, error) {
	// A definition in error is written even if it is unchanged. Writing it computes its due times
	// again.
	rewrite := old.SpecErr != nil || old.Error != "" || !b.spec.Same(&old.Spec)
	seen := job.WithVersion(ctx, int64(old.Changes))

	var done edit.Done
	var err error
	switch {
	case rewrite && b.paused != nil:
		done, err = e.UpdateAnd(ctx, old.ID, old.Changes, b.spec, *b.paused)
	case rewrite:
		done, err = e.Update(ctx, old.ID, old.Changes, b.spec)
	// Pause also a job that is paused already: the answer then waits until the earlier pause is
	// complete.
	case b.paused != nil && *b.paused:
		done, err = e.Pause(seen, old.ID, job.PauseRequest{})
	case b.paused != nil && old.Paused:
		done, err = e.Resume(seen, old.ID)
	default:
		return nil, nil
	}

	return &done, err
}

// showFor limits the time to read a changed job.
const showFor = 5 * time.Second

// jobAfter reads a changed job. The change is committed, so a failed read must not look like a
// failed change. A client that has disconnected can repeat the request with its key to get the
// answer.
func (s *Server) jobAfter(ctx context.Context, done edit.Done) (*read.Job, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), showFor)
	defer stop()

	j, err := s.cfg.DB.Job(ctx, done.ID)
	if err != nil {
		return nil, &sql.Unknown{Err: fmt.Errorf("the change was made, but the job cannot be shown: %w", err)}
	}
	return &j, nil
}

// checkFree returns sql.ErrExists if another job has the name.
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
