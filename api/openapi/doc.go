// Package openapi models the part of OpenAPI 3.1 that the API needs to describe itself: documents,
// and schemas of Go types. Its output is deterministic: it does not depend on the order of Go maps.
package openapi
