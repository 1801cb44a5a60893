package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/schedule/edit"
	"go-crontab/sql/read"
)

// act changes the job that the path names, and answers with it. The caller has read the body.
func (s *Server) act(w http.ResponseWriter, r *http.Request,
	do func(Editor, context.Context, int64) (edit.Done, error)) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}

	e, err := s.editor()
	if err != nil {
		return err
	}

	var done edit.Done
	err = s.asWanted(r, id, func(ctx context.Context) (err error) { done, err = do(e, ctx, id); return err })

	var j *read.Job
	if err == nil {
		j, err = s.jobAfter(r.Context(), done)
	}
	if err != nil {
		return lookAt(err, "GET /api/v1/jobs/%d shows the current state. You can safely repeat the request.", id)
	}

	return s.answerJob(w, r, http.StatusOK, j)
}

const (
	keyHeader = "Idempotency-Key"
	maxKey    = 255
)

// idempotencyKey returns the key that identifies a repeated request, or "".
func idempotencyKey(r *http.Request) (string, error) {
	key := r.Header.Get(keyHeader)
	unprintable := func(c rune) bool { return c < ' ' || c > '~' }

	if len(key) > maxKey || strings.ContainsFunc(key, unprintable) {
		return "", invalidField(keyHeader, problem.NotAKey, maxKey)
	}
	if key == "" {
		return "", nil
	}
	return keyOf(auth.Of(r.Context()), key), nil
}

// keyOf is the stored form of a caller's key. Equal keys of different callers are stored
// differently, and no caller learns of another caller's key.
func keyOf(p *auth.Principal, key string) string {
	caller := p.Key()
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(caller), caller, key))
	return hex.EncodeToString(sum[:])
}

// runJob: POST /api/v1/jobs/{id}/run
func (s *Server) runJob(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}

	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	body, err := readOptional(r)
	if err != nil {
		return err
	}

	f := newFields(body)
	var params map[string]job.Value
	f.values("params", &params)
	if err := f.done(); err != nil {
		return err
	}

	e, err := s.editor()
	if err != nil {
		return err
	}

	asked, err := e.RunWith(r.Context(), []int64{id}, 0, params, key)
	if err != nil {
		return lookAt(err, "GET /api/v1/runs?job_id=%d shows its runs. You can safely repeat the request if it had an %s.",
			id, keyHeader)
	}

	return answer(w, http.StatusAccepted, view.Requested{
		JobID: strconv.FormatInt(id, 10), Due: asked.Due.Time(), Request: strconv.FormatInt(asked.Request, 10),
	})
}
