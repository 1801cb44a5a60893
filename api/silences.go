package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"go-crontab/api/view"
	"go-crontab/internal/alert"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
)

func (s *Server) viewSilence(n *job.Silence) view.Silence {
	return view.Silence{
		ID: idText(n.ID), App: n.App, Job: n.Job, Rule: n.Rule, Until: n.Until.Time(), Reason: n.Reason, By: n.Who,
		Created: n.Created.Time(),
		Over:    n.Until <= job.MicrosOf(s.cfg.Now()),
	}
}

// listSilences: GET /api/v1/alerts/silences
func (s *Server) listSilences(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	limit, after := q.limit(), int64(0)
	if c := q.cursor("silences"); c != nil {
		after = c.ID
	}

	over := q.word(silencesOverParam) == "true"
	if err := q.err(); err != nil {
		return err
	}

	until := job.MicrosOf(s.cfg.Now())
	if over {
		until = 0
	}

	p := view.Page[view.Silence]{Items: []view.Silence{}}

	apps := auth.Of(r.Context()).Sees()
	rows, err := alert.Silences(s.cfg.DB.Reader(r.Context()), until, after, limit+1)
	if err != nil {
		return err
	}

	rows, p.Next = oneMore("silences", rows, limit, func(r *job.Silence) int64 { return r.ID })
	for i := range rows {
		if n := &rows[i]; apps == nil || n.App == "" || slices.Contains(apps, n.App) {
			p.Items = append(p.Items, s.viewSilence(n))
		}
	}

	return answer(w, http.StatusOK, p)
}

// maySilence returns why the caller may not silence the alerts of an app ("" for all apps), or nil.
func maySilence(ctx context.Context, app string) error {
	p := auth.Of(ctx)
	switch {
	case p.May(operator), app != "" && p.MayIn(operator, app):
		return nil
	case app == "":
		return forbid(p,
			"A silence for all apps needs the role %s without a limit to apps (choose an app of yours to avoid that)",
			operator)
	}

	return forbid(p, "This needs the role %s in app %s", operator, cutShort(app))
}

// addSilence: POST /api/v1/alerts/silences
func (s *Server) addSilence(w http.ResponseWriter, r *http.Request) error {
	body, err := readObject(r)
	if err != nil {
		return err
	}

	var n job.Silence
	f := newFields(body)
	f.text("app", &n.App)
	f.text("job", &n.Job)
	f.text("rule", &n.Rule)
	f.text("reason", &n.Reason)

	if v, given := f.take("until"); given {
		now, err := s.now()
		if err != nil {
			return err
		}

		text, _ := v.(string)
		until, ok := endOf(text, now)
		if !ok {
			f.want("until", v, advised(problem.WantUntil, text))
		}

		n.Until = job.MicrosOf(until)
	}

	if err := f.done(); err != nil {
		return err
	}
	if err := maySilence(r.Context(), n.App); err != nil {
		return err
	}

	place := func() string { return "/api/v1/alerts/silences/" + strconv.FormatInt(n.ID, 10) }
	// Keep the answer, because repeating the request might add another silence.
	answerKnown(r, http.StatusCreated, func() (any, string) { return s.viewSilence(&n), place() })
	if err := s.alerts.AddSilence(r.Context(), &n); err != nil {
		return lookAt(err, "GET /api/v1/alerts/silences shows whether it has begun.")
	}

	w.Header().Set("Location", place())
	return answer(w, http.StatusCreated, s.viewSilence(&n))
}

func silenceID(r *http.Request) (int64, error) {
	return pathID(r, noSilence)
}

func noSilence(text string) error {
	return notFound.problem("There is no silence %q; GET /api/v1/alerts/silences lists them.", cutShort(text))
}

// getSilence: GET /api/v1/alerts/silences/{id}
func (s *Server) getSilence(w http.ResponseWriter, r *http.Request) error {
	id, err := silenceID(r)
	if err != nil {
		return err
	}

	n, err := alert.SilenceByID(s.cfg.DB.Reader(r.Context()), id)
	if errors.Is(err, sql.ErrNotFound) || err == nil && n.App != "" && !auth.Of(r.Context()).MayIn(viewer, n.App) {
		return noSilence(strconv.FormatInt(id, 10))
	}
	if err != nil {
		return err
	}

	return answer(w, http.StatusOK, s.viewSilence(&n))
}

// endSilence: DELETE /api/v1/alerts/silences/{id}
func (s *Server) endSilence(w http.ResponseWriter, r *http.Request) error {
	id, err := silenceID(r)
	if err != nil {
		return err
	}

	_, err = s.alerts.EndSilence(r.Context(), id, func(n job.Silence) error {
		if n.App != "" && !auth.Of(r.Context()).MayIn(viewer, n.App) {
			return sql.ErrNotFound
		}
		return maySilence(r.Context(), n.App)
	})

	switch {
	case errors.Is(err, sql.ErrNotFound):
		return noSilence(strconv.FormatInt(id, 10))
	case err != nil:
		return lookAt(err, "You can safely repeat the request.")
	}

	w.WriteHeader(http.StatusNoContent)
	return nil
}
