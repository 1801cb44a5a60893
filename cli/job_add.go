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
	Keep        *keepFlags        `json:"keep,omitempty"`
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
	keep      keepFlags
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
			return withHint(err, "to look at it:    %[1]s job show %[2]s\nto remove it:     %[1]s job rm %[2]s",
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
		"cron fields: 5, or 6 with seconds first, or @daily and the like; may be repeated")
	flags.StringVar(&j.Every, "every", "", "a fixed interval such as 15m")
	flags.StringVar(&f.at, "at", "", `once: 2027-01-31T09:00:00+01:00, or "2027-01-31 09:00" in --timezone
(else in this machine's), or +10m from now`)
	flags.BoolVar(&f.now, "now", false, "once, at once: --at this very moment, by the cluster's clock")
	flags.StringVar(&f.start, "start", "", "no due time before it; the first one of --every; written like --at")
	flags.StringVar(&f.end, "end", "", "no due time after it, written like --at")
	flags.Int64Var(&j.MaxFires, "max-fires", 0, "so many due times in all (default no bound)")
	flags.StringVar(&j.Jitter, "jitter", "", "shift all due times by a part of this that is the job's own, such as 5m")
	flags.StringArrayVar(&j.Calendars, "calendar", nil, "a calendar that must be open when it is due; may be repeated")
	flags.StringVarP(&j.Timezone, "timezone", "z", "", "of the schedule, such as Europe/Berlin (default UTC)")

	flags.StringVarP(&j.Command, "command", "c", "", "the command, instead of -- COMMAND")
	f.http.flags(cmd)
	flags.StringVar(&j.Handler, "handler", "",
		"call the Go function of this key in a program that embeds a node, instead of running a command")
	flags.StringVar(&j.Payload, "payload", "", "what --handler gets, as it is")

	flags.StringVar(&j.Selector, "selector", "",
		`which nodes may run it, by their labels: 'zone in (a,b), !gpu, disk=ssd' (default any)`)
	flags.StringVarP(&j.App, "app", "a", "", `the app, instead of app/name (default "default")`)
	flags.StringVar(&j.Timeout, "timeout", "", "kill it after this long (default never, with --http 5m)")
	f.command.flags(cmd, &j.commandOptions)

	flags.StringVar(&j.Overlap, "overlap", "",
		"a due time while it is still running: skip, queue, replace, allow (default skip)")
	flags.IntVar(&j.Queue, "queue", 0,
		"due times that may wait, with --overlap queue or --group (default 10, in a group 100)")
	flags.StringVar(&j.Group, "group", "", "share the slots of this group")
	flags.IntVar(&j.Priority, "priority", 0, "the higher goes first when there is no room for all, from -100 to 100")
	flags.StringVar(&j.Deadline, "start-deadline", "",
		"miss a due time that could not be started so long after it (default no bound)")

	flags.StringVar(&f.misfire.Policy, "misfire", "",
		"due times that nobody could start: latest, skip, all (default latest)")
	flags.StringVar(&f.misfire.After, "misfire-after", "", "how late a due time is before that applies (default 1m)")
	flags.IntVar(&f.misfire.MaxCount, "misfire-max-count", 0,
		"with --misfire all: start the latest so many (default 100)")
	flags.StringVar(&f.misfire.MaxAge, "misfire-max-age", "", "how late one may still be started (default 1h)")

	flags.IntVar(&f.retry.Attempts, "attempts", 0, "start it so often in all until it succeeds (default 1)")
	flags.StringVar(&f.retry.Backoff, "backoff", "", "from the end of an attempt to the next (default 10s)")
	flags.Float64Var(&f.retry.Factor, "backoff-factor", 0, "each backoff is so many times the one before (default 1)")

	flags.StringVar(&f.keep.Age, "keep-age", "", "records of its runs that are older go, such as 720h")
	flags.Int64Var(&f.keep.Runs, "keep-runs", 0, "only so many records stay")
	flags.StringVar(&f.keep.Bytes, "keep-bytes", "", "only records stay whose output comes to no more, such as 1GiB")
	flags.StringVar(&f.keep.Failures, "keep-failures", "", "what did not succeed stays at least so long")

	flags.StringVar(&f.ping.URL, "ping-url", "",
		"called (GET) when a due time has succeeded: a monitor elsewhere raises the alarm when it is not")
	flags.StringVar(&f.ping.FailURL, "ping-fail-url", "",
		"with --ping-url: called when a due time was missed, or did not succeed after all its attempts")

	flags.StringVar(&f.retry.MaxBackoff, "max-backoff", "", "the longest backoff (default 1h)")
	flags.StringVar(&j.OnLost, "on-lost", "", "when its node vanishes: fail, rerun (default fail)")

	flags.StringArrayVarP(&f.labels, "label", "l", nil, "key=value, may be repeated")
	flags.StringVar(&j.Owner, "owner", "", "who to ask about it")
	flags.StringVar(&j.Description, "description", "", "what it is good for")
	flags.BoolVar(&j.Paused, "paused", false, "add it paused")
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
		return fmt.Errorf("NAME is missing")
	case len(before) > 1:
		return fmt.Errorf("%q: the command stands after --, or in --command", before[1])
	case f.job.Command != "" && len(after) > 0:
		return fmt.Errorf("the command is given twice: in --command and after --")
	case len(after) > 0:
		f.job.Command = commandText(after)
	case f.job.Command == "" && f.http.request.URL == "" && f.job.Handler == "":
		return fmt.Errorf("the command is missing: add -- COMMAND at the end, or --http URL, or --handler KEY")
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
		return usageError("give one of --schedule, --every, --at, --now")
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
	if f.keep != (keepFlags{}) {
		f.job.Keep = &f.keep
	}

	switch {
	case f.ping.URL != "":
		f.job.Ping = &f.ping
	case f.ping.FailURL != "":
		return usageError("--ping-fail-url goes with --ping-url")
	}

	if f.retry != (newRetry{}) {
		f.job.Retry = &f.retry
	}

	return nil
}
