package schedule

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLead(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	for name, c := range map[string]struct {
		needs []time.Duration
		want  time.Duration
	}{
		"nothing measured yet":               {nil, minLead},
		"starts that are fast":               {[]time.Duration{ms, 2 * ms}, minLead},
		"half as much again as was needed":   {[]time.Duration{40 * ms}, 60 * ms},
		"what rises counts at once":          {[]time.Duration{10 * ms, 40 * ms}, 60 * ms},
		"what falls is not believed at once": {[]time.Duration{102400 * time.Microsecond, ms}, 153450 * time.Microsecond},
		"bounded":                            {[]time.Duration{10 * time.Second}, maxLead},
		"a start that began before its time": {[]time.Duration{-time.Second}, minLead},
	} {
		var l lead
		for _, n := range c.needs {
			l.measure(n)
		}
		if got := l.get(); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	var l lead
	l.measure(100 * ms)
	for range calm {
		l.measure(0)
	}
	if got := time.Duration(l.need.Load()); got < 36*ms || got > 38*ms {
		t.Errorf("after %d fast starts: got %s of 100ms left, want about a third", calm, got)
	}
	rapid.Check(t, func(t *rapid.T) {
		var l lead
		for _, n := range rapid.SliceOf(rapid.Int64Range(-1e9, 10e9)).Draw(t, "needs") {
			l.measure(time.Duration(n))
			got := l.get()
			if got < minLead || got > maxLead {
				t.Fatalf("got %s, want %s to %s", got, minLead, maxLead)
			}
			if n := time.Duration(n); n <= maxLead && got < min(maxLead, n) {
				t.Fatalf("got %s after a start that needed %s", got, n)
			}
		}
	})
}

// TestLongStart: one that took minutes, because somebody was away, is forgotten as soon as one that took as long as windows
// go by.
func TestLongStart(t *testing.T) {
	t.Parallel()
	var l lead
	l.learn(5 * time.Minute)
	if got := l.window(0); got > maxWindow || got < maxWindow-time.Microsecond {
		t.Errorf("got a window of %s, want %s", got, maxWindow)
	}
	for range 5 * calm / 2 {
		l.learn(time.Millisecond)
	}
	if got := l.window(0); got != time.Second {
		t.Errorf("after %d fast starts: got a window of %s, want a second", 5*calm/2, got)
	}
}
