package trace

import (
	"sync"
	"time"
)

// pace lets one through in each length of time.
type pace struct {
	mu   sync.Mutex
	next time.Time
}

func (a *pace) pass(now time.Time, every time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Before(a.next) {
		return false
	}
	a.next = now.Add(every)
	return true
}
