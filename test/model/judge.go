package model

// verdict is the decision of a start about a run.
type verdict uint8

const (
	begin  verdict = iota
	later          // judge again at the due time, or when a row is free
	refuse         // ended, final
	wait
	never // its job row is gone and no step ends it (only without EndDeleted)
)

// judge decides about a run that is due or nearly due. It also returns 1 + the run that it
// must wait for, or that is the reason for a refusal; 0 without such a run.
func (w *World) judge(s *S, run uint8) (verdict, uint8) {
	k := w.Job[run]
	j, r := &s.job[k], &s.run[run]
	switch {
	case j.deleted && !w.EndDeleted:
		return never, 0
	case j.deleted:
		return refuse, 0
	case j.paused:
		return w.whenDue(s, run, refuse), 0
	}

	if policy := w.policy(s, k); policy != Allow {
		if v, other := w.overlap(s, run, policy); v != begin {
			return w.whenDue(s, run, v), other
		}
	}

	if w.inGroup(s, k) && s.taken >= w.Slots && !r.slot {
		return w.whenDue(s, run, wait), 0
	}
	return begin, 0
}

// overlap judges a run by the other runs of its job.
func (w *World) overlap(s *S, run uint8, policy Overlap) (verdict, uint8) {
	busy := w.executes(s, run)
	retry := s.run[run].attempt > 0
	switch {
	case busy && retry && w.RetryWaits:
		return wait, s.job[w.Job[run]].running

	case policy == Queue && (busy || w.InOrder && w.earlierWaits(s, run)):
		return wait, s.job[w.Job[run]].running

	case policy == Replace && w.Newer && w.replacedBy(s, run):
		return refuse, 0

	case policy == Replace && busy:
		return wait, s.job[w.Job[run]].running

	case busy:
		return refuse, s.job[w.Job[run]].running
	}
	return begin, 0
}

// replacedBy reports whether a later due time of the job executes or waits.
func (w *World) replacedBy(s *S, run uint8) bool {
	for e := run + 1; e < w.Runs; e++ {
		if st := s.run[e].state; w.Job[e] == w.Job[run] && (st == executing || st == waiting) {
			return true
		}
	}
	return false
}

// whenDue delays a verdict that would be final before the due time: a pause or another run may be
// over by then.
func (w *World) whenDue(s *S, run uint8, v verdict) verdict {
	if v != begin && w.RefuseLate && !w.isDue(s, run) {
		return later
	}
	return v
}
