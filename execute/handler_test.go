package execute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/job"
)

func TestHandlers(t *testing.T) {
	t.Parallel()
	var h Handlers
	h.Register("ok", func(_ context.Context, a Attempt) error {
		if string(a.Payload) != "{}" || a.Launch.Run != 30064771079 {
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
	cancel(job.Coded(job.ReasonKilledByUser, errors.New("killed by ops")))
	for name, tc := range map[string]struct {
		ctx     context.Context
		key     string
		timeout time.Duration
		outcome job.Outcome
		code    job.ReasonCode
		reason  string
		stack   bool
	}{
		"no error":             {key: "ok", outcome: job.Succeeded},
		"an error":             {key: "error", outcome: job.Failed, code: job.ReasonHandlerError, reason: "disk full \uFFFD" + strings.Repeat("é", 242) + "…"},
		"a panic":              {key: "panic", outcome: job.Failed, code: job.ReasonHandlerPanic, reason: "panic: boom", stack: true},
		"a panic with nil":     {key: "nil panic", outcome: job.Failed, code: job.ReasonHandlerPanic, reason: "panic: panic called with nil argument", stack: true},
		"an ended goroutine":   {key: "goexit", outcome: job.Failed, code: job.ReasonHandlerPanic, reason: "the handler ended its goroutine instead of returning", stack: true},
		"an unknown key":       {key: "none", outcome: job.Failed, code: job.ReasonHandlerMissing, reason: `no handler "none" is registered on this node`},
		"a timeout":            {key: "patient", timeout: 20 * time.Millisecond, outcome: job.TimedOut, code: job.ReasonTimeout, reason: "the handler ran longer than its timeout of 20ms; context deadline exceeded"},
		"a kill":               {ctx: ctx, key: "patient", timeout: time.Minute, outcome: job.Killed, code: job.ReasonKilledByUser, reason: "killed by ops; context canceled"},
		"work done but late":   {key: "stubborn", timeout: 20 * time.Millisecond, outcome: job.Succeeded},
		"a panic after a kill": {ctx: ctx, key: "panic", outcome: job.Failed, code: job.ReasonHandlerPanic, reason: "panic: boom", stack: true},
	} {
		if tc.ctx == nil {
			tc.ctx = context.Background()
		}
		a := attempt("")
		a.Handler, a.Payload, a.Timeout = tc.key, []byte("{}"), tc.timeout
		got := h.Execute(tc.ctx, a)
		if got.Outcome != tc.outcome || got.Reason != (job.Reason{Code: tc.code, Text: tc.reason}) {
			t.Errorf("%s: got %v %s %q, want %v %s %q", name, got.Outcome, got.Reason.Code, got.Reason, tc.outcome, tc.code, tc.reason)
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

// TestHandlerOutput: what a handler writes is the run's output, from all its goroutines and until it has returned.
func TestHandlerOutput(t *testing.T) {
	t.Parallel()
	var h Handlers
	kept := make(chan io.Writer, 1)
	h.Register("writes", func(_ context.Context, a Attempt) error {
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for range 100 {
					fmt.Fprintf(a.Out, "line of %d\n", i)
				}
			})
		}
		all.Wait()
		kept <- a.Out
		if a.Attempt > 1 {
			panic("boom")
		}
		return nil
	})

	a := attempt("")
	a.Handler, a.Attempt = "writes", 1
	var heard int
	a.Sink = func(p []byte) { heard += len(p) }
	r := h.Execute(t.Context(), a)
	if want := 800 * len("line of 0\n"); r.Outcome != job.Succeeded || r.Output.Bytes != int64(want) || heard != want || !strings.HasPrefix(string(r.Output.Head), "line of ") {
		t.Errorf("got %v, %d bytes of output, heard %d; want %d", r.Outcome, r.Output.Bytes, heard, want)
	}

	late := <-kept
	if n, err := late.Write([]byte("late")); n != 0 || err == nil || heard != 8000 {
		t.Errorf("a write after the handler has returned: took %d bytes, %v", n, err)
	}

	a.Attempt = 2
	r = h.Execute(t.Context(), a)
	if text := string(r.Output.Head) + string(r.Output.Tail); r.Outcome != job.Failed || !strings.HasPrefix(text, "line of ") || !strings.Contains(text, "handler_test.go") {
		t.Errorf("a panic behind output: got %v with output %q", r.Outcome, text)
	}
}

func TestNoop(t *testing.T) {
	t.Parallel()
	var e Executor = Noop{}
	if got := e.Execute(context.Background(), attempt("exit 1")); got.Outcome != job.Succeeded {
		t.Errorf("got %v", got.Outcome)
	}
}
