package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"go-crontab/api/view"
	"go-crontab/client"
	"go-crontab/internal/manifest"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

// appliedKind is a list of changed objects of one kind. It has a name in the API, and a name for
// people.
type appliedKind struct {
	field, kind string
	list        []view.AppliedJob // objects other than jobs use only some of the fields
}

// appliedKinds returns the lists of changes in display order.
func appliedKinds(v *view.Apply) []appliedKind {
	kinds := []appliedKind{{field: "groups", kind: "group"}, {field: "calendars", kind: "calendar"},
		{field: "channels", kind: "channel"}, {field: "rules", kind: "rule"},
		{field: "retention", kind: "retention"}, {field: "pauses", kind: "pause"}, {field: "jobs"}}
	for i, list := range [][]view.AppliedObject{
		v.Groups, v.Calendars, v.Channels, v.Rules, v.Retention, v.Pauses,
	} {
		for _, o := range list {
			kinds[i].list = append(kinds[i].list,
				view.AppliedJob{Name: o.Name, Action: o.Action, Changes: o.Changes})
		}
	}

	jobs := &kinds[len(kinds)-1]
	for _, j := range v.Jobs {
		jobs.list = append(jobs.list, *j)
	}
	return kinds
}

// appliedName returns the name of an object for people. kind is "" for jobs.
func appliedName(o *view.AppliedJob, kind string) string {
	switch {
	case kind == "":
		return o.App + "/" + o.Name
	case kind != "retention" && kind != "pause":
		return kind + " " + o.Name
	case o.Name == "":
		return kind + " of the cluster"
	}
	return kind + " of app " + o.Name
}

// applyFlags are the flags of apply, which changes many jobs at once.
type applyFlags struct {
	files  []string
	dryRun bool
	prune  bool
	app    string
	labels []string
	all    bool
	yes    bool
	force  bool
}

func applyCommand(c *console) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use: "apply -f FILE|FOLDER|-", Short: "Apply files with jobs, groups, calendars, alerts and retention",
		Long: `Apply files with jobs, groups, calendars, alerts and retention: everything, or nothing if there is
any error. Applying the same files again changes nothing. A field of a job that its file leaves out
gets its default, except paused, which stays unchanged.

A file is YAML or JSON: one job, a list of jobs, or an object with the lists groups, calendars,
channels, rules, retention, pauses (of apps and of the cluster) and jobs. A folder stands for all
.yaml, .yml and .json files in it and its subfolders.

More than 1,000 jobs are applied in parts, after a dry run of all of them. If that is interrupted,
the earlier parts stay applied; run the same command again to apply the rest.

--prune deletes the jobs of --app, or with all labels of --label, that are in no file. The files may
then have at most 1,000 jobs. Files without any job would delete all of them; this needs
--delete-all.`,
		Example: `  go-crontab apply -f jobs.yaml --dry-run
  go-crontab apply -f jobs/ --prune --app shop
  go-crontab export --app shop | go-crontab apply --server http://other:8610 -f -`,
	}

	r := newRemote(c, cmd)
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "file", "f", nil, "a file, a folder, or - for standard input; may be repeated")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only show the changes")
	flags.BoolVar(&f.prune, "prune", false, "delete the jobs of --app or --label that are in no file")
	flags.StringVarP(&f.app, "app", "a", "", "with --prune: the files define all jobs of this app")
	flags.StringArrayVarP(&f.labels, "label", "l", nil,
		"with --prune: the files define all jobs with this label, key=value; may be repeated")
	flags.BoolVar(&f.all, "delete-all", false, "with --prune: allow files without jobs, which deletes all jobs")
	flags.BoolVar(&f.force, "force", false, "with --prune: delete jobs even if other jobs follow them")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation before jobs are deleted")
	_ = cmd.RegisterFlagCompletionFunc("app", completeApps(c))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		more, err := f.body(args)
		if err != nil {
			return err
		}

		set, err := readManifests(append(f.files, args...), c)
		if err != nil {
			return err
		}

		if err := f.emptyPrune(set); err != nil {
			return err
		}

		parts, err := f.parts(set)
		if err != nil {
			return err
		}

		if f.prune && !f.dryRun && !f.yes {
			if err := f.confirm(cmd.Context(), r, set, more); err != nil {
				return err
			}
		}

		return r.applyParts(cmd.Context(), parts, more)
	}

	return cmd
}

