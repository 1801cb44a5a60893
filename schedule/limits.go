package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// PutLimits gives an app limits in place of those before.
func (e *Editor) PutLimits(ctx context.Context, app string, l job.AppLimits) error {
	if err := l.Validate(); err != nil {
		return err
	}
	return e.changeLimits(ctx, app, l)
}

// DeleteLimits takes all limits from an app.
func (e *Editor) DeleteLimits(ctx context.Context, app string) error {
	return e.changeLimits(ctx, app, job.AppLimits{})
}

// changeLimits writes limits, none for the zero ones. What an app has beyond a lower limit stays.
func (e *Editor) changeLimits(ctx context.Context, app string, l job.AppLimits) error {
	now := e.Session.Now()
	return e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		was, found, err := tx.HoldLimits(app)
		if err != nil {
			return nil, err
		}
		if err := job.CheckPrecondition(ctx, found, 0); err != nil {
			return nil, err
		}
		if was == l {
			return nil, nil
		}

		line := &job.Entry{Action: job.ActionUpdate, Kind: job.KindLimits, App: app, Became: l.Encode()}
		if found {
			line.Was = was.Encode()
		}
		if l == (job.AppLimits{}) {
			line.Action, line.Became = job.ActionDelete, ""
			return line, tx.DropLimits(app)
		}
		return line, tx.PutLimits(app, l, job.ActorOf(ctx).Who, now)
	})
}

// limitJobs refuses a change that gives apps more jobs than they may have. It comes behind job rows and before groups.
// Changes that count against the same limit wait for each other, and for those of no other app. made says that the
// transaction has inserted the jobs already.
func limitJobs(tx *sql.Tx, adds map[string]int64, made bool) error {
	for _, app := range slices.Sorted(maps.Keys(adds)) {
		if adds[app] <= 0 {
			continue
		}
		limits, _, err := tx.HoldLimits(app)
		if err != nil {
			return err
		}
		if limits.Jobs == 0 {
			continue
		}
		has, err := tx.CountAppJobs(app)
		if err != nil {
			return err
		}
		if made {
			has -= adds[app]
		}
		if err := limits.CheckJobs(app, has, adds[app]); err != nil {
			return err
		}
	}
	return nil
}

// limitMove is limitJobs for a job that an edit may put into another app.
func limitMove(tx *sql.Tx, from, to *job.Spec) error {
	if from.App == to.App {
		return nil
	}
	return limitJobs(tx, map[string]int64{to.App: 1}, false)
}

// admit counts a run that somebody asks for, or refuses it with *job.OverLimit. A run that is admitted counts as started
// at once, so that many who ask in the same second do not all pass; its start does not count again.
func admit(tx *sql.Tx, app string, now job.Micros) error {
	limits, err := limitRun(tx, app, now)
	if err != nil || limits.RunsPerMinute == 0 {
		return err
	}
	return tx.AddAskedRuns(app, job.SecondOf(now), 1)
}

// holdLimits holds the limits of the apps of some jobs, in order, and returns which apps have some.
func holdLimits(tx *sql.Tx, jobs []*sql.JobRow) (map[string]bool, error) {
	apps := map[string]bool{}
	for _, j := range jobs {
		apps[j.Spec.App] = false
	}
	for _, app := range slices.Sorted(maps.Keys(apps)) {
		_, found, err := tx.HoldLimits(app)
		if err != nil {
			return nil, err
		}
		apps[app] = found
	}
	return apps, nil
}

// limitRun refuses a run of an app that is at a limit. It comes behind job rows.
func limitRun(tx *sql.Tx, app string, now job.Micros) (job.AppLimits, error) {
	limits, _, err := tx.HoldLimits(app)
	if err != nil || limits.RunsPerMinute == 0 && limits.Waiting == 0 {
		return limits, err
	}

	var starts job.Starts
	if limits.RunsPerMinute != 0 {
		if starts, err = tx.AppStarts(app, job.FirstOfMinute(now)); err != nil {
			return limits, err
		}
	}
	waiting := int64(0)
	if limits.Waiting != 0 {
		if waiting, err = tx.CountAppWaiting(app, limits.Waiting); err != nil {
			return limits, err
		}
	}
	return limits, limits.CheckRun(app, starts, waiting, now)
}

// refusals tells whoever counts them of a change that a limit refused.
func (e *Editor) refusals(err error) error {
	var over *job.OverLimit
	if e.Limited != nil && errors.As(err, &over) {
		e.Limited(over.Limit)
	}
	return err
}

// allowance is what the limits of one app leave to the starts of one transaction. Nil is any number.
type allowance struct {
	app     string
	limits  job.AppLimits
	started int64 // in the last minute
	waiting int64
}

// judge applies the limits to what would become of a task otherwise: where the app is at a limit, a due time of the
// schedule ends skipped. A retry never does, since its due time has begun. A run that somebody asked for was admitted
// then, and is skipped only where it would have to wait. Backfills are paced by the feeder instead.
func (a *allowance) judge(d decision, now job.Micros) decision {
	if a == nil || d.task.Attempt > 1 {
		return d
	}
	t, l := d.task, &a.limits

	switch {
	case d.verdict == begin && t.Origin == 0 && l.RunsPerMinute != 0 && a.started >= l.RunsPerMinute:
		return limited(t, job.LimitRuns, now, "at most %s a minute (app %s)", numbered(l.RunsPerMinute, "run"), a.app)

	case d.verdict == wait && t.Origin >= 0 && !woken(t) && l.Waiting != 0 && a.waiting >= l.Waiting && queued(&d.wait):
		return limited(t, job.LimitWaiting, now, "at most %s (app %s)", numbered(l.Waiting, "waiting run"), a.app)
	}
	return d
}

// take counts a verdict, so that those behind it in the transaction see it.
func (a *allowance) take(d *decision) {
	if a == nil {
		return
	}
	if counts(d) {
		a.started++
	}
	if d.verdict == wait && queued(&d.wait) && !woken(d.task) {
		a.waiting++
	}
}

// counts reports whether a start counts against the limit of runs a minute. One that somebody asked for has counted then.
func counts(d *decision) bool {
	return d.verdict == begin && (d.task.Origin <= 0 || d.task.Attempt > 1)
}

// queued reports whether a wait is for a run of the job or for a slot of its group. For a node or the end of a pause a
// task waits whatever its app does.
func queued(w *sql.Wait) bool { return w.Kind == sql.WaitJob || w.Kind == sql.WaitGroup }

// limited ends a task because its app is at a limit.
func limited(t job.Task, which job.Limit, now job.Micros, format string, args ...any) decision {
	d := refused(t, job.Skipped, now, job.LimitReason+format, args...)
	d.limit = which
	return d
}

func numbered(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
