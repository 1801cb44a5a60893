package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

// backfillView is a backfill: a range of past due times to run now.
type backfillView struct{ view.Backfill }

// job returns the name of the job. A node of an earlier version sends no name; then job returns the
// id.
func (b *backfillView) job() string {
	if b.Job == "" {
		return b.JobID
	}
	return b.App + "/" + b.Job
}

const backfillsPath = "/api/v1/backfills"

func backfillCommand(c *console) *cobra.Command {
	return newGroup("backfill", "Run past due times of a job", backfillStart(c), backfillList(c), backfillShow(c),
		backfillCancel(c))
}

func backfillStart(c *console) *cobra.Command {
	var from, to string
	var parallel int
	var missing bool
	var w waitFlags
	var params paramFlags
	cmd := &cobra.Command{
		Use: "start JOB --from TIME [--to TIME]", Short: "Run the past due times of a job in a range",
		Args: wants(1, 1, jobArgument),
		Long: `Run the past due times of a job in a range, both ends included, whether or not they ran before. Each
run gets its due time in GOCRONTAB_DUE. Unless the job allows overlap, its runs go one after the
other and take turns with scheduled runs.`,
		Example: `  go-crontab backfill start report --from 2027-01-01T00:00:00Z --to 2027-01-31T23:59:59Z --parallel 4
  go-crontab backfill start report --from "2027-01-01 00:00" --to -1h --missing --wait`,
		ValidArgsFunction: completeJobs(c),
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVar(&from, "from", "",
		`the first due time: 2027-01-31T09:00:00+01:00, "2027-01-31 09:00" or -24h`)
	cmd.Flags().StringVar(&to, "to", "", "the last due time, written like --from (default now)")
	cmd.Flags().IntVarP(&parallel, "parallel", "p", 1, "run this many at once")
	cmd.Flags().BoolVar(&missing, "missing", false, "skip due times that have a successful run")
	params.flags(c, cmd)
	w.flags(cmd, "wait until the backfill ends; exit with 1 unless all runs succeeded")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := w.check(); err != nil {
			return err
		}
		if from == "" {
			return usageError(`--from is missing: give the first due time, such as --from "2027-01-31 09:00" or --from -24h`)
		}

		ctx, now := cmd.Context(), c.now()
		first, err := parseTime(from, c.zone(), now)
		if err != nil {
			return usageError("--from %w", err)
		}

		body := map[string]any{"from": first, "parallel": parallel, "missing": missing}
		if to != "" { // default: the cluster's time, because this clock may be ahead
			last, err := parseTime(to, c.zone(), now)
			if err != nil {
				return usageError("--to %w", err)
			}
			body["to"] = last
		}

		ctx, cancel := w.bounded(ctx)
		defer cancel()
		j, _, err := findJob(ctx, r, args[0])
		if err != nil {
			return w.gaveUp(ctx, err, "nothing was started", "")
		}

		if err := params.put(&j, body); err != nil {
			return err
		}
		b, raw, err := once[backfillView](ctx, r, j.path()+"/backfill", nil, body)
		if err != nil {
			return w.gaveUp(ctx, err, "it is unknown whether the backfill was started", fmt.Sprintf(
				"to see it:  %s backfill ls %s", program(), quote(j.fullName())))
		}

		if w.wait {
			id := b.ID
			if b, raw, err = r.awaitBackfill(ctx, b, raw); err != nil {
				return w.gaveUp(ctx, err, "backfill "+id+" has not ended", fmt.Sprintf(
					"it goes on; to see it:  %s backfill show %s", program(), id))
			}
		}
		if err := r.object(c, raw, b.ID, func() error {
			c.printf("backfill %s of %s: %s\n", b.ID, plain(j.fullName()), b.progress())
			if !w.wait {
				c.notef("to follow it:  %[1]s backfill show %[2]s\nto cancel it:  %[1]s backfill cancel %[2]s\n",
					program(),
					b.ID)
			}
			return nil
		}); err != nil {
			return err
		}

		if w.wait && (b.State != "done" || b.Outcomes["succeeded"] != b.Ended) {
			return fmt.Errorf("backfill %s: not all runs succeeded", b.ID)
		}

		return nil
	}

	return cmd
}

