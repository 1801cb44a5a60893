package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go-crontab/api/view"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

func ruleCommand(c *console) *cobra.Command {
	return newGroup("rule", "Set which events raise alerts", ruleList(c), ruleShow(c), ruleSet(c),
		removal{
			what: "rule", use: "RULE", short: "Delete rules", example: "  go-crontab alert rule rm ops", path: rulePath,
		}.command(c))
}

func ruleList(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the rules", Args: nothing,
		Example: "  go-crontab alert rule ls",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		rules, raw, err := list[job.AlertRule](cmd.Context(), r, rulesPath, nil, 0)
		if err != nil {
			return err
		}

		return r.list(raw, func(i int) string { return rules[i].Name }, func() error {
			if len(rules) == 0 {
				c.notef("There are no rules yet. To create one:  %s alert rule set NAME --on failed,recovered --channel CHANNEL\n",
					program())
				return nil
			}

			t := &table{
				columns: []column{
					{head: "RULE", shrink: true}, {head: "ON", shrink: true}, {head: "OF", shrink: true},
					{head: "CHANNELS", shrink: true}, {head: "SEVERITY", drop: true}, {head: "STATE"},
				},
			}

			for i := range rules {
				v := &rules[i]
				state := cell{"on", green}
				if v.Disabled {
					state = cell{"disabled", yellow}
				}
				t.add(text(v.Name), text(eventWords(v)), text(ruleOf(v)), text(strings.Join(v.Channels, ", ")),
					text(v.Severity), state)
			}

			return r.table(t)
		})
	}

	return cmd
}

// eventWords lists the events of a rule with their thresholds.
func eventWords(v *job.AlertRule) string {
	var out []string
	for _, e := range v.On {
		word := string(e)
		switch {
		case e == job.AlertLateStart:
			word += " " + v.LateStart.String()
		case e == job.AlertLateFinish:
			word += " " + v.LateFinish.String()
		case e == job.AlertNeverRan && v.NeverRan != 0:
			word += " " + v.NeverRan.String()
		case e == job.AlertFailures && v.Failures != nil:
			word = fmt.Sprintf("%d failures within %s", v.Failures.Count, v.Failures.Within)
		case e == job.AlertNodeGone:
			word += " " + v.NodeGone.String()
		case e == job.AlertClockSkew:
			word += " " + v.ClockSkew.String()
		case e == job.AlertBacklog && v.Backlog != nil:
			word += fmt.Sprintf(" %d/%s", v.Backlog.Tasks, v.Backlog.OlderThan)
		}

		out = append(out, word)
	}

	return strings.Join(out, ", ")
}

// ruleOf describes the jobs that a rule covers.
func ruleOf(v *job.AlertRule) string {
	var out []string
	if len(v.Apps) > 0 {
		out = append(out, "app "+strings.Join(v.Apps, ", "))
	}

	out = append(out, v.Jobs...)
	if v.Owner != "" {
		out = append(out, "owner "+v.Owner)
	}

	for _, k := range slices.Sorted(maps.Keys(v.Labels)) {
		out = append(out, k+"="+v.Labels[k])
	}

	if out == nil {
		return "all"
	}
	return strings.Join(out, ", ")
}

func ruleShow(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show RULE", Short: "Show a rule", Args: wants(1, 1, "RULE (its name)"),
		Example: "  go-crontab alert rule show ops -o yaml",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v, raw, err := get[view.AlertRule](cmd.Context(), r, rulePath(args[0]), nil)
		if err != nil {
			return r.missing(cmd.Context(), err, "rule", args[0], rulesPath, "alert rule")
		}

		return r.object(c, raw, v.Name, func() error {
			var d card
			d.add("rule", v.Name, bold)
			d.add("about", v.Description)
			d.add("error", v.Error, red)
			if v.Disabled {
				d.add("state", "disabled", yellow)
			}

			d.add("on", eventWords(&v.AlertRule))
			d.add("of", ruleOf(&v.AlertRule))
			d.add("channels", strings.Join(v.Channels, ", "))
			d.add("severity", v.Severity)
			d.add("repeat", "after "+v.Repeat.String())
			d.add("title", v.Title)
			d.add("text", v.Text)
			d.add("changed", both(&v.Updated, c.now())+" by "+v.By)
			return r.card(d)
		})
	}

	return cmd
}

