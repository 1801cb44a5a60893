package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"unicode/utf8"
)

const (
	maxBody  = 256 << 10
	maxDepth = 16 // of objects and arrays in a body; a job needs two

	maxCalendarBody = 2 << 20 // white space included
)

// readObject reads the JSON object that a request carries.
func readObject(w http.ResponseWriter, r *http.Request) (map[string]any, error) {
	return readObjectUpTo(w, r, maxBody)
}

func readObjectUpTo(w http.ResponseWriter, r *http.Request, most int64) (map[string]any, error) {
	body, err := readUpTo(w, r, most)
	if err != nil {
		return nil, err
	}
	if err := checkMedia(r); err != nil {
		return nil, err
	}
	return parseObject(body)
}

// readNothing reads the body of a request that has nothing to say: none, or an empty object.
func readNothing(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r)
	if err != nil || len(body) == 0 {
		return err
	}
	if err := checkMedia(r); err != nil {
		return err
	}
	o, err := parseObject(body)
	if err != nil {
		return err
	}
	f := newFields(o)
	return f.done()
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) { return readUpTo(w, r, maxBody) }

func readUpTo(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge.problem("At most %d bytes are taken.", most)
	case err != nil:
		return nil, malformed.problem("The body broke off after %d bytes.", len(body))
	}
	return body, nil
}

func checkMedia(r *http.Request) error {
	given := r.Header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(given)
	if err == nil && (media == "application/json" || media == "application/merge-patch+json" && r.Method == http.MethodPatch) {
		return nil
	}
	return unsupportedMedia.problem("The Content-Type is %q; send application/json.", given)
}

// parseObject reads one JSON object and nothing else. Beyond what encoding/json checks it wants valid UTF-8, names
// that stand once in an object, and bounded depth. Numbers stay as they were written.
func parseObject(body []byte) (map[string]any, error) {
	if !utf8.Valid(body) {
		return nil, malformed.problem("It is not valid UTF-8.")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, malformed.problem("It is empty; a JSON object is wanted.")
	}
	// Of the whole at once: a decoder that reads token by token does not know all of the grammar.
	if err := json.Unmarshal(body, new(json.RawMessage)); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, malformed.problem("At byte %d: %v.", syntax.Offset, syntax)
		}
		return nil, malformed.problem("%v.", err)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	v, err := parseValue(d, "", 0)
	if err != nil {
		return nil, err
	}
	o, ok := v.(map[string]any)
	if !ok {
		return nil, invalidField("body", "is %s; want an object", describe(v))
	}
	return o, nil
}

func parseValue(d *json.Decoder, place string, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, malformed.problem("At byte %d: %v.", d.InputOffset(), err)
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth == maxDepth {
		return nil, invalidField(place, "is nested more than %d levels deep", maxDepth)
	}
	if delim == '[' {
		list := []any{}
		for d.More() {
			v, err := parseValue(d, fmt.Sprintf("%s[%d]", place, len(list)), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	}
	o := map[string]any{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name := token.(string) // the grammar was checked
		field := join(place, name)
		if _, twice := o[name]; twice {
			return nil, invalidField(field, "is given twice")
		}
		if o[name], err = parseValue(d, field, depth+1); err != nil {
			return nil, err
		}
	}
	_, err = d.Token()
	return o, err
}

// join names a field of the object at a place.
func join(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
}

// mergePatch applies a JSON merge patch (RFC 7396). The target may be changed.
func mergePatch(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	t, ok := target.(map[string]any)
	if !ok {
		t = map[string]any{}
	}
	for name, v := range p {
		if v == nil {
			delete(t, name)
			continue
		}
		t[name] = mergePatch(t[name], v)
	}
	return t
}
