package cli

import (
	"encoding/json"
	"fmt"
	"github.com/spf13/pflag"
	"net/http"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

// jobFlags are the flags of `job add` that are fields of a job, with their places in the request
// body. Missing fields get the server's defaults. Only the server validates, so the command line
// has no rules of its own.
var jobFlags = map[string]string{
	"app": "app", "description": "description", "owner": "owner",
	"every": "every", "timezone": "timezone", "max-fires": "max_fires", "jitter": "jitter", "calendar": "calendars",
	"command": "command", "handler": "handler", "payload": "payload", "selector": "selector", "timeout": "timeout",
	"user": "user", "dir": "dir", "stdin": "stdin", "success-codes": "success_codes", "grace": "grace",
	"overlap": "overlap", "queue": "queue", "group": "group", "priority": "priority",
	"start-deadline": "start_deadline", "on-lost": "on_lost", "paused": "paused",
	"misfire": "misfire.policy", "misfire-after": "misfire.after", "misfire-max-count": "misfire.max_count",
	"misfire-max-age": "misfire.max_age",
	"attempts":        "retry.attempts", "backoff": "retry.backoff", "backoff-factor": "retry.factor",
	"max-backoff": "retry.max_backoff",
	"keep-age":    "keep.age", "keep-runs": "keep.runs", "keep-bytes": "keep.bytes", "keep-failures": "keep.failures",
	"ping-url": "ping.url", "ping-fail-url": "ping.fail_url",
}

// bodyOf returns the request body for flags, by their places in it. It leaves out flags that are
// not given, and empty values.
func bodyOf(flags *pflag.FlagSet, places map[string]string) map[string]any {
	body := map[string]any{}
	for name, place := range places {
		var value any
		flag := flags.Lookup(name)
		text, empty := flag.Value.String(), ""
		switch flag.Value.Type() {
		case "int", "int64", "float64":
			value, empty = json.Number(text), "0"
		case "bool":
			value, empty = true, "false"
		case "stringArray":
			value, _ = flags.GetStringArray(name)
			empty = "[]"
		case "intSlice":
			value, _ = flags.GetIntSlice(name)
			empty = "[]"
		default:
			value = text
		}

		if !flag.Changed || text == empty {
			continue
		}

		object, field := body, place
		if outer, inner, nested := strings.Cut(place, "."); nested {
			if body[outer] == nil {
				body[outer] = map[string]any{}
			}
			object, field = body[outer].(map[string]any), inner
		}
		object[field] = value
	}
	return body
}

// addFlags are the flags of `job add` that need conversion.
type addFlags struct {
	job       map[string]any // the request body
	http      httpFlags
	command   commandFlags
	labels    []string
	schedules []string

	at, start, end string
	now            bool
}

func jobAdd(c *console) *cobra.Command {
	var f addFlags
	cmd := &cobra.Command{
		Use:                   "add NAME (--schedule CRON | --every DURATION | --at TIME | --now) [flags] (-- COMMAND… | --http URL | --handler KEY)",
		DisableFlagsInUseLine: true,
		Short:                 "Add a job",
		Long: `Add a job. NAME may be app/name.

The command runs as bash -c COMMAND. One argument after -- (or --command) is taken as that text, verbatim: quote it,
and pipes, variables and quotes in it are bash's. Several arguments are one program and its arguments, exactly as your
shell has split them: each is quoted again, so nothing in them is expanded when the job runs.`,
		Example: `  go-crontab job add backup --schedule "0 3 * * *" --timezone Europe/Berlin -- 'pg_dump -Fc -f /backup/shop-$(date +%F).dump shop'
  go-crontab job add ops/ping --every 30s --timeout 10s -- curl -fsS https://example.com/health
  go-crontab job add bill --schedule "0 1 1 * *" --http 'https://shop.example/bill?due={{due}}' --method POST --sign billing
  go-crontab job add train --every 6h --selector 'gpu, zone in (a,b)' -- ./train.sh
  go-crontab job add invoices --schedule "0 6 1 * *" --handler invoice --payload '{"kind": "monthly"}'
  go-crontab job add once --at +10m -- echo "ten minutes later"
  go-crontab job add report --schedule "0 9 * * 1-5" --paused --command "$(cat report.sh)"`,
		Args: func(cmd *cobra.Command, args []string) error { return f.arguments(cmd, args) },
	}

	r := newRemote(c, cmd)
	f.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.complete(cmd.Flags(), c.now()); err != nil {
			return err
		}
		if f.now { // by the cluster's clock, since this machine's may be ahead
			cluster, _, err := get[view.Cluster](cmd.Context(), r, "/api/v1/cluster", nil)
			if err != nil {
				return err
			}
			f.job["at"] = cluster.Now
		}

		j, raw, err := once[jobView](cmd.Context(), r, "/api/v1/jobs", nil, f.job)
		if isStatus(err, http.StatusConflict) {
			return withHint(err, "to look at it:    %[1]s job show %[2]s\nto remove it:     %[1]s job rm %[2]s",
				program(), quote(fmt.Sprint(f.job["app"], "/", f.job["name"])))
		}
		if err != nil {
			return err
		}

		return r.object(c, raw, j.fullName(), func() error {
			c.printf("added %s, id %s%s\n", plain(j.fullName()), j.ID, nextDue(&j, c.now()))
			for _, w := range j.Warnings {
				c.notef("warning: %s\n", plain(w.Message))
			}
			return nil
		})
	}

	return cmd
}

