package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// held makes a run of job 1 for tests of policies.
func held(id int64, seconds int, kind trip.Kind, state trip.State) trip.Held {
	due := t0.Add(time.Duration(seconds) * time.Second)
	r := trip.Run{Launch: trip.Launch{Run: id, Claim: 1}, JobID: 1, Kind: kind, Attempt: 1, Due: due, DueNow: due}
	return trip.Held{Run: r, State: state}
}

// said is a verdict in the notation of the tests.
func said(v verdict) string {
	text := []string{"start", "refuse", "wait", "hold", "postpone", "release", "unread", "forget"}[v.action]
	switch v.action {
	case refuse:
		text += fmt.Sprintf(" %s, %s: %s", v.outcome, v.reason.Code, v.reason)
	case wait:
		text += fmt.Sprintf(" for %d", v.turn)
	}

	if v.replaces {
		text += ", replaces it"
	}

	for _, h := range v.supersedes {
		text += fmt.Sprintf(", supersedes %d", h.Launch.Run)
	}

	if v.passes {
		text += ", passes"
	}
	if v.alone {
		text += ", alone"
	}

	return text
}

func TestOverlapPolicies(t *testing.T) {
	now := t0.Add(100 * time.Second)
	run := held(9, 90, trip.Schedule, trip.Prepared).Run
	retry, backfill, manual, owed := run, run, run, run
	retry.Attempt = 2
	backfill.Kind = trip.Backfill
	manual.Kind = trip.Manual
	owed.Due = t0.Add(-100 * time.Second)

	executing := held(1, 80, trip.Schedule, trip.Executing)
	woken := held(1, 80, trip.Schedule, trip.Idle)
	queuing := held(1, 80, trip.Schedule, trip.Waiting)
	filling := held(1, 80, trip.Backfill, trip.Executing)
	later := held(2, 95, trip.Schedule, trip.Executing)
	own := trip.Held{Run: run, State: trip.Idle}

	skip := job.Spec{Overlap: job.OverlapSkip}
	all := job.Spec{Overlap: job.OverlapSkip, Misfire: job.Misfire{Policy: job.MisfireAll, MaxCount: 3}}
	queue := job.Spec{Overlap: job.OverlapQueue, Queue: 2}
	replace := job.Spec{Overlap: job.OverlapReplace}
	allow := job.Spec{Overlap: job.OverlapAllow}

	for name, c := range map[string]struct {
		spec job.Spec
		run  trip.Run
		jobScene
		want string
	}{
		"nothing executes": {skip, run, jobScene{}, "start"},
		"skip, and a run executes": {skip, run, jobScene{turn: &executing},
			"refuse skipped, previous_run_executing: the run due 2026-11-02T12:01:20Z was still running"},
		"skip, and a woken run comes first": {skip, run, jobScene{turn: &woken},
			"refuse skipped, previous_run_waiting: the run due 2026-11-02T12:01:20Z was still waiting to start"},
		"skip, and an earlier one waits for a slot": {skip, run, jobScene{turn: &queuing},
			"refuse skipped, previous_run_waiting: the run due 2026-11-02T12:01:20Z was still waiting to start"},
		"skip, a run by hand does as a due time does": {skip, manual, jobScene{turn: &executing},
			"refuse skipped, previous_run_executing: the run due 2026-11-02T12:01:20Z was still running"},
		"skip, but a retry waits":                         {skip, retry, jobScene{turn: &executing}, "wait for 1"},
		"skip, but a backfill waits":                      {skip, backfill, jobScene{turn: &executing}, "wait for 1"},
		"skip, and one due time waits for a backfill":     {skip, run, jobScene{turn: &filling}, "wait for 1"},
		"skip, and a second one does not":                 {skip, run, jobScene{turn: &filling, queued: 1}, "refuse skipped, backfill_run_ahead: overlap: another due time is already waiting for a backfill run to end"},
		"skip, but what is caught up waits":               {all, owed, jobScene{turn: &executing}, "wait for 1"},
		"what is caught up waits beyond the usual":        {all, owed, jobScene{turn: &executing, queued: 99}, "wait for 1"},
		"it is the turn of the run":                       {skip, run, jobScene{turn: &own}, "start"},
		"queue":                                           {queue, run, jobScene{turn: &executing, queued: 1}, "wait for 1"},
		"queue, behind a woken run":                       {queue, run, jobScene{turn: &woken}, "wait for 1"},
		"queue, but it is full":                           {queue, run, jobScene{turn: &executing, queued: 2}, "refuse skipped, queue_full: overlap: the queue is full, 2 due times are already waiting"},
		"queue, a retry has a place in a full one":        {queue, retry, jobScene{turn: &executing, queued: 2}, "wait for 1"},
		"queue, backfills wait in any number":             {queue, backfill, jobScene{turn: &executing, queued: 2}, "wait for 1"},
		"replace":                                         {replace, run, jobScene{turn: &executing}, "wait for 1, replaces it"},
		"replace what waits as well":                      {replace, run, jobScene{turn: &executing, line: []trip.Held{held(3, 85, trip.Schedule, trip.Waiting)}, queued: 1}, "wait for 1, replaces it, supersedes 3"},
		"replace what was woken":                          {replace, run, jobScene{turn: &woken}, "start, supersedes 1"},
		"replace what waits for a slot":                   {replace, run, jobScene{turn: &queuing}, "start, supersedes 1"},
		"replace does not kill backfills":                 {replace, run, jobScene{turn: &filling}, "wait for 1"},
		"replace, but a later due time executes":          {replace, run, jobScene{turn: &later}, "refuse superseded, replaced: the run due 2026-11-02T12:01:35Z replaced it"},
		"replace, but a later due time waits":             {replace, run, jobScene{turn: &executing, line: []trip.Held{held(3, 95, trip.Schedule, trip.Waiting)}}, "refuse superseded, replaced: the run due 2026-11-02T12:01:35Z replaced it"},
		"replace, but a later due time is due as well":    {replace, run, jobScene{latest: later.Due}, "refuse superseded, replaced: the run due 2026-11-02T12:01:35Z replaced it"},
		"replace, a retry of the later one goes on":       {replace, retry, jobScene{turn: &later}, "refuse superseded, replaced: the run due 2026-11-02T12:01:35Z replaced it"},
		"replace, a retry kills nothing":                  {replace, retry, jobScene{turn: &executing}, "wait for 1"},
		"replace, a backfill kills nothing":               {replace, backfill, jobScene{turn: &executing}, "wait for 1"},
		"allow":                                           {allow, run, jobScene{turn: &executing}, "start"},
		"crowded, and nothing of the time before is left": {skip, run, jobScene{Job: trip.Job{Crowded: true}}, "start, alone"},
		"crowded, and another one executes": {skip, run, jobScene{Job: trip.Job{Crowded: true}, turn: &executing},
			"refuse skipped, previous_run_executing: the run due 2026-11-02T12:01:20Z was still running"},
		"a paused job, and it was the turn of the run": {skip, run, jobScene{Job: trip.Job{Paused: true, Running: 9}}, "refuse skipped, job_paused: the job is paused, passes"},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.Misfire.After = job.Duration(time.Minute)
			c.jobScene.def = &Definition{Spec: &c.spec}
			s := &scene{now: now, jobs: map[int64]*jobScene{1: &c.jobScene}}
			if got := said(judge([]trip.Run{c.run}, s)[0]); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestJudgeFollows: runs of one batch see each other.
func TestJudgeFollows(t *testing.T) {
	now := t0.Add(100 * time.Second)
	batch := []trip.Run{
		held(3, 30, trip.Schedule, trip.Prepared).Run, held(1, 10, trip.Schedule, trip.Prepared).Run, held(2, 20, trip.Schedule, trip.Prepared).Run,
	}
	group := func(slots, taken, woken int) *groupScene {
		return &groupScene{Group: &trip.Group{ID: 4, Name: "g", Slots: slots, Taken: taken}, woken: woken, queued: map[int64]int{}}
	}
	woke := held(1, 10, trip.Schedule, trip.Idle)
	woke.Group = -4

	for name, c := range map[string]struct {
		spec job.Spec
		runs []trip.Run
		g    *groupScene
		want string
	}{
		"skip":                           {job.Spec{Overlap: job.OverlapSkip}, batch, nil, "1 start, 2 refuse, 3 refuse"},
		"queue":                          {job.Spec{Overlap: job.OverlapQueue, Queue: 1}, batch, nil, "1 start, 2 wait, 3 refuse"},
		"replace":                        {job.Spec{Overlap: job.OverlapReplace}, batch, nil, "1 refuse, 2 refuse, 3 start"},
		"allow":                          {job.Spec{Overlap: job.OverlapAllow}, batch, nil, "1 start, 2 start, 3 start"},
		"a group with one slot":          {job.Spec{Overlap: job.OverlapAllow, Group: "g", Queue: 1}, batch, group(1, 0, 0), "1 start, 2 wait, 3 refuse"},
		"a group that somebody locks":    {job.Spec{Overlap: job.OverlapAllow, Group: "g"}, batch, nil, "1 hold, 2 hold, 3 hold"},
		"a full group, and queue":        {job.Spec{Overlap: job.OverlapQueue, Queue: 1, Group: "g"}, batch, group(1, 1, 0), "1 wait, 2 wait, 3 refuse"},
		"a full group, and skip":         {job.Spec{Overlap: job.OverlapSkip, Group: "g"}, batch, group(1, 1, 0), "1 wait, 2 refuse, 3 refuse"},
		"a woken run goes first":         {job.Spec{Overlap: job.OverlapAllow, Group: "g"}, batch[:1], group(1, 0, 1), "3 wait"},
		"the woken run itself":           {job.Spec{Overlap: job.OverlapAllow, Group: "g"}, []trip.Run{woke.Run}, group(1, 0, 1), "1 start"},
		"a woken run that lost its slot": {job.Spec{Overlap: job.OverlapAllow, Group: "g"}, []trip.Run{woke.Run}, group(1, 1, 1), "1 wait"},
		"a group that does not exist":    {job.Spec{Overlap: job.OverlapAllow, Group: "g"}, batch[:1], &groupScene{}, "3 refuse"},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.Misfire.After = job.Duration(time.Hour)
			s := &scene{now: now, jobs: map[int64]*jobScene{1: {def: &Definition{Spec: &c.spec}, group: c.g}}}
			for _, r := range c.runs {
				s.jobs[1].latest = max(s.jobs[1].latest, r.Due)
			}
			var got []string
			for _, v := range judge(c.runs, s) {
				action, _, _ := strings.Cut(said(v), " ")
				got = append(got, fmt.Sprintf("%d %s", v.run.Launch.Run, strings.TrimSuffix(action, ",")))
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}
