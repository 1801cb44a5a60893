package execute

import (
	"context"
	"errors"
	"fmt"
	"net"

	"go-crontab/job"
)

// HTTPConfig configures HTTP. The zero value is ready for use.
type HTTPConfig struct {
	// Allow lists addresses and hosts that are not public but may be called, such as 10.0.0.0/8, [fd00::1]:8080,
	// intranet.example or *.intranet.example:8080.
	Allow    []string
	Secrets  Secrets       // the node's own secrets; nil: it has none
	Resolver *net.Resolver // nil: the system's
}

// HTTP executes attempts by sending a request. Use NewHTTP.
type HTTP struct {
	secrets Secrets
	pool    *pool
}

// NewHTTP checks cfg.
func NewHTTP(cfg HTTPConfig) (*HTTP, error) {
	g, err := newGuard(cfg)
	if err != nil {
		return nil, err
	}
	h := &HTTP{secrets: cfg.Secrets, pool: newPool(g)}
	if h.secrets == nil {
		h.secrets = NodeSecrets{}
	}
	return h, nil
}

// Close closes the idle connections when the node ends. Without it they are closed after some seconds.
func (h *HTTP) Close() {
	for _, c := range h.pool.drop(func(*conn) bool { return true }) {
		_ = c.Close()
	}
}

// Execute sends the attempt's request, once, and reads the answer. The output is the answer's body.
//
//   - Succeeded: the status is an expected one.
//   - Failed: the status is another one, or the answer is missing or breaks off.
//   - TimedOut, Killed: the timeout passed or ctx ended first. The connection is closed. The server may notice that
//     and stop its work. The request's Idempotency-Key is the launch, so the server can recognize a repeated request.
//   - Missed: when the connection was ready, the attempt was not allowed to begin any more. Nothing was sent, and the
//     connection is kept for the next attempt.
//
// A request is sent again only by a retry of the job, or if the server did not process it. A
// redirect is followed only while the session is fresh. If we die during a request, the connection
// breaks.
func (h *HTTP) Execute(ctx context.Context, a Attempt) job.Result {
	if ctx.Err() != nil {
		return killed(ctx)
	}

	late := job.Coded(job.ReasonTimeout, fmt.Errorf("the request took longer than its timeout of %v", a.Timeout))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if a.Timeout > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, a.Timeout, late)
		defer cancel()
	}

	x, err := h.newExchange(a)
	if err != nil {
		return failed(job.ReasonRequestInvalid, err)
	}
	defer x.leave()

	err = x.run(ctx)
	res := job.Result{Output: x.kept.output()}
	res.Output.Answer = x.details()

	switch cause := context.Cause(ctx); {
	case err == nil && x.answer.expected:
		res.Outcome, res.Reason = job.Succeeded, reason("", x.answer.String(), x.note)
	case err == nil:
		res.Outcome = job.Failed
		res.Reason = reason(job.ReasonHTTPStatus, x.answer.String()+", expected "+x.expected(), x.note)
	case errors.Is(err, errLate):
		res.Outcome, res.Reason = job.Missed, reason("", err.Error())
	case errors.Is(cause, late):
		res.Outcome, res.Reason = job.TimedOut, stopReason(cause, x.known.mask(x.progress()))
	case cause != nil:
		res.Outcome, res.Reason = job.Killed, stopReason(cause, x.known.mask(x.progress()))
	default:
		code, why := x.explain(err)
		res.Outcome, res.Reason = job.Failed, reason(code, x.known.mask(why))
	}
	return res
}