func (f *addFlags) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false

	flags.StringArrayVarP(&f.schedules, "schedule", "s", nil,
		"cron fields: 5, or 6 with seconds first, or @daily and the like; may be repeated")
	flags.String("every", "", "a fixed interval such as 15m")
	flags.StringVar(&f.at, "at", "", `once: 2027-01-31T09:00:00+01:00, or "2027-01-31 09:00" in --timezone
(else in this machine's), or +10m from now`)
	flags.BoolVar(&f.now, "now", false, "once, at once: --at this very moment, by the cluster's clock")
	flags.StringVar(&f.start, "start", "", "no due time before it; the first one of --every; written like --at")
	flags.StringVar(&f.end, "end", "", "no due time after it, written like --at")
	flags.Int64("max-fires", 0, "so many due times in all (default no bound)")
	flags.String("jitter", "", "shift all due times by a part of this that is the job's own, such as 5m")
	flags.StringArray("calendar", nil, "a calendar that must be open when it is due; may be repeated")
	flags.StringP("timezone", "z", "", "of the schedule, such as Europe/Berlin (default UTC)")

	flags.StringP("command", "c", "", "the command, instead of -- COMMAND")
	f.http.flags(cmd)
	flags.String("handler", "",
		"call the Go function of this key in a program that embeds a node, instead of running a command")
	flags.String("payload", "", "what --handler gets, as it is")

	flags.String("selector", "",
		`which nodes may run it, by their labels: 'zone in (a,b), !gpu, disk=ssd' (default any)`)
	flags.StringP("app", "a", "", `the app, instead of app/name (default "default")`)
	flags.String("timeout", "", "kill it after this long (default never, with --http 5m)")
	f.command.flags(cmd)

	flags.String("overlap", "",
		"a due time while it is still running: skip, queue, replace, allow (default skip)")
	flags.Int("queue", 0,
		"due times that may wait, with --overlap queue or --group (default 10, in a group 100)")
	flags.String("group", "", "share the slots of this group")
	flags.Int("priority", 0, "the higher goes first when there is no room for all, from -100 to 100")
	flags.String("start-deadline", "",
		"miss a due time that could not be started so long after it (default no bound)")

	flags.String("misfire", "",
		"due times that nobody could start: latest, skip, all (default latest)")
	flags.String("misfire-after", "", "how late a due time is before that applies (default 1m)")
	flags.Int("misfire-max-count", 0,
		"with --misfire all: start the latest so many (default 100)")
	flags.String("misfire-max-age", "", "how late one may still be started (default 1h)")

	flags.Int("attempts", 0, "start it so often in all until it succeeds (default 1)")
	flags.String("backoff", "", "from the end of an attempt to the next (default 10s)")
	flags.Float64("backoff-factor", 0, "each backoff is so many times the one before (default 1)")

	flags.String("keep-age", "", "records of its runs that are older go, such as 720h")
	flags.Int64("keep-runs", 0, "only so many records stay")
	flags.String("keep-bytes", "", "only records stay whose output comes to no more, such as 1GiB")
	flags.String("keep-failures", "", "what did not succeed stays at least so long")

	flags.String("ping-url", "",
		"called (GET) when a due time has succeeded: a monitor elsewhere raises the alarm when it is not")
	flags.String("ping-fail-url", "",
		"with --ping-url: called when a due time was missed, or did not succeed after all its attempts")

	flags.String("max-backoff", "", "the longest backoff (default 1h)")
	flags.String("on-lost", "", "when its node vanishes: fail, rerun (default fail)")

	flags.StringArrayVarP(&f.labels, "label", "l", nil, "key=value, may be repeated")
	flags.String("owner", "", "who to ask about it")
	flags.String("description", "", "what it is good for")
	flags.Bool("paused", false, "add it paused")
}

