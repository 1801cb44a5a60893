// Package boottime is a clock that also runs while the machine sleeps, and that cannot be set.
package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now reads CLOCK_MONOTONIC, which includes sleep on macOS. Go's own clock does not.
func Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("CLOCK_MONOTONIC: " + err.Error()) // exists since macOS 10.12
	}
	return time.Duration(t.Nano())
}
