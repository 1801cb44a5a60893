package guard_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/execute"
	"go-crontab/internal/guard"
	"go-crontab/job"
)

// endless is a lease that does not lapse.
type endless struct{}

func (endless) Lapse() {}

// newBenchGuard starts a guard of this process and waits for it.
func newBenchGuard(b *testing.B, session uuid.UUID) *guard.Guard {
	b.Helper()
	g, err := guard.New(guard.Config{
		Node: "bench", Expiry: time.Hour, Kill: 36 * time.Minute, Grace: time.Minute, End: 45 * time.Minute,
		Seats: 1000, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := g.Protect(guard.Protected{
		Session: session.String(), Marker: execute.Marker(session), Lease: endless{},
	}); err != nil {
		b.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- g.Run(ctx) }()
	b.Cleanup(func() { g.Over(); stop(); <-ended })
	for !g.Alive() {
		time.Sleep(time.Millisecond)
	}

	return g
}

// BenchmarkSeat measures the cost of a guard at a start and an end.
func BenchmarkSeat(b *testing.B) {
	g := newBenchGuard(b, uuid.New())
	for n := int64(1); b.Loop(); n++ {
		s := g.Enter(n, false)
		s.Inside(true)
		if !g.Alive() {
			b.Fatal("not alive")
		}
		s.Forked(os.Getpid())
		s.Empty()
		s.Leave()
	}
}

// BenchmarkBash compares a command with a guard and without one.
func BenchmarkBash(b *testing.B) {
	for name, guarded := range map[string]bool{"guarded": true, "unguarded": false} {
		b.Run(name, func(b *testing.B) {
			session := uuid.New()
			s, err := execute.NewShell(execute.Config{})
			if err != nil {
				b.Fatal(err)
			}

			var g *guard.Guard
			if guarded {
				g = newBenchGuard(b, session)
			}

			for n := int64(1); b.Loop(); n++ {
				a := execute.Attempt{
					Launch: job.Launch{Run: n}, Session: session, Job: "bench", App: "default", Due: time.Now(),
					Attempt: 1, Command: "true",
				}

				var seat *guard.Seat
				if guarded {
					seat = g.Enter(n, false)
					a.Seat, a.May = seat, g.Alive
				}

				if res := s.Execute(context.Background(), a); res.Outcome != job.Succeeded {
					b.Fatalf("got %v %q", res.Outcome, res.Reason)
				}
				if guarded {
					seat.Leave()
				}
			}
		})
	}
}
