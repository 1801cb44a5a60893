package job

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Filtered is due when its schedule is due and all of its calendars are open. On a day that a
// calendar counts as another weekday, a cron expression matches that weekday and not the day's own.
//
// Due times of a Filtered are in the years of cron, 1970 to 2099, for any schedule. The methods
// jump over closed stretches. So their cost grows with the number of openings and closings on the
// way, not with the number of due times. Next and Last give up after maxStretches stretches. Only a
// calendar with weekly hours can have so many.
type Filtered struct {
	base      Schedule
	calendars []*Calendar
	zones     []*time.Location      // of the calendars
	lent      map[weekdays]Schedule // by weekdays that a day counts as; nil: never due on such a day
	home      *time.Location        // of the job

	weeks *keptWeeks // nil: all
	move  int64      // the sign of the days by which due times of closed days move; 0: they are dropped
	// civil: a part of the base is due once for each civil time. elapsed: another part is not.
	civil, elapsed bool

	work *Work // budget of walks; nil: no bound
	cost int64 // units of work for one look at the base schedule
}

var (
	_ Schedule = Filtered{}
	_ Marker   = Filtered{}
)

// maxStretches bounds a search. For comparison, 130 years have 47,482 days.
const maxStretches = 200_000

// NewFiltered filters a schedule by calendars. zone is the time zone of calendars that name none.
func NewFiltered(base Schedule, zone *time.Location, calendars ...*Calendar) (Filtered, error) {
	f := Filtered{base: base, calendars: calendars, lent: map[weekdays]Schedule{}, home: zone}
	eachPart(base, func(*Cron) { f.civil = true }, func(Schedule) { f.elapsed = true })
	for _, c := range calendars {
		own := c.zone
		if own == nil {
			own = zone
		}
		f.zones = append(f.zones, own)
		for _, day := range c.lent {
			days := c.lends(int64(day))
			if _, there := f.lent[days]; there {
				continue
			}
			s, err := onWeekdays(base, days)
			if err != nil {
				return Filtered{}, err
			}
			f.lent[days] = s
		}
	}

	return f, nil
}

// onWeekdays returns the schedule as if every day counted as the given weekdays. It returns nil if
// the schedule is never due on such a day.
func onWeekdays(s Schedule, days weekdays) (Schedule, error) {
	switch s := s.(type) {
	case *Cron:
		c, err := s.on(days)
		if c == nil {
			return nil, err
		}
		return c, nil
	case Union:
		var u Union
		for _, part := range s {
			p, err := onWeekdays(part, days)
			if err != nil {
				return nil, err
			}
			if p != nil {
				u = append(u, p)
			}
		}
		if u == nil {
			return nil, nil
		}
		return u, nil
	}

	return s, nil // does not depend on weekdays
}

// Next returns the first due time after t.
func (f Filtered) Next(t time.Time) (due time.Time, ok bool) {
	return f.next(micros(t), latestMicros-1)
}

// No Filtered is due before earliestMicros, or from latestMicros on.
const (
	earliestMicros = earliest * 1_000_000
	latestMicros   = latest * 1_000_000
)

// next returns the first due time after t and up to limit. Both are in microseconds.
func (f Filtered) next(t, limit int64) (due time.Time, ok bool) {
	if f.move == 0 {
		return f.direct(t, limit)
	}

	// All due times may be on closed days, or none of them. So look for due times of both kinds, in
	// stretches that grow.
	w := f.walk()
	t, limit = max(t, earliestMicros-1), min(limit, latestMicros-1)
	for length := int64(16 * microsPerDay); t < limit && !w.broke; length *= 4 {
		until := min(limit, t+length)
		due, ok = f.direct(t, until)
		before := until
		if ok {
			before = micros(due) - 1
		}
		if m, moved := w.nextMoved(t, before); moved {
			return time.UnixMicro(w.instantOf(m.to)).In(f.home), true
		}
		if ok {
			return due, f.work.Err() == nil
		}
		t = until
	}

	return time.Time{}, false
}

