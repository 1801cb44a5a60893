package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"go-crontab/api/view"
	"go-crontab/internal/manifest"
	"go-crontab/job"
)

// exportRetention adds retention rules in the file format. It adds the rule of an app, or if app is
// "", the rules of the cluster and of all apps.
func (r *remote) exportRetention(ctx context.Context, o *manifest.Objects, app string) error {
	rules, _, err := get[view.Retentions](ctx, r, "/api/v1/retention", nil)
	if err != nil {
		return err
	}

	ofCluster := func(rule view.Retention) bool { return rule.App == "" }
	if app == "" && !slices.ContainsFunc(rules.Items, ofCluster) {
		// If the file had no rule, a new cluster would use its default. An empty rule keeps
		// everything.
		rules.Items = append(rules.Items, view.Retention{})
	}

	slices.SortFunc(rules.Items, func(a, b view.Retention) int { return strings.Compare(a.App, b.App) })
	for _, rule := range rules.Items {
		if app != "" && rule.App != app {
			continue
		}
		spec := job.RetentionSpec{
			App: rule.App, Age: rule.Age, Runs: rule.Runs, Bytes: rule.Bytes, Failures: rule.Failures,
			Archive: rule.Archive,
		}
		if rule.App == "" {
			spec.Scope = "cluster"
		}
		text, err := json.Marshal(spec)
		if err != nil {
			return err
		}
		o.Retention = append(o.Retention, text)
	}

	return nil
}

// exportPauses adds the pauses of the cluster and of apps in the file format.
func (r *remote) exportPauses(ctx context.Context, o *manifest.Objects) error {
	pauses, _, err := get[view.Page[view.Pause]](ctx, r, "/api/v1/pauses", nil)
	if err != nil {
		return err
	}

	slices.SortFunc(pauses.Items, func(a, b view.Pause) int { return strings.Compare(a.App, b.App) })
	for _, p := range pauses.Items {
		f := job.PauseSpec{App: p.App, Reason: p.Reason, Until: p.Until}
		if p.App == "" {
			f.Scope = "cluster"
		}
		text, err := json.Marshal(f)
		if err != nil {
			return err
		}
		o.Pauses = append(o.Pauses, text)
	}

	return nil
}
