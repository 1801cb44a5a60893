// Package openapi models the part of OpenAPI 3.1 that the API needs to describe itself: documents,
// and schemas of Go types. The output does not depend on the order of Go maps, so it is always the
// same.
package openapi
