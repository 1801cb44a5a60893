package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go-crontab/job/problem"
)

// RetentionSpec is the retention rule of an app, or of the cluster, as files define it.
type RetentionSpec struct {
	Scope string `json:"scope,omitempty" enum:"app,cluster" doc:"'cluster' for the cluster's rule. An app's rule needs only 'app'."`
	App   string `json:"app,omitempty" doc:"The app, if it is an app's rule."`

	Age      Duration `json:"age,omitempty" doc:"Records that ended longer ago are removed, with their output."`
	Runs     int64    `json:"runs,omitempty" doc:"For each job, only the records of this many of the latest due times are kept."`
	Bytes    Size     `json:"bytes,omitempty" doc:"For each job, only the latest records are kept, up to this total size of their output."`
	Failures Duration `json:"failures,omitempty" doc:"Records of runs that did not succeed are kept at least this long, whatever the other fields say."`
	Archive  bool     `json:"archive,omitempty" doc:"Records are only removed after a node with an archive command has archived them. Only in the cluster's rule."`
}

// Rule returns the rule.
func (s *RetentionSpec) Rule() Retention {
	return Retention{Keep{s.Age, s.Runs, s.Bytes, s.Failures}, s.Archive}
}

// PauseSpec is the pause of an app, or of the cluster, as files define it.
type PauseSpec struct {
	Scope  string     `json:"scope,omitempty" enum:"app,cluster" doc:"'cluster' for the cluster's pause. An app's pause needs only 'app'."`
	App    string     `json:"app,omitempty" doc:"The app, if it is an app's pause."`
	Reason string     `json:"reason,omitempty" doc:"The reason, in one line."`
	Until  *time.Time `json:"until,omitempty" doc:"When the pause ends by itself. Without it, it lasts until somebody resumes. A time in the past has no effect."`
}

// Request returns the pause as a request.
func (s *PauseSpec) Request() (r PauseRequest) {
	if r.Reason = s.Reason; s.Until != nil {
		r.Until = MicrosOf(*s.Until)
	}
	return r
}

// MaxApplyScopes bounds the retention rules in one Apply, and also the pauses.
const MaxApplyScopes = 1000

// checkScope adds problems if the scope and the app of a rule or a pause are wrong.
func checkScope(p *Problems, seen map[string]int, list string, i int, scope, app string) {
	place := fmt.Sprintf("%s[%d]", list, i)
	switch {
	case scope != "" && scope != string(ScopeApp) && scope != string(ScopeCluster):
		p.Add(place+".scope", problem.ScopeUnknown, scope)
		return
	case scope == string(ScopeCluster) && app != "":
		p.Add(place+".app", problem.ScopeOfTwo, app)
		return
	case scope != string(ScopeCluster) && app == "":
		p.Add(place+".app", problem.Missing.Advise("give an app, or scope: cluster"))
		return
	case app != "":
		checkName(p, place+".app", app)
	}

	if first, is := seen[app]; is {
		p.Add(place+".app", problem.GivenAlreadyAs, problem.Shown(app, "that of "+scopeName(app)),
			fmt.Sprintf("%s[%d]", list, first))
		return
	}

	seen[app] = i
}

func scopeName(app string) string {
	if app == "" {
		return "the cluster"
	}
	return "app " + app
}

// checkScopes checks retention and pauses, and sorts them by app.
func (a *Apply) checkScopes(p *Problems, now Micros) {
	seen := map[string]int{}
	for i := range a.Retention {
		s := &a.Retention[i]
		checkScope(p, seen, "retention", i, s.Scope, s.App)
		rule := s.Rule()
		p.within(fmt.Sprintf("retention[%d]", i), rule.Validate(s.App))
	}

	seen = map[string]int{}
	for i := range a.Pauses {
		s := &a.Pauses[i]
		checkScope(p, seen, "pauses", i, s.Scope, s.App)
		r := s.Request()
		if s.Until != nil && r.Until <= now { // the pause in the file has ended
			r.Until = 0
		}
		p.within(fmt.Sprintf("pauses[%d]", i), r.Validate(now))
	}

	// Lock the apps in sorted order.
	slices.SortFunc(a.Retention, func(a, b RetentionSpec) int { return strings.Compare(a.App, b.App) })
	slices.SortFunc(a.Pauses, func(a, b PauseSpec) int { return strings.Compare(a.App, b.App) })
}

// Diff lists the fields in which two rules differ. Either may be nil.
func (r *Retention) Diff(other *Retention) []Change { return diff(flatOf(r), flatOf(other)) }

// Diff lists the fields in which two pauses of the same scope differ. The first may be nil.
func (r *PauseRequest) Diff(other *PauseRequest) []Change {
	return diff(flatOf(r.spec()), flatOf(other.spec()))
}

func (r *PauseRequest) spec() *PauseSpec {
	if r == nil {
		return nil
	}
	s := &PauseSpec{Reason: r.Reason}
	if r.Until != 0 {
		until := r.Until.Time()
		s.Until = &until
	}
	return s
}
