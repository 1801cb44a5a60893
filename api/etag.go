package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql/read"
)

// The ETag of a job combines two numbers: the version of its definition, and the number of changes
// by people, pauses included. The ETag stays when only the job's due times, runs, health, status or
// error change. The ETag of any other object is its version.

func tagOf(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

func tagOfJob(j *read.Job) string { return fmt.Sprintf(`"%d.%d"`, j.Version, j.Changes) }

// showTagged answers a GET of a job, with 304 if the client's copy is current.
func showTagged(w http.ResponseWriter, r *http.Request, tag string, v *view.Job) error {
	w.Header().Set("ETag", tag)
	if given := r.Header.Get(ifNoneMatch); given != "" && holds(given, true, tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return answer(w, http.StatusOK, v)
}

// answerTagged answers with an object and its version as ETag; version 0 means none.
func answerTagged(w http.ResponseWriter, status int, version int64, v any) error {
	if version != 0 {
		w.Header().Set("ETag", tagOf(version))
	}
	return answer(w, status, v)
}

// answerJob answers with a job that was created or changed.
func (s *Server) answerJob(w http.ResponseWriter, r *http.Request, status int, j *read.Job) error {
	w.Header().Set("ETag", tagOfJob(j))
	v := s.viewChanged(r.Context(), j.Job)
	if names, err := s.followersOf(r.Context(), j.ID); err == nil { // otherwise omit them
		v.Followers = names
	}
	return answer(w, status, v)
}

const (
	ifMatch     = "If-Match"
	ifNoneMatch = "If-None-Match"
)

// holds reports whether a list of tags contains one of the given tags. Weak tags only count if weak
// is set.
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

// precondition is the state that a client requires of an object before changing it.
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

// check returns why a job may not be changed, or nil. A tag with only a version requires that
// version of the definition. It allows any other change of the job.
func (p precondition) check(j *read.Job) error {
	return p.of("job", true, j.Version, tagOfJob(j), tagOf(j.Version))
}

// absent checks the precondition of a request that creates a job. An If-Match header refuses the
// request: there is no version to match.
func (p precondition) absent() error { return p.of("job", false, 0) }

// of returns why a client may not write an object, or nil. there says whether the object exists.
// version is 0 for objects without versions. tags[0] is the object's own ETag; the client may also
// send one of the other tags.
func (p precondition) of(what string, there bool, version int64, tags ...string) (err error) {
	var q *Problem
	switch {
	case !there && p.match != "":
		return stale.problem("The %s does not exist, but %s is %s.", what, ifMatch, cutShort(p.match))
	case !there:
		return nil
	case p.match != "" && !holds(p.match, false, tags...):
		q = stale.problem("The %s is at version %d, but %s is %s. Read it again, then decide.", what, version, ifMatch,
			cutShort(p.match))
	case p.none != "" && holds(p.none, true, tags...):
		q = stale.problem("A %s with this name already exists, but %s is %s.", what, ifNoneMatch, cutShort(p.none))
	default:
		return nil
	}

	q.Version, q.tag = version, tags[0]
	return q
}

// wanted returns the context for a change of a named object. The change is made only if the
// client's precondition is met.
func wanted(r *http.Request, what string) (context.Context, error) {
	p, err := preconditionOf(r)
	if err != nil || !p.given() {
		return r.Context(), err
	}
	check := func(there bool, version int64) error { return p.of(what, there, version, tagOf(version)) }
	return job.WithPrecondition(r.Context(), check), nil
}

// withPreconditions refuses preconditions that a route does not check. Otherwise a client would
// believe that they were met.
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

// asWanted changes a job. If the client requires a version, the job must be at this version.
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

// before wraps a change, so that the precondition is checked first.
func (p precondition) before(want change) change {
	return func(old *read.Job) (jobBody, error) {
		if err := p.check(old); err != nil {
			return jobBody{}, err
		}
		return want(old)
	}
}
