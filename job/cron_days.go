package job

import (
	"math/bits"
	"time"
)

const secondsPerDay = 24 * 60 * 60

// cronFields is a parsed expression. It counts matches directly, while gorhill's parser walks from
// match to match. Each parser checks the other.
//
// Civil times are seconds since 1970-01-01 00:00:00 on the wall clock. Every day counts as 86400
// seconds.
type cronFields [7]cronField

// count returns the number of matching civil times in [from, to).
func (c *cronFields) count(from, to int64) int64 {
	if from >= to {
		return 0
	}

	fromDay, fromSecond := splitCivil(from)
	toDay, toSecond := splitCivil(to)
	if fromDay == toDay {
		return c.days(fromDay, fromDay+1) * (c.timesBefore(toSecond) - c.timesBefore(fromSecond))
	}

	aDay := c.timesBefore(secondsPerDay)
	return c.days(fromDay, fromDay+1)*(aDay-c.timesBefore(fromSecond)) +
		c.days(fromDay+1, toDay)*aDay +
		c.days(toDay, toDay+1)*c.timesBefore(toSecond)
}

// matches reports whether a civil time matches.
func (c *cronFields) matches(civil int64) bool { return c.count(civil, civil+1) == 1 }

// splitCivil returns the day since 1970-01-01 and the second within it.
func splitCivil(civil int64) (day int64, second int) {
	day, rest := civil/secondsPerDay, civil%secondsPerDay
	if rest < 0 {
		day, rest = day-1, rest+secondsPerDay
	}
	return day, int(rest)
}

// timesBefore counts the matching times of a day before second s of the day, 0 to 86400.
func (c *cronFields) timesBefore(s int) int64 {
	hour, minute, second := &c[hourAt].values, &c[minuteAt].values, &c[secondAt].values
	h, m, s := s/3600, s/60%60, s%60
	n := hour.below(h) * minute.below(60) * second.below(60)
	if h < 24 && hour.has(h) {
		n += minute.below(m) * second.below(60)
		if minute.has(m) {
			n += second.below(s)
		}
	}

	return n
}

// days counts the matching days in [from, to), given in days since 1970-01-01.
func (c *cronFields) days(from, to int64) int64 {
	if from >= to {
		return 0
	}

	year, month, day, weekday := civilDay(from)
	n := 0
	for at := from - int64(day-1); at < to; {
		length := daysIn(year, month)
		mask := c.monthMask(year, month, weekday, length)
		if at < from {
			mask &^= 1<<(from-at+1) - 1
		}
		if left := to - at; left < int64(length) {
			mask &= 1<<(left+1) - 1
		}
		n += bits.OnesCount32(mask)
		at += int64(length)
		weekday = (weekday + length) % 7
		if month++; month > time.December {
			year, month = year+1, time.January
		}
	}

	return int64(n)
}

// civilDay returns the date of a day since 1970-01-01, and the weekday of the first of its month.
func civilDay(at int64) (year int, month time.Month, day, weekday int) {
	t := time.Unix(at*secondsPerDay, 0).UTC()
	year, month, day = t.Date()
	return year, month, day, (int(t.Weekday()) + 35 - (day - 1)) % 7
}

// monthMask returns a mask with bit d set if day d of the month matches. weekday is the weekday of
// the first day.
func (c *cronFields) monthMask(year int, month time.Month, weekday, length int) uint32 {
	if year < firstYear || year > lastYear || !c[yearAt].values.has(year-firstYear) ||
		!c[monthAt].values.has(int(month)-1) {
		return 0
	}

	dom, dow := &c[domAt], &c[dowAt]
	all := uint32(1)<<(length+1) - 2
	// Two restricted day fields are alternatives, as in crontab. */2 restricts, * does not.
	var mask uint32
	switch {
	case dom.any && dow.any:
		return all
	case dom.any:
		mask = dow.weekdayMask(weekday, length)
	case dow.any:
		mask = dom.monthdayMask(weekday, length)
	default:
		mask = dom.monthdayMask(weekday, length) | dow.weekdayMask(weekday, length)
	}

	return mask & all
}

func (f *cronField) monthdayMask(weekday, length int) uint32 {
	mask := uint32(f.values[0]) << 1
	if f.lastDay {
		mask |= 1 << length
	}

	if f.lastWorkday {
		mask |= 1 << workday(length, weekday, length)
	}

	for left := f.nearest[0]; left != 0; left &= left - 1 {
		if day := bits.TrailingZeros64(left) + 1; day <= length {
			mask |= 1 << workday(day, weekday, length)
		}
	}

	return mask
}

// workday returns the day from Monday to Friday closest to day, within its month.
func workday(day, weekday, length int) int {
	switch (weekday + day - 1) % 7 {
	case int(time.Saturday):
		if day == 1 {
			return 3
		}
		return day - 1
	case int(time.Sunday):
		if day == length {
			return day - 2
		}
		return day + 1
	}

	return day
}

func (f *cronField) weekdayMask(weekday, length int) uint32 {
	var mask uint32
	for week := range f.nth {
		mask |= rotate(f.values[0]|f.nth[week][0], weekday) << (7*week + 1)
	}
	lastWeek := length - 6
	return mask | rotate(f.lastOf[0], weekday+lastWeek-1)<<lastWeek
}

// rotate rotates a set of weekdays so that the given one is bit 0.
func rotate(week uint64, weekday int) uint32 {
	weekday %= 7
	return uint32(week>>weekday|week<<(7-weekday)) & 0x7f
}

func daysIn(year int, month time.Month) int {
	switch month {
	case time.April, time.June, time.September, time.November:
		return 30
	case time.February:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}

	return 31
}
