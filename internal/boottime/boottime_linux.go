// Package boottime is a clock that also runs while the machine is suspended, and that cannot be
// set.
package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now reads CLOCK_BOOTTIME: the time since boot, including suspensions.
func Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("CLOCK_BOOTTIME: " + err.Error()) // exists since Linux 2.6.39
	}
	return time.Duration(t.Nano())
}
