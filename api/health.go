package api

import "net/http"

// healthz: GET /healthz. That it answers is all there is to say: no database, no lock.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) error {
	return answer(w, http.StatusOK, map[string]string{"status": "ok"})
}

type readyView struct {
	Ready   bool   `json:"ready"`
	Node    string `json:"node"`
	Version string `json:"version"`
	Reason  string `json:"reason,omitempty"`
}

// readyz: GET /readyz
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	v := readyView{Ready: true, Node: s.cfg.Node, Version: s.cfg.Version}
	if err := s.cfg.Ready(); err != nil {
		v.Ready, v.Reason = false, err.Error()
		return answer(w, http.StatusServiceUnavailable, v)
	}
	return answer(w, http.StatusOK, v)
}
