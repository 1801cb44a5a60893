package trace

import (
	"sync"
	"time"
)

// pace lets one event pass per interval.
type pace struct {
	mu   sync.Mutex
	next time.Time
}

// pass reports whether the event may pass, and starts the next interval if so.
func (a *pace) pass(now time.Time, every time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()

	if now.Before(a.next) {
		return false
	}
	a.next = now.Add(every)
	return true
}
