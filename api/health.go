package api

import "net/http"

type aliveView struct {
	Status string `json:"status" enum:"ok" doc:"That it is."`
}

// healthz: GET /healthz. That it answers is all there is to say: no database, no lock.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) error {
	return answer(w, http.StatusOK, aliveView{"ok"})
}

type readyView struct {
	Ready  bool   `json:"ready" doc:"Whether the node may start and change jobs."`
	Reason string `json:"reason,omitempty" doc:"Why it is not ready."`
}

// readyz: GET /readyz. Anybody may ask, so it names neither the node nor its version: GET
// /api/v1/nodes does.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	v := readyView{Ready: true}
	if err := s.cfg.Ready(); err != nil {
		v.Ready, v.Reason = false, err.Error()
		return answer(w, http.StatusServiceUnavailable, v)
	}
	return answer(w, http.StatusOK, v)
}
