// Package openapi has as much of OpenAPI 3.1 as the API needs to say of itself: the parts of a
// document, and schemas of Go types. What it writes is the same text every time: nothing in it
// depends on the order of a Go map.
package openapi
