package schedule

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/job"
)

// TestApplyRetentionAndPauses: they stand or fall with the jobs beside them, and jobs that come with a pause are held by it.
func TestApplyRetentionAndPauses(t *testing.T) {
	f := setUp(t)
	f.exec("DELETE FROM retention")
	until := f.session.Now().Add(time.Hour).Time()
	want := func() job.Apply {
		return job.Apply{
			Retention: []job.RetentionSpec{{App: "shop", Runs: 10}, {Scope: "cluster", Age: job.Duration(time.Hour)}},
			Pauses:    []job.PauseSpec{{App: "shop", Reason: "stocktaking", Until: &until}, {App: "ops"}},
			Jobs:      []job.Wanted{wanted(job.Spec{App: "shop", Name: "a", Every: job.Duration(time.Minute)})},
		}
	}
	actions := func(a job.Apply) (out string) {
		t.Helper()
		done := f.apply(a)
		for _, o := range done.Objects() {
			out += " " + o.Name + ":" + string(o.Action)
		}
		return out
	}
	dry := want()
	dry.DryRun = true
	const fresh = " :created shop:created ops:created shop:created"
	if got := actions(dry); got != fresh {
		t.Errorf("a dry run: got %s", got)
	}
	for name, c := range map[string]struct {
		change      func(*job.Apply)
		field, want string
	}{
		"of nothing":           {func(a *job.Apply) { a.Retention[0].App = "" }, "retention[0].app", "is missing"},
		"of both":              {func(a *job.Apply) { a.Pauses[0].Scope = "cluster" }, "pauses[0].app", "leave one of them out"},
		"of a job":             {func(a *job.Apply) { a.Pauses[0].Scope = "job" }, "pauses[0].scope", "neither app nor cluster"},
		"twice":                {func(a *job.Apply) { a.Pauses[1].App = "shop" }, "pauses[1].app", "given already, as pauses[0]"},
		"too short":            {func(a *job.Apply) { a.Retention[0].Age = 1 }, "retention[0].age", "is not between"},
		"an archive of an app": {func(a *job.Apply) { a.Retention[0].Archive = true }, "retention[0].archive", "not for an app"},
		"two lines":            {func(a *job.Apply) { a.Pauses[1].Reason = "a\nb" }, "pauses[1].reason", "control character"},
		"a job that is wrong":  {func(a *job.Apply) { a.Jobs[0].Group = "none" }, "jobs[0].group", "no group"},
	} {
		a := want()
		c.change(&a)
		_, err := f.editor.Apply(t.Context(), a)
		var p job.Problems
		if !errors.As(err, &p) || p[0].Field != c.field || !strings.Contains(p[0].Message, c.want) {
			t.Errorf("%s: got %v, want %s: …%s…", name, err, c.field, c.want)
		}
	}
	f.want("rules, pauses and jobs behind all that", 0, "SELECT (SELECT COUNT(*) FROM retention) + (SELECT COUNT(*) FROM pause) + (SELECT COUNT(*) FROM job)")
	if got := actions(want()); got != fresh {
		t.Errorf("got %s", got)
	}
	f.want("jobs that the pause holds", 1, "SELECT COUNT(*) FROM job WHERE held = 1 AND next_due IS NULL")
	f.want("due times", 0, "SELECT COUNT(*) FROM task")
	if got := actions(want()); strings.Contains(got, "created") || strings.Contains(got, "updated") {
		t.Errorf("the same again: got %s", got)
	}
	f.want("lines of the audit", 4, "SELECT COUNT(*) FROM audit WHERE kind IN ('retention', 'app')")
	since := f.number("SELECT since FROM pause WHERE app = 'shop'")
	changed := want()
	changed.Pauses[0].Reason, changed.Retention[1].Archive, changed.Retention[0].Runs = "", true, 0
	if got := actions(changed); got != " :updated shop:updated ops:unchanged shop:updated" {
		t.Errorf("a change: got %s", got)
	}
	f.want("since when the pause is", since, "SELECT since FROM pause WHERE app = 'shop' AND reason = ''")
	f.want("an empty rule of an app", 0, "SELECT COUNT(*) FROM retention WHERE app = 'shop'")

	// A pause that a file has and that has ended by itself does no harm.
	f.session.set(job.MicrosOf(until).Add(time.Second))
	if got := actions(want()); !strings.HasSuffix(got, " ops:unchanged shop:unchanged") {
		t.Errorf("after its end: got %s", got)
	}
	f.want("the pause, as it was", since, "SELECT since FROM pause WHERE app = 'shop'")
	open := want()
	open.Pauses[0].Until = nil
	if got := actions(open); !strings.HasSuffix(got, " ops:unchanged shop:created") {
		t.Errorf("anew: got %s", got)
	}
	f.want("the end of the one before, in the audit", 1, "SELECT COUNT(*) FROM audit WHERE kind = 'app' AND app = 'shop' AND action = 'resume'")
}

// TestApplyScopesByMany: of several who apply different files at the same time each ends with a cluster that has one of
// them whole.
func TestApplyScopesByMany(t *testing.T) {
	f := setUp(t)
	var all sync.WaitGroup
	for i := range 4 {
		reason := strings.Repeat("x", i+1)
		all.Go(func() {
			for range 5 {
				_, err := f.editor.Apply(t.Context(), job.Apply{
					Retention: []job.RetentionSpec{{App: "b", Runs: int64(i + 1)}, {App: "a", Runs: int64(i + 1)}},
					Pauses:    []job.PauseSpec{{App: "b", Reason: reason}, {App: "a", Reason: reason}},
				})
				if err != nil && !errors.Is(err, job.ErrChanged) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	f.want("reasons", 1, "SELECT COUNT(DISTINCT reason) FROM pause")
	f.want("pauses", 2, "SELECT COUNT(*) FROM pause")
	f.want("rules", 1, "SELECT COUNT(DISTINCT spec) FROM retention WHERE app <> ''")
	f.want("changes without a line of the audit", 0, "SELECT COUNT(*) % 2 FROM audit WHERE kind = 'app'")
}
