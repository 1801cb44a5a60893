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

// Problem is the error that handlers return, with the body of its answer.
type Problem struct {
	view.Problem

	tag        string // for a failed precondition: the ETag of the object
	retryAfter string // seconds
	cause      error  // only for the log
}

// kind holds the common values of a type of problems.
type kind struct {
	name   string
	status int
	title  string
}

// The types of problems. Clients branch on them, so they never change.
var (
	unauthenticated  = kind{"unauthenticated", http.StatusUnauthorized, "It is not known who asks"}
	forbidden        = kind{"forbidden", http.StatusForbidden, "Your role does not allow that"}
	tooMany          = kind{"too-many-requests", http.StatusTooManyRequests, "Too many requests"}
	appLimit         = kind{"app-limit", http.StatusTooManyRequests, "The app is at one of its limits"}
	providerAway     = kind{"provider-away", http.StatusBadGateway, "The identity provider does not answer as it should"}
	malformed        = kind{"malformed", http.StatusBadRequest, "The body is not JSON"}
	forbiddenHost    = kind{"forbidden-host", http.StatusForbidden, "This host name is not served"}
	crossOrigin      = kind{"cross-origin", http.StatusForbidden, "Other web sites may not change anything here"}
	notFound         = kind{"not-found", http.StatusNotFound, "Not found"}
	methodNotAllowed = kind{"method-not-allowed", http.StatusMethodNotAllowed, "The method is not allowed here"}
	exists           = kind{"exists", http.StatusConflict, "The name is taken"}
	changed          = kind{"changed", http.StatusConflict, "The job changed meanwhile"}
	unreadable       = kind{"unreadable", http.StatusConflict, "The stored definition cannot be read"}
	stale            = kind{"stale", http.StatusPreconditionFailed, "It is not as the request wants it"}
	keyReused        = kind{"key-reused", http.StatusConflict, "The Idempotency-Key was used before"}
	inUse            = kind{"in-use", http.StatusConflict, "It is in use"}
	noSecretKey      = kind{"no-secret-key", http.StatusConflict, "This node has no key for secrets"}
	hasEnded         = kind{"has-ended", http.StatusConflict, "The run has ended"}
	tooLarge         = kind{"too-large", http.StatusRequestEntityTooLarge, "The body is too large"}
	unsupportedMedia = kind{"unsupported-media-type", http.StatusUnsupportedMediaType, "The body must be JSON"}
	invalid          = kind{"invalid", http.StatusUnprocessableEntity, "The request is not valid"}
	internal         = kind{"internal", http.StatusInternalServerError, "Something went wrong here"}
	noSession        = kind{"no-session", http.StatusServiceUnavailable, "The node cannot change anything now"}
	unknownOutcome   = kind{"unknown-outcome", http.StatusServiceUnavailable, "The change may or may not have been made"}
	noStream         = kind{"no-stream", http.StatusServiceUnavailable, "The node opens no further stream"}
	busy             = kind{"busy", http.StatusServiceUnavailable, "The node is busy"}
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

// Limits of the text about one request. Messages repeat parts of the request: without limits a body
// of 256 KiB could cause a far larger answer.
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

// checking is the error of a change, with advice where to look if its outcome is unknown.
type checking struct {
	error
	look string
}

func (c *checking) Unwrap() error { return c.error }

// lookAt adds to the error of a change where to look if its outcome is unknown.
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
		p = changed.problem("%s", "Nothing was changed, because somebody has changed this meanwhile. Read it again and decide.")
		p.Errors = invalidFields(job.Problems(conflicts)).Errors
		return p
	case errors.As(err, &over):
		return overLimit(over)
	case errors.As(err, &used):
		return inUse.problem("%s: change those jobs first.", cut(used.Error(), maxMessage))
	case errors.As(err, &foreign):
		p = unreadable.problem("%s: replace the calendar with PUT.", cut(foreign.Error(), maxMessage))
	case sql.IsUnknown(err):
		p = unknownOutcome.problem("The database could not be asked to the end.")
		if errors.As(err, &look) {
			p.Detail += " " + look.look
		}
	case errors.Is(err, job.ErrBusy):
		p = busy.problem("It already computes as many schedules as it may, and nothing was changed. Try again in a moment, or ask another node.")
		p.retryAfter = "5"
	case errors.Is(err, sql.ErrNotFound):
		p = notFound.problem("There is no such job.")
	case errors.Is(err, sql.ErrExists):
		p = exists.problem("A job of this app and name exists already; change that one, or choose another name.")
	case errors.Is(err, edit.ErrLocked):
		p = changed.problem("Somebody else keeps the job locked, and nothing was changed. Try again in a moment.")
	case errors.Is(err, job.ErrChanged):
		p = changed.problem("Others kept changing the job; read it again and decide.")
	case errors.Is(err, job.ErrKeyReused):
		p = keyReused.problem("This Idempotency-Key came with another request before; use a new one for each request that is not a repetition.")
	case sql.IsAway(err), errors.Is(err, context.Canceled):
		p = unavailable.problem("It is out of reach or too busy, and nothing was changed. Try again in a moment; the node's log says more under this request_id.")
	default:
		p = internal.problem("The node's log says more under this request_id.")
	}

	p.cause = err
	return p
}

// fail answers with the problem of an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := *problemOf(err)
	p.RequestID = middleware.GetReqID(r.Context())
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
