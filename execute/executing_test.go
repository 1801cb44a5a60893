package execute

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"go-crontab/internal/loop"
	"go-crontab/job"
)

// dayOne is MySQL's clock when a bubble begins.
const dayOne = job.Micros(1_800_000_000_000_000)

// bubble is an executing set in a bubble of time, whose session and executor are fakes.
type bubble struct {
	*Executing
	begin time.Time
	step  atomic.Int64 // MySQL's clock was put forward by this, in microseconds
	back  atomic.Int64 // each look at the lease puts it back by this, in microseconds
	stale atomic.Bool
	lost  atomic.Bool
	stop  context.CancelCauseFunc

	mu sync.Mutex
	so sofar
}

// sofar has the events so far.
type sofar struct {
	spawned  []time.Duration // when attempts were spawned, after the beginning
	attempts []Attempt
	runs     []job.Run
	again    []job.Micros
	freed    int
	room     int
}

// look waits until every goroutine in the bubble is blocked, and returns the events so far.
func (b *bubble) look() sofar {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.so.room = len(b.wakeStarter)
	return b.so
}

// recorder notes what becomes of attempts.
type recorder struct{ b *bubble }

func (recorder) Began(job.Micros, time.Duration) {}
func (recorder) Sink(job.Launch) func([]byte)    { return nil }

func (r recorder) NotSpawned() {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	r.b.so.freed++
}

func (r recorder) Ended(_ job.Started, run job.Run, again job.Micros) {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	r.b.so.runs, r.b.so.again = append(r.b.so.runs, run), append(r.b.so.again, again)
}

func (b *bubble) ID() uuid.UUID   { return uuid.UUID{1} }
func (b *bubble) Node() string    { return "one" }
func (b *bubble) Now() job.Micros { return dayOne.Add(time.Since(b.begin)) + job.Micros(b.step.Load()) }
func (b *bubble) Fresh() bool     { b.step.Add(-b.back.Load()); return !b.stale.Load() }
func (b *bubble) Lost() bool      { return b.lost.Load() }

// executor notes when it is called and then does what f says.
type executor struct {
	b *bubble
	f func(context.Context, Attempt) job.Result
}

func (e executor) Execute(ctx context.Context, a Attempt) job.Result {
	e.b.mu.Lock()
	e.b.so.spawned = append(e.b.so.spawned, time.Since(e.b.begin))
	e.b.so.attempts = append(e.b.so.attempts, a)
	e.b.mu.Unlock()
	if e.f == nil {
		return job.Result{Outcome: job.Succeeded}
	}
	return e.f(ctx, a)
}

