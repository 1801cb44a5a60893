package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// readJSON reads a file with one or several JSON values in a row.
func readJSON(file string, text []byte) ([]*Value, error) {
	r := &jsonReader{file: file, text: text}
	if !utf8.Valid(text) {
		return nil, Faults{{Place{File: file}, "is not valid UTF-8"}}
	}

	r.d = json.NewDecoder(bytes.NewReader(text))
	r.d.UseNumber()
	var out []*Value
	for {
		v, err := r.value(0)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, r.explain(err)
		}
		out = append(out, v)
	}
}

type jsonReader struct {
	file string
	text []byte
	d    *json.Decoder

	// Lines were counted up to this position.
	seen, line, lineAt int
}

// explain turns a decoder's error into faults with a place.
func (r *jsonReader) explain(err error) error {
	var (
		faults Faults
		syntax *json.SyntaxError
	)

	switch {
	case errors.As(err, &faults):
		return err
	case errors.As(err, &syntax):
		at := syntax.Offset
		// If the text is a single value, decoding the whole text gives the exact offset.
		if whole := json.Unmarshal(r.text, new(json.RawMessage)); errors.As(whole, &syntax) && syntax.Offset > at {
			at = syntax.Offset - 1
		}
		return Faults{{r.place(int(at)), "is not JSON: " + err.Error()}}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Faults{{r.place(len(r.text)), "is not JSON: it ends too early"}}
	}

	return Faults{{r.place(int(r.d.InputOffset())), "is not JSON: " + err.Error()}}
}

// place converts an offset into a place. It is fast for ascending offsets.
func (r *jsonReader) place(offset int) Place {
	if offset < r.seen {
		r.seen, r.line, r.lineAt = 0, 0, 0
	}
	for ; r.seen < offset && r.seen < len(r.text); r.seen++ {
		if r.text[r.seen] == '\n' {
			r.line, r.lineAt = r.line+1, r.seen+1
		}
	}
	return Place{r.file, r.line + 1, utf8.RuneCount(r.text[r.lineAt:r.seen]) + 1}
}

// next returns the place of the next token.
func (r *jsonReader) next() Place {
	i := int(r.d.InputOffset())
	for i < len(r.text) && bytes.IndexByte([]byte(" \t\r\n,:"), r.text[i]) >= 0 {
		i++
	}
	return r.place(i)
}

func (r *jsonReader) value(depth int) (*Value, error) {
	at := r.next()
	token, err := r.d.Token()
	if err != nil {
		if depth > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}

	v := &Value{at: at}
	delim, ok := token.(json.Delim)
	if !ok {
		v.scalar = token
		return v, nil
	}

	if depth > maxDepth {
		return nil, Faults{{at, fmt.Sprintf("is nested more than %d levels deep", maxDepth)}}
	}
	if delim == '[' {
		v.kind = isList
		for r.d.More() {
			item, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			v.items = append(v.items, item)
		}
	} else {
		v.kind = isObject
		if err := r.fields(v, depth); err != nil {
			return nil, err
		}
	}

	if _, err = r.d.Token(); errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}

	return v, err
}

func (r *jsonReader) fields(v *Value, depth int) error {
	first := map[string]Place{}
	for r.d.More() {
		at := r.next()
		token, err := r.d.Token()
		if err != nil {
			return err
		}

		name, ok := token.(string)
		if !ok {
			return Faults{{at, "is not JSON: field names must be in quotes"}}
		}

		if was, twice := first[name]; twice {
			return Faults{{at, fmt.Sprintf("%s is given twice; the first is in line %d", name, was.Line)}}
		}

		first[name] = at
		value, err := r.value(depth + 1)
		if err != nil {
			return err
		}

		v.fields = append(v.fields, &Field{name, at, value})
	}

	return nil
}
