package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

const (
	alertsPath   = "/api/v1/alerts"
	rulesPath    = alertsPath + "/rules"
	channelsPath = alertsPath + "/channels"
	silencesPath = alertsPath + "/silences"
)

func alertCommand(c *console) *cobra.Command {
	return newGroup("alert", "Show alerts, and set their rules, channels and silences", alertList(c), alertShow(c),
		alertSent(c), alertTest(c),
		ruleCommand(c), channelCommand(c), silenceCommand(c))
}

// alertView is an alert: a problem that a rule has found.
type alertView struct{ view.Alert }

// about returns the object of the alert.
func (v *alertView) about() string {
	switch {
	case v.Job != "":
		return v.App + "/" + v.Job
	case v.Node != "":
		return "node " + v.Node
	case v.App != "":
		return "app " + v.App
	}
	return "cluster"
}

func (v *alertView) colour() colour {
	switch {
	case v.State != "firing":
		return green
	case v.Severity == "info" || v.Severity == "warning":
		return yellow
	}
	return red
}

func alertList(c *console) *cobra.Command {
	var app, rule, state string
	var n int
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List alerts, newest first", Args: nothing,
		Example: "  go-crontab alert ls --state firing\n  go-crontab alert ls --app billing -o json",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVarP(&app, "app", "a", "", "only alerts of this app's jobs")
	cmd.Flags().StringVar(&rule, "rule", "", "only alerts of this rule")
	cmd.Flags().StringVar(&state, "state", "", "only alerts in this state: firing or resolved")
	cmd.Flags().IntVarP(&n, "limit", "n", 20, "show at most this many, 0 for all")
	complete(cmd, "rule", completeNames(c, rulesPath))
	complete(cmd, "state",
		cobra.FixedCompletions([]cobra.Completion{"firing", "resolved"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.CalledAs() == "" { // go-crontab alert, without ls
			state = "firing"
		}

		alerts, raw, err := list[alertView](cmd.Context(), r, alertsPath,
			given("app", app, "rule", rule, "state", state), n)
		if err != nil {
			return err
		}

		return r.list(raw, func(i int) string { return alerts[i].ID }, func() error {
			if len(alerts) == 0 {
				return noteNoAlerts(cmd.Context(), c, r)
			}

			t := &table{
				columns: []column{
					{head: "ID", right: true}, {head: "STATE"}, {head: "SINCE"}, {head: "EVENT"},
					{head: "ABOUT", shrink: true}, {head: "TIMES", right: true},
					{head: "RULE", shrink: true, drop: true}, {head: "SUMMARY", shrink: true, drop: true},
				},
			}

			for i := range alerts {
				v := &alerts[i]
				t.add(text(v.ID), cell{plain(v.State), v.colour()}, text(relative(&v.First, time.Now())), text(v.Event),
					text(v.about()), text(fmt.Sprint(v.Seen)), text(v.Rule), text(cmp.Or(v.Why, v.Summary)))
			}
			return r.table(t)
		})
	}

	return cmd
}

// noteNoAlerts prints why a list of alerts may be empty: nothing matches, or no rule is enabled.
func noteNoAlerts(ctx context.Context, c *console, r *remote) error {
	rules, _, err := listQuietly[job.AlertRule](ctx, r, rulesPath, nil, 0)
	if err != nil {
		return err
	}

	if slices.ContainsFunc(rules, func(rule job.AlertRule) bool { return !rule.Disabled }) {
		c.notef("No alerts match. To see the rules that raise alerts:  %s alert rule ls\n", program())
		return nil
	}

	c.notef("Nobody is told when a job fails: no alert rule is enabled. To create one:\n"+
		"  %s alert rule set ops --on failed,lost,never_ran,node_gone --channel CHANNEL\n", program())
	return nil
}

func alertShow(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ALERT", Short: "Show an alert", Args: wants(1, 1, "ALERT (its id)"),
		Example: "  go-crontab alert show 17", ValidArgsFunction: completeField(c, alertsPath, "id"),
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v, raw, err := get[alertView](cmd.Context(), r, alertsPath+"/"+url.PathEscape(args[0]), nil)
		if err != nil {
			return err
		}

		return r.object(c, raw, v.ID, func() error {
			var d card
			now := c.now()
			d.add("alert", v.ID+", "+v.State)
			d.add("summary", v.Summary)
			d.add("event", string(v.Event)+", "+v.Severity)
			d.add("about", v.about())
			d.add("rule", v.Rule)
			d.add("since", both(&v.First, now))
			d.add("seen", fmt.Sprintf("%s, last %s", counted(int(v.Seen), "time"), both(&v.Last, now)))
			if v.Run != "" {
				d.add("run", v.Run)
			}

			if v.Owner != "" {
				d.add("owner", v.Owner)
			}

			switch {
			case v.Told != nil:
				d.add("sent", both(v.Told, now))
			case v.Silence != "":
				d.add("sent", "no, muted by silence "+v.Silence)
			default:
				d.add("sent", "no")
			}

			if v.Resolved != nil {
				d.add("resolved", both(v.Resolved, now)+": "+v.Why)
			}

			return r.card(d)
		})
	}

	return cmd
}

func alertSent(c *console) *cobra.Command {
	var channel, rule, state string
	var n int
	cmd := &cobra.Command{
		Use: "sent", Short: "List messages to channels and whether they arrived, newest first", Args: nothing,
		Example: "  go-crontab alert sent --state failed\n  go-crontab alert sent --channel chat",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVar(&channel, "channel", "", "only messages to this channel")
	cmd.Flags().StringVar(&rule, "rule", "", "only messages of this rule")
	cmd.Flags().StringVar(&state, "state", "",
		"only messages in this state: pending, sending, sent, failed, silenced, suppressed")
	cmd.Flags().IntVarP(&n, "limit", "n", 20, "show at most this many, 0 for all")
	complete(cmd, "channel", completeNames(c, channelsPath))
	complete(cmd, "rule", completeNames(c, rulesPath))
	complete(cmd, "state",
		cobra.FixedCompletions([]cobra.Completion{"pending", "sending", "sent", "failed", "silenced", "suppressed"},
			cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		sent, raw, err := list[view.Delivery](cmd.Context(), r, alertsPath+"/deliveries",
			given("channel", channel, "rule", rule, "state", state), n)
		if err != nil {
			return err
		}

		return r.list(raw, func(i int) string { return sent[i].ID }, func() error {
			if err := noteMissingMessages(cmd.Context(), c, r); err != nil {
				return err
			}
			if len(sent) == 0 {
				c.notef("No messages match.\n")
				return nil
			}

			t := &table{
				columns: []column{
					{head: "ID", right: true}, {head: "CREATED"}, {head: "STATE"}, {head: "KIND"},
					{head: "CHANNEL", shrink: true}, {head: "EVENTS", right: true}, {head: "TRIES", right: true},
					{head: "ANSWER", shrink: true, drop: true},
				},
			}

			colours := map[string]colour{"sent": green, "failed": red, "suppressed": yellow, "silenced": faint}
			for _, v := range sent {
				t.add(text(v.ID), text(relative(&v.Created, time.Now())), cell{plain(v.State), colours[v.State]},
					text(v.Kind), text(v.Channel), text(fmt.Sprint(v.Events)), text(fmt.Sprint(v.Attempts)),
					text(v.Said))
			}

			return r.table(t)
		})
	}

	return cmd
}

// noteMissingMessages prints how many events got no message, and how often a template failed.
func noteMissingMessages(ctx context.Context, c *console, r *remote) error {
	v, _, err := get[view.AlertSummary](ctx, r, alertsPath+"/summary", nil)
	if err != nil {
		return err
	}
	if v.Lost > 0 {
		c.notef("Since the cluster was created, %s could not be reported because there were too many.\n",
			counted(int(v.Lost), "event"))
	}

	if v.Templates > 0 {
		c.notef("Since the cluster was created, a template failed and the built-in text was sent %s; "+
			"the node logs name the template.\n", counted(int(v.Templates), "time"))
	}
	return nil
}

func alertTest(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "test CHANNEL", Short: "Send a test message to a channel, and print its answer",
		Args: wants(1, 1, "CHANNEL (its name)"),
		Long: `Send a test message to a channel, and print its answer. The node that --server names sends the
message now. Exits with 1 if the channel did not accept it.`,
		Example: "  go-crontab alert test chat",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := testChannel(cmd.Context(), c, r, args[0], channelPath(args[0])+"/test", map[string]any{})
		return r.missing(cmd.Context(), err, "channel", args[0], channelsPath, "alert channel")
	}

	return cmd
}

// testChannel asks for a test message to a channel, and prints the channel's answer.
func testChannel(ctx context.Context, c *console, r *remote, name, path string, body any) error {
	v, raw, err := ask[view.ChannelTest](ctx, r, http.MethodPost, path, nil, body)
	if err != nil {
		return err
	}

	err = r.object(c, raw, name, func() error {
		if v.Sent {
			c.printf("%s accepted the message in %d ms: %s\n", plain(name), v.TookMS, plain(v.Said))
		}
		return nil
	})
	if err == nil && !v.Sent {
		err = fmt.Errorf("%s did not accept the message: %s", plain(name), plain(v.Said))
	}
	return err
}

func rulePath(name string) string    { return rulesPath + "/" + url.PathEscape(name) }
func channelPath(name string) string { return channelsPath + "/" + url.PathEscape(name) }

// silenceView is a period without messages.
type silenceView struct{ view.Silence }

// about describes the alerts that a silence covers.
func (v *silenceView) about() string {
	var parts []string
	switch {
	case v.Job != "":
		parts = append(parts, v.App+"/"+v.Job)
	case v.App != "":
		parts = append(parts, "app "+v.App)
	}

	if v.Rule != "" {
		parts = append(parts, "rule "+v.Rule)
	}
	if parts == nil {
		return "everything"
	}
	return strings.Join(parts, ", ")
}

func silenceCommand(c *console) *cobra.Command {
	return newGroup("silence", "Mute alerts for a while", silenceList(c), silenceAdd(c), silenceEnd(c))
}

func silenceList(c *console) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the silences in force", Args: nothing,
		Example: "  go-crontab alert silence ls",
	}

	r := newRemote(c, cmd)
	cmd.Flags().BoolVar(&all, "all", false, "include silences that have ended")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q := url.Values{}
		if all {
			q.Set("over", "true")
		}

		silences, raw, err := list[silenceView](cmd.Context(), r, silencesPath, q, 0)
		if err != nil {
			return err
		}

		return r.list(raw, func(i int) string { return silences[i].ID }, func() error {
			if len(silences) == 0 {
				c.notef("There are no silences.\n")
				return nil
			}

			t := &table{
				columns: []column{
					{head: "ID", right: true}, {head: "COVERS", shrink: true}, {head: "UNTIL"},
					{head: "BY", shrink: true}, {head: "REASON", shrink: true, drop: true},
				},
			}

			for i := range silences {
				v := &silences[i]
				t.add(text(v.ID), text(v.about()), text(both(&v.Until, c.now())), text(v.By), text(v.Reason))
			}
			return r.table(t)
		})
	}

	return cmd
}

