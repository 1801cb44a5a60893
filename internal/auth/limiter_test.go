package auth

import (
	"fmt"
	"testing"
	"time"
)

func TestLimiter(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	l := Limiter{Every: 100 * time.Millisecond, Burst: 3}
	for i := range 3 {
		if wait, ok := l.Take("a", now, 0); !ok || wait != 0 {
			t.Fatalf("take %d of a burst of 3: got %s, %v", i+1, wait, ok)
		}
	}

	if wait, ok := l.Take("a", now, 0); ok || wait != 100*time.Millisecond {
		t.Errorf("beyond the burst: got %s, %v; want refused for 100ms", wait, ok)
	}
	if wait, ok := l.Take("b", now, 0); !ok || wait != 0 {
		t.Errorf("another key: got %s, %v", wait, ok)
	}

	for i := 1; i <= 2; i++ {
		if wait, ok := l.Take("a", now, 200*time.Millisecond); !ok || wait != time.Duration(i)*100*time.Millisecond {
			t.Errorf("in line, place %d: got %s, %v", i, wait, ok)
		}
	}

	if _, ok := l.Take("a", now, 200*time.Millisecond); ok {
		t.Error("the line is longer than it may be")
	}

	l.Give("a")
	if wait, ok := l.Take("a", now, 200*time.Millisecond); !ok || wait != 200*time.Millisecond {
		t.Errorf("in a place that was given back: got %s, %v", wait, ok)
	}

	l.Give("nobody")
	now = now.Add(300 * time.Millisecond)
	if got := l.Wait("a", now); got != 0 {
		t.Errorf("after a while: got %s to wait", got)
	}

	taken := 0
	for end := now.Add(10 * time.Second); now.Before(end); now = now.Add(7 * time.Millisecond) {
		if _, ok := l.Take("a", now, 0); ok {
			taken++
		}
	}

	if taken < 99 || taken > 103 {
		t.Errorf("in 10s at 10 a second: got %d", taken)
	}
}

// TestLimiterIsBounded checks that a flood of keys costs bounded memory and does not keep callers
// out for good.
func TestLimiterIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	l := Limiter{Every: time.Hour, Burst: 1}
	for i := range 3 * maxKeys {
		l.Take(fmt.Sprint(i), now, 0)
		if len(l.free) > maxKeys {
			t.Fatalf("%d keys are kept, want at most %d", len(l.free), maxKeys)
		}
	}
}

func TestAddressKey(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"10.1.2.3": "10.1.2.3", "::ffff:10.1.2.3": "10.1.2.3", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"fe80::1%eth0": "fe80::/64", "odd": "odd", "": "",
	} {
		if got := AddressKey(address); got != want {
			t.Errorf("%q: got %q, want %q", address, got, want)
		}
	}
}
