package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// Observer is told of each request that was answered: by which route of the table ("" for none),
// how, and how long it took. A stream lasts as long as somebody listens.
type Observer func(method, route string, status int, took time.Duration, stream bool)

// metrics: GET /metrics
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.Metrics == nil {
		return notFound.problem("This node serves no metrics.")
	}
	s.cfg.Metrics.ServeHTTP(w, r)
	return nil
}

// mayScrape is who may read the metrics: a viewer of the whole cluster, since jobs of any app may
// be in them, or anybody if the node was started so.
func (s *Server) mayScrape() access {
	if s.cfg.OpenMetrics {
		return open
	}
	return may(viewer, whole)
}

// observe tells the observer of a request.
func (s *Server) observe(r *http.Request, answer middleware.WrapResponseWriter, took time.Duration) {
	if s.cfg.Observe == nil {
		return
	}
	route := ""
	if c := chi.RouteContext(r.Context()); c != nil {
		route = c.RoutePattern()
	}
	stream := strings.HasPrefix(answer.Header().Get("Content-Type"), mediaEvents)
	s.cfg.Observe(r.Method, route, answer.Status(), took, stream)
}

// anyHost are the paths that are served whatever host a request names: who scrapes or looks whether
// a node lives knows addresses.
var anyHost = map[string]bool{"/healthz": true, "/metrics": true}