func inBubble(t *testing.T, f func(context.Context, Attempt) job.Result, body func(b *bubble)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{begin: time.Now()}
		ctx, stop := context.WithCancelCause(context.Background())
		b.stop = stop
		b.Executing = NewExecuting(ExecutingConfig{
			Ctx: ctx, Session: b, Executor: executor{b, f}, Guard: NoGuard{}, Recorder: recorder{b},
			Set: NewSet(3, make(loop.Wake, 100)), Log: slog.New(slog.DiscardHandler),
		})
		body(b)
		stop(errors.New("the test is over"))
		if err := b.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// attempt returns a run whose start is committed now and that is due after the given time.
func (b *bubble) attempt(id int64, due time.Duration) job.Started {
	at := b.Now().Add(due)
	return job.Started{
		Launch:  job.Launch{Run: id, Claim: 1},
		JobID:   10 + id,
		Kind:    job.Manual,
		Request: 20 + id,
		Due:     at,
		DueNow:  at,
		Attempt: 1,
		Spec:    &job.Spec{App: "a", Name: "n", Command: "c", Timeout: job.Duration(time.Minute), Overlap: job.OverlapQueue},
		At:      b.Now(),
		SpawnBy: max(at, b.Now()) + job.SpawnWindow,
	}
}

// TestSpawnedWhenDue checks the instant of the spawn, and the attempt against the definition.
func TestSpawnedWhenDue(t *testing.T) {
	inBubble(t, nil, func(b *bubble) {
		s := b.attempt(1, 250*time.Millisecond)
		b.Add([]job.Started{s})
		if !b.Has(s.Launch) || b.Has(job.Launch{Run: 1}) || b.Has(job.Launch{Run: 2, Claim: 1}) || b.Len() != 1 || b.Free() != 2 {
			t.Errorf("got %d in the set, %d free; want it to know its one launch", b.Len(), b.Free())
		}

		time.Sleep(250*time.Millisecond - 1)
		got := b.look()
		if len(got.spawned) != 0 {
			t.Errorf("spawned after %s, before it was due", got.spawned)
		}

		time.Sleep(time.Nanosecond)
		got = b.look()
		if len(got.spawned) != 1 || got.spawned[0] != 250*time.Millisecond {
			t.Fatalf("spawned after %s, want after 250ms", got.spawned)
		}

		a := got.attempts[0]
		if a.Launch != s.Launch || a.Session != b.ID() || a.JobID != 11 || a.Job != "n" || a.App != "a" || a.Command != "c" || a.Timeout != time.Minute || a.Attempt != 1 || !a.Due.Equal(s.Due.Time()) {
			t.Errorf("got attempt %+v", a)
		}
		r := got.runs[0]
		if r.Launch != s.Launch || r.JobID != 11 || r.Kind != job.Manual || r.Request != 21 || r.Due != s.Due || r.Until != s.Due || r.Count != 1 || r.Attempt != 1 || !r.Final || r.Started != s.Due || r.Ended != s.Due ||
			r.Lateness != 0 || r.Node != "one" || r.Session != b.ID() || r.Outcome != job.Succeeded || got.again[0] != 0 {
			t.Errorf("got run %+v", r)
		}

		// It is in the set until its outcome is written, but holds no slot.
		if !b.Has(s.Launch) || b.Len() != 1 || b.Free() != 3 || got.room != 1 {
			t.Errorf("ended: got %d in the set, %d free, told %d times of room; want it to wait for its record without a slot", b.Len(), b.Free(), got.room)
		}

		b.Written([]job.Launch{s.Launch})
		got = b.look()
		if b.Has(s.Launch) || b.Len() != 0 || b.Free() != 3 || got.room != 2 || got.freed != 0 {
			t.Errorf("written: got %d in the set, told %d times of room, %d times of a run to free; want none, twice, never", b.Len(), got.room, got.freed)
		}
	})
}

// TestWhetherItIsSpawned changes a condition between the start and the due instant, 200 ms later.
func TestWhetherItIsSpawned(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *bubble)
		spawns time.Duration // -1: not at all
	}{
		"nothing happens":                              {func(*bubble) {}, 200 * time.Millisecond},
		"the lease is stale":                           {func(b *bubble) { b.stale.Store(true) }, -1},
		"the attempts are stopped":                     {func(b *bubble) { b.stop(errors.New("lease lapsed")) }, -1},
		"MySQL's clock is put forward a little":        {func(b *bubble) { b.step.Add(50_000) }, 200 * time.Millisecond}, // it sleeps until the old instant
		"MySQL's clock is put forward a second":        {func(b *bubble) { b.step.Add(1_000_000) }, 200 * time.Millisecond},
		"MySQL's clock is put forward over the window": {func(b *bubble) { b.step.Add(1_000_001) }, -1},
		"MySQL's clock is put back a little":           {func(b *bubble) { b.step.Add(-700_000) }, 900 * time.Millisecond},
		"MySQL's clock is put back an hour":            {func(b *bubble) { b.step.Add(-3_600_000_000) }, -1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(b *bubble) {
				s := b.attempt(1, 200*time.Millisecond)
				b.Add([]job.Started{s})
				synctest.Wait() // it sleeps
				c.change(b)
				time.Sleep(3 * time.Second)

				got := b.look()
				if c.spawns < 0 {
					if len(got.spawned) != 0 || got.freed != 1 || got.room != 1 || b.Len() != 0 || b.Has(s.Launch) || len(got.runs) != 0 {
						t.Errorf("spawned after %s, told %d times of a run to free, %d in the set, %d runs; want it given up once", got.spawned, got.freed, b.Len(), len(got.runs))
					}
					return
				}
				if len(got.spawned) != 1 || got.spawned[0] != c.spawns || got.freed != 0 {
					t.Errorf("spawned after %s, told %d times of a run to free; want after %s, never", got.spawned, got.freed, c.spawns)
				}
			})
		})
	}
}

