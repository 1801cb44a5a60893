package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// Observer is called for each answered request. It gets the request's route in the table ("" for
// none), status and duration. The duration of a stream ends when the client disconnects.
type Observer func(method, route string, status int, took time.Duration, stream bool)

// metrics: GET /metrics
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.Metrics == nil {
		return notFound.problem("This node does not serve metrics.")
	}
	s.cfg.Metrics.ServeHTTP(w, r)
	return nil
}

// mayScrape says who may read the metrics. Metrics may name jobs of any app, so only viewers of the
// whole cluster may read them. With Config.OpenMetrics everybody may read them.
func (s *Server) mayScrape() access {
	if s.cfg.OpenMetrics {
		return open
	}
	return may(viewer, whole)
}

// observe reports a request to the observer.
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

// anyHost are the paths served for any Host header: scrapers and health checks often only know an
// address.
var anyHost = map[string]bool{"/healthz": true, "/metrics": true}
