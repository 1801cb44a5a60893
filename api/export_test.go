package api

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// Routes lists "METHOD /pattern" of all routes.
func (s *Server) Routes() (routes []string) {
	chi.Walk(s.handler.(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routes = append(routes, strings.ToUpper(method)+" "+route)
		return nil
	})
	return routes
}

// TypePrefix begins the type of each problem.
const TypePrefix = typePrefix

// HostsOf tells which Host headers a server serves.
func HostsOf(listen string, more []string) func(string) bool { return newHosts(listen, more).allow }