func silenceAdd(c *console) *cobra.Command {
	var f pauseFlags
	var app, name, rule string
	cmd := &cobra.Command{
		Use: "add --until 2h --reason TEXT", Short: "Mute alerts for a while", Args: nothing,
		Long: `Mute alerts of an app, a job or a rule, or all alerts, for a while. Muted alerts are still recorded.
Alerts that still fire when the silence ends are sent then.`,
		Example: "  go-crontab alert silence add --app billing --until 2h --reason 'database maintenance'\n  go-crontab alert silence add --job billing/nightly --until '2027-01-31 09:00' --reason 'known, see #17'",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVarP(&app, "app", "a", "", "only alerts of this app's jobs")
	cmd.Flags().StringVarP(&name, "job", "j", "", "only alerts of this job, as app/name")
	cmd.Flags().StringVar(&rule, "rule", "", "only alerts of this rule")
	cmd.Flags().StringVar(&f.until, "until", "",
		`when the silence ends: a duration such as 2h, or a time such as "2027-01-31 09:00"`)
	cmd.Flags().StringVar(&f.reason, "reason", "", "why alerts are muted; lists show it")
	complete(cmd, "rule", completeNames(c, rulesPath))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case f.until == "":
			return usageError("--until is missing: say when the silence ends, such as --until 2h")
		case f.reason == "":
			return usageError("--reason is missing: say why alerts are muted, such as --reason 'database maintenance'")
		}

		body, err := f.body(c.now())
		if err != nil {
			return err
		}

		if name != "" {
			of, job, found := strings.Cut(name, "/")
			switch {
			case !found && app != "":
				job = name
			case !found:
				return usageError("--job %q: want app/name, or add --app", name)
			case app != "" && app != of:
				return usageError("--job %s is not in app %s, which --app names; leave one of the two out", name, app)
			default:
				app = of
			}
			body["job"] = job
		}

		if app != "" {
			body["app"] = app
		}
		if rule != "" {
			body["rule"] = rule
		}

		v, raw, err := once[silenceView](cmd.Context(), r, silencesPath, nil, body)
		if err != nil {
			return err
		}

		r.warnOfApps(cmd.Context(), app)
		return r.object(c, raw, v.ID, func() error {
			c.printf("silence %s mutes %s until %s\n", plain(v.ID), plain(v.about()), plain(both(&v.Until, c.now())))
			return nil
		})
	}

	return cmd
}

func silenceEnd(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "end SILENCE…", Short: "End silences now", Args: wants(1, -1, "SILENCE (its id)"),
		Example: "  go-crontab alert silence end 3",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, id := range args {
			if _, err := r.call(cmd.Context(), http.MethodDelete, silencesPath+"/"+url.PathEscape(id), nil,
				nil); err != nil {
				return err
			}
			if err := r.object(c, struct {
				ID string `json:"ended"`
			}{id}, id, func() error { c.printf("silence %s has ended\n", plain(id)); return nil }); err != nil {
				return err
			}
		}
		return nil
	}

	return cmd
}
