package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"go-crontab/internal/manifest"
	"go-crontab/job"
)

// exportAlerts adds the channels and rules of alerts in the file format. Only admins of the cluster
// see complete channels.
func (r *remote) exportAlerts(ctx context.Context, o *manifest.Objects, left []string) ([]string, error) {
	channels, _, err := list[job.AlertChannel](ctx, r, channelsPath, nil, 0)
	if err != nil {
		return nil, err
	}

	rules, _, err := list[job.AlertRule](ctx, r, rulesPath, nil, 0)
	if err != nil {
		return nil, err
	}

	slices.SortFunc(channels, func(a, b job.AlertChannel) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(rules, func(a, b job.AlertRule) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range channels {
		if masked(&c) {
			left = append(left, "channel "+plain(c.Name)+": only an admin of the cluster sees its secrets")
			continue
		}
		text, err := json.Marshal(c.Minimal())
		if err != nil {
			return nil, err
		}
		o.Channels = append(o.Channels, text)
	}

	for _, rule := range rules {
		text, err := json.Marshal(rule.Minimal())
		if err != nil {
			return nil, err
		}
		o.Rules = append(o.Rules, text)
	}

	return left, nil
}

// masked reports whether the API has hidden a part of the channel.
func masked(c *job.AlertChannel) bool {
	for _, v := range c.Headers {
		if v == "***" {
			return true
		}
	}
	return strings.HasSuffix(c.URL, "***")
}
