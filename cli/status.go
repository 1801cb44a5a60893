package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

// statusView is the state of the cluster on one screen. raw holds the answers of the API that it is
// made from.
type statusView struct {
	stats  view.JobStats
	nodes  []nodeView
	alerts []alertView

	raw struct {
		Stats  json.RawMessage   `json:"jobs"`
		Nodes  []json.RawMessage `json:"nodes"`
		Alerts []json.RawMessage `json:"alerts"`
	}
}

const (
	statusRead   = 200 // most jobs that are read; the API returns no more
	statusJobs   = 20  // failed jobs that are listed
	statusAlerts = 10
	statusReruns = 10 // most failed runs in the command that runs them again
)

func statusCommand(c *console) *cobra.Command {
	var app string
	var last time.Duration
	cmd := &cobra.Command{
		Use: "status", Short: "Show what failed lately, and whether it is over", Args: nothing,
		Long: `Show on one screen what failed in the last day: which jobs, why, on which node, the line of their
output that most likely says what went wrong, and whether they have succeeded since. Also nodes that are not ready, firing alerts,
and the next command to type.`,
		Example: "  go-crontab status\n  go-crontab status --app billing --last 12h\n  go-crontab status -o json",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVarP(&app, "app", "a", "", "only jobs and alerts of this app")
	durationVar(cmd.Flags(), &last, "last", 24*time.Hour, "look this far back, at most 31d")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if last < time.Minute || last > 31*24*time.Hour {
			return usageError("--last: want 1m to 31d")
		}
		v, err := r.status(cmd.Context(), app, last)
		if err != nil {
			return err
		}

		raw, err := json.Marshal(v.raw)
		if err != nil {
			return err
		}
		if r.format == "name" && v.stats.Truncated {
			r.notef("only the %d noisiest jobs are looked at\n", statusRead)
		}
		return r.object(c, raw, strings.Join(v.failing(), "\n"), func() error { return r.tellStatus(v, app, last) })
	}

	return cmd
}

// status reads the parts of the view.
func (r *remote) status(ctx context.Context, app string, last time.Duration) (v *statusView, err error) {
	v = &statusView{}
	query := given("app", app, "window", last.String())
	query.Set("limit", fmt.Sprint(statusRead))
	if v.stats, v.raw.Stats, err = get[view.JobStats](ctx, r, "/api/v1/stats/jobs", query); err != nil {
		return nil, err
	}
	if v.stats.Totals.Jobs == 0 {
		if err := r.noApp(ctx, app); err != nil {
			return nil, err
		}
	}

	nodes, raw, err := all[nodeView](ctx, r, nodesPath)
	if err != nil {
		return nil, err
	}
	v.nodes, v.raw.Nodes = nodes, raw.Items

	alerts, raw, err := listQuietly[alertView](ctx, r, alertsPath, given("app", app, "state", "firing"), statusAlerts)
	v.alerts, v.raw.Alerts = alerts, raw.Items
	return v, err
}

// failed returns the jobs that failed in the window.
func (v *statusView) failed() (out []*view.JobStat) {
	for _, j := range v.stats.Items {
		if j.LastFailure != nil {
			out = append(out, j)
		}
	}
	return out
}

// isFailing reports whether a job has not succeeded since it failed.
func isFailing(j *view.JobStat) bool { return j.Health != nil && j.Health.Code == view.HealthFailing }

// failing returns the names of the jobs that are failing now.
func (v *statusView) failing() (names []string) {
	for _, j := range v.failed() {
		if isFailing(j) {
			names = append(names, j.App+"/"+j.Job)
		}
	}
	return names
}

func (r *remote) tellStatus(v *statusView, app string, last time.Duration) error {
	r.tellNodes(v.nodes)
	r.tellTotals(&v.stats, last)

	failed := v.failed()
	if len(failed) > 0 {
		r.printf("\n")
		if err := r.table(failureTable(failed[:min(len(failed), statusJobs)], r.now())); err != nil {
			return err
		}
		if n := v.stats.Totals.FailedJobs - statusJobs; n > 0 {
			r.printf("and %s more\n", counted(n, "job"))
		}
	}

	if len(v.alerts) > 0 {
		r.printf("\n")
		if err := r.table(firingTable(v.alerts, r.now())); err != nil {
			return err
		}
	}

	r.tellNext(v, failed, app)
	return nil
}

// tellNodes prints how many nodes are ready, and each node that is not ready.
func (r *remote) tellNodes(nodes []nodeView) {
	ready := 0
	for i := range nodes {
		if nodes[i].State == view.NodeReady {
			ready++
		}
	}

	paint := painter(colourful(r.out))
	r.printf("nodes   %s ready\n", counted(ready, "node"))
	for i := range nodes {
		n := &nodes[i]
		if n.State != view.NodeReady {
			text := fmt.Sprintf("%s is %s%s", plain(n.Name), n.State, n.since(r.now()))
			r.printf("        %s\n", paint(statusColour(n.State), text))
		}
	}
}

// since says how long a node has been gone, and how many of its runs were lost.
func (n *nodeView) since(now time.Time) string {
	if n.Gone == nil {
		return ""
	}
	text := " for " + rough(now.Sub(*n.Gone))
	if n.Lost > 0 {
		text += ", " + counted(int(n.Lost), "run") + " lost with it"
	}
	return text
}

