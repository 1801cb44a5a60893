package api

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

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

// Access is a line of the table, as far as it says who may.
type Access struct {
	Method, Pattern string
	Open            bool
	Role            auth.Role
	Over            string // "whole", "shared", "filtered", "inBody", "app", "job", "run" or "backfill"
}

// Table lists who may use which route.
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

// Guarded makes a server that also has a route of which the table does not say who may use it.
func Guarded(cfg Config, h http.HandlerFunc) http.Handler {
	s := New(cfg)
	s.handler.(chi.Router).Get("/forgotten",
		s.serve(s.guard(access{}, func(w http.ResponseWriter, r *http.Request) error { h(w, r); return nil })))
	return s
}

// Listeners tells how many streams there are, how many of them listen to the change feed, and
// whether that is read.
func (s *Server) Listeners() (streams, listeners int, reading bool) {
	s.streams.mu.Lock()
	streams = s.streams.all
	s.streams.mu.Unlock()
	listeners, reading = s.feed.Listeners()
	return streams, listeners, reading
}

// Beat has streams send a comment after so long without a message.
func (s *Server) Beat(d time.Duration) { s.streams.beat = d }

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

// Body is what a route takes.
type Body struct {
	Method, Pattern string
	Most            int64    // bytes that it may have
	Files           []string // media types, of a route that takes a file
	Of              reflect.Type
}

// Bodies lists the routes of the table that take a body.
func (s *Server) Bodies() (out []Body) {
	for _, rt := range s.table() {
		if b := rt.doc.body; b != nil {
			out = append(out, Body{rt.method, rt.pattern, rt.doc.mostBytes(), b.files, b.of})
		}
	}
	return out
}
