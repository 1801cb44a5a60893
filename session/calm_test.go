package session

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
)

// TestCalm: who is alone asks for sessions at one look in five, who is not at each; and either sees a new session at the
// first look that asks.
func TestCalm(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	r, _ := f.reaper(s)
	var alone bool
	r.Alone = func() bool { return alone }
	var asked atomic.Int64
	f.proxy.OnCommand(func(c faultproxy.Command) {
		if faultproxy.SQL("FROM session s")(c) {
			asked.Add(1)
		}
	})
	looks := func(what string, n int, want int64) {
		t.Helper()
		asked.Store(0)
		for range n {
			if err := r.reap(t.Context(), at(0)); err != nil {
				t.Fatal(err)
			}
		}
		if asked.Load() != want {
			t.Errorf("%s: %d looks asked %d times, want %d", what, n, asked.Load(), want)
		}
	}
	members := func(what string, want int) {
		t.Helper()
		if _, of, _ := s.Share(); of != want {
			t.Errorf("%s: %d sessions share the work, want %d", what, of, want)
		}
	}
	looks("the first", 1, 1)
	looks("not alone, as far as it knows", calmLooks, calmLooks)
	looks("then a close one", 1, 1)
	alone = true
	looks("alone", calmLooks, 0)
	looks("then a close one", 1, 1)
	members("alone", 1)

	f.peer(200)
	looks("somebody has come, and nobody has seen that", calmLooks, 0)
	members("not seen yet", 1)
	looks("the first that asks", 1, 1)
	members("seen", 2)
	looks("alone is wrong", 3, 3) // the rows of the last look count for more
	alone = false

	f.peer(201)
	looks("not alone, and calm", 1, 2) // it is not as it was, so it looks closely
	members("seen at the next look, however calm", 3)
}

// TestWokenWhenAnotherJoins: a session that is alone, and calm, looks at once when it is woken, whatever it still believes.
func TestWokenWhenAnotherJoins(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	s.Timings.Scan = time.Hour // so that it is not its own look that sees it
	r, _ := f.reaper(s)
	r.Alone = func() bool { return true }
	r = NewReaper(*r)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer func() { end(); <-done }()
	for want := 1; want <= 3; want++ {
		r.Wake()
		for until := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if _, of, _ := s.Share(); of == want {
				break
			} else if time.Now().After(until) {
				t.Fatalf("10 s after it was woken: %d sessions share the work, want %d", of, want)
			}
		}
		f.peer(byte(200 + want))
	}
}

// TestSeenWithoutAWake: a session that is calm, and that nobody wakes, sees another one within four scans.
func TestSeenWithoutAWake(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	f.peer(200)
	s.Timings.Scan, s.Timings.Beat = 2*time.Second, time.Hour // all of them beat as they should
	changed := make(chan struct{}, 10)
	r := NewReaper(Reaper{DB: f.db, Session: s, Changed: func() { changed <- struct{}{} }, Alone: func() bool { return false }, Log: f.log})
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer func() { end(); <-done }()
	<-changed                                     // the first look
	time.Sleep(s.Timings.Scan + s.Timings.Scan/2) // it is calm now
	f.peer(201)
	began := time.Now()
	select {
	case <-changed:
		t.Logf("seen after %s", time.Since(began).Round(time.Millisecond))
	case <-time.After(8 * s.Timings.Scan): // twice as long, for a slow machine; without a look at each scan it takes longer still
		t.Error("not within four scans: a new session was seen")
	}
}
