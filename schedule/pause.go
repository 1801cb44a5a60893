package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Pause stops all due times of a job until it is resumed, or until the instant that the request gives. Those that
// nobody has begun end skipped if they were claimed or had passed already, and are no due times any more if they lie
// ahead. Of a job that is paused it replaces reason and end, if either is given.
func (e *Editor) Pause(ctx context.Context, id int64, r job.PauseRequest) (job.Job, error) {
	now := e.Session.Now()
	if err := r.Validate(now); err != nil {
		return job.Job{}, err
	}
	line := job.Entry{Action: job.ActionPause, Reason: r.Reason, Became: untilText(r.Until)}
	return e.edit(ctx, id, line, func(tx *sql.Tx, j *sql.JobRow, live []sql.TaskRow) (*plans, error) {
		if !r.Alters(&j.Job) {
			return nil, nil
		}
		return &plans{}, e.pause(ctx, tx, j, live, r, now)
	})
}

// pause pauses a job, which is locked with its live tasks, or has its pause be another one.
func (e *Editor) pause(ctx context.Context, tx *sql.Tx, j *sql.JobRow, live []sql.TaskRow, r job.PauseRequest, now job.Micros) error {
	if !j.Paused && !j.Held {
		j.PausedAt = now
	}
	rests := j.Paused || j.Held
	j.Paused, j.Held, j.PausedBy, j.PauseReason, j.PauseUntil = true, false, job.ActorOf(ctx).Who, r.Reason, r.Until
	j.NextDue = wakeUp(j)
	if rests {
		return nil
	}
	return stop(j, live, j.PauseAt(now).String(), e.Session, now).write(tx)
}

// wakeUp is the cursor of a job that is paused itself: none, or where the planner, which looks so far ahead, meets the
// job when its pause ends.
func wakeUp(j *sql.JobRow) job.Micros {
	if !j.Paused || j.PauseUntil == 0 {
		return 0
	}
	return j.PauseUntil.Add(planWindow)
}

// Resume gives a paused job its due times back. What passed meanwhile is treated by the misfire policy and leaves
// at most one run that counts what was not started. While its app or the cluster is paused, the job goes on without due
// times, and this happens when that ends.
func (e *Editor) Resume(ctx context.Context, id int64) (job.Job, error) {
	now := e.Session.Now()
	return e.edit(ctx, id, job.Entry{Action: job.ActionResume}, func(tx *sql.Tx, j *sql.JobRow, live []sql.TaskRow) (*plans, error) {
		if !j.Paused {
			return nil, nil
		}
		p := &plans{}
		due, err := resumed(j, j.PauseAt(now).Words(), now, now)
		if err != nil {
			return nil, job.Problems{{Field: "schedule", Message: err.Error()}}
		}
		for _, d := range due {
			p.take(d, now, e.Session)
		}
		return p, nil
	})
}

// resumed takes from a job what stopped it, as of an instant, and returns the due times that it comes to: first those
// that passed before it, treated by the misfire policy, of which one run counts those that are not started; then those
// since, as if the job had never been stopped. While a pause in j.Covers lasts, the job is held instead. why is the end
// of the sentence that says how long it was paused.
func resumed(j *sql.JobRow, why string, at, now job.Micros) ([]dueTimes, error) {
	return resumedTo(j, why, at, now, now.Add(planHorizon))
}

// resumedTo is resumed with the due times up to a horizon, which is nearer while other jobs wait for the planner.
func resumedTo(j *sql.JobRow, why string, at, now, horizon job.Micros) ([]dueTimes, error) {
	s, err := compile(j)
	if err != nil {
		return nil, err
	}
	from := j.PausedAt
	j.Paused, j.PausedBy, j.PauseReason, j.PauseUntil, j.Error = false, "", "", 0, ""
	j.Held, j.PausedAt, j.NextDue = false, 0, 0
	after := max(from, j.LastDue)
	if j.Spec.At != nil {
		after = j.LastDue
	}
	first := firstAfter(s, after)
	if first == 0 {
		return nil, nil
	}
	if covered(j.Covers, j.Spec.App, first, now) {
		j.Held, j.PausedAt = true, from
		return nil, nil
	}
	last := min(at, now) - 1 // that passed while it was stopped
	passed := until(j, s, first, now, last, now.Sub(last))
	passed.next = 0
	if passed.missed != nil {
		passed.missed.Outcome = job.Skipped
		passed.missed.Reason = fmt.Sprintf("paused from %s to %s%s", from, last+1, why)
	}
	since := dueTimes{}
	if next := firstAfter(s, max(last, after)); next != 0 {
		since = until(j, s, next, now, horizon, j.Spec.MissedAfter())
	}
	j.NextDue, j.LastDue = since.next, max(j.LastDue, passed.last, since.last)
	return []dueTimes{passed, since}, nil
}

