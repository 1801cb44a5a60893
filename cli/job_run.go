package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

func jobRun(c *console) *cobra.Command {
	var w waitFlags
	var params paramFlags
	many := bulk{action: "run", done: "started"}
	cmd := &cobra.Command{
		Use: "run JOB", Short: "Run a job now, in addition to its schedule", Args: wants(1, 1, jobArgument),
		Long: `Run a job now, in addition to its schedule. With --wait, print the output of the run when it has
ended, and exit with 1 unless it succeeded. --wait-timeout ends the wait, not the run.`,
		Example:           "  go-crontab job run backup\n  go-crontab job run backup --wait\n  go-crontab job run report --param day=2026-11-01\n  go-crontab job run --app ops --status active --dry-run",
		ValidArgsFunction: completeJobs(c),
	}

	r := newRemote(c, cmd)
	w.flags(cmd, "wait until the run has ended, and print its output")
	params.flags(c, cmd)
	many.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if err := w.check(); err != nil {
			return err
		}
		if w.wait && len(args) == 0 {
			return usageError("--wait needs one JOB, not a selection of jobs")
		}
		if len(params.given) > 0 && len(args) == 0 {
			return usageError("--param needs one JOB, not a selection of jobs")
		}
		if is, err := many.selected(ctx, r, struct{}{}); is {
			return err
		}

		bounded, cancel := w.bounded(ctx)
		defer cancel()
		j, _, err := findJob(bounded, r, args[0])
		if err != nil {
			return w.gaveUp(bounded, err, "nothing was started", "")
		}

		body := map[string]any{}
		if err := params.put(&j, body); err != nil {
			return err
		}

		asked, raw, err := once[view.Requested](bounded, r, j.path()+"/run", nil, body)
		if err != nil {
			return w.gaveUp(bounded, err, "it is unknown whether "+plain(j.fullName())+" was started", fmt.Sprintf(
				"to see it:  %s run ls --job %s", program(), quote(j.fullName())))
		}

		if !w.wait {
			return r.object(c, raw, j.fullName(), func() error {
				c.printf("%s runs now; to see the outcome:  %s job history %s\n", plain(j.fullName()), program(),
					quote(j.fullName()))
				return nil
			})
		}

		return r.awaitRun(ctx, bounded, &j, asked, &w)
	}

	return cmd
}

// awaitRun waits until a run ends or bounded ends. It prints the output and the outcome of the run.
func (r *remote) awaitRun(ctx, bounded context.Context, j *jobView, asked view.Requested, w *waitFlags) error {
	run, raw, err := r.await(bounded, asked)
	if err != nil {
		return w.gaveUp(bounded, err, plain(j.fullName())+" has not ended", fmt.Sprintf(
			"the run goes on; to see it:  %s run ls --job %s", program(), quote(j.fullName())))
	}

	if err := r.object(r.console, raw, run.ID, func() error { return r.printOutput(ctx, &run, false) }); err != nil {
		return err
	}
	if !run.Succeeded() {
		err := fmt.Errorf("%s %s", plain(j.fullName()), run.Outcome)
		if reason := reasonOf(&run, r.zone()); reason != "" {
			err = fmt.Errorf("%w: %s", err, plain(reason))
		}
		return err
	}

	r.notef("%s succeeded in %s on %s\n", plain(j.fullName()), precise(took(&run, time.Now())), plain(run.Node))
	return nil
}

// await polls until the final run of a request has ended. If the node cannot answer, await asks
// again, because the run continues without it.
func (r *remote) await(ctx context.Context, asked view.Requested) (run view.Run, raw json.RawMessage, err error) {
	var p patience
	for pause := 100 * time.Millisecond; ; pause = min(pause*3/2, 2*time.Second) {
		run, raw, err = r.ended(ctx, asked)
		if err == nil && raw != nil {
			return run, raw, nil
		}
		if !p.lasts(err) {
			return run, nil, err
		}
		select {
		case <-ctx.Done():
			return run, nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// ended finds the final run of a request. raw is nil while the run has not ended.
func (r *remote) ended(ctx context.Context, asked view.Requested) (run view.Run, raw json.RawMessage, err error) {
	q := url.Values{
		"job_id": {asked.JobID}, "from": {asked.Due.Format(time.RFC3339Nano)},
		"to": {asked.Due.Add(time.Microsecond).Format(time.RFC3339Nano)}, "state": {"ended"},
	}

	runs, _, err := list[view.Run](ctx, r, "/api/v1/runs", q, 0)
	for _, run := range runs {
		if run.Final && run.Request == asked.Request {
			return get[view.Run](ctx, r, "/api/v1/runs/"+url.PathEscape(run.ID), nil)
		}
	}
	return view.Run{}, nil, err
}
