package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/client"

	"github.com/spf13/cobra"
)

// versionItem is a version of a job's definition.
type versionItem struct{ view.VersionItem }

// what lists the fields that changed from the previous version.
func (v *versionItem) what() string {
	if v.Error != "" {
		return "cannot be read: " + v.Error
	}
	return strings.Join(v.Changed, ", ")
}

func jobVersions(c *console) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "versions JOB", Short: "List the versions of a job's definition", Args: wants(1, 1, jobArgument),
		Long: `List the versions of a job's definition, newest first. A change of a calendar also makes a new
version of each job that uses it, with the same definition. "job diff" compares two versions, and
"job rollback" restores one.`,
		Example:           "  go-crontab job versions backup\n  go-crontab job versions 17 -o json",
		ValidArgsFunction: completeJobs(c),
	}

	r := newRemote(c, cmd)
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "show at most this many, 0 for all")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if limit < 0 {
			return usageError("--limit %d: want 0 or more", limit)
		}

		path, _, err := jobAt(cmd.Context(), r, args[0])
		if err != nil {
			return err
		}

		items, raw, err := list[versionItem](cmd.Context(), r, path+"/versions", nil, limit)
		if err != nil {
			return err
		}
		return r.list(raw, func(i int) string { return strconv.FormatInt(items[i].Version, 10) }, func() error {
			return r.table(versionTable(items, c.now()))
		})
	}

	return cmd
}

func versionTable(items []versionItem, now time.Time) *table {
	t := &table{
		columns: []column{
			{head: "VERSION", right: true}, {head: "SINCE"}, {head: "BY"}, {head: "CHANGED", shrink: true},
		},
	}

	for i := range items {
		v := &items[i]
		number := cell{text: strconv.FormatInt(v.Version, 10)}
		if v.Current {
			number.colour = green
		}
		t.add(number, text(both(&v.At, now)), text(v.Who), text(v.what()))
	}

	return t
}

// jobAt returns the path of a job and its name for people. An id may belong to a deleted job.
func jobAt(ctx context.Context, r *remote, arg string) (path, name string, err error) {
	if arg != "" && strings.Trim(arg, "0123456789") == "" {
		return "/api/v1/jobs/" + arg, "job " + arg, nil
	}
	j, _, err := findJob(ctx, r, arg)
	return j.path(), j.fullName(), err
}

// versionOf parses a version argument.
func versionOf(arg string) (int64, error) {
	n, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || n < 1 {
		return 0, usageError("VERSION %q: want a number such as 3; to list versions: %s job versions JOB", arg,
			program())
	}
	return n, nil
}

func jobDiff(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "diff JOB [A [B]]", Short: "Compare two versions of a job's definition",
		Args: wants(1, 3, "JOB and at most two versions"),
		Long: `Compare two versions of a job's definition, A and B. With one version, compare it with the current
one. Without versions, show the last change.`,
		Example:           "  go-crontab job diff backup\n  go-crontab job diff backup 3\n  go-crontab job diff backup 3 5",
		ValidArgsFunction: completeVersions(c, 2),
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var versions []int64
		for _, arg := range args[1:] {
			n, err := versionOf(arg)
			if err != nil {
				return err
			}
			versions = append(versions, n)
		}

		path, name, err := jobAt(cmd.Context(), r, args[0])
		if err != nil {
			return err
		}

		if len(versions) < 2 {
			latest, _, err := list[versionItem](cmd.Context(), r, path+"/versions", nil, 2)
			if err != nil {
				return err
			}
			if len(versions) == 0 {
				versions = []int64{latest[len(latest)-1].Version}
			}
			versions = append(versions, latest[0].Version)
		}

		return r.showDiff(cmd.Context(), path, name, versions[0], versions[1])
	}

	return cmd
}

// showDiff prints the changes between two versions.
func (r *remote) showDiff(ctx context.Context, path, name string, a, b int64) error {
	d, raw, err := get[view.Diff](ctx, r, fmt.Sprintf("%s/versions/%d/diff/%d", path, a, b), nil)
	if err != nil {
		return withHint(err, "to list versions:  %s job versions %s", program(), quote(name))
	}

	var names []string
	for _, f := range d.Changes {
		names = append(names, f.Field)
	}

	return r.object(r.console, raw, strings.Join(names, "\n"), func() error {
		if len(d.Changes) == 0 {
			r.notef("%s: versions %d and %d are the same\n", plain(name), b, a)
			return nil
		}
		paint := painter(colourful(r.out))
		r.printf("%s %s\n", paint(bold, plain(name)), paint(faint, fmt.Sprintf("version %d → %d", d.From, d.To)))
		for _, f := range d.Changes {
			r.showField(f, false, paint)
		}
		return nil
	})
}

func jobRollback(c *console) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "rollback JOB VERSION", Short: "Restore an earlier version of a job's definition",
		Args: wants(2, 2, "JOB and VERSION"),
		Long: `Restore an earlier version of a job's definition. This is a change like any other and makes a new
version, which can be rolled back as well. A paused job stays paused. If the job is changed at the
same time, nothing happens.`,
		Example:           "  go-crontab job rollback backup 3 --dry-run\n  go-crontab job rollback backup 3",
		ValidArgsFunction: completeVersions(c, 1),
	}

	r := newRemote(c, cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show the changes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		version, err := versionOf(args[1])
		if err != nil {
			return err
		}

		j, _, err := findJob(cmd.Context(), r, args[0])
		if err != nil {
			return err
		}

		if dryRun {
			return r.showDiff(cmd.Context(), j.path(), j.fullName(), j.Version, version)
		}

		_, raw, err := r.send(cmd.Context(), client.Request{
			Method: http.MethodPost, Path: j.path() + "/rollback", Body: map[string]int64{"version": version},
			Match: fmt.Sprintf("%q", strconv.FormatInt(j.Version, 10)),
		})
		switch {
		case isStatus(err, http.StatusPreconditionFailed):
			return withHint(err, "the job was changed meanwhile; to see the change:  %s job diff %s", program(),
				quote(j.fullName()))
		case err != nil:
			return withHint(err, "to list versions:  %s job versions %s", program(), quote(j.fullName()))
		}

		before := j.Version
		if err := json.Unmarshal(raw, &j); err != nil {
			return err
		}

		return r.object(c, raw, j.fullName(), func() error {
			if j.Version == before {
				c.printf("%s already has the definition of version %d\n", plain(j.fullName()), version)
				return nil
			}
			c.printf("%s has the definition of version %d again, as version %d%s\n", plain(j.fullName()), version,
				j.Version,
				nextDue(&j, c.now()))
			return nil
		})
	}

	return cmd
}

// completeVersions completes the name of a job, and then at most most of its versions.
func completeVersions(c *console, most int) cobra.CompletionFunc {
	jobs := completeJobs(c)
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return jobs(cmd, args, typed)
		}

		r, ok := completing(c, cmd)
		if !ok || len(args) > most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}

		path, _, err := jobAt(cmd.Context(), r, args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}

		items, _, err := list[versionItem](cmd.Context(), r, path+"/versions", nil, maxPage)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}

		var out []cobra.Completion
		for i := range items {
			if n := strconv.FormatInt(items[i].Version, 10); strings.HasPrefix(n, typed) {
				out = append(out, cobra.CompletionWithDesc(n, both(&items[i].At, c.now())+" "+items[i].Who))
			}
		}

		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
