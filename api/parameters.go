package api

import (
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"go-crontab/api/openapi"
	"go-crontab/job"
	"go-crontab/job/problem"
)

// A parameter is a query parameter of a route. Its declaration serves two purposes: the handler
// uses it to read and check the value, and the reference describes the parameter by it.
type parameter interface {
	self() declared
	schema() *openapi.Schema // the values that it takes
}

// declared holds the common parts of all parameters.
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
		otherwise int64 // the value if it is absent
	}
	offsetParam  struct{ declared } // a number of bytes from 0
	instantParam struct {
		declared
		needed bool // it is required
	}
	spanParam struct { // a duration
		declared
		least, most time.Duration
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
	cursorParam struct{ declared }
)

// wrong returns the mistake in a text, or nil.
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

// unsuccessful is the word for all outcomes of job.Unsuccessful in a filter.
const unsuccessful = "unsuccessful"

// maxID is the largest id.
const maxID = 1<<63 - 1

// Parameters of several routes.
var (
	limitParam = numberParam{declared{"limit", "The most items on a page.", "20"}, maxLimit, defaultLimit}
	pageParam  = cursorParam{
		declared{
			"cursor", "The `next` of the previous answer. Without it, the first page.", "",
		},
	}
	ofAppParam    = textParam{declared{"app", "Only entries of this app.", "billing"}, job.MaxName}
	ofJobParam    = numberParam{declared{"job_id", "Only entries of the job with this id.", "17"}, maxID, 0}
	jobNamedParam = textParam{
		declared{
			"job", "Only entries of the job with this app and name. If it was deleted, of the last job that had them.",
			"billing/nightly",
		}, 2*job.MaxName + 1,
	}
	endedParam = wordParam{
		declared{
			"outcome", "Only runs with this outcome. `unsuccessful` means `failed`, `timed_out`, `killed` or `lost`.", "failed",
		},
		append(slices.Clone(job.Outcomes()), unsuccessful),
	}
	dueFromParam = instantParam{
		declared: declared{"from", "Only runs that were due at or after this time.", "2027-01-31T00:00:00Z"},
	}
	dueBeforeParam = instantParam{
		declared: declared{"to", "Only runs that were due before this time.", "2027-02-01T00:00:00Z"},
	}
)

// textOf is the schema of a text in the given format, "" for any.
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
	if p.most != maxID { // maxID cannot be written exactly as a JSON number
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
func (p cursorParam) schema() *openapi.Schema  { return textOf("") }

func (p idsParam) schema() *openapi.Schema {
	s := textOf("")
	s.Pattern = "^[1-9][0-9]{0,18}(,[1-9][0-9]{0,18})*$" // see query.ids
	return s
}

func (p spanParam) schema() *openapi.Schema {
	s := textOf("")
	s.Pattern = `^([0-9]+(\.[0-9]+)?(ms|s|m|h)|[0-9]+[dw])+$` // see query.span
	return s
}

func (p labelParam) schema() *openapi.Schema {
	s := textOf("")
	s.Pattern = "^[^=]+=" // see query.label
	return s
}
