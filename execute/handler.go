package execute

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"

	"go-crontab/job"
)

// Handler is a Go function that does the work of a job. It must return soon after ctx ended. It
// cannot be killed, so its run executes until it returns.
type Handler func(ctx context.Context, a Attempt) error

// Handlers executes attempts by calling the function registered under the attempt's handler key. The zero value is
// ready for use.
type Handlers struct {
	mu    sync.RWMutex
	byKey map[string]Handler
}

// Register makes f the handler of key. It panics when f is nil, or key is empty or taken: these are programming errors.
func (h *Handlers) Register(key string, f Handler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if key == "" || f == nil || h.byKey[key] != nil {
		panic(fmt.Sprintf("register handler %q: want a function, and a key that is neither empty nor taken", key))
	}
	if h.byKey == nil {
		h.byKey = make(map[string]Handler)
	}
	h.byKey[key] = f
}

// Keys lists the keys that have a handler.
func (h *Handlers) Keys() []string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return slices.Sorted(maps.Keys(h.byKey))
}

// Execute calls the handler and waits for it. If the handler returns no error, the outcome is
// Succeeded, even after the timeout or the end of ctx, because the work is done. With an error,
// the outcome is TimedOut if the timeout came first, Killed if the end of ctx came first, and
// Failed otherwise.
func (h *Handlers) Execute(ctx context.Context, a Attempt) job.Result {
	h.mu.RLock()
	f := h.byKey[a.Handler]
	h.mu.RUnlock()

	if f == nil {
		return failed(job.ReasonHandlerMissing, fmt.Errorf("no handler %q is registered on this node", a.Handler))
	}

	late := job.Coded(job.ReasonTimeout, fmt.Errorf("the handler ran longer than its timeout of %v", a.Timeout))
	if a.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, a.Timeout, late)
		defer cancel()
	}

	out := &handlerOutput{kept: newCapture(DefaultKeep, &a)}
	a.Out = out
	stack, err := call(ctx, f, a)
	_, _ = out.Write(stack)

	r := job.Result{Outcome: job.Succeeded, Output: out.end()}
	switch cause := context.Cause(ctx); {
	case err == nil:
	case stack != nil:
		r.Outcome, r.Reason = job.Failed, reason(job.ReasonHandlerPanic, err.Error())
	case cause == nil:
		r.Outcome, r.Reason = job.Failed, reason(job.ReasonHandlerError, err.Error())
	case errors.Is(cause, late):
		r.Outcome, r.Reason = job.TimedOut, stopReason(cause, err.Error())
	default:
		r.Outcome, r.Reason = job.Killed, stopReason(cause, err.Error())
	}
	if why, cut := out.kept.cutReason(); cut {
		r.Reason = combined(r.Reason, []job.Reason{why})
	}
	return r
}

// handlerOutput takes a handler's output until the handler returns. Any number of goroutines may write.
type handlerOutput struct {
	mu   sync.Mutex
	kept *output
	over bool
}

func (o *handlerOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return 0, errors.New("the handler has returned, so its output is closed")
	}
	return len(p), o.kept.readAll(bytes.NewReader(p))
}

// end returns the kept output. Later writes fail.
func (o *handlerOutput) end() job.Output {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	return o.kept.output()
}

// call runs f on its own goroutine, because runtime.Goexit in f would end the caller's goroutine.
// stack is nil unless f panicked or called runtime.Goexit.
func call(ctx context.Context, f Handler, a Attempt) (stack []byte, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		returned := false
		defer func() {
			if returned {
				return
			}
			stack = debug.Stack()
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			} else {
				err = errors.New("the handler ended its goroutine instead of returning")
			}
		}()
		err = f(ctx, a)
		returned = true
	}()
	<-done
	return stack, err
}
