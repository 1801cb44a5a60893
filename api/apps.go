package api

import (
	"context"
	"net/http"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
)

// absentParam allows a request to change an object that does not exist yet. Without the parameter
// such a request is refused, because the name may be mistyped.
var absentParam = wordParam{declared{"absent", "`ok`: the target does not have to exist yet.", "ok"}, []string{"ok"}}

// listApps: GET /api/v1/apps
func (s *Server) listApps(w http.ResponseWriter, r *http.Request) error {
	names, err := s.visibleApps(r.Context())
	if err != nil {
		return err
	}
	p := view.Page[*view.App]{Items: []*view.App{}}
	for _, name := range names {
		p.Items = append(p.Items, &view.App{Name: name})
	}
	return answer(w, http.StatusOK, p)
}

// visibleApps lists the apps with jobs that the caller may see.
func (s *Server) visibleApps(ctx context.Context) (visible []string, err error) {
	all, err := s.cfg.DB.Apps(ctx)
	for _, app := range all {
		if auth.Of(ctx).MayIn(viewer, app) {
			visible = append(visible, app)
		}
	}
	return visible, err
}

// absentOK reports whether the request may change an object that does not exist yet.
func absentOK(r *http.Request) (bool, error) {
	q := newQuery(r)
	absent := q.word(absentParam)
	return absent == "ok", q.err()
}

// knownApp refuses an app without jobs, unless the request allows that.
func (s *Server) knownApp(r *http.Request, app string) error {
	if ok, err := absentOK(r); err != nil || ok {
		return err
	}

	known, err := s.cfg.DB.HasJobs(r.Context(), app)
	if err != nil || known {
		return err
	}

	apps, err := s.visibleApps(r.Context())
	if err != nil {
		return err
	}

	return notFound.problem("The app %q has no jobs%s Add ?absent=ok if the app is meant to have none yet.",
		cutShort(app), didYouMean(app, apps))
}

// didYouMean ends a sentence about an unknown word. It proposes the nearest name, if one is near.
func didYouMean(word string, names []string) string {
	if near := Nearest(word, names); near != "" {
		return "; did you mean \"" + near + "\"?"
	}
	return "."
}