// body checks the flags and returns the fields of the request besides the files.
func (f *applyFlags) body(args []string) (map[string]any, error) {
	more := map[string]any{}
	if f.dryRun {
		more["dry_run"] = true
	}
	if f.force {
		more["force"] = true
	}

	switch {
	case len(f.files)+len(args) == 0:
		return nil, usageError("-f FILE is missing; use -f - for standard input")
	case !f.prune && (f.app != "" || len(f.labels) > 0):
		return nil, usageError("--app and --label need --prune; the app of a job is set in its file")
	case !f.prune:
		return more, nil
	case (f.app == "") == (len(f.labels) == 0):
		return nil, usageError("--prune needs either --app or --label, to say which jobs the files define")
	case f.app != "":
		more["prune"] = map[string]any{"app": f.app}
		return more, nil
	}

	labels, err := parseLabels("--label", f.labels)
	more["prune"] = map[string]any{"labels": labels}
	return more, err
}

// emptyPrune refuses --prune if the files have no jobs. It would delete every job, which is usually
// a mistake.
func (f *applyFlags) emptyPrune(set *manifest.Set) error {
	switch {
	case f.all && !f.prune:
		return usageError("--delete-all needs --prune")
	case !f.prune || f.dryRun || f.all || set.Jobs() > 0:
		return nil
	case f.app != "":
		return usageError("the files have no jobs, so --prune would delete all jobs of app %q; "+
			"to delete them, add --delete-all", f.app)
	}
	return usageError("the files have no jobs, so --prune would delete all jobs with these labels; " +
		"to delete them, add --delete-all")
}

func parseLabels(flag string, list []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, l := range list {
		key, value, ok := strings.Cut(l, "=")
		if !ok || key == "" {
			return nil, usageError("%s %q: want key=value", flag, l)
		}
		if _, twice := labels[key]; twice {
			return nil, usageError("%s %s is given twice", flag, key)
		}
		labels[key] = value
	}
	return labels, nil
}

// readManifests reads files. A mistake in a file ends the program with the same exit code as a
// definition that the server refuses.
func readManifests(paths []string, c *console) (*manifest.Set, error) {
	set, err := manifest.ReadUpTo(manifest.MaxSizeInParts, paths, c.in)
	var (
		faults manifest.Faults
		path   *fs.PathError
	)

	switch {
	case errors.As(err, &faults):
		return nil, &exitError{code: exitRefused, err: errors.New(plainLines(faults.Error()))}
	case errors.Is(err, manifest.ErrNothing), errors.As(err, &path):
		return nil, &exitError{code: exitUsage, err: err}
	case err != nil:
		return nil, &exitError{code: exitRefused, err: err}
	}

	return set, nil
}

// plainLines is like plain, but keeps the lines of a text.
func plainLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = plain(lines[i])
	}
	return strings.Join(lines, "\n")
}

// confirm asks before jobs are deleted, if standard input is a terminal.
func (f *applyFlags) confirm(ctx context.Context, r *remote, set *manifest.Set, more map[string]any) error {
	if _, asks := terminal(r.in); !asks {
		return nil
	}

	dry := map[string]any{"dry_run": true, "prune": more["prune"]}
	would, _, err := r.apply(ctx, set, dry)
	if err != nil {
		return err
	}

	var gone []string
	for _, j := range would.Jobs {
		if j.Action == "deleted" {
			gone = append(gone, plain(appliedName(j, "")))
		}
	}

	if len(gone) == 0 {
		return nil
	}

	const most = 10
	named := strings.Join(gone[:min(len(gone), most)], ", ")
	if len(gone) > most {
		named += fmt.Sprintf(" and %d more", len(gone)-most)
	}
	if !r.confirm("This deletes %s: %s. Continue?", counted(len(gone), "job"), named) {
		return &exitError{code: exitFailed, err: fmt.Errorf("nothing was changed")}
	}

	return nil
}

