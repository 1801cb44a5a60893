package job

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go-crontab/job/problem"
)

const (
	// maxRules bounds the work for a file: each recurring event is checked for every day until
	// 2099.
	maxRules = 500
	// firstEventYear is before the first year of calendars. An event may begin before calendars do,
	// and the COUNT of its rule counts from the event's beginning.
	firstEventYear = 1900
)

// icsLine is a content line, with its folded parts joined.
type icsLine struct {
	n      int // number of its first line
	name   string
	params map[string]string
	value  string
}

// icsEvent holds the properties of a VEVENT that determine its days.
type icsEvent struct {
	begun                    int // line of BEGIN
	start, end, length, rule *icsLine
	except, foreign          []*icsLine
	summary, special, status string
}

// ParseICS reads the days of an iCalendar file (RFC 5545). It takes each VEVENT of whole days, with
// DTEND or DURATION, and with an RRULE as far as recurrence supports it. An event that recurs
// without end recurs until 2099. If such an event occurs every year and began in the year of now or
// earlier, it becomes a yearly entry instead.
//
// A summary that contains workday marks make-up workdays. They become included days; all other days
// become excluded days. If the file uses Apple's X-APPLE-SPECIAL-DAY, only that property decides.
// Then an event without the property is a festival on which people work, and counts as ignored.
//
// Errors are Problems of lines. w limits the work. A nil w does not limit it.
func ParseICS(w *Work, text []byte, now time.Time, workday string) (ImportedDays, error) {
	text, err := importText(text)
	if err != nil {
		return ImportedDays{}, err
	}

	r := icsReader{now: now, workday: workday, work: w}
	r.read(string(text))
	if r.problems == nil && len(r.stack) > 0 {
		r.wrong(r.last, problem.ICSEndsWithin, r.stack[len(r.stack)-1])
	}

	if r.problems == nil && !r.calendar {
		r.wrong(1, problem.NotICS)
	}

	marked := slices.ContainsFunc(r.events, func(e *icsEvent) bool { return e.special != "" })
	for _, e := range r.events {
		if !r.enough {
			r.take(e, marked)
		}
		if errors.Is(w.Err(), ErrTooExpensive) {
			r.wrong(e.begun, problem.ICSTooManyDays)
			break
		}
	}
	if err := w.Err(); err != nil && !errors.Is(err, ErrTooExpensive) {
		return ImportedDays{}, err
	}

	return r.done()
}

type icsReader struct {
	importer
	now      time.Time
	workday  string
	work     *Work
	stack    []string // open components
	calendar bool
	event    *icsEvent
	events   []*icsEvent
	rules    int
	last     int // line
}

// read collects the events.
func (r *icsReader) read(text string) {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines) && !r.enough; {
		first := i
		var whole strings.Builder
		whole.WriteString(lines[i])
		for i++; i < len(lines) && lines[i] != "" && (lines[i][0] == ' ' || lines[i][0] == '\t'); i++ {
			whole.WriteString(lines[i][1:])
		}

		if strings.TrimSpace(whole.String()) == "" {
			continue
		}

		r.last = first + 1
		line, ok := parseICSLine(whole.String())
		if !ok {
			r.wrong(r.last, problem.ICSProperty, shorten(whole.String()))
			continue
		}

		line.n = r.last
		r.line(line)
	}
}

// parseICSLine splits a line into its name, its parameters and its value.
func parseICSLine(s string) (*icsLine, bool) {
	quoted := false
	colon := strings.IndexFunc(s, func(c rune) bool {
		if c == '"' {
			quoted = !quoted
		}
		return c == ':' && !quoted
	})

	if colon < 0 {
		return nil, false
	}

	head := strings.Split(s[:colon], ";")
	l := &icsLine{name: strings.ToUpper(strings.TrimSpace(head[0])), params: map[string]string{}, value: s[colon+1:]}
	for _, p := range head[1:] {
		key, v, _ := strings.Cut(p, "=")
		l.params[strings.ToUpper(key)] = strings.ToUpper(strings.Trim(v, `"`))
	}

	return l, l.name != "" && !strings.ContainsAny(l.name, " \t")
}

