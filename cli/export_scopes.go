package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/manifest"
)

// exportRetention adds the retention rules in the file format: of an app, or with "" of the cluster
// and of all apps.
func (r *remote) exportRetention(ctx context.Context, o *manifest.Objects, app string) error {
	rules, _, err := get[retentionRules](ctx, r, "/api/v1/retention", nil)
	if err != nil {
		return err
	}

	ofCluster := func(rule retentionRule) bool { return rule.App == "" }
	if app == "" && !slices.ContainsFunc(rules.Items, ofCluster) {
		// an empty rule keeps everything; a new cluster has a default instead
		rules.Items = append(rules.Items, retentionRule{})
	}

	slices.SortFunc(rules.Items, func(a, b retentionRule) int { return strings.Compare(a.App, b.App) })
	for _, rule := range rules.Items {
		if app != "" && rule.App != app {
			continue
		}
		if rule.Scope = ""; rule.App == "" {
			rule.Scope = "cluster"
		}
		text, err := json.Marshal(rule)
		if err != nil {
			return err
		}
		o.Retention = append(o.Retention, text)
	}

	return nil
}

// filePause is a pause of an app or of the cluster in the file format.
type filePause struct {
	Scope  string     `json:"scope,omitempty"`
	App    string     `json:"app,omitempty"`
	Reason string     `json:"reason,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
}

// exportPauses adds the pauses of the cluster and of apps in the file format.
func (r *remote) exportPauses(ctx context.Context, o *manifest.Objects) error {
	pauses, _, err := get[view.Page[pauseView]](ctx, r, "/api/v1/pauses", nil)
	if err != nil {
		return err
	}

	slices.SortFunc(pauses.Items, func(a, b pauseView) int { return strings.Compare(a.App, b.App) })
	for _, p := range pauses.Items {
		f := filePause{App: p.App, Reason: p.Reason, Until: p.Until}
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
