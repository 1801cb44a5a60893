package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func runCommand(c *console) *cobra.Command {
	return newGroup("run", "Look at what ran and what is running", runList(c), runShow(c), runLogs(c))
}

// runFilter are the flags that pick runs.
type runFilter struct {
	app, job, state, outcome, node, from, to string
	n                                        int
}

func (f *runFilter) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.outcome, "outcome", "", "only these: succeeded, failed, timed_out, killed, lost, skipped, missed")
	cmd.Flags().StringVar(&f.from, "from", "", `only due at or after, such as "2027-01-31 09:00"`)
	cmd.Flags().StringVar(&f.to, "to", "", "only due before")
	cmd.Flags().IntVarP(&f.n, "count", "n", 20, "at most so many, 0 is all")
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
		t, err := parseTime(value, time.Local, now)
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
		Use: "ls", Aliases: []string{"list"}, Short: "List runs, the latest first", Args: nothing,
		Example: "  go-crontab run ls\n  go-crontab run ls --state running\n  go-crontab run ls --outcome failed -n 5",
	}
	r := newRemote(c, cmd)
	cmd.Flags().StringVarP(&f.app, "app", "a", "", "only of this app")
	cmd.Flags().StringVarP(&f.job, "job", "j", "", "only of this job")
	cmd.Flags().StringVar(&f.state, "state", "", "only running, or only ended")
	cmd.Flags().StringVar(&f.node, "node", "", "only on this node")
	f.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q, err := f.query(time.Now())
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
		Use: "history JOB", Short: "List a job's ended runs, the latest first", Args: wants(1, 1, jobArgument),
		Example:           "  go-crontab job history backup\n  go-crontab job history backup --outcome failed -n 3",
		ValidArgsFunction: completeJobs(c),
	}
	r := newRemote(c, cmd)
	f.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := f.query(time.Now())
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

// runs lists runs; of several jobs when named.
func (r *remote) runs(ctx context.Context, path string, q url.Values, n int, named bool) error {
	runs, raw, err := list[runView](ctx, r, path, q, n)
	if err != nil {
		return err
	}
	return r.list(raw, func(i int) string { return runs[i].ID }, func() error {
		if len(runs) == 0 {
			r.notef("No runs yet.\n")
			return nil
		}
		return r.table(runTable(runs, named, time.Now()))
	})
}

func runTable(runs []runView, named bool, now time.Time) *table {
	t := &table{columns: []column{
		{head: "DUE"}, {head: "JOB", shrink: true}, {head: "OUTCOME"}, {head: "LATE", right: true}, {head: "TOOK", right: true},
		{head: "NODE", shrink: true}, {head: "REASON", shrink: true}, {head: "RUN", drop: true},
	}}
	if !named {
		t.columns = append(t.columns[:1], t.columns[2:]...)
	}
	for _, run := range runs {
		took := ""
		if run.Started != nil {
			took = precise(run.took(now))
		}
		cells := []cell{
			text(dueOf(&run)), text(run.App + "/" + run.Job), {plain(run.ending()), outcomeColour(run.ending())}, text(run.late()), text(took),
			text(run.Node), text(reasonOf(&run)), {run.ID, faint},
		}
		if !named {
			cells = append(cells[:1], cells[2:]...)
		}
		t.add(cells...)
	}
	return t
}

// dueOf is the due time on this machine's clock. One without a second's fraction is the rule.
func dueOf(run *runView) string {
	if run.Due == nil {
		return ""
	}
	return run.Due.Local().Format("2006-01-02 15:04:05")
}

// reasonOf says what the outcome does not.
func reasonOf(run *runView) string {
	var parts []string
	if run.Count > 1 {
		parts = append(parts, fmt.Sprintf("%d due times", run.Count))
	}
	switch {
	case run.Signal != "":
		parts = append(parts, run.Signal)
	case run.ExitCode != nil && *run.ExitCode != 0:
		parts = append(parts, fmt.Sprintf("exit code %d", *run.ExitCode))
	}
	if run.Reason != "" {
		parts = append(parts, run.Reason)
	}
	if run.Trigger != "" && run.Trigger != "schedule" {
		parts = append(parts, run.Trigger)
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

func runShow(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show RUN", Short: "Show everything about a run", Args: wants(1, 1, runArgument),
		Example: "  go-crontab run show $(go-crontab run ls --outcome failed -n 1 -o name)",
	}
	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		run, raw, err := findRun(cmd.Context(), r, args[0])
		if err != nil {
			return err
		}
		return r.object(c, raw, run.ID, func() error { return r.card(runCard(&run, time.Now())) })
	}
	return cmd
}

