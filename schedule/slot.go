package schedule

import (
	"go-crontab/job"
	"go-crontab/sql/trip"
)

// heldSlot: a run that was started and never spawned still holds the slot of its first start. Any
// verdict on this run needs the lock of that group.
func heldSlot(r *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if r.Group > 0 && j.slots[r.Group] == nil {
		return &verdict{action: hold} // another transaction has locked the group
	}
	return nil
}

// slot: a run of a job in a group takes a slot of the group, or waits for one.
func slot(r *trip.Run, j *jobScene, _ job.Micros) *verdict {
	name := j.def.Spec.Group
	g := j.group
	switch {
	case name == "", r.Group > 0:
		return nil
	case g == nil:
		return &verdict{action: hold} // another transaction has locked the group, or the job joined it a moment ago
	case g.Group == nil:
		return refusal(job.Skipped, job.ReasonGroupMissing, "group %s does not exist", name)
	case g.free(r) > 0:
		return nil
	}

	waiting := g.queued[r.JobID]
	if waiting >= j.def.Spec.QueueMax() && r.Kind != trip.Backfill && r.Attempt == 1 && !g.woke(r) {
		return refusal(job.Skipped, job.ReasonGroupFull,
			"group %s has no free slot, %s already waiting", name, waitingDueTimes(waiting))
	}

	return &verdict{action: wait, place: trip.GroupPlace(r, g.ID, j.def.Spec.Priority), turn: r.Launch.Run}
}

// free returns the number of slots that are free for a run. Runs that were woken for a slot a
// moment ago go first.
func (g *groupScene) free(r *trip.Run) int {
	free := g.Slots - g.Taken
	if !g.woke(r) {
		free -= g.woken
	}
	return free
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
}

// giveSlot updates the scene for a run that gives back the slot that it holds.
func (j *jobScene) giveSlot(v *verdict) {
	if v.run.Group > 0 {
		v.gives = true
		j.slots[v.run.Group].Taken--
	}
}
