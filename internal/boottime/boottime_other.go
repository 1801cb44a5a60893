//go:build !linux && !darwin

// Package boottime is a clock that cannot be set.
package boottime

import "time"

var start = time.Now()

// Now reads the monotonic clock. On some systems it stops while the machine is suspended.
func Now() time.Duration { return time.Since(start) }
