package session

import (
	"context"
	"go-crontab/internal/boottime"
	"testing"
	"time"
)

// TestWokenWhenAnotherJoins: a calm reaper looks at once when it is woken, even if Alone is out of
// date.
func TestWokenWhenAnotherJoins(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	s.Timings.Scan = time.Hour // so that only the wake can make it look
	r, _ := f.reaper(s)
	r.Lookout = &surroundings{alone: true} // according to an old glance
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer func() { end(); <-done }()
	for want := 1; want <= 3; want++ {
		r.Wake.Up()
		for until := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if _, of := s.Share(); of == want {
				break
			} else if time.Now().After(until) {
				t.Fatalf("10 s after it was woken: %d sessions share the work, want %d", of, want)
			}
		}
		f.peer(byte(200 + want))
	}
}

// TestSeenWithoutAWake: a calm reaper sees a new session within four scans without being woken.
func TestSeenWithoutAWake(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	f.peer(200)
	s.Timings.Scan, s.Timings.Beat = 2*time.Second, time.Hour // every session beats often enough
	r, calls := f.reaper(s)
	changed := calls.changed
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer func() { end(); <-done }()
	<-changed                                     // the first look
	time.Sleep(s.Timings.Scan + s.Timings.Scan/2) // now it is calm
	f.peer(201)
	began := time.Now()
	select {
	case <-changed:
		t.Logf("seen after %s", time.Since(began).Round(time.Millisecond))
	// Twice that, for a slow machine. Without a look at each scan it would take even longer.
	case <-time.After(8 * s.Timings.Scan):
		t.Error("not within four scans: a new session was seen")
	}
}

// TestNobodyToWatch: a session that was alone a moment ago does not read the sessions.
func TestNobodyToWatch(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	r, _ := f.reaper(s)
	around := &surroundings{alone: true}
	r.Lookout = around
	for range 2 { // the first look always happens
		if err := r.reap(t.Context(), boottime.Now); err != nil {
			t.Fatal(err)
		}
	}

	f.peer(200)
	look := func() int {
		t.Helper()
		if err := r.reap(t.Context(), boottime.Now); err != nil {
			t.Fatal(err)
		}
		_, of := s.Share()
		return of
	}

	if of := look(); of != 1 {
		t.Errorf("%d sessions share the work, want 1: it has looked", of)
	}
	if around.alone = false; look() != 2 {
		t.Error("it has not seen the other one")
	}
}