func (r *remote) tellTotals(v *view.JobStats, last time.Duration) {
	t := v.Totals
	text := fmt.Sprintf("%s in %s", counted(int(t.Runs), "run"), job.Duration(last))
	if t.Rate != nil {
		text += fmt.Sprintf(", %.4g %% succeeded", *t.Rate*100)
	}

	for _, part := range []struct {
		n    int64
		what string
	}{{t.Failed, "failed"}, {t.Lost, "lost"}, {t.Missed, "missed"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}

	r.printf("runs    %s; %d running now\n", text, t.Running)
	switch {
	case t.FailedJobs == 0:
		r.printf("jobs    none failed\n")
	case t.FailingJobs == 0:
		r.printf("jobs    %d failed, and all have succeeded since\n", t.FailedJobs)
	default:
		r.printf("jobs    %d failed, %d of them not succeeded since\n", t.FailedJobs, t.FailingJobs)
	}
	if v.Cut {
		r.notef("There are too many runs to count: successes are counted since %s, failures since %s.\n",
			absolute(&v.Since, r.zone()), absolute(&v.FailFrom, r.zone()))
	}
}

func failureTable(jobs []*view.JobStat, now time.Time) *table {
	t := &table{columns: []column{
		{head: "JOB", shrink: true}, {head: "NOW"}, {head: "FAILED", right: true}, {head: "LAST FAILURE"},
		{head: "NODE", shrink: true, spare: true}, {head: "WHY", shrink: true}, {head: "OUTPUT", shrink: true},
	}}

	for _, j := range jobs {
		f := j.LastFailure
		why := f.Outcome.String()
		if f.Reason != "" {
			why += ": " + f.Reason
		}
		t.add(text(j.App+"/"+j.Job), nowCell(j, now), text(fmt.Sprint(j.Failed+j.Lost+j.Missed)),
			text(relative(cmp.Or(f.Ended, &f.Due), now)), text(f.Node), text(why), text(f.LastLine))
	}
	return t
}

// nowCell says whether the failure of a job is over.
func nowCell(j *view.JobStat, now time.Time) cell {
	switch {
	case j.Deleted:
		return cell{"deleted", faint}
	case j.Health == nil:
		return cell{}
	case j.LastFailure.Recovered == nil:
		return healthCell(j.Health)
	}

	since := "OK for " + rough(now.Sub(*j.LastFailure.Recovered))
	switch j.Health.Code {
	case view.HealthOK, view.HealthRunning:
		return cell{since, green}
	case view.HealthUnstable:
		return cell{"unstable, " + since, yellow}
	}
	return healthCell(j.Health)
}

func firingTable(alerts []alertView, now time.Time) *table {
	t := &table{columns: []column{
		{head: "ALERT", right: true}, {head: "SINCE"}, {head: "ABOUT", shrink: true}, {head: "SUMMARY", shrink: true},
	}}
	for i := range alerts {
		v := &alerts[i]
		t.add(text(v.ID), text(relative(&v.First, now)), cell{plain(v.about()), v.colour()},
			text(timesIn(v.Summary, now.Location())))
	}
	return t
}

// tellNext prints commands for the next step.
func (r *remote) tellNext(v *statusView, failed []*view.JobStat, app string) {
	var next [][2]string
	add := func(what, format string, args ...any) {
		next = append(next, [2]string{what, program() + " " + fmt.Sprintf(format, args...)})
	}

	only := ""
	if app != "" {
		only = " --app " + quote(app)
	}

	var again []string // failed runs of jobs that are still failing
	for _, j := range failed {
		if !isFailing(j) {
			continue
		}

		f, name := j.LastFailure, quote(j.App+"/"+j.Job)
		missed := f.Outcome == job.Missed
		switch {
		case len(next) > 0:
		case missed:
			add("why "+name+" was missed:", "job explain %s --at %s", name, quote(absolute(&f.Due, r.zone())))
		default:
			add("output of "+name+":", "run logs %s", f.RunID)
		}
		if !missed && len(again) < statusReruns {
			again = append(again, f.RunID)
		}
	}

	if len(again) > 0 {
		add("what could run again:", "run rerun %s --dry-run", strings.Join(again, " "))
	}
	for i := range v.nodes {
		if v.nodes[i].State == view.NodeGone && v.nodes[i].Lost > 0 {
			add("what was lost:", "run ls --outcome lost --node %s", quote(v.nodes[i].Name))
			break
		}
	}
	if len(v.alerts) > 0 {
		add("all alerts:", "alert ls --state firing%s", only)
	}

	if len(next) > 0 {
		r.notef("\n")
	}
	width := 0
	for _, n := range next {
		width = max(width, len(n[0]))
	}
	for _, n := range next {
		r.notef("%-*s %s\n", width, n[0], n[1])
	}
}

// state shows the health of a job. A node of an earlier version sends no health; then it shows the
// status.
func (j *jobView) state() cell {
	if j.Health == nil {
		return cell{plain(string(j.Status)), statusColour(j.Status)}
	}
	return healthCell(j.Health)
}

// healthCell shows a health.
func healthCell(h *view.Health) cell {
	c := cell{text: plain(strings.ToLower(h.Text[:1]) + h.Text[1:])}
	switch h.Code {
	case view.HealthBroken, view.HealthFailing:
		c.colour = red
	case view.HealthLate, view.HealthWaiting, view.HealthPaused, view.HealthUnstable:
		c.colour = yellow
	case view.HealthOK:
		c = cell{"ok", green}
	case view.HealthRunning:
		c.colour = cyan
	default:
		c.colour = faint
	}
	return c
}
