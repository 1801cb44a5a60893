package cli

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

func jobNext(c *console) *cobra.Command {
	var (
		n    int
		from string
	)

	cmd := &cobra.Command{
		Use: "next JOB", Short: "List a job's next due times", Args: wants(1, 1, jobArgument),
		Example:           "  go-crontab job next backup -n 3\n  go-crontab job next backup --from 2027-03-28",
		ValidArgsFunction: completeJobs(c),
	}

	r := newRemote(c, cmd)
	cmd.Flags().IntVarP(&n, "limit", "n", 10, "show this many, 1 to 1000")
	cmd.Flags().StringVar(&from, "from", "",
		"list due times after this time, in --timezone unless it has an offset (default now)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		j, _, err := findJob(cmd.Context(), r, args[0])
		if err != nil {
			return err
		}

		query := url.Values{"n": {fmt.Sprint(n)}}
		if from != "" {
			t, err := parseTime(from, c.zone(), c.now())
			if err != nil {
				return usageError("--from %w", err)
			}
			query.Set("from", t.Format(time.RFC3339Nano))
		}

		due, raw, err := get[view.Page[view.DueTime]](cmd.Context(), r, j.path()+"/next", query)
		if err != nil {
			return err
		}

		return r.object(c, raw, dueNames(due.Items), func() error {
			if len(due.Items) == 0 {
				c.notef("%s has no further due times: it is %s\n", plain(j.fullName()), j.Status)
				return nil
			}
			return r.table(dueTable(due.Items, j.zone(), c.now()))
		})
	}

	return cmd
}

// noteOf returns a note on what is special about a due time.
func noteOf(mark job.Mark, from *time.Time) cell {
	note := string(mark)
	if from != nil {
		note += " from " + from.Format("Mon 2006-01-02")
	}
	return cell{note, yellow}
}

// dueTable lists due times by the viewer's clock. If the job's clock differs, it lists them by that
// clock, too.
func dueTable(due []view.DueTime, zone *time.Location, now time.Time) *table {
	viewer := now.Location()
	abroad := slices.ContainsFunc(due, func(d view.DueTime) bool { return !sameClock(zone, viewer, d.Due) })

	t := &table{columns: []column{{head: "DUE"}, {head: "DAY"}, {head: "IN", right: true}}}
	if abroad {
		t.columns = append(t.columns, column{head: strings.ToUpper(zone.String()), spare: true})
	}

	t.columns = append(t.columns, column{head: "NOTE", shrink: true})

	for _, d := range due {
		row := []cell{
			text(absolute(&d.Due, viewer)), text(d.Due.In(viewer).Format("Mon")), text(relative(&d.Due, now)),
		}
		if abroad {
			row = append(row, text(absolute(&d.Due, zone)))
		}
		t.add(append(row, noteOf(d.Mark, d.MovedFrom))...)
	}

	return t
}
