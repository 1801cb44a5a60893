package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// keepView says which records are kept.
type keepView struct {
	Age      string `json:"age,omitempty"`
	Runs     int64  `json:"runs,omitempty"`
	Bytes    string `json:"bytes,omitempty"`
	Failures string `json:"failures,omitempty"`
}

// String returns "" for a rule without limits.
func (k keepView) String() string {
	var out []string
	if k.Age != "" {
		out = append(out, "for "+k.Age)
	}
	if k.Runs != 0 {
		out = append(out, fmt.Sprintf("the latest %d of each job", k.Runs))
	}
	if k.Bytes != "" {
		out = append(out, "up to "+k.Bytes+" of output")
	}

	if k.Failures != "" {
		out = append(out, "unsuccessful runs for at least "+k.Failures)
	}
	return strings.Join(out, ", ")
}

type retentionRule struct {
	Scope string `json:"scope,omitempty"`
	App   string `json:"app,omitempty"`
	keepView
	Archive bool `json:"archive,omitempty"`
}

type retentionRules struct {
	Items []retentionRule `json:"items"`
	Work  *struct {
		Ended    *time.Time `json:"ended"`
		Removed  int64      `json:"removed"`
		Archived int64      `json:"archived"`
		Failures int64      `json:"failures"`
		Error    string     `json:"error"`
	} `json:"work"`
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
		v, raw, err := get[retentionRules](cmd.Context(), r, "/api/v1/retention", nil)
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
				runs, archive := "", ""
				if rule.Runs != 0 {
					runs = fmt.Sprint(rule.Runs)
				}
				if rule.Archive {
					archive = "yes"
				}
				t.add(text(rule.Scope), text(rule.App), text(rule.Age), text(runs), text(rule.Bytes),
					text(rule.Failures), text(archive))
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
	var (
		rule retentionRule
		app  string
	)

	cmd := &cobra.Command{
		Use: "set", Short: "Set the rule of the cluster, or of an app", Args: nothing,
		Long: `Set the rule of the cluster, or of an app with --app. The new rule replaces the earlier one. Without
other flags, the rule is removed. Records that are no longer kept are removed within about ten
minutes.`,
		Example: `  go-crontab retention set --age 2160h --failures 8760h
  go-crontab retention set --app shop --age 720h --runs 10000`,
	}

	r := newRemote(c, cmd)
	flags := cmd.Flags()
	flags.StringVar(&app, "app", "", "app of the rule (default the whole cluster)")
	flags.StringVar(&rule.Age, "age", "", "remove records of runs that ended longer ago than this, such as 720h")
	flags.Int64Var(&rule.Runs, "runs", 0, "keep only this many records of each job, the latest ones")
	flags.StringVar(&rule.Bytes, "bytes", "",
		"keep only the latest records of each job with at most this much output, such as 1GiB")
	flags.StringVar(&rule.Failures, "failures", "",
		"keep records of unsuccessful runs at least this long, such as 8760h")
	flags.BoolVar(&rule.Archive, "archive", false,
		"remove a record only after the archive command has it (serve --archive-command)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		path := "/api/v1/cluster/retention"
		if app != "" {
			path = "/api/v1/apps/" + url.PathEscape(app) + "/retention"
		}

		v, raw, err := ask[retentionRule](cmd.Context(), r, http.MethodPut, path, nil, rule)
		if err != nil {
			return err
		}

		r.warnOfApps(cmd.Context(), app)
		return r.object(c, raw, orElse(v.App, "cluster"), func() error {
			whose := "the cluster"
			if v.App != "" {
				whose = "app " + plain(v.App)
			}
			c.printf("%s keeps records: %s\n", whose, plain(orElse(v.keepView.String(), "no rule")))
			return nil
		})
	}

	return cmd
}
