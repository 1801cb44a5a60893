package schedule

import (
	"sync"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// room counts what is being started, so that looks that run side by side do not start more than there are free slots for. It
// counts in HTTP requests: job.CallsPerSlot of them share a slot, and everything else takes a whole one.
type room struct {
	mu       sync.Mutex
	reserved int
}

// reserve takes room for up to n runs, and returns how much it got.
func (s *Starter) reserve(n int) int {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	got := max(0, min(n*job.CallsPerSlot, s.Executing.Free()*job.CallsPerSlot-s.room.reserved))
	s.room.reserved += got
	return got
}

// unreserve gives room back: what was started is counted by the executing set.
func (s *Starter) unreserve(room int) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.room.reserved -= room
}

// cost is how much room a run of a job takes.
func (s *Starter) cost(jobID int64) int {
	if d := s.Definitions.Latest(jobID); d != nil && d.Err == nil && d.Spec.HTTP != nil {
		return 1
	}
	return job.CallsPerSlot
}

// fit returns how many of the runs, from the first on, there is room for, and how much of it they take.
func (s *Starter) fit(runs []trip.Run, room int) (n, taken int) {
	for n < len(runs) {
		cost := s.cost(runs[n].JobID)
		if taken+cost > room {
			break
		}
		taken += cost
		n++
	}
	return n, taken
}
