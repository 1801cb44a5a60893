package execute

import (
	"context"
	"io"
	"strings"
	"time"

	"go-crontab/job"

	"github.com/google/uuid"
)

// Attempt is an executor's input for one attempt.
type Attempt struct {
	Launch  job.Launch
	Session uuid.UUID // the session that executes it
	JobID   int64
	Job     string
	App     string
	Due     time.Time // the run's due time; the same for its retries
	Attempt int       // 1 for the first

	// LastSuccess is the latest earlier due time of the job with a succeeded run; zero: there is
	// no record of such a run. For a request it is set only if the request names the placeholder.
	LastSuccess time.Time

	Given *job.Given // what the run was given; nil: nothing
	Began time.Time  // by MySQL's clock

	Command string            // for a command: one argument of bash, never a template
	HTTP    *job.HTTP         // for a request
	Params  map[string]string // the values of the job's parameters
	Handler string            // for a handler: its key
	Payload []byte            // for a handler: the payload in the job's definition
	Out     io.Writer         // for a handler: takes the run's output until the handler returns

	Options job.CommandOptions // for a command; Grace below replaces its grace
	Output  job.Capture        // for a command or a handler

	Timeout time.Duration // 0: none
	Grace   time.Duration // from SIGTERM to SIGKILL; 0: DefaultGrace

	// Sink receives every byte of output in order, from one goroutine at a time, and none after
	// Execute has returned; nil: no live output. Sink must not keep p. It must not block, because
	// that delays the command.
	Sink func(p []byte)

	// May reports whether the attempt may still begin; nil: it may. An executor whose preparation
	// takes time calls May again right before it begins. If May returns false, the executor begins
	// nothing and returns Missed.
	May     func() bool
	BeginBy time.Time // when May becomes false for good, by this process's clock; zero: unknown

	// Holds reports whether the session is fresh; nil: it is. An attempt that has begun may begin
	// more only while Holds returns true. Following a redirect is an example. After false, either
	// Holds soon returns true again, or ctx ends.
	Holds func() bool

	TraceParent, TraceState string // W3C trace context for a command or a request; "": none

	secretParams map[string]job.Secret // parameters whose values are secrets; filled in with the others

	known *known // the secrets that the attempt names; nil: none

	past *past // gives LastSuccess; nil: nobody asks

	Seat Seat // the guard's entry for the attempt; nil: it has no guard
}

// Executor executes one kind of attempt. Execute blocks until no part of the attempt is alive, and
// never panics. When ctx ends, Execute must stop the attempt; context.Cause becomes the reason.
type Executor interface {
	Execute(ctx context.Context, a Attempt) job.Result
}

// Noop succeeds at once, to measure the cost of everything around an execution.
type Noop struct{}

// Execute succeeds.
func (Noop) Execute(context.Context, Attempt) job.Result { return job.Result{Outcome: job.Succeeded} }

// maxReason bounds a reason in bytes, because it may quote a job's own error.
const maxReason = 500

// reason joins the parts that are not empty into a reason whose text is one line of valid UTF-8.
func reason(code job.ReasonCode, parts ...string) job.Reason {
	var said []string
	for _, p := range parts {
		if p = strings.Join(strings.Fields(strings.ToValidUTF8(p, "\uFFFD")), " "); p != "" {
			said = append(said, p)
		}
	}

	s := strings.Join(said, "; ")
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason-len("…")], "") + "…"
	}
	return job.Reason{Code: code, Text: s}
}

// stopReason is the reason of an attempt whose context ended: the cause, followed by more.
func stopReason(cause error, more ...string) job.Reason {
	return reason(job.CodeOf(cause, job.ReasonNodeStopped), append([]string{cause.Error()}, more...)...)
}

// killed is the result of an attempt whose context ended before it began.
func killed(ctx context.Context) job.Result {
	return job.Result{Outcome: job.Killed, Reason: stopReason(context.Cause(ctx))}
}

// failed is the result of an attempt that never started. It has the code of the error, or usual if
// the error has no code.
func failed(usual job.ReasonCode, err error) job.Result {
	return job.Result{Outcome: job.Failed, Reason: reason(job.CodeOf(err, usual), err.Error())}
}
