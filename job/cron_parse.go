package job

import (
	"fmt"
	"strconv"
	"strings"

	"go-crontab/job/problem"
)

// maxCronLength bounds an expression, in bytes. A list of all minutes of an hour needs 170.
const maxCronLength = 256

// macros are expanded here, because gorhill replaces a macro anywhere in a line and knows fewer
// macros. The last two come from FreeBSD.
var macros = map[string]string{
	"@yearly":       "0 0 1 1 *",
	"@annually":     "0 0 1 1 *",
	"@monthly":      "0 0 1 * *",
	"@weekly":       "0 0 * * 0",
	"@daily":        "0 0 * * *",
	"@midnight":     "0 0 * * *",
	"@hourly":       "0 * * * *",
	"@minutely":     "* * * * *",
	"@every_minute": "* * * * *",
	"@every_second": "* * * * * * *",
}

// layout gives the field at each position, as an index of fieldKinds.
type layout []int

var (
	crontabLayout = layout{minuteAt, hourAt, domAt, monthAt, dowAt}
	secondsLayout = layout{secondAt, minuteAt, hourAt, domAt, monthAt, dowAt}
	yearLayout    = layout{minuteAt, hourAt, domAt, monthAt, dowAt, yearAt}
	fullLayout    = layout{secondAt, minuteAt, hourAt, domAt, monthAt, dowAt, yearAt}
)

// String names the fields in order.
func (l layout) String() string {
	names := make([]string, len(l))
	for i, at := range l {
		names[i] = fieldKinds[at].name
	}
	return strings.Join(names, " ")
}

// splitCron finds the seven fields of an expression and its layout. Missing fields are filled in:
// second 0, every year.
func splitCron(expr string) (fields [7]string, read layout, err *CronError) {
	if len(expr) > maxCronLength {
		return fields, nil, &CronError{
			Expr: expr, Problem: problem.CronTooLong, Values: []any{len(expr), maxCronLength},
		}
	}
	words := strings.Fields(expr)
	if len(words) == 0 {
		return fields, nil, &CronError{
			Expr: expr, Problem: problem.CronEmpty, Fix: `write five fields, such as "0 3 * * *", or @daily`,
		}
	}
	if err := refuseForeign(expr, words); err != nil {
		return fields, nil, err
	}
	if strings.HasPrefix(words[0], "@") {
		spelled, ok := macros[strings.ToLower(words[0])]
		if !ok {
			return fields, nil, &CronError{
				Expr: expr, Problem: problem.CronMacro, Values: []any{shorten(words[0])},
				Fix: "the macros are @yearly, @monthly, @weekly, @daily, @hourly and @minutely",
			}
		}
		if len(words) > 1 {
			return fields, nil, &CronError{
				Expr: expr, Problem: problem.CronAfterMacro, Fix: "write " + words[0] + " alone",
			}
		}
		words = strings.Fields(spelled)
	}

	switch len(words) {
	case 5:
		read = crontabLayout
	case 6:
		read = secondsLayout
		if holdsYear(words[5]) {
			read = yearLayout
		}
	case 7:
		read = fullLayout
	default:
		return fields, nil, wrongCount(expr, len(words))
	}
	fields[secondAt], fields[yearAt] = "0", "*"
	for i, at := range read {
		fields[at] = words[i]
	}
	return fields, read, nil
}

func wrongCount(expr string, n int) *CronError {
	if n > 7 {
		return &CronError{
			Expr: expr, Problem: problem.CronTooManyFields, Values: []any{n},
			Fix: "write 5, 6 or 7; the command goes into the job's command field",
		}
	}
	return &CronError{
		Expr: expr, Problem: problem.CronTooFewFields, Values: []any{n},
		Fix: "write minute hour day-of-month month day-of-week",
	}
}

// refuseForeign explains how a job says what other schedulers write in the expression.
func refuseForeign(expr string, words []string) *CronError {
	first := strings.ToUpper(words[0])
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		if strings.HasPrefix(first, prefix) {
			fix := "set the job's timezone"
			if zone := words[0][len(prefix):]; zone != "" {
				fix += " to " + strconv.Quote(shorten(zone))
			}
			return &CronError{Expr: expr, Problem: problem.CronZone, Fix: fix}
		}
	}

	switch first {
	case "@EVERY":
		interval := "15m"
		if len(words) == 2 {
			interval = shorten(words[1])
		}
		return &CronError{
			Expr: expr, Problem: problem.CronEvery,
			Fix: fmt.Sprintf(`give the job "every": %q instead of a schedule`, interval),
		}
	case "@REBOOT":
		return &CronError{
			Expr: expr, Problem: problem.CronReboot,
			Fix: `start it from the machine's own init system, or give the job an "at" to run it once`,
		}
	}

	return nil
}

// holdsYear decides between the two readings of six fields. Only a year field takes values from
// 1970 on.
func holdsYear(field string) bool {
	for item := range strings.SplitSeq(field, ",") {
		body, _, _ := strings.Cut(item, "/") // a step is no year
		for value := range strings.SplitSeq(body, "-") {
			if n, ok := number(value); ok && n >= firstYear {
				return true
			}
		}
	}
	return false
}
