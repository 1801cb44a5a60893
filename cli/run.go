package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

func runCommand(c *console) *cobra.Command {
	return newGroup("run", "List, show and kill runs", runList(c), runShow(c), runLogs(c),
		runKill(c))
}

// runFilter are the flags that select runs.
type runFilter struct {
	app, job, state, outcome, node, from, to string
	n                                        int
}

func (f *runFilter) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.outcome, "outcome", "",
		"only this outcome: succeeded, failed, timed_out, killed, lost, skipped, missed, superseded")
	cmd.Flags().StringVar(&f.from, "from", "", `only runs due at or after this time, such as "2027-01-31 09:00"`)
	cmd.Flags().StringVar(&f.to, "to", "", "only runs due before this time")
	cmd.Flags().IntVarP(&f.n, "count", "n", 20, "show at most this many, 0 for all")
}

func (f *runFilter) query(now time.Time) (url.Values, error) {
	if f.n < 0 {
		return nil, usageError("--count %d: want 0 or more", f.n)
	}

	q := url.Values{}
	for name, value := range map[string]string{"app": f.app, "state": f.state, "outcome": f.outcome, "node": f.node} {
		if value != "" {
			q.Set(name, value)
		}
	}

	for name, value := range map[string]string{"from": f.from, "to": f.to} {
		if value == "" {
			continue
		}
		t, err := parseTime(value, now.Location(), now)
		if err != nil {
			return nil, usageError("--%s %w", name, err)
		}
		q.Set(name, t.Format(time.RFC3339Nano))
	}

	return q, nil
}

func runList(c *console) *cobra.Command {
	var f runFilter
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List runs, newest first", Args: nothing,
		Example: "  go-crontab run ls\n  go-crontab run ls --state running\n  go-crontab run ls --outcome failed -n 5",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVarP(&f.app, "app", "a", "", "only runs of this app")
	cmd.Flags().StringVarP(&f.job, "job", "j", "", "only runs of this job")
	cmd.Flags().StringVar(&f.state, "state", "", "only runs in this state: running or ended")
	cmd.Flags().StringVar(&f.node, "node", "", "only runs on this node")
	f.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q, err := f.query(c.now())
		if err != nil {
			return err
		}

		if f.job != "" {
			j, _, err := findJob(cmd.Context(), r, f.job)
			if err != nil {
				return err
			}
			q.Set("job_id", j.ID)
		}

		return r.runs(cmd.Context(), "/api/v1/runs", q, f.n, true)
	}

	return cmd
}

func jobHistory(c *console) *cobra.Command {
	var f runFilter
	cmd := &cobra.Command{
		Use: "history JOB", Short: "List a job's ended runs, newest first", Args: wants(1, 1, jobArgument),
		Example:           "  go-crontab job history backup\n  go-crontab job history backup --outcome failed -n 3",
		ValidArgsFunction: completeJobs(c),
	}

	r := newRemote(c, cmd)
	f.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := f.query(c.now())
		if err != nil {
			return err
		}
		j, _, err := findJob(cmd.Context(), r, args[0])
		if err != nil {
			return err
		}
		return r.runs(cmd.Context(), j.path()+"/history", q, f.n, false)
	}

	return cmd
}

// runs prints a list of runs; named adds the column with their jobs.
func (r *remote) runs(ctx context.Context, path string, q url.Values, n int, named bool) error {
	filtered := len(q) > 0
	runs, raw, err := list[view.Run](ctx, r, path, q, n)
	if err != nil {
		return err
	}
	return r.list(raw, func(i int) string { return runs[i].ID }, func() error {
		if len(runs) == 0 && filtered {
			r.notef("No runs match.\n")
			return nil
		}
		if len(runs) == 0 {
			r.notef("There are no runs yet.\n")
			return nil
		}
		return r.table(runTable(runs, named, r.now()))
	})
}

func runTable(runs []view.Run, named bool, now time.Time) *table {
	t := &table{columns: []column{
		{head: "DUE"}, {head: "JOB", shrink: true}, {head: "OUTCOME"}, {head: "LATE", right: true, spare: true},
		{head: "TOOK", right: true, spare: true},
		{head: "NODE", shrink: true, spare: true}, {head: "REASON", shrink: true}, {head: "RUN", drop: true},
	}}

	if !named {
		t.columns = append(t.columns[:1], t.columns[2:]...)
	}

	for _, run := range runs {
		lasted := ""
		if run.Started != nil {
			lasted = precise(took(&run, now))
		}
		cells := []cell{
			text(whole(&run.Due, now.Location())), text(run.App + "/" + run.Job),
			{plain(ending(&run)), outcomeColour(ending(&run))}, text(late(&run)), text(lasted),
			text(run.Node), text(reasonOf(&run, now.Location())), {run.ID, faint},
		}
		if !named {
			cells = append(cells[:1], cells[2:]...)
		}
		t.add(cells...)
	}

	return t
}

// reasonOf returns details that the outcome does not show.
func reasonOf(run *view.Run, zone *time.Location) string {
	var parts []string
	if run.Count > 1 {
		parts = append(parts, fmt.Sprintf("%d due times", run.Count))
	}
	if run.Attempt > 1 || run.State == "ended" && !run.Final {
		parts = append(parts, fmt.Sprintf("attempt %d", run.Attempt))
	}

	switch {
	case run.Signal != "":
		parts = append(parts, run.Signal)
	case run.ExitCode != nil && *run.ExitCode != 0 && run.ReasonCode != string(job.ReasonExitCode):
		parts = append(parts, fmt.Sprintf("exit code %d", *run.ExitCode))
	}

	if run.Reason != "" {
		parts = append(parts, run.Reason)
	}
	if run.Trigger != "" && run.Trigger != "schedule" {
		parts = append(parts, run.Trigger)
	}

	if run.Count > 1 {
		parts = append(parts, "until "+whole(run.Until, zone))
	}

	return strings.Join(parts, ", ")
}

func outcomeColour(outcome string) colour {
	switch outcome {
	case "succeeded":
		return green
	case "running":
		return cyan
	case "failed", "timed_out", "lost":
		return red
	case "killed", "missed":
		return yellow
	}
	return faint
}
