package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// jobFlags are the flags of `job add` that are fields of a job, with their places in the request
// body. Missing fields get the server's defaults. Only the server validates values, so the command
// line has no rules of its own.
var jobFlags = map[string]string{
	"app": "app", "description": "description", "owner": "owner",
	"every": "every", "delay": "delay", "manual": "manual", "timezone": "timezone", "max-fires": "max_fires", "jitter": "jitter",
	"calendar": "calendars", "on-closed": "on_closed", "weeks-every": "weeks.every", "weeks-from": "weeks.from",
	"command": "command", "handler": "handler", "payload": "payload", "selector": "selector", "timeout": "timeout",
	"user": "user", "dir": "dir", "stdin": "stdin", "success-codes": "success_codes",
	"skip-exit-codes": "skip_exit_codes", "grace": "grace",
	"overlap": "overlap", "queue": "queue", "group": "group", "priority": "priority",
	"start-deadline": "start_deadline", "on-lost": "on_lost", "paused": "paused",
	"misfire": "misfire.policy", "misfire-after": "misfire.after", "misfire-max-count": "misfire.max_count",
	"misfire-max-age": "misfire.max_age",
	"attempts":        "retry.attempts", "backoff": "retry.backoff", "backoff-factor": "retry.factor",
	"max-backoff": "retry.max_backoff",
	"after-on":    "after.on", "after-match": "after.match", "after-within": "after.within",
	"keep-age": "keep.age", "keep-runs": "keep.runs", "keep-bytes": "keep.bytes", "keep-failures": "keep.failures",
	"keep-job": "keep_job", "keep-output": "output.keep", "mark-stderr": "output.mark_stderr",
	"ping-url": "ping.url", "ping-fail-url": "ping.fail_url",
}

