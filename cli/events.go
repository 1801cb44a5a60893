package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/sse"

	"github.com/spf13/cobra"
)

// eventView is an event of the cluster.
type eventView struct{ view.Event }

// countsOf describes the counts of started and ended runs.
func countsOf(c *view.RunCounts) string {
	var parts []string
	for _, k := range []struct {
		n    int64
		what string
	}{
		{c.Started, "started"}, {c.Succeeded, "succeeded"}, {c.Failed, "failed"}, {c.TimedOut, "timed_out"},
		{c.Killed, "killed"}, {c.Lost, "lost"}, {c.Skipped, "skipped"}, {c.Missed, "missed"},
		{c.Superseded, "superseded"},
	} {
		if k.n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k.n, k.what))
		}
	}
	return strings.Join(parts, ", ")
}

func eventsCommand(c *console) *cobra.Command {
	var app, job string
	var kinds []string
	absentOK := false
	cmd := &cobra.Command{
		Use: "events", Short: "Print changes in the cluster as they happen", Args: nothing,
		Long: `Print changes in the cluster as they happen, one per line, until Ctrl-C: starts and ends of runs,
and changes of jobs, pauses, nodes and backfills. A token for the whole cluster also sees all other
changes. When many runs change at once, only their number is printed. After a broken connection, the
command reconnects and continues. A line "reload" means that events were missed. -o json prints one
object per line.

--app with an app that has no jobs ends with exit code 3, unless --absent-ok says that its jobs will
be added later.`,
		Example: "  go-crontab events\n  go-crontab events --app shop --kind run,job\n  go-crontab events --kind run -o json",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVarP(&app, "app", "a", "", "only changes of this app and its jobs")
	cmd.Flags().StringVarP(&job, "job", "j", "", "only changes of this job")
	cmd.Flags().StringSliceVar(&kinds, "kind", nil,
		"only this kind: run, job, pause, node, backfill, alert, change; may be repeated")
	absentFlag(cmd, &absentOK, "app")
	complete(cmd, "kind",
		cobra.FixedCompletions([]cobra.Completion{"run", "job", "pause", "node", "backfill", "alert", "change"},
			cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q := url.Values{}
		if app != "" {
			q.Set("app", app)
		}
		if !absentOK {
			if err := r.noApp(cmd.Context(), app); err != nil {
				return withHint(err, "if its jobs will be added later:  --absent-ok")
			}
		}

		if len(kinds) > 0 {
			q.Set("kinds", strings.Join(kinds, ","))
		}
		if job != "" {
			j, _, err := findJob(cmd.Context(), r, job)
			if err != nil {
				return err
			}
			q.Set("job_id", j.ID)
		}

		return r.events(cmd, q)
	}

	return cmd
}

func (r *remote) events(cmd *cobra.Command, q url.Values) error {
	seen := map[string]bool{}
	f := r.follower("/api/v1/events", q)
	closed := false
	f.Broke = func(err error) {
		if !closed {
			r.notef("The connection broke (%v); reconnecting.\n", err)
		}
	}

	f.On = func(m sse.Message) error {
		var e eventView
		if closed = m.Event == "close"; closed {
			_ = json.Unmarshal([]byte(m.Data), &e)
			r.notef("The node closed the stream: %s.\n", visible(e.Reason))
			return nil
		}
		if err := json.Unmarshal([]byte(m.Data), &e); err != nil {
			return fmt.Errorf("cannot read an event of %s: %w", r.server, err)
		}

		if e.ID != "" {
			if seen[e.ID] {
				return nil
			}
			if len(seen) > 10_000 { // repeated events are always recent
				clear(seen)
			}
			seen[e.ID] = true
		}

		return r.event(&e, []byte(m.Data))
	}

	err := f.Run(cmd.Context())
	if errors.Is(err, sse.ErrNoStream) {
		return fmt.Errorf("%s has no stream of events: the node is older than this program", r.server)
	}

	return err
}

// event prints an event.
func (r *remote) event(e *eventView, raw []byte) error {
	switch r.format {
	case "json":
		_, err := r.out.Write(append(visibleJSON(raw), '\n'))
		return err
	case "yaml":
		if _, err := io.WriteString(r.out, "---\n"); err != nil {
			return err
		}
		return writeYAML(r.out, json.RawMessage(raw))
	case "name":
		if e.ID == "" {
			return nil
		}
		_, err := fmt.Fprintln(r.out, visible(e.ID))
		return err
	}

	paint := painter(colourful(r.out))
	_, err := io.WriteString(r.out, e.lines(paint, r.zone()))
	return err
}

// lines formats an event as one line, or as one line for each counted job.
func (e *eventView) lines(paint func(colour, string) string, zone *time.Location) string {
	at := paint(faint, e.At.In(zone).Format(time.DateTime+".000"+zoneOffset))
	line := func(about string, more ...string) string {
		out := at + "  " + plain(e.Kind+" "+e.Action)
		if about != "" {
			out += "  " + plain(about)
		}
		for _, m := range more {
			if m != "" {
				out += "  " + m
			}
		}
		return out + "\n"
	}

	of := e.Name
	switch {
	case e.Job != "":
		of = e.App + "/" + e.Job
	case e.Name == "":
		of = e.App
	}

	switch {
	case e.Kind == "runs":
		out := ""
		for i := range e.Counts {
			out += line(e.Counts[i].App+"/"+e.Counts[i].Job, countsOf(e.Counts[i]))
		}
		if e.Other != nil {
			out += line("other jobs", countsOf(e.Other))
		}
		return out
	case e.Run != nil:
		ending := ending(e.Run)
		more := []string{paint(outcomeColour(ending), ending), plain(e.Run.Reason)}
		if e.Run.Count > 1 {
			more = append(more, fmt.Sprintf("%d due times", e.Run.Count))
		}
		if e.Run.Started != nil {
			more = append(more, late(e.Run)+" late")
		}
		return line(of, append(more, plain(e.Run.Node), e.Run.ID)...)
	case e.Alert != nil:
		return line(of, plain(e.Alert.Rule+": "+string(e.Alert.Event)), plain(e.Alert.Summary), plain(e.Reason))
	case e.Backfill != nil:
		return line(of, fmt.Sprintf("%d of %d due times", e.Backfill.Planned+e.Backfill.LeftOut, e.Backfill.Total))
	}

	by := ""
	if e.Who != "" {
		by = "by " + plain(e.Who)
	}

	return line(of, plain(e.What), by, plain(e.Reason))
}
