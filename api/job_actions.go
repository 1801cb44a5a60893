package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"go-crontab/job"
)

// pauseJob: POST /api/v1/jobs/{id}/pause
func (s *Server) pauseJob(w http.ResponseWriter, r *http.Request) error {
	return s.act(w, r, Editor.Pause)
}

// resumeJob: POST /api/v1/jobs/{id}/resume
func (s *Server) resumeJob(w http.ResponseWriter, r *http.Request) error {
	return s.act(w, r, Editor.Resume)
}

func (s *Server) act(w http.ResponseWriter, r *http.Request, do func(Editor, context.Context, int64) (job.Job, error)) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	if err := readNothing(w, r); err != nil {
		return err
	}
	e, err := s.editor()
	if err != nil {
		return err
	}
	j, err := do(e, r.Context(), id)
	if err != nil {
		return lookAt(err, "GET /api/v1/jobs/%d shows what stands; the same request again does no harm.", id)
	}
	return answer(w, http.StatusOK, s.viewChanged(r.Context(), j))
}

// requestedView is a run that was asked for.
type requestedView struct {
	JobID   string `json:"job_id"`
	Due     string `json:"due"`
	Request string `json:"request"` // its runs carry it
}

const (
	keyHeader = "Idempotency-Key"
	maxKey    = 255
)

// runJob: POST /api/v1/jobs/{id}/run
func (s *Server) runJob(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	key := r.Header.Get(keyHeader)
	unprintable := func(c rune) bool { return c < ' ' || c > '~' }
	if len(key) > maxKey || strings.ContainsFunc(key, unprintable) {
		return invalidField(keyHeader, "want at most %d printable ASCII characters", maxKey)
	}
	if err := readNothing(w, r); err != nil {
		return err
	}
	e, err := s.editor()
	if err != nil {
		return err
	}
	asked, err := e.RunNow(r.Context(), id, key)
	if err != nil {
		return lookAt(err, "GET /api/v1/runs?job_id=%d shows its runs; with an %s the same request again does no harm.", id, keyHeader)
	}
	return answer(w, http.StatusAccepted, requestedView{
		JobID: strconv.FormatInt(asked.JobID, 10), Due: stamp(asked.Due), Request: strconv.FormatInt(asked.Origin, 10),
	})
}
