package api

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"go-crontab/api/openapi"
)

// route is a line of the table of routes.
type route struct {
	method  string
	pattern string
	may     access // see access.go
	handler handler
	doc     *operation
}

func (rt *route) query() []parameter {
	if rt.doc == nil {
		return nil
	}
	return rt.doc.query
}

// operation describes a route for the reference. The route refuses query parameters that the
// operation does not name.
type operation struct {
	id      string // clients generate names from the id, so it never changes
	tag     string
	summary string
	about   string

	query    []parameter
	keyed    bool // takes an Idempotency-Key, which its handler reads
	once     bool // takes an Idempotency-Key, see once.go
	sealed   bool // the answer holds a secret, so it is kept encrypted
	matched  bool // takes If-Match: the version that the object must have
	unless   bool // takes If-None-Match: * if the object must not exist yet
	cached   bool // the answer has an ETag, and may be 304
	spoken   bool // the answer has words in the language that Accept-Language asks for
	streams  bool // the answer may be a stream of events, which can be resumed
	body     *requestBody
	most     int64 // bytes in the body; zero: maxBody
	replies  []reply
	changes  bool   // changes something, through the Editor
	problems []kind // besides the problems that follow from the other fields: see kinds
}

// requestBody describes the body of a request.
type requestBody struct {
	about    string
	of       reflect.Type
	patch    bool
	optional bool     // the body may be absent
	files    []string // media types of files that the route takes instead of JSON
	example  string
}

// reply is an answer that is not a problem.
type reply struct {
	status  int
	about   string
	of      reflect.Type // type of the JSON; nil: none
	media   []string     // other media types
	stream  reflect.Type // type of the messages if the answer is a stream; nil: no stream
	headers []string     // see replyHeaders
}

// of returns the reflect.Type of T.
func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

// found is the reply of most routes that only read.
func found[T any](about string) []reply {
	return []reply{{status: http.StatusOK, about: about, of: of[T]()}}
}

// kinds are the problem types that a route may answer with, in the order of their table.
func (rt *route) kinds() []kind {
	op := rt.doc
	out := append([]kind{invalid, internal}, op.problems...)
	if !anyHost[rt.pattern] {
		out = append(out, forbiddenHost)
	}
	if !rt.may.open {
		out = append(out, unauthenticated, forbidden, tooMany)
	}
	if rt.method != http.MethodGet {
		out = append(out, crossOrigin)
	}

	if strings.HasPrefix(rt.pattern, apiPrefix) {
		out = append(out, unavailable)
	}
	if op.body != nil {
		out = append(out, malformed, tooLarge, unsupportedMedia)
	}
	if op.changes {
		out = append(out, noSession, unknownOutcome)
	}

	if op.once || op.keyed {
		out = append(out, keyReused)
	}
	if op.matched || op.unless {
		out = append(out, stale)
	}
	if op.streams {
		out = append(out, noStream)
	}

	var ordered []kind
	for _, p := range problemTable {
		if slices.Contains(out, p.kind) {
			ordered = append(ordered, p.kind)
		}
	}

	return ordered
}

const (
	apiPrefix = "/api/v1/"
	// the version in the reference, which anyone may read; the program's own version stays hidden
	apiVersion = "v1"
)

// mostBytes is the size limit of a request body.
func (op *operation) mostBytes() int64 {
	if op == nil {
		return maxBody
	}
	return cmp.Or(op.most, maxBody)
}

// use is the purpose of the body's schema.
func (b *requestBody) use() openapi.Use {
	if b.patch {
		return openapi.Patch
	}
	return openapi.Request
}
