// Package api is the HTTP API: JSON over the tables that package sql reads and the [Editor] that
// changes jobs.
//
// # Requests
//
// A request passes these layers in order: request id, debug log line, panic recovery, common
// headers, the allow-list of Host headers, the cross-origin check, a deadline, the router.
//
// Each route names its query parameters. Any other parameter is refused, and so is an unknown field
// in a body: otherwise a misspelt name would silently mean "leave it out".
//
// # Answers
//
// Objects and lists are JSON. Every error is a problem (RFC 9457): its type is stable, its detail
// says what to do, and it never carries SQL, a stack or a message of the database. Ids are text.
// Lists use keyset cursors: an object that exists throughout is listed exactly once.
//
// A change is answered once it is known to be committed or rolled back. If the database's reply was
// lost, the problem says so and where to look.
//
// # The reference
//
// A route is a line of the table in server.go and an operation in reference_*.go: its input, its
// answers and its purpose. The OpenAPI document and the page at /docs are generated from these
// operations and from the Go types that are really encoded. Fields are described by doc tags; the
// fields of a job's definition are described by the tables of docs/jobs.md. A query parameter is
// declared once, and its handler reads it through that declaration.
//
// Tests keep code and document together: they check every answer that a test here receives, and
// every body that was accepted, against the document. See contract_test.go and drift_test.go.
//
// # Jobs
//
// POST describes a new job. It refuses the fields that the server sets (id, status, version …),
// because silently ignoring a status is a trap. PUT and PATCH ignore these fields, so that the
// answer of GET can be edited and sent back.
//
// PUT replaces the definition, with two exceptions: without "paused" the job stays paused or not,
// and without "start" an unchanged "every" keeps its phase. So sending the same definition twice
// changes nothing. PATCH is a JSON merge patch: null removes a field.
package api