// covered tells whether a job of an app whose first due time is given is to be held, because a pause of its app or of
// the cluster lasts longer than that. One that ends before harms nobody: the due time is planned and starts on time.
func covered(pauses []job.Pause, app string, first, now job.Micros) bool {
	p := job.Longest(pauses, app, now)
	return p != nil && first != 0 && (p.Until == 0 || first < p.Until)
}

// stopping is what becomes of the scheduled tasks of a job that is being stopped.
type stopping struct {
	ahead   []int64 // no due times any more
	begun   []int64 // end skipped,
	runs    []job.Run
	waiting []int64 // and do not wait any more
}

// stop ends the scheduled tasks of a job that nobody has started: those that were claimed or are due end skipped, and
// what is due before one of them, because planning goes on behind them; those that lie further ahead leave nothing. What
// somebody asked for beside the schedule goes on.
func stop(j *sql.JobRow, live []sql.TaskRow, reason string, s Session, now job.Micros) *stopping {
	var out stopping
	last := max(now, j.LastDue) // what was started, and given back, is no less begun
	for _, t := range live {
		if t.Origin == 0 && (t.State == job.Prepare || t.State == job.Executing) {
			last = max(last, t.Due)
		}
	}
	for _, t := range live {
		switch {
		case t.Origin != 0 || t.State == job.Executing:
		case t.State == job.Idle && t.Due > last:
			out.ahead = append(out.ahead, t.ID)
		default:
			out.skip(j, t, reason, s, now)
		}
	}
	return &out
}

// skip ends a task that nobody has started.
func (st *stopping) skip(j *sql.JobRow, t sql.TaskRow, reason string, s Session, now job.Micros) {
	if t.Launch.IsZero() {
		t.Launch = s.Mint()
	}
	run := unstarted(t.Task, job.Skipped, reason, now)
	run.Node, run.App = s.Node(), j.Spec.App
	st.begun, st.runs = append(st.begun, t.ID), append(st.runs, run)
	if t.State == job.Waiting {
		st.waiting = append(st.waiting, t.ID)
	}
	if t.Origin == 0 {
		j.LastDue = max(j.LastDue, t.Due)
	}
}

func (st *stopping) add(other *stopping) {
	st.ahead, st.begun = append(st.ahead, other.ahead...), append(st.begun, other.begun...)
	st.runs, st.waiting = append(st.runs, other.runs...), append(st.waiting, other.waiting...)
}

// write makes the rows say so. Who waited for what ends here is found by the sweeper.
func (st *stopping) write(tx *sql.Tx) error {
	if err := tx.Withdraw(st.ahead); err != nil {
		return err
	}
	if err := tx.End(st.begun, st.runs); err != nil {
		return err
	}
	return tx.DropWaits(st.waiting)
}

// PauseApp stops the due times of all jobs of an app, those that it will get included, or with "" of the whole cluster,
// until somebody resumes it or until the instant that the request gives. One row does it, however many jobs there are:
// starts read it with each job. The planner takes the due times from the jobs as it comes to them. It is answered when
// nothing that had seen no pause can start any more.
//
// Of an app that is paused it replaces reason and end, if either is given.
func (e *Editor) PauseApp(ctx context.Context, app string, r job.PauseRequest) (job.Pause, error) {
	now := e.Session.Now()
	if err := r.Validate(now); err != nil {
		return job.Pause{}, err
	}
	var p job.Pause
	err := e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		was, err := tx.LockPause(app)
		if err != nil && !errors.Is(err, sql.ErrNotFound) {
			return nil, err
		}
		lasts := err == nil && !was.Ended && !was.Over(now)
		if lasts && (r == job.PauseRequest{} || r == job.PauseRequest{Reason: was.Reason, Until: was.Until}) {
			p = was.Pause
			return nil, nil
		}
		var line *job.Entry
		p, line, err = e.beginPause(ctx, tx, was, app, r, now)
		return line, err
	})
	if err != nil {
		return job.Pause{}, err
	}
	return p, e.afterPause(ctx, app)
}

