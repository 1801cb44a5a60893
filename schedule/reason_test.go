package schedule

import (
	"errors"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// TestReasonsOfPolicies has each policy refuse a run. TestOverlapPolicies and TestStopPolicies do so for the others.
func TestReasonsOfPolicies(t *testing.T) {
	t.Parallel()
	now := t0.Add(100 * time.Second)
	run := held(9, 90, trip.Schedule, trip.Prepared).Run
	late, woken, old, backfill := run, run, run, run
	late.Due = t0
	woken.Due, woken.Woken = t0, true
	old.Due, old.DueNow = t0.Add(-time.Hour), t0.Add(-time.Hour)
	backfill.Kind, backfill.Request = trip.Backfill, 3
	executing := held(1, 80, trip.Schedule, trip.Executing)
	full := &groupScene{Group: &trip.Group{ID: 4, Name: "g", Slots: 1, Taken: 1}, queued: map[int64]int{1: 1}}

	for want, c := range map[job.ReasonCode]struct {
		spec  job.Spec
		run   trip.Run
		scene jobScene
	}{
		job.ReasonJobDeleted:        {job.Spec{}, run, jobScene{Job: trip.Job{Deleted: true}}},
		job.ReasonBackfillCancelled: {job.Spec{}, backfill, jobScene{backfills: map[int64]trip.BackfillState{3: trip.BackfillCancelled}}},
		job.ReasonDefinitionInvalid: {job.Spec{}, run, jobScene{def: &Definition{Err: errors.New("schedule: broken")}}},
		job.ReasonNoNode: {job.Spec{}, run,
			jobScene{elsewhere: true, lost: map[lateRun]bool{{1, 0, run.Due}: true}}},
		job.ReasonStartDeadline: {job.Spec{StartDeadline: job.Duration(time.Minute)}, late, jobScene{}},
		job.ReasonWaitDeadline:  {job.Spec{StartDeadline: job.Duration(time.Minute)}, woken, jobScene{}},
		job.ReasonMisfire:       {job.Spec{}, old, jobScene{late: map[lateRun]bool{{1, 0, old.Due}: false}}},
		job.ReasonGroupMissing:  {job.Spec{Group: "g"}, run, jobScene{group: &groupScene{}}},
		job.ReasonGroupFull:     {job.Spec{Group: "g", Overlap: job.OverlapQueue, Queue: 1}, run, jobScene{group: full}},
		job.ReasonAppRunsLimit: {job.Spec{}, run,
			jobScene{allowance: &allowance{limits: job.AppLimits{RunsPerMinute: 1}, started: 1}}},
		job.ReasonAppWaitingLimit: {job.Spec{Overlap: job.OverlapQueue, Queue: 9}, run,
			jobScene{turn: &executing, allowance: &allowance{limits: job.AppLimits{Waiting: 1}, waiting: 1}}},
	} {
		c.spec.Misfire.After = job.Duration(10 * time.Minute)
		if c.scene.def == nil {
			c.scene.def = &Definition{Spec: &c.spec}
		}
		s := &scene{now: now, jobs: map[int64]*jobScene{1: &c.scene}}
		v := judge([]trip.Run{c.run}, s)[0]
		if v.action != refuse || v.reason.Code != want || v.reason.Text == "" {
			t.Errorf("%s: got %s", want, said(v))
		}
	}
}

// TestReasonsOfCountedDueTimes: due times that passed are counted as missed, or as skipped by the pause that
// covered them.
func TestReasonsOfCountedDueTimes(t *testing.T) {
	t.Parallel()
	now := t0.Add(time.Hour)
	spec := every("j", 60)
	spec.Misfire = job.Misfire{Policy: job.MisfireSkip, After: job.Duration(time.Minute)}
	compiled, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	over := func(kind trip.StopKind) resumption {
		return resumedWith([]trip.Stop{{Kind: kind, AppID: 3, Until: now - 1}, {Kind: trip.StopCluster, Until: t0}}, 3, now)
	}

	for name, c := range map[string]struct {
		resumed resumption
		want    job.ReasonCode
	}{
		"no pause":               {resumption{}, job.ReasonMisfire},
		"its own pause":          {resumption{now, job.ReasonJobPaused}, job.ReasonJobPaused},
		"a pause of its app":     {over(trip.StopApp), job.ReasonAppPaused},
		"a pause of the cluster": {over(trip.StopCluster), job.ReasonClusterPaused},
	} {
		d := dueFrom(&spec, compiled, t0, c.resumed, now, now)
		if d.counted == nil || d.counted.reason.Code != c.want {
			t.Errorf("%s: got %+v, want %s", name, d.counted, c.want)
		}
	}
}
