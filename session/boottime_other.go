//go:build !linux

package session

import "time"

var start = time.Now()

// boottime is the monotonic clock, which on some systems stops while the machine is suspended.
func boottime() time.Duration { return time.Since(start) }
