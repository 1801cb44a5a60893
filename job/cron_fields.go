package job

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"go-crontab/job/problem"
)

// The first and last year of cron expressions, both included, from gorhill's table.
const (
	firstYear = 1970
	lastYear  = 2099
)

// The positions of the seven fields.
const (
	secondAt = iota
	minuteAt
	hourAt
	domAt
	monthAt
	dowAt
	yearAt
)

// fieldKind describes the valid content of a field.
type fieldKind struct {
	name     string
	min, max int
	top      int // largest valid number; above max only for 7, the second number of Sunday
	maxStep  int // of a step over the whole field
	names    []string
}

var (
	monthNames = []string{
		"JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE", "JULY", "AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER",
		"DECEMBER",
	}
	dayNames = []string{"SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"}

	// The largest steps are gorhill's: */12 of the months is only January, and */31 of the days
	// only the first. For years gorhill allows any step up to 2099. Our limit is the largest step
	// that still gives two years.
	fieldKinds = [7]fieldKind{
		secondAt: {name: "second", min: 0, max: 59, top: 59, maxStep: 59},
		minuteAt: {name: "minute", min: 0, max: 59, top: 59, maxStep: 59},
		hourAt:   {name: "hour", min: 0, max: 23, top: 23, maxStep: 23},
		domAt:    {name: "day-of-month", min: 1, max: 31, top: 31, maxStep: 31},
		monthAt:  {name: "month", min: 1, max: 12, top: 12, maxStep: 12, names: monthNames},
		dowAt:    {name: "day-of-week", min: 0, max: 6, top: 7, maxStep: 6, names: dayNames},
		yearAt:   {name: "year", min: firstYear, max: lastYear, top: lastYear, maxStep: lastYear - firstYear},
	}
)

// valueSet is a set of values, counted from the minimum of their field. The largest set holds 130
// years.
type valueSet [3]uint64

func (s *valueSet) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *valueSet) has(i int) bool { return s[i/64]>>(i%64)&1 == 1 }

// below counts the members smaller than i.
func (s *valueSet) below(i int) int64 {
	n := 0
	for w := range i / 64 {
		n += bits.OnesCount64(s[w])
	}
	if i%64 != 0 {
		n += bits.OnesCount64(s[i/64] & (1<<(i%64) - 1))
	}
	return int64(n)
}

// cronField is a parsed field.
type cronField struct {
	kind   *fieldKind
	text   string // as written, with names as numbers, no leading zeros and * for ?
	match  string // the same text, in syntax that gorhill reads correctly
	star   bool   // begins with *: for the DST rule
	any    bool   // holds a bare *, so a day field does not restrict the days
	values valueSet

	// For day fields only.
	lastDay, lastWorkday bool        // L and LW
	nearest              valueSet    // 15W: the weekdays nearest to these days
	nth                  [5]valueSet // 5#3: the days of the week that count in the first … fifth week
	lastOf               valueSet    // 5L: the last such day of the week
}

// readField parses a field, item by item. The error has no Expr.
func readField(at int, text string) (cronField, *CronError) {
	f := cronField{kind: &fieldKinds[at]}
	f.star = text[0] == '*' || text[0] == '?'
	var texts, matches []string
	for item := range strings.SplitSeq(text, ",") {
		if item == "" {
			return f, f.wrong(text, "remove the comma", problem.CronEmptyItem)
		}
		t, m, err := f.readItem(item)
		if err != nil {
			err.Value = item
			return f, err
		}
		texts, matches = append(texts, t), append(matches, m)
	}

	f.text, f.match = strings.Join(texts, ","), strings.Join(matches, ",")
	if f.any {
		f.match = "*"
		f.addSpan(span{f.kind.min, f.kind.max, 1})
	}

	return f, nil
}

func (f *cronField) wrong(value, fix string, s problem.Sentence, values ...any) *CronError {
	return &CronError{Field: f.kind.name, Value: value, Problem: s, Values: values, Fix: fix}
}

// readItem parses one item of the list. It returns the item in two forms: for people and for
// gorhill.
func (f *cronField) readItem(item string) (text, match string, err *CronError) {
	if item == "*" || item == "?" {
		f.any = true
		return "*", "*", nil
	}

	upper := strings.ToUpper(item)
	if upper == "H" || strings.HasPrefix(upper, "H/") || strings.HasPrefix(upper, "H(") {
		return "", "", f.wrong(item, "write a number; the job's jitter spreads the starts", problem.CronHashed)
	}

	if text, ok, err := f.readSpecial(upper); ok || err != nil {
		return text, text, err
	}

	s, text, err := f.readSpan(item)
	if err != nil {
		return "", "", err
	}

	return text, f.addSpan(s), nil
}

// span is first, first+step, … up to last.
type span struct{ first, last, step int }

