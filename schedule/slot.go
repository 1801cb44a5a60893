package schedule

import (
	"go-crontab/job"
	"go-crontab/sql/trip"
)

// heldSlot: the run was started before but not spawned, so it still holds the slot of that start.
// Any verdict on this run needs the lock of the slot's group.
func heldSlot(r *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if r.Group > 0 && j.slots[r.Group] == nil {
		return &verdict{action: hold} // another transaction has locked the group
	}
	return nil
}

// slot: a run of a job in a group takes a slot of the group. If no slot is free, or the group's
// rate admits no start, the run waits in the line of the group.
func slot(r *trip.Run, j *jobScene, now job.Micros) *verdict {
	name := j.def.Spec.Group
	g := j.group
	switch {
	case name == "":
		return nil
	case g == nil:
		return &verdict{action: hold} // another transaction has locked the group, or the job joined it a moment ago
	case g.Group == nil && r.Group > 0:
		return nil
	case g.Group == nil:
		return refusal(job.Skipped, job.ReasonGroupMissing, "group %s does not exist", name)
	case g.free(r, now) > 0:
		return nil
	}

	waiting := g.queued[r.JobID]
	waits := r.Kind == trip.Backfill || r.Attempt > 1 || r.Group > 0 || g.woke(r)
	if !waits && waiting >= j.def.Spec.QueueMax() {
		return refusal(job.Skipped, job.ReasonGroupFull, "group %s %s, %s already waiting", name, g.lacks(), waitingDueTimes(waiting))
	}

	return &verdict{action: wait, place: trip.GroupPlace(r, g.ID, j.def.Spec.Priority), turn: r.Launch.Run}
}

// free returns the number of starts that are free for a run. Runs that were woken for a slot a
// moment ago go first. If runs already wait for the rate of the group, new runs join the line, so
// the line decides which run is next.
func (g *groupScene) free(r *trip.Run, now job.Micros) int {
	at := startOf(r, now)
	switch {
	case r.Group > 0: // it holds a slot already
		return g.Admits(at)
	case g.woke(r):
		return g.Free(at)
	case g.lined:
		return 0
	}
	return g.Free(at) - g.woken
}

// startOf returns the instant at which a run begins if it is started now.
func startOf(r *trip.Run, now job.Micros) job.Micros { return max(r.DueNow, now) }

// lacks says why a group admits no run.
func (g *groupScene) lacks() string {
	if g.Slots > g.Taken {
		return "admits no start now (rate " + g.Rate.String() + ")"
	}
	return "has no free slot"
}

// woke reports whether a run was woken for a slot of the group.
func (g *groupScene) woke(r *trip.Run) bool { return r.Group == -g.ID }

// takeSlot updates the scene for a run that starts in its group.
func (j *jobScene) takeSlot(v *verdict) {
	switch g := j.group; {
	case v.run.Group > 0: // it holds a slot already
		v.group = v.run.Group
	case g != nil:
		v.group = g.ID
		v.takes = true
		g.Taken++
	}
	if g := j.group; g != nil && g.Group != nil && g.Rate.Any() {
		v.rated = g.ID
		g.Count(v.begins)
	}
}

// giveSlot updates the scene for a run that gives back the slot that it holds.
func (j *jobScene) giveSlot(v *verdict) {
	if v.run.Group > 0 {
		v.gives = true
		j.slots[v.run.Group].Taken--
	}
}
