package api

import (
	"strconv"
	"unicode/utf8"

	"go-crontab/api/openapi"
	"go-crontab/job"
	"go-crontab/job/problem"
)

// A parameter is something that a route takes in its query. It is declared once: its handler reads and checks it by that
// declaration, and the reference says what the declaration says.
type parameter interface {
	self() declared
	schema() *openapi.Schema // what it may be
}

// declared is what all kinds of parameters have.
type declared struct {
	name    string
	about   string
	example string
}

func (p declared) self() declared { return p }

// The kinds of parameters.
type (
	textParam struct {
		declared
		most int // characters
	}
	numberParam struct { // a whole number from 1
		declared
		most      int64
		otherwise int64 // when it is absent
	}
	offsetParam  struct{ declared } // a number of bytes from 0
	instantParam struct {
		declared
		needed bool // it must be given
	}
	dateParam struct{ declared }
	wordParam struct {
		declared
		words []string
	}
	labelParam struct{ declared } // a label and its value
	idsParam   struct {           // ids with commas between them
		declared
		most int
	}
	outcomeParam struct{ declared }
	cursorParam  struct{ declared }
)

// wrong says what is wrong with a text, nil if nothing is.
func (p textParam) wrong(v string) *problem.Text {
	var t problem.Text
	switch n := utf8.RuneCountInString(v); {
	case !utf8.ValidString(v):
		t = problem.ParameterNotUTF8.Of(cutShort(v))
	case n > p.most:
		t = problem.TooLong.Of(n, p.most)
	default:
		return nil
	}
	return &t
}

// maxID bounds ids. Texts are no longer than what they are compared with.
const maxID = 1<<63 - 1

// Parameters that several routes take.
var (
	limitParam     = numberParam{declared{"limit", "How many items a page has at most.", "20"}, maxLimit, defaultLimit}
	pageParam      = cursorParam{declared{"cursor", "Where the page begins: what the answer before gave as `next`. Without it, the first page.", ""}}
	ofAppParam     = textParam{declared{"app", "Only what belongs to this app.", "billing"}, job.MaxName}
	ofJobParam     = numberParam{declared{"job_id", "Only what belongs to the job of this id.", "17"}, maxID, 0}
	endedParam     = outcomeParam{declared{"outcome", "Only runs that ended so.", "failed"}}
	dueFromParam   = instantParam{declared: declared{"from", "Only runs that were due at this instant or after it.", "2027-01-31T00:00:00Z"}}
	dueBeforeParam = instantParam{declared: declared{"to", "Only runs that were due before this instant.", "2027-02-01T00:00:00Z"}}
)

// textOf is the schema of a text of some format.
func textOf(format string) *openapi.Schema {
	return &openapi.Schema{Type: openapi.Types{openapi.String}, Format: format}
}

func wholeFrom(least float64) *openapi.Schema {
	return &openapi.Schema{Type: openapi.Types{openapi.Integer}, Minimum: openapi.Bound(least)}
}

func (p textParam) schema() *openapi.Schema {
	s := textOf("")
	s.MaxLength = p.most
	return s
}

func (p numberParam) schema() *openapi.Schema {
	s := wholeFrom(1)
	if p.most != maxID { // which as a number of JSON would be another one
		s.Maximum = openapi.Bound(float64(p.most))
	}
	if p.otherwise != 0 {
		s.Default = strconv.AppendInt(nil, p.otherwise, 10)
	}
	return s
}

func (p offsetParam) schema() *openapi.Schema  { return wholeFrom(0) }
func (p instantParam) schema() *openapi.Schema { return textOf("date-time") }
func (p dateParam) schema() *openapi.Schema    { return textOf("date") }
func (p wordParam) schema() *openapi.Schema    { return openapi.Words(p.words...) }
func (p outcomeParam) schema() *openapi.Schema { return openapi.Words(job.Outcomes()...) }
func (p cursorParam) schema() *openapi.Schema  { return textOf("") }

func (p idsParam) schema() *openapi.Schema {
	s := textOf("")
	s.Pattern = "^[1-9][0-9]{0,18}(,[1-9][0-9]{0,18})*$" // see query.ids
	return s
}

func (p labelParam) schema() *openapi.Schema {
	s := textOf("")
	s.Pattern = "^[^=]+=" // see query.label
	return s
}
