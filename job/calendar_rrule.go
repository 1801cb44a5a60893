package job

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go-crontab/job/problem"
)

// recurrence is the part of RFC 5545's RRULE that holidays use. It counts in whole days: every n
// years, months, weeks or days. It may be limited to some months, days of the month or days of the
// week.
type recurrence struct {
	freq      string
	interval  int64
	count     int   // 0: no bound
	until     int64 // last day, inclusive; lastCalendarDay: no bound
	zone      *time.Location
	bounded   bool // by count or until
	months    uint16
	monthDays map[int]bool // negative: from the end
	weekdays  map[nthWeekday]bool
	weekStart time.Weekday
}

// nthWeekday is the n-th occurrence of a weekday in the month or year. A negative n counts from the
// end, and 0 means every occurrence.
type nthWeekday struct {
	n   int
	day time.Weekday
}

var icsWeekdays = map[string]time.Weekday{
	"SU": time.Sunday, "MO": time.Monday, "TU": time.Tuesday, "WE": time.Wednesday, "TH": time.Thursday,
	"FR": time.Friday, "SA": time.Saturday,
}

// parseRecurrence reads the value of an RRULE, and refuses unknown parts. zone is the zone of the
// event's start.
func parseRecurrence(value string, zone *time.Location) (recurrence, error) {
	r := recurrence{
		interval: 1, until: lastCalendarDay, weekStart: time.Monday, zone: zone, monthDays: map[int]bool{},
		weekdays: map[nthWeekday]bool{},
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(strings.TrimSuffix(value, ";"), ";") {
		key, v, _ := strings.Cut(part, "=")
		key, v = strings.ToUpper(strings.TrimSpace(key)), strings.ToUpper(strings.TrimSpace(v))
		if seen[key] {
			return r, problem.Errorf(problem.RuleTwice, shorten(key))
		}
		seen[key] = true
		if err := r.take(key, v); err != nil {
			return r, err
		}
	}

	nth := false
	for w := range r.weekdays {
		nth = nth || w.n != 0
	}

	switch {
	case r.freq == "":
		return r, problem.Errorf(problem.RuleWithoutFreq)
	case seen["COUNT"] && seen["UNTIL"]:
		return r, problem.Errorf(problem.RuleOfTwoEnds)
	case nth && r.freq != "YEARLY" && r.freq != "MONTHLY":
		return r, problem.Errorf(problem.RuleNthDay, r.freq)
	case len(r.monthDays) > 0 && r.freq == "WEEKLY":
		return r, problem.Errorf(problem.RuleDayOfWeekly)
	}

	r.bounded = r.count > 0 || seen["UNTIL"]
	return r, nil
}

func (r *recurrence) take(key, v string) error {
	switch key {
	case "FREQ":
		switch v {
		case "YEARLY", "MONTHLY", "WEEKLY", "DAILY":
			r.freq = v
		default:
			return problem.Errorf(problem.RuleFreq, shorten(v))
		}
	case "INTERVAL", "COUNT":
		n, ok := number(v)
		if !ok || n < 1 || n > 99_999 {
			return problem.Errorf(problem.RuleNumber, key, shorten(v))
		}
		if key == "COUNT" {
			r.count = n
		} else {
			r.interval = int64(n)
		}
	case "UNTIL":
		day, _, err := icsDay(v)
		if err != nil {
			return fmt.Errorf("UNTIL: %w", err)
		}
		// RFC 5545: the end is inclusive. If the event has a zone, the end is an instant in UTC. If
		// the event has dates, the end is a date.
		if end, err := time.Parse("20060102T150405Z", v); err == nil {
			end = end.In(r.zone)
			day = dayOf(end.Year(), end.Month(), end.Day())
		}
		r.until = min(day, lastCalendarDay)
	case "WKST":
		day, ok := icsWeekdays[v]
		if !ok {
			return problem.Errorf(problem.RuleWeekStart, shorten(v))
		}
		r.weekStart = day
	case "BYMONTH":
		return eachNumber(key, v, 1, 12, func(n int) { r.months |= 1 << n })
	case "BYMONTHDAY":
		return eachNumber(key, v, -31, 31, func(n int) { r.monthDays[n] = true })
	case "BYDAY":
		return r.takeWeekdays(v)
	default:
		return problem.Errorf(problem.RuleUnknown, shorten(key))
	}

	return nil
}

func (r *recurrence) takeWeekdays(v string) error {
	for item := range strings.SplitSeq(v, ",") {
		at := max(0, len(item)-2)
		day, ok := icsWeekdays[item[at:]]
		n := 0
		if ok && at > 0 {
			var err error
			if n, err = strconv.Atoi(item[:at]); err != nil || n == 0 || n < -53 || n > 53 {
				ok = false
			}
		}
		if !ok {
			return problem.Errorf(problem.RuleDay, shorten(item))
		}
		r.weekdays[nthWeekday{n, day}] = true
	}

	return nil
}

// eachNumber reads a list of non-zero numbers.
func eachNumber(key, v string, least, most int, fn func(int)) error {
	for item := range strings.SplitSeq(v, ",") {
		n, err := strconv.Atoi(item)
		if err != nil || n == 0 || n < least || n > most {
			return problem.Errorf(problem.RuleNotBetween, key, shorten(item), least, most)
		}
		fn(n)
	}
	return nil
}

// plainlyYearly reports whether the rule means the date of its start in every year, without end.
func (r *recurrence) plainlyYearly(start int64) bool {
	_, month, day := dateOf(start)
	return r.freq == "YEARLY" && r.interval == 1 && !r.bounded && len(r.weekdays) == 0 &&
		(r.months == 0 || r.months == 1<<month) &&
		(len(r.monthDays) == 0 || r.months != 0 && len(r.monthDays) == 1 && r.monthDays[day])
}

// daysAUnit is how many days are checked for one unit of work.
const daysAUnit = 16

// days calls fn with the days of the rule from its start on, until fn returns false or the work is
// used up.
func (r *recurrence) days(w *Work, start int64, fn func(day int64) bool) {
	left := r.count
	if left == 0 {
		left = -1
	}

	for day := start; day <= r.until && left != 0; day++ {
		if day%daysAUnit == 0 && !w.spend(1) {
			return
		}
		if !r.matches(start, day) {
			continue
		}
		if !fn(day) {
			return
		}
		left--
	}
}

func (r *recurrence) matches(start, day int64) bool {
	y0, m0, d0 := dateOf(start)
	y, m, d := dateOf(day)
	if r.months != 0 && r.months>>m&1 == 0 {
		return false
	}

	var since int64
	switch r.freq {
	case "YEARLY":
		since = int64(y - y0)
	case "MONTHLY":
		since = int64(y-y0)*12 + int64(m-m0)
	case "WEEKLY":
		week := func(day int64) int64 { return day - int64((weekdayOf(day)-r.weekStart+7)%7) }
		since = (week(day) - week(start)) / 7
	case "DAILY":
		since = day - start
	}

	if since%r.interval != 0 {
		return false
	}

	length := daysIn(y, m)
	if len(r.monthDays) > 0 && !r.monthDays[d] && !r.monthDays[d-length-1] {
		return false
	}

	if len(r.weekdays) > 0 {
		at, of := d-1, length // position in the month, and its length
		if r.freq == "YEARLY" && r.months == 0 {
			at, of = time.Date(y, m, d, 0, 0, 0, 0, time.UTC).YearDay()-1, 365+daysIn(y, time.February)-28
		}
		own := weekdayOf(day)
		return r.weekdays[nthWeekday{0, own}] || r.weekdays[nthWeekday{at/7 + 1, own}] ||
			r.weekdays[nthWeekday{-((of - 1 - at) / 7) - 1, own}]
	}

	switch {
	case len(r.monthDays) > 0 || r.freq == "DAILY":
		return true
	case r.freq == "WEEKLY":
		return weekdayOf(day) == weekdayOf(start)
	case r.freq == "YEARLY" && r.months == 0 && m != m0:
		return false
	}

	return d == d0
}

func dateOf(day int64) (int, time.Month, int) { return time.Unix(day*secondsPerDay, 0).UTC().Date() }