// TestSpawnWindow adds attempts whose due instant has passed: the window counts from their start.
func TestSpawnWindow(t *testing.T) {
	inBubble(t, nil, func(b *bubble) {
		late := b.attempt(1, -time.Hour)
		if late.SpawnBy != dayOne+job.SpawnWindow {
			t.Fatalf("got a window up to %s", late.SpawnBy)
		}
		b.Add([]job.Started{late})
		got := b.look()
		if len(got.spawned) != 1 || got.spawned[0] != 0 || got.runs[0].Lateness != time.Hour.Microseconds() || got.runs[0].Started != dayOne {
			t.Errorf("spawned after %s, run %+v; want it at once, an hour late", got.spawned, got.runs)
		}
		tooLate, justInTime := b.attempt(2, -time.Hour), b.attempt(3, -time.Hour)
		tooLate.SpawnBy, justInTime.SpawnBy = b.Now()-1, b.Now()
		b.Add([]job.Started{tooLate, justInTime})
		got = b.look()
		if len(got.spawned) != 2 || got.attempts[1].JobID != 13 || got.freed != 1 {
			t.Errorf("got attempts %+v, told %d times of a run to free; want only the one that is in time", got.attempts, got.freed)
		}
	})
}

// TestStoppedBeforeItIsAdded: a session that is over spawns nothing, due or not.
func TestStoppedBeforeItIsAdded(t *testing.T) {
	inBubble(t, nil, func(b *bubble) {
		b.stop(errors.New("lease lapsed"))
		b.Add([]job.Started{b.attempt(1, 0)})
		if got := b.look(); len(got.spawned) != 0 || got.freed != 1 || b.Len() != 0 {
			t.Errorf("spawned after %s, told %d times of a run to free; want it given up", got.spawned, got.freed)
		}
	})
}

// TestHowAttemptsEnd checks the run that follows from an executor's result.
func TestHowAttemptsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		f       func(context.Context, Attempt) job.Result
		retry   job.Retry
		onLost  string
		lost    bool // the session, by the time the attempt ends
		kill    bool // on request
		attempt int  // 0: the first
		outcome job.Outcome
		reason  string
		again   time.Duration // after its end; 0: it was the last attempt
	}{
		"it fails":                 {f: reports(job.Failed), outcome: job.Failed, reason: "as told"},
		"it times out":             {f: reports(job.TimedOut), outcome: job.TimedOut, reason: "as told"},
		"it is killed":             {f: reports(job.Killed), outcome: job.Killed, reason: "as told"},
		"killed, the session lost": {f: reports(job.Killed), lost: true, outcome: job.Lost, reason: "as told"},
		"succeeded all the same":   {f: reports(job.Succeeded), lost: true, outcome: job.Succeeded, reason: "as told"},
		"failed, the session lost": {f: reports(job.Failed), lost: true, outcome: job.Failed, reason: "as told"},
		"the executor panics": {f: func(context.Context, Attempt) job.Result { panic("secret of the command") },
			outcome: job.Failed, reason: "the node panicked while executing the run; see the node's log"},
		"it fails, and is tried again":       {f: reports(job.Failed), retry: retries, outcome: job.Failed, reason: "as told", again: 10 * time.Second},
		"it fails, and that was the last":    {f: reports(job.Failed), retry: retries, attempt: 3, outcome: job.Failed, reason: "as told"},
		"a panic is tried again":             {f: func(context.Context, Attempt) job.Result { panic(1) }, retry: retries, outcome: job.Failed, reason: "the node panicked while executing the run; see the node's log", again: 10 * time.Second},
		"nothing to do, and is not":          {f: reports(job.Skipped), retry: retries, onLost: job.LostRerun, outcome: job.Skipped, reason: "as told"},
		"it succeeds, and is not":            {f: reports(job.Succeeded), retry: retries, outcome: job.Succeeded, reason: "as told"},
		"killed on request, and is not":      {f: reports(job.Failed), retry: retries, kill: true, outcome: job.Failed, reason: "as told"},
		"lost, and rerun at once":            {f: reports(job.Killed), lost: true, onLost: job.LostRerun, outcome: job.Lost, reason: "as told", again: time.Nanosecond},
		"lost, and not, although it retries": {f: reports(job.Killed), lost: true, retry: retries, outcome: job.Lost, reason: "as told"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, a Attempt) job.Result {
				time.Sleep(time.Second)
				return c.f(ctx, a)
			}, func(b *bubble) {
				s := b.attempt(1, 0)
				s.Spec.Retry, s.Spec.OnLost, s.Attempt = c.retry, c.onLost, max(1, c.attempt)
				b.Add([]job.Started{s})
				time.Sleep(500 * time.Millisecond)
				b.lost.Store(c.lost)
				if c.kill {
					b.Kill(s.Launch, false)
				}
				time.Sleep(500 * time.Millisecond)

				got := b.look()
				if len(got.runs) != 1 {
					t.Fatalf("got %d runs, want 1", len(got.runs))
				}

				r := got.runs[0]
				code := job.ReasonExitCode
				switch {
				case c.outcome == job.Lost:
					code = job.ReasonSessionLost
				case c.reason != "as told":
					code = job.ReasonExecutorPanic
				}
				if r.Reason.Code != code {
					t.Errorf("the code is %s, want %s", r.Reason.Code, code)
				}
				if r.Outcome != c.outcome || r.Reason.Text != c.reason || r.Started != dayOne || r.Ended != dayOne.Add(time.Second) {
					t.Errorf("got %s, %q, from %s to %s; want %s, %q", r.Outcome, r.Reason, r.Started, r.Ended, c.outcome, c.reason)
				}

				want := job.Micros(0)
				if c.again != 0 {
					want = r.Ended.Add(c.again)
				}
				if got.again[0] != want || r.Final != (c.again == 0) {
					t.Errorf("got another attempt at %s, final %v; want it at %s", got.again[0], r.Final, want)
				}
				if got.freed != 0 {
					t.Error("it was given up, although it was spawned")
				}
			})
		})
	}
}

