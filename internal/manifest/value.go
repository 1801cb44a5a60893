package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Place is a position in a file.
type Place struct {
	File   string
	Line   int // from 1; 0: the whole file
	Column int // from 1, in characters; 0: the whole line
}

func (p Place) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Fault is an error at a place.
type Fault struct {
	Place
	Message string
}

func (f Fault) Error() string { return f.Place.String() + ": " + f.Message }

// Faults is an error with all faults of the files, in the order of the files.
type Faults []Fault

func (f Faults) Error() string {
	var b bytes.Buffer
	for i, x := range f {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(x.Error())
	}
	return b.String()
}

// Value is a JSON value with its place.
type Value struct {
	at     Place
	scalar any      // nil, bool, string or json.Number, unless an object or a list
	fields []*Field // of an object, in their order
	items  []*Value // of a list
	kind   kind
}

type kind int

const (
	isScalar kind = iota
	isObject
	isList
)

// Field is a field of an object.
type Field struct {
	name  string
	at    Place // of its name
	value *Value
}

func (v *Value) field(name string) *Value {
	for _, f := range v.fields {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

// text returns a field of type string, or "".
func (v *Value) text(name string) string {
	if f := v.field(name); f != nil {
		s, _ := f.scalar.(string)
		return s
	}
	return ""
}

// isNull reports whether the value is null.
func (v *Value) isNull() bool { return v.kind == isScalar && v.scalar == nil }

// MarshalJSON writes the value.
func (v *Value) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := v.write(&b)
	return b.Bytes(), err
}

func (v *Value) write(b *bytes.Buffer) error {
	switch v.kind {
	case isScalar:
		return writeScalar(b, v.scalar)
	case isList:
		b.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := item.write(b); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}

	b.WriteByte('{')
	for i, f := range v.fields {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeScalar(b, f.name); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := f.value.write(b); err != nil {
			return err
		}
	}

	b.WriteByte('}')
	return nil
}

func writeScalar(b *bytes.Buffer, v any) error {
	text, err := json.Marshal(v)
	b.Write(text)
	return err
}