// readSpan reads 5, 5-20, */2, 5/2 and 5-20/2.
func (f *cronField) readSpan(item string) (s span, text string, err *CronError) {
	body, step, stepped := strings.Cut(item, "/")
	from, to, ranged := strings.Cut(body, "-")
	s = span{f.kind.min, f.kind.max, 1}
	limit := f.kind.maxStep
	text = body
	if body != "*" {
		if s.first, err = f.value(item, from); err != nil {
			return s, "", err
		}
		switch {
		case ranged:
			if s.last, err = f.rangeEnd(item, to, s.first); err != nil {
				return s, "", err
			}
		case !stepped:
			s.last = s.first
		case s.first > f.kind.max:
			s.first = f.kind.min // 7/2 is read as SUN/2
		}
		limit = max(s.last-s.first, 1)
		text = strconv.Itoa(s.first)
		if ranged {
			text += "-" + strconv.Itoa(s.last)
		}
	}

	if stepped {
		if s.step, err = f.readStep(item, step); err != nil {
			return s, "", err
		}
		text += "/" + strconv.Itoa(s.step)
	}

	switch {
	case s.first > s.last:
		return s, "", f.wrong(item, "write "+f.wrapped(s, from), problem.CronBackwards)
	case s.step > limit:
		return s, "", f.wrong(item, "write "+strconv.Itoa(s.first), problem.CronStepTooLarge)
	}

	return s, text, nil
}

// rangeEnd parses the end of a range. Sunday as the end means the following Sunday: FRI-SUN is 5-7.
func (f *cronField) rangeEnd(item, token string, first int) (int, *CronError) {
	last, err := f.value(item, token)
	if err == nil && f.kind == &fieldKinds[dowAt] && first > 0 && strings.HasPrefix(strings.ToUpper(token), "SUN") {
		last = 7
	}
	return last, err
}

func (f *cronField) readStep(item, token string) (int, *CronError) {
	n, ok := number(token)
	switch {
	case !ok:
		return 0, f.wrong(item, "", problem.CronStepNotNumber)
	case n == 0:
		return 0, f.wrong(item, "write "+strings.TrimSuffix(item, "/"+token), problem.CronStepZero)
	}
	return n, nil
}

// addSpan adds the values of s, and returns them in a form for gorhill. Gorhill takes 7 for the
// first day of the week even at the end of a range, and accepts no step above 59.
func (f *cronField) addSpan(s span) string {
	size := f.kind.max - f.kind.min + 1
	var list []string
	for v := s.first; v <= s.last; v += s.step {
		i := (v - f.kind.min) % size
		f.values.add(i)
		if s.last > f.kind.max || s.step > 59 {
			list = append(list, strconv.Itoa(i+f.kind.min))
		}
	}

	if list != nil {
		return strings.Join(list, ",")
	}

	return s.String()
}

func (s span) String() string {
	switch {
	case s.last < s.first+s.step:
		return strconv.Itoa(s.first)
	case s.step == 1:
		return fmt.Sprintf("%d-%d", s.first, s.last)
	}
	return fmt.Sprintf("%d-%d/%d", s.first, s.last, s.step)
}

// wrapped splits a backwards range as its author must mean it: up to the end of the field, then
// from the start of the field. A backwards range of years is reversed instead.
func (f *cronField) wrapped(s span, from string) string {
	k := f.kind
	if k == &fieldKinds[yearAt] {
		return span{s.last, s.first, s.step}.String()
	}

	s.first = k.min + (s.first-k.min)%(k.max-k.min+1) // 7-2 starts on Sunday
	if s.first <= s.last {
		return s.String()
	}

	parts := []span{{s.first, k.max, s.step}}
	rest := s.first
	for rest <= k.max {
		rest += s.step
	}

	if rest -= k.max - k.min + 1; rest <= s.last {
		parts = append(parts, span{rest, s.last, s.step})
	}

	named := from != "" && (from[0] < '0' || from[0] > '9')
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.String()
		if named && p.step == 1 {
			texts[i] = k.names[p.first-k.min][:3]
			if p.last > p.first {
				texts[i] += "-" + k.names[p.last-k.min][:3]
			}
		}
	}

	return strings.Join(texts, ",")
}

// value parses one number or name.
func (f *cronField) value(item, token string) (int, *CronError) {
	k := f.kind
	n, ok := number(token)
	if !ok {
		upper := strings.ToUpper(token)
		i := slices.IndexFunc(k.names, func(name string) bool { return upper == name || upper == name[:3] })
		if i >= 0 {
			return k.min + i, nil
		}
		if k.names != nil {
			return 0, f.wrong(item, "", problem.CronNotNumberOrName, f.blame(item, token), k.names[0][:3])
		}
		return 0, f.wrong(item, "", problem.CronNotNumber, f.blame(item, token))
	}

	if n < k.min || n > k.top {
		return 0, f.wrong(item, "", problem.CronNotBetween, f.blame(item, token), k.min, k.top)
	}

	return n, nil
}

// blame returns the token for a message. If the item is longer than the token, the message names
// the token.
func (f *cronField) blame(item, token string) any {
	if item == token || token == "" {
		return problem.Shown(shorten(token), "")
	}
	return problem.Shown(shorten(token), fmt.Sprintf("%q is ", shorten(token)))
}

// number parses digits, with leading zeros allowed. It cuts very large numbers to six digits. A
// number of six digits is too large for any field, too.
func number(s string) (int, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	if s = strings.TrimLeft(s, "0"); len(s) > 6 {
		s = s[:6]
	}
	n, _ := strconv.Atoi("0" + s)
	return n, true
}
