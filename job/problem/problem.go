// Package problem holds the sentences about problems of fields, warnings about definitions, and
// messages about imported crontabs. Each sentence is declared here once, under a code that never
// changes. Programs and translations use the code and the values. People read the message.
//
// A sentence describes the problem. If a caller needs to say more, such as how to correct the
// problem, it adds advice (see [Sentence.Advise]). Advice changes the message but not the code.
package problem

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Sentence describes a possible problem in English. It has verbs of package fmt for its values.
type Sentence struct{ code, format, advice string }

// Text is a sentence with its values.
type Text struct {
	Message string   `json:"message" doc:"The problem or note, for people."`
	Code    string   `json:"code" doc:"A code for it that never changes. See the table of codes."`
	Values  []string `json:"values,omitempty" doc:"The values in the message, in the order of the table of codes."`
}

// all lists the sentences of this package in the order of their declaration.
var all []Sentence

// say declares a sentence.
func say(code, format string) Sentence {
	s := Sentence{code: code, format: format}
	all = append(all, s)
	return s
}

// All returns the sentences in the order of their codes. Sentences with the same code differ only
// in grammar and have the same values.
func All() []Sentence {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Sentence) int { return cmp.Compare(a.code, b.code) })
	return sorted
}

// Code names the sentence.
func (s Sentence) Code() string { return s.code }

// Verbs returns the verbs of the values in the sentence, such as %q.
func (s Sentence) Verbs() []string {
	return slices.DeleteFunc(verb.FindAllString(s.format, -1), func(v string) bool { return v == "%%" })
}

// String returns the sentence with {1}, {2} and so on in place of its values.
func (s Sentence) String() string {
	n := 0
	return verb.ReplaceAllStringFunc(s.format, func(v string) string {
		if v == "%%" {
			return "%"
		}

		n++
		if strings.HasSuffix(v, "q") {
			return fmt.Sprintf(`"{%d}"`, n)
		}

		return fmt.Sprintf("{%d}", n)
	})
}

// Advise returns the sentence followed by a semicolon and by the advice.
func (s Sentence) Advise(format string, args ...any) Sentence {
	s.advice += "; " + fmt.Sprintf(format, args...)
	return s
}

var verb = regexp.MustCompile(`%%|%[+.0-9]*[a-z]`)

// Of fills in the values of a sentence.
func (s Sentence) Of(values ...any) Text {
	values = slices.Clone(values)
	for i, v := range values {
		if d, is := v.(time.Duration); is {
			values[i] = Duration(d)
		}
	}

	t := Text{Code: s.code, Message: fmt.Sprintf(s.format, values...) + s.advice}
	for i, v := range s.Verbs() {
		if i < len(values) {
			t.Values = append(t.Values, valueOf(v, values[i]))
		}
	}
	return t
}

// valueOf formats a value like its verb, but without quotes.
func valueOf(verb string, value any) string {
	if s, is := value.(shown); is {
		value = s.value
	}

	if r, is := value.(rune); is && strings.HasSuffix(verb, "q") {
		return string(r)
	}

	if strings.HasSuffix(verb, "q") {
		verb = strings.TrimSuffix(verb, "q") + "s"
	}

	if _, is := value.(string); is {
		verb = strings.NewReplacer("d", "s", "v", "s").Replace(verb)
	}

	return strings.ToValidUTF8(fmt.Sprintf(verb, value), "\uFFFD")
}

// shown is a value that the message shows as another text.
type shown struct {
	value any
	text  string
}

func (s shown) String() string { return s.text }

// Quoted makes a value appear in quotes in the message.
func Quoted(value string) any { return shown{value, strconv.Quote(value)} }

// Shown makes a value appear in the message as another text, such as 0 as "0 (none)".
func Shown(value any, text string) any { return shown{value, text} }

// Cut cuts the message and each value to most bytes, without splitting a character.
func (t Text) Cut(most int) Text {
	values := slices.Clone(t.Values)
	for i := range values {
		values[i] = Cut(values[i], most)
	}
	t.Values, t.Message = values, Cut(t.Message, most)
	return t
}

// Cut shortens a text to at most most bytes, at a character boundary, and adds "…" if it cuts. It
// replaces invalid UTF-8.
func Cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// Error is a sentence as an error. An error that wraps it has the same code and values, but its own
// message.
type Error struct {
	Text

	cause error
}

// Errorf makes an error from a sentence. If the last value is an error, the new error wraps it.
func Errorf(s Sentence, values ...any) error {
	e := &Error{Text: s.Of(values...)}
	if len(values) > 0 {
		e.cause, _ = values[len(values)-1].(error)
	}
	return e
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the wrapped error among the values, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Said returns the sentence.
func (e *Error) Said() Text { return e.Text }

// Of converts an error to a sentence. If the error is a sentence or wraps one, the result is that
// sentence with the error's own message. Otherwise the result is [Other].
func Of(err error) Text {
	var said interface {
		error
		Said() Text
	}
	if !errors.As(err, &said) {
		return Other.Of(err)
	}

	t := said.Said()
	t.Message = err.Error()
	return t
}