// beginPause begins the pause of an app, or has the one that lasts be another. was is its row, which the caller has locked;
// zero if there is none.
func (e *Editor) beginPause(ctx context.Context, tx *sql.Tx, was sql.PauseRow, app string, r job.PauseRequest, now job.Micros) (job.Pause, *job.Entry, error) {
	p := job.Pause{Scope: job.ScopeApp, App: app, By: job.ActorOf(ctx).Who, Reason: r.Reason, Since: now, Until: r.Until}
	if app == "" {
		p.Scope = job.ScopeCluster
	}
	switch there := was.Scope != ""; {
	case !there || was.Ended:
	case !was.Over(now):
		p.Since = was.Since
	default: // no planner has seen yet that it is over
		if err := audit(tx, overdue(was, e.Session), now); err != nil {
			return p, nil, err
		}
	}
	line := appLine(job.ActionPause, app)
	line.Reason, line.Became = r.Reason, untilText(r.Until)
	return p, line, tx.PutPause(p)
}

// afterPause waits until nothing of an app can start any more whose start did not see the app's pause, which is known
// to be committed. A start reads the clock before it reads the pauses, and nothing is spawned longer than a window after
// that reading: so no lock is needed on the way of each start, only time, and none when nothing is about to start.
//
// What was about to start is looked at until its start has been committed, which says until when it may be spawned, or was
// refused, as any is that reads the pauses now. Should neither happen, because its node hangs, the longest window of any
// node is waited for.
func (e *Editor) afterPause(ctx context.Context, app string) error {
	const ahead time.Duration = maxLead + maxGather + windowMargin
	end := time.Now().Add(longestWindow + windowMargin)
	soon, beyond := e.Session.Now().Add(ahead), ahead
	for {
		onTheirWay, window, by, err := e.DB.MayStart(ctx, app, soon, beyond)
		if err != nil {
			return &sql.Unknown{Err: fmt.Errorf("the change is made; a run that was starting may still begin: %w", err)}
		}
		soon, beyond = by, 0 // what comes near from now on is started by who sees the pause
		left := time.Until(end)
		if onTheirWay == 0 || left <= 0 {
			return e.passed(ctx, window)
		}
		select {
		case <-ctx.Done():
			return &sql.Unknown{Err: fmt.Errorf("the change is made; a run that was starting may still begin: %w", context.Cause(ctx))}
		case <-time.After(min(pauseLook, left)):
		}
	}
}

// ResumeApp ends the pause of an app, or with "" of the cluster. Its jobs get their due times back from planners, which begin
// within a second or so and go on until all have them; and each as if it had been resumed at this instant.
func (e *Editor) ResumeApp(ctx context.Context, app string) error {
	now := e.Session.Now()
	return e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		was, err := tx.LockPause(app)
		if errors.Is(err, sql.ErrNotFound) || err == nil && was.Ended {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		line, at := appLine(job.ActionResume, app), now
		if was.Over(now) {
			line, at = overdue(was, e.Session), was.Until
		}
		_, err = tx.EndPause(app, at)
		return line, err
	})
}

// overdue is the audit's line of a pause that ended by itself.
func overdue(p sql.PauseRow, s Session) *job.Entry {
	line := appLine(job.ActionResume, p.App)
	line.Actor, line.Reason = itself(s), fmt.Sprintf("it was paused until %s", p.Until)
	return line
}

func appLine(action job.Action, app string) *job.Entry {
	if app == "" {
		return &job.Entry{Action: action, Kind: job.KindCluster}
	}
	return &job.Entry{Action: action, Kind: job.KindApp, App: app}
}

// untilText is what the audit says of when a pause ends.
func untilText(until job.Micros) string {
	if until == 0 {
		return ""
	}
	b, _ := json.Marshal(map[string]time.Time{"until": until.Time()}) // cannot fail
	return string(b)
}
