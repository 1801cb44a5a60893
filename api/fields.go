package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// fields reads the fields of a JSON object one by one. It collects the known names and all
// mistakes. If a field is absent or null, the variable keeps its value.
type fields struct {
	object   map[string]any
	place    string // of the object in the body; "" for the body itself
	known    []string
	problems *job.Problems
}

func newFields(o map[string]any) *fields { return &fields{object: o, problems: &job.Problems{}} }

// take returns the value of a field; false if it is absent or null.
func (f *fields) take(name string) (any, bool) {
	f.known = append(f.known, name)
	v := f.object[name]
	return v, v != nil
}

// full reports whether there are already more mistakes than an answer reports. Further mistakes
// need no text: a body may have hundreds of thousands.
func (f *fields) full() bool { return len(*f.problems) > maxProblems }

// wrong adds a mistake in a field.
func (f *fields) wrong(name string, s problem.Sentence, values ...any) {
	if !f.full() {
		f.put(name, s.Of(values...))
	}
}

// put adds a mistake that another function has found.
func (f *fields) put(name string, t problem.Text) {
	if !f.full() {
		f.problems.Put(join(f.place, name), t)
	}
}

// want adds a mistake: the value has the wrong type or is out of range.
func (f *fields) want(name string, v any, s problem.Sentence, values ...any) {
	if !f.full() {
		f.wrong(name, s, append([]any{describe(v)}, values...)...)
	}
}

func (f *fields) text(name string, to *string) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	s, ok := v.(string)
	if !ok {
		f.want(name, v, problem.WantText)
		return
	}

	*to = s
}

// texts reads a list of texts.
func (f *fields) texts(name string, to *[]string) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	list, ok := v.([]any)
	if !ok {
		f.want(name, v, problem.WantTexts)
		return
	}

	var out []string
	for i, item := range list {
		s, ok := item.(string)
		if !ok {
			f.want(fmt.Sprintf("%s[%d]", name, i), item, problem.WantText)
			return
		}
		out = append(out, s)
	}

	*to = out
}

// outcomes reads a list of outcomes.
func (f *fields) outcomes(name string, to *[]job.Outcome) {
	var words []string
	f.texts(name, &words)

	var out []job.Outcome
	for i, word := range words {
		o, err := job.ParseOutcome(word)
		if err != nil {
			f.put(fmt.Sprintf("%s[%d]", name, i), problem.Of(err))
			return
		}
		out = append(out, o)
	}

	if out != nil {
		*to = out
	}
}

// number reads a number.
func (f *fields) number(name string, to *float64) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	text, _ := v.(json.Number)
	n, err := text.Float64()
	if err != nil {
		f.want(name, v, problem.WantNumber)
		return
	}

	*to = n
}

func (f *fields) boolean(name string, to **bool) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	b, ok := v.(bool)
	if !ok {
		f.want(name, v, problem.WantBool)
		return
	}

	*to = &b
}

// count reads a whole number from 1 to most.
func (f *fields) count(name string, to *int, most int) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	number, _ := v.(json.Number)
	n, err := strconv.Atoi(number.String())
	if err != nil || n < 1 || n > most {
		f.want(name, v, problem.WantWholeTo, most)
		return
	}

	*to = n
}

// integer reads a whole number.
func (f *fields) integer(name string, to *int) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	number, _ := v.(json.Number)
	n, err := strconv.Atoi(number.String())
	if err != nil {
		f.want(name, v, problem.WantWhole)
		return
	}

	*to = n
}

func (f *fields) duration(name string, to *job.Duration) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	s, ok := v.(string)
	d, err := job.ParseDuration(s)
	if !ok || err != nil && s != "" {
		f.want(name, v, advised(problem.WantDuration, s))
		return
	}

	*to = job.Duration(d)
}

