package cli

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"go-crontab/job"

	"github.com/spf13/cobra"
)

// newJob is the request body for a new job. Missing fields get the server's defaults. Only the
// server validates, so the command line has no rules of its own.
type newJob struct {
	App         string            `json:"app"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Owner       string            `json:"owner,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Schedule    string            `json:"schedule,omitempty"`
	Schedules   []string          `json:"schedules,omitempty"`
	Every       string            `json:"every,omitempty"`
	At          *time.Time        `json:"at,omitempty"`
	Timezone    string            `json:"timezone,omitempty"`
	Start       *time.Time        `json:"start,omitempty"`
	End         *time.Time        `json:"end,omitempty"`
	MaxFires    int64             `json:"max_fires,omitempty"`
	Jitter      string            `json:"jitter,omitempty"`
	Calendars   []string          `json:"calendars,omitempty"`
	Command     string            `json:"command,omitempty"`
	HTTP        *job.HTTP         `json:"http,omitempty"`
	Handler     string            `json:"handler,omitempty"`
	Payload     string            `json:"payload,omitempty"`
	Selector    string            `json:"selector,omitempty"`
	Timeout     string            `json:"timeout,omitempty"`
	Overlap     string            `json:"overlap,omitempty"`
	Queue       int               `json:"queue,omitempty"`
	Group       string            `json:"group,omitempty"`
	Priority    int               `json:"priority,omitempty"`
	Deadline    string            `json:"start_deadline,omitempty"`
	Misfire     *newMisfire       `json:"misfire,omitempty"`
	Retry       *newRetry         `json:"retry,omitempty"`
	Keep        *keepView         `json:"keep,omitempty"`
	Ping        *job.Ping         `json:"ping,omitempty"`
	OnLost      string            `json:"on_lost,omitempty"`
	Paused      bool              `json:"paused,omitempty"`

	commandOptions
}

type newMisfire struct {
	Policy   string `json:"policy,omitempty"`
	After    string `json:"after,omitempty"`
	MaxAge   string `json:"max_age,omitempty"`
	MaxCount int    `json:"max_count,omitempty"`
}

type newRetry struct {
	Attempts   int     `json:"attempts,omitempty"`
	Backoff    string  `json:"backoff,omitempty"`
	Factor     float64 `json:"factor,omitempty"`
	MaxBackoff string  `json:"max_backoff,omitempty"`
}

