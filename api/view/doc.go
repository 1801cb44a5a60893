// Package view has the types of the API's answers, each of them once. The server encodes them,
// package client decodes into them, and the OpenAPI document is made from them by reflection: a
// tag doc describes its field there, in which 'quotes' become code.
//
// A field that may be absent has omitempty in its tag. Instants are a time.Time, or a *time.Time
// where there may be none.
package view
