package api

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// Limits of the listener for probes. A probe sends one short request on a new connection.
const (
	probeTimeout   = 2 * time.Second
	maxProbes      = 32
	maxProbeHeader = 4 << 10
)

// ServeProbes answers only GET /healthz and GET /readyz, on a separate listener, until ctx ends.
// This listener shares no limit with the API. So while the API is flooded, an orchestrator still
// sees a live node and does not kill it. The listener speaks plain HTTP even if the API has a
// certificate.
func (s *Server) ServeProbes(ctx context.Context, l net.Listener) error {
	m := chi.NewRouter()
	m.Use(s.requestID, s.logRequest, s.recoverPanic, protect, middleware.GetHead)

	m.NotFound(s.serve(func(http.ResponseWriter, *http.Request) error {
		return notFound.problem("This listener only answers GET /healthz and GET /readyz.")
	}))
	m.MethodNotAllowed(m.NotFoundHandler())

	m.Get("/healthz", s.serve(s.healthz))
	m.Get("/readyz", s.serve(s.readyz))

	server := &http.Server{
		Handler:           m,
		ReadHeaderTimeout: probeTimeout,
		ReadTimeout:       probeTimeout,
		WriteTimeout:      2 * probeTimeout,
		IdleTimeout:       probeTimeout,
		MaxHeaderBytes:    maxProbeHeader,
	}

	return s.serveBounded(ctx, server, l, maxProbes)
}
