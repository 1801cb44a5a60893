package session

import (
	"sync/atomic"
	"time"
)

// lease remembers when the last good beat was sent. Its clock is boottime.Now. Unlike Go's
// monotonic clock, that does not stop while the machine is suspended. Some tests set a clock of
// their own.
type lease struct {
	sent  atomic.Int64
	clock func() time.Duration
}

// renew counts the lease from sent, a reading of boottime.Now. If the lease already counts from a
// later instant, renew does nothing.
func (l *lease) renew(sent time.Duration) {
	for {
		old := l.sent.Load()
		if old >= int64(sent) || l.sent.CompareAndSwap(old, int64(sent)) {
			return
		}
	}
}

// age returns the time since the last good beat was sent.
func (l *lease) age() time.Duration {
	return l.clock() - time.Duration(l.sent.Load())
}
