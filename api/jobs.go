package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// editor returns the Editor, or why the node may not change anything now.
func (s *Server) editor() (Editor, error) {
	if e := s.cfg.Editor(); e != nil {
		return e, nil
	}
	return nil, noSession.problem(
		"It has no session, because it is starting, draining, or cut off from the database. Try again in a moment, or " +
			"ask another node.")
}

// jobID returns the job id in the path.
func jobID(r *http.Request) (int64, error) { return pathID(r, noJob) }

func noJob(id string) error {
	return notFound.problem(
		"There is no job %q. Job ids are numbers; to find a job by name, use /api/v1/apps/{app}/jobs/{name}.", cutShort(id))
}

// livingJob reads the job whose id is in the path. A deleted job counts as missing.
func (s *Server) livingJob(r *http.Request) (read.Job, error) {
	id, err := jobID(r)
	if err != nil {
		return read.Job{}, err
	}
	return s.jobByID(r.Context(), id)
}

func (s *Server) jobByID(ctx context.Context, id int64) (read.Job, error) {
	j, err := s.cfg.DB.Job(ctx, id)
	if err == nil && j.Deleted {
		err = sql.ErrNotFound
	}
	return j, err
}

// appAndName returns the app and the name in the path.
func appAndName(r *http.Request) (app, name string, err error) {
	if app, err = param(r, "app"); err != nil {
		return "", "", err
	}
	name, err = param(r, "name")
	return app, name, err
}

// createJob: POST /api/v1/jobs
func (s *Server) createJob(w http.ResponseWriter, r *http.Request) error {
	body, err := readObject(r)
	if err != nil {
		return err
	}

	b, err := newJob(body)
	if err != nil {
		return err
	}

	j, err := s.create(r.Context(), b)
	if err != nil {
		return err
	}
	return s.created(w, r, j)
}

func (s *Server) create(ctx context.Context, b jobBody) (*read.Job, error) {
	if err := s.complete(&b.spec); err != nil {
		return nil, err
	}
	if err := mayWrite(ctx, b.spec.App); err != nil {
		return nil, err
	}

	e, err := s.editor()
	if err != nil {
		return nil, err
	}

	done, err := e.Create(ctx, b.spec, b.paused != nil && *b.paused)

	var j *read.Job
	if err == nil {
		j, err = s.jobAfter(ctx, done)
	}
	return j, lookAt(err, "GET %s shows whether the job was created.", namedPath(b.spec.App, b.spec.Name))
}

func namedPath(app, name string) string {
	return "/api/v1/apps/" + url.PathEscape(app) + "/jobs/" + url.PathEscape(name)
}

func (s *Server) created(w http.ResponseWriter, r *http.Request, j *read.Job) error {
	w.Header().Set("Location", fmt.Sprintf("/api/v1/jobs/%d", j.ID))
	return s.answerJob(w, r, http.StatusCreated, j)
}

// jobFilter reads the query parameters that select jobs.
func jobFilter(q *query) read.JobFilter {
	return read.JobFilter{
		App: q.text(ofAppParam), Name: q.text(jobNameParam), Status: job.Status(q.word(jobStatusParam)),
		Owner: q.text(ownerParam),
		Group: q.text(inGroupParam), Calendar: q.text(byCalendarParam), Labels: q.label(labelIs),
	}
}

// listJobs: GET /api/v1/jobs
func (s *Server) listJobs(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	f := jobFilter(q)
	f.Apps, f.Limit = auth.Of(r.Context()).Sees(), q.limit()
	ids, lastRuns := q.onlyIDs(jobIDs, jobFilterParams), q.word(withParam) == withLastRuns
	if c := q.cursor("jobs"); c != nil {
		f.After, f.Part = c.ID, c.part
	}
	if err := q.err(); err != nil {
		return err
	}

	found, err := s.jobsOf(r.Context(), f, ids)
	if err != nil {
		return err
	}

	var p view.Page[*view.Job]
	if n := found.Next; n != nil {
		p.Next = (&cursor{list: "jobs", part: n.Part, RunPlace: read.RunPlace{ID: n.ID}}).String()
	}
	if p.Items, err = s.views(r.Context(), found.Rows, lastRuns); err != nil {
		return err
	}

	return answer(w, http.StatusOK, p)
}

// jobsOf reads the jobs with the given ids that the caller may see. If ids is nil, it reads a page
// of all jobs that the filter selects.
func (s *Server) jobsOf(ctx context.Context, f read.JobFilter, ids []int64) (read.JobPage, error) {
	if ids == nil {
		return s.cfg.DB.JobPage(ctx, f)
	}

	rows, err := s.cfg.DB.LivingJobs(ctx, ids)
	var p read.JobPage
	for _, id := range ids {
		if j, ok := rows[id]; ok && mayRead(ctx, j.Spec.App) {
			p.Rows = append(p.Rows, j)
		}
	}
	return p, err
}

// getJob: GET /api/v1/jobs/{id}
func (s *Server) getJob(w http.ResponseWriter, r *http.Request) error {
	j, err := s.livingJob(r)
	if err != nil {
		return err
	}
	return s.showJob(w, r, j)
}

// getJobNamed: GET /api/v1/apps/{app}/jobs/{name}
func (s *Server) getJobNamed(w http.ResponseWriter, r *http.Request) error {
	app, name, err := appAndName(r)
	if err != nil {
		return err
	}
	j, err := s.cfg.DB.JobNamed(r.Context(), app, name)
	if err != nil {
		return err
	}
	return s.showJob(w, r, j)
}

func (s *Server) showJob(w http.ResponseWriter, r *http.Request, j read.Job) error {
	views, err := s.views(r.Context(), []read.Job{j}, false)
	if err != nil {
		return err
	}
	if views[0].Followers, err = s.followersOf(r.Context(), j.ID); err != nil {
		return err
	}
	return showTagged(w, r, tagOfJob(&j), views[0])
}

// deleteJob: DELETE /api/v1/jobs/{id}
func (s *Server) deleteJob(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}

	e, err := s.editor()
	if err != nil {
		return err
	}

	q := newQuery(r)
	force := q.word(forceParam) == "true"
	if q.problems != nil {
		return invalidFields(q.problems)
	}
	err = s.asWanted(r, id, func(ctx context.Context) error {
		if force {
			ctx = job.WithForce(ctx)
		}
		_, err := e.Delete(ctx, id)
		return err
	})
	if err != nil {
		return lookAt(err, "GET /api/v1/jobs/%d shows whether the job still exists.", id)
	}

	w.WriteHeader(http.StatusNoContent)
	return nil
}