func ruleSet(c *console) *cobra.Command {
	var (
		v             job.AlertRule
		on, labels    []string
		failures, per string
		backlog       string
		durations     = map[string]*job.Duration{
			"repeat": &v.Repeat, "late-start": &v.LateStart, "late-finish": &v.LateFinish, "never-ran": &v.NeverRan,
			"node-gone": &v.NodeGone, "clock-skew": &v.ClockSkew,
		}
		words    = map[string]*string{}
		disabled bool
		test     bool
	)

	cmd := &cobra.Command{
		Use: "set RULE --on EVENT,… --channel CHANNEL", Short: "Create or replace a rule",
		Args: wants(1, 1, "RULE (its name)"),
		Long: `Create or replace a rule. Settings that are not given get their defaults. The rule applies to events
from now on.

Events of jobs: failed (after all attempts), recovered, lost, late_start, late_finish, never_ran and
failures; started and succeeded are sent each time and raise no alert. Events of the cluster:
node_gone, backlog, clock_skew, duplicate_names, folder_refused, expiring, oidc_unreachable and
backup_old.
docs/alerts.md explains them all.

With --test, the channels get a sample of its alerts, and nothing is saved.`,
		Example: "  go-crontab alert rule set ops --on failed,recovered --channel chat\n" +
			"  go-crontab alert rule set ops --on failed,recovered --channel chat --test\n" +
			"  go-crontab alert rule set slow --on late_finish --late-finish 2h --job 'billing/*' --channel chat\n" +
			"  go-crontab alert rule set flaky --on failures --failures 3/10m --app shop --channel pager --severity critical\n" +
			"  go-crontab alert rule set cluster --on node_gone,backlog,clock_skew,folder_refused,expiring --channel chat",
	}

	r := newRemote(c, cmd)

	// These flags need no conversion.
	flags := cmd.Flags()
	flags.StringSliceVar(&on, "on", nil, "events that raise an alert, separated by commas")
	flags.StringSliceVarP(&v.Channels, "channel", "c", nil, "channel to send to; may be repeated")
	flags.StringSliceVarP(&v.Apps, "app", "a", nil, "only jobs of this app; may be repeated")
	flags.StringSliceVarP(&v.Jobs, "job", "j", nil,
		"only this job, as app/name; * matches any characters; may be repeated")
	flags.StringVar(&v.Owner, "owner", "", "only jobs of this owner")
	flags.StringArrayVarP(&labels, "label", "l", nil, "only jobs with this label, key=value; may be repeated")
	flags.StringVar(&v.Severity, "severity", "", "severity of its alerts: info, warning, error or critical (default error)")
	flags.StringVar(&v.Description, "description", "", "what the rule is for")
	flags.StringVar(&failures, "failures", "", "failures: this many within this time, such as 3/10m")
	flags.StringVar(&per, "per", "", "failures: count them per job, app or rule (default job)")
	flags.StringVar(&backlog, "backlog", "",
		"backlog: this many overdue runs for this long (default 100/1m)")
	flags.StringVar(&v.Title, "title", "", "template for the first line of messages")
	flags.StringVar(&v.Text, "text", "", "template for the rest of messages")
	flags.BoolVar(&disabled, "disabled", false, "raise no alerts by this rule")
	flags.BoolVar(&test, "test", false, "send a sample of its alerts to its channels now, and do not save it")

	// Durations are parsed later, so that errors name the flag.
	for name, help := range map[string]string{
		"repeat":      "send an alert that still fires again after this long (default 4h)",
		"late-start":  "late_start: how late a run may start (default 1m)",
		"late-finish": "late_finish: how long after its due time a run may end",
		"never-ran":   "never_ran: the longest time between two runs of a job",
		"node-gone":   "node_gone: how long a node may be away (default 30s)",
		"clock-skew":  "clock_skew: how far a node's clock may be off (default 1s)",
	} {
		words[name] = flags.String(name, "", help)
	}

	// Completion.
	var events []cobra.Completion
	for _, e := range job.AlertEvents() {
		events = append(events, string(e))
	}

	complete(cmd, "on", cobra.FixedCompletions(events, cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "channel", completeNames(c, channelsPath))
	complete(cmd, "severity", cobra.FixedCompletions(job.Severities, cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "per",
		cobra.FixedCompletions([]cobra.Completion{"job", "app", "rule"}, cobra.ShellCompDirectiveNoFileComp))

	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		v.On, v.Disabled = nil, disabled
		for _, e := range on {
			v.On = append(v.On, job.AlertEvent(e))
		}

		// Convert the flags that are not plain text.
		for name, to := range durations {
			if *to, err = durationFlag(name, *words[name]); err != nil {
				return err
			}
		}

		if failures != "" || per != "" {
			n, d, err := ratio("failures", cmp.Or(failures, "?"))
			if err != nil {
				return err
			}
			v.Failures = &job.AlertFailing{Count: n, Within: d, Per: per}
		}
		if backlog != "" {
			n, d, err := ratio("backlog", backlog)
			if err != nil {
				return err
			}
			v.Backlog = &job.AlertOverdue{Tasks: n, OlderThan: d}
		}

		if len(labels) > 0 {
			if v.Labels, err = parseLabels("--label", labels); err != nil {
				return err
			}
		}

		v.Name = args[0]
		if test {
			return testRule(cmd.Context(), c, r, &v)
		}

		// Create or replace the rule.
		_, raw, err := ask[job.AlertRule](cmd.Context(), r, http.MethodPut, rulePath(args[0]), nil, &v)
		if err != nil {
			return err
		}

		r.warnOfApps(cmd.Context(), v.Apps...)
		return r.object(c, raw, args[0], func() error {
			c.printf("rule %s sends %s to %s\n", plain(args[0]), plain(strings.Join(on, ", ")),
				plain(strings.Join(v.Channels, ", ")))
			return nil
		})
	}

	return cmd
}

// testRule sends a sample of a rule that is not saved, and prints the answer of each channel.
func testRule(ctx context.Context, c *console, r *remote, v *job.AlertRule) error {
	got, raw, err := ask[view.RuleTest](ctx, r, http.MethodPost, alertsPath+"/test-rule", nil, v)
	if err != nil {
		return err
	}

	var refused []string
	for _, t := range got.Channels {
		if !t.Sent {
			refused = append(refused, fmt.Sprintf("%s: %s", plain(t.Channel), plain(t.Said)))
		}
	}
	err = r.object(c, raw, v.Name, func() error {
		for _, t := range got.Channels {
			if t.Sent {
				c.printf("%s accepted the sample in %d ms: %s\n", plain(t.Channel), t.TookMS, plain(t.Said))
			}
		}
		c.notef("The rule is not saved. To save it, leave out --test.\n")
		return nil
	})
	if err == nil && refused != nil {
		err = fmt.Errorf("not all channels accepted the sample: %s", strings.Join(refused, "; "))
	}
	return err
}

func durationFlag(name, text string) (job.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := parseDuration(name, text)
	return job.Duration(d), err
}

// ratio parses a number and a duration, such as 3/10m.
func ratio(name, text string) (int, job.Duration, error) {
	count, span, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(count)
	d, err2 := job.ParseDuration(span)
	if err != nil || err2 != nil {
		return 0, 0, usageError("--%s %q: want a number and a duration, such as 3/10m", name, text)
	}
	return n, job.Duration(d), nil
}
