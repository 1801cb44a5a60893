package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"go-crontab/job"
	"go-crontab/job/problem"
)

const (
	maxBody  = 256 << 10
	maxDepth = 16 // nested objects and arrays in a body; a job needs only two
	// maxFieldName is the longest name of a field or label, in bytes. No accepted name is longer.
	maxFieldName = utf8.UTFMax * job.MaxName

	maxCalendarBody = 2 << 20  // including white space
	maxLoginBody    = 4 << 10  // small, because anyone may send a login
	maxReturnBody   = 16 << 10 // anyone may send this body; codes of providers can be long
)

// withBoundedBody limits the body that a handler can read to the size that its route takes.
func withBoundedBody(op *operation, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		r.Body = http.MaxBytesReader(w, r.Body, op.mostBytes())
		return h(w, r)
	}
}

// readBody reads the body of a request, up to the size that its route takes.
func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError

	switch {
	case errors.As(err, &large):
		return nil, tooLarge.problem("The body can have at most %d bytes.", large.Limit)
	case err != nil:
		return nil, malformed.problem("The body ended early, after %d bytes.", len(body))
	}
	return body, nil
}

// readObject reads a body that must be a JSON object.
func readObject(r *http.Request) (map[string]any, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	if err := checkMedia(r); err != nil {
		return nil, err
	}
	return parseObject(unbounded(r.Context()), body)
}

// readOptional reads a body that may be a JSON object; nil without a body.
func readOptional(r *http.Request) (map[string]any, error) {
	body, err := readBody(r)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	if err := checkMedia(r); err != nil {
		return nil, err
	}
	return parseObject(unbounded(r.Context()), body)
}

// readNothing reads a body without content: none, or an empty object.
func readNothing(r *http.Request) error {
	o, err := readOptional(r)
	if err != nil {
		return err
	}
	return newFields(o).done()
}

func checkMedia(r *http.Request) error {
	given := r.Header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(given)
	if err == nil && (media == "application/json" ||
		media == "application/merge-patch+json" && r.Method == http.MethodPatch) {
		return nil
	}
	return unsupportedMedia.problem("The Content-Type is %q; send application/json.", cutShort(given))

}

// parseObject reads a single JSON object. It checks more than encoding/json: valid UTF-8, unique
// names in each object, short names and limited depth. Numbers stay as written. Parsing stops when
// ctx ends.
func parseObject(ctx context.Context, body []byte) (map[string]any, error) {
	if !utf8.Valid(body) {
		return nil, malformed.problem("The body is not valid UTF-8.")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, malformed.problem("The body is empty; send a JSON object.")
	}

	if err := json.Unmarshal(body, new(json.RawMessage)); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, malformed.problem("At byte %d: %v.", syntax.Offset, syntax)
		}
		return nil, malformed.problem("%v.", err)
	}

	p := &bodyParser{ctx: ctx, text: body}
	v, err := p.value()
	if err != nil {
		return nil, err
	}

	o, ok := v.(map[string]any)
	if !ok {
		return nil, invalidField("body", problem.WantObject, describe(v))
	}
	return o, nil
}

// bodyParser decodes a text that is known to be JSON. It keeps the path to the current value as
// steps, and spells the path only for an error. Spelling the path of every value would take time
// that grows with the square of the body's length.
type bodyParser struct {
	ctx    context.Context
	text   []byte
	at     int // the next byte to read
	steps  []step
	values int
}

// step leads from a JSON value to a value inside it. It is a field name or a list index.
type step struct {
	name   string
	index  int
	inList bool
}

// place spells the path to the current value, such as jobs[3].labels.
func (p *bodyParser) place() string {
	var place string
	for _, s := range p.steps {
		if s.inList {
			place += fmt.Sprintf("[%d]", s.index)
		} else {
			place = join(place, s.name)
		}
	}
	return place
}

// checkEvery is how many values are read between two checks that the client is still connected.
const checkEvery = 1024

// value reads the next value.
func (p *bodyParser) value() (any, error) {
	if p.values++; p.values%checkEvery == 0 && p.ctx.Err() != nil {
		return nil, context.Cause(p.ctx)
	}

	switch p.peek() {
	case '{', '[':
		if len(p.steps) == maxDepth {
			return nil, invalidField(p.place(), problem.TooDeep, maxDepth)
		}
		if p.peek() == '[' {
			return p.list()
		}
		return p.object()
	case '"':
		return p.string()
	}

	switch word := p.word(); word {
	case "null":
		return nil, nil
	case "true", "false":
		return word == "true", nil
	default:
		return json.Number(word), nil
	}
}

// peek skips white space and returns the next byte without reading it.
func (p *bodyParser) peek() byte {
	for {
		switch c := p.text[p.at]; c {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return c
		}
	}
}

// more skips the comma and space before the next element of a list or object, and reports whether
// there is an element. After the last element it reads the closing bracket.
func (p *bodyParser) more(end byte) bool {
	c := p.peek()
	if c == ',' {
		p.at++
		c = p.peek()
	}

	if c == end {
		p.at++
		return false
	}

	return true
}

// word reads a number, or true, false or null.
func (p *bodyParser) word() string {
	begin := p.at
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n,]}", p.text[p.at]) < 0 {
		p.at++
	}
	return string(p.text[begin:p.at])
}

// string reads a quoted text.
func (p *bodyParser) string() (s string, err error) {
	begin, escaped := p.at, false
	for p.at++; p.text[p.at] != '"'; p.at++ {
		if p.text[p.at] == '\\' {
			escaped = true
			p.at++
		}
	}
	p.at++

	if !escaped {
		return string(p.text[begin+1 : p.at-1]), nil
	}

	err = json.Unmarshal(p.text[begin:p.at], &s)
	return s, err
}

// list reads a list.
func (p *bodyParser) list() (any, error) {
	p.at++ // the bracket

	list := []any{}
	for p.more(']') {
		p.steps = append(p.steps, step{index: len(list), inList: true})
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		p.steps = p.steps[:len(p.steps)-1]
	}

	return list, nil
}

// object reads an object.
func (p *bodyParser) object() (any, error) {
	p.at++ // the brace

	o := map[string]any{}
	for p.more('}') {
		name, err := p.string()
		if err != nil {
			return nil, err
		}

		p.steps = append(p.steps, step{name: name})
		if len(name) > maxFieldName {
			return nil, invalidField(p.place(), problem.LongFieldName, len(name), maxFieldName)
		}
		if _, twice := o[name]; twice {
			return nil, invalidField(p.place(), problem.GivenTwice)
		}

		p.peek()
		p.at++ // the colon
		if o[name], err = p.value(); err != nil {
			return nil, err
		}

		p.steps = p.steps[:len(p.steps)-1]
	}

	return o, nil
}

// join returns the path of a field: the path of its object, and then its name.
func join(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
}

// mergePatch applies a JSON merge patch (RFC 7396). It may change the target.
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
