package api

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// Bounds of the listener for probes. Whoever probes asks one short question on a new connection.
const (
	probeTimeout   = 2 * time.Second
	maxProbes      = 32
	maxProbeHeader = 4 << 10
)

// ServeProbes answers GET /healthz and GET /readyz, and nothing else, on a listener of its own. It
// shares no bound with the API: whatever floods that, an orchestrator that asks here sees that the
// node lives, and kills no commands. It speaks plain HTTP also where the API has a certificate. It
// ends with ctx.
func (s *Server) ServeProbes(ctx context.Context, l net.Listener) error {
	m := chi.NewRouter()
	m.Use(s.requestID, s.logRequest, s.recoverPanic, protect, middleware.GetHead)
	m.NotFound(s.serve(func(http.ResponseWriter, *http.Request) error {
		return notFound.problem("This listener answers GET /healthz and GET /readyz alone.")
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
