package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/schedule/edit"
	"go-crontab/sql"
	"go-crontab/sql/trip"

	"github.com/go-chi/chi/v5/middleware"
)

// Problem is the error that handlers return. It holds the body of the answer.
type Problem struct {
	view.Problem

	tag        string // for a failed precondition: the ETag of the object
	retryAfter string // seconds
	cause      error  // only for the log
	inLog      bool   // the log has the cause, so tell the client its request ID
}

// kind holds the common values of all problems of one type.
type kind struct {
	name   string
	status int
	title  string
}

// The types of problems. Clients branch on them, so they never change.
var (
	unauthenticated  = kind{"unauthenticated", http.StatusUnauthorized, "Unauthorized"}
	forbidden        = kind{"forbidden", http.StatusForbidden, "Your role does not allow this"}
	tooMany          = kind{"too-many-requests", http.StatusTooManyRequests, "Too many requests"}
	appLimit         = kind{"app-limit", http.StatusTooManyRequests, "The app has reached one of its limits"}
	providerAway     = kind{"provider-away", http.StatusBadGateway, "The identity provider does not respond correctly"}
	malformed        = kind{"malformed", http.StatusBadRequest, "The body is not JSON"}
	forbiddenHost    = kind{"forbidden-host", http.StatusForbidden, "This host name is not served"}
	crossOrigin      = kind{"cross-origin", http.StatusForbidden, "Changes from other web sites are refused"}
	notFound         = kind{"not-found", http.StatusNotFound, "Not found"}
	methodNotAllowed = kind{"method-not-allowed", http.StatusMethodNotAllowed, "Method not allowed"}
	exists           = kind{"exists", http.StatusConflict, "The name is taken"}
	changed          = kind{"changed", http.StatusConflict, "The object was changed in the meantime"}
	unreadable       = kind{"unreadable", http.StatusConflict, "The stored definition cannot be read"}
	stale            = kind{"stale", http.StatusPreconditionFailed, "The precondition is not met"}
	keyReused        = kind{"key-reused", http.StatusConflict, "The Idempotency-Key was already used"}
	inUse            = kind{"in-use", http.StatusConflict, "It is still in use"}
	noSecretKey      = kind{"no-secret-key", http.StatusConflict, "This node has no key for secrets"}
	hasEnded         = kind{"has-ended", http.StatusConflict, "The run has already ended"}
	tooLarge         = kind{"too-large", http.StatusRequestEntityTooLarge, "The body is too large"}
	unsupportedMedia = kind{"unsupported-media-type", http.StatusUnsupportedMediaType, "The Content-Type is not supported"}
	invalid          = kind{"invalid", http.StatusUnprocessableEntity, "The request is not valid"}
	internal         = kind{"internal", http.StatusInternalServerError, "Internal error"}
	noSession        = kind{"no-session", http.StatusServiceUnavailable, "This node cannot make changes now"}
	unknownOutcome   = kind{"unknown-outcome", http.StatusServiceUnavailable, "The change may or may not have been made"}
	noStream         = kind{"no-stream", http.StatusServiceUnavailable, "This node cannot open another stream"}
	busy             = kind{"busy", http.StatusServiceUnavailable, "This node is busy"}
	unavailable      = kind{"unavailable", http.StatusServiceUnavailable, "The database does not answer"}
)

func (k kind) problem(format string, args ...any) *Problem {
	p := &Problem{Problem: view.Problem{
		Type: view.ProblemType + k.name, Title: k.title, Status: k.status, Detail: fmt.Sprintf(format, args...),
	}}
	if k.status == http.StatusServiceUnavailable {
		p.retryAfter = "1"
	}
	return p
}

// invalidField is the problem of a request with one mistake.
func invalidField(field string, s problem.Sentence, values ...any) *Problem {
	return invalidFields(job.Wrong(field, s, values...))
}

// Limits of the problems in one answer. Their texts repeat parts of the request. Without limits a
// body of 256 KiB could cause a far larger answer.
const (
	maxProblems = 20
	maxPlace    = 200 // bytes of a field name
	maxMessage  = 400
)

