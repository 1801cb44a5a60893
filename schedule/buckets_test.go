package schedule

import (
	"log/slog"
	"testing"
	"time"
)

func TestWantBuckets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tasks, nodes, want int }{
		{0, 1, 16}, {0, 4, 16}, {0, 5, 32}, {4000, 1, 16}, {4001, 1, 32}, {30_000, 3, 128}, {1_000_000, 3, 256}, {0, 100, 256},
	} {
		if got := wantBuckets(c.tasks, c.nodes); got != c.want {
			t.Errorf("%d tasks, %d nodes: got %d buckets, want %d", c.tasks, c.nodes, got, c.want)
		}
	}
}

// TestBucketsFollowTheLoad: up at once, down only after a while, and only by the first node; what another node changed
// meanwhile stays.
func TestBucketsFollowTheLoad(t *testing.T) {
	f := setUp(t)
	b := &Bucketer{DB: f.beside, Session: f.session, Log: slog.New(slog.DiscardHandler)}
	look := func(n int, want int) {
		t.Helper()
		for range n {
			if err := b.adapt(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		f.want("buckets", int64(want), "SELECT value FROM setting WHERE name = 'buckets'")
	}
	look(1, 16)
	f.create(every("busy", 10*time.Millisecond, time.Second)) // a thousand due times are planned
	for range 9 {
		f.exec("INSERT INTO task (job_id, due, origin, due_now, hash) SELECT job_id + 1 + (SELECT MAX(job_id) FROM task), due, origin, due_now, hash FROM task WHERE job_id = 1")
	}
	f.session.index = 1
	look(2, 16)
	f.session.index = 0
	look(1, 64)
	look(2, 64) // the session has not read it yet: the setting is not what it saw
	f.session.buckets = 64
	f.exec("DELETE FROM task")
	look(calmLooks-1, 64)
	look(1, 32)
}
