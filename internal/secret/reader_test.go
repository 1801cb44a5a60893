package secret

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// TestReaderLooksOnce has many callers ask for secrets while no connection is free, so that a read
// takes long. They must cause two reads at most, and a caller that gives up must not fail the
// others.
func TestReaderLooksOnce(t *testing.T) {
	t.Parallel()
	s := &Store{DB: open(t), Keys: ring(t, NewKey())}
	put(t, s, "pg", "", "value")
	put(t, s, "hook", "", "another")
	r := NewReader(s.DB, s.Keys)
	release := hold(t, s.DB)
	began := s.DB.Meter().Statements.Load()

	impatient, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	var temporary interface{ Temporary() bool }
	if _, err := r.Values(impatient, "", []job.Secret{"pg"}); !errors.Is(err, context.Canceled) ||
		!errors.As(err, &temporary) {
		t.Errorf("one who does not wait: got %v", err)
	}

	var asking sync.WaitGroup
	for name, want := range map[job.Secret]string{"pg": "value", "hook": "another", "none": ""} {
		for range 10 {
			asking.Go(func() {
				if got, err := r.Values(t.Context(), "", []job.Secret{name}); err != nil || got[name] != want {
					t.Errorf("%s: got %q, %v", name, got[name], err)
				}
			})
		}
	}

	time.Sleep(100 * time.Millisecond) // all of them have asked by now
	release()
	asking.Wait()
	if n := s.DB.Meter().Statements.Load() - began; n != 2 {
		t.Errorf("%d statements, want that of the first one, and another for all others", n)
	}
}

// TestReaderTellsAppsApart has jobs of two apps ask for one name at once.
func TestReaderTellsAppsApart(t *testing.T) {
	t.Parallel()
	s := &Store{DB: open(t), Keys: ring(t, NewKey())}
	put(t, s, "pg", "", "of all")
	put(t, s, "pg", "alpha", "of alpha")
	put(t, s, "pg", "beta", "of beta")
	put(t, s, "own", "beta", "beta's alone")
	r := NewReader(s.DB, s.Keys)
	var asking sync.WaitGroup
	for app, want := range map[string]string{"alpha": "of alpha ", "beta": "of beta beta's alone", "gamma": "of all ",
		"": "of all "} {
		for range 5 {
			asking.Go(func() {
				got, err := r.Values(t.Context(), app, []job.Secret{"pg", "own"})
				if text := got["pg"] + " " + got["own"]; err != nil || text != want {
					t.Errorf("%q: got %q, %v, want %q", app, text, err, want)
				}
			})
		}
	}

	asking.Wait()
}

// TestReaderServesWhoWaited checks a read that took longer than MaxAge. Its result is for callers
// that asked early in the read, and for no later ones: all nodes must use a new value after MaxAge.
func TestReaderServesWhoWaited(t *testing.T) {
	t.Parallel()
	s := &Store{DB: open(t), Keys: ring(t, NewKey())}
	put(t, s, "pg", "", "value")
	r := NewReader(s.DB, s.Keys)
	release := hold(t, s.DB)
	began, now := s.DB.Meter().Statements.Load(), time.Now()

	var asking sync.WaitGroup
	ask := func(after time.Duration) {
		asking.Go(func() {
			if rows, err := r.rows(t.Context(), wanted("", []job.Secret{"pg"}), now.Add(after)); err != nil ||
				len(rows) != 1 {
				t.Errorf("after %s: got %d rows, %v", after, len(rows), err)
			}
		})
	}

	waits := func(next bool) {
		t.Helper()
		for end := now.Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			r.mu.Lock()
			there := r.current != nil && (r.next != nil) == next
			r.mu.Unlock()
			if there {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("nobody asks, or too many looks are asked for; want a second one: %v", next)
			}
		}
	}

	ask(0)
	waits(false)
	ask(MaxAge)
	time.Sleep(50 * time.Millisecond)
	waits(false)
	ask(MaxAge + 1)
	waits(true)
	release()
	asking.Wait()
	if n := s.DB.Meter().Statements.Load() - began; n != 2 {
		t.Errorf("%d statements, want 2", n)
	}
}

// hold takes all connections of a pool until release is called.
func hold(t *testing.T, db *sql.DB) (release func()) {
	t.Helper()
	var free []func() error
	for range db.Raw().Stats().MaxOpenConnections {
		c, err := db.Raw().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		free = append(free, c.Close)
	}

	release = sync.OnceFunc(func() {
		for _, f := range free {
			_ = f()
		}
	})

	t.Cleanup(release)
	return release
}
