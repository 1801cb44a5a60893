package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"go-crontab/api/view"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

// jobFilter are the flags that select jobs.
type jobFilter struct{ app, status, owner, group, calendar, label, name string }

func (f *jobFilter) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.app, "app", "a", "", "only jobs of this app")
	choiceVar(cmd.Flags(), &f.status, "status", "", "",
		"only jobs with this status", "active", "paused", "finished", "error")
	complete(cmd, "status",
		cobra.FixedCompletions([]string{"active", "paused", "finished", "error"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&f.owner, "owner", "", "only jobs of this owner")
	cmd.Flags().StringVar(&f.group, "group", "", "only jobs of this group")
	cmd.Flags().StringVar(&f.calendar, "calendar", "", "only jobs that use this calendar")
	cmd.Flags().StringVarP(&f.label, "label", "l", "", "only jobs with this label, key=value")
	cmd.Flags().StringVar(&f.name, "name-contains", "", "only jobs whose name contains this text")
}

func (f *jobFilter) query() url.Values {
	return given("app", f.app, "status", f.status, "owner", f.owner, "group", f.group, "calendar", f.calendar,
		"label", f.label, "name", f.name)
}

// bulk is a command that changes several jobs: the jobs that its arguments name, or the jobs that a
// filter selects.
type bulk struct {
	filter           jobFilter
	ids              []string
	all, dryRun, yes bool
	action           string // in the API, such as "pause"
	done             string // past tense, such as "paused"
}

// flags adds the flags that select jobs. The command's Args must be set before.
func (b *bulk) flags(cmd *cobra.Command) {
	b.filter.flags(cmd)
	cmd.Flags().StringSliceVar(&b.ids, "id", nil, "jobs with these ids, such as 17,23, in one request; may be repeated")
	cmd.Flags().BoolVar(&b.all, "all", false, "all jobs")
	cmd.Flags().BoolVar(&b.dryRun, "dry-run", false, "only list the selected jobs")
	cmd.Flags().BoolVarP(&b.yes, "yes", "y", false,
		"do not ask for confirmation; required with a filter without a terminal")
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "."
	}

	cmd.Long += `

Name jobs one by one, or select them by a filter (--app, --label, --status, --owner, --group,
--calendar, --name-contains), by --all, or by up to 200 ids with --id. A job must match all given
filters. --dry-run lists the selected jobs. A job that cannot be changed is reported and does not
affect the others; the exit code is then 4.`

	named := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		filtered := len(b.filter.query()) > 0 || b.all
		selects := filtered || b.ids != nil
		switch {
		case selects && len(args) > 0:
			return fmt.Errorf("%s: %q names a job, and a filter or --id selects jobs; use one of the two",
				cmd.CommandPath(), args[0])
		case filtered && b.ids != nil:
			return fmt.Errorf("%s: --id and a filter cannot be combined; use one of the two",
				cmd.CommandPath())
		case !selects && b.dryRun:
			return fmt.Errorf("%s: --dry-run needs a filter such as --app, --id or --all",
				cmd.CommandPath())
		case selects:
			return nil
		}

		return named(cmd, args)
	}
}

// bulkView is the result for the selected jobs.
type bulkView struct{ view.Bulk }

// bulkName returns the name of a job as shown to people.
func bulkName(j *view.BulkItem) string {
	if j.Name == "" { // no job has this id
		return j.ID
	}
	return j.App + "/" + j.Name
}

// add adds the response to another request.
func (v *bulkView) add(p *bulkView) {
	v.Changed, v.Unchanged, v.Refused = v.Changed+p.Changed, v.Unchanged+p.Unchanged, v.Refused+p.Refused
	v.Items, v.Next, v.Matched, v.AtLeast = append(v.Items, p.Items...), p.Next, p.Matched, p.AtLeast
}