var retries = job.Retry{Attempts: 3, Backoff: job.Duration(10 * time.Second), Factor: 1, MaxBackoff: job.Duration(time.Hour), On: []job.Outcome{job.Failed, job.TimedOut}}

func reports(o job.Outcome) func(context.Context, Attempt) job.Result {
	return func(context.Context, Attempt) job.Result {
		return job.Result{Outcome: o, Reason: reason(job.ReasonExitCode, "as told")}
	}
}

// TestClockPutBackWhileItRuns: a run never ends before it started.
func TestClockPutBackWhileItRuns(t *testing.T) {
	var world *bubble
	inBubble(t, func(context.Context, Attempt) job.Result {
		world.step.Add(-time.Hour.Microseconds())
		return job.Result{Outcome: job.Succeeded}
	}, func(b *bubble) {
		world = b
		b.Add([]job.Started{b.attempt(1, 0)})
		got := b.look()
		if r := got.runs[0]; r.Ended != r.Started || r.Started != dayOne {
			t.Errorf("got a run from %s to %s", r.Started, r.Ended)
		}
	})
}

// TestClockPutBackWhileItStarts: a heartbeat sets the clock back slightly, right after the check that found an attempt
// due. The attempt starts at the instant of that check, and not before its due instant.
func TestClockPutBackWhileItStarts(t *testing.T) {
	inBubble(t, func(_ context.Context, a Attempt) job.Result {
		if !a.May() {
			return job.Result{Outcome: job.Missed}
		}
		return job.Result{Outcome: job.Succeeded}
	}, func(b *bubble) {
		b.Add([]job.Started{b.attempt(1, 250*time.Millisecond)})
		b.back.Store(20)
		time.Sleep(time.Second)
		got := b.look()
		if len(got.runs) != 1 || got.freed != 0 {
			t.Fatalf("%d runs, %d given back; want one run", len(got.runs), got.freed)
		}
		if r := got.runs[0]; r.Started != r.Due || r.Lateness != 0 || !got.attempts[0].Began.Equal(r.Due.Time()) {
			t.Errorf("started %s, %d µs late, told that it began %s; want %s", r.Started, r.Lateness, got.attempts[0].Began, r.Due)
		}
	})
}

// TestStopAndKill: a stop ends all attempts, a kill one, each with its cause.
func TestStopAndKill(t *testing.T) {
	causes := make(chan string, 3)
	inBubble(t, func(ctx context.Context, a Attempt) job.Result {
		<-ctx.Done()
		causes <- fmt.Sprintf("%d: %v", a.Launch.Run, context.Cause(ctx))
		return job.Result{Outcome: job.Killed}
	}, func(b *bubble) {
		b.Add([]job.Started{b.attempt(1, 0), b.attempt(2, 0), b.attempt(3, 0)})
		b.look()
		b.Kill(job.Launch{Run: 99, Claim: 1}, false) // unknown run
		b.Kill(job.Launch{Run: 2, Claim: 2}, false)  // another launch
		b.Kill(b.attempt(2, 0).Launch, false)
		b.Kill(b.attempt(2, 0).Launch, false)
		got := b.look()
		if cause := <-causes; cause != "2: killed by a user" || len(causes) != 0 || len(got.runs) != 1 {
			t.Errorf("got %s, %d others; want only the second one killed", cause, len(causes))
		}
		b.stop(errors.New("lease lapsed"))
		got = b.look()
		for range 2 {
			if cause := <-causes; !strings.HasSuffix(cause, ": lease lapsed") {
				t.Errorf("got %s, want it to end because the lease lapsed", cause)
			}
		}
		if len(got.runs) != 3 || b.Len() != 3 {
			t.Errorf("got %d runs, %d in the set; want all ended and none written", len(got.runs), b.Len())
		}
	})
}

