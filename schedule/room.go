package schedule

import (
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// room counts the starts under way, so parallel looks together do not start more runs than there
// are free slots. The unit of room is one HTTP request: job.CallsPerSlot requests share a slot.
// Any other run takes a whole slot.
type room struct {
	mu       sync.Mutex
	reserved int
}

// reserve takes room for up to n runs, and returns the room that it got.
func (s *Starter) reserve(n int) int {
	n = min(n, s.portion.left(time.Now(), s.Executing.TooLate()))
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	got := max(0, min(n*job.CallsPerSlot, s.Executing.Free()*job.CallsPerSlot-s.room.reserved))
	s.room.reserved += got
	return got
}

// unreserve gives room back, once the executing set counts the started runs.
func (s *Starter) unreserve(room int) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.room.reserved -= room
}

// cost returns the room that a run of a job takes.
func (s *Starter) cost(jobID int64) int {
	if d := s.Definitions.Latest(jobID); d != nil && d.Err == nil && d.Spec.HTTP != nil {
		return 1
	}
	return job.CallsPerSlot
}

// fit counts the first runs that fit into the room together. It returns their number and the room
// that they take.
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