// addFlags are the flags of `job add` that need conversion.
type addFlags struct {
	job       newJob
	misfire   newMisfire
	retry     newRetry
	keep      keepView
	ping      job.Ping
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

The command runs as bash -c COMMAND. A single argument after -- (or --command) is the text for bash:
quote it, and bash interprets its pipes, variables and quotes. Several arguments are a program and
its arguments, as your shell has split them; nothing in them is expanded when the job runs.`,
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
		if err := f.complete(c.now()); err != nil {
			return err
		}
		if f.now { // by the cluster's clock, since this machine's may be ahead
			cluster, _, err := get[struct{ Now time.Time }](cmd.Context(), r, "/api/v1/cluster", nil)
			if err != nil {
				return err
			}
			f.job.At = &cluster.Now
		}

		j, raw, err := once[jobView](cmd.Context(), r, "/api/v1/jobs", nil, f.job)
		if isStatus(err, http.StatusConflict) {
			return withHint(err, "to show it:    %[1]s job show %[2]s\nto delete it:  %[1]s job rm %[2]s",
				program(), quote(f.job.App+"/"+f.job.Name))
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
	j := &f.job

	flags.StringArrayVarP(&f.schedules, "schedule", "s", nil,
		"cron expression: 5 fields, 6 with seconds first, or @daily and the like; may be repeated")
	flags.StringVar(&j.Every, "every", "", "fixed interval, such as 15m")
	flags.StringVar(&f.at, "at", "", `run once at this time: 2027-01-31T09:00:00+01:00, "2027-01-31 09:00" or +10m
(without an offset in --timezone, or in this machine's zone)`)
	flags.BoolVar(&f.now, "now", false, "run once, now, by the cluster's clock")
	flags.StringVar(&f.start, "start", "",
		"no due time before this time, and the first one of --every; format as for --at")
	flags.StringVar(&f.end, "end", "", "no due time after this time; format as for --at")
	flags.Int64Var(&j.MaxFires, "max-fires", 0, "at most this many due times in all (default no limit)")
	flags.StringVar(&j.Jitter, "jitter", "",
		"shift all due times by a fixed part of this duration, different for each job, such as 5m")
	flags.StringArrayVar(&j.Calendars, "calendar", nil, "calendar that must be open at due times; may be repeated")
	flags.StringVarP(&j.Timezone, "timezone", "z", "", "time zone of the schedule, such as Europe/Berlin (default UTC)")

	flags.StringVarP(&j.Command, "command", "c", "", "command to run, instead of -- COMMAND")
	f.http.flags(cmd)
	flags.StringVar(&j.Handler, "handler", "",
		"call the Go function with this key in a program that embeds a node, instead of a command")
	flags.StringVar(&j.Payload, "payload", "", "text that is passed to the --handler")

	flags.StringVar(&j.Selector, "selector", "",
		`nodes that may run the job, by labels: 'zone in (a,b), !gpu, disk=ssd' (default all)`)
	flags.StringVarP(&j.App, "app", "a", "", `app of the job, instead of app/name (default "default")`)
	flags.StringVar(&j.Timeout, "timeout", "", "kill a run after this long (default never, with --http 5m)")
	f.command.flags(cmd, &j.commandOptions)

	flags.StringVar(&j.Overlap, "overlap", "",
		"what to do when the job is due but still running: skip, queue, replace or allow (default skip)")
	flags.IntVar(&j.Queue, "queue", 0,
		"most due times that wait, with --overlap queue or --group (default 10, in a group 100)")
	flags.StringVar(&j.Group, "group", "", "group whose slots the job shares")
	flags.IntVar(&j.Priority, "priority", 0, "higher goes first when slots are scarce, -100 to 100")
	flags.StringVar(&j.Deadline, "start-deadline", "",
		"end a due time as missed if it has not started after this long (default never)")

	flags.StringVar(&f.misfire.Policy, "misfire", "",
		"which due times to run after an outage or a pause: latest, skip or all (default latest)")
	flags.StringVar(&f.misfire.After, "misfire-after", "",
		"apply --misfire to due times that are later than this (default 1m)")
	flags.IntVar(&f.misfire.MaxCount, "misfire-max-count", 0,
		"with --misfire all: run at most this many, the latest ones (default 100)")
	flags.StringVar(&f.misfire.MaxAge, "misfire-max-age", "",
		"never run due times that are later than this (default 1h)")

	flags.IntVar(&f.retry.Attempts, "attempts", 0, "most attempts until a run succeeds (default 1)")
	flags.StringVar(&f.retry.Backoff, "backoff", "", "wait this long after a failed attempt (default 10s)")
	flags.Float64Var(&f.retry.Factor, "backoff-factor", 0,
		"multiply the backoff by this after each attempt (default 1)")

	flags.StringVar(&f.keep.Age, "keep-age", "", "remove records of runs that are older than this, such as 720h")
	flags.Int64Var(&f.keep.Runs, "keep-runs", 0, "keep only this many records of runs, the latest ones")
	flags.StringVar(&f.keep.Bytes, "keep-bytes", "",
		"keep only the latest records with at most this much output, such as 1GiB")
	flags.StringVar(&f.keep.Failures, "keep-failures", "",
		"keep records of unsuccessful runs at least this long, such as 8760h")

	flags.StringVar(&f.ping.URL, "ping-url", "",
		"call this URL (GET) after each success, so that a monitor elsewhere notices missing calls")
	flags.StringVar(&f.ping.FailURL, "ping-fail-url", "",
		"with --ping-url: call this URL after a missed due time, or after the last failed attempt")

	flags.StringVar(&f.retry.MaxBackoff, "max-backoff", "", "longest backoff (default 1h)")
	flags.StringVar(&j.OnLost, "on-lost", "",
		"what to do when the node of a run vanishes: fail or rerun (default fail)")

	flags.StringArrayVarP(&f.labels, "label", "l", nil, "label, as key=value; may be repeated")
	flags.StringVar(&j.Owner, "owner", "", "person or team in charge of the job")
	flags.StringVar(&j.Description, "description", "", "what the job is for")
	flags.BoolVar(&j.Paused, "paused", false, "add the job paused")
}

// arguments parses NAME and the command after "--".
func (f *addFlags) arguments(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	before, after := args, []string(nil)
	if dash >= 0 {
		before, after = args[:dash], args[dash:]
	}

	switch {
	case len(before) == 0:
		return fmt.Errorf("NAME is missing: give the name of the job before its flags")
	case len(before) > 1:
		return fmt.Errorf("unexpected argument %q: put the command after --, or into --command", before[1])
	case f.job.Command != "" && len(after) > 0:
		return fmt.Errorf("the command is given twice: use either --command or --")
	case len(after) > 0:
		f.job.Command = commandText(after)
	case f.job.Command == "" && f.http.request.URL == "" && f.job.Handler == "":
		return fmt.Errorf("the command is missing: add -- COMMAND at the end, --http URL or --handler KEY")
	}

	// Exactly one kind of schedule must be given.
	f.job.Name = before[0]
	if f.job.App == "" {
		f.job.App, f.job.Name = splitName(f.job.Name)
	}

	return nil
}

// complete converts the remaining flags.
func (f *addFlags) complete(now time.Time) error {
	given := 0
	for _, set := range []bool{len(f.schedules) > 0, f.job.Every != "", f.at != "", f.now} {
		if set {
			given++
		}
	}

	if len(f.schedules) == 1 {
		f.job.Schedule = f.schedules[0]
	} else {
		f.job.Schedules = f.schedules
	}
	if given != 1 {
		return usageError("want exactly one of --schedule, --every, --at, --now")
	}

	// A command or an HTTP request.
	var err error
	if f.job.HTTP, err = f.http.complete(); err != nil {
		return err
	}
	if err := f.command.complete(&f.job.commandOptions); err != nil {
		return err
	}

	// Times without an offset are in the job's time zone.
	zone := now.Location()
	if z, err := job.LoadZone(f.job.Timezone); err == nil && f.job.Timezone != "" {
		zone = z
	}

	for _, at := range []struct {
		flag, text string
		to         **time.Time
	}{{"--at", f.at, &f.job.At}, {"--start", f.start, &f.job.Start}, {"--end", f.end, &f.job.End}} {
		if at.text == "" {
			continue
		}
		t, err := parseTime(at.text, zone, now)
		if err != nil {
			return usageError("%s %w", at.flag, err)
		}
		*at.to = &t
	}

	for _, label := range f.labels {
		key, value, ok := strings.Cut(label, "=")
		if !ok {
			return usageError("--label %q: want key=value", label)
		}
		if f.job.Labels == nil {
			f.job.Labels = map[string]string{}
		}
		f.job.Labels[key] = value
	}

	// Send policies only if any of their fields is set.
	if f.misfire != (newMisfire{}) {
		f.job.Misfire = &f.misfire
	}
	if f.keep != (keepView{}) {
		f.job.Keep = &f.keep
	}

	switch {
	case f.ping.URL != "":
		f.job.Ping = &f.ping
	case f.ping.FailURL != "":
		return usageError("--ping-fail-url needs --ping-url")
	}

	if f.retry != (newRetry{}) {
		f.job.Retry = &f.retry
	}

	return nil
}
