package job

import (
	"fmt"
	"time"

	"go-crontab/job/problem"
)

// Days are counted from 1970-01-01. Calendars cover the same years as cron expressions.
var (
	firstCalendarDay = dayOf(firstYear, time.January, 1)
	lastCalendarDay  = dayOf(lastYear, time.December, 31)
)

func dayOf(year int, month time.Month, day int) int64 {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay
}

func weekdayOf(day int64) time.Weekday { return time.Weekday(((day+4)%7 + 7) % 7) }

func dateText(day int64) string { return time.Unix(day*secondsPerDay, 0).UTC().Format(time.DateOnly) }

// leapYear contains every possible day of a year. Yearly days are numbered from 0, in the order of
// this year.
const leapYear = 2000

// daysBeforeMonth is the number of days before each month of a leap year.
var daysBeforeMonth = func() (days [13]int) {
	for m := time.January; m < time.December; m++ {
		days[m+1] = days[m] + daysIn(leapYear, m)
	}
	return days
}()

func yearlyDay(month time.Month, day int) int { return daysBeforeMonth[month] + day - 1 }

// parseDate reads 2027-02-06 as a day, and 12-25 as a yearly day.
func parseDate(s string) (day int64, yearly bool, err error) {
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		if y := t.Year(); y < firstYear || y > lastYear {
			return 0, false, problem.Errorf(problem.YearNotBetween, y, firstYear, lastYear)
		}
		return t.Unix() / secondsPerDay, false, nil
	}

	// A leap year makes 02-29 a date.
	if t, err := time.Parse(time.DateOnly, fmt.Sprintf("%d-%s", leapYear, s)); err == nil {
		return int64(yearlyDay(t.Month(), t.Day())), true, nil
	}

	return 0, false, problem.Errorf(problem.NotADate, shorten(s))
}

// daySet finds the list entry that names a day. Dated entries win over yearly entries. Earlier
// entries win over later entries.
type daySet struct {
	first  int64   // first day of byDay
	byDay  []int32 // entry + 1, or 0; from the first to the last dated day
	yearly []int32 // the same for each day of a leap year; nil: no yearly entry
}

// daySpan is the first and the last day of an entry.
type daySpan struct {
	from, to int64
	yearly   bool
}

// span reads the days of an entry. If there is an error, part names the wrong field.
func (d CalendarDay) span() (s daySpan, part string, err error) {
	if s.from, s.yearly, err = parseDate(d.Date); err != nil {
		return s, "date", err
	}

	if s.to = s.from; d.End == "" {
		return s, "", nil
	}

	yearly := false
	s.to, yearly, err = parseDate(d.End)
	switch {
	case err != nil:
	case yearly != s.yearly:
		err = problem.Errorf(problem.DatesOfTwoKinds, d.End, d.Date)
	case s.to < s.from && !yearly:
		err = problem.Errorf(problem.EndsBeforeStart, d.End, d.Date)
	}

	return s, "end", err
}

// newDaySet reads a list of entries.
func newDaySet(list []CalendarDay, name string, p *Problems) daySet {
	var s daySet
	dated := map[int]daySpan{}
	low, high := lastCalendarDay, firstCalendarDay
	for i, e := range list {
		field := func(part string) string { return fmt.Sprintf("%s[%d].%s", name, i, part) }
		checkText(p, field("note"), e.Note, MaxCalendarNote)
		span, part, err := e.span()
		switch {
		case err != nil:
			p.Put(field(part), problem.Of(err))
		case span.yearly:
			s.paintYearly(i, int(span.from), int(span.to))
		default:
			dated[i] = span
			low, high = min(low, span.from), max(high, span.to)
		}
	}

	if len(dated) == 0 {
		return s
	}

	// Paint each day once, with the first entry that names it. free jumps over days that are
	// already painted.
	s.first, s.byDay = low, make([]int32, high-low+1)
	free := make([]int32, len(s.byDay)+1) // by day: the next day that may be free
	for i := range free {
		free[i] = int32(i)
	}

	next := func(i int32) int32 {
		for free[i] != i {
			free[i] = free[free[i]]
			i = free[i]
		}
		return i
	}

	for entry := range list {
		d, ok := dated[entry]
		if !ok {
			continue
		}
		for i := next(int32(d.from - low)); i <= int32(d.to-low); i = next(i) {
			s.byDay[i], free[i] = int32(entry+1), i+1
		}
	}

	return s
}

// paintYearly paints yearly days. If to is before from, the days go across the end of the year.
func (s *daySet) paintYearly(entry, from, to int) {
	if s.yearly == nil {
		s.yearly = make([]int32, 366)
	}

	for i := from; ; i = (i + 1) % len(s.yearly) {
		if s.yearly[i] == 0 {
			s.yearly[i] = int32(entry + 1)
		}
		if i == to {
			return
		}
	}
}

// at returns the entry that names a day, or -1.
func (s *daySet) at(day int64) int {
	if i := day - s.first; i >= 0 && i < int64(len(s.byDay)) && s.byDay[i] != 0 {
		return int(s.byDay[i]) - 1
	}
	if s.yearly == nil {
		return -1
	}
	_, month, dom := time.Unix(day*secondsPerDay, 0).UTC().Date()
	return int(s.yearly[yearlyDay(month, dom)]) - 1
}

// each calls fn in order with the days that have an entry.
func (s *daySet) each(fn func(day int64, entry int)) {
	from, to := s.first, s.first+int64(len(s.byDay))
	if s.yearly != nil {
		from, to = firstCalendarDay, lastCalendarDay+1
	}
	for day := from; day < to; day++ {
		if entry := s.at(day); entry >= 0 {
			fn(day, entry)
		}
	}
}
