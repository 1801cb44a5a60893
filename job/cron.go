package job

import (
	"fmt"
	"strings"
	"time"

	"go-crontab/job/problem"

	"github.com/gorhill/cronexpr"
)

// never stands for a civil time that does not exist. It is after the end of every segment.
const never = int64(1) << 61

// Cron is a cron expression in a time zone. It is immutable and safe for concurrent use.
//
// A gap is the civil time that a clock skips when it is put forward. A repeat is the civil time
// that a clock shows twice when it is put back. If the second, minute or hour field begins with *,
// the expression follows elapsed time: it fires at every instant whose wall clock matches. So it
// does not fire in a gap, and fires in both passes of a repeat. Any other expression fires once for
// each matching civil time. All times that fall into a gap fire together, once, at the end of the
// gap. A time in a repeat fires on the first pass.
type Cron struct {
	text    string
	read    layout
	fields  cronFields
	elapsed bool
	loc     *time.Location

	// expr is the parser of the library gorhill/cronexpr. Call it only with civil times, written as
	// if in UTC: its Next is wrong in every zone with changing offsets. Next also changes expr
	// itself.
	expr *cronexpr.Expression
}

var _ Schedule = (*Cron)(nil)

// ParseCron reads an expression of 5, 6 or 7 fields, or a macro such as @daily. 5 fields are
// minute, hour, day of month, month and day of week. A 6th field is the second and comes first,
// unless the last field holds a year. 7 fields begin with the second and end with the year. The
// limit is 256 bytes. A nil loc means UTC. An expression that never fires in the years 1970 to 2099
// is refused. An expression that fires only in the past is accepted, because the past depends on
// the reader's clock. The error is a *CronError.
func ParseCron(expr string, loc *time.Location) (c *Cron, err error) {
	defer func() {
		if r := recover(); r != nil {
			c, err = nil, &CronError{
				Expr: expr, Problem: problem.CronUnreadable, Values: []any{fmt.Sprintf("not understood (%v)", r)},
			}
		}
	}()

	if loc == nil {
		loc = time.UTC
	}

	texts, read, bad := splitCron(expr)
	if bad != nil {
		return nil, bad
	}

	c = &Cron{text: strings.Join(strings.Fields(expr), " "), read: read, loc: loc}
	matches := make([]string, len(texts))
	for at, text := range texts {
		if c.fields[at], bad = readField(at, text); bad != nil {
			bad.Expr = expr
			if bad.Fix == "" && len(read) == 6 {
				bad.Fix = "six fields are read as " + read.String()
			}
			return nil, bad
		}
		matches[at] = c.fields[at].match
	}

	c.elapsed = c.fields[secondAt].star || c.fields[minuteAt].star || c.fields[hourAt].star
	if c.expr, err = cronexpr.Parse(strings.Join(matches, " ")); err != nil {
		return nil, &CronError{Expr: expr, Problem: problem.CronUnreadable, Values: []any{err}}
	}

	if bad = c.try(); bad != nil {
		bad.Expr = expr
		return nil, bad
	}

	return c, nil
}

// try tests the expression before it is used. It computes the first due times ever, and the first
// after the start of 2026. Gorhill's parser and our own fields must agree on each due time. The
// error has no Expr.
func (c *Cron) try() *CronError {
	const recent = 1767225600 // 2026-01-01
	if c.nextCivil(earliest) == never {
		return &CronError{Problem: problem.CronNever, Values: []any{firstYear, lastYear}}
	}

	if _, ok := c.next(earliest); !ok {
		return &CronError{Problem: problem.CronSkipped, Values: []any{c.loc}}
	}

	for _, civil := range []int64{earliest, recent} {
		for range 5 {
			next := c.nextCivil(civil)
			if next == never {
				break
			}
			if next <= civil || c.fields.count(civil+1, next+1) != 1 || !c.fields.matches(next) {
				return &CronError{Problem: problem.CronUnclear, Values: []any{civilText(civil)}}
			}
			civil = next
		}
	}

	return nil
}

func civilText(civil int64) string { return time.Unix(civil, 0).UTC().Format("2006-01-02 15:04:05") }

// String returns the expression as it was given, with single spaces.
func (c *Cron) String() string { return c.text }

// Location returns the time zone.
func (c *Cron) Location() *time.Location { return c.loc }

// Elapsed reports whether the expression follows elapsed time at clock changes.
func (c *Cron) Elapsed() bool { return c.elapsed }

// Layout names the fields in the order in which they were read. For a macro these are the five
// fields of a crontab.
func (c *Cron) Layout() string { return c.read.String() }

