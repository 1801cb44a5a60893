package schedule

import (
	"fmt"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// overlap judges a run against the run of its job that has the turn.
func overlap(r *trip.Run, j *jobScene, now job.Micros) *verdict {
	if !j.excludes() || j.turn == nil || j.turn.Launch.Run == r.Launch.Run {
		return j.overtaken(r)
	}
	if r.Kind == trip.Backfill { // a backfill's run neither replaces a run nor is replaced
		return j.waits(r, now)
	}

	switch j.def.Spec.Overlap {
	case job.OverlapQueue:
		return j.waits(r, now)
	case job.OverlapReplace:
		return j.replace(r, now)
	}

	return j.skip(r, now)
}

// skip skips a due time. Retries wait, and so do due times that the misfire policy catches up.
func (j *jobScene) skip(r *trip.Run, now job.Micros) *verdict {
	t := j.turn
	switch {
	case r.Attempt > 1, catchesUp(r, j.def.Spec, now):
		return j.waits(r, now)
	case t.Kind != trip.Backfill && t.State == trip.Executing:
		return refusal(job.Skipped, job.ReasonPreviousRunExecuting, "the run due %s was still running", t.Due)
	case t.Kind != trip.Backfill:
		return refusal(job.Skipped, job.ReasonPreviousRunWaiting,
			"the run due %s was still waiting to start", t.Due)
	case j.queued > 0:
		return refusal(job.Skipped, job.ReasonBackfillRunAhead,
			"overlap: another due time is already waiting for a backfill run to end")
	}

	return j.waits(r, now) // a backfill and the schedule take turns, so neither loses due times to the other
}

// replace lets a later due time replace an earlier one. If the earlier run executes, the later run
// waits until the earlier one is dead.
func (j *jobScene) replace(r *trip.Run, now job.Micros) *verdict {
	if v := j.overtaken(r); v != nil {
		return v
	}
	t := j.turn
	if t.State != trip.Executing && t.Kind != trip.Backfill && r.Attempt == 1 {
		return nil // the run with the turn has not begun, and ends superseded: see outrun
	}
	v := j.waits(r, now)
	v.replaces = t.State == trip.Executing && t.Kind != trip.Backfill && r.Attempt == 1
	return v
}

// overtaken: with overlap replace, a run that arrives after a later due time is superseded. It
// neither kills the later run nor delays it.
func (j *jobScene) overtaken(r *trip.Run) *verdict {
	if !j.replacesOthers() || r.Kind == trip.Backfill {
		return nil
	}
	later := max(j.latest, j.turnDue())
	for i := range j.line {
		later = max(later, j.line[i].Due)
	}
	if later <= r.Due {
		return nil
	}
	return refusal(job.Superseded, job.ReasonReplaced, replacedBy, later)
}

const replacedBy = "the run due %s replaced it"

func (j *jobScene) replacesOthers() bool {
	return j.spec() != nil && j.def.Spec.Overlap == job.OverlapReplace
}

// turnDue returns the due time of the run that has the turn. It is zero if no run or a backfill's
// run has the turn.
func (j *jobScene) turnDue() job.Micros {
	if j.turn == nil || j.turn.Kind == trip.Backfill {
		return 0
	}
	return j.turn.Due
}

// outrun lists the runs that have not begun and that run r replaces. Only overlap replace has such
// runs.
func (j *jobScene) outrun(r *trip.Run) (out []trip.Held) {
	if !j.replacesOthers() || r.Kind == trip.Backfill || r.Attempt > 1 {
		return nil
	}

	unbegun := j.line
	if t := j.turn; t != nil && t.State != trip.Executing && t.Launch.Run != r.Launch.Run {
		unbegun = append(unbegun[:len(unbegun):len(unbegun)], *t)
	}

	for _, h := range unbegun {
		if h.Kind != trip.Backfill && h.Due < r.Due {
			out = append(out, h)
		}
	}

	return out
}

// waits puts a run into the line of its job. The line is bounded: a due time that finds the line
// full is skipped.
func (j *jobScene) waits(r *trip.Run, now job.Micros) *verdict {
	most := j.def.Spec.QueueMax()
	if catchesUp(r, j.def.Spec, now) {
		most = max(most, j.def.Spec.CatchUp())
	}
	waiting := j.queued - len(j.outrun(r))
	if waiting >= most && r.Kind != trip.Backfill && r.Attempt == 1 {
		return refusal(job.Skipped, job.ReasonQueueFull,
			"overlap: the queue is full, %s already waiting", waitingDueTimes(waiting))
	}
	return &verdict{action: wait, place: trip.JobPlace(r), turn: j.turn.Launch.Run}
}

func waitingDueTimes(n int) string {
	if n == 1 {
		return "1 due time is"
	}
	return fmt.Sprintf("%d due times are", n)
}

// waited updates the scene for a run that waits.
func (j *jobScene) waited(v *verdict) {
	v.supersedes = j.outrun(&v.run)
	j.queued -= len(v.supersedes)
	j.line = remaining(j.line, v.supersedes)

	h := trip.Held{Run: v.run, State: trip.Waiting}
	switch {
	case v.turn == v.run.Launch.Run && j.excludes(): // the run waits for a slot, and others wait for the run
		j.turn = &h
	case v.turn == v.run.Launch.Run:
		j.group.queued[v.run.JobID]++
	case v.run.Kind != trip.Backfill:
		j.queued++
		if j.replacesOthers() {
			j.line = append(j.line, h)
		}
	}
}

// remaining returns a line without the given runs.
func remaining(line, gone []trip.Held) (out []trip.Held) {
	left := map[int64]bool{}
	for i := range gone {
		left[gone[i].Launch.Run] = true
	}
	for _, h := range line {
		if !left[h.Launch.Run] {
			out = append(out, h)
		}
	}
	return out
}

// catchesUp reports whether the misfire policy `all` starts a due time late. Such runs go one after
// the other.
func catchesUp(r *trip.Run, spec *job.Spec, now job.Micros) bool {
	return r.Kind == trip.Schedule && spec.Misfire.Policy == job.MisfireAll && now.Sub(r.Due) > spec.MissedAfter()
}
