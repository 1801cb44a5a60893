package cli

import (
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

func jobList(c *console) *cobra.Command {
	var app, status, owner, label string
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List jobs", Args: nothing,
		Example: "  go-crontab job ls\n  go-crontab job ls --app ops -o name\n  go-crontab job ls --status error\n  go-crontab job ls --owner ann --label team=data",
	}
	r := newRemote(c, cmd)
	cmd.Flags().StringVarP(&app, "app", "a", "", "only of this app")
	cmd.Flags().StringVar(&status, "status", "", "only these: active, paused, finished, error")
	cmd.Flags().StringVar(&owner, "owner", "", "only of this owner")
	cmd.Flags().StringVarP(&label, "label", "l", "", "only with this label, key=value")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		query := url.Values{}
		for name, value := range map[string]string{"app": app, "state": status, "owner": owner, "label": label} {
			if value != "" {
				query.Set(name, value)
			}
		}
		jobs, raw, err := list[jobView](cmd.Context(), r, "/api/v1/jobs", query, 0)
		if err != nil {
			return err
		}
		return r.list(raw, func(i int) string { return jobs[i].fullName() }, func() error {
			if len(jobs) == 0 && len(query) > 0 {
				c.notef("No such jobs.\n")
				return nil
			}
			if len(jobs) == 0 {
				c.notef("There are no jobs yet. To add one:  %s job add hello --every 10s -- echo hello\n", program())
				return nil
			}
			return r.table(jobTable(jobs, time.Now()))
		})
	}
	return cmd
}

func jobTable(jobs []jobView, now time.Time) *table {
	t := &table{columns: []column{
		{head: "ID", right: true}, {head: "JOB", shrink: true}, {head: "SCHEDULE", shrink: true}, {head: "STATUS"},
		{head: "NEXT"}, {head: "LAST", drop: true}, {head: "COMMAND", shrink: true},
	}}
	for _, j := range jobs {
		t.add(text(j.ID), text(j.fullName()), text(j.when()), cell{j.Status, statusColour(j.Status)},
			text(relative(j.NextDue, now)), text(relative(j.LastDue, now)), text(j.what()))
	}
	return t
}

func statusColour(status string) colour {
	switch status {
	case "active", "ready":
		return green
	case "paused", "draining", "cordoning", "cordoned", "drained", "stopping", "disabled":
		return yellow
	case "error", "silent", "absent", "nowhere":
		return red
	}
	return faint
}
