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

// keepWords describes a rule; "" for one without limits.
func keepWords(k job.Keep) string {
	var out []string
	if k.Age != 0 {
		out = append(out, "for "+k.Age.String())
	}
	if k.Runs != 0 {
		out = append(out, fmt.Sprintf("the latest %d", k.Runs))
	}
	if k.Bytes != 0 {
		out = append(out, "up to "+k.Bytes.String()+" of output")
	}

	if k.Failures != 0 {
		out = append(out, "what did not succeed for at least "+k.Failures.String())
	}
	return strings.Join(out, ", ")
}

// keepOf returns the limits of a rule.
func keepOf(r *view.Retention) job.Keep {
	return job.Keep{Age: r.Age, Runs: r.Runs, Bytes: r.Bytes, Failures: r.Failures}
}

func retentionCommand(c *console) *cobra.Command {
	cmd := newGroup("retention", "Say which records of runs are kept, and for how long", retentionList(c),
		retentionSet(c))
	cmd.Long = `Say which records of runs are kept, with their output: by age, by number, by bytes, and longer what did not succeed. What a
job says itself (job add --keep-age …) counts more than the rule of its app, and that more than the rule of the cluster, each
field by itself. Where nobody says anything, all is kept; a new cluster keeps 90 days, and a year of what did not succeed.`
	return cmd
}

func retentionList(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the rules, and how the removal stands", Args: nothing,
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
					archive = "first"
				}
				t.add(text(rule.Scope), text(rule.App), text(lengthOf(rule.Age)), text(runs), text(size),
					text(lengthOf(rule.Failures)), text(archive))
			}

			if err := r.table(t); err != nil {
				return err
			}
			if w := v.Work; w != nil {
				when := "not yet through with all jobs"
				if w.Ended != nil {
					when = "all jobs looked at " + relative(w.Ended, time.Now())
				}
				c.notef("%d records removed, %d archived; %s\n", w.Removed, w.Archived, when)
				if w.Failures > 0 {
					c.notef("records stay: the archive command has failed %d times in a row: %s\n", w.Failures,
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
		Long: `Set the rule of the cluster, or with --app that of an app. It takes the place of the one before; without any flag there is
none any more. What is kept no longer goes within some ten minutes.`,
		Example: `  go-crontab retention set --age 2160h --failures 8760h
  go-crontab retention set --app shop --age 720h --runs 10000`,
	}

	r := newRemote(c, cmd)
	flags := cmd.Flags()
	flags.StringVar(&app, "app", "", "the app (default the whole cluster)")
	flags.String("age", "", "records that ended longer ago go")
	flags.Int64("runs", 0, "of each job only so many of the latest stay")
	flags.String("bytes", "",
		"of each job only the latest stay whose output comes to no more, such as 1GiB")
	flags.String("failures", "", "what did not succeed stays at least so long")
	flags.Bool("archive", false,
		"nothing goes before an archive command has it (serve --archive-command)")
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
			c.printf("%s keeps records %s\n", whose, plain(orElse(keepWords(keepOf(&v)), "as nobody says otherwise")))
			return nil
		})
	}

	return cmd
}