// TestNewLaunchOfTheSameRun: the outcome of an old launch, written late, does not take the new one out of the set.
func TestNewLaunchOfTheSameRun(t *testing.T) {
	inBubble(t, func(_ context.Context, a Attempt) job.Result {
		time.Sleep(time.Duration(a.Launch.Claim) * time.Second)
		return job.Result{Outcome: job.Succeeded}
	}, func(b *bubble) {
		old := b.attempt(1, 0)
		b.Add([]job.Started{old})
		time.Sleep(time.Second)
		b.look() // it ended
		next := b.attempt(1, 0)
		next.Claim = 2
		b.Add([]job.Started{next})
		b.Written([]job.Launch{old.Launch, next.Launch}) // the new one has not ended
		if !b.Has(next.Launch) || b.Has(old.Launch) || b.Len() != 1 || b.Free() != 2 {
			t.Errorf("got has new %v, has old %v, %d in the set, %d free; want only the new one", b.Has(next.Launch), b.Has(old.Launch), b.Len(), b.Free())
		}
		time.Sleep(2 * time.Second)
		b.look()
		b.Written([]job.Launch{old.Launch, next.Launch})
		if b.Len() != 0 || b.Free() != 3 {
			t.Errorf("got %d in the set, %d free; want none, and all", b.Len(), b.Free())
		}
	})
}

// TestWait: Wait returns when no attempt is under way, or with an error when its context ends first.
func TestWait(t *testing.T) {
	inBubble(t, func(context.Context, Attempt) job.Result {
		time.Sleep(time.Minute)
		return job.Result{Outcome: job.Succeeded}
	}, func(b *bubble) {
		if err := b.Wait(context.Background()); err != nil {
			t.Errorf("nothing under way: got %v", err)
		}
		b.Add([]job.Started{b.attempt(1, 0)})
		impatient, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := b.Wait(impatient); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "commands are still running") {
			t.Errorf("under way: got %v", err)
		}
		if err := b.Wait(context.Background()); err != nil || time.Since(b.begin) != time.Minute {
			t.Errorf("got %v after %s, want it to return after a minute", err, time.Since(b.begin))
		}
	})
}

// TestWaitLeavesNothing: a Wait that gave up leaves no goroutine.
func TestWaitLeavesNothing(t *testing.T) {
	inBubble(t, func(context.Context, Attempt) job.Result {
		time.Sleep(time.Hour)
		return job.Result{Outcome: job.Succeeded}
	}, func(b *bubble) {
		b.Add([]job.Started{b.attempt(1, 0)})
		for range 20 {
			impatient, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			if err := b.Wait(impatient); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("under way: got %v", err)
			}
			cancel()
		}
		stacks := make([]byte, 8<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if n := strings.Count(string(stacks), "created by go-crontab/execute.(*Set).Wait"); n > 0 {
			t.Errorf("%d goroutines are left", n)
		}
	})
}

// TestOutcomesThatWait: up to mostOver ended attempts hold no slot while MySQL takes their records.
func TestOutcomesThatWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ running, calls, over, free int }{
		{0, 0, 0, 4}, {3, 0, 0, 1}, {0, 0, 4, 4}, {3, 0, mostOver, 1}, {0, 0, mostOver + 1, 3}, {3, 0, mostOver + 1, 0}, {4, 0, mostOver, 0},
		{0, 0, mostOver + 4, 0}, {0, 1, 0, 3}, {0, job.CallsPerSlot, 4, 3}, {0, job.CallsPerSlot + 1, 4, 2}, {2, 2 * job.CallsPerSlot, mostOver + 1, -1},
	} {
		x := NewSet(4, nil)
		x.over, x.calls = c.over, c.calls
		for i := range c.running + c.calls + c.over {
			x.byRun[int64(i)] = &entry{}
		}
		if got := x.Free(); got != c.free {
			t.Errorf("%d that run, %d requests and %d whose outcome waits: %d free, want %d", c.running, c.calls, c.over, got, c.free)
		}
	}
}
