package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

var limitsReadOnly = []string{"app", "use"}

// waitingCounted is where counting of waiting due times stops. If the app's limit is higher,
// counting stops at the limit.
const waitingCounted = 10_000

func (s *Server) viewLimits(ctx context.Context, app string, l job.AppLimits) (view.AppLimits, error) {
	v := view.AppLimits{App: app, Jobs: l.Jobs, RunsPerMinute: l.RunsPerMinute, Waiting: l.Waiting, Output: l.Output}
	now, err := s.now()
	if err != nil {
		return v, err
	}

	var use view.AppUse
	if use.Jobs, err = s.cfg.DB.CountJobs(ctx, app); err != nil {
		return v, err
	}

	starts, err := trip.AppStarts(s.cfg.DB.Reader(ctx), app, job.FirstOfMinute(job.MicrosOf(now)))
	if err != nil {
		return v, err
	}

	use.RunsPerMinute = starts.LastMinute(job.MicrosOf(now))
	if use.Waiting, err = trip.CountWaiting(s.cfg.DB.Reader(ctx), app, max(waitingCounted, l.Waiting)); err != nil {
		return v, err
	}
	if l.Output != 0 { // without a limit the output is not counted, and the stored sum is stale
		use.Output, err = s.keptOutput(ctx, app)
	}

	v.Use = &use
	return v, err
}

// keptOutput returns how many bytes of kept output are counted for an app.
func (s *Server) keptOutput(ctx context.Context, app string) (int64, error) {
	r := s.cfg.DB.Reader(ctx)
	numbers, err := trip.Apps(r, []string{app})
	if err != nil {
		return 0, err
	}
	sums, err := trip.ReadOutputSums(r)
	return sums.Apps[numbers[app]].Bytes, err
}

// listLimits: GET /api/v1/limits
func (s *Server) listLimits(w http.ResponseWriter, r *http.Request) error {
	limits, err := trip.Limits(s.cfg.DB.Reader(r.Context()))
	if err != nil {
		return err
	}

	p := view.Page[view.AppLimits]{Items: []view.AppLimits{}}
	for app, l := range limits {
		if !auth.Of(r.Context()).MayIn(viewer, app) {
			continue
		}
		v, err := s.viewLimits(r.Context(), app, l)
		if err != nil {
			return err
		}
		p.Items = append(p.Items, v)
	}

	slices.SortFunc(p.Items, func(a, b view.AppLimits) int { return strings.Compare(a.App, b.App) })
	return answer(w, http.StatusOK, p)
}

// getLimits: GET /api/v1/apps/{app}/limits
func (s *Server) getLimits(w http.ResponseWriter, r *http.Request) error {
	app, err := scope(r)
	if err != nil {
		return err
	}

	limits, err := trip.Limits(s.cfg.DB.Reader(r.Context()))
	if err != nil {
		return err
	}

	v, err := s.viewLimits(r.Context(), app, limits[app])
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, v)
}

const lookAtLimits = "GET shows the current limits of the app. You can safely repeat the request."

// putLimits: PUT /api/v1/apps/{app}/limits
func (s *Server) putLimits(w http.ResponseWriter, r *http.Request) error {
	app, err := scope(r)
	if err != nil {
		return err
	}

	body, err := readObject(r)
	if err != nil {
		return err
	}

	limits, err := readLimits(body)
	if err != nil {
		return err
	}

	ctx, err := wanted(r, "limits")
	if err != nil {
		return err
	}

	e, err := s.editor()
	if err != nil {
		return err
	}
	if err := e.PutLimits(ctx, app, limits); err != nil {
		return lookAt(err, lookAtLimits)
	}

	v, err := s.viewLimits(r.Context(), app, limits)
	if err != nil { // the change is committed, so the client must not take this for a failed change
		return lookAt(&sql.Unknown{Err: err}, lookAtLimits)
	}
	return answer(w, http.StatusOK, v)
}

// readLimits reads limits from a body.
func readLimits(body map[string]any) (l job.AppLimits, err error) {
	f := newFields(body)
	var jobs, runs, waiting int
	f.count("jobs", &jobs, job.MostLimit)
	f.count("runs_per_minute", &runs, job.MostLimit)
	f.count("waiting", &waiting, job.MostLimit)
	f.size("output", &l.Output)
	f.ignore(limitsReadOnly...)
	if err := f.done(); err != nil {
		return l, err
	}

	l = job.AppLimits{Jobs: int64(jobs), RunsPerMinute: int64(runs), Waiting: int64(waiting), Output: l.Output}
	if l == (job.AppLimits{}) {
		return l, invalidField("body", problem.NoLimit)
	}
	return l, nil
}

// deleteLimits: DELETE /api/v1/apps/{app}/limits
func (s *Server) deleteLimits(w http.ResponseWriter, r *http.Request) error {
	app, err := scope(r)
	if err != nil {
		return err
	}

	e, err := s.editor()
	if err != nil {
		return err
	}
	if err := e.DeleteLimits(r.Context(), app); err != nil {
		return lookAt(err, lookAtLimits)
	}

	w.WriteHeader(http.StatusNoContent)
	return nil
}

// overLimit is the problem of a change that would exceed a limit of an app.
func overLimit(over *job.OverLimit) *Problem {
	p := appLimit.problem("%s.", capital(over.Error()))
	if over.After > 0 {
		p.retryAfter = strconv.Itoa(int(over.After / time.Second))
	}
	return p
}
