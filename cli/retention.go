package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

// keepWords describes a rule. For a rule without limits it returns "".
func keepWords(k job.Keep) string {
	var out []string
	if k.Age != 0 {
		out = append(out, "for "+k.Age.String())
	}
	if k.Runs != 0 {
		out = append(out, fmt.Sprintf("the latest %d of each job", k.Runs))
	}
	if k.Bytes != 0 {
		out = append(out, "up to "+k.Bytes.String()+" of output")
	}

	if k.Failures != 0 {
		out = append(out, "unsuccessful runs for at least "+k.Failures.String())
	}
	return strings.Join(out, ", ")
}

// keepOf returns the limits of a rule.
func keepOf(r *view.Retention) job.Keep {
	return job.Keep{Age: r.Age, Runs: r.Runs, Bytes: r.Bytes, Failures: r.Failures}
}

func retentionCommand(c *console) *cobra.Command {
	cmd := newGroup("retention", "Set how long records of runs are kept", retentionList(c),
		retentionSet(c))
	cmd.Long = `Set how long records of runs and their output are kept: by age, number and size, and longer for
unsuccessful runs. Settings of a job (job add --keep-age …) take precedence over the rule of its
app, and that over the rule of the cluster, for each field separately. Without any rule, everything
is kept. A new cluster keeps records for 90 days, and unsuccessful runs for a year.`
	return cmd
}

func retentionList(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the rules, and the progress of the removal", Args: nothing,
		Example: "  go-crontab retention ls",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v, raw, err := get[view.Retentions](cmd.Context(), r, "/api/v1/retention", nil)
		if err != nil {
			return err
		}

		var names []string
		for _, rule := range v.Items {
			names = append(names, orElse(rule.App, "cluster"))
		}

		return r.object(c, raw, strings.Join(names, "\n"), func() error {
			t := &table{
				columns: []column{
					{head: "SCOPE"}, {head: "APP", shrink: true}, {head: "AGE"}, {head: "RUNS", right: true},
					{head: "BYTES", right: true}, {head: "FAILURES"}, {head: "ARCHIVE"},
				},
			}

			for _, rule := range v.Items {
				runs, size, archive := "", "", ""
				if rule.Runs != 0 {
					runs = fmt.Sprint(rule.Runs)
				}
				if rule.Bytes != 0 {
					size = rule.Bytes.String()
				}
				if rule.Archive {
					archive = "yes"
				}
				t.add(text(rule.Scope), text(rule.App), text(lengthOf(rule.Age)), text(runs), text(size),
					text(lengthOf(rule.Failures)), text(archive))
			}

			if err := r.table(t); err != nil {
				return err
			}
			if w := v.Work; w != nil {
				when := "the first round is not finished"
				if w.Ended != nil {
					when = "last round finished " + relative(w.Ended, time.Now())
				}
				c.notef("%d records removed, %d archived; %s\n", w.Removed, w.Archived, when)
				if w.Failures > 0 {
					c.notef("no records are removed: the archive command failed %d times in a row: %s\n", w.Failures,
						plain(w.Error))
				}
			}

			return nil
		})
	}

	return cmd
}

func retentionSet(c *console) *cobra.Command {
	app := ""
	cmd := &cobra.Command{
		Use: "set", Short: "Set the rule of the cluster, or of an app", Args: nothing,
		Long: `Set the rule of the cluster, or of an app with --app. The new rule replaces the earlier one. Without
other flags, the rule is removed. Records that are no longer kept are removed within about ten
minutes.`,
		Example: `  go-crontab retention set --age 90d --failures 365d
  go-crontab retention set --app shop --age 30d --runs 10000`,
	}

	r := newRemote(c, cmd)
	flags := cmd.Flags()
	flags.StringVar(&app, "app", "", "app of the rule (default the whole cluster)")
	flags.String("age", "", "remove records of runs that ended longer ago than this, such as 30d")
	flags.Int64("runs", 0, "keep only this many records of each job, the latest ones")
	flags.String("bytes", "",
		"keep only the latest records of each job with at most this much output, such as 1GiB")
	flags.String("failures", "",
		"keep records of unsuccessful runs at least this long, such as 365d")
	flags.Bool("archive", false,
		"remove a record only after the archive command has it (serve --archive-command)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		path := "/api/v1/cluster/retention"
		if app != "" {
			path = "/api/v1/apps/" + url.PathEscape(app) + "/retention"
		}

		rule := bodyOf(cmd.Flags(), map[string]string{
			"age": "age", "runs": "runs", "bytes": "bytes", "failures": "failures", "archive": "archive",
		})
		v, raw, err := ask[view.Retention](cmd.Context(), r, http.MethodPut, path, nil, rule)
		if err != nil {
			return err
		}

		r.warnOfApps(cmd.Context(), app)
		return r.object(c, raw, orElse(v.App, "cluster"), func() error {
			whose := "the cluster"
			if v.App != "" {
				whose = "app " + plain(v.App)
			}
			c.printf("%s keeps records: %s\n", whose, plain(orElse(keepWords(keepOf(&v)), "no rule")))
			return nil
		})
	}

	return cmd
}
