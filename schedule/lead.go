package schedule

import (
	"sync/atomic"
	"time"
)

// lead is how long before the due instant a start may be committed: as long as that takes, measured, and no
// longer, because a node that dies between the two loses a run that never began.
type lead struct{ need atomic.Int64 }

const (
	minLead = 10 * time.Millisecond
	maxLead = 250 * time.Millisecond
	// calm is after how many starts a high measurement has lost about two thirds of its weight. A disk that was
	// slow a moment ago is slow again soon.
	calm = 1024
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
