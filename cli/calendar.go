package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/client"
	"go-crontab/job"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

const (
	calendarsPath    = "/api/v1/calendars"
	calendarArgument = "CALENDAR (its name)"
)

func calendarPath(name string) string { return calendarsPath + "/" + url.PathEscape(name) }

func calendarCommand(c *console) *cobra.Command {
	return newGroup("calendar", "Limit jobs to certain days and hours",
		calendarList(c), calendarShow(c), calendarDays(c), calendarApply(c), calendarImport(c), removal{
			"calendar", "CALENDAR", "Delete calendars that no job uses", "  go-crontab calendar rm old-holidays",
			calendarPath, calendarsPath, "calendar",
		}.command(c))
}

func calendarList(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the calendars", Args: nothing,
		Example: "  go-crontab calendar ls",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		calendars, raw, err := list[view.CalendarItem](cmd.Context(), r, calendarsPath, nil, 0)
		if err != nil {
			return err
		}
		return r.list(raw, func(i int) string { return calendars[i].Name }, func() error {
			if len(calendars) == 0 {
				c.notef("There are no calendars yet. To create one:  %s calendar import holidays FILE.ics\n", program())
				return nil
			}

			t := &table{columns: []column{
				{head: "CALENDAR", shrink: true}, {head: "TIMEZONE"}, {head: "EXCLUDED", right: true},
				{head: "INCLUDED", right: true}, {head: "JOBS", right: true}, {head: "CHANGED"},
			}}

			for _, v := range calendars {
				t.add(text(v.Name), text(v.Timezone), text(fmt.Sprint(v.Excludes)), text(fmt.Sprint(v.Includes)),
					text(fmt.Sprint(v.Jobs)), text(relative(&v.Updated, time.Now())))
			}
			return r.table(t)
		})
	}

	return cmd
}

func calendarShow(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show CALENDAR", Short: "Show everything about a calendar", Args: wants(1, 1, calendarArgument),
		Example: "  go-crontab calendar show cn-holidays\n  go-crontab calendar show cn-holidays -o yaml > cn-holidays.yaml",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v, raw, err := get[view.Calendar](cmd.Context(), r, calendarPath(args[0]), nil)
		if err != nil {
			return r.missing(cmd.Context(), err, "calendar", args[0], calendarsPath, "calendar")
		}
		return r.object(c, raw, v.Name, func() error {
			if err := r.card(calendarCard(&v, c.now())); err != nil {
				return err
			}
			return r.calendarEntries(&v)
		})
	}

	return cmd
}

func calendarCard(v *view.Calendar, now time.Time) card {
	var d card
	d.add("calendar", v.Name, bold)
	d.add("error", v.Error, red)
	d.add("description", v.Description)
	d.add("timezone", orElse(v.Timezone, "the time zone of each job"))
	d.add("closed on", strings.Join(v.ExcludeWeekdays, ", "))
	d.add("open only", strings.Join(v.Hours.Only, "\n"))
	d.add("closed", strings.Join(v.Hours.Except, "\n"))
	d.add("jobs", fmt.Sprint(v.Jobs))
	d.add("version", fmt.Sprintf("%d, %s", v.Version, both(&v.Updated, now)))
	return d
}

// calendarEntries prints the days of a calendar.
func (r *remote) calendarEntries(v *view.Calendar) error {
	if len(v.Exclude)+len(v.Include) == 0 {
		return nil
	}

	r.printf("\n")
	t := &table{columns: []column{{head: "DAYS"}, {head: "KIND"}, {head: "NOTE", shrink: true}}}
	add := func(days []job.CalendarDay, kind string) {
		for _, e := range days {
			days, kind := e.Date, kind
			if e.End != "" {
				days += " to " + e.End
			}
			if e.As != "" {
				kind += " as " + e.As
			}
			t.add(text(days), text(kind), text(e.Note))
		}
	}

	add(v.Exclude, "exclude")
	add(v.Include, "include")
	return r.table(t)
}

