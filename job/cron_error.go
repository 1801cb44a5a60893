package job

import (
	"strconv"
	"strings"
)

// CronError says what is wrong with a cron expression, and where there is one way out, what to write instead.
type CronError struct {
	Expr    string // as given
	Field   string // "minute", "day-of-week" …; "" when the whole expression is meant
	Value   string // the offending part of the field; "" with Field
	Problem string
	Fix     string // an instruction, or ""
}

// Error reads, for instance: cron "61 * * * *": minute "61": not between 0 and 59.
func (e *CronError) Error() string {
	var b strings.Builder
	b.WriteString("cron " + strconv.Quote(shorten(e.Expr)) + ": ")
	if e.Field != "" {
		b.WriteString(e.Field + " " + strconv.Quote(shorten(e.Value)) + ": ")
	}
	b.WriteString(e.Problem)
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return b.String()
}

// shorten keeps a message readable whatever somebody pasted into the field.
func shorten(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
