package schedule

import (
	"sync/atomic"
	"time"

	"go-crontab/job"
)

// lead is how long before the due instant a start may be committed: as long as that takes, measured, and no
// longer, because a node that dies between the two loses a run that never began.
type lead struct {
	need atomic.Int64 // with what it waited for the starts before it
	took atomic.Int64 // of itself, from the reading of the clock to the change of the sets
}

const (
	minLead = 10 * time.Millisecond
	maxLead = 250 * time.Millisecond
	// calm is after how many starts a high measurement has lost about two thirds of its weight. A disk that was
	// slow a moment ago is slow again soon.
	calm = 1024
	// maxWindow bounds spawn windows. No node may have a longer one: who pauses an app waits for that in the worst case.
	maxWindow = 10 * time.Second
	// roundTrips is how many of them a start needs, and one more.
	roundTrips = 5
)

// get returns the lead: half as much again as what was needed lately.
func (l *lead) get() time.Duration {
	return min(maxLead, max(minLead, time.Duration(l.need.Load())*3/2))
}

// measure learns what a start needed: the time it waited for the starts before it, and its own.
func (l *lead) measure(need time.Duration) {
	old := time.Duration(l.need.Load())
	l.need.Store(int64(min(maxLead, max(need, old-old/calm))))
}

// learn learns how long the transaction of a start took, the change of the sets included. What is longer than windows go by
// would only take longer to be forgotten.
func (l *lead) learn(took time.Duration) {
	old := time.Duration(l.took.Load())
	l.took.Store(int64(max(min(took, maxWindow/3), old-old/calm)))
}

// window is for how long after its due instant, or the reading of the clock at the beginning of its start if that is later,
// an attempt may be spawned. Far from MySQL that reading is old by the time that the start is known to be committed.
func (l *lead) window(roundTrip time.Duration) time.Duration {
	need := max(time.Duration(l.took.Load()), roundTrips*roundTrip)
	return min(maxWindow, max(job.SpawnWindow*time.Microsecond, 3*need))
}
