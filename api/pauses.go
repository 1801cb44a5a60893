package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/schedule/edit"
	"go-crontab/sql"
)

func viewOfPause(p *job.Pause) *view.Pause {
	return &view.Pause{
		Scope: p.Scope, App: p.App, By: p.By, Reason: p.Reason, Since: p.Since.Time(), Until: instant(p.Until),
	}
}

// readPause reads the body of a request for a pause: none, or an object with a reason and an end.
func (s *Server) readPause(r *http.Request) (job.PauseRequest, error) {
	var p job.PauseRequest
	o, err := readOptional(r)
	if err != nil {
		return p, err
	}

	f := newFields(o)
	f.text("reason", &p.Reason)
	if v, given := f.take("until"); given {
		now, err := s.now()
		if err != nil {
			return p, err
		}

		text, _ := v.(string)
		until, ok := endOf(text, now)
		if !ok {
			f.want("until", v, advised(problem.WantUntil, text))
		}

		p.Until = job.MicrosOf(until)
	}

	return p, f.done()
}

// endOf reads the end of a pause: an instant, or the time until the end. The end may lie in the
// past; the caller refuses that.
func endOf(text string, now time.Time) (time.Time, bool) {
	if t, err := parseInstant(text); err == nil {
		return t, t.Unix() > 0
	}

	d, err := job.ParseDuration(text)
	return now.Add(d), err == nil
}

// pauseJob: POST /api/v1/jobs/{id}/pause
func (s *Server) pauseJob(w http.ResponseWriter, r *http.Request) error {
	p, err := s.readPause(r)
	if err != nil {
		return err
	}
	return s.act(w, r, func(e Editor, ctx context.Context, id int64) (edit.Done, error) { return e.Pause(ctx, id, p) })
}

// resumeJob: POST /api/v1/jobs/{id}/resume
func (s *Server) resumeJob(w http.ResponseWriter, r *http.Request) error {
	if err := readNothing(r); err != nil {
		return err
	}
	return s.act(w, r, Editor.Resume)
}

// scope returns the app that the path names. If the path names none, it returns "" for the cluster.
func scope(r *http.Request) (string, error) {
	app, err := param(r, "app")

	// An empty app in the path is a mistake. It does not mean the cluster.
	if err != nil || app == "" && !strings.Contains(r.URL.Path, "/apps/") {
		return "", err
	}
	return app, job.ValidateApp(app)
}

const lookAtPauses = "GET /api/v1/pauses shows the current state. You can safely repeat the request."

// pauseAll: POST /api/v1/apps/{app}/pause and /api/v1/cluster/pause
func (s *Server) pauseAll(w http.ResponseWriter, r *http.Request) error {
	app, err := scope(r)
	if err != nil {
		return err
	}

	p, err := s.readPause(r)
	if err != nil {
		return err
	}

	if app != "" {
		if err := s.knownApp(r, app); err != nil {
			return err
		}
	}

	e, err := s.editor()
	if err != nil {
		return err
	}

	made, err := e.PauseApp(r.Context(), app, p)
	if err != nil {
		return lookAt(err, lookAtPauses)
	}

	// The pause is committed; the number of jobs is optional.
	v := viewOfPause(&made)
	if n, err := s.cfg.DB.CountJobs(r.Context(), app); err == nil {
		v.Jobs = &n
	}
	return answer(w, http.StatusOK, v)
}

// resumeAll: POST /api/v1/apps/{app}/resume and /api/v1/cluster/resume
func (s *Server) resumeAll(w http.ResponseWriter, r *http.Request) error {
	app, err := scope(r)
	if err != nil {
		return err
	}
	if err := readNothing(r); err != nil {
		return err
	}

	if app != "" {
		if err := s.pausedOrKnown(r, app); err != nil {
			return err
		}
	}

	e, err := s.editor()
	if err != nil {
		return err
	}
	if err := e.ResumeApp(r.Context(), app); err != nil {
		return lookAt(err, lookAtPauses)
	}
	if err := s.listPauses(w, r); err != nil { // the change is committed
		return lookAt(&sql.Unknown{Err: err}, lookAtPauses)
	}

	return nil
}

// pausedOrKnown refuses an app that is not paused and has no jobs.
func (s *Server) pausedOrKnown(r *http.Request, app string) error {
	if ok, err := absentOK(r); err != nil || ok {
		return err
	}

	pauses, err := s.cfg.DB.Pauses(r.Context())
	if err != nil {
		return err
	}
	if slices.ContainsFunc(pauses, func(p job.Pause) bool { return p.App == app }) {
		return nil
	}

	return s.knownApp(r, app)
}

// listPauses: GET /api/v1/pauses. It lists the pauses of the cluster and of the apps that the
// caller may see.
func (s *Server) listPauses(w http.ResponseWriter, r *http.Request) error {
	now, err := s.now()
	if err != nil {
		return err
	}

	rows, err := s.cfg.DB.Pauses(r.Context())
	if err != nil {
		return err
	}

	p := view.Page[*view.Pause]{Items: []*view.Pause{}}
	for i := range rows {
		if app := rows[i].App; app != "" && !auth.Of(r.Context()).MayIn(viewer, app) {
			continue
		}
		if !rows[i].Over(job.MicrosOf(now)) {
			p.Items = append(p.Items, viewOfPause(&rows[i]))
		}
	}

	return answer(w, http.StatusOK, p)
}
