package cli

import (
	"time"

	"github.com/spf13/cobra"
)

func jobList(c *console) *cobra.Command {
	var filter jobFilter
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List jobs", Args: nothing,
		Example: "  go-crontab job ls\n  go-crontab job ls --app ops -o name\n  go-crontab job ls --status error\n  go-crontab job ls --owner ann --label team=data",
	}

	r := newRemote(c, cmd)
	filter.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		query := filter.query()
		jobs, raw, err := list[jobView](cmd.Context(), r, "/api/v1/jobs", query, 0)
		if err != nil {
			return err
		}
		return r.list(raw, func(i int) string { return jobs[i].fullName() }, func() error {
			if len(jobs) == 0 && len(query) > 0 {
				c.notef("No jobs match.\n")
				return nil
			}
			if len(jobs) == 0 {
				c.notef("There are no jobs yet. To add one:  %s job add hello --every 10s -- echo hello\n", program())
				return nil
			}
			return r.table(jobTable(jobs, c.now()))
		})
	}

	return cmd
}

func jobTable(jobs []jobView, now time.Time) *table {
	t := &table{columns: []column{
		{head: "ID", right: true, spare: true}, {head: "JOB", shrink: true}, {head: "SCHEDULE", shrink: true},
		{head: "HEALTH"},
		{head: "NEXT"}, {head: "LAST", drop: true}, {head: "COMMAND", shrink: true, spare: true},
	}}
	for _, j := range jobs {
		t.add(text(j.ID), text(j.fullName()), text(j.when(now.Location())),
			j.state(), text(relative(j.NextDue, now)), text(relative(j.LastDue, now)), text(j.what()))
	}
	return t
}

func statusColour[S ~string](status S) colour {
	switch status {
	case "active", "ready":
		return green
	case "paused", "draining", "cordoning", "cordoned", "drained", "stopping", "disabled":
		return yellow
	case "error", "silent", "absent", "gone", "nowhere":
		return red
	}
	return faint
}
