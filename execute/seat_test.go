package execute

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/job"
)

// watchman is a guard that records its calls.
type watchman struct {
	mu        sync.Mutex
	dead      bool
	full      bool
	lapsed    bool
	signalled bool
	said      []string
}

func (w *watchman) say(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, what)
}

func (w *watchman) Alive() bool  { w.say("alive?"); return !w.dead }
func (w *watchman) Lapsed() bool { return w.lapsed }

func (w *watchman) Enter(_ job.Launch, inside bool) Seat {
	if w.full {
		return nil
	}
	if inside {
		w.say("entered, inside")
	} else {
		w.say("entered")
	}
	return watched{w}
}

type watched struct{ *watchman }

func (w watched) Inside(bool)     { w.say("inside") }
func (w watched) Forked(int)      { w.say("forked") }
func (w watched) Signalled() bool { return w.signalled }
func (w watched) Empty()          { w.say("empty") }
func (w watched) Leave()          { w.say("left") }

// TestGuarded: an attempt has its seat from before the check of May until all of its processes are dead.
func TestGuarded(t *testing.T) {
	t.Parallel()
	killed := func(context.Context, Attempt) job.Result {
		return job.Result{Outcome: job.Failed, Signal: "SIGKILL", Reason: reason(job.ReasonSignal, "killed by SIGKILL")}
	}

	for name, c := range map[string]struct {
		guard   *watchman
		handler string
		execute func(context.Context, Attempt) job.Result
		said    string
		outcome job.Outcome // 0: it never began
	}{
		"a command":                              {&watchman{}, "", nil, "entered, alive?, left", job.Succeeded},
		"a handler":                              {&watchman{}, "h", nil, "entered, inside, alive?, left", job.Succeeded},
		"without a guard nothing begins":         {&watchman{dead: true}, "", nil, "entered, alive?, left, alive?, alive?", 0},
		"nor without a seat":                     {&watchman{full: true}, "", nil, "alive?, alive?", 0},
		"killed by somebody":                     {&watchman{}, "", killed, "entered, alive?, left", job.Failed},
		"killed by the guard":                    {&watchman{lapsed: true}, "", killed, "entered, alive?, left", job.Lost},
		"one that fails on its own":              {&watchman{lapsed: true}, "", func(context.Context, Attempt) job.Result { return job.Result{Outcome: job.Failed} }, "entered, alive?, left", job.Failed},
		"one that fails when the guard asks":     {&watchman{lapsed: true, signalled: true}, "", func(context.Context, Attempt) job.Result { return job.Result{Outcome: job.Failed} }, "entered, alive?, left", job.Lost},
		"one that had nothing to do by then":     {&watchman{lapsed: true, signalled: true}, "", func(context.Context, Attempt) job.Result { return job.Result{Outcome: job.Skipped} }, "entered, alive?, left", job.Lost},
		"one that ends well when the guard asks": {&watchman{lapsed: true, signalled: true}, "", nil, "entered, alive?, left", job.Lost},
		"one that had ended before it":           {&watchman{lapsed: true}, "", nil, "entered, alive?, left", job.Succeeded},
		"an executor that panics":                {&watchman{}, "", func(context.Context, Attempt) job.Result { panic("no") }, "entered, alive?, left", job.Failed},
		"one that comes too late to be begun":    {&watchman{}, "", func(context.Context, Attempt) job.Result { return job.Result{Outcome: job.Missed} }, "entered, alive?, left, alive?, alive?", 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, c.execute, func(b *bubble) {
				b.Guard = c.guard
				s := b.attempt(1, 0)
				s.Spec.Handler = c.handler
				b.Add([]job.Started{s})
				time.Sleep(time.Millisecond)
				got := b.look()
				if said := strings.Join(c.guard.said, ", "); said != c.said {
					t.Errorf("the guard was told %q, want %q", said, c.said)
				}
				switch {
				case c.outcome == 0 && (len(got.runs) != 0 || got.freed != 1):
					t.Errorf("got runs %+v, told %d times of a task to free; want that it is given back", got.runs, got.freed)
				case c.outcome != 0 && (len(got.runs) != 1 || got.runs[0].Outcome != c.outcome):
					t.Errorf("got runs %+v, want one that %v", got.runs, c.outcome)
				}
				if !b.Idle() {
					t.Error("it is still under way")
				}
			})
		})
	}
}
