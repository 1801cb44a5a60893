package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
)

// TestApplyAlerts: channels and rules stand or fall with the jobs beside them.
func TestApplyAlerts(t *testing.T) {
	f := setUp(t)
	want := func() job.Apply {
		return job.Apply{
			Channels: []job.AlertChannel{{Name: "hook", Type: job.ChannelWebhook, URL: "https://example.com/alerts"}},
			Rules:    []job.AlertRule{{Name: "ops", On: []job.AlertEvent{job.AlertFailed}, Channels: []string{"hook"}}},
			Jobs:     []job.Wanted{{Spec: job.Spec{Name: "a", Every: job.Duration(time.Hour), Command: "true"}}},
		}
	}
	actions := func(a job.Apply) string {
		t.Helper()
		done, err := f.editor.Apply(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		return string(done.Channels[0].Action) + " " + string(done.Rules[0].Action) + " " + string(done.Jobs[0].Action)
	}
	dry := want()
	dry.DryRun = true
	if got := actions(dry); got != "created created created" {
		t.Errorf("a dry run: got %s", got)
	}
	f.want("channels behind it", 0, "SELECT COUNT(*) FROM alert_channel")
	for name, c := range map[string]struct {
		change      func(*job.Apply)
		field, want string
	}{
		"no such channel":       {func(a *job.Apply) { a.Rules[0].Channels = []string{"hook", "chat"} }, "rules[0].channels[1]", "no channel"},
		"no such secret":        {func(a *job.Apply) { a.Channels[0].Sign = "{{secret.nothing}}" }, "channels[0].sign", "no secret"},
		"to a heartbeat":        {func(a *job.Apply) { a.Channels[0].Type = job.ChannelHeartbeat }, "rules[0].channels[0]", "heartbeat"},
		"a rule that is wrong":  {func(a *job.Apply) { a.Rules[0].On = nil }, "rules[0].on", "missing"},
		"twice":                 {func(a *job.Apply) { a.Channels = append(a.Channels, a.Channels[0]) }, "channels[1].name", "already"},
		"a job that is wrong":   {func(a *job.Apply) { a.Jobs[0].Group = "none" }, "jobs[0].group", "no group"},
		"a template that fails": {func(a *job.Apply) { a.Rules[0].Text = "{{" }, "rules[0].text", "unclosed"},
	} {
		a := want()
		c.change(&a)
		_, err := f.editor.Apply(t.Context(), a)
		var p job.Problems
		if !errors.As(err, &p) || p[0].Field != c.field || !strings.Contains(p[0].Message, c.want) {
			t.Errorf("%s: got %v, want %s: …%s…", name, err, c.field, c.want)
		}
	}
	f.want("channels, rules and jobs", 0, "SELECT (SELECT COUNT(*) FROM alert_channel) + (SELECT COUNT(*) FROM alert_rule) + (SELECT COUNT(*) FROM job)")
	if got := actions(want()); got != "created created created" {
		t.Errorf("got %s", got)
	}
	if got := actions(want()); got != "unchanged unchanged unchanged" {
		t.Errorf("the same again: got %s", got)
	}
	changed := want()
	changed.Rules[0].Severity = "critical"
	if got := actions(changed); got != "unchanged updated unchanged" {
		t.Errorf("a change: got %s", got)
	}
	f.want("lines of the audit", 3, "SELECT COUNT(*) FROM audit WHERE kind IN ('alert_rule', 'alert_channel') AND became <> ''")
	f.want("the rule's version", 2, "SELECT version FROM alert_rule")
}
