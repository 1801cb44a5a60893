package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// keptFields are written even if they have default values. They identify the job and its start.
var keptFields = []string{"app", "name", "start"}

// structured are the fields that contain fields with defaults.
var structured = []string{"after", "http", "http.tls", "http.sign", "limits", "misfire", "retry", "keep", "output"}

// Minimal returns a definition without default values, as people would write it. On any day,
// Defaults turns the result into the same definition again. The fields are in the order of Spec.
func (s *Spec) Minimal() (json.RawMessage, error) {
	s = s.inUTC()
	full, err := s.Encode()
	if err != nil {
		return nil, err
	}

	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // people will read it
	if err := e.Encode(s); err != nil {
		return nil, err
	}

	o, err := readFields(text.Bytes())
	if err != nil {
		return nil, err
	}

	m := minimizer{root: o, want: full}
	if err := m.strip(o, ""); err != nil {
		return nil, err
	}

	return m.root.MarshalJSON()
}

type minimizer struct {
	root *fieldList
	want string
}

// strip removes unnecessary fields from the object at a place.
func (m *minimizer) strip(o *fieldList, place string) error {
	for i := 0; i < len(o.list); {
		f := o.list[i]
		path := place + f.name
		if !slices.Contains(keptFields, path) {
			o.list = slices.Delete(o.list, i, i+1)
			if m.same() {
				continue
			}
			o.list = slices.Insert(o.list, i, f)
		}
		if slices.Contains(structured, path) && f.value[0] == '{' {
			inner, err := readFields(f.value)
			if err != nil {
				return err
			}
			o.list[i].inner = inner
			if err := m.strip(inner, path+"."); err != nil {
				return err
			}
		}
		i++
	}

	return nil
}

// same reports whether the remaining fields still give the same definition.
func (m *minimizer) same() bool {
	text, err := m.root.MarshalJSON()
	if err != nil {
		return false
	}

	s, err := DecodeSpec(string(text))
	if err != nil {
		return false
	}

	s.Defaults(time.Unix(0, 0))
	is, err := s.inUTC().Encode()
	return err == nil && is == m.want
}

// fieldList is a JSON object that keeps the order of its fields.
type fieldList struct{ list []namedValue }

type namedValue struct {
	name  string
	value json.RawMessage
	inner *fieldList // replaces value if that is an object
}

func readFields(text []byte) (*fieldList, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, err
	}

	o := &fieldList{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		o.list = append(o.list, namedValue{name: fmt.Sprint(name), value: value})
	}

	return o, nil
}

// MarshalJSON writes the fields in order.
func (o *fieldList) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	b.WriteByte('{')
	for i, f := range o.list {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(f.name)
		if err != nil {
			return nil, err
		}
		value := []byte(f.value)
		if f.inner != nil {
			if value, err = f.inner.MarshalJSON(); err != nil {
				return nil, err
			}
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}

	b.WriteByte('}')
	return []byte(b.String()), nil
}
