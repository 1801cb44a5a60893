package cli

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"go-crontab/api/view"
	"go-crontab/job"
)

// concerning adds settings that apply to a job but are not part of it: the retention of its
// records, and alert rules. An older node may have neither. That is no error.
func (r *remote) concerning(ctx context.Context, d *card, j *jobView) error {
	rules, _, err := get[view.Retentions](ctx, r, "/api/v1/retention", nil)
	if missing := isStatus(err, http.StatusNotFound); err != nil && !missing {
		return err
	}

	wider := map[string]job.Keep{}
	for _, rule := range rules.Items {
		wider[rule.App] = keepOf(&rule)
	}

	d.add("kept", kept(j.Keep, wider[j.App], wider[""], j.App))
	alerts, _, err := list[job.AlertRule](ctx, r, rulesPath, nil, 0)
	if missing := isStatus(err, http.StatusNotFound); err != nil && !missing {
		return err
	}

	d.add("alerts", strings.Join(rulesAbout(alerts, j), "\n"))
	return nil
}

// kept describes how long a job's records are kept, and which rule sets each limit.
func kept(own, ofApp, ofCluster job.Keep, app string) string {
	var out []string
	for _, only := range []func(job.Keep) job.Keep{
		func(k job.Keep) job.Keep { return job.Keep{Age: k.Age} },
		func(k job.Keep) job.Keep { return job.Keep{Runs: k.Runs} },
		func(k job.Keep) job.Keep { return job.Keep{Bytes: k.Bytes} },
		func(k job.Keep) job.Keep { return job.Keep{Failures: k.Failures} },
	} {
		for _, rule := range []struct {
			keep job.Keep
			by   string
		}{{own, "the job"}, {ofApp, "app " + app}, {ofCluster, "the cluster"}} {
			if words := keepWords(only(rule.keep)); words != "" {
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
			if !e.OfCluster() {
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