// progress describes the progress in words.
func (b *backfillView) progress() string {
	words := fmt.Sprintf("%s, %d of %d due times have ended", b.health(), b.Ended, b.Total-b.LeftOut)
	if b.LeftOut > 0 {
		words += fmt.Sprintf(", %d had already succeeded", b.LeftOut)
	}

	var parts []string
	for _, o := range slices.Sorted(maps.Keys(b.Outcomes)) {
		parts = append(parts, fmt.Sprintf("%d %s", b.Outcomes[o], o))
	}

	if parts != nil {
		words += " (" + strings.Join(parts, ", ") + ")"
	}
	return words
}

// health returns the health in words. A node of an earlier version sends no health; then it returns
// the state.
func (b *backfillView) health() string {
	if b.Health == "" || b.Health == view.BackfillUnknown {
		return b.State
	}
	return string(b.Health)
}

// awaitBackfill polls a backfill until it has ended.
func (r *remote) awaitBackfill(
	ctx context.Context, b backfillView, raw json.RawMessage,
) (backfillView, json.RawMessage, error) {
	var p patience

	// The pause grows, because each request makes the server count all ended runs.
	for pause := 500 * time.Millisecond; b.State == "running"; pause = min(5*time.Second, pause+pause/10) {
		select {
		case <-ctx.Done():
			return b, nil, context.Cause(ctx)
		case <-time.After(pause):
		}
		now, answer, err := get[backfillView](ctx, r, backfillsPath+"/"+b.ID, nil)
		if !p.lasts(err) {
			return b, nil, err
		}
		if err == nil {
			b, raw = now, answer
		}
	}

	return b, raw, nil
}

func backfillList(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls [JOB]", Short: "List backfills, newest first", Args: wants(0, 1, jobArgument),
		Example:           "  go-crontab backfill ls",
		ValidArgsFunction: completeJobs(c),
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		query := url.Values{}
		if len(args) > 0 {
			j, _, err := findJob(cmd.Context(), r, args[0])
			if err != nil {
				return err
			}
			query.Set("job_id", j.ID)
		}

		found, raw, err := list[backfillView](cmd.Context(), r, backfillsPath, query, 100)
		if err != nil {
			return err
		}

		return r.list(raw, func(i int) string { return found[i].ID }, func() error {
			if len(found) == 0 {
				c.notef("There are no backfills.\n")
				return nil
			}

			return r.table(backfillTable(found, c.now()))
		})
	}

	return cmd
}

func backfillTable(backfills []backfillView, now time.Time) *table {
	t := &table{columns: []column{
		{head: "ID", right: true}, {head: "JOB", shrink: true}, {head: "FROM"}, {head: "TO", spare: true},
		{head: "PARALLEL", right: true, spare: true}, {head: "STARTED", spare: true}, {head: "PROGRESS", shrink: true},
	}}

	for _, b := range backfills {
		t.add(text(b.ID), text(b.job()), text(whole(&b.From, now.Location())), text(whole(&b.To, now.Location())),
			text(fmt.Sprint(b.Parallel)), text(relative(&b.Created, now)), text(b.progress()))
	}
	return t
}

func backfillShow(c *console) *cobra.Command {
	return backfillOne(c, "show", "Show the progress of a backfill", http.MethodGet, "")
}

func backfillCancel(c *console) *cobra.Command {
	return backfillOne(c, "cancel",
		"Cancel a backfill; runs that execute go on to their end", http.MethodPost, "/cancel")
}

func backfillOne(c *console, verb, short, method, path string) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " ID", Short: short, Args: wants(1, 1, "ID (of the backfill)"),
		Example: "  go-crontab backfill " + verb + " 17",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		b, raw, err := ask[backfillView](cmd.Context(), r, method, backfillsPath+"/"+url.PathEscape(args[0])+path, nil,
			nil)
		if err != nil {
			return err
		}
		return r.object(c, raw, b.ID, func() error {
			c.printf("backfill %s of %s, %s to %s: %s\n", b.ID, plain(b.job()), whole(&b.From, c.zone()),
				whole(&b.To, c.zone()), b.progress())
			return nil
		})
	}

	return cmd
}
