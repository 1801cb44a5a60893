package api

import "go-crontab/api/view"

import "net/http"

// healthz: GET /healthz. It only shows that the process answers: it uses no database and no lock.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) error {
	return answer(w, http.StatusOK, view.Alive{Status: "ok"})
}

// readyz: GET /readyz. Anyone may call it, so it gives neither the node's name nor its version: GET
// /api/v1/nodes does.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	v := view.Ready{Ready: true}
	if err := s.cfg.Ready(); err != nil {
		v.Ready, v.Reason = false, err.Error()
		return answer(w, http.StatusServiceUnavailable, v)
	}
	return answer(w, http.StatusOK, v)
}
