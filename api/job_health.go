package api

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/sql/read"
)

// withLastRuns is the value of withParam.
const withLastRuns = "last_runs"

const (
	// judgedRuns is the number of latest runs that show whether a job is failing.
	judgedRuns = 4
	// streakRuns is the number of runs that are read to count failures, if no run of the first read
	// succeeded.
	streakRuns = 50
	// listedRuns is the number of latest runs of a job that a list shows. The list judges the job's
	// health by these runs.
	listedRuns = 12
	// lateAfter is how long after a due time its job counts as late. A job that something holds up
	// is not late.
	lateAfter = 10 * time.Second
)

// streak describes the latest final runs of a job. Skipped, superseded and killed runs are left
// out.
type streak struct {
	last     *read.RecentRun // the latest run that counts; nil if no run counts
	failures int             // due times in a row that went wrong
	first    job.Micros      // the earliest of these due times
	ended    bool            // a success precedes these failures, so no earlier run can add to them
}

// streakOf judges runs, the latest due first.
func streakOf(runs []read.RecentRun) (s streak) {
	for i := range runs {
		r := &runs[i]
		if r.Executing || !r.Final || r.Outcome != job.Succeeded && !r.Outcome.Wrong() {
			continue
		}

		if s.last == nil {
			s.last = r
		}
		if r.Outcome == job.Succeeded {
			s.ended = true
			return s
		}

		if r.Due != s.first { // a due time with several runs counts once
			s.failures, s.first = s.failures+int(r.Count), r.Due
		}
	}

	return s
}

// unstable counts the latest due times that ran (of). It also counts how many of these due times
// failed, timed out or were lost in their last run (failed).
func unstable(runs []read.RecentRun) (failed, of int) {
	due := job.Micros(0)
	for i := range runs {
		r := &runs[i]
		wrong := r.Outcome.Wrong() && r.Outcome != job.Missed
		if r.Executing || !r.Final || r.Outcome != job.Succeeded && !wrong || r.Due == due {
			continue
		}

		due, of = r.Due, of+1
		if wrong {
			failed++
		}
		if of == listedRuns {
			break
		}
	}

	return failed, of
}

// recentOf reads the latest n runs of each job in some apps, or in all apps if apps is nil. If a
// job has no success among these runs, it reads up to streakRuns runs of this job.
func recentOf(ctx context.Context, db *read.DB, ids []int64, n int, apps []string) (map[int64]*read.Recent, error) {
	recent, err := db.RecentRuns(ctx, ids, n, apps)
	if err != nil {
		return nil, err
	}

	var deeper []int64
	for _, id := range ids {
		if r := recent[id]; r != nil && r.More && !streakOf(r.Runs).ended {
			deeper = append(deeper, id)
		}
	}

	more, err := db.RecentRuns(ctx, deeper, streakRuns, apps)
	for id, r := range more {
		recent[id] = r
	}
	return recent, err
}

// healthOf judges a job by its view and its recent runs.
func healthOf(v *view.Job, recent *read.Recent, now job.Micros) *view.Health {
	if recent == nil { // the job has just been deleted
		recent = &read.Recent{}
	}

	st := streakOf(recent.Runs)
	h := &view.Health{}
	if st.last != nil {
		h.Outcome, h.RunID = st.last.Outcome.String(), job.RunID(st.last.ID)
	}

	failed, of := unstable(recent.Runs)
	executing := recent.Executing
	for i := range recent.Runs {
		if r := &recent.Runs[i]; r.Executing && executing == 0 {
			executing = r.Started
		}
	}

	switch {
	case v.Error != "":
		h.Code, h.Text = view.HealthBroken, "Broken"
	case st.failures > 0:
		h.Code, h.Failures, h.Since = view.HealthFailing, st.failures, instant(st.first)
		h.AtLeast = recent.More && !st.ended
		h.Text = "Failing (" + strconv.Itoa(st.failures) + "×)"
		if h.AtLeast {
			h.Text = "Failing (at least " + strconv.Itoa(st.failures) + "×)"
		}
	case len(v.Waiting) > 0:
		h.Code, h.Text, h.Since = view.HealthWaiting, "Waiting", &v.Waiting[0].Due
	case v.NextDue != nil && job.MicrosOf(*v.NextDue).Add(lateAfter) < now:
		h.Code, h.Text, h.Since = view.HealthLate, "Late", v.NextDue
	case v.Pause != nil:
		paused(h, v.Pause)
	case failed > 0:
		h.Code, h.Failed, h.Of = view.HealthUnstable, failed, of
		h.Text = fmt.Sprintf("Unstable (%d of %d failed)", failed, of)
	case executing != 0:
		h.Code, h.Text, h.Since = view.HealthRunning, "Running", instant(executing)
	case st.last != nil || slices.ContainsFunc(recent.Runs, nothingToDo):
		h.Code, h.Text = view.HealthOK, "OK"
	default:
		h.Code, h.Text = view.HealthNever, "Has not run"
	}

	return h
}

// nothingToDo reports whether a run began and found nothing to do.
func nothingToDo(r read.RecentRun) bool { return r.Outcome == job.Skipped && r.Started > 0 }

// paused fills in the health of a paused job.
func paused(h *view.Health, p *view.Pause) {
	h.Code, h.Scope, h.By, h.Since = view.HealthPaused, p.Scope, p.By, &p.Since
	h.Text = "Paused"
	switch p.Scope {
	case job.ScopeApp:
		h.Text += " with its app"
	case job.ScopeCluster:
		h.Text += " with the cluster"
	}
	if p.By != "" {
		h.Text = fmt.Sprintf("%s by %s", h.Text, p.By)
	}
}

// viewLastRuns shows the latest runs of a job.
func viewLastRuns(recent *read.Recent) []view.LastRun {
	if recent == nil {
		return nil
	}

	var out []view.LastRun
	for _, r := range recent.Runs[:min(len(recent.Runs), listedRuns)] {
		v := view.LastRun{
			ID: job.RunID(r.ID), Due: r.Due.Time(), Started: instant(r.Started), Ended: instant(r.Ended), State: ended,
			Outcome: r.Outcome, Attempt: r.Attempt, Final: r.Final, Trigger: string(r.Kind),
		}
		if r.Executing {
			v.State = running
		}
		if r.Count > 1 {
			v.Count = r.Count
		}
		out = append(out, v)
	}

	return out
}
