package cli

import (
	"os"
	"slices"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

// maxOutlook is the largest number of due times that the API returns.
const maxOutlook = 1000

func previewOf(spec *job.Spec, from time.Time, n int) (*view.Preview, error) {
	s, err := spec.Compile()
	if err != nil {
		return nil, err
	}

	zone, err := job.LoadZone(spec.Timezone)
	if err != nil {
		return nil, err
	}

	o := &view.Preview{Words: spec.Words(job.English), Next: []view.DueTime{}, Warnings: spec.Warnings(s, from)}
	marker, _ := s.(job.Marker)
	for _, due := range job.Preview(s, from, n) {
		d := view.DueTime{Due: due.In(zone)}
		if marker != nil {
			d.Mark = marker.Mark(due)
		}
		o.Next = append(o.Next, d)
	}

	return o, nil
}

func cronCommand(c *console) *cobra.Command {
	return newGroup("cron", "Explain cron expressions, without a server", cronNext(c), cronExplain(c))
}

// cronFlags are the flags that all commands of cron share.
type cronFlags struct {
	output
	zone, from string
}

const exprArgument = `EXPR in quotes, such as "0 3 * * *"`

func (f *cronFlags) flags(cmd *cobra.Command) {
	f.output.flags(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&f.zone, "timezone", "z", "", "time zone of the expression, such as Europe/Berlin (default UTC)")
	flags.StringVar(&f.from, "from", "",
		"list due times after this time, in --timezone unless it has an offset (default now)")

	_ = cmd.RegisterFlagCompletionFunc("timezone", completeZones)
}

// read parses the schedule, and the time from which on due times are listed.
func (f *cronFlags) read(args []string) (spec *job.Spec, zone *time.Location, from time.Time, err error) {
	spec = &job.Spec{Schedule: strings.Join(args, " "), Timezone: f.zone}
	if zone, err = job.LoadZone(f.zone); err != nil {
		return nil, nil, from, usageError("--timezone: %w", err)
	}

	from = time.Now()
	if f.from != "" {
		if from, err = parseTime(f.from, zone, from); err != nil {
			return nil, nil, from, usageError("--from %w", err)
		}
	}

	spec.Defaults(from)
	if _, err := job.ParseCron(spec.Schedule, zone); err != nil {
		if len(args) > 1 && slices.ContainsFunc(args, isFile) { // the shell has expanded * to file names
			return nil, nil, from,
				usageError(`EXPR: the shell replaced * by file names such as %s; quote the expression, as "30 6 * * *"`,
					args[slices.IndexFunc(args, isFile)])
		}
		return nil, nil, from, withHint(&exitError{code: exitRefused, err: err},
			"an example:  %s cron explain \"30 6 * * MON-FRI\"", program())
	}

	return spec, zone, from, nil
}

// expression accepts an expression as a single argument. If the quotes are missing, it accepts
// several arguments.
func expression(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return wants(1, 1, exprArgument)(cmd, args)
	}
	return nil
}

func cronNext(c *console) *cobra.Command {
	var f cronFlags
	n := 0
	cmd := &cobra.Command{
		Use: "next EXPR", Short: "List the next due times of a cron expression", Args: expression,
		Long: `List the next due times of a cron expression. This needs no server. -o json prints the same as POST
/api/v1/preview, and -o name only the due times. Times around a clock change are marked: gap for a
time that the clock skips, and repeat for a time that it shows twice.`,
		Example: `  go-crontab cron next "30 6 * * MON-FRI" --timezone Europe/Berlin
  go-crontab cron next "30 2 * * *" --timezone Europe/Berlin --from 2027-03-27 -n 3
  go-crontab cron next @hourly -o name -n 24`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}

	f.flags(cmd)
	cmd.Flags().IntVarP(&n, "limit", "n", 10, "show this many, 1 to 1000")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if n < 1 || n > maxOutlook {
			return usageError("--limit %d: want 1 to %d", n, maxOutlook)
		}

		spec, zone, from, err := f.read(args)
		if err != nil {
			return err
		}

		o, err := previewOf(spec, from, n)
		if err != nil {
			return err
		}

		return f.object(c, o, dueNames(o.Next), func() error {
			c.notef("%s\n", o.Words)
			for _, w := range o.Warnings {
				c.notef("warning: %s\n", plain(w.Message))
			}
			if len(o.Next) == 0 {
				return nil
			}
			return dueTable(o.Next, zone, time.Now().In(zone)).print(c.out, terminalWidth(c.out), colourful(c.out))
		})
	}

	return cmd
}

// dueNames lists due times for -o name.
func dueNames(due []view.DueTime) string {
	names := make([]string, len(due))
	for i, d := range due {
		names[i] = d.Due.Format(time.RFC3339Nano)
	}
	return strings.Join(names, "\n")
}

// cronReading is the output of `cron explain`.
type cronReading struct {
	*view.Preview
	Layout  string      `json:"layout"` // the order of the fields
	Fields  []cronField `json:"fields"`
	Elapsed bool        `json:"elapsed"` // follows elapsed time across clock changes
}

type cronField struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

var cronFieldNames = [7]string{"second", "minute", "hour", "day-of-month", "month", "day-of-week", "year"}

func cronExplain(c *console) *cobra.Command {
	var f cronFlags
	cmd := &cobra.Command{
		Use: "explain EXPR", Short: "Explain a cron expression", Args: expression,
		Long: `Explain a cron expression: in words, field by field, at clock changes, and with its next due times.
This needs no server.`,
		Example: `  go-crontab cron explain "0 9 13 * FRI"
  go-crontab cron explain "*/15 9-17 * * MON-FRI" --timezone Asia/Shanghai`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}

	f.flags(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		spec, zone, from, err := f.read(args)
		if err != nil {
			return err
		}

		o, err := previewOf(spec, from, 3)
		if err != nil {
			return err
		}

		expr, err := job.ParseCron(spec.Schedule, zone)
		if err != nil {
			return err
		}

		r := cronReading{Preview: o, Layout: expr.Layout(), Elapsed: expr.Elapsed()}
		for i, text := range expr.Fields() {
			r.Fields = append(r.Fields, cronField{cronFieldNames[i], text})
		}
		return f.object(c, &r, r.Words, func() error { return (&remote{console: c}).card(r.card(time.Now().In(zone))) })
	}

	return cmd
}

func (r *cronReading) card(now time.Time) card {
	var d card
	d.add("due", r.Words, bold)
	d.add("read as", r.Layout)

	for _, f := range r.Fields {
		if f.Value != "*" && (f.Name != "second" || f.Value != "0") {
			d.add(f.Name, f.Value)
		}
	}

	rule := "due once for each time of day: a time that the clock skips is due at the end of the gap,\n" +
		"a time that it shows twice is due the first time"
	if r.Elapsed {
		rule = "follows elapsed time, because a field of the time of day begins with *: not due in an hour\n" +
			"that the clock skips, due twice in an hour that it shows twice"
	}

	d.add("clock changes", rule)
	for i, due := range r.Next {
		text := both(&due.Due, now)
		if due.Mark != "" {
			text += ", " + string(due.Mark)
		}
		d.add([]string{"next", ""}[min(i, 1)], text)
	}

	for i, w := range r.Warnings {
		d.add([]string{"warning", ""}[min(i, 1)], w.Message, yellow)
	}

	return d
}

// completeZones completes names of time zones.
func completeZones(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, name := range job.ZoneNames() {
		if strings.HasPrefix(strings.ToLower(name), strings.ToLower(typed)) {
			out = append(out, name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func isFile(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
