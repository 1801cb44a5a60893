package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

// rerunFlags select the runs of run rerun.
type rerunFlags struct {
	app, job, node, outcome, from, to string
	dryRun, yes                       bool
}

func runRerun(c *console) *cobra.Command {
	var f rerunFlags
	cmd := &cobra.Command{
		Use: "rerun [RUN…]", Short: "Run failed due times again",
		Long: `Run the due times of failed runs again: of the given runs (their ids, or jobs for their latest
runs), or with --from of all runs that failed, timed out or were lost since then. A due time whose
last run succeeded or has not ended does not run again. --dry-run lists the runs.`,
		Example: "  go-crontab run rerun --from -24h --app billing --dry-run\n" +
			"  go-crontab run rerun --from \"2027-01-31 02:00\" --job backup --yes\n  go-crontab run rerun 274877906951",
		ValidArgsFunction: completeJobs(c),
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVarP(&f.app, "app", "a", "", "only runs of this app")
	cmd.Flags().StringVarP(&f.job, "job", "j", "", "only runs of this job")
	cmd.Flags().StringVar(&f.node, "node", "", "only runs on this node")
	cmd.Flags().StringVar(&f.outcome, "outcome", "",
		"only runs with this outcome: failed, timed_out, lost, killed, or unsuccessful for all four")
	cmd.Flags().StringVar(&f.from, "from", "", `only due times from here on: "2027-01-31 09:00" or -24h`)
	cmd.Flags().StringVar(&f.to, "to", "", "only due times before this one, written like --from")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only list the runs")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation; required without a terminal")
	complete(cmd, "outcome", cobra.FixedCompletions([]cobra.Completion{"failed", "timed_out", "lost", "killed", "unsuccessful"},
		cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		query, err := r.rerunQuery(cmd.Context(), &f, args)
		if err != nil {
			return err
		}
		return r.rerun(cmd.Context(), query, &f)
	}

	return cmd
}

func (r *remote) rerunQuery(ctx context.Context, f *rerunFlags, runs []string) (url.Values, error) {
	filtered := cmp.Or(f.app, f.job, f.node, f.outcome, f.from, f.to) != ""
	switch {
	case len(runs) > 0 && filtered:
		return nil, usageError("a run and a filter cannot be combined; use one of the two")
	case len(runs) > 0:
		return r.namedRuns(ctx, runs)
	case f.from == "":
		return nil, usageError(`--from is missing: give a time such as --from -24h, or the ids of runs`)
	}

	q := given("app", f.app, "node", f.node, "outcome", f.outcome)
	if err := setSpan(q, f.from, f.to, r.now()); err != nil {
		return nil, err
	}

	if f.job != "" {
		j, _, err := findJob(ctx, r, f.job)
		if err != nil {
			return nil, err
		}
		q.Set("job_id", j.ID)
	}
	return q, nil
}

// namedRuns selects runs by names. A name is the id of a run, or a job, which means its latest run.
func (r *remote) namedRuns(ctx context.Context, names []string) (url.Values, error) {
	var ids []string
	for _, name := range names {
		run, _, err := findRun(ctx, r, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, run.ID)
	}
	return url.Values{"ids": {strings.Join(ids, ",")}}, nil
}

const rerunPath = "/api/v1/bulk/rerun"

// rerun asks for confirmation. Then it runs the selected due times again, page by page.
func (r *remote) rerun(ctx context.Context, query url.Values, f *rerunFlags) error {
	if _, asks := terminal(r.in); !asks && !f.dryRun && !f.yes {
		return usageError("cannot ask for confirmation without a terminal; add --yes, or --dry-run to list the runs")
	}

	var v view.Rerun
	if f.dryRun || !f.yes {
		would, err := r.rerunPages(ctx, query, true)
		if err != nil || f.dryRun || would.Started == 0 {
			return r.tellRerun(would, err)
		}
		if !r.confirm("This runs %s again. Continue?", counted(would.Started, "due time")) {
			return &exitError{code: exitFailed, err: fmt.Errorf("nothing was started")}
		}
	}

	v, err := r.rerunPages(ctx, query, false)
	if err != nil && v.Started > 0 { // due times with unended runs do not match again
		err = fmt.Errorf("%w\n  %s before that run again", err, counted(v.Started, "due time"))
	}
	return r.tellRerun(v, err)
}

func (r *remote) rerunPages(ctx context.Context, query url.Values, dry bool) (all view.Rerun, err error) {
	all = view.Rerun{DryRun: dry, Items: []view.RerunItem{}}
	if dry {
		query.Set("dry_run", "true")
		defer query.Del("dry_run")
	}
	defer query.Del("cursor")

	for {
		p, _, err := once[view.Rerun](ctx, r, rerunPath, query, nil)
		if err != nil {
			return all, err
		}
		all.Started, all.Refused = all.Started+p.Started, all.Refused+p.Refused
		all.Items, all.Request = append(all.Items, p.Items...), cmp.Or(all.Request, p.Request)
		if p.Next == "" && len(all.Items) == 0 {
			return all, r.refuseUnknown(ctx, query)
		}
		if p.Next == "" {
			return all, nil
		}
		query.Set("cursor", p.Next)
	}
}

func (r *remote) tellRerun(v view.Rerun, err error) error {
	if err != nil {
		return err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}

	var ids []string
	for i := range v.Items {
		ids = append(ids, v.Items[i].RunID)
	}
	err = r.object(r.console, raw, strings.Join(ids, "\n"), func() error {
		if len(v.Items) == 0 {
			r.notef("No failed runs match.\n")
			return nil
		}
		return r.table(rerunTable(&v, r.zone()))
	})
	if err == nil && v.Refused > 0 && !v.DryRun {
		err = &exitError{code: exitRefused, err: fmt.Errorf("%s cannot run again", counted(v.Refused, "run"))}
	}
	return err
}

func rerunTable(v *view.Rerun, zone *time.Location) *table {
	t := &table{columns: []column{
		{head: "JOB", shrink: true}, {head: "DUE"}, {head: "WAS"}, {head: "RESULT", shrink: true}, {head: "RUN", drop: true},
	}}
	for i := range v.Items {
		item, name := &v.Items[i], ""
		if item.Name != "" {
			name = item.App + "/" + item.Name
		}
		result := cell{"runs again", green}
		switch {
		case item.Why != nil:
			result = cell{plain(item.Why.Message), red}
		case v.DryRun:
			result = text("would run again")
		}
		was := cell{}
		if item.Outcome != 0 {
			was = cell{item.Outcome.String(), outcomeColour(item.Outcome.String())}
		}
		t.add(text(name), text(whole(item.Due, zone)), was, result, cell{plain(item.RunID), faint})
	}
	return t
}
