package api

import (
	"net/http"
	"slices"
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

// Explained returns what the reference says of each type of problem: what it means, and what to do.
func Explained() map[string][2]string {
	out := map[string][2]string{}
	for _, p := range problemTable {
		out[p.name] = [2]string{p.means, p.advice}
	}
	return out
}

// JobFields lists the fields that the body of a PUT may have.
func JobFields() []string {
	f := newFields(map[string]any{})
	jobFields(f)
	f.ignore(readOnly...)
	slices.Sort(f.known)
	return slices.Compact(f.known)
}
