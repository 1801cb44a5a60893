package session

import (
	"sync/atomic"
	"time"

	"go-crontab/internal/boottime"
)

// lease remembers when the last good beat was sent. Its clock (see boottime.Now) also runs while
// the machine is suspended; Go's monotonic clock does not.
type lease struct {
	sent  atomic.Int64
	clock func() time.Duration // boottime.Now where it is nil; tests that have a time of their own set it
}

// renew counts the lease from sent, a reading of boottime.Now, unless it counts from later already.
func (l *lease) renew(sent time.Duration) {
	for {
		old := l.sent.Load()
		if old >= int64(sent) || l.sent.CompareAndSwap(old, int64(sent)) {
			return
		}
	}
}

// age is how long ago the last good beat was sent.
func (l *lease) age() time.Duration {
	now := boottime.Now
	if l.clock != nil {
		now = l.clock
	}
	return now() - time.Duration(l.sent.Load())
}
