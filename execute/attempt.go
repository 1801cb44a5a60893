package execute

import (
	"context"
	"io"
	"strings"
	"time"

	"go-crontab/job"

	"github.com/google/uuid"
)

// Attempt is what an executor gets to know about one attempt.
type Attempt struct {
	Launch  job.Launch
	Session uuid.UUID // the life of the node that executes it
	JobID   int64
	Job     string
	App     string
	Due     time.Time // the planned instant, not that of a retry
	Attempt int       // 1 for the first
	Began   time.Time // by MySQL's clock

	Command string    // of a command: one argument of bash, never a template
	HTTP    *job.HTTP // of a request
	Handler string    // of a handler: its key
	Payload []byte    // of a handler: what the job's definition gives it
	Out     io.Writer // of a handler: what it writes there is the run's output, until it returns

	Options job.CommandOptions // of a command: how it is run; its grace is the one below

	Timeout time.Duration // 0: none
	Grace   time.Duration // from SIGTERM to SIGKILL; 0: DefaultGrace

	// Sink is told of output as it comes, every byte of it and in order, by one goroutine at a time and not after Execute
	// has returned; nil: nobody reads along. It must not keep p, and not block: it delays the command.
	Sink func(p []byte)

	// May tells whether the attempt may still begin; nil: it may. An executor for which beginning takes its time, or has
	// to wait for others, asks once more right before, and returns Missed if the answer is no: nothing was begun.
	May     func() bool
	BeginBy time.Time // when that is no for good, by this process's clock; zero: nobody knows

	// Holds tells whether the session holds, so that something more may be begun for an attempt that has begun: it has no
	// window any more; nil: it does. If it says no, either it says yes again soon, or ctx ends.
	Holds func() bool

	TraceParent, TraceState string // what a command or a request is told of the trace that it belongs to, as W3C has it; "": nothing

	known *known // the secrets that it names; nil: none

	Seat Seat // what the guard knows of it; nil: nobody guards it
}

// Executor executes attempts of one kind. Execute blocks until nothing of the attempt lives any more and never
// panics; the end of ctx asks it to stop the attempt, and context.Cause is the reason given.
type Executor interface {
	Execute(ctx context.Context, a Attempt) job.Result
}

// Noop succeeds at once: what remains is the cost of everything around an execution.
type Noop struct{}

// Execute succeeds.
func (Noop) Execute(context.Context, Attempt) job.Result { return job.Result{Outcome: job.Succeeded} }

// maxReason bounds a reason in bytes: it may quote an error that a job wrote.
const maxReason = 500

// reason makes a reason whose text is one valid line out of parts, leaving out the empty ones.
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

// stopReason is the reason of an attempt whose context was ended, with what else there is to say.
func stopReason(cause error, more ...string) job.Reason {
	return reason(job.CodeOf(cause, job.ReasonNodeStopped), append([]string{cause.Error()}, more...)...)
}

// killed is the result of an attempt whose context was ended before anything was begun.
func killed(ctx context.Context) job.Result {
	return job.Result{Outcome: job.Killed, Reason: stopReason(context.Cause(ctx))}
}

// failed is the result of an attempt that was never started, with the code of the error or else the usual one.
func failed(usual job.ReasonCode, err error) job.Result {
	return job.Result{Outcome: job.Failed, Reason: reason(job.CodeOf(err, usual), err.Error())}
}
