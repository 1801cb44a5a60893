package job

import (
	"strings"

	"go-crontab/job/problem"
)

// CronError is a problem of a cron expression. Fix is the correction, if there is only one.
type CronError struct {
	Expr    string // as given
	Field   string // "minute", "day-of-week" …; "" for the whole expression
	Value   string // the wrong part of the field; "" if Field is ""
	Problem problem.Sentence
	Values  []any  // of the problem, after the three above
	Fix     string // an instruction, or ""
}

// Error returns a text such as: cron "61 * * * *": minute "61": not between 0 and 59.
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

// shorten cuts a long text. A message stays readable even if somebody has pasted a long text.
func shorten(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
