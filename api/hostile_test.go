package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"go-crontab/api"
)

// hostileSize is the size of hostile bodies, if a route takes that much.
const hostileSize = 256 << 10

// hopeless is the factor over the allowed cost from which on a request is not tried again: a busy
// machine does not explain more.
const hopeless = 10

// mostProblem limits the answer to a body of any size.
const mostProblem = 64 << 10

// TestHostileBodies sends bodies that are meant to cost more than their length to every route.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	routes := h.server.Bodies()
	if len(routes) < 30 {
		t.Fatalf("%d routes take a body: this looks at too few", len(routes))
	}

	for _, rt := range routes {
		most := min(hostileSize, int(rt.Most))
		for _, shape := range api.HostileBodies(most) {
			h.send(rt, shape.Name, shape.JSON)
		}
	}
}

// TestHostileFields puts hostile values into every field of a body, once for each type of body.
func TestHostileFields(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	seen := map[reflect.Type]bool{}
	places := 0
	for _, rt := range h.server.Bodies() {
		if rt.Of == nil {
			continue
		}
		for _, place := range placesOf(rt.Of, seen) {
			places++
			before, after, _ := strings.Cut(place, "%")
			for _, value := range api.HostileValues(min(hostileSize, int(rt.Most)) - 128) {
				h.send(rt, value.Name+" in "+place, before+value.JSON+after)
			}
		}
	}

	if places < 100 {
		t.Errorf("%d fields were found: this looks at too few", places)
	}
}

// TestHostileFiles sends hostile files.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	for _, rt := range h.server.Bodies() {
		for _, media := range rt.Files {
			for _, text := range []string{"2027-01-01,2099-12-31\n", "2027-01-01\n", ",,,,,\n", "\"", "\n",
				"BEGIN:VCALENDAR\n", "BEGIN:VEVENT\nDTSTART:20270101\nEND:VEVENT\n", ";=", "A\n "} {
				file := strings.Repeat(text, hostileSize/len(text))
				h.sendAs(rt, media, fmt.Sprintf("%.20q", text), file)
				h.sendAs(rt, media, fmt.Sprintf("a calendar of %.20q", text),
					"BEGIN:VCALENDAR\n"+file+"\nEND:VCALENDAR\n")
			}
		}
	}
}

// placesOf lists bodies of a type with % in place of the value of one field, without types that it
// has seen.
func placesOf(t reflect.Type, seen map[reflect.Type]bool) (out []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	if t.Kind() != reflect.Struct || seen[t] {
		return nil
	}

	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			out = append(out, placesOf(f.Type, seen)...)
			continue
		case name == "" || name == "-":
			continue
		}

		out = append(out, fmt.Sprintf("{%q:%%}", name))
		in, open, end := f.Type, "", ""
		for in.Kind() == reflect.Pointer || in.Kind() == reflect.Slice {
			if in.Kind() == reflect.Slice {
				open, end = open+"[", end+"]"
			}
			in = in.Elem()
		}

		for _, inner := range placesOf(in, seen) {
			out = append(out, fmt.Sprintf("{%q:", name)+open+inner+end+"}")
		}
	}

	return out
}

// hostile sends bodies to a server and checks their cost.
type hostile struct {
	*site
	server   *api.Server
	patience time.Duration
}

func newHostile(t *testing.T) *hostile {
	t.Helper()
	s := start(t, func(cfg *api.Config) { cfg.Rate = -1 })
	s.create("there", nil)
	s.call("PUT", "/api/v1/calendars/there", object{"exclude": []string{"2027-01-01"}}).want(201)
	h := &hostile{site: s, server: api.New(s.cfg), patience: api.Patience()}
	t.Cleanup(h.server.Close)
	return h
}

func (h *hostile) send(rt api.Body, what, body string) {
	h.t.Helper()
	h.sendAs(rt, "application/json", what, body)
}

func (h *hostile) sendAs(rt api.Body, media, what, body string) {
	h.t.Helper()
	path := strings.NewReplacer("{id}", "1", "{app}", "default", "{name}", "there", "{key}", "k").Replace(rt.Pattern)
	var w *httptest.ResponseRecorder
	least := time.Hour
	for range 3 {
		r := httptest.NewRequestWithContext(h.t.Context(), rt.Method, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", media)
		r.Header.Set("Authorization", "Bearer "+h.token)
		w = httptest.NewRecorder()
		least = min(least, api.CPU(func() { h.server.ServeHTTP(w, r) }))
		if least <= h.patience || least > hopeless*h.patience {
			break
		}
	}

	if least > h.patience {
		h.t.Fatalf("%s %s with %s, %d bytes: took %s of a processor, want at most %s", rt.Method, rt.Pattern, what,
			len(body), least, h.patience)
	}

	if w.Code >= http.StatusInternalServerError && w.Code != http.StatusServiceUnavailable {
		h.t.Errorf("%s %s with %s: got %d %.300s", rt.Method, rt.Pattern, what, w.Code, w.Body)
	}
	if w.Code >= http.StatusBadRequest && w.Body.Len() > mostProblem {
		h.t.Errorf("%s %s with %s: got a problem of %d bytes, want at most %d", rt.Method, rt.Pattern, what,
			w.Body.Len(), mostProblem)
	}
}
