package cli

import (
	"fmt"
	"net/url"
	"time"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

// upcomingView is a due time of any job.
type upcomingView struct{ view.UpcomingDue }

func (u *upcomingView) job() string { return u.App + "/" + u.Job }

func upcomingCommand(c *console) *cobra.Command {
	var app, label, from, to string
	n := 0
	cmd := &cobra.Command{
		Use: "upcoming", Short: "List the next due times of all jobs", Args: nothing,
		Long: `List the next due times of all active jobs, earliest first. --from and --to accept a time, or a
distance from now such as +10m.`,
		Example: "  go-crontab upcoming\n  go-crontab upcoming --to +1h\n  go-crontab upcoming --app billing --from 2027-03-28 --to 2027-03-29 -n 0",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVarP(&app, "app", "a", "", "only jobs of this app")
	cmd.Flags().StringVarP(&label, "label", "l", "", "only jobs with this label, such as team=data")
	cmd.Flags().StringVar(&from, "from", "", "list due times at or after this time (default now)")
	cmd.Flags().StringVar(&to, "to", "", "list due times before this time (default 7 days after --from)")
	cmd.Flags().IntVarP(&n, "limit", "n", 20, "show at most this many, 0 for all")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		now := c.now()
		f := runFilter{app: app, from: from, to: to, n: n}
		q, err := f.query(now)
		if err != nil {
			return err
		}

		if label != "" {
			q.Set("label", label)
		}
		if !q.Has("to") { // the same for all pages
			begin := now
			if t, err := time.Parse(time.RFC3339Nano, q.Get("from")); err == nil {
				begin = t
			}
			q.Set("to", begin.Add(7*24*time.Hour).Format(time.RFC3339Nano))
		}

		dues, raw, err := list[upcomingView](cmd.Context(), r, "/api/v1/upcoming", q, n)
		if err != nil {
			return err
		}

		return r.list(raw, func(i int) string { return dues[i].job() }, func() error {
			if len(dues) == 0 {
				c.notef("No due times%s.\n", spanOf(q, now))
				return nil
			}
			return r.table(upcomingTable(dues, now))
		})
	}

	return cmd
}

func spanOf(q url.Values, now time.Time) string {
	t, err := time.Parse(time.RFC3339Nano, q.Get("to"))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" before %s", absolute(&t, now.Location()))
}

func upcomingTable(dues []upcomingView, now time.Time) *table {
	t := &table{
		columns: []column{
			{head: "DUE"}, {head: "IN", right: true}, {head: "JOB", shrink: true},
			{head: "ID", right: true, drop: true}, {head: "NOTE", shrink: true},
		},
	}

	for _, d := range dues {
		t.add(text(absolute(&d.Due, now.Location())), text(relative(&d.Due, now)), text(d.job()),
			text(d.JobID), noteOf(d.Mark, d.MovedFrom))
	}
	return t
}
