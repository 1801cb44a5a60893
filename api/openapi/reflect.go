package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Use is the purpose of a schema. A Go type has a separate schema for each use.
type Use int

// The uses.
const (
	Answer  Use = iota // fields without omitempty are required; later versions may add fields
	Request            // as for Answer, unless Needs has the type; unknown fields are refused
	Patch              // a JSON merge patch: no field is required, and null removes a field
)

// suffix returns the last part of a schema's name, which names the use.
func (u Use) suffix() string { return [...]string{"", "Input", "Patch"}[u] }

// Reflector makes schemas of Go types. A schema describes what encoding/json writes for the type.
//
// A struct becomes a component. Its fields may have these tags: doc, a description in which
// 'quotes' become backticks; format; and enum, words separated by commas.
type Reflector struct {
	// Named are the schemas of types that encode themselves or have few values. They become
	// components with the given names.
	Named map[reflect.Type]Named
	// Name names the component of a struct.
	Name func(reflect.Type) string
	// Needs lists the required fields of requests, by type. For a type that is not in Needs, the
	// fields without omitempty are required.
	Needs map[reflect.Type][]string
	// Instead may return a schema that replaces the schema of the field's type. If it returns nil,
	// that schema stays. name is the field's JSON name.
	Instead func(owner reflect.Type, name string, use Use) *Schema
	// Field may change the schema of a field, for example by adding limits.
	Field func(owner reflect.Type, name string, use Use, s *Schema)

	made  Map[*Schema]
	types map[string]reflect.Type // the types of the components in made, by name
}

// Named is a schema with a name.
type Named struct {
	Name   string
	Schema *Schema
	Input  *Schema // for requests and patches that accept more than answers have; nil: Schema
}

// Schemas returns the components that Of has made, sorted by name.
func (r *Reflector) Schemas() Map[*Schema] {
	r.made.Sort()
	return r.made
}

// Of returns the schema of a type. If this schema is a component, Of returns a reference to it.
func (r *Reflector) Of(t reflect.Type, use Use) *Schema {
	if n, ok := r.Named[t]; ok {
		name, s := n.Name, n.Schema
		if use != Answer && n.Input != nil {
			name, s = name+"Input", n.Input
		}
		return r.component(t, name, func(made *Schema) { *made = *s })
	}

	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return &Schema{}
	case reflect.TypeFor[[]byte](): // base64
		return &Schema{Type: Types{String}}
	case reflect.TypeFor[time.Time]():
		return &Schema{Type: Types{String}, Format: "date-time"}
	}

	switch t.Kind() {
	case reflect.Pointer:
		return r.Of(t.Elem(), use)
	case reflect.String:
		return &Schema{Type: Types{String}}
	case reflect.Bool:
		return &Schema{Type: Types{Boolean}}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16,
		reflect.Uint32:
		return &Schema{Type: Types{Integer}}
	case reflect.Float64:
		return &Schema{Type: Types{Number}, Format: "double"} // without it, some generators use 32 bits
	case reflect.Slice:
		return &Schema{Type: Types{Array}, Items: r.Of(t.Elem(), use)}
	case reflect.Map:
		values := r.Of(t.Elem(), use)
		if use == Patch {
			values = values.Nullable()
		}
		return &Schema{Type: Types{Object}, AdditionalProperties: values}
	case reflect.Struct:
		return r.component(t, r.Name(t)+use.suffix(), func(made *Schema) { r.object(t, use, made) })
	}

	panic(fmt.Sprintf("openapi: no schema for %s", t))
}

// quoted matches code in a doc tag. An apostrophe within a word follows a letter, so it does not
// match.
var quoted = regexp.MustCompile(`(^|[ (])'([^']+)'`)

// component returns a reference to a component. On first use it makes the component and calls fill.
func (r *Reflector) component(t reflect.Type, name string, fill func(*Schema)) *Schema {
	if other, ok := r.types[name]; ok {
		if other != t {
			panic(fmt.Sprintf("openapi: %s and %s both want to be called %s; name one of them otherwise", other, t,
				name))
		}
		return Refer(name)
	}

	if r.types == nil {
		r.types = map[string]reflect.Type{}
	}

	made := new(Schema)
	r.types[name] = t
	// Add the schema before it is filled in, because a type may contain itself.
	r.made = append(r.made, Entry[*Schema]{name, made})
	fill(made)
	return Refer(name)
}

// object fills in the schema of a struct.
func (r *Reflector) object(t reflect.Type, use Use, made *Schema) {
	made.Type = Types{Object}
	if use != Answer {
		made.AdditionalProperties = Closed
	}

	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || name == "" && f.Anonymous || !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}

		always := !slices.ContainsFunc(strings.Split(options, ","), func(o string) bool {
			return o == "omitempty" || o == "omitzero"
		})
		if r.Instead != nil {
			if s := r.Instead(t, name, use); s != nil {
				made.Properties.Set(name, s)
				continue
			}
		}

		s := r.Of(f.Type, use)
		s.Description = quoted.ReplaceAllString(f.Tag.Get("doc"), "$1`$2`")
		if format := f.Tag.Get("format"); format != "" {
			s.Format = format
		}
		if words := f.Tag.Get("enum"); words != "" {
			s.Enum = Words(strings.Split(words, ",")...).Enum
		}
		if r.Field != nil {
			r.Field(t, name, use, s)
		}

		if always && use != Patch {
			made.Required = append(made.Required, name)
		}
		if use == Patch || use == Answer && always && f.Type.Kind() == reflect.Pointer {
			s = s.Nullable()
		}

		made.Properties.Set(name, s)
	}

	if needs, ok := r.Needs[t]; ok && use == Request {
		made.Required = needs
	}
}
