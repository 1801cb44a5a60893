// Package api is the HTTP API: JSON over the tables that package sql reads and the [Editor] that changes jobs.
//
// # Requests
//
// A request passes, in this order: an id, the debug log line, a net under panics, the headers that every answer has,
// the allow-list of Host headers, the cross-origin check, a deadline, the router. Each route names the query
// parameters that it takes; any other is refused, as are body fields that nobody knows: a typo must not be taken for
// a wish to leave something out.
//
// # Answers
//
// Objects and lists are JSON; every error is a problem (RFC 9457) whose type is stable, whose detail says what to
// do, and which never carries SQL, a stack or what the database said. Ids are text. Lists go by keyset cursors: an
// object that is there all the while is listed exactly once.
//
// A change is answered once it is known to stand or known not to. Where the database's answer was lost, the problem
// says so and where to look.
//
// # The reference
//
// A route is a line of the table in server.go and an operation in reference_*.go: what it takes, what it answers, and
// what it is for. The OpenAPI document and the page at /docs are made of that and of the Go types that are really
// encoded; their fields are described by doc tags, those of a job's definition by the tables of docs/jobs.md. A query
// parameter is declared once, and its handler reads it by that declaration. Tests hold the rest together: each answer
// that any test here gets is held against the document, and each body that was taken; see contract_test.go and
// drift_test.go.
//
// # Jobs
//
// POST describes a new job; what the server sets (id, status, version …) is refused there, because a status that is
// silently ignored is a trap. PUT and PATCH ignore those fields, so that what GET answered can be edited and sent
// back. PUT replaces the definition, except that an absent "paused" leaves the job paused or not, and an absent
// "start" keeps the phase of an unchanged "every": sending the same definition twice changes nothing. PATCH is a JSON
// merge patch: null removes a field.
package api
