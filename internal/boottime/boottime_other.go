//go:build !linux && !darwin

// Package boottime is a clock that nobody can set.
package boottime

import "time"

var start = time.Now()

// Now is the monotonic clock, which on some systems stops while the machine is suspended.
func Now() time.Duration { return time.Since(start) }