func invalidFields(problems job.Problems) *Problem {
	said := make(job.Problems, 0, min(len(problems), maxProblems))
	for _, q := range problems[:min(len(problems), maxProblems)] {
		said = append(said, job.Problem{Field: cut(q.Field, maxPlace), Text: q.Cut(maxMessage)})
	}

	p := invalid.problem("%v", said)
	if more := len(problems) - len(said); more > 0 {
		p.Detail += "; and more"
	}

	p.Errors = said
	return p
}

// checking is the error of a change. If the outcome of the change is unknown, it tells the client
// where to look.
type checking struct {
	error
	look string
}

func (c *checking) Unwrap() error { return c.error }

// lookAt adds to the error of a change where the client can look if the outcome is unknown.
func lookAt(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &checking{err, fmt.Sprintf(format, args...)}
}

// problemOf translates an error into a problem for the client.
func problemOf(err error) *Problem {
	var (
		p         *Problem
		invalid   job.Problems
		conflicts job.Conflicts
		look      *checking
		used      *job.InUse
		over      *job.OverLimit
		foreign   *trip.CalendarError
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &invalid):
		return invalidFields(invalid)
	case errors.As(err, &conflicts):
		p = changed.problem("%s", "Nothing was changed, because somebody else changed it first. Read it again, then decide.")
		p.Errors = invalidFields(job.Problems(conflicts)).Errors
		return p
	case errors.As(err, &over):
		return overLimit(over)
	case errors.As(err, &used):
		p = inUse.problem("%s. Change those jobs first.", cut(capital(used.Error()), maxMessage))
		if used.Kind == "job" {
			p.Detail += " Or force the deletion (--force, force=true); then they wait for a job of its name."
		}
		return p
	case errors.As(err, &foreign):
		p = unreadable.problem("%s. Replace the calendar with PUT.", cut(capital(foreign.Error()), maxMessage))
	case sql.IsUnknown(err):
		p = unknownOutcome.problem("The database did not confirm the change.")
		if errors.As(err, &look) {
			p.Detail += " " + look.look
		}
	case errors.Is(err, job.ErrBusy):
		p = busy.problem("It is computing the maximum number of schedules, and nothing was changed. " +
			"Try again in a moment, or ask another node.")
		p.retryAfter = "5"
	case errors.Is(err, sql.ErrNotFound):
		p = notFound.problem("There is no such job.")
	case errors.Is(err, sql.ErrExists):
		p = exists.problem("A job with this app and name already exists; change that job, or choose another name.")
	case errors.Is(err, edit.ErrLocked):
		p = changed.problem("Another change keeps the job locked, and nothing was changed. Try again in a moment.")
	case errors.Is(err, job.ErrChanged):
		p = changed.problem("Others changed it repeatedly during this request. Read it again, then decide.")
	case errors.Is(err, job.ErrKeyReused):
		p = keyReused.problem("This Idempotency-Key was already sent with a different request. " +
			"Use a new key for each new request.")
	case sql.IsAway(err), errors.Is(err, context.Canceled):
		p = unavailable.problem("It is unreachable or too busy, and nothing was changed. Try again in a moment.")
		p.inLog = true
	default:
		p = internal.problem("The request failed unexpectedly.")
		p.inLog = true
	}

	p.cause = err
	return p
}

// fail answers with the problem of an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := *problemOf(err)
	p.RequestID = middleware.GetReqID(r.Context())
	if p.inLog && p.RequestID != "" {
		p.Detail += " The node's log has more under request ID " + p.RequestID + "."
	}

	if p.cause != nil && p.Status >= http.StatusInternalServerError {
		s.cfg.Log.Warn("request not served", "request", p.RequestID, "method", r.Method, "path", r.URL.Path,
			"status", p.Status, "error", p.cause)
	}

	if p.Status == http.StatusUnauthorized {
		w.Header()["Www-Authenticate"] = append([]string{`Bearer realm="go-crontab"`},
			w.Header().Values("WWW-Authenticate")...)
	}
	if p.retryAfter != "" {
		w.Header().Set("Retry-After", p.retryAfter)
	}
	if p.Version != 0 {
		w.Header().Set("ETag", p.tag)
	}
	writeJSON(w, p.Status, "application/problem+json", &p.Problem)
}
