package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

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
		return r.object(c, raw, run.ID, func() error { return r.card(runCard(&run, c.now())) })
	}

	return cmd
}

const runArgument = "RUN (its id), or JOB for its latest run"

// findRun reads a run by its id, or the latest run of a job. A number may be both the id of a run
// and the id of a job. Then findRun reads the run.
func findRun(ctx context.Context, r *remote, arg string) (run view.Run, raw json.RawMessage, err error) {
	if _, no := job.ParseRunID(arg); no == nil {
		run, raw, err = getRun(ctx, r, arg)
		if !isStatus(err, http.StatusNotFound) {
			return run, raw, err
		}
	}

	j, _, err := findJob(ctx, r, arg)
	if codeOf(err) == exitNotFound {
		err = r.noJob(ctx, "run or job", arg, "run")
	}
	if err != nil {
		return run, nil, err
	}

	latest, _, err := list[view.Run](ctx, r, "/api/v1/runs", url.Values{"job_id": {j.ID}}, 1)
	if err != nil {
		return run, nil, err
	}
	if len(latest) == 0 {
		return run, nil, &exitError{code: exitNotFound, err: fmt.Errorf("%s has not run yet", plain(j.fullName()))}
	}

	return getRun(ctx, r, latest[0].ID)
}

func getRun(ctx context.Context, r *remote, id string) (run view.Run, raw json.RawMessage, err error) {
	return get[view.Run](ctx, r, "/api/v1/runs/"+url.PathEscape(id), nil)
}

func runCard(run *view.Run, now time.Time) card {
	var d card
	d.add("run", run.ID, bold)
	d.add("job", fmt.Sprintf("%s/%s  (id %s)", run.App, run.Job, run.JobID))
	d.add("outcome", ending(run), outcomeColour(ending(run)))
	reason := run.Reason
	if run.ReasonCode != "" {
		reason += "  (" + run.ReasonCode + ")"
	}
	d.add("reason", reason)
	if run.ExitCode != nil {
		d.add("exit code", fmt.Sprint(*run.ExitCode))
	}

	if run.HTTPStatus != 0 {
		d.add("http status", fmt.Sprint(run.HTTPStatus))
	}

	d.add("signal", run.Signal)
	d.add("due", both(&run.Due, now))
	if run.Count > 1 {
		d.add("until", fmt.Sprintf("%s, %d due times", absolute(run.Until, now.Location()), run.Count))
	}
	if run.Started != nil {
		d.add("started", fmt.Sprintf("%s, %s late", absolute(run.Started, now.Location()), late(run)))
	}
	if run.Ended != nil && run.Started != nil {
		d.add("ended", fmt.Sprintf("%s, took %s", absolute(run.Ended, now.Location()), precise(took(run, now))))
	}

	if run.Attempt > 0 {
		d.add("attempt", fmt.Sprint(run.Attempt))
	}

	d.add("node", run.Node)
	d.add("trigger", run.Trigger)
	d.add("params", valuesInFull(run.Params))
	switch {
	case run.OutputRemoved:
		d.add("output",
			fmt.Sprintf("%d bytes, removed because app %s was at its limit of kept output", run.OutputBytes, run.App))
	case run.OutputBytes > 0:
		size := fmt.Sprintf("%d bytes", run.OutputBytes)
		if run.OutputTruncated {
			size += ", without the middle, which was dropped"
		}
		d.add("output", size+"; to see it:  "+program()+" run logs "+run.ID)
	}

	return d
}
