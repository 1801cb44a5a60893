// Package view has the types of the API's answers. The server encodes them, and package client
// decodes into them. The OpenAPI document is made from them by reflection: the tag doc of a field
// is its description there, in which 'quotes' become code.
//
// A field that may be absent has omitempty in its tag. An instant is a time.Time, or a *time.Time
// if it may be absent.
package view