// bodyOf returns a request body with the given flags, each at its place. Zeros are included, so
// that the server can refuse them.
func bodyOf(flags *pflag.FlagSet, places map[string]string) map[string]any {
	body := map[string]any{}
	for name, place := range places {
		flag := flags.Lookup(name)
		if !flag.Changed {
			continue
		}

		var value any
		text := flag.Value.String()
		switch flag.Value.Type() {
		case "int", "int64", "float64":
			value = json.Number(text)
		case "bool":
			value = text == "true"
		case "stringArray":
			value, _ = flags.GetStringArray(name)
		case "intSlice":
			value, _ = flags.GetIntSlice(name)
		default:
			value = text
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

// addFlags are the flags of `job add` whose values need conversion.
type addFlags struct {
	job       map[string]any // the request body
	http      httpFlags
	command   commandFlags
	labels    []string
	schedules []string

	after          []string
	at, start, end string
	now            bool
}

func jobAdd(c *console) *cobra.Command {
	var f addFlags
	cmd := &cobra.Command{
		Use:                   "add NAME (--schedule CRON | --every DURATION | --delay DURATION | --after JOB | --at TIME | --now | --manual) [flags] (-- COMMAND… | --http URL | --handler KEY)",
		DisableFlagsInUseLine: true,
		Short:                 "Add a job",
		Long: `Add a job. NAME may be app/name.

The command runs as bash -c COMMAND. A single argument after -- (or --command) is the text for bash:
quote it, and bash interprets its pipes, variables and quotes. Several arguments are a program and
its arguments, as your shell has split them; nothing in them is expanded when the job runs.`,
		Example: `  go-crontab job add backup --schedule "0 3 * * *" --timezone Europe/Berlin -- 'pg_dump -Fc -f /backup/shop-$(date +%F).dump shop'
  go-crontab job add ops/ping --every 30s --timeout 10s -- curl -fsS https://example.com/health
  go-crontab job add bill --schedule "0 1 1 * *" --http 'https://shop.example/bill?due={{due}}' --method POST --sign billing
  go-crontab job add train --every 6h --selector 'gpu, zone in (a,b)' -- ./train.sh
  go-crontab job add invoices --schedule "0 6 1 * *" --handler invoice --payload '{"kind": "monthly"}'
  go-crontab job add load --after extract,billing/close -- ./load.sh
  go-crontab job add reindex --manual -- ./reindex.sh
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
		if f.now { // by the cluster's clock: this machine's clock may be ahead
			cluster, _, err := get[view.Cluster](cmd.Context(), r, "/api/v1/cluster", nil)
			if err != nil {
				return err
			}
			f.job["at"] = cluster.Now
		}

		j, raw, err := once[jobView](cmd.Context(), r, "/api/v1/jobs", nil, f.job)
		if isStatus(err, http.StatusConflict) {
			return withHint(err, "to show it:    %[1]s job show %[2]s\nto delete it:  %[1]s job rm %[2]s",
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
		"cron expression: 5 fields, 6 with seconds first, or @daily and the like; may be repeated")
	flags.String("every", "", "fixed interval, such as 15m")
	flags.String("delay", "", "time from the end of a run to the next due time, such as 5m")
	flags.StringSliceVar(&f.after, "after", nil,
		"run after these jobs, separated by commas, instead of by a schedule: name or app/name")
	flags.String("after-on", "", "which ends of their runs count: success, failure or end (default success)")
	flags.String("after-match", "", "how many of these jobs must have ended: all or any (default all)")
	flags.String("after-within", "", "with all: how far apart their ends may lie (default 24h)")
	flags.Bool("manual", false, "no schedule: run only when somebody asks for it, with job run")
	flags.StringVar(&f.at, "at", "", `run once at this time: 2027-01-31T09:00:00+01:00, "2027-01-31 09:00" or +10m
(without an offset in --timezone, or in this machine's zone)`)
	flags.BoolVar(&f.now, "now", false, "run once, now, by the cluster's clock")
	flags.StringVar(&f.start, "start", "",
		"no due time before this time, and the first one of --every; format as for --at")
	flags.StringVar(&f.end, "end", "", "no due time after this time; format as for --at")
	flags.Int64("max-fires", 0, "at most this many due times in all (default no limit)")
	flags.String("jitter", "",
		"shift all due times by a fixed part of this duration, different for each job, such as 5m")
	flags.StringArray("calendar", nil, "calendar that must be open at due times; may be repeated")
	flags.String("on-closed", "",
		"move due times of days that a --calendar closes: skip, next or previous (default skip)")
	flags.Int("weeks-every", 0, "keep one week of this many, from --weeks-from on: 2 is every second week")
	flags.String("weeks-from", "", "date in the first week of --weeks-every, such as 2026-01-05")
	flags.StringP("timezone", "z", "", "time zone of the schedule, such as Europe/Berlin (default UTC)")

	flags.StringP("command", "c", "", "command to run, instead of -- COMMAND")
	f.http.flags(cmd)
	flags.String("handler", "",
		"call the Go function with this key in a program that embeds a node, instead of a command")
	flags.String("payload", "", "text that is passed to the --handler")

	flags.String("selector", "",
		`nodes that may run the job, by labels: 'zone in (a,b), !gpu, disk=ssd' (default all)`)
	flags.StringP("app", "a", "", `app of the job, instead of app/name (default "default")`)
	flags.String("timeout", "", "kill a run after this long (default never, with --http 5m)")
	f.command.flags(cmd)

	flags.String("overlap", "",
		"what to do when the job is due but still running: skip, queue, replace or allow (default skip)")
	flags.Int("queue", 0,
		"most due times that wait, with --overlap queue or --group (default 10, in a group 100)")
	flags.String("group", "", "group whose slots the job shares")
	flags.Int("priority", 0, "higher goes first when slots are scarce, -100 to 100")
	flags.String("start-deadline", "",
		"end a due time as missed if it has not started after this long (default never)")

	flags.String("misfire", "",
		"which due times to run after an outage or a pause: latest, skip or all (default latest)")
	flags.String("misfire-after", "",
		"apply --misfire to due times that are later than this (default 1m)")
	flags.Int("misfire-max-count", 0,
		"with --misfire all: run at most this many, the latest ones (default 100)")
	flags.String("misfire-max-age", "",
		"never run due times that are later than this (default 1h)")

	flags.Int("attempts", 0, "most attempts until a run succeeds (default 1)")
	flags.String("backoff", "", "wait this long after a failed attempt (default 10s)")
	flags.Float64("backoff-factor", 0,
		"multiply the backoff by this after each attempt (default 1)")

	flags.String("keep-age", "", "remove records of runs that are older than this, such as 30d")
	flags.Int64("keep-runs", 0, "keep only this many records of runs, the latest ones")
	flags.String("keep-bytes", "",
		"keep only the latest records with at most this much output, such as 1GiB")
	flags.String("keep-failures", "",
		"keep records of unsuccessful runs at least this long, such as 365d")

	flags.String("keep-job", "", "delete the job this long after it has finished, such as 30d (default never)")
	flags.String("keep-output", "", "keep this much of the output of each run, up to 16MiB (default 64KiB)")
	flags.Bool("mark-stderr", false, "read stderr apart from stdout, so that its lines are marked")

	flags.String("ping-url", "",
		"call this URL (GET) after each success, so that a monitor elsewhere notices missing calls")
	flags.String("ping-fail-url", "",
		"with --ping-url: call this URL after a missed due time, or after the last failed attempt")

	flags.String("max-backoff", "", "longest backoff (default 1h)")
	flags.String("on-lost", "",
		"what to do when the node of a run vanishes: fail or rerun (default fail)")

	flags.StringArrayVarP(&f.labels, "label", "l", nil, "label, as key=value; may be repeated")
	flags.String("owner", "", "person or team in charge of the job")
	flags.String("description", "", "what the job is for")
	flags.Bool("paused", false, "add the job paused")
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
		return fmt.Errorf("NAME is missing: give the name of the job before its flags")
	case len(before) > 1:
		return fmt.Errorf("unexpected argument %q: put the command after --, or into --command", before[1])
	case f.job["command"] != nil && len(after) > 0:
		return fmt.Errorf("the command is given twice: use either --command or --")
	case len(after) > 0:
		f.job["command"] = commandText(after)
	case f.job["command"] == nil && f.http.request.URL == "" && f.job["handler"] == nil:
		return fmt.Errorf("the command is missing: add -- COMMAND at the end, --http URL or --handler KEY")
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
	if len(f.after) > 0 {
		after, is := f.job["after"].(map[string]any)
		if !is {
			after = map[string]any{}
			f.job["after"] = after
		}
		after["jobs"] = f.after
	}
	for _, set := range []bool{
		len(f.schedules) > 0, f.job["every"] != nil, f.job["delay"] != nil, f.job["after"] != nil, f.at != "", f.now,
		f.job["manual"] == true,
	} {
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
		return usageError("want exactly one of --schedule, --every, --delay, --after, --at, --now, --manual")
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

	if len(f.labels) > 0 {
		labels, err := parseLabels("--label", f.labels)
		if err != nil {
			return err
		}
		f.job["labels"] = labels
	}

	if ping, given := f.job["ping"].(map[string]any); given && ping["url"] == nil {
		return usageError("--ping-fail-url needs --ping-url")
	}
	return nil
}
