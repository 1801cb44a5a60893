package api

import (
	"net/http"
	"slices"
	"strings"

	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// retentionView is the retention rule of an app, or of the cluster, as clients see it.
type retentionView struct {
	Scope job.Scope `json:"scope" doc:"Whether it is the rule of an app or of the cluster."`
	App   string    `json:"app,omitempty" doc:"The app, if it is an app's rule."`

	Age      job.Duration `json:"age,omitempty" doc:"Records that ended longer ago are removed, with their output."`
	Runs     int64        `json:"runs,omitempty" doc:"For each job, only the records of this many of the latest due times are kept."`
	Bytes    job.Size     `json:"bytes,omitempty" doc:"For each job, only the latest records are kept, up to this total size of their output."`
	Failures job.Duration `json:"failures,omitempty" doc:"Records of runs that did not succeed are kept at least this long, whatever the other fields say."`
	Archive  bool         `json:"archive,omitempty" doc:"Records are only removed after a node with an archive command has archived them. Only in the cluster's rule."`
}

var retentionReadOnly = []string{"scope", "app"}

// retentionsView lists all rules and the progress of the removal.
type retentionsView struct {
	Items []retentionView `json:"items" doc:"The rules: the cluster's first, then those of apps by name."`
	Work  *retentionWork  `json:"work,omitempty" doc:"The progress of the removal. Absent for tokens that are limited to apps."`
}

type retentionWork struct {
	Ended    string `json:"ended,omitempty" format:"date-time" doc:"When the last round over all jobs ended."`
	Removed  int64  `json:"removed" doc:"How many records were removed since the cluster was created."`
	Archived int64  `json:"archived" doc:"How many records were given to the archive command, some perhaps more than once."`
	Failures int64  `json:"failures" doc:"How often the archive command has failed since the last round in which it archived all records. Those records stay."`
	Error    string `json:"error,omitempty" doc:"Why it failed the last time."`
	ErrorAt  string `json:"error_at,omitempty" format:"date-time" doc:"When it failed the last time."`
}

func viewOfRetention(app string, r job.Retention) retentionView {
	v := retentionView{
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

	v := retentionsView{Items: []retentionView{}}
	for app, rule := range rules {
		if app == "" || auth.Of(r.Context()).MayIn(viewer, app) {
			v.Items = append(v.Items, viewOfRetention(app, rule))
		}
	}

	slices.SortFunc(v.Items, func(a, b retentionView) int { return strings.Compare(a.App, b.App) })
	// An error of the archive command may name jobs of any app.
	if auth.Of(r.Context()).Sees() == nil {
		c, err := read.Retaining(s.cfg.DB.Reader(r.Context()))
		if err != nil {
			return err
		}
		v.Work = &retentionWork{Ended: stamp(c.Ended), Removed: c.Removed, Archived: c.Archived, Failures: c.Failures}
		if c.Failures > 0 {
			v.Work.Error, v.Work.ErrorAt = c.Error, stamp(c.ErrorAt)
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
