package schedule

import (
	"fmt"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// action is what a transaction does with one run.
type action int

const (
	start  action = iota // it becomes executing
	refuse               // it ends without a start
	hold                 // it stays prepared, and is looked at again
	unread               // it stays prepared until the definition of its job has been read
	forget               // its row is not ours any more
)

// verdict is the decision on one run.
type verdict struct {
	action
	run     trip.Run
	at      job.Micros // of a hold: when to look again; zero: after a pause that grows
	outcome job.Outcome
	reason  string
	def     *Definition
}

// policy is one rule about starts. It returns nil if it has no objection to a start.
type policy func(r *trip.Run, j *jobScene, now job.Micros) *verdict

// policies are asked in this order. The first objection is the verdict.
var policies = []policy{
	lockedJob,
	deletedJob,
	pausedJob,
	unreadDefinition,
	brokenDefinition,
	startDeadline,
	misfire,
	overlap,
}

// judge gives every run a verdict, the earliest due first. The scene follows the verdicts.
func judge(runs []trip.Run, s *scene) []verdict {
	out := make([]verdict, len(runs))
	for i := range runs {
		r := &runs[i]
		j := s.jobs[r.JobID]
		v := verdict{action: start, def: j.def}
		for _, object := range policies {
			if objection := object(r, j, s.now); objection != nil {
				v = *objection
				break
			}
		}

		// Before the due time no refusal is final: what stands in the way may be gone by then.
		if v.action == refuse && s.now < r.DueNow {
			v = verdict{action: hold, at: r.DueNow}
		}
		if v.action == start && j.excludes() {
			j.executing, j.Running = true, r.Run
		}
		v.run = *r
		out[i] = v
	}
	return out
}

func refusal(outcome job.Outcome, format string, args ...any) *verdict {
	return &verdict{action: refuse, outcome: outcome, reason: fmt.Sprintf(format, args...)}
}

// lockedJob: somebody else has locked the row of the job. Nobody waits for it: the runs of other jobs go on.
func lockedJob(_ *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if j.busy {
		return &verdict{action: hold}
	}
	return nil
}

func deletedJob(_ *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if j.gone || j.Deleted {
		return refusal(job.Superseded, "job was deleted")
	}
	return nil
}

// pausedJob: a pause stops the schedule, not what people ask for.
func pausedJob(r *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if j.Paused && r.Kind == trip.Schedule {
		return refusal(job.Skipped, "job is paused")
	}
	return nil
}

// unreadDefinition: the job was edited since the run was claimed. The definition is read outside the transaction.
func unreadDefinition(_ *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if j.def == nil {
		return &verdict{action: unread}
	}
	return nil
}

func brokenDefinition(_ *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if j.def.Err != nil {
		return refusal(job.Skipped, "%v", j.def.Err)
	}
	return nil
}

func startDeadline(r *trip.Run, j *jobScene, now job.Micros) *verdict {
	deadline := j.def.Spec.StartDeadline
	if deadline > 0 && now.Sub(r.Due) > time.Duration(deadline) {
		return refusal(job.Missed, "could not be started by its deadline, %s after it was due", deadline)
	}
	return nil
}

// misfire: a due time of the schedule that is too old is started only if the misfire policy says so.
func misfire(r *trip.Run, j *jobScene, now job.Micros) *verdict {
	spec := j.def.Spec
	if r.Kind != trip.Schedule || r.Attempt > 1 || now.Sub(r.DueNow) <= spec.MissedAfter() {
		return nil
	}
	if !startsLate(spec, j.def.Schedule, r.Due, now) {
		return refusal(job.Missed, "nobody could start it within %s; misfire policy %s", job.Duration(spec.MissedAfter()), spec.Misfire.Policy)
	}
	return nil
}

func overlap(_ *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if j.executing && j.excludes() {
		return refusal(job.Skipped, "overlap: run %d is still executing", j.Running)
	}
	return nil
}
