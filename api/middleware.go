package api

import (
	"compress/gzip"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// requestIDs makes ids of requests: a random prefix and a number. The prefix is not the machine's
// name, because strangers see the ids and should not learn this name.
type requestIDs struct {
	prefix string
	last   atomic.Uint64
}

func newRequestIDs() *requestIDs { return &requestIDs{prefix: rand.Text()[:10]} }

func (ids *requestIDs) next() string { return fmt.Sprintf("%s-%06d", ids.prefix, ids.last.Add(1)) }

// requestID gives a request its id, which the answer and the log show. An id from the client is
// kept if it is short and plain.
func (s *Server) requestID(next http.Handler) http.Handler {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(middleware.RequestIDHeader)
		if id == "" || len(id) > 64 || strings.Trim(id, plain) != "" {
			id = s.requestIDs.next()
		}
		w.Header().Set(middleware.RequestIDHeader, id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), middleware.RequestIDKey, id)))
	})
}

// logRequest writes one line for each answered request.
func (s *Server) logRequest(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := middleware.GetReqID(r.Context())
		answer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)

		began := time.Now()
		defer func() {
			s.observe(r, answer, time.Since(began))
			s.cfg.Log.Debug("request", "request", id, "method", r.Method, "path", r.URL.Path,
				"status", answer.Status(), "bytes", answer.BytesWritten(), "took", time.Since(began),
				"from", r.RemoteAddr)
		}()
		next.ServeHTTP(answer, r)
	})
}

// recoverPanic keeps the node running after a panic in a request.
func (s *Server) recoverPanic(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p)
			}

			s.cfg.Log.Error("request panicked",
				"request", middleware.GetReqID(r.Context()), "method", r.Method, "path", r.URL.Path,
				"panic", p, "stack", string(debug.Stack()))
			if answer, ok := w.(middleware.WrapResponseWriter); ok && answer.Status() == 0 {
				failed := internal.problem("The request failed unexpectedly.")
				failed.inLog = true
				s.fail(w, r, failed)
			}
		}()

		next.ServeHTTP(w, r)
	})
}

// protect sets the headers of every answer. They tell browsers to trust the stated type, run no
// script, allow no frame and keep no copy.
func protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if r.TLS != nil && isPublicName(hostOf(r.Host)) {
			h.Set("Strict-Transport-Security", keepToTLS)
		}

		next.ServeHTTP(w, r)
	})
}

// compressed compresses the JSON of reads for clients that accept gzip. Answers to changes stay
// uncompressed: they may hold a secret, whose length must not show.
func compressed(next http.Handler) http.Handler {
	packed := middleware.Compress(gzip.BestSpeed, mediaJSON)(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && acceptsGzip(r) {
			packed.ServeHTTP(w, r)
		} else {
			next.ServeHTTP(w, r)
		}
	})
}

// keepToTLS makes browsers use only TLS for this host for 30 days, on all its ports.
const keepToTLS = "max-age=2592000"

// isPublicName reports whether a host is a public DNS name. An address and this machine's own names
// are not public.
func isPublicName(host string) bool {
	_, err := netip.ParseAddr(host)
	return err != nil && host != "" && host != "localhost" && !strings.HasSuffix(host, ".localhost")
}

const contentPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// checkOrigin refuses changes that another web site makes a browser send.
func (s *Server) checkOrigin(next http.Handler) http.Handler {
	c := http.NewCrossOriginProtection()
	c.SetDenyHandler(s.serve(func(w http.ResponseWriter, r *http.Request) error {
		return crossOrigin.problem("The request comes from a page of another origin, %s.",
			cutShort(r.Header.Get("Origin")))
	}))
	return c.Handler(next)
}

// deadline limits the time of a request. A change continues after the client has disconnected,
// because half a change helps no one.
func deadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			ctx = context.WithoutCancel(ctx)
		}
		ctx, cancel := context.WithTimeout(context.WithValue(ctx, endlessKey{}, r.Context()), requestTimeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx)) // streams remove the limit: see unbounded
	})
}

// escapedPath makes the router use the path as it was sent, so that a name may contain a slash as
// %2F. Otherwise the router would use the decoded path whenever Go thinks that both mean the same.
// Then a handler could not know whether the parts of its path are decoded.
func escapedPath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chi.RouteContext(r.Context()).RoutePath = r.URL.EscapedPath()
		next.ServeHTTP(w, r)
	})
}
