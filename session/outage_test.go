package session

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestOutage: an outage is one line at its begin and one at its end, whatever fails in between.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		o := NewOutage(slog.New(slog.NewTextHandler(&out, nil)))
		o.Lost(5) // before the outage
		if o.End() {
			t.Error("an outage that never began has ended")
		}

		now := time.Now()
		for range 3 {
			o.Begin(errors.New("connection refused"), now.Add(8*time.Second), now.Add(12*time.Second), 2)
			time.Sleep(10 * time.Second)
		}
		o.Lost(2)
		if !o.On() || !o.End() || o.End() || o.On() {
			t.Error("want an end, once")
		}

		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "MySQL lost") ||
			!strings.Contains(lines[0], `error="connection refused"`) ||
			!strings.Contains(lines[0], "commands_die_at="+now.Add(12*time.Second).Format("2006-01-02T15:04:05")) ||
			!strings.Contains(lines[1], `msg="MySQL back" after=30s runs_lost=2`) {
			t.Errorf("got %q", lines)
		}
	})
}
