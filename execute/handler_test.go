package execute

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
)

func TestHandlers(t *testing.T) {
	t.Parallel()
	var h Handlers
	h.Register("ok", func(_ context.Context, a Attempt) error {
		if string(a.Payload) != "{}" || a.Launch.N != 7 {
			return errors.New("not my attempt")
		}
		return nil
	})
	h.Register("error", func(context.Context, Attempt) error { return errors.New("disk\nfull \xff" + strings.Repeat("é", 400)) })
	h.Register("panic", func(context.Context, Attempt) error { panic("boom") })
	h.Register("nil panic", func(context.Context, Attempt) error { panic(nil) })
	h.Register("goexit", func(context.Context, Attempt) error { runtime.Goexit(); return nil })
	h.Register("patient", func(ctx context.Context, _ Attempt) error { <-ctx.Done(); return ctx.Err() })
	h.Register("stubborn", func(ctx context.Context, _ Attempt) error { <-ctx.Done(); return nil })

	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("killed by ops"))
	for name, tc := range map[string]struct {
		ctx     context.Context
		key     string
		timeout time.Duration
		outcome job.Outcome
		reason  string
		stack   bool
	}{
		"no error":             {key: "ok", outcome: job.Succeeded},
		"an error":             {key: "error", outcome: job.Failed, reason: "disk full \uFFFD" + strings.Repeat("é", 242) + "…"},
		"a panic":              {key: "panic", outcome: job.Failed, reason: "panic: boom", stack: true},
		"a panic with nil":     {key: "nil panic", outcome: job.Failed, reason: "panic: panic called with nil argument", stack: true},
		"an ended goroutine":   {key: "goexit", outcome: job.Failed, reason: "the handler ended its goroutine instead of returning", stack: true},
		"an unknown key":       {key: "none", outcome: job.Failed, reason: `no handler "none" is registered on this node`},
		"a timeout":            {key: "patient", timeout: 20 * time.Millisecond, outcome: job.TimedOut, reason: "ran longer than 20ms; context deadline exceeded"},
		"a kill":               {ctx: ctx, key: "patient", timeout: time.Minute, outcome: job.Killed, reason: "killed by ops; context canceled"},
		"work done but late":   {key: "stubborn", timeout: 20 * time.Millisecond, outcome: job.Succeeded},
		"a panic after a kill": {ctx: ctx, key: "panic", outcome: job.Failed, reason: "panic: boom", stack: true},
	} {
		if tc.ctx == nil {
			tc.ctx = context.Background()
		}
		a := attempt("")
		a.Handler, a.Payload, a.Timeout = tc.key, []byte("{}"), tc.timeout
		got := h.Execute(tc.ctx, a)
		if got.Outcome != tc.outcome || got.Reason != tc.reason {
			t.Errorf("%s: got %v %q, want %v %q", name, got.Outcome, got.Reason, tc.outcome, tc.reason)
		}
		if has := strings.Contains(string(got.Output.Head), "handler_test.go"); has != tc.stack {
			t.Errorf("%s: a stack in the output: got %v, want %v\n%s", name, has, tc.stack, got.Output.Head)
		}
	}
	for name, f := range map[string]func(){
		"an empty key": func() { h.Register("", func(context.Context, Attempt) error { return nil }) },
		"a taken key":  func() { h.Register("ok", func(context.Context, Attempt) error { return nil }) },
		"no function":  func() { h.Register("new", nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: got no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestNoop(t *testing.T) {
	t.Parallel()
	var e Executor = Noop{}
	if got := e.Execute(context.Background(), attempt("exit 1")); got.Outcome != job.Succeeded {
		t.Errorf("got %v", got.Outcome)
	}
}