// some reads a duration like the method duration, but refuses 0. The caller would take 0 for the
// default.
func (f *fields) some(name string, to *job.Duration) {
	f.duration(name, to)
	given, _ := f.object[name].(string)
	if d, err := job.ParseDuration(given); err == nil && d == 0 {
		f.wrong(name, problem.Zero)
	}
}

func (f *fields) instant(name string, to **time.Time) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	s, ok := v.(string)
	t, err := parseInstant(s)
	if !ok || err != nil {
		f.want(name, v, advised(problem.WantTime, s))
		return
	}

	*to = &t
}

// parseInstant reads an RFC 3339 time. It refuses an offset of 24 hours: time.Parse accepts that
// offset, but such a time cannot be formatted again.
func parseInstant(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err == nil {
		_, err = t.MarshalText()
	}
	return t, err
}

func (f *fields) textMap(name string, to *map[string]string) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	o, ok := v.(map[string]any)
	if !ok {
		f.want(name, v, problem.WantTextMap)
		return
	}

	m := make(map[string]string, len(o))
	for _, k := range slices.Sorted(maps.Keys(o)) {
		s, ok := o[k].(string)
		if !ok {
			f.want(name+"."+k, o[k], problem.WantText)
			continue
		}
		m[k] = s
	}

	if len(m) == 0 {
		m = nil // as if left out, so that equal definitions are stored in one form
	}
	*to = m
}

// value reads a value of a parameter.
func (f *fields) value(name string, to *job.Value) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	value, ok := job.ValueOf(v)
	if !ok {
		f.want(name, v, problem.WantValue)
		return
	}
	*to = value
}

// values reads an object of values of parameters.
func (f *fields) values(name string, to *map[string]job.Value) {
	if f.tooMany(name, job.MaxParams) {
		return
	}

	f.inner(name, func(f *fields) {
		*to = map[string]job.Value{}
		for _, param := range slices.Sorted(maps.Keys(f.object)) {
			var v job.Value
			if f.value(param, &v); v != "" {
				(*to)[param] = v
			}
		}
	})
}

// inner calls fn with the fields of an inner object.
func (f *fields) inner(name string, fn func(*fields)) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	o, ok := v.(map[string]any)
	if !ok {
		f.want(name, v, problem.WantObject)
		return
	}

	in := &fields{object: o, place: join(f.place, name), problems: f.problems}
	fn(in)
	in.unknown()
}

// ignore accepts fields that have no effect, because a client may send an answer back.
func (f *fields) ignore(names ...string) { f.known = append(f.known, names...) }

// refuse rejects fields that a client may not send.
func (f *fields) refuse(names ...string) {
	for _, name := range names {
		if v, ok := f.take(name); ok && v != nil {
			f.wrong(name, problem.ReadOnly)
		}
	}
}

// unknown adds a mistake for each field that is not known.
func (f *fields) unknown() {
	listed := false
	for _, name := range slices.Sorted(maps.Keys(f.object)) {
		if slices.Contains(f.known, name) {
			continue
		}
		if len(*f.problems) > maxProblems {
			return // enough problems to report
		}

		if near := nearest(name, f.known); near != "" {
			f.wrong(name, problem.UnknownFieldNear, near)
		} else if listed {
			f.wrong(name, problem.UnknownField)
		} else {
			f.wrong(name, problem.UnknownField.Advise("the known fields are %s",
				strings.Join(slices.Sorted(slices.Values(f.known)), ", ")))
			listed = true
		}
	}
}

// done returns all mistakes as a problem, or nil.
func (f *fields) done() error {
	f.unknown()
	if len(*f.problems) > 0 {
		return invalidFields(*f.problems)
	}
	return nil
}

// describe names a JSON value and shows it if it is short.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return "the number " + cutShort(v.String())
	case string:
		return "the text " + strconv.Quote(cutShort(v))
	case []any:
		return "a list"
	}

	return "an object"
}

// cutShort shortens input for messages, to 60 bytes.
func cutShort(s string) string { return cut(s, 60) }

func cut(s string, most int) string { return problem.Cut(s, most) }