func (r *icsReader) line(l *icsLine) {
	switch l.name {
	case "BEGIN":
		name := strings.ToUpper(strings.TrimSpace(l.value))
		switch {
		case len(r.stack) == 0 && name != "VCALENDAR":
			r.wrong(l.n, problem.ICSBeginsOutside, shorten(name))
		case len(r.stack) >= maxICSDepth:
			r.wrong(l.n, problem.ICSTooDeep, maxICSDepth)
			r.enough = true
		}
		r.stack = append(r.stack, name)
		r.calendar = true
		if name == "VEVENT" && len(r.stack) == 2 {
			r.event = &icsEvent{begun: l.n}
		}
		return
	case "END":
		name := strings.ToUpper(strings.TrimSpace(l.value))
		if len(r.stack) == 0 || r.stack[len(r.stack)-1] != name {
			r.wrong(l.n, problem.ICSEndsUnbegun, shorten(name))
			r.enough = true
			return
		}
		if len(r.stack) == 2 && r.event != nil {
			r.events = append(r.events, r.event)
			r.event = nil
		}
		r.stack = r.stack[:len(r.stack)-1]
		return
	}

	switch {
	case len(r.stack) == 0:
		r.wrong(l.n, problem.ICSOutside)
		r.enough = true
	case len(r.stack) == 1 && l.name == "X-WR-CALNAME":
		r.Title = cutNote(icsText(l.value))
	case len(r.stack) == 2 && r.event != nil:
		r.event.line(l, r)
	}
}

const maxICSDepth = 8

func (e *icsEvent) line(l *icsLine, r *icsReader) {
	once := func(to **icsLine) {
		if *to != nil {
			r.wrong(l.n, problem.ICSTwice, l.name)
		}
		*to = l
	}

	switch l.name {
	case "DTSTART":
		once(&e.start)
	case "DTEND":
		once(&e.end)
	case "DURATION":
		once(&e.length)
	case "RRULE":
		once(&e.rule)
	case "EXDATE":
		e.except = append(e.except, l)
	case "RDATE", "EXRULE", "RECURRENCE-ID":
		e.foreign = append(e.foreign, l)
	case "SUMMARY":
		e.summary = icsText(l.value)
	case "STATUS":
		e.status = strings.ToUpper(strings.TrimSpace(l.value))
	case "X-APPLE-SPECIAL-DAY":
		if v := strings.ToUpper(strings.TrimSpace(l.value)); v == "WORK-HOLIDAY" || v == appleWorkday {
			e.special = v
		}
	}
}

const appleWorkday = "ALTERNATE-WORKDAY"

// take converts an event to days. marked reports whether the file uses Apple's property: see
// ParseICS.
func (r *icsReader) take(e *icsEvent, marked bool) {
	if e.status == "CANCELLED" {
		return
	}

	if marked && e.special == "" {
		r.Ignored++
		return
	}

	if len(e.foreign) > 0 {
		r.wrong(e.foreign[0].n, problem.ICSUnknown, e.foreign[0].name)
		return
	}

	start, length, ok := r.extent(e)
	if !ok {
		return
	}

	include := e.special == appleWorkday || e.special == "" && r.workday != "" && strings.Contains(e.summary, r.workday)
	add := func(day int64) bool {
		if last := day + length - 1; last >= firstCalendarDay && day <= lastCalendarDay {
			d := CalendarDay{Date: dateText(max(day, firstCalendarDay)), Note: e.summary}
			if last = min(last, lastCalendarDay); length > 1 && dateText(last) != d.Date {
				d.End = dateText(last)
			}
			r.add(e.begun, include, d)
		}
		return !r.enough
	}

	if e.rule == nil {
		add(start)
		return
	}

	zone := time.UTC
	if named, err := LoadZone(e.start.params["TZID"]); err == nil {
		zone = named
	}

	rule, err := parseRecurrence(e.rule.value, zone)
	if err != nil {
		r.tell(e.rule.n, err)
		return
	}

	except, ok := r.exceptions(e)
	if !ok {
		return
	}

	if d, ok := yearlyEntry(start, length); ok && rule.plainlyYearly(start) && len(except) == 0 &&
		yearOf(start) <= r.now.Year() {
		d.Note = e.summary
		r.add(e.begun, include, d)
		return
	}

	if r.rules++; r.rules > maxRules {
		r.wrong(e.rule.n, problem.ICSTooManyRules, maxRules)
		r.enough = true
		return
	}

	rule.days(r.work, start, func(day int64) bool { return except[day] || add(day) })
}

func yearOf(day int64) int { y, _, _ := dateOf(day); return y }

