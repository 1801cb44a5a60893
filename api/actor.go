package api

import (
	"net"
	"net/http"

	"go-crontab/job"
)

// withActor stores the caller's address in the context, for the audit of changes.
func withActor(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			address = r.RemoteAddr
		}
		ctx := job.WithActor(r.Context(), job.Actor{Who: job.Anonymous, Origin: address})
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