const runArgument = "one RUN (its id), or a JOB for its latest run"

// runID is "<session>-<counter>"; anything else names a job.
var runID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}-[0-9]+$`)

// findRun reads a run by its id, or the latest one of a job.
func findRun(ctx context.Context, r *remote, arg string) (run runView, raw json.RawMessage, err error) {
	id := arg
	if !runID.MatchString(arg) {
		j, _, err := findJob(ctx, r, arg)
		if err != nil {
			return run, nil, err
		}
		latest, _, err := list[runView](ctx, r, "/api/v1/runs", url.Values{"job_id": {j.ID}}, 1)
		if err != nil {
			return run, nil, err
		}
		if len(latest) == 0 {
			return run, nil, &exitError{code: exitNotFound, err: fmt.Errorf("%s has not run yet", plain(j.fullName()))}
		}
		id = latest[0].ID
	}
	return get[runView](ctx, r, "/api/v1/runs/"+url.PathEscape(id), nil)
}

func runCard(run *runView, now time.Time) card {
	var d card
	d.add("run", run.ID, bold)
	d.add("job", fmt.Sprintf("%s/%s  (id %s)", run.App, run.Job, run.JobID))
	d.add("outcome", run.ending(), outcomeColour(run.ending()))
	d.add("reason", run.Reason)
	if run.ExitCode != nil {
		d.add("exit code", fmt.Sprint(*run.ExitCode))
	}
	d.add("signal", run.Signal)
	d.add("due", both(run.Due, time.Local, now))
	if run.Count > 1 {
		d.add("until", fmt.Sprintf("%s, %d due times", absolute(run.Until, time.Local), run.Count))
	}
	if run.Started != nil {
		d.add("started", fmt.Sprintf("%s, %s late", absolute(run.Started, time.Local), run.late()))
	}
	if run.Ended != nil && run.Started != nil {
		d.add("ended", fmt.Sprintf("%s, took %s", absolute(run.Ended, time.Local), precise(run.took(now))))
	}
	if run.Attempt > 0 {
		d.add("attempt", fmt.Sprint(run.Attempt))
	}
	d.add("node", run.Node)
	d.add("trigger", run.Trigger)
	if run.OutputBytes > 0 {
		size := fmt.Sprintf("%d bytes", run.OutputBytes)
		if run.OutputTruncated {
			size += ", the middle was dropped"
		}
		d.add("output", size+"; to see it: "+program()+" run logs "+run.ID)
	}
	return d
}

func runLogs(c *console) *cobra.Command {
	raw := false
	cmd := &cobra.Command{
		Use: "logs RUN", Short: "Print what was kept of a run's output", Args: wants(1, 1, runArgument),
		Example:           "  go-crontab run logs backup\n  go-crontab run logs backup --raw > output",
		ValidArgsFunction: completeJobs(c),
	}
	r := newRemote(c, cmd, "table")
	_ = cmd.Flags().MarkHidden("output") // it is printed as it was written
	cmd.Flags().BoolVar(&raw, "raw", false, "every byte as it was kept, without a note where the middle was dropped")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		run, _, err := findRun(cmd.Context(), r, args[0])
		if err != nil {
			return err
		}
		return r.printOutput(cmd.Context(), &run, raw)
	}
	return cmd
}

// printOutput prints a run's output.
func (r *remote) printOutput(ctx context.Context, run *runView, raw bool) error {
	q := url.Values{}
	if raw {
		q.Set("raw", "1")
	}
	b, err := r.call(ctx, http.MethodGet, "/api/v1/runs/"+url.PathEscape(run.ID)+"/output", q, nil)
	if err != nil {
		return err
	}
	_, err = r.out.Write(b)
	return err
}
