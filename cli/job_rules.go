package cli

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"go-crontab/job"
)

// concerning adds settings from elsewhere that apply to a job: the retention of its records, and
// alert rules. It ignores an older node that has neither.
func (r *remote) concerning(ctx context.Context, d *card, j *jobView) error {
	rules, _, err := get[retentionRules](ctx, r, "/api/v1/retention", nil)
	if missing := isStatus(err, http.StatusNotFound); err != nil && !missing {
		return err
	}

	wider := map[string]keepView{}
	for _, rule := range rules.Items {
		wider[rule.App] = rule.keepView
	}

	d.add("kept", kept(j.Keep, wider[j.App], wider[""], j.App))
	alerts, _, err := list[job.AlertRule](ctx, r, rulesPath, nil, 0)
	if missing := isStatus(err, http.StatusNotFound); err != nil && !missing {
		return err
	}

	d.add("alerts", strings.Join(rulesAbout(alerts, j), "\n"))
	return nil
}

// kept describes the retention of a job's records, with the rule that sets each limit.
func kept(own, ofApp, ofCluster keepView, app string) string {
	var out []string
	for _, only := range []func(keepView) keepView{
		func(k keepView) keepView { return keepView{Age: k.Age} },
		func(k keepView) keepView { return keepView{Runs: k.Runs} },
		func(k keepView) keepView { return keepView{Bytes: k.Bytes} },
		func(k keepView) keepView { return keepView{Failures: k.Failures} },
	} {
		for _, rule := range []struct {
			keepView
			by string
		}{{own, "the job"}, {ofApp, "app " + app}, {ofCluster, "the cluster"}} {
			if words := only(rule.keepView).String(); words != "" {
				out = append(out, words+", set by "+rule.by)
				break
			}
		}
	}

	if out == nil {
		return "all records"
	}

	return strings.Join(out, "\n")
}

// rulesAbout describes the alert rules that cover a job: name, events and channels.
func rulesAbout(rules []job.AlertRule, j *jobView) (out []string) {
	about := job.AlertJob{App: j.App, Name: j.Name, Owner: j.Owner, Labels: j.Labels}
	for i := range rules {
		rule := &rules[i]
		var on []string
		for _, e := range rule.On {
			if e != job.AlertNodeGone && e != job.AlertClockSkew {
				on = append(on, string(e))
			}
		}
		if rule.Disabled || on == nil || slices.Equal(on, []string{string(job.AlertRecovered)}) || !rule.Takes(&about) {
			continue
		}
		out = append(out, rule.Name+": "+strings.Join(on, ", ")+" to "+strings.Join(rule.Channels, ", "))
	}

	slices.Sort(out)
	return out
}
