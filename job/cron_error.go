package job

import (
	"strings"

	"go-crontab/job/problem"
)

// CronError says what is wrong with a cron expression, and where there is one way out, what to write instead.
type CronError struct {
	Expr    string // as given
	Field   string // "minute", "day-of-week" …; "" when the whole expression is meant
	Value   string // the offending part of the field; "" with Field
	Problem problem.Sentence
	Values  []any  // of the problem, behind those above
	Fix     string // an instruction, or ""
}

// Error reads, for instance: cron "61 * * * *": minute "61": not between 0 and 59.
func (e *CronError) Error() string { return e.Said().Message }

// Said returns the error as a sentence.
func (e *CronError) Said() problem.Text {
	values := []any{shorten(e.Expr)}
	if e.Field != "" {
		values = append(values, e.Field, shorten(e.Value))
	}
	s := e.Problem
	if e.Fix != "" {
		s = s.Advise("%s", e.Fix)
	}
	return s.Of(append(values, e.Values...)...)
}

// shorten keeps a message readable whatever somebody pasted into the field.
func shorten(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
