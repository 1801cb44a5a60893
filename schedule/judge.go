package schedule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// action is the effect of a verdict on a run.
type action int

const (
	start    action = iota // it becomes executing
	refuse                 // it ends without a start
	wait                   // it waits for another run of its job, or for a slot of its group
	hold                   // it stays prepared, and is looked at again
	postpone               // it becomes idle, and is looked at again at an instant
	release                // it becomes idle, for other nodes
	drop                   // it is removed, because its job waits for further ends of other jobs
	unread                 // it stays prepared until the definition of its job has been read
	forget                 // another node has the run, or an edit has taken it back
)

// verdict is the decision on one run.
type verdict struct {
	action
	run     trip.Run
	at      job.Micros // for hold and postpone: when to look again; zero: soon
	outcome job.Outcome
	reason  job.Reason
	limit   job.Limit // for refuse: the app limit that the run would exceed; "": none
	def     *Definition
	asked   bool  // people asked for the run, and it was counted against the limits then
	group   int32 // for start: the group of the slot that it holds; zero: none
	takes   bool  // for start: it takes that slot now
	rated   int32 // for start: the group in whose rate it counts; zero: none

	begins job.Micros // for start: when the run begins
	gives  bool       // it gives back the slot that it holds

	place      job.Micros     // for wait: a number that says which line, and which place in it
	turn       int64          // for start and wait: the run that has the turn afterwards
	replaces   bool           // for wait: the run with the turn must be killed
	supersedes []trip.Held    // runs that have not begun and never will, because this run replaces them
	alone      bool           // for start: the job is no longer crowded
	behind     bool           // for hold: an earlier due time of the job has not begun
	wave       []trip.Arrival // the arrivals that the run uses up
	passes     bool           // the run had the turn or a slot and does not use it, so the next run must be woken
}

// policy is a rule about starts. It returns nil if it has no objection to a start.
type policy func(r *trip.Run, j *jobScene, now job.Micros) *verdict

// policies are applied in this order. The first objection is the verdict.
var policies = []policy{
	lockedJob,
	begun,
	heldSlot,
	deletedJob,
	cancelledBackfill,
	unreadDefinition,
	follows,
	gather,
	pausedJob,
	restoredDatabase,
	brokenDefinition,
	disabledHandler,
	elsewhere,
	startDeadline,
	misfire,
	inOrder,
	overlap,
	slot,
}

// judge gives every run a verdict. Earlier due times come first, and among equal ones the higher
// priority. judge updates the scene after each verdict.
func judge(runs []trip.Run, s *scene) []verdict {
	order := slices.Clone(runs)
	slices.SortFunc(order, byDue)

	out := make([]verdict, len(order))
	for i := range order {
		r := &order[i]
		j := s.jobs[r.JobID]

		// Without an objection the run starts.
		v := verdict{action: start}
		for _, object := range policies {
			if objection := object(r, j, s.now); objection != nil {
				v = *objection
				break
			}
		}

		v = j.allowance.judge(r, v)

		// Before the due time only a start is final, because an obstacle may be gone when the run
		// is due.
		if (v.action == refuse || v.action == wait) && s.now < r.DueNow {
			v = verdict{action: hold, at: r.DueNow}
		}
		v.run, v.def, v.asked, v.begins = *r, j.def, j.asked(r), startOf(r, s.now)
		v.run.Watched = j.watches(r)
		j.follow(&v)
		j.allowance.take(&v)
		out[i] = v
	}

	return out
}

func byDue(a, b trip.Run) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.Launch.Run, b.Launch.Run))
}

// follow updates the scene of a job after a verdict.
func (j *jobScene) follow(v *verdict) {
	r := &v.run
	had := j.gone || j.Running == r.Launch.Run
	j.gathered(v)
	woke := j.group != nil && j.group.Group != nil && j.group.woke(r)
	j.passed(v)
	switch v.action {
	case start:
		j.started(v)
	case wait:
		j.waited(v)
		j.giveSlot(v)
		if g := j.group; v.place < 0 { // it waits in the line of its group
			g.lined = g.Rate.Any()
		}
		v.passes = woke
	case postpone:
		j.giveSlot(v)
		v.passes = had
		if had {
			v.turn = noTurn
		}
	case refuse:
		j.giveSlot(v)
		v.passes = had || r.Group < 0
	}

	if v.passes && j.turn != nil && j.turn.Launch.Run == r.Launch.Run {
		j.turn = nil
	}
	if woke && (v.action == start || v.passes) {
		j.group.woken = max(0, j.group.woken-1)
	}
}

// noTurn is written to job.running when no run has the turn.
const noTurn = -1

func (j *jobScene) started(v *verdict) {
	v.turn = v.run.Launch.Run
	j.takeSlot(v)
	if j.excludes() {
		v.supersedes = j.outrun(&v.run)
		v.alone = j.Crowded
		j.Crowded = false
		j.turn = &trip.Held{Run: v.run, State: trip.Executing}
	}
}

