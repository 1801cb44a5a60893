package execute

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
)

// pastOf answers for jobs. It fails as often as wanted, and always without an answer.
type pastOf struct {
	due   map[int64]job.Micros
	fails atomic.Int64
	asked atomic.Int64 // runs
}

func (p *pastOf) LastSuccess(_ context.Context, runs []job.Started, found func(int, job.Micros)) error {
	p.asked.Add(int64(len(runs)))
	if p.fails.Add(-1) >= 0 {
		return errors.New("no database")
	}
	for i := range runs {
		due, ok := p.due[runs[i].JobID]
		if !ok {
			return errors.New("too many runs to look through")
		}
		found(i, due)
	}
	return nil
}

// withPast replaces the executor of a bubble by one that learns the last success.
func (b *bubble) withPast(p Past) {
	b.Executing = NewExecuting(ExecutingConfig{
		Ctx: b.Ctx, Session: b, Executor: &Kinds{Command: b.Executor, HTTP: b.Executor, Handler: b.Executor},
		Guard: NoGuard{}, Recorder: recorder{b}, Set: b.Set, WakeCompensator: loop.NewWake(), Log: b.Log, Past: p,
	})
}

// TestLastSuccess: commands and handlers learn it before they are due, requests only if they name it. Without MySQL
// an attempt waits as long as it may begin.
func TestLastSuccess(t *testing.T) {
	for name, c := range map[string]struct {
		spec    job.Spec
		known   bool
		fails   int64
		asked   int64
		spawned time.Duration // -1: never
	}{
		"a command":                      {job.Spec{Command: "c"}, true, 0, 1, 200 * time.Millisecond},
		"a handler":                      {job.Spec{Handler: "h"}, true, 0, 1, 200 * time.Millisecond},
		"a request that names it":        {job.Spec{HTTP: &job.HTTP{URL: "http://a/?since={{last_success}}"}}, true, 0, 1, 200 * time.Millisecond},
		"a request that does not":        {job.Spec{HTTP: &job.HTTP{URL: "http://a/"}}, true, 0, 0, 200 * time.Millisecond},
		"MySQL is away before it is due": {job.Spec{Command: "c"}, true, 3, 4, 200 * time.Millisecond},
		"MySQL is away for a while":      {job.Spec{Command: "c"}, true, 10, 11, 500 * time.Millisecond},
		"MySQL is away":                  {job.Spec{Command: "c"}, true, 1000, -1, -1},
		"it is not found in time":        {job.Spec{Command: "c"}, false, 0, -1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(b *bubble) {
				p := &pastOf{due: map[int64]job.Micros{}}
				if c.known {
					p.due[11] = dayOne - 5
				}
				p.fails.Store(c.fails)
				b.withPast(p)
				s := b.attempt(1, 200*time.Millisecond)
				s.Spec = &c.spec
				b.Add([]job.Started{s})
				time.Sleep(199 * time.Millisecond)
				synctest.Wait()
				if c.spec.HTTP == nil && p.asked.Load() == 0 {
					t.Error("nobody asked before it was due")
				}

				time.Sleep(3 * time.Second)
				got := b.look()
				if c.spawned < 0 {
					if len(got.attempts) != 0 || got.freed != 1 || b.Len() != 0 {
						t.Errorf("got %+v, want it to be given back", got)
					}
					return
				}
				if len(got.attempts) != 1 || got.spawned[0] != c.spawned || p.asked.Load() != c.asked {
					t.Fatalf("spawned after %v, %d asked for, want %s and %d", got.spawned, p.asked.Load(), c.spawned, c.asked)
				}
				if is := got.attempts[0].lastSuccess() == dayOne-5; is != (c.asked > 0) {
					t.Errorf("got %v", got.attempts[0].LastSuccess)
				}
			})
		})
	}
}