// direct is like next, for due times that did not move.
func (f Filtered) direct(t, limit int64) (due time.Time, ok bool) {
	t, limit = max(t, earliestMicros-1), min(limit, latestMicros-1)
	w := f.walk()
	for n := 0; t < limit && n < maxStretches; n++ {
		s := w.at(t + 1)
		to := s.end
		schedule := f.on(s)
		if !f.spend(schedule) {
			return time.Time{}, false
		}
		if schedule != nil {
			due, ok = schedule.Next(time.UnixMicro(t))
			at := micros(due)
			if ok && at < s.end {
				return due, at <= limit
			}
			if s.as == 0 {
				to = max(to, f.skip(t, at, ok))
			}
		}
		t = to - 1
	}

	return time.Time{}, false
}

// skip returns the next due time after t. If another schedule applies from an earlier day on, it
// returns that day. Nothing is due between t and the result.
func (f Filtered) skip(t, due int64, ok bool) int64 {
	if !ok {
		due = latestMicros
	}
	for _, c := range f.calendars {
		due = min(due, c.lentAfter(t))
	}
	return due
}

// lentAfter returns an instant in microseconds. Between t and this instant no day counts as another
// weekday, in any time zone.
func (c *Calendar) lentAfter(t int64) int64 {
	day, _ := splitCivil(floorSeconds(t) - maxOffset)
	at, _ := slices.BinarySearch(c.lent, int32(day))
	if at == len(c.lent) {
		return latestMicros
	}
	return (int64(c.lent[at])*secondsPerDay - maxOffset) * 1_000_000
}

// spend pays for one stretch and one look at the schedule of the stretch.
func (f Filtered) spend(schedule Schedule) bool {
	units := int64(len(f.calendars))
	if schedule != nil {
		units += f.cost
	}
	return f.work.spend(units)
}

// on returns the schedule of a stretch. If the stretch has no due time, it returns nil.
func (f Filtered) on(s stretch) Schedule {
	switch {
	case !s.open:
		return nil
	case s.as != 0:
		return f.lent[s.as]
	}
	return f.base
}

// Last returns the last due time in (from, to].
func (f Filtered) Last(from, to time.Time) (due time.Time, ok bool) {
	lo, hi := max(micros(from), earliestMicros-1), min(micros(to), latestMicros-1)
	// Double the distance from the end until the interval contains a due time. Then halve the
	// interval.
	for back := int64(1_000_000); ; back *= 2 {
		start := max(hi-back, lo)
		if start >= hi {
			return time.Time{}, false
		}
		if due, ok = f.next(start, hi); ok {
			break
		}
		if start == lo {
			return time.Time{}, false
		}
	}

	for last := micros(due); last < hi; {
		middle := last + (hi-last)/2
		if next, ok := f.next(middle, hi); ok {
			due, last = next, micros(next)
		} else {
			hi = middle
		}
	}

	return due, true
}

// Count returns the number of due times in (from, to].
func (f Filtered) Count(from, to time.Time) (n int64) {
	lo, hi := max(micros(from), earliestMicros-1), min(micros(to), latestMicros-1)
	t := lo
	w := f.walk()
	for t < hi {
		s := w.at(t + 1)
		end := s.end
		schedule := f.on(s)
		if !f.spend(schedule) {
			return n
		}
		if schedule != nil {
			here := schedule.Count(time.UnixMicro(t), time.UnixMicro(min(end-1, hi)))
			n += here
			if here == 0 && s.as == 0 { // the next due time may be far away, so jump to it
				due, ok := schedule.Next(time.UnixMicro(t))
				end = max(end, f.skip(t, micros(due), ok))
			}
		}
		t = end - 1
	}

	if f.move == 0 {
		return n
	}

	// A due time may move to another due time of its new day.
	for t := lo; !w.broke; n++ {
		m, ok := w.nextMoved(t, hi)
		if !ok {
			break
		}
		t = w.instantOf(m.to)
		if _, own := f.direct(t-1, t); own {
			n--
		}
	}

	return n
}

// Mark returns the mark of the schedule, or Makeup on a day that counts as another day of the week.
func (f Filtered) Mark(due time.Time) Mark {
	w := f.walk()
	s := w.at(micros(due))
	schedule := f.on(s)
	if f.move != 0 && (schedule == nil || !dueAt(schedule, due)) {
		return Moved
	}
	if schedule == nil {
		return Unmarked
	}

	m := markOf(schedule, due)
	if m == Unmarked && s.as != 0 {
		m = Makeup
	}

	return m
}

