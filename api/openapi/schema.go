package openapi

import (
	"encoding/json"
	"slices"
)

// Schema is a JSON Schema, draft 2020-12. With a Ref, only descriptive fields may be set.
type Schema struct {
	Ref         string `json:"$ref,omitempty"`
	Type        Types  `json:"type,omitempty"` // empty: any type
	Format      string `json:"format,omitempty"`
	Description string `json:"description,omitempty"`
	ReadOnly    bool   `json:"readOnly,omitempty"`

	Enum      []any    `json:"enum,omitempty"`
	Pattern   string   `json:"pattern,omitempty"`
	MinLength int      `json:"minLength,omitempty"` // characters
	MaxLength int      `json:"maxLength,omitempty"`
	Minimum   *float64 `json:"minimum,omitempty"`
	Maximum   *float64 `json:"maximum,omitempty"`

	Items    *Schema `json:"items,omitempty"`
	MaxItems int     `json:"maxItems,omitempty"`

	Properties           Map[*Schema] `json:"properties,omitempty"`
	Required             []string     `json:"required,omitempty"`
	AdditionalProperties any          `json:"additionalProperties,omitempty"` // a *Schema, or Closed
	MaxProperties        int          `json:"maxProperties,omitempty"`

	AnyOf []*Schema `json:"anyOf,omitempty"`

	Default  json.RawMessage   `json:"default,omitempty"`
	Examples []json.RawMessage `json:"examples,omitempty"`
}

// The types of JSON.
const (
	String  = "string"
	Integer = "integer"
	Number  = "number"
	Boolean = "boolean"
	Array   = "array"
	Object  = "object"
	Null    = "null"
)

// Closed is a value of AdditionalProperties. It forbids all properties that are not listed.
const Closed = closed(false)

type closed bool

// Types are the types that a value may have.
type Types []string

// MarshalJSON writes a single type as a text, and several types as a list.
func (t Types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// Refer returns a reference to a schema component.
func Refer(name string) *Schema { return &Schema{Ref: "#/components/schemas/" + name} }

// Words returns the schema of a string with a fixed set of values.
func Words[T ~string](words ...T) *Schema {
	s := &Schema{Type: Types{String}}
	for _, w := range words {
		s.Enum = append(s.Enum, string(w))
	}
	return s
}

// Bound returns a pointer to a number, for Minimum or Maximum.
func Bound(n float64) *float64 { return &n }

// Nullable returns a schema that also permits null. A reference goes into an AnyOf, and its
// descriptive fields move to the outer schema.
func (s *Schema) Nullable() *Schema {
	switch {
	case s.Ref != "":

		out := &Schema{Description: s.Description, Default: s.Default, Examples: s.Examples}
		inner := *s
		inner.Description, inner.Default, inner.Examples = "", nil, nil
		out.AnyOf = []*Schema{&inner, {Type: Types{Null}}}
		return out
	case len(s.Type) == 0:
		return s
	}

	out := *s
	out.Type = append(slices.Clone(s.Type), Null)
	if s.Enum != nil {
		out.Enum = append(slices.Clone(s.Enum), nil)
	}
	return &out
}
