package api

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/auth"

	"github.com/go-chi/chi/v5"
)

// Routes lists "METHOD /pattern" of all routes.
func (s *Server) Routes() (routes []string) {
	chi.Walk(s.handler.(chi.Routes),
		func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			routes = append(routes, strings.ToUpper(method)+" "+route)
			return nil
		})
	return routes
}

// Access is the access of a line of the table.
type Access struct {
	Method, Pattern string
	Open            bool
	Role            auth.Role
	Over            string // "whole", "shared", "filtered", "inBody", "app", "job", "run" or "backfill"
}

// Table lists the access of all routes.
func (s *Server) Table() (out []Access) {
	over := map[extent]string{
		whole: "whole", shared: "shared", filtered: "filtered", inBody: "inBody", ofApp: "app", ofJob: "job",
		ofJobsPast: "job", ofRun: "run", ofBackfill: "backfill",
	}
	for _, rt := range s.table() {
		out = append(out, Access{rt.method, rt.pattern, rt.may.open, rt.may.role, over[rt.may.over]})
	}
	return out
}

// Guarded makes a server with an additional route that has no access in the table.
func Guarded(cfg Config, h http.HandlerFunc) http.Handler {
	s := New(cfg)
	s.handler.(chi.Router).Get("/forgotten",
		s.serve(s.guard(access{}, func(w http.ResponseWriter, r *http.Request) error { h(w, r); return nil })))
	return s
}

// Listeners returns the number of streams, the number of subscribers of the change feed, and
// whether the feed is being read.
func (s *Server) Listeners() (streams, listeners int, reading bool) {
	s.streams.mu.Lock()
	streams = s.streams.all
	s.streams.mu.Unlock()
	listeners, reading = s.feed.Listeners()
	return streams, listeners, reading
}

// Beat sets the time without messages after which streams send a comment.
func (s *Server) Beat(d time.Duration) { s.streams.beat = d }

// TypePrefix is the prefix of problem types.
const TypePrefix = view.ProblemType

// HostsOf returns the check of Host headers.
func HostsOf(listen string, more []string) func(string) bool { return newHosts(listen, more).allow }

// Explained returns the reference's explanation and advice for each type of problem.
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

// Body describes the body of a route.
type Body struct {
	Method, Pattern string
	Most            int64    // limit in bytes
	Files           []string // media types, if the route takes a file
	Of              reflect.Type
}

// Bodies lists the routes with a body.
func (s *Server) Bodies() (out []Body) {
	for _, rt := range s.table() {
		if b := rt.doc.body; b != nil {
			out = append(out, Body{rt.method, rt.pattern, rt.doc.mostBytes(), b.files, b.of})
		}
	}
	return out
}