// why returns the calendar that closes an instant, and the reason: an entry or a rule of the
// calendar. ok is false if no calendar closes the instant.
func (f Filtered) why(t time.Time) (calendar, reason string, ok bool) {
	w := f.walk()
	s := w.at(micros(t))
	for i, c := range f.calendars {
		v := &w.views[i]
		if open, _ := c.at(v.day, v.at/60, s.as); !open {
			return c.name, c.why(v.day, s.as), true
		}
		if entry := c.include.at(v.day); s.as != 0 && entry >= 0 && c.lends(v.day) == s.as {
			schedule := f.lent[s.as]
			if schedule == nil || !dueAt(schedule, t) {
				return c.name, fmt.Sprintf("%s: the day counts as %s", noteOf(c.spec.Include[entry]), s.as), true
			}
		}
	}

	return "", "", false
}

// stretch is a part of time, without its end, in which nothing changes. The calendars stay open or
// closed, and the day counts as the same weekdays. No weekdays means the day's own weekday.
type stretch struct {
	end  int64 // microseconds
	open bool
	as   weekdays
}

// walk moves forward through time. It caches the wall clock of each calendar.
type walk struct {
	f     *Filtered
	views []view
	home  view // of the job's zone; day and at are not used
	broke bool // the work is spent
}

// view is a calendar's wall clock.
type view struct {
	segment
	since int64 // seconds: the segment is valid from here
	day   int64
	at    int // second of the day
}

func (f *Filtered) walk() walk {
	w := walk{f: f, views: make([]view, len(f.calendars)), home: view{since: math.MaxInt64}}
	for i := range w.views {
		w.views[i].since = math.MaxInt64
	}
	return w
}

// look reads a calendar's clock at an instant, in seconds.
func (w *walk) look(i int, t int64) *view {
	v := &w.views[i]
	if t < v.since || t >= v.end {
		v.segment, v.since = segmentAt(w.f.zones[i], t), t
	}
	v.day, v.at = splitCivil(t + v.offset)
	return v
}

// instant returns when the clock shows a minute of the given day. If the known segment ends
// earlier, it returns the end of the segment.
func (v *view) instant(day int64, minute int) int64 {
	return min(day*secondsPerDay+int64(minute)*60-v.offset, v.end)
}

// at returns the stretch that contains an instant. The stretch may end before anything changes,
// because finding the real end can be expensive. Then the next stretch has the same state.
func (w *walk) at(micro int64) stretch {
	s := w.open(micro)
	if w.f.weeks == nil {
		return s
	}

	t := floorSeconds(micro)
	home := w.homeAt(t)
	day, _ := splitCivil(t + home.offset)
	kept, until := w.f.weeks.at(day)
	end := min(until*secondsPerDay-home.offset, home.end) * 1_000_000
	if !kept {
		return stretch{end: end}
	}

	s.end = min(s.end, end)
	return s
}

// open is at without the weeks.
func (w *walk) open(micro int64) stretch {
	t := floorSeconds(micro)
	s := stretch{end: latest + secondsPerDay, open: true}
	shut := t // the end of the current dated exclusion
	for i, c := range w.f.calendars {
		v := w.look(i, t)
		if until := c.shutUntil(v.day, (v.end+v.offset)/secondsPerDay); until > v.day {
			shut = max(shut, v.instant(until, 0))
		}
		if s.as == 0 {
			s.as = c.lends(v.day)
		}
	}

	if shut > t {
		return stretch{end: shut * 1_000_000}
	}

	for i, c := range w.f.calendars {
		v := &w.views[i]
		open, until := c.at(v.day, v.at/60, s.as)
		s.open = s.open && open
		s.end = min(s.end, v.instant(v.day, until))
	}

	s.end *= 1_000_000
	return s
}

func floorSeconds(micro int64) int64 {
	s := micro / 1_000_000
	if micro%1_000_000 < 0 {
		s--
	}
	return s
}
