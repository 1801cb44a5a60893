package session

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/internal/boottime"
	"go-crontab/sql"
)

// TestNameVerdicts: the conclusions of a node that waits to join, from its looks at a session with
// its name.
func TestNameVerdicts(t *testing.T) {
	t.Parallel()
	timings, err := NewTimings(DefaultExpiry) // beats every 2 s, stale after 8 s
	if err != nil {
		t.Fatal(err)
	}

	type look struct {
		after    time.Duration // since the first look
		beat     int64
		age      time.Duration
		draining bool
	}
	const s = time.Second
	held, refused := errNameHeld, sql.ErrRefuseJoin
	for name, c := range map[string]struct {
		looks []look
		want  error // of the last look; every earlier look returns errNameHeld
	}{
		"the first look decides nothing":            {[]look{{0, 7, s, false}}, held},
		"one new beat may be a dead process's last": {[]look{{0, 7, s, false}, {2 * s, 8, 0, false}}, held},
		"two new beats are a live node's": {
			[]look{{0, 7, s, false}, {2 * s, 8, 0, false}, {4 * s, 9, 0, false}}, refused,
		},
		"also of a session that was just inserted": {
			[]look{{0, 0, 0, false}, {s / 5, 1, 0, false}, {2 * s, 2, 0, false}}, refused,
		},
		"three beats are missed": {
			[]look{{0, 7, s, false}, {6 * s, 7, 7 * s, false}, {6*s + 1, 7, 7*s + 1, false}}, nil,
		},
		"three beats are missed after a new one": {
			[]look{{0, 7, s, false}, {s, 8, 0, false}, {7 * s, 8, 6 * s, false}, {7*s + 1, 8, 6 * s, false}}, nil,
		},
		"two beats are missed":                       {[]look{{0, 7, s, false}, {4 * s, 7, 5 * s, false}}, held},
		"the last beat is older than a lease can be": {[]look{{0, 7, 8*s + 1, false}}, nil},
		"a draining node beats": {
			[]look{{0, 7, s, true}, {2 * s, 8, 0, true}, {4 * s, 9, 0, true}, {6 * s, 10, 0, true}}, held,
		},
		"a draining node dies": {
			[]look{{0, 7, s, true}, {2 * s, 8, 0, true}, {4 * s, 9, 0, true}, {10*s + 1, 9, 6 * s, true}}, nil,
		},
		"a node that beats begins to drain meanwhile": {
			[]look{{0, 7, s, false}, {2 * s, 8, 0, false}, {4 * s, 9, 0, true}}, held,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := names{seen: map[uuid.UUID]namesake{}}
			for i, l := range c.looks {
				now := time.Hour + l.after
				row := sql.Namesake{Node: "web", Beat: l.beat, Age: l.age, Draining: l.draining}
				got, want := w.look(&row, now).judge(&row, now, timings), held
				if i == len(c.looks)-1 {
					want = c.want
				}
				if !errors.Is(got, want) {
					t.Errorf("look %d: got %v, want %v", i, got, want)
				}
			}
		})
	}
}

// alive makes a session beat periodically, until stop is called.
func (f *fixture) alive(id uuid.UUID, every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var beating sync.WaitGroup
	beating.Go(func() {
		for ctx.Err() == nil {
			_, err := f.direct.Raw().ExecContext(ctx, `UPDATE session SET beat = beat + 1,
				beat_at = CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED) WHERE id = ?`, id[:])
			if err != nil && ctx.Err() == nil {
				f.Errorf("beat: %v", err)
			}
			time.Sleep(every)
		}
	})

	stop = func() { cancel(); beating.Wait() }
	f.Cleanup(stop)
	return stop
}

// TestNameTaken: a node is refused while another node with its name beats, and the error identifies
// that node.
func TestNameTaken(t *testing.T) {
	f := setUp(t)
	id := f.peer(1)
	f.exec("UPDATE session SET address = 'http://10.0.0.7:8610', pid = 4711")
	f.alive(id, 50*time.Millisecond)

	_, err := Register(t.Context(), f.db, NewClock(), f.timings, Identity{Node: "peer"}, f.log)
	if !errors.Is(err, sql.ErrRefuseJoin) {
		t.Fatalf("got %v, want a refusal", err)
	}

	for _, want := range []string{`named "peer"`, "http://10.0.0.7:8610", "pid 4711", id.String(), "--node",
		"GOCRONTAB_NODE"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal %q does not say %s", err, want)
		}
	}

	f.want("sessions", 1, "SELECT COUNT(*) FROM session")
	f.join("other") // a different name
}

// TestNameOfTheDead: a name is free after a few missed beats, while the row of the dead session
// still exists.
func TestNameOfTheDead(t *testing.T) {
	f := setUp(t)
	f.peer(1)
	began := boottime.Now()
	f.join("peer")
	if took := boottime.Now() - began; took < beatsToDie*f.timings.Beat {
		t.Errorf("it joined after %s, before the other session missed %d beats", took, beatsToDie)
	}
	f.want("sessions", 2, "SELECT COUNT(*) FROM session")
}

// TestNameOfADrainingNode: a node waits until the draining node with its name has left.
func TestNameOfADrainingNode(t *testing.T) {
	f := setUp(t)
	id := f.peer(1)
	f.exec("UPDATE session SET draining = 1")
	stop := f.alive(id, 50*time.Millisecond)

	joined := make(chan error, 1)
	go func() {
		_, err := Register(t.Context(), f.db, NewClock(), f.timings, Identity{Node: "peer"}, f.log)
		joined <- err
	}()

	select {
	case err := <-joined:
		t.Fatalf("it joined (%v) beside a draining node of its name", err)
	case <-time.After(2 * beatsToDie * f.timings.Beat):
	}

	stop()
	f.exec("DELETE FROM session WHERE id = ?", id[:])
	if err := <-joined; err != nil {
		t.Errorf("got %v once the other one had left", err)
	}
}

// TestNameOfAnEarlierSession: a process that lost a session rejoins at once, whatever remains from
// that session.
func TestNameOfAnEarlierSession(t *testing.T) {
	f := setUp(t)
	id := f.peer(1)
	f.alive(id, 50*time.Millisecond)
	var said bytes.Buffer
	_, err := Register(t.Context(), f.db, NewClock(), f.timings, Identity{Node: "peer", Earlier: []uuid.UUID{id}},
		slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil || said.Len() > 0 {
		t.Errorf("got %v, log %q; want it to join without waiting", err, said.String())
	}
}

// TestOneOfTwoAtOnce: if two nodes with one name join at the same instant, exactly one succeeds.
func TestOneOfTwoAtOnce(t *testing.T) {
	f := setUp(t)
	joins := make(chan error, 2)
	for range cap(joins) {
		go func() {
			s, err := Register(t.Context(), f.db, NewClock(), f.timings, Identity{Node: "n"}, f.log)
			if err == nil {
				f.alive(s.id, 50*time.Millisecond)
			}
			joins <- err
		}()
	}

	joined, refused := 0, 0
	for range cap(joins) {
		switch err := <-joins; {
		case err == nil:
			joined++
		case errors.Is(err, sql.ErrRefuseJoin):
			refused++
		default:
			t.Error(err)
		}
	}

	if joined != 1 || refused != 1 {
		t.Errorf("%d joined and %d were refused, want one each", joined, refused)
	}
	f.want("sessions", 1, "SELECT COUNT(*) FROM session")
}