// arguments parses NAME and the command after "--".
func (f *addFlags) arguments(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	before, after := args, []string(nil)
	if dash >= 0 {
		before, after = args[:dash], args[dash:]
	}

	f.job = bodyOf(cmd.Flags(), jobFlags)
	switch {
	case len(before) == 0:
		return fmt.Errorf("NAME is missing")
	case len(before) > 1:
		return fmt.Errorf("%q: the command stands after --, or in --command", before[1])
	case f.job["command"] != nil && len(after) > 0:
		return fmt.Errorf("the command is given twice: in --command and after --")
	case len(after) > 0:
		f.job["command"] = commandText(after)
	case f.job["command"] == nil && f.http.request.URL == "" && f.job["handler"] == nil:
		return fmt.Errorf("the command is missing: add -- COMMAND at the end, or --http URL, or --handler KEY")
	}

	// Exactly one kind of schedule must be given.
	f.job["name"] = before[0]
	if f.job["app"] == nil {
		f.job["app"], f.job["name"] = splitName(before[0])
	}

	return nil
}

// complete converts the remaining flags.
func (f *addFlags) complete(flags *pflag.FlagSet, now time.Time) error {
	given := 0
	for _, set := range []bool{len(f.schedules) > 0, f.job["every"] != nil, f.at != "", f.now} {
		if set {
			given++
		}
	}

	if len(f.schedules) == 1 {
		f.job["schedule"] = f.schedules[0]
	} else if len(f.schedules) > 1 {
		f.job["schedules"] = f.schedules
	}
	if given != 1 {
		return usageError("give one of --schedule, --every, --at, --now")
	}

	// A command or an HTTP request.
	request, err := f.http.complete()
	if err != nil {
		return err
	}
	if request != nil {
		f.job["http"] = request
	}
	if err := f.command.complete(f.job); err != nil {
		return err
	}

	// Times without an offset are in the job's time zone.
	zone := now.Location()
	name, _ := flags.GetString("timezone")
	if z, err := job.LoadZone(name); err == nil && name != "" {
		zone = z
	}

	for _, at := range []struct{ field, text string }{{"at", f.at}, {"start", f.start}, {"end", f.end}} {
		if at.text == "" {
			continue
		}
		t, err := parseTime(at.text, zone, now)
		if err != nil {
			return usageError("--%s %w", at.field, err)
		}
		f.job[at.field] = t
	}

	labels := map[string]string{}
	for _, label := range f.labels {
		key, value, ok := strings.Cut(label, "=")
		if !ok {
			return usageError("--label %q: want key=value", label)
		}
		labels[key] = value
		f.job["labels"] = labels
	}

	if ping, given := f.job["ping"].(map[string]any); given && ping["url"] == nil {
		return usageError("--ping-fail-url goes with --ping-url")
	}
	return nil
}
