package cli

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

func runCommand(c *console) *cobra.Command {
	return newGroup("run", "List, show, rerun and kill runs", runList(c), runShow(c), runLogs(c), runRerun(c),
		runKill(c))
}

// runFilter are the flags that select runs.
type runFilter struct {
	app, job, state, outcome, node, from, to string
	n                                        int
}

func (f *runFilter) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.outcome, "outcome", "", "only this outcome: "+strings.Join(job.Outcomes(), ", ")+
		", or unsuccessful (failed, timed_out, killed or lost)")
	complete(cmd, "outcome", cobra.FixedCompletions(append(slices.Clone(job.Outcomes()), "unsuccessful"),
		cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&f.from, "from", "", `only runs due at or after this time, such as "2027-01-31 09:00"`)
	cmd.Flags().StringVar(&f.to, "to", "", "only runs due before this time")
	cmd.Flags().IntVarP(&f.n, "limit", "n", 20, "show at most this many, 0 for all")
}

func (f *runFilter) query(now time.Time) (url.Values, error) {
	if f.n < 0 {
		return nil, usageError("--limit %d: want 0 or more", f.n)
	}

	q := given("app", f.app, "state", f.state, "outcome", f.outcome, "node", f.node)
	return q, setSpan(q, f.from, f.to, now)
}

// given builds query parameters from pairs of names and values. Pairs with an empty value are left
// out.
func given(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// setSpan sets the query parameters of --from and --to, unless they are empty.
func setSpan(q url.Values, from, to string, now time.Time) error {
	for name, value := range map[string]string{"from": from, "to": to} {
		if value == "" {
			continue
		}
		t, err := parseTime(value, now.Location(), now)
		if err != nil {
			return usageError("--%s %w", name, err)
		}
		q.Set(name, t.Format(time.RFC3339Nano))
	}
	return nil
}

func runList(c *console) *cobra.Command {
	var f runFilter
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List runs, newest first", Args: nothing,
		Example: "  go-crontab run ls\n  go-crontab run ls --state running\n  go-crontab run ls --outcome unsuccessful -n 5",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVarP(&f.app, "app", "a", "", "only runs of this app")
	cmd.Flags().StringVarP(&f.job, "job", "j", "", "only runs of this job; it may be deleted")
	cmd.Flags().StringVar(&f.state, "state", "", "only runs in this state: running or ended")
	cmd.Flags().StringVar(&f.node, "node", "", "only runs on this node")
	f.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q, err := f.query(c.now())
		if err != nil {
			return err
		}

		if err := r.onlyJob(cmd.Context(), q, f.job); err != nil {
			return err
		}
		err = r.runs(cmd.Context(), runsPath, q, f.n, true)
		return r.orNoJob(cmd.Context(), err, f.job)
	}

	return cmd
}

func jobHistory(c *console) *cobra.Command {
	var f runFilter
	cmd := &cobra.Command{
		Use: "history JOB", Short: "List the ended runs of a job, also of a deleted one, newest first", Args: wants(1, 1, jobArgument),
		Example:           "  go-crontab job history backup\n  go-crontab job history backup --outcome unsuccessful -n 3",
		ValidArgsFunction: completeJobs(c),
	}

	r := newRemote(c, cmd)
	f.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := f.query(c.now())
		if err != nil {
			return err
		}

		path := "/api/v1/jobs/" + args[0] + "/history"
		if !isJobID(args[0]) {
			path = runsPath
			q.Set("state", "ended")
			if err := r.onlyJob(cmd.Context(), q, args[0]); err != nil {
				return err
			}
		}

		err = r.runs(cmd.Context(), path, q, f.n, false)
		return r.orNoJob(cmd.Context(), err, args[0])
	}

	return cmd
}

const runsPath = "/api/v1/runs"

// onlyJob restricts a list to one job, which may be deleted. If arg is empty, the list stays
// unrestricted.
func (r *remote) onlyJob(ctx context.Context, q url.Values, arg string) error {
	switch {
	case arg == "":
		return nil
	case isJobID(arg):
		// Check the id first: for an id that no job ever had, the list would be empty without an
		// error.
		if _, err := r.call(ctx, http.MethodGet, "/api/v1/jobs/"+arg+"/history", url.Values{"limit": {"1"}},
			nil); err != nil {
			return r.orNoJob(ctx, err, arg)
		}
		q.Set("job_id", arg)
		return nil
	}

	app, name := splitName(arg)
	if app == "" || name == "" {
		return usageError("%q: want %s", arg, jobArgument)
	}
	q.Set("job", app+"/"+name)
	return nil
}

// orNoJob returns the error that the job never existed, if that explains err. Otherwise it returns
// err.
func (r *remote) orNoJob(ctx context.Context, err error, arg string) error {
	if arg != "" && isStatus(err, http.StatusNotFound) {
		return r.noJob(ctx, "job", arg, "job")
	}
	return err
}

// runs prints a list of runs. With named, the list has a column with their jobs.
func (r *remote) runs(ctx context.Context, path string, q url.Values, n int, named bool) error {
	filtered := slices.ContainsFunc(slices.Collect(maps.Keys(q)), func(name string) bool {
		return name != "job" && name != "job_id" && (named || name != "state") // a history has only ended runs
	})
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
	case run.ExitCode != nil && *run.ExitCode != 0 && run.ReasonCode != string(job.ReasonExitCode) &&
		run.ReasonCode != string(job.ReasonNothingToDo):
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