// apply sends a set. Errors refer to places in the files, not in the request.
func (r *remote) apply(
	ctx context.Context, set *manifest.Set, more map[string]any,
) (view.Apply, json.RawMessage, error) {
	var done view.Apply
	body, err := set.Body(more)
	if err != nil {
		return done, nil, err
	}

	done, raw, err := ask[view.Apply](ctx, r, http.MethodPost, "/api/v1/apply",
		nil, client.Document{Media: "application/json", Data: body})
	var p *apiProblem
	if errors.As(err, &p) {
		p.place(set)
	}
	return done, raw, err
}

// place replaces the request fields in a problem's errors with places in files. It also sorts the
// errors.
func (p *apiProblem) place(set *manifest.Set) {
	for i := range p.Errors {
		e := &p.Errors[i]
		e.at, e.name, _ = set.Find(e.Field)
		if e.at.File != "" {
			if e.Field = e.at.String(); e.name != "" {
				e.Field += ": " + e.name
			}
		}
		e.Message = set.Explain(e.Message)
	}
	slices.SortStableFunc(p.Errors, func(a, b fieldProblem) int {
		return cmp.Or(strings.Compare(a.at.File, b.at.File), cmp.Compare(a.at.Line, b.at.Line),
			cmp.Compare(a.at.Column, b.at.Column))
	})
}

// actionSigns precede the names of changed objects.
var actionSigns = map[job.Applying]struct {
	sign   string
	colour colour
}{"created": {"+", green}, "updated": {"~", yellow}, "deleted": {"-", red}}

// shownOfNew are the fields that are shown for a new job. All other fields are in the file or have
// defaults.
var shownOfNew = []string{
	"schedule", "schedules", "every", "at", "timezone", "command", "http.url", "handler", "slots", "paused", "type",
	"url", "on", "channels", "age", "runs", "bytes", "failures", "archive", "reason", "until",
}

func (r *remote) showChange(o *view.AppliedJob, kind string) {
	paint := painter(colourful(r.out))
	mark := actionSigns[o.Action]
	r.printf("%s %s\n", paint(mark.colour, mark.sign), paint(bold, plain(appliedName(o, kind))))
	for _, f := range o.Changes {
		isNew := o.Action == "created"
		if isNew && !slices.Contains(shownOfNew, f.Field) {
			continue
		}
		r.showField(f, isNew, paint)
	}
}

func (r *remote) showField(f job.Change, isNew bool, paint func(colour, string) string) {
	was, becomes := shownValue(f.Was), shownValue(f.Becomes)
	name := plain(f.Field)
	if !strings.Contains(was, "\n") && !strings.Contains(becomes, "\n") {
		switch {
		case isNew:
			r.printf("    %s: %s\n", name, plain(becomes))
		case f.Was == nil:
			r.printf("    %s: %s\n", name, paint(green, plain(becomes)))
		case f.Becomes == nil:
			r.printf("    %s: %s %s\n", name, paint(red, plain(was)), paint(faint, "removed"))
		default:
			r.printf("    %s: %s → %s\n", name, paint(red, plain(was)), paint(green, plain(becomes)))
		}
		return
	}

	r.printf("    %s:\n", name)
	for _, line := range diffLines(was, becomes) {
		tint := faint
		switch line[0] {
		case '-':
			tint = red
		case '+':
			tint = green
		}
		r.printf("      %s\n", paint(tint, plain(line)))
	}
}

// shownValue formats a JSON value for people: a string without quotes.
func shownValue(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// diffLines shows the differing lines of two texts, with one common line before and after.
func diffLines(was, becomes string) []string {
	split := func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	}

	a, b := split(was), split(becomes)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}

	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}

	var out []string
	if head > 0 {
		out = append(out, "  "+a[head-1])
	}

	for _, l := range a[head : len(a)-tail] {
		out = append(out, "- "+l)
	}

	for _, l := range b[head : len(b)-tail] {
		out = append(out, "+ "+l)
	}

	if tail > 0 {
		out = append(out, "  "+a[len(a)-tail])
	}
	if head == len(a) && head == len(b) {
		out = append(out, "~ only the line break at the end differs")
	}

	return out
}
