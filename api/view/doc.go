// Package view has the types of the API's answers. The server encodes them, and package client
// decodes into them. The OpenAPI document is made from these types by reflection. The tag doc of a
// field is the field's description in that document, and 'quotes' in it become code.
//
// A field that may be absent has omitempty in its tag. An instant is a time.Time. If it may be
// absent, it is a *time.Time.
package view
