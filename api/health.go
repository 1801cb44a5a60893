package api

import "go-crontab/api/view"

import "net/http"

// healthz: GET /healthz. The answer shows only that the process answers, so it needs no database
// and no lock.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) error {
	return answer(w, http.StatusOK, view.Alive{Status: "ok"})
}

// readyz: GET /readyz. Anyone may call it, so the answer names neither the node nor its version.
// GET /api/v1/nodes names both.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	v := view.Ready{Ready: true}
	if err := s.cfg.Ready(); err != nil {
		v.Ready, v.Reason = false, err.Error()
		return answer(w, http.StatusServiceUnavailable, v)
	}
	return answer(w, http.StatusOK, v)
}
