package job

import "math/bits"

// cronUnion counts the due times of cron expressions of one time zone. If several expressions are
// due at the same instant, that is one due time. It steps through days instead of due times: two
// expressions that are due every second have 31,536,000 due times a year.
type cronUnion struct {
	parts []*Cron
	full  map[uint32]int64 // due times of a whole day; the key is the set of parts due on that day

	firstDay int64    // of the cached month, since 1970-01-01
	length   int      // of the cached month; 0: none
	months   []uint32 // for each part, bit d is set if it is due on day d of the month
}

// crons returns a counter for the union. It returns nil unless all parts are cron expressions of
// one time zone.
func (u Union) crons() *cronUnion {
	c := &cronUnion{full: map[uint32]int64{}, months: make([]uint32, len(u))}
	if len(u) == 0 || len(u) > 32 {
		return nil
	}

	for _, s := range u {
		part, ok := s.(*Cron)
		if !ok || len(c.parts) > 0 && part.loc.String() != c.parts[0].loc.String() {
			return nil
		}
		c.parts = append(c.parts, part)
	}

	return c
}

// count returns the number of due times in [lo, hi), in seconds. See Cron.Count.
func (c *cronUnion) count(lo, hi int64) (n int64) {
	if lo >= hi {
		return 0
	}

	var all, elapsed uint32
	for i, part := range c.parts {
		all |= 1 << i
		if part.elapsed {
			elapsed |= 1 << i
		}
	}

	for k := clockAt(c.parts[0].loc, lo); ; k.advance() {
		first, end := max(k.start, lo)+k.offset, min(k.end, hi)+k.offset
		fresh := max(first, k.seen) // before fresh the clock shows a second pass; only elapsed parts fire in it
		n += c.between(first, min(fresh, end), elapsed) + c.between(fresh, end, all)
		if k.start >= lo && c.movedTo(&k, first) {
			n++
		}
		if k.end >= hi {
			return n
		}
	}
}

// movedTo reports whether the end of a gap is a due time only because the gap swallowed a due time.
func (c *cronUnion) movedTo(k *clock, first int64) (moved bool) {
	for _, part := range c.parts {
		if part.fields.matches(first) {
			return false
		}
		moved = moved || part.movedTo(k)
	}
	return moved
}

// between counts the civil times in [from, to) that match any part in the set some.
func (c *cronUnion) between(from, to int64, some uint32) (n int64) {
	for some != 0 && from < to {
		day, second := splitCivil(from)
		until := int(min(to-day*secondsPerDay, secondsPerDay))
		if due := c.dueOn(day) & some; due != 0 {
			n += c.times(due, second, until)
		}
		from = day*secondsPerDay + int64(until)
	}
	return n
}

// dueOn returns which parts are due on a day.
func (c *cronUnion) dueOn(day int64) (due uint32) {
	if c.length == 0 || day < c.firstDay || day >= c.firstDay+int64(c.length) {
		year, month, dayOfMonth, weekday := civilDay(day)
		c.firstDay, c.length = day-int64(dayOfMonth-1), daysIn(year, month)
		for i, part := range c.parts {
			c.months[i] = part.fields.monthMask(year, month, weekday, c.length)
		}
	}

	for i, mask := range c.months {
		due |= mask >> (day - c.firstDay + 1) & 1 << i
	}

	return due
}

// times counts the seconds in [from, to) of a day at which any part in due is due.
func (c *cronUnion) times(due uint32, from, to int) (n int64) {
	whole := from == 0 && to == secondsPerDay
	if n, known := c.full[due]; whole && known {
		return n
	}

	firstMinute, lastMinute := from/60, (to+59)/60
	var minutes [24 * 60]uint64 // for each minute, bit s is set if second s is due
	for i, part := range c.parts {
		if due>>i&1 == 0 {
			continue
		}
		f := &part.fields
		for m := firstMinute; m < lastMinute; m++ {
			if f[hourAt].values.has(m/60) && f[minuteAt].values.has(m%60) {
				minutes[m] |= f[secondAt].values[0]
			}
		}
	}

	for m := firstMinute; m < lastMinute; m++ {
		seconds := minutes[m]
		low, high := min(max(from-60*m, 0), 60), min(max(to-60*m, 0), 60)
		n += int64(bits.OnesCount64(seconds & (1<<high - 1) &^ (1<<low - 1)))
	}

	if whole {
		c.full[due] = n
	}

	return n
}
