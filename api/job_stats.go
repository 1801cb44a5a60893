package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/sql/read"
)

// Limits of one answer of job statistics.
const (
	minWindow     = time.Minute
	maxWindow     = 31 * 24 * time.Hour
	defaultWindow = 24 * time.Hour
	windowRuns    = 50_000
	windowFailed  = 20_000
	statsRunning  = 1000 // executing runs that are counted
	withLastLines = 50   // jobs whose failed output is read
)

// jobStats: GET /api/v1/stats/jobs
func (s *Server) jobStats(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	span, limit := q.window(statsWindow, defaultWindow), int(q.number(statsLimit))
	win := read.Window{App: q.text(ofAppParam), Apps: auth.Of(r.Context()).Sees()}
	if err := q.err(); err != nil {
		return err
	}

	now, err := s.now()
	if err != nil {
		return err
	}
	win.To = job.MicrosOf(now)
	win.From = win.To.Add(-span)

	// The answer depends only on these values, so callers share it.
	question := fmt.Sprintf("%q %q %t %s %d", win.App, win.Apps, win.Apps == nil, span, limit)
	v, err := s.fared.of(question).get(r.Context(), func(ctx context.Context) (*view.JobStats, error) {
		return s.statsOf(ctx, win, limit)
	})
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, v)
}

func (s *Server) statsOf(ctx context.Context, win read.Window, limit int) (*view.JobStats, error) {
	win.Most = windowRuns
	runs, since, err := s.cfg.DB.RunsOfWindow(ctx, win)
	if err != nil {
		return nil, err
	}

	win.Most = windowFailed
	failures, failedSince, err := s.cfg.DB.FailuresOfWindow(ctx, win)
	if err != nil {
		return nil, err
	}

	v := &view.JobStats{
		Now: win.To.Time(), From: win.From.Time(), Since: since.Time(), FailFrom: failedSince.Time(),
		Cut: since > win.From || failedSince > win.From, Items: []*view.JobStat{},
	}
	if v.Totals.Running, err = s.cfg.DB.CountExecuting(ctx, win.App, win.Apps, statsRunning); err != nil {
		return nil, err
	}

	tallies := tallyJobs(runs, failures, &v.Totals)
	v.Truncated = len(tallies) > limit
	v.Items, err = s.viewTallies(ctx, tallies[:min(len(tallies), limit)])
	return v, err
}

// tally adds up the runs of one job.
type tally struct {
	view.JobStat
	id      int64
	counted int64 // succeeded and wrong runs that addRun has counted, for the rate
	took    []job.Micros
	failure *read.Fared // the latest run that went wrong; nil if none did
	success *read.Fared // the earliest run that succeeded after failure
}

// tallyJobs adds up the runs of each job and the totals. The noisiest job comes first.
func tallyJobs(runs, failures []read.Fared, totals *view.JobStatsTotals) []*tally {
	byJob := map[int64]*tally{}
	of := func(id int64) *tally {
		if byJob[id] == nil {
			byJob[id] = &tally{id: id}
		}
		return byJob[id]
	}

	for i := range failures {
		of(failures[i].JobID).addFailure(&failures[i])
	}
	for i := range runs {
		of(runs[i].JobID).addRun(&runs[i])
	}

	var counted int64
	out := make([]*tally, 0, len(byJob))
	for _, t := range byJob {
		out = append(out, t)
		counted += t.counted
		t.finish()
		t.addTo(totals)
	}
	totals.Rate = rateOf(totals.Succeeded, counted)

	slices.SortFunc(out, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(b.wrong(), a.wrong()), cmp.Compare(b.Runs, a.Runs), cmp.Compare(a.id, b.id))
	})
	return out
}

func (t *tally) wrong() int64 { return t.Failed + t.Lost + t.Missed }

// addFailure counts a final run that went wrong.
func (t *tally) addFailure(f *read.Fared) {
	switch f.Outcome {
	case job.Lost:
		t.Lost += f.Count
	case job.Missed:
		t.Missed += f.Count
	default:
		t.Failed += f.Count
	}
	if t.failure == nil || f.After(t.failure) {
		t.failure = f
	}
}