func calendarDays(c *console) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use: "days CALENDAR", Short: "Show which days are open, closed, or make-up workdays",
		Args:    wants(1, 1, calendarArgument),
		Example: "  go-crontab calendar days cn-holidays --from 2027-02-01 --to 2027-02-28",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVar(&from, "from", "", "the first day, such as 2027-02-01 (default today)")
	cmd.Flags().StringVar(&to, "to", "", "the last day (default 30 days later)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		query := url.Values{}
		for name, value := range map[string]string{"from": from, "to": to} {
			if value != "" {
				query.Set(name, value)
			}
		}

		days, raw, err := get[view.Page[job.DayState]](cmd.Context(), r, calendarPath(args[0])+"/days", query)
		if err != nil {
			return r.missing(cmd.Context(), err, "calendar", args[0], calendarsPath, "calendar")
		}

		var dates []string
		for _, d := range days.Items {
			dates = append(dates, d.Date)
		}

		return r.object(c, raw, strings.Join(dates, "\n"), func() error {
			t := &table{
				columns: []column{
					{head: "DATE"}, {head: "DAY"}, {head: "STATE"}, {head: "HOURS"}, {head: "NOTE", shrink: true},
				},
			}

			for _, d := range days.Items {
				state := cell{d.State, map[string]colour{"open": green, "makeup": yellow}[d.State]}
				if d.As != "" {
					state.text += " as " + plain(d.As)
				}
				t.add(text(d.Date), text(d.Weekday), state, text(strings.Join(d.Hours, " ")), text(d.Why))
			}

			return r.table(t)
		})
	}

	return cmd
}

func calendarApply(c *console) *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Create or replace calendars from YAML or JSON files", Args: nothing,
		Long: `Create or replace calendars from YAML or JSON files. A YAML file may contain several calendars,
separated by ---.

  name: cn-holidays
  timezone: Asia/Shanghai          # default: the time zone of each job
  exclude_weekdays: [sat, sun]
  exclude:
    - {date: 2027-02-05, end: 2027-02-11, note: Spring Festival}
    - 05-01                        # every year
  include:                         # make-up workdays: they win over exclude, and count as working days
    - {date: 2027-02-13, note: 调休}
    - {date: 2027-02-14, as: mon}  # counts as a Monday
  hours:
    only: ["mon-fri 08:00-18:00"]  # open only in these hours; "except" closes hours

Jobs that use a calendar follow the change at once.`,
		Example: "  go-crontab calendar apply -f cn-holidays.yaml\n  go-crontab job add report -s \"0 9 * * 1-5\" -z Asia/Shanghai --calendar cn-holidays -- ./report.sh",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringArrayVarP(&files, "file", "f", nil, "a file, or - for standard input; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if len(files) == 0 {
			return usageError("-f FILE is missing; use -f - for standard input")
		}

		for _, file := range files {
			data, err := c.readFile(file)
			if err != nil {
				return err
			}

			calendars, err := readDocuments(data)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}

			for i, calendar := range calendars {
				name, _ := calendar["name"].(string)
				if name == "" {
					return usageError("%s: calendar %d has no name; add the field name", file, i+1)
				}
				v, raw, err := ask[view.Calendar](cmd.Context(), r, http.MethodPut, calendarPath(name), nil, calendar)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", file, plain(name), err)
				}
				if err := r.object(c, raw, v.Name, func() error { c.calendarDone(&v); return nil }); err != nil {
					return err
				}
			}
		}

		return nil
	}

	return cmd
}

func (c *console) calendarDone(v *view.Calendar) {
	c.printf("calendar %s, version %d: %d excluded, %d included, %d jobs\n", plain(v.Name), v.Version, len(v.Exclude),
		len(v.Include), v.Jobs)
}

const maxCalendarFile = 4 << 20

