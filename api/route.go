package api

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"go-crontab/api/openapi"
)

// route is a line of the table of what there is.
type route struct {
	method  string
	pattern string
	may     access // who may use it, see access.go
	handler handler
	doc     *operation
}

func (rt *route) query() []parameter {
	if rt.doc == nil {
		return nil
	}
	return rt.doc.query
}

// operation is what the reference says of a route. Only query parameters that it names are taken.
type operation struct {
	id      string // clients make names of it: it never changes
	tag     string
	summary string
	about   string

	query    []parameter
	keyed    bool // takes an Idempotency-Key, which its handler reads
	once     bool // takes an Idempotency-Key, see once.go
	sealed   bool // has a secret in its answer, which is kept so that nobody else can read it
	matched  bool // takes If-Match: the version that it must be at
	unless   bool // takes If-None-Match: * where it must not be there
	cached   bool // its answer has an ETag, by which clients need not fetch it again
	spoken   bool // has words in the language that Accept-Language asks for
	streams  bool // its answer may be a stream of events, which can be resumed
	body     *requestBody
	most     int64 // bytes that its body may have, where that is not maxBody
	replies  []reply
	changes  bool   // something, by the Editor
	problems []kind // that it answers with, beside those that follow from the rest: see kinds
}

// requestBody is what a request may carry.
type requestBody struct {
	about    string
	of       reflect.Type
	patch    bool
	optional bool     // there need not be any
	files    []string // media types of files that are taken, instead of JSON
	example  string
}

// reply is an answer that is no problem.
type reply struct {
	status  int
	about   string
	of      reflect.Type // of its JSON, nil: it has none
	media   []string     // what else it may be
	stream  reflect.Type // of what the messages of a stream carry, nil: it is none
	headers []string     // see replyHeaders
}

// of names a type.
func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

// found is the reply of most routes that only read.
func found[T any](about string) []reply {
	return []reply{{status: http.StatusOK, about: about, of: of[T]()}}
}

// kinds are the types of the problems that a route may answer with, in the order of their table.
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
	apiPrefix  = "/api/v1/"
	apiVersion = "v1" // what the reference says: anybody may read it, and learns nothing of the program's own version
)

// mostBytes is how many bytes the body of a request may have.
func (op *operation) mostBytes() int64 {
	if op == nil {
		return maxBody
	}
	return cmp.Or(op.most, maxBody)
}

// use tells what a schema of the body is for.
func (b *requestBody) use() openapi.Use {
	if b.patch {
		return openapi.Patch
	}
	return openapi.Request
}
