package job

import (
	"fmt"
	"math/bits"
	"strings"

	"go-crontab/job/problem"

	"github.com/gorhill/cronexpr"
)

// on returns the expression as if every day were one of the given weekdays. It replaces the
// day-of-week field by what that field says about these weekdays. If several weekdays are given,
// all must match. Then items such as 5#2 and 5L never match: a day that stands for all working days
// is neither a second Friday nor a last one. The month, the day of the month and the time stay. If
// no day matches any more, on returns nil.
func (c *Cron) on(days weekdays) (*Cron, error) {
	dow := &c.fields[dowAt]
	if dow.any || days == 0 {
		return c, nil
	}

	o := *c
	o.expr = nil
	dom := &o.fields[domAt]
	switch weeks, always := dow.saysOf(days); {
	case always: // a day matches if either day field matches, so now every day matches
		*dom, o.fields[dowAt] = dom.free(), dow.free()
	case weeks.text != "":
		o.fields[dowAt] = weeks
	case dom.any:
		return nil, nil
	default:
		o.fields[dowAt] = dow.free()
	}

	matches := make([]string, len(o.fields))
	for i := range o.fields {
		matches[i] = o.fields[i].match
	}

	expr, err := cronexpr.Parse(strings.Join(matches, " "))
	if err != nil {
		return nil, &CronError{Expr: c.text, Problem: problem.CronNoForm, Values: []any{days, err}}
	}

	o.expr = expr
	return &o, nil
}

// saysOf reports whether a day-of-week field always matches on the given days. If not, it returns
// the weeks of the month in which the field matches.
func (f *cronField) saysOf(days weekdays) (weeks cronField, always bool) {
	if weekdays(f.values[0])&days == days {
		return weeks, true
	}

	weeks = cronField{kind: f.kind}
	if bits.OnesCount8(uint8(days)) != 1 {
		return weeks, false
	}

	var items []string
	allDays := func(to *valueSet, format string, args ...any) {
		for d := range 7 {
			to.add(d)
			items = append(items, fmt.Sprint(d)+fmt.Sprintf(format, args...))
		}
	}

	for week := range f.nth {
		if weekdays(f.nth[week][0])&days != 0 {
			allDays(&weeks.nth[week], "#%d", week+1)
		}
	}

	if weekdays(f.lastOf[0])&days != 0 {
		allDays(&weeks.lastOf, "L")
	}

	weeks.text = strings.Join(items, ",")
	weeks.match = weeks.text
	return weeks, false
}

// free returns the field as *.
func (f *cronField) free() cronField {
	free := cronField{kind: f.kind, text: "*", match: "*", star: true, any: true}
	free.addSpan(span{f.kind.min, f.kind.max, 1})
	return free
}
