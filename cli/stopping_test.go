//go:build unix

package cli

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestRepeatedSignals: a SIGTERM to a process and to its group counts once, and must not kill the
// commands at once.
func TestRepeatedSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r repeats
		for i, step := range []struct {
			sig      syscall.Signal
			repeated bool
			after    time.Duration
		}{
			{syscall.SIGTERM, false, time.Millisecond},
			{syscall.SIGTERM, true, 900 * time.Millisecond},
			{syscall.SIGINT, false, 10 * time.Millisecond},
			{syscall.SIGINT, false, 100 * time.Millisecond},
			{syscall.SIGTERM, false, 0}, // more than a second after the first one
			{syscall.SIGTERM, true, 0},
		} {
			if got := r.repeated(step.sig); got != step.repeated {
				t.Errorf("signal %d: got repeated %v, want %v", i, got, step.repeated)
			}
			time.Sleep(step.after)
		}
	})
}
