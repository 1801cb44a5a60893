package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
)

// The ETag of a job is its version: what it has of due times and runs changes without.

func tagOf(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// showTagged answers a GET of a job with its view, or says that the client has that version already.
func showTagged(w http.ResponseWriter, r *http.Request, v *jobView) error {
	tag := tagOf(v.Version)
	w.Header().Set("ETag", tag)
	if given := r.Header.Get(ifNoneMatch); given != "" && holds(given, tag, true) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return answer(w, http.StatusOK, v)
}

// answerJob answers with a job that was made or changed.
func (s *Server) answerJob(w http.ResponseWriter, r *http.Request, status int, j job.Job) error {
	w.Header().Set("ETag", tagOf(j.Version))
	return answer(w, status, s.viewChanged(r.Context(), j))
}

const (
	ifMatch     = "If-Match"
	ifNoneMatch = "If-None-Match"
)

// holds tells whether a list of tags has one. Weak ones count only where weak says so.
func holds(list, tag string, weak bool) bool {
	for t := range strings.SplitSeq(list, ",") {
		t = strings.TrimSpace(t)
		if weak {
			t = strings.TrimPrefix(t, "W/")
		}
		if t == tag || t == "*" {
			return true
		}
	}
	return false
}

// precondition is what a client wants a job to be before it changes it.
type precondition struct{ match, none string }

func preconditionOf(r *http.Request) (precondition, error) {
	p := precondition{r.Header.Get(ifMatch), r.Header.Get(ifNoneMatch)}
	for name, list := range map[string]string{ifMatch: p.match, ifNoneMatch: p.none} {
		for t := range strings.SplitSeq(list, ",") {
			t = strings.TrimPrefix(strings.TrimSpace(t), "W/")
			if list != "" && t != "*" && (len(t) < 2 || t[0] != '"' || t[len(t)-1] != '"') {
				return p, invalidField(name, `%q is no ETag; want the version of the job in quotes, such as "3", or *`, cutShort(t))
			}
		}
	}
	return p, nil
}

func (p precondition) given() bool { return p != precondition{} }

// check tells why a job at a version may not be changed, or nil.
func (p precondition) check(version int64) error {
	switch tag := tagOf(version); {
	case p.match != "" && !holds(p.match, tag, false):
		q := stale.problem("The job is at version %d, and %s is %s; read it again and decide.", version, ifMatch, cutShort(p.match))
		q.Version = version
		return q
	case p.none != "" && holds(p.none, tag, true):
		q := stale.problem("The job is there, at version %d, and %s is %s.", version, ifNoneMatch, cutShort(p.none))
		q.Version = version
		return q
	}
	return nil
}

// absent tells why a job that is not there may not be made, or nil.
func (p precondition) absent() error {
	if p.match != "" {
		return stale.problem("There is no such job, and %s is %s.", ifMatch, cutShort(p.match))
	}
	return nil
}

// asWanted makes a change of a job, at the version that its client wants it to be at, if it says so.
func (s *Server) asWanted(r *http.Request, id int64, do func(context.Context) error) error {
	pre, err := preconditionOf(r)
	if err != nil {
		return err
	}
	if !pre.given() {
		return do(r.Context())
	}
	for range maxTries {
		j, err := s.jobByID(r.Context(), id)
		if err != nil {
			return err
		}
		if err := pre.check(j.Version); err != nil {
			return err
		}
		if err := do(job.WithVersion(r.Context(), j.Version)); !errors.Is(err, job.ErrChanged) {
			return err
		}
	}
	return job.ErrChanged
}

// of has a change look at the precondition first.
func (p precondition) of(want change) change {
	return func(old *sql.JobRow) (jobBody, error) {
		if err := p.check(old.Version); err != nil {
			return jobBody{}, err
		}
		return want(old)
	}
}