// addRun counts a run of any outcome. addFailure has already counted the run if it went wrong, so
// addRun does not count it as failed, lost or missed again.
func (t *tally) addRun(f *read.Fared) {
	if f.Took > 0 && (f.Outcome == job.Succeeded || f.Outcome == job.Failed) {
		t.took = append(t.took, f.Took)
	}
	if !f.Final {
		return
	}

	switch {
	case f.Outcome == job.Succeeded:
		t.Succeeded++
		t.counted++
		if t.failure != nil && f.After(t.failure) && (t.success == nil || t.success.After(f)) {
			t.success = f
		}
	case f.Outcome == job.Killed:
		t.Killed++
	case f.Outcome == job.Missed:
		return
	case f.Outcome.Wrong():
		t.counted++
	default:
		t.Skipped += f.Count
		return
	}
	t.Runs++
}

// finish computes rate and durations.
func (t *tally) finish() {
	t.Rate = rateOf(t.Succeeded, t.counted)
	slices.Sort(t.took)
	t.P50, t.P95 = percentile(t.took, 50), percentile(t.took, 95)
}

func (t *tally) addTo(totals *view.JobStatsTotals) {
	totals.Jobs++
	if t.wrong() > 0 {
		totals.FailedJobs++
		if t.success == nil {
			totals.FailingJobs++
		}
	}

	totals.Runs += t.Runs
	totals.Succeeded += t.Succeeded
	totals.Failed += t.Failed
	totals.Lost += t.Lost
	totals.Missed += t.Missed
	totals.Skipped += t.Skipped
}

func rateOf(succeeded, counted int64) *float64 {
	if counted == 0 {
		return nil
	}
	rate := float64(succeeded) / float64(counted)
	return &rate
}

// percentile returns a percentile of sorted durations in milliseconds, by the nearest-rank method.
// Without durations it returns nil.
func percentile(sorted []job.Micros, percent int) *float64 {
	if len(sorted) == 0 {
		return nil
	}
	ms := float64(sorted[(len(sorted)*percent+99)/100-1]) / 1000
	return &ms
}

// viewTallies adds names, health and the last failures.
func (s *Server) viewTallies(ctx context.Context, tallies []*tally) ([]*view.JobStat, error) {
	ids, failed := make([]int64, len(tallies)), []int64{}
	for i, t := range tallies {
		ids[i] = t.id
		if t.failure != nil {
			failed = append(failed, t.failure.Run)
		}
	}

	jobs, err := s.cfg.DB.JobsByID(ctx, ids)
	if err != nil {
		return nil, err
	}

	runs, err := s.cfg.DB.RunsAndOutput(ctx, failed, withLastLines)
	if err != nil {
		return nil, err
	}

	healths, err := s.healths(ctx, jobs)
	if err != nil {
		return nil, err
	}

	out := []*view.JobStat{}
	for _, t := range tallies {
		j := jobs[t.id]
		if j == nil || !mayRead(ctx, j.Spec.App) { // it has moved to another app
			continue
		}
		t.JobID, t.App, t.Job, t.Deleted = strconv.FormatInt(t.id, 10), j.Spec.App, j.Spec.Name, j.Deleted
		t.Health, t.LastFailure = healths[t.id], t.lastFailure(runs)
		out = append(out, &t.JobStat)
	}

	return out, nil
}

// healths returns the health of the jobs that are not deleted.
func (s *Server) healths(ctx context.Context, jobs map[int64]*read.Job) (map[int64]*view.Health, error) {
	var living []read.Job
	for _, j := range jobs {
		if !j.Deleted {
			living = append(living, *j)
		}
	}

	views, err := s.views(ctx, living, false)
	out := make(map[int64]*view.Health, len(views))
	for i, v := range views {
		out[living[i].ID] = v.Health
	}
	return out, err
}

// lastFailure shows the latest failure. The run itself may be missing, because retention removed
// it.
func (t *tally) lastFailure(runs map[int64]*read.Run) *view.LastFailure {
	f := t.failure
	if f == nil {
		return nil
	}

	v := &view.LastFailure{RunID: job.RunID(f.Run), Due: f.Due.Time(), Outcome: f.Outcome}
	if t.success != nil {
		v.Recovered = instant(t.success.Due)
	}
	if r := runs[f.Run]; r != nil {
		v.Ended, v.Node, v.ExitCode = instant(r.Ended), r.Node, r.ExitCode
		v.ReasonCode, v.Reason = string(r.Reason.Code), r.Reason.Text
		v.LastLine = r.Output.ErrorLine(maxLastLine)
	}
	return v
}

// maxLastLine is the longest line of output that is shown, in characters.
const maxLastLine = 300