func refusal(outcome job.Outcome, code job.ReasonCode, format string, args ...any) *verdict {
	reason := job.Reason{Code: code, Text: fmt.Sprintf(format, args...)}
	return &verdict{action: refuse, outcome: outcome, reason: reason}
}

// lockedJob: another transaction has locked the row of the job. The batch does not wait for the
// lock, so runs of other jobs go on.
func lockedJob(_ *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if j.busy {
		return &verdict{action: hold}
	}
	return nil
}

// begun: the run executes already. Another node has taken the run over and started it, so this
// node's launch is outdated. If this node refused the run, the turn would pass to another run
// while the run still executes.
func begun(r *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if j.turn != nil && j.turn.Launch.Run == r.Launch.Run && j.turn.State == trip.Executing {
		return &verdict{action: forget}
	}
	return nil
}

func deletedJob(_ *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if j.gone || j.Deleted {
		return refusal(job.Superseded, job.ReasonJobDeleted, "the job was deleted")
	}
	return nil
}

// unreadDefinition: the job was edited since the run was claimed. The new definition must first be
// read, outside the transaction.
func unreadDefinition(_ *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if j.def == nil {
		return &verdict{action: unread}
	}
	return nil
}

func brokenDefinition(_ *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if j.def.Err != nil {
		return refusal(job.Skipped, job.ReasonDefinitionInvalid, "%v", j.def.Err)
	}
	return nil
}

// elsewhere: this node may not run the job. The job may have been edited since the run was claimed.
func elsewhere(r *trip.Run, j *jobScene, _ job.Micros) *verdict {
	switch {
	case !j.elsewhere:
		return nil
	case r.Kind == trip.Schedule && j.lost[lateRun{r.JobID, j.Version, r.Due}]:
		return refusal(job.Missed, job.ReasonNoNode, "%s", job.NoNode(j.def.Place.String()))
	}
	return &verdict{action: release}
}

// due reports whether a run has a due time, so that it can be too late. Nobody asked for such a
// run.
func due(r *trip.Run) bool { return r.Kind == trip.Schedule || r.Kind == trip.After }

// startDeadline applies to first attempts of runs that nobody asked for. Manual runs start even if
// they are very late.
func startDeadline(r *trip.Run, j *jobScene, now job.Micros) *verdict {
	deadline := j.def.Spec.StartDeadline
	if deadline == 0 || !due(r) || r.Attempt > 1 || now.Sub(r.Due) <= time.Duration(deadline) {
		return nil
	}
	if r.Woken {
		return refusal(job.Missed, job.ReasonWaitDeadline, "it was still waiting when its start deadline passed")
	}
	return refusal(job.Missed, job.ReasonStartDeadline,
		"no node could start it before its start deadline, %s after it was due", deadline)
}

// misfire: a scheduled run that is too old starts only if the misfire policy says so. The answer
// may need many due times of the schedule, so lateOnes computes it before the transaction.
func misfire(r *trip.Run, j *jobScene, now job.Micros) *verdict {
	if !isMisfired(r, j.def, j.Version, now) {
		return nil
	}

	starts, known := j.late[lateRun{r.JobID, j.Version, r.Due}]
	switch {
	case !known:
		return &verdict{action: unread}
	case !starts:
		spec := j.def.Spec
		return refusal(job.Missed, job.ReasonMisfire,
			"no node could start it within %s of its due time; misfire policy %s",
			job.Duration(spec.MissedAfter()), spec.Misfire.Policy)
	}

	return nil
}

// isMisfired reports whether the misfire policy of the given version applies to a scheduled run.
// The run's age counts from due_now, because a late claim has already applied the policy. If the
// job was edited after the claim, the claim applied the policy of another version. Then the age
// counts from the due time, unless the run was woken.
func isMisfired(r *trip.Run, d *Definition, version int32, now job.Micros) bool {
	since := r.DueNow
	if r.Version != version && !r.Woken {
		since = r.Due
	}
	return r.Kind == trip.Schedule && r.Attempt == 1 && now.Sub(since) > d.Spec.MissedAfter()
}

// lateRun identifies a late run under one version of its job.
type lateRun struct {
	job     int64
	version int32
	due     job.Micros
}

// lateOnes returns, for each misfired run, whether it may start by the latest definition that the
// node knows. If the schedule is too expensive to compute, the run may not start.
func (s *Starter) lateOnes(ctx context.Context, runs []trip.Run, now job.Micros) map[lateRun]bool {
	var late map[lateRun]bool
	for i := range runs {
		r := &runs[i]
		version, d := s.Definitions.latestOf(r.JobID)
		if d == nil || d.Err != nil || !isMisfired(r, d, version, now) {
			continue
		}
		if late == nil {
			late = map[lateRun]bool{}
		}
		work := job.NewWork(ctx, quickWork)
		starts := startsLate(d.Spec, work.On(d.Schedule), r.Due, now)
		late[lateRun{r.JobID, version, r.Due}] = starts && work.Err() == nil
	}

	return late
}
