// Package boottime is a clock that also runs while the machine is suspended, and that nobody can set.
package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now reads CLOCK_BOOTTIME: time since boot, suspension included.
func Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("CLOCK_BOOTTIME: " + err.Error()) // there since Linux 2.6.39
	}
	return time.Duration(t.Nano())
}
