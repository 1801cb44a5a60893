package job

import (
	"testing"
	"time"
)

func TestLateClasses(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{-time.Second, 0, 1, lateFirst, lateFirst + 1, 125 * time.Microsecond,
		126 * time.Microsecond, time.Millisecond, 37 * time.Millisecond,
		time.Second, time.Minute, 55 * time.Minute} {
		k := LateClass(late)
		bound := LateBound(k)
		if late > bound || k > 0 && late <= LateBound(k-1) || k > 0 && float64(bound) > 1.2501*float64(late) {
			t.Errorf("%s: class %d ends at %s, and the one before at %s", late, k, bound, LateBound(k-1))
		}
	}

	if got := LateClass(1000 * time.Hour); got != LateClasses-1 {
		t.Errorf("far too late: got class %d, want the last", got)
	}

	if LateBound(LateClasses-1) < time.Hour {
		t.Errorf("the last class begins at %s", LateBound(LateClasses-2))
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	var l, more Lates
	if _, ok := l.Quantile(0.5); ok {
		t.Error("of nothing there is a quantile")
	}

	for range 98 {
		l[LateClass(time.Millisecond)]++
	}

	more[LateClass(time.Second)] = 2
	l.Add(&more)
	for share, least := range map[float64]time.Duration{0.01: time.Millisecond, 0.5: time.Millisecond,
		0.98: time.Millisecond, 0.99: time.Second, 1: time.Second} {
		got, ok := l.Quantile(share)
		if !ok || got < least || got > least*5/4 {
			t.Errorf("%g: got %s, want %s or up to a quarter more", share, got, least)
		}
	}
}
