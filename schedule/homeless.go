package schedule

import (
	"context"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// A run that no living node may run stays idle and waits for a node. A run of the schedule ends
// missed once its job's rules would no longer start it. If its app is paused when the run is due,
// the run ends skipped, as on any node. Manual runs wait without limit, because no later due time
// replaces them.

// homeless returns the runs among others that must end now: no living node may run them, and they
// are too late or a stop ends them.
func (s *Starter) homeless(ctx context.Context, others []trip.Held, now job.Micros) (out []trip.Held) {
	share := shareOf(s.Session) // each run is in the share of one node, and only that node ends the run
	runs := make([]trip.Run, len(others))
	for i := range others {
		runs[i] = others[i].Run
	}

	stops, _ := s.Stops.now()
	ends := s.homelessOnes(ctx, runs, stops, now)
	for _, h := range others {
		version, _ := s.Definitions.latestOf(h.JobID)
		mine := h.Hash >= share.FromHash && h.Hash < share.ToHash
		if mine && len(out) < startBatch && h.Kind == trip.Schedule && ends[lateRun{h.JobID, version, h.Due}] {
			out = append(out, h)
		}
	}

	return out
}

// homelessOnes returns the runs that must end because no living node may run them. It goes by the
// latest definitions that the node has cached.
func (s *Starter) homelessOnes(
	ctx context.Context, runs []trip.Run, stops []trip.Stop, now job.Micros,
) map[lateRun]bool {
	peers := s.Session.Peers()
	if len(peers) == 0 {
		return nil // the living nodes are not known yet
	}

	var ends map[lateRun]bool
	for i := range runs {
		r := &runs[i]
		version, d := s.Definitions.latestOf(r.JobID)
		if d == nil || d.Err != nil || d.admits(s.Labels) || admittedBy(d, peers) ||
			!stopped(r, stops, now) && !s.tooLate(ctx, r, d, now) {
			continue
		}
		if ends == nil {
			ends = map[lateRun]bool{}
		}
		ends[lateRun{r.JobID, version, r.Due}] = true
	}

	return ends
}

func admittedBy(d *Definition, peers []map[string]string) bool {
	for _, labels := range peers {
		if d.admits(labels) {
			return true
		}
	}
	return false
}

// stopped reports whether a stop ends a due run of the schedule. The answer is the same on all
// nodes.
func stopped(r *trip.Run, stops []trip.Stop, now job.Micros) bool {
	if r.Kind != trip.Schedule || r.DueNow > now {
		return false
	}
	j := &jobScene{stops: stops}
	return pausedJob(r, j, now) != nil || restoredDatabase(r, j, now) != nil
}

// tooLate reports whether a run that waits for a node would no longer start even if a node
// appeared.
func (s *Starter) tooLate(ctx context.Context, r *trip.Run, d *Definition, now job.Micros) bool {
	late := now.Sub(r.DueNow)
	deadline := time.Duration(d.Spec.StartDeadline)
	switch {
	case r.Kind != trip.Schedule || late <= patience:
		return false
	case deadline > 0 && r.Attempt == 1 && now.Sub(r.Due) > deadline:
		return true
	case late <= d.Spec.MissedAfter():
		return false
	}

	work := job.NewWork(ctx, quickWork)
	return !startsLate(d.Spec, work.On(d.Schedule), r.Due, now) && work.Err() == nil
}
