package execute

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/job"
)

type stepped struct{ now atomic.Int64 }

func (s *stepped) ID() uuid.UUID   { return uuid.UUID{1} }
func (s *stepped) Node() string    { return "one" }
func (s *stepped) Now() job.Micros { return job.Micros(s.now.Load()) }
func (s *stepped) Fresh() bool     { return true }
func (s *stepped) Lost() bool      { return false }

// slow is an executor that calls before, and returns Missed if the attempt may then no longer begin.
type slow struct{ before func() }

func (e slow) Execute(_ context.Context, a Attempt) job.Result {
	e.before()
	if !a.May() {
		return job.Result{Outcome: job.Missed}
	}
	return job.Result{Outcome: job.Succeeded}
}

// tally counts attempts that did not begin, and sends the runs of others.
type tally struct {
	freed atomic.Int64
	runs  chan job.Run
}

func (e *tally) Began(job.Micros, time.Duration)                {}
func (e *tally) NotSpawned()                                    { e.freed.Add(1) }
func (e *tally) Ended(_ job.Started, run job.Run, _ job.Micros) { e.runs <- run }
func (e *tally) Sink(job.Launch) func([]byte)                   { return nil }

func executing(t *testing.T, s Session, e Executor) (x *Executing, freed *atomic.Int64, runs chan job.Run) {
	r := &tally{runs: make(chan job.Run, 1)}
	return NewExecuting(ExecutingConfig{
		Ctx: t.Context(), Session: s, Executor: e, Guard: NoGuard{}, Recorder: r, Set: NewSet(1, nil),
		Log: slog.New(slog.DiscardHandler),
	}), &r.freed, r.runs
}

func started(due job.Micros) job.Started {
	return job.Started{Launch: job.Launch{Run: 1}, JobID: 1, Due: due, DueNow: due, Spec: &job.Spec{}, SpawnBy: due + job.SpawnWindow}
}

// TestAStartBeforeTheClockIsPutBackIsGivenUp puts MySQL's clock back by an hour between a start and its due instant.
func TestAStartBeforeTheClockIsPutBackIsGivenUp(t *testing.T) {
	s := &stepped{}
	s.now.Store(int64(10 * time.Hour / time.Microsecond))
	due := s.Now().Add(200 * time.Millisecond)
	x, freed, _ := executing(t, s, Noop{})
	x.Add([]job.Started{started(due)})
	s.now.Add(int64(-time.Hour / time.Microsecond))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := x.Wait(ctx); err != nil || freed.Load() != 1 || x.Len() != 0 {
		t.Errorf("%v, given up %d times, %d in the set; want it given up once", err, freed.Load(), x.Len())
	}
}

// TestWhatCouldNotBeginInTimeIsGivenUp: the spawn window passes while an executor is about to begin.
func TestWhatCouldNotBeginInTimeIsGivenUp(t *testing.T) {
	s := &stepped{}
	s.now.Store(1_000_000)
	x, freed, runs := executing(t, s, slow{func() { s.now.Add(job.SpawnWindow + 1) }})
	x.Add([]job.Started{started(1_000_000)})
	if err := x.Wait(t.Context()); err != nil || freed.Load() != 1 || x.Len() != 0 || len(runs) != 0 {
		t.Errorf("%v, given up %d times, %d in the set, %d runs; want it given up once", err, freed.Load(), x.Len(), len(runs))
	}
}

// lapsing is a session whose lease can lapse.
type lapsing struct {
	stepped
	stale, lost atomic.Bool
}

func (s *lapsing) Fresh() bool { return !s.stale.Load() }
func (s *lapsing) Lost() bool  { return s.lost.Load() }

// TestNoRedirectWhileTheLeaseIsStale: the lease becomes stale while a server answers with a redirect. Either the node
// was stopped so long that other nodes have reaped its session, and the attempt resumes before the watchdog does, or
// MySQL was slow.
func TestNoRedirectWhileTheLeaseIsStale(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		lapses   bool
		outcome  job.Outcome
		requests int
	}{
		"the node was stopped": {true, job.Lost, 0},
		"MySQL was slow":       {false, job.Succeeded, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &lapsing{}
			s.now.Store(1_000_000)
			elsewhere := newSite(t, func(http.ResponseWriter, *http.Request) {})
			first := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				s.stale.Store(true)
				http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
			})
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			x, _, runs := executing(t, s, requests(t))
			x.Ctx = ctx
			a := started(1_000_000)
			a.Spec.HTTP = request(first.URL, func(r *job.HTTP) { r.Redirects = 1 }).HTTP
			x.Add([]job.Started{a})
			eventually(t, "it was redirected", func() bool { return elsewhere.connections() == 1 })
			time.Sleep(5 * holdPause)
			if n := len(elsewhere.asked()); n != 0 {
				t.Errorf("%d requests were sent while the lease was stale", n)
			}
			if c.lapses {
				s.lost.Store(true)
				stop(errors.New("lease lapsed"))
			} else {
				s.stale.Store(false)
			}
			if r := <-runs; r.Outcome != c.outcome || len(elsewhere.asked()) != c.requests {
				t.Errorf("got %s (%s) and %d requests, want %s and %d", r.Outcome, r.Reason, len(elsewhere.asked()), c.outcome, c.requests)
			}
			if err := x.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
