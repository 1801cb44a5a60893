package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// recentRuns makes runs of words such as "failed", "failed*" (not final), "running", "missed=5"
// (counts five due times) and "succeeded@" (of the same due time as the run after it). The latest
// due comes first.
func recentRuns(t *testing.T, text string) (out []read.RecentRun) {
	t.Helper()
	due := job.Micros(1000)
	for i, word := range strings.Fields(text) {
		r := read.RecentRun{ID: int64(i + 1), Due: due, Count: 1, Final: true, Started: due, Kind: trip.Schedule}
		word, same := strings.CutSuffix(word, "@")
		if !same {
			due--
		}

		word, more := strings.CutSuffix(word, "*")
		r.Final = !more
		if name, n, ok := strings.Cut(word, "="); ok {
			word = name
			fmt.Sscan(n, &r.Count)
		}

		if word == "skipped" {
			r.Started = 0
		}
		if word == "nothing" {
			word = "skipped" // it began, and had nothing to do
		}
		if r.Executing = word == "running"; !r.Executing {
			var err error
			if r.Outcome, err = job.ParseOutcome(word); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, r)
	}
	return out
}

func TestHealth(t *testing.T) {
	t.Parallel()
	now := job.Micros(100_000_000)
	passed, soon := (now - 11_000_000).Time(), (now - 9_000_000).Time()
	paused := &view.Pause{Scope: job.ScopeApp, By: "ann", Since: passed}
	wait := []view.JobWait{{Due: passed}}

	for name, c := range map[string]struct {
		job  view.Job
		runs string
		more bool
		want string
	}{
		"no run":        {view.Job{}, "", false, "never Has not run"},
		"succeeded":     {view.Job{}, "succeeded killed skipped succeeded", true, "ok OK"},
		"failed before": {view.Job{}, "succeeded failed missed=9 lost succeeded", true, "unstable Unstable (2 of 4 failed)"},
		"running after failures": {
			view.Job{}, "running succeeded timed_out", false, "unstable Unstable (1 of 2 failed)",
		},
		"paused after failures": {view.Job{Pause: paused}, "succeeded failed", false, "paused Paused with its app by ann"},
		"failed long before": {
			view.Job{}, strings.Repeat("succeeded ", listedRuns) + "failed", true, "ok OK",
		},
		"failed":                {view.Job{}, "failed timed_out lost succeeded failed", true, "failing Failing (3×)"},
		"failed since ever":     {view.Job{}, "failed failed", false, "failing Failing (2×)"},
		"failed as far as read": {view.Job{}, "failed failed", true, "failing Failing (at least 2×)"},
		"missed many":           {view.Job{}, "missed=5 failed succeeded", false, "failing Failing (6×)"},
		"skips and kills say nothing": {
			view.Job{}, "skipped killed superseded failed succeeded", false, "failing Failing (1×)",
		},
		"nothing to do":          {view.Job{}, "nothing skipped", false, "ok OK"},
		"failed before that":     {view.Job{}, "nothing failed nothing failed succeeded", false, "failing Failing (2×)"},
		"only skips":             {view.Job{}, "skipped skipped", false, "never Has not run"},
		"an attempt will follow": {view.Job{}, "failed* succeeded", false, "ok OK"},
		"running":                {view.Job{}, "running succeeded", false, "running Running"},
		"running and failing":    {view.Job{}, "running failed", false, "failing Failing (1×)"},
		"run again with success": {view.Job{}, "succeeded@ failed", false, "ok OK"},
		"run again in vain":      {view.Job{}, "failed@ failed succeeded", false, "failing Failing (1×)"},
		"late":                   {view.Job{NextDue: &passed}, "succeeded", false, "late Late"},
		"not late yet":           {view.Job{NextDue: &soon}, "succeeded", false, "ok OK"},
		"waiting":                {view.Job{NextDue: &passed, Waiting: wait}, "running", false, "waiting Waiting"},
		"paused":                 {view.Job{Pause: paused}, "succeeded", false, "paused Paused with its app by ann"},
		"paused and failing":     {view.Job{Pause: paused}, "lost", false, "failing Failing (1×)"},
		"broken":                 {view.Job{Error: "x"}, "failed", false, "broken Broken"},
	} {
		h := healthOf(&c.job, &read.Recent{Runs: recentRuns(t, c.runs), More: c.more}, now)
		if got := string(h.Code) + " " + h.Text; got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}

	// The turn may be held by a run that is older than all that were read.
	h := healthOf(&view.Job{}, &read.Recent{Runs: recentRuns(t, "skipped"), Executing: 5}, now)
	if h.Code != view.HealthRunning || !h.Since.Equal(job.Micros(5).Time()) {
		t.Errorf("an old run executes: got %+v", h)
	}
}