// Fields returns second, minute, hour, day of month, month, day of week and year in plain form.
// Names become numbers, leading zeros are removed, ? becomes *, and missing fields are filled in.
func (c *Cron) Fields() (texts [7]string) {
	for i := range c.fields {
		texts[i] = c.fields[i].text
	}
	return texts
}

// Next returns the first due time after t, in the expression's zone. ok is false if there is none
// until 2099.
func (c *Cron) Next(t time.Time) (due time.Time, ok bool) {
	at, ok := c.next(seconds(t))
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(at, 0).In(c.loc), true
}

// Last returns the last due time in (from, to], in the expression's zone.
func (c *Cron) Last(from, to time.Time) (due time.Time, ok bool) {
	lo, hi := seconds(from), seconds(to)
	// Double the distance from the end until the interval contains a due time. Then halve the
	// interval.
	var last int64
	for back := int64(1); ; back *= 2 {
		start := max(hi-back, lo)
		if start >= hi {
			return time.Time{}, false
		}
		if last, ok = c.next(start); ok && last <= hi {
			break
		}
		if start == lo {
			return time.Time{}, false
		}
	}

	for last < hi {
		middle := last + (hi-last)/2
		if next, ok := c.next(middle); ok && next <= hi {
			last = next
		} else {
			hi = middle
		}
	}

	return time.Unix(last, 0).In(c.loc), true
}

// Count returns the number of due times in (from, to], without visiting them.
func (c *Cron) Count(from, to time.Time) int64 {
	lo, hi := seconds(from)+1, seconds(to)+1
	if lo >= hi {
		return 0
	}

	var n int64
	for k := clockAt(c.loc, lo); ; k.advance() {
		first := max(k.start, lo) + k.offset
		if !c.elapsed {
			first = max(first, k.seen) // the second pass of a repeat does not count again
			if k.start >= lo && c.movedTo(&k) && !c.fields.matches(first) {
				n++
			}
		}
		n += c.fields.count(first, min(k.end, hi)+k.offset)
		if k.end >= hi {
			return n
		}
	}
}

// movedTo reports whether the segment begins at the end of a gap that swallowed a matching civil
// time.
func (c *Cron) movedTo(k *clock) bool {
	return !c.elapsed && k.start > -noEnd && c.fields.count(k.seen, k.start+k.offset) > 0
}

// next returns the first due instant after t.
func (c *Cron) next(t int64) (int64, bool) {
	if c.elapsed {
		return c.nextElapsed(t)
	}
	return c.nextOnce(t)
}

// nextOnce returns the first time at which the wall clock shows a matching civil time, or skips
// one.
func (c *Cron) nextOnce(t int64) (int64, bool) {
	k := clockAt(c.loc, t)
	civil := c.nextCivil(max(t+k.offset, k.seen-1))
	if civil == never {
		return 0, false
	}

	s, start := k.segment, t
	for civil >= s.end+s.offset {
		start = max(s.end, civil-maxOffset) // no clock is more than maxOffset ahead
		s = segmentAt(c.loc, start)
	}

	return max(start, civil-s.offset), true
}

// nextElapsed returns the first instant at which the wall clock matches.
func (c *Cron) nextElapsed(t int64) (int64, bool) {
	s := segmentAt(c.loc, t)
	after := t + s.offset
	civil := c.nextCivil(after) // always the first match after the civil time `after`
	for civil >= s.end+s.offset {
		start := s.end
		if start-maxOffset > after {
			start = max(start, civil-maxOffset) // no clock is back at `after` later, and none shows civil yet
		}
		if start >= latest {
			return 0, false
		}
		s = segmentAt(c.loc, start)
		if first := start + s.offset; first <= after || civil < first {
			after = first - 1
			civil = c.nextCivil(after)
		}
	}

	return civil - s.offset, true
}

// nextCivil returns the first matching civil time after the given one, or never.
func (c *Cron) nextCivil(after int64) (civil int64) {
	// Next is not known to panic on expressions that passed try. If it does, this job has no next
	// due time, and all other jobs continue.
	defer func() {
		if recover() != nil {
			civil = never
		}
	}()

	scratch := *c.expr // Next changes its receiver: it writes the days of a month
	next := scratch.Next(time.Unix(after, 0).UTC())
	if next.IsZero() || next.Unix() <= after {
		return never
	}

	return next.Unix()
}

// seconds rounds down. Due times are whole seconds, so rounding does not change which due times are
// in (from, to].
func seconds(t time.Time) int64 { return min(max(t.Unix(), earliest), latest) }