// readFile reads a file, or standard input for "-".
func (c *console) readFile(name string) ([]byte, error) {
	in := c.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, &exitError{code: exitUsage, err: err}
		}
		defer f.Close()
		in = f
	}

	data, err := io.ReadAll(io.LimitReader(in, maxCalendarFile+1))
	if err == nil && len(data) > maxCalendarFile {
		err = usageError("%s: the file is larger than %d bytes", name, maxCalendarFile)
	}
	return data, err
}

// readDocuments reads the objects of a YAML or JSON file.
func readDocuments(data []byte) ([]map[string]any, error) {
	var out []map[string]any
	for dec := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}

		asWritten(&doc, 0)
		var o map[string]any
		if err := doc.Decode(&o); err != nil {
			return nil, err
		}
		if o != nil {
			out = append(out, o)
		}
	}
}

// asWritten keeps the text of dates. YAML would parse a date as a time, but in this file it is a
// day.
func asWritten(n *yaml.Node, depth int) {
	if n.Tag == "!!timestamp" {
		n.Tag = "!!str"
	}
	for _, child := range n.Content {
		if depth < 20 {
			asWritten(child, depth+1)
		}
	}
}

func calendarImport(c *console) *cobra.Command {
	var format, workday string
	var add, dry bool
	cmd := &cobra.Command{
		Use: "import CALENDAR FILE", Short: "Import the days of an iCalendar or CSV file",
		Args: wants(2, 2, "CALENDAR and FILE (- for standard input)"),
		Long: `Import the days of an iCalendar (.ics) or CSV file. They replace the days of the calendar, or are
added to them with --add. The calendar's weekdays and hours stay unchanged. A missing calendar is
created. If the file has any error, nothing is imported.

A line of a CSV file is a day or a range: date,end,kind,note. Only the date is required. The kind is
exclude (the default) or include. In an iCalendar file, whole-day events count, including recurring
ones. An event whose summary contains the word of --workday is a make-up workday.`,
		Example: "  go-crontab calendar import cn-holidays holidays.ics\n  curl -fsS https://example.com/de.ics | go-crontab calendar import de - --format ics --dry-run",
	}

	r := newRemote(c, cmd)
	choiceVar(cmd.Flags(), &format, "format", "", "", "format of the file (default from its name)", "ics", "csv")
	cmd.Flags().StringVar(&workday, "workday", "", "word in the summaries of make-up workdays (default 班)")
	cmd.Flags().BoolVar(&add, "add", false, "keep the existing days of the calendar")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show the result")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if format == "" {
			format = strings.TrimPrefix(strings.ToLower(filepath.Ext(args[1])), ".")
		}

		media := map[string]string{"ics": "text/calendar", "csv": "text/csv"}[format]
		if media == "" {
			return usageError("%q: cannot tell the format from the name; add --format ics or --format csv", args[1])
		}

		data, err := c.readFile(args[1])
		if err != nil {
			return err
		}

		query := url.Values{"format": {format}}
		for name, value := range map[string]string{
			"workday": workday, "mode": map[bool]string{true: "add"}[add],
			"dry_run": map[bool]string{true: "true"}[dry],
		} {
			if value != "" {
				query.Set(name, value)
			}
		}

		v, raw, err := ask[view.Import](cmd.Context(), r, http.MethodPost, calendarPath(args[0])+"/import", query,
			client.Document{Media: media, Data: data})
		if err != nil {
			return err
		}

		return r.object(c, json.RawMessage(raw), v.Name, func() error {
			if dry {
				c.printf("dry run: ")
			}
			c.calendarDone(v.Calendar)
			c.notef("the file has %d days off and %d make-up workdays\n", v.Imported.Excludes, v.Imported.Includes)
			if n := v.Imported.Ignored; n > 0 {
				c.notef("%d other events were ignored\n", n)
			}
			return nil
		})
	}

	return cmd
}
