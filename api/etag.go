package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql/read"
)

// The ETag of a job is the version of its definition and how often people have changed it, pauses included: what it has of due times
// and runs changes without. The ETag of what else has a version is that.

func tagOf(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

func tagOfJob(j *read.Job) string { return fmt.Sprintf(`"%d.%d"`, j.Version, j.Changes) }

// showTagged answers a GET of a job with its view, or says that the client has it already.
func showTagged(w http.ResponseWriter, r *http.Request, tag string, v *jobView) error {
	w.Header().Set("ETag", tag)
	if given := r.Header.Get(ifNoneMatch); given != "" && holds(given, true, tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return answer(w, http.StatusOK, v)
}

// answerTagged answers with something at a version.
func answerTagged(w http.ResponseWriter, status int, version int64, v any) error {
	if version != 0 {
		w.Header().Set("ETag", tagOf(version))
	}
	return answer(w, status, v)
}

// answerJob answers with a job that was made or changed.
func (s *Server) answerJob(w http.ResponseWriter, r *http.Request, status int, j *read.Job) error {
	w.Header().Set("ETag", tagOfJob(j))
	return answer(w, status, s.viewChanged(r.Context(), j.Job))
}

const (
	ifMatch     = "If-Match"
	ifNoneMatch = "If-None-Match"
)

// holds reports whether a list of tags has one of some. Weak ones count only where weak says so.
func holds(list string, weak bool, tags ...string) bool {
	for t := range strings.SplitSeq(list, ",") {
		t = strings.TrimSpace(t)
		if weak {
			t = strings.TrimPrefix(t, "W/")
		}
		if t == "*" || slices.Contains(tags, t) {
			return true
		}
	}
	return false
}

// precondition is what a client wants something to be before it changes it.
type precondition struct{ match, none string }

func preconditionOf(r *http.Request) (precondition, error) {
	p := precondition{r.Header.Get(ifMatch), r.Header.Get(ifNoneMatch)}
	for name, list := range map[string]string{ifMatch: p.match, ifNoneMatch: p.none} {
		for t := range strings.SplitSeq(list, ",") {
			t = strings.TrimPrefix(strings.TrimSpace(t), "W/")
			if list != "" && t != "*" && (len(t) < 2 || t[0] != '"' || t[len(t)-1] != '"') {
				return p, invalidField(name, problem.NotAnETag, cutShort(t))
			}
		}
	}
	return p, nil
}

func (p precondition) given() bool { return p != precondition{} }

// check tells why a job may not be changed, or nil. A tag that is a version alone is about the definition.
func (p precondition) check(j *read.Job) error {
	return p.of("job", true, j.Version, tagOfJob(j), tagOf(j.Version))
}

// absent tells why a job that is not there may not be made, or nil.
func (p precondition) absent() error { return p.of("job", false, 0) }

// of tells why a thing that is there, or is not, may not be put, or nil. It is at a version, 0 where such things have none, and has
// the first of the tags; the others mean it, too.
func (p precondition) of(what string, there bool, version int64, tags ...string) (err error) {
	var q *Problem
	switch {
	case !there && p.match != "":
		return stale.problem("There is no such %s, and %s is %s.", what, ifMatch, cutShort(p.match))
	case !there:
		return nil
	case p.match != "" && !holds(p.match, false, tags...):
		q = stale.problem("The %s is at version %d, and %s is %s; read it again and decide.", what, version, ifMatch, cutShort(p.match))
	case p.none != "" && holds(p.none, true, tags...):
		q = stale.problem("There is a %s of that name already, and %s is %s.", what, ifNoneMatch, cutShort(p.none))
	default:
		return nil
	}
	q.Version, q.tag = version, tags[0]
	return q
}

// wanted is the context of a change of something by its name, which is made only if that is as the client wants it to be.
func wanted(r *http.Request, what string) (context.Context, error) {
	p, err := preconditionOf(r)
	if err != nil || !p.given() {
		return r.Context(), err
	}
	check := func(there bool, version int64) error { return p.of(what, there, version, tagOf(version)) }
	return job.WithPrecondition(r.Context(), check), nil
}

// withPreconditions refuses those that a change does not look at: who gives one must not believe that it held.
func withPreconditions(op *operation, h handler) handler {
	if op == nil {
		return h
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return h(w, r)
		}
		none := r.Header.Get(ifNoneMatch)
		switch {
		case r.Header.Get(ifMatch) != "" && !op.matched:
			return invalidField(ifMatch, problem.NoPrecondition)
		case none != "" && !op.matched && !op.unless:
			return invalidField(ifNoneMatch, problem.NoPrecondition)
		case none != "" && none != "*" && !op.matched:
			return invalidField(ifNoneMatch, problem.NoVersions, cutShort(none))
		}
		return h(w, r)
	}
}

// asWanted makes a change of a job, at the version that its client wants it to be at, if it says so.
func (s *Server) asWanted(r *http.Request, id int64, do func(context.Context) error) error {
	pre, err := preconditionOf(r)
	if err != nil {
		return err
	}
	if !pre.given() {
		return persist(func() error { return do(r.Context()) })
	}
	return persist(func() error {
		j, err := s.jobByID(r.Context(), id)
		if err != nil {
			return err
		}
		if err := pre.check(&j); err != nil {
			return err
		}
		return do(job.WithVersion(r.Context(), int64(j.Changes)))
	})
}

// before has a change look at the precondition first.
func (p precondition) before(want change) change {
	return func(old *read.Job) (jobBody, error) {
		if err := p.check(old); err != nil {
			return jobBody{}, err
		}
		return want(old)
	}
}