func TestTallyJobs(t *testing.T) {
	t.Parallel()
	run := func(id int64, due job.Micros, o job.Outcome, took time.Duration) read.Fared {
		return read.Fared{
			Run: int64(due), JobID: id, Due: due, Count: 1, Attempt: 1, Outcome: o, Final: true, Took: job.Micros(took.Microseconds()),
		}
	}
	retried := run(1, 25, job.Failed, time.Second)
	retried.Final = false
	missed := run(2, 30, job.Missed, 0)
	missed.Count = 4

	failures := []read.Fared{run(1, 20, job.Failed, 3*time.Second), run(1, 10, job.Lost, time.Second), missed}
	runs := append([]read.Fared{
		retried, run(1, 40, job.Succeeded, 2*time.Second), run(1, 30, job.Succeeded, time.Second),
		run(1, 5, job.Skipped, 0), run(1, 6, job.Killed, time.Second), run(3, 7, job.Succeeded, time.Second),
	}, failures...)

	var totals view.JobStatsTotals
	got := tallyJobs(runs, failures, &totals)
	if len(got) != 3 || got[0].id != 2 || got[1].id != 1 || got[2].id != 3 {
		t.Fatalf("the noisiest job is not first: %+v", got)
	}

	if j := got[0]; j.Missed != 4 || j.Runs != 0 || j.Rate != nil || j.success != nil {
		t.Errorf("missed: got %+v", j)
	}
	if j := got[1]; j.Runs != 5 || j.Succeeded != 2 || j.Failed != 1 || j.Lost != 1 || j.Skipped != 1 || j.Killed != 1 ||
		*j.Rate != 0.5 || j.failure.Due != 20 || j.success.Due != 30 || *j.P50 != 1000 || *j.P95 != 3000 {
		t.Errorf("a job: got %+v, last failure %+v, recovered %+v", j.JobStat, j.failure, j.success)
	}
	if totals.Jobs != 3 || totals.FailedJobs != 2 || totals.FailingJobs != 1 || totals.Runs != 6 || totals.Missed != 4 ||
		*totals.Rate != 0.6 {
		t.Errorf("totals: got %+v", totals)
	}
}

func TestSlotsOf(t *testing.T) {
	t.Parallel()
	run := func(due job.Micros, request int64, state trip.State, o job.Outcome) read.Run {
		var r read.Run
		r.Due, r.Until, r.Count, r.Request, r.State, r.DueNow = due, due, 1, request, state, due
		r.Outcome = o
		return r
	}
	several := run(28, 0, trip.Ended, job.Missed)
	several.Count, several.Until = 3, 50

	unrecorded := func(due job.Micros) view.Slot {
		s := view.Slot{Due: due.Time(), State: view.SlotHole}
		if due > 85 {
			s.State = view.SlotAhead
		}
		return s
	}

	got := ""
	for _, s := range slotsOf([]job.Micros{10, 20, 30, 40, 50, 60, 70, 80, 90}, []read.Run{
		run(10, 0, trip.Ended, job.Failed), run(10, 0, trip.Ended, job.TimedOut), run(10, 7, trip.Ended, job.Succeeded),
		several, run(65, 0, trip.Ended, job.Succeeded), run(70, 0, trip.Executing, 0), run(80, 0, trip.Waiting, 0),
		run(90, 0, trip.Prepared, 0),
	}, unrecorded, 85) {
		got += fmt.Sprintf("%d %s ", job.MicrosOf(s.Due), s.State)
		if s.Again != 0 {
			got += "again " + s.Again.String() + " "
		}
	}

	const want = "10 timed_out again succeeded 20 hole 30 missed 40 missed 50 missed 60 hole 65 succeeded 70 running " +
		"80 waiting 90 ahead "
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
