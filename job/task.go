package job

import "fmt"

// State is where a task stands on its trip. A task that ended has no state: its row is gone and a run is there.
type State int8

// The states, in the order in which a task passes them.
const (
	Idle      State = 0 // planned, nobody's
	Prepare   State = 1 // claimed by a session, in its prepare set
	Executing State = 2 // start committed, in its session's executing set
	Waiting   State = 3 // due, nobody's, and held back until something else ends
)

func (s State) String() string {
	switch s {
	case Idle:
		return "idle"
	case Prepare:
		return "prepare"
	case Executing:
		return "executing"
	case Waiting:
		return "waiting"
	}
	return fmt.Sprintf("state(%d)", int8(s))
}

// Task is one due time of one job.
type Task struct {
	ID       int64
	JobID    int64
	Due      Micros // the planned instant
	DueNow   Micros // when to start it: Due, or later after a retry
	Origin   int64  // 0: the schedule; else the request that asked for it
	Hash     int    // fine hash of the job; a bucket is a range of hashes
	Place    int    // which nodes may take it; 0: any
	Priority int    // the higher goes first when there is no room for all
	Attempt  int    // 1 for the first
	Launch   Launch // zero while idle
}
