package job

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"go-crontab/job/problem"
)

// weekdays is a set of days of the week: bit 0 is Sunday, as time.Weekday counts.
type weekdays uint8

const (
	allWeekdays weekdays = 0x7f
	// usualWork are the working days of a calendar without closed weekdays.
	usualWork = weekdays(1<<time.Monday | 1<<time.Tuesday | 1<<time.Wednesday | 1<<time.Thursday | 1<<time.Friday)
)

// weekdayTexts are the stored and displayed names.
var weekdayTexts = [7]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

func onlyWeekday(d time.Weekday) weekdays { return 1 << d }

func (w weekdays) has(d time.Weekday) bool { return w>>d&1 == 1 }

// list names the days, Monday first.
func (w weekdays) list() (names []string) {
	for i := range 7 {
		if d := time.Weekday((i + 1) % 7); w.has(d) {
			names = append(names, weekdayTexts[d])
		}
	}
	return names
}

// String names the days in a few words.
func (w weekdays) String() string {
	switch w {
	case usualWork:
		return "mon-fri"
	case allWeekdays:
		return "mon-sun"
	}
	return strings.Join(w.list(), ",")
}

// parseWeekday reads a name such as mon or Monday.
func parseWeekday(s string) (time.Weekday, bool) {
	lower := strings.ToLower(s)
	for d := range time.Saturday + 1 {
		if lower == weekdayTexts[d] || lower == strings.ToLower(d.String()) {
			return d, true
		}
	}
	return 0, false
}

// parseWeekdays parses a list of days and ranges, such as mon-fri or sat,sun. A range may go past
// the end of the week, as in fri-mon.
func parseWeekdays(s string) (weekdays, error) {
	var w weekdays
	for item := range strings.SplitSeq(s, ",") {
		from, to, ranged := strings.Cut(strings.TrimSpace(item), "-")
		first, ok := parseWeekday(from)
		last := first
		if ok && ranged {
			last, ok = parseWeekday(to)
		}
		if !ok {
			return 0, problem.Errorf(problem.NotAWeekday, shorten(item))
		}
		for d := first; ; d = (d + 1) % 7 {
			w |= onlyWeekday(d)
			if d == last {
				break
			}
		}
	}

	return w, nil
}

// minutes is a set of minutes of a day.
type minutes [23]uint64

const minutesPerDay = 24 * 60

func (m *minutes) add(from, to int) {
	for i := from; i < to; i++ {
		m[i/64] |= 1 << (i % 64)
	}
}

// allMinutes is a whole day.
func allMinutes() (m minutes) {
	m.add(0, minutesPerDay)
	return m
}

// openHours holds the open minutes of each day of the week.
type openHours [7]minutes

// word returns word i of the set of minutes that are open on all of the days.
func (o *openHours) word(days weekdays, i int) uint64 {
	w := ^uint64(0)
	for left := days; left != 0; left &= left - 1 {
		w &= o[bits.TrailingZeros8(uint8(left))][i]
	}
	return w
}

// at reports whether a minute is open on all of the days. It also returns until which minute that
// stays so, at most 1440.
func (o *openHours) at(days weekdays, minute int) (open bool, until int) {
	i := minute / 64
	w := o.word(days, i)
	open = w>>(minute%64)&1 == 1
	flip := uint64(0)
	if open {
		flip = ^uint64(0)
	}

	w = (w ^ flip) &^ (1<<(minute%64) - 1) // set bits: later minutes with the opposite state
	for w == 0 {
		if i++; i == len(minutes{}) {
			return open, minutesPerDay
		}
		w = o.word(days, i) ^ flip
	}

	return open, min(i*64+bits.TrailingZeros64(w), minutesPerDay)
}

// stretches formats the open minutes of a day as 08:00-18:00.
func (o *openHours) stretches(days weekdays) (list []string) {
	for m := 0; m < minutesPerDay; {
		open, until := o.at(days, m)
		if open {
			list = append(list, clockText(m)+"-"+clockText(until))
		}
		m = until
	}
	return list
}

func clockText(minute int) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }

// parseWindow parses one line of weekly hours, such as "mon-fri 08:00-12:00,13:00-18:00".
// "22:00-02:00" is for all days. The part of a window after midnight belongs to the next day.
func parseWindow(s string) (o openHours, err error) {
	fields := strings.Fields(s)
	days, times := allWeekdays, ""
	switch len(fields) {
	case 1:
		times = fields[0]
	case 2:
		times = fields[1]
		if days, err = parseWeekdays(fields[0]); err != nil {
			return o, err
		}
	default:
		return o, problem.Errorf(problem.HoursUnclear, shorten(s))
	}

	for item := range strings.SplitSeq(times, ",") {
		from, to, ok := strings.Cut(item, "-")
		first, ok1 := parseClock(from)
		last, ok2 := parseClock(to)
		switch {
		case !ok || !ok1 || !ok2 || first == minutesPerDay:
			return o, problem.Errorf(problem.NotAStretch, shorten(item))
		case first == last:
			return o, problem.Errorf(problem.StretchEmpty, shorten(item))
		}
		for d := range o {
			switch {
			case !days.has(time.Weekday(d)):
			case first < last:
				o[d].add(first, last)
			default:
				o[d].add(first, minutesPerDay)
				o[(d+1)%7].add(0, last)
			}
		}
	}

	return o, nil
}

// parseClock reads 08:00, 8:00 and 24:00 as minutes.
func parseClock(s string) (int, bool) {
	h, m, ok := strings.Cut(s, ":")
	hour, ok1 := number(h)
	minute, ok2 := number(m)
	if !ok || !ok1 || !ok2 || len(h) > 2 || len(m) != 2 || minute > 59 || hour > 24 || hour == 24 && minute > 0 {
		return 0, false
	}
	return hour*60 + minute, true
}