// selected changes the jobs that the filter matches. It returns false if there is no filter.
func (b *bulk) selected(ctx context.Context, r *remote, body any) (bool, error) {
	query := b.filter.query()
	if b.ids != nil {
		query.Set("ids", strings.Join(b.ids, ","))
	}
	if len(query) == 0 && !b.all {
		return false, nil
	}
	if b.all {
		query.Set("all", "true")
	}

	if _, asks := terminal(r.in); !b.dryRun && !b.yes {
		if !asks {
			return true,
				usageError("cannot ask for confirmation without a terminal; add --yes, or --dry-run to list the jobs")
		}

		would, err := b.try(ctx, r, query, body)
		if err == nil && len(would.Items) == 0 {
			err = r.noApp(ctx, b.filter.app)
		}
		if err != nil || would.Changed == 0 && would.Next == "" {
			return true, b.tell(r, would, err)
		}
		if !r.confirm("This affects %s at %s: %s. Continue?", would.matching(), r.server, would.first(10)) {
			return true, &exitError{code: exitFailed, err: fmt.Errorf("nothing was changed")}
		}
	}

	if b.dryRun {
		would, err := b.try(ctx, r, query, body)
		if err == nil && len(would.Items) == 0 {
			err = r.noApp(ctx, b.filter.app)
		}
		return true, b.tell(r, would, err)
	}

	v := bulkView{view.Bulk{Items: []view.BulkItem{}}}
	for {
		p, _, err := once[bulkView](ctx, r, "/api/v1/bulk/"+b.action, query, body)
		if err != nil && v.Changed > 0 { // the command can be repeated: jobs already changed stay as they are
			err = fmt.Errorf("%w\n  %s before that: %s", err, counted(v.Changed, "job"), b.done)
		}
		if err == nil {
			v.add(&p)
		}
		if err == nil && len(v.Items) == 0 {
			err = r.noApp(ctx, b.filter.app)
		}

		if err != nil || p.Next == "" {
			return true, b.tell(r, v, err)
		}

		query.Set("cursor", p.Next)
	}
}

func (b *bulk) try(ctx context.Context, r *remote, query url.Values, body any) (bulkView, error) {
	v := bulkView{view.Bulk{DryRun: true, Items: []view.BulkItem{}}}
	query.Set("dry_run", "true")
	p, _, err := ask[bulkView](ctx, r, http.MethodPost, "/api/v1/bulk/"+b.action, query, body)
	query.Del("dry_run")
	if err == nil {
		v.add(&p)
	}
	return v, err
}

// matching returns in words how many jobs are selected.
func (v *bulkView) matching() string {
	n := len(v.Items)
	if v.Matched != nil {
		n = *v.Matched
	}

	switch {
	case v.AtLeast:
		return fmt.Sprintf("more than %d jobs", n)
	case n == 1:
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// first lists the first names.
func (v *bulkView) first(most int) string {
	var names []string
	for i := range v.Items[:min(most, len(v.Items))] {
		names = append(names, plain(bulkName(&v.Items[i])))
	}
	if len(v.Items) > most || v.Next != "" {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// tell prints the result, or the preview of a dry run.
func (b *bulk) tell(r *remote, v bulkView, err error) error {
	if err != nil {
		return err
	}
	if r.format == "name" {
		for i := range v.Items {
			if v.Items[i].Result == "changed" {
				r.printf("%s\n", bulkName(&v.Items[i]))
			}
		}
	} else if err := r.object(r.console, v, "", func() error { b.print(r, &v); return nil }); err != nil {
		return err
	}

	if v.Refused > 0 && !v.DryRun {
		return &exitError{code: exitRefused, err: fmt.Errorf("%d of the jobs could not be %s", v.Refused, b.done)}
	}
	return nil
}

func (b *bulk) print(r *remote, v *bulkView) {
	if len(v.Items) == 0 {
		r.notef("No jobs match.\n")
		return
	}
	if v.DryRun {
		t := &table{columns: []column{{head: "JOB", shrink: true}, {head: "WOULD BE"}, {head: "WHY", shrink: true}}}
		for i := range v.Items {
			j := &v.Items[i]
			words := map[job.BulkResult]cell{
				"changed": {b.done, yellow}, "unchanged": {"unchanged", faint}, "refused": {"refused", red},
			}
			t.add(text(bulkName(j)), words[j.Result], text(whyRefused(j)))
		}

		_ = r.table(t)
		if v.Next != "" {
			r.notef("These are the first; the filter matches %s.\n", v.matching())
		}

		r.notef("dry run: nothing was changed; to do it, replace --dry-run by --yes\n")
		return
	}

	for i := range v.Items {
		if j := &v.Items[i]; j.Result == "refused" {
			r.notef("%s could not be %s: %s\n", plain(bulkName(j)), b.done, plain(whyRefused(j)))
		}
	}

	said := fmt.Sprintf("%s %d jobs", b.done, v.Changed)
	if v.Changed == 1 {
		said = b.done + " " + plain(v.only("changed"))
	}
	if v.Unchanged > 0 {
		said += fmt.Sprintf("; %d unchanged", v.Unchanged)
	}

	r.printf("%s\n", said)
}

func (v *bulkView) only(result job.BulkResult) string {
	for i := range v.Items {
		if v.Items[i].Result == result {
			return bulkName(&v.Items[i])
		}
	}
	return ""
}

// whyRefused returns why a job was refused, or "" if it was not.
func whyRefused(j *view.BulkItem) string {
	if j.Why == nil {
		return ""
	}
	return j.Why.Message
}
