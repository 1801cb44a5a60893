package api

import (
	"net/http"
	"slices"
	"strings"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

var retentionReadOnly = []string{"scope", "app"}

func viewOfRetention(app string, r job.Retention) view.Retention {
	v := view.Retention{
		Scope: job.ScopeCluster, Age: r.Age, Runs: r.Runs, Bytes: r.Bytes, Failures: r.Failures, Archive: r.Archive,
	}
	if app != "" {
		v.Scope, v.App = job.ScopeApp, app
	}
	return v
}

// keepFields reads the limits of a retention rule.
func keepFields(f *fields, k *job.Keep) {
	f.duration("age", &k.Age)
	runs := int(k.Runs)
	f.count("runs", &runs, job.MostKept)
	k.Runs = int64(runs)
	f.size("bytes", &k.Bytes)
	f.duration("failures", &k.Failures)
}

// listRetention: GET /api/v1/retention
func (s *Server) listRetention(w http.ResponseWriter, r *http.Request) error {
	rules, err := trip.Retentions(s.cfg.DB.Reader(r.Context()))
	if err != nil {
		return err
	}

	v := view.Retentions{Items: []view.Retention{}}
	for app, rule := range rules {
		if app == "" || auth.Of(r.Context()).MayIn(viewer, app) {
			v.Items = append(v.Items, viewOfRetention(app, rule))
		}
	}

	slices.SortFunc(v.Items, func(a, b view.Retention) int { return strings.Compare(a.App, b.App) })
	// An error of the archive command may name jobs of any app.
	if auth.Of(r.Context()).Sees() == nil {
		c, err := read.Retaining(s.cfg.DB.Reader(r.Context()))
		if err != nil {
			return err
		}
		v.Work = &view.RetentionWork{
			Ended: instant(c.Ended), Removed: c.Removed, Archived: c.Archived, Failures: c.Failures,
		}
		if c.Failures > 0 {
			v.Work.Error, v.Work.ErrorAt = c.Error, instant(c.ErrorAt)
		}
	}

	return answer(w, http.StatusOK, v)
}

// putRetention: PUT /api/v1/cluster/retention and /api/v1/apps/{app}/retention
func (s *Server) putRetention(w http.ResponseWriter, r *http.Request) error {
	app, err := scope(r)
	if err != nil {
		return err
	}

	body, err := readObject(r)
	if err != nil {
		return err
	}

	var rule job.Retention
	f := newFields(body)
	keepFields(f, &rule.Keep)
	f.flag("archive", &rule.Archive)
	f.ignore(retentionReadOnly...)
	if err := f.done(); err != nil {
		return err
	}

	ctx, err := wanted(r, "rule")
	if err != nil {
		return err
	}

	e, err := s.editor()
	if err != nil {
		return err
	}
	if err := e.PutRetention(ctx, app, rule); err != nil {
		return lookAt(err, "GET /api/v1/retention shows the current rules. You can safely repeat the request.")
	}

	return answer(w, http.StatusOK, viewOfRetention(app, rule))
}
