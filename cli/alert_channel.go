package cli

import (
	"fmt"
	"net/http"
	"strings"

	"go-crontab/api/view"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

func channelCommand(c *console) *cobra.Command {
	return newGroup("channel", "Set where alerts are sent", channelList(c), channelShow(c), channelSet(c),
		removal{
			what: "channel", use: "CHANNEL", short: "Delete channels", example: "  go-crontab alert channel rm chat",
			path: channelPath, list: channelsPath, listedBy: "alert channel",
		}.command(c))
}

// target returns the address of a channel.
func target(v *job.AlertChannel) string {
	if v.Email != nil {
		to := strings.Join(v.Email.To, ", ")
		if v.Email.ToOwner {
			to = strings.TrimSuffix("owner, else "+to, ", else ")
		}
		return to
	}
	return v.URL
}

func channelList(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the channels", Args: nothing,
		Example: "  go-crontab alert channel ls",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		channels, raw, err := list[view.AlertChannel](cmd.Context(), r, channelsPath, nil, 0)
		if err != nil {
			return err
		}

		return r.list(raw, func(i int) string { return channels[i].Name }, func() error {
			if len(channels) == 0 {
				c.notef("There are no channels yet. To create one:  %s alert channel set NAME --type webhook --url URL\n",
					program())
				return nil
			}

			t := &table{
				columns: []column{
					{head: "CHANNEL", shrink: true}, {head: "TYPE"}, {head: "TO", shrink: true},
					{head: "STATE", shrink: true},
				},
			}

			for i := range channels {
				v := &channels[i]
				state := cell{"on", green}
				switch {
				case v.Disabled:
					state = cell{"disabled", yellow}
				case v.Held != "":
					state = cell{"on hold: " + plain(v.Held), red}
				case v.Failing != nil:
					state = cell{"failing: " + plain(v.Failing.Said), red}
				}
				t.add(text(v.Name), text(string(v.Type)), text(target(&v.AlertChannel)), state)
			}

			return r.table(t)
		})
	}

	return cmd
}

func channelShow(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show CHANNEL", Short: "Show a channel", Args: wants(1, 1, "CHANNEL (its name)"),
		Example: "  go-crontab alert channel show chat -o yaml",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v, raw, err := get[view.AlertChannel](cmd.Context(), r, channelPath(args[0]), nil)
		if err != nil {
			return r.missing(cmd.Context(), err, "channel", args[0], channelsPath, "alert channel")
		}

		return r.object(c, raw, v.Name, func() error {
			var d card
			d.add("channel", v.Name, bold)
			d.add("about", v.Description)
			d.add("error", v.Error, red)
			if v.Disabled {
				d.add("state", "disabled", yellow)
			}

			d.add("on hold", v.Held, red)
			if f := v.Failing; f != nil {
				d.add("failing", fmt.Sprintf("%s since %s: %s",
					counted(int(f.Tries), "failed attempt"), both(&f.Since, c.now()), f.Said), red)
			}

			d.add("type", string(v.Type))
			d.add("to", target(&v.AlertChannel))
			if v.Email != nil {
				d.add("server", v.Email.Server+", "+v.Email.TLS)
				d.add("from", v.Email.From)
			}

			d.add("sign", v.Sign)
			d.add("changed", both(&v.Updated, c.now())+" by "+v.By)
			return r.card(d)
		})
	}

	return cmd
}

