package openapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Map is a JSON object with ordered fields.
type Map[V any] []Entry[V]

// Entry is a field of a Map.
type Entry[V any] struct {
	Key   string
	Value V
}

// Get returns the value of a field.
func (m Map[V]) Get(key string) (v V, ok bool) {
	if i := m.index(key); i >= 0 {
		return m[i].Value, true
	}
	return v, false
}

// Set adds a field or replaces its value.
func (m *Map[V]) Set(key string, v V) {
	if i := m.index(key); i >= 0 {
		(*m)[i].Value = v
		return
	}
	*m = append(*m, Entry[V]{key, v})
}

// Sort orders the fields by name.
func (m Map[V]) Sort() {
	slices.SortFunc(m, func(a, b Entry[V]) int { return strings.Compare(a.Key, b.Key) })
}

func (m Map[V]) index(key string) int {
	return slices.IndexFunc(m, func(e Entry[V]) bool { return e.Key == key })
}

// MarshalJSON writes the fields in their order.
func (m Map[V]) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)

	b.WriteByte('{')
	for i, field := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := e.Encode(field.Key); err != nil {
			return nil, err
		}

		b.WriteByte(':')
		if err := e.Encode(field.Value); err != nil {
			return nil, err
		}
	}

	b.WriteByte('}')
	return b.Bytes(), nil
}