// yearlyEntry makes a yearly entry from an event's days. It refuses a range over the end of
// February, because the range has one more day in leap years.
func yearlyEntry(start, length int64) (CalendarDay, bool) {
	_, m, d := dateOf(start)
	first := yearlyDay(m, d)
	text := func(day int) string { return dateText(dayOf(leapYear, time.January, 1) + int64(day))[len("2000-"):] }
	entry := CalendarDay{Date: text(first)}
	if length == 1 {
		return entry, true
	}

	leap := yearlyDay(time.February, 29)
	for i := range length {
		if (first+int(i))%366 == leap {
			return entry, false
		}
	}

	entry.End = text((first + int(length) - 1) % 366)
	return entry, true
}

// extent returns the first day of an event and its number of days.
func (r *icsReader) extent(e *icsEvent) (start, length int64, ok bool) {
	if e.start == nil {
		r.wrong(e.begun, problem.ICSWithoutStart)
		return 0, 0, false
	}

	start, ok = r.wholeDay(e.start)
	if !ok {
		return 0, 0, false
	}

	length = 1
	switch {
	case e.end != nil:
		end, ok := r.wholeDay(e.end)
		if !ok {
			return 0, 0, false
		}
		if end < start {
			r.wrong(e.end.n, problem.ICSEndsEarly)
			return 0, 0, false
		}
		length = max(1, end-start) // DTEND is the day after the last one; some programs write the last day itself
	case e.length != nil:
		if length, ok = icsDuration(e.length.value); !ok {
			r.wrong(e.length.n, problem.ICSDuration, shorten(e.length.value))
			return 0, 0, false
		}
	}

	if length > maxEventDays {
		r.wrong(e.begun, problem.ICSTooLong, length, maxEventDays)
		return 0, 0, false
	}

	return start, length, true
}

const maxEventDays = 366

// wholeDay reads a date, or midnight on a wall clock. Some programs write whole days as midnights.
func (r *icsReader) wholeDay(l *icsLine) (int64, bool) {
	day, midnight, err := icsDay(strings.TrimSpace(l.value))
	switch {
	case err != nil:
		r.tell(l.n, fmt.Errorf("%s: %w", l.name, err))
	case !midnight:
		r.wrong(l.n, problem.ICSTime, l.name)
	case yearOf(day) < firstEventYear || yearOf(day) > lastYear:
		r.wrong(l.n, problem.ICSYear, l.name, yearOf(day), firstEventYear, lastYear)
	default:
		return day, true
	}

	return 0, false
}

var icsDate = regexp.MustCompile(`^(\d{8})(T(\d{6})(Z?))?$`)

// icsDay reads 20270206 and 20270206T000000. midnight reports whether the value can mean a whole
// day.
func icsDay(s string) (day int64, midnight bool, err error) {
	m := icsDate.FindStringSubmatch(strings.ToUpper(s))
	if m == nil {
		return 0, false, problem.Errorf(problem.ICSDate, shorten(s))
	}
	t, err := time.Parse("20060102", m[1])
	if err != nil {
		return 0, false, problem.Errorf(problem.ICSDate, shorten(s))
	}
	return t.Unix() / secondsPerDay, m[2] == "" || m[3] == "000000" && m[4] == "", nil
}

var icsDays = regexp.MustCompile(`^\+?P(?:(\d{1,4})W|(\d{1,4})D)(?:T0H?(?:0M)?(?:0S)?)?$`)

// icsDuration reads P3D and P1W as days.
func icsDuration(s string) (int64, bool) {
	m := icsDays.FindStringSubmatch(strings.ToUpper(strings.TrimSpace(s)))
	if m == nil {
		return 0, false
	}
	weeks, _ := number(m[1])
	days, _ := number(m[2])
	n := int64(weeks*7 + days)
	return n, n > 0
}

// exceptions returns the days on which the event does not recur.
func (r *icsReader) exceptions(e *icsEvent) (map[int64]bool, bool) {
	days := map[int64]bool{}
	for _, l := range e.except {
		for item := range strings.SplitSeq(l.value, ",") {
			one := *l
			one.value = item
			day, ok := r.wholeDay(&one)
			if !ok {
				return nil, false
			}
			days[day] = true
		}
	}

	return days, true
}

// icsText unescapes a text.
func icsText(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\N`, "\n", `\,`, ",", `\;`, ";").Replace(s)
}