func channelSet(c *console) *cobra.Command {
	var (
		v                    job.AlertChannel
		e                    job.AlertEmail
		kind                 string
		headers              []string
		every, wait, timeout string
		test                 bool
	)

	cmd := &cobra.Command{
		Use: "set CHANNEL --type TYPE", Short: "Create or replace a channel", Args: wants(1, 1, "CHANNEL (its name)"),
		Long: `Create or replace a channel. Settings that are not given get their defaults.

Types: webhook, slack, feishu, dingtalk, wecom, email, pagerduty and heartbeat. A heartbeat is a URL
that the cluster calls at intervals while runs are planned and started in time; a monitor elsewhere
raises the alarm when the calls stop.

Store secret values with "go-crontab secret set NAME" and refer to them as '{{secret.NAME}}'. This
works in --url (as the whole value), --sign, --routing-key and --password, and in the values of
--header.

With --test, the channel gets a test message, and nothing is saved.`,
		Example: "  go-crontab alert channel set chat --type slack --url '{{secret.chat-url}}'\n" +
			"  go-crontab alert channel set hook --type webhook --url https://example.com/alerts --sign '{{secret.hook}}'\n" +
			"  go-crontab alert channel set mail --type email --mail-server mail.example.com:587 --user cron --password '{{secret.mail}}' --from cron@example.com --to ops@example.com\n" +
			"  go-crontab alert channel set dead-man --type heartbeat --url https://ping.example.com/cluster --every 1m",
	}

	r := newRemote(c, cmd)
	flags := cmd.Flags()
	flags.StringVarP(&kind, "type", "t", "", "webhook, slack, feishu, dingtalk, wecom, email, pagerduty or heartbeat")
	flags.StringVar(&v.URL, "url", "", "URL to call, or '{{secret.NAME}}'")
	flags.StringVar(&v.Sign, "sign", "", "webhook, feishu, dingtalk: the secret that signs messages")
	flags.StringArrayVarP(&headers, "header", "H", nil, "webhook: an additional header, 'Name: value'; may be repeated")
	flags.StringVar(&v.Body, "body", "", "webhook: a template of the body")
	flags.StringVar(&v.RoutingKey, "routing-key", "", "pagerduty: the secret with the integration key")
	flags.StringVar(&e.Server, "mail-server", "", "email: the mail server, as host:port")
	flags.StringVar(&e.TLS, "tls", "", "email: starttls, tls or none (default starttls)")
	flags.StringVar(&e.User, "user", "", "email: the user name at the mail server")
	flags.StringVar(&e.Password, "password", "", "email: the secret with the password")
	flags.StringVar(&e.From, "from", "", "email: the sender's address")
	flags.StringSliceVar(&e.To, "to", nil, "email: a recipient's address; may be repeated")
	flags.BoolVar(&e.ToOwner, "to-owner", false,
		"email: send to the job's owner instead, if the owner is a mail address")
	flags.StringVar(&every, "every", "", "heartbeat: time between two calls (default 1m)")
	flags.StringVar(&wait, "wait", "",
		"how long a message waits for further events, to send them together (default 5s)")
	flags.IntVar(&v.Rate, "rate", 0, "at most this many messages a minute (default 20)")
	flags.StringVar(&timeout, "timeout", "", "how long the channel may take to answer (default 10s)")
	flags.StringVar(&v.Description, "description", "", "what the channel is for")
	flags.BoolVar(&v.Disabled, "disabled", false, "send nothing to this channel")
	flags.BoolVar(&test, "test", false, "send a test message to it now, and do not save it")

	// Completion.
	var types []cobra.Completion
	for _, t := range job.ChannelTypes() {
		types = append(types, string(t))
	}

	complete(cmd, "type", cobra.FixedCompletions(types, cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "tls",
		cobra.FixedCompletions([]cobra.Completion{"starttls", "tls", "none"}, cobra.ShellCompDirectiveNoFileComp))

	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if kind == "" {
			return usageError("--type is missing; want one of %s", strings.Join(types, ", "))
		}

		// Convert the flags that are not plain text.
		v.Name, v.Type = args[0], job.ChannelType(kind)
		for name, d := range map[string]struct {
			text string
			to   *job.Duration
		}{"every": {every, &v.Every}, "wait": {wait, &v.Wait}, "timeout": {timeout, &v.Timeout}} {
			if *d.to, err = durationFlag(name, d.text); err != nil {
				return err
			}
		}

		v.Headers = nil
		for _, h := range headers {
			name, value, found := strings.Cut(h, ":")
			if !found {
				return usageError("--header %q: want 'Name: value'", h)
			}
			if v.Headers == nil {
				v.Headers = map[string]string{}
			}
			v.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}

		// Send email settings if the user gave any, or if the channel has the type email.
		if v.Email = nil; e.Server != "" || e.From != "" || len(e.To) > 0 || e.User != "" ||
			v.Type == job.ChannelEmail {
			v.Email = &e
		}

		if test {
			return testChannel(cmd.Context(), c, r, args[0], alertsPath+"/test-channel", &v)
		}
		_, raw, err := ask[job.AlertChannel](cmd.Context(), r, http.MethodPut, channelPath(args[0]), nil, &v)
		if err != nil {
			return err
		}

		return r.object(c, raw, args[0], func() error {
			c.printf("channel %s is set. To try it:  %s alert test %s\n", plain(args[0]), program(), quote(args[0]))
			return nil
		})
	}

	return cmd
}
