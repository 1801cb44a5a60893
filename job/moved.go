package job

import (
	"time"
)

// OnClosed says what happens to a due time on a closed day.
type OnClosed string

// What happens to a due time on a closed day. The zero value means ClosedSkip.
const (
	ClosedSkip     OnClosed = "skip"
	ClosedNext     OnClosed = "next"     // it moves to the next open day
	ClosedPrevious OnClosed = "previous" // it moves to the open day before
)

// MaxMove is the most days by which a due time moves. If no day within MaxMove days is open, the
// due time is dropped.
const MaxMove = 366

// direction is the sign of the days by which due times move. It is 0 if they do not move.
func (o OnClosed) direction() int64 {
	switch o {
	case ClosedNext:
		return 1
	case ClosedPrevious:
		return -1
	}
	return 0
}

// This file moves the due times of closed days. Due times move in civil time, which is the wall
// clock of the job's zone, in microseconds. The instant of a civil time is the first instant at
// which the clock shows that time or a later time. For a repeat, that is the first pass. For a gap,
// it is the end of the gap. So a later civil time never has an earlier instant.
//
// A search looks at each day to which due times may move. From there it looks at the closed days
// whose due times move to this day. So it finds due times in the order of their new times, although
// a move may change their order.

const (
	microsPerDay = secondsPerDay * 1_000_000
	noCivil      = int64(1) << 62 // after all civil times
)

// instantOf returns the instant of a civil time.
func (w *walk) instantOf(civil int64) int64 {
	sec := floorSeconds(civil)
	at := sec - maxOffset
	s := w.homeAt(at)
	for sec >= s.end+s.offset {
		at = s.end
		s = w.homeAt(at)
	}

	return max(at*1_000_000, civil-s.offset*1_000_000)
}

// civilOf returns the first civil time whose instant is at or after t.
func (w *walk) civilOf(t int64) int64 {
	sec := floorSeconds(t)
	k := clock{w.homeAt(sec - 2*maxOffset), nil, -noEnd, -noEnd}
	for k.end <= sec {
		k.start, k.seen = k.end, max(k.seen, k.end+k.offset)
		k.segment = w.homeAt(k.end)
	}

	if at := sec + k.offset; k.seen > at || k.start == sec && t == sec*1_000_000 {
		return k.seen * 1_000_000
	}

	return t + k.offset*1_000_000
}

// homeAt is segmentAt for the job's zone. It remembers the last segment.
func (w *walk) homeAt(t int64) segment {
	if t < w.home.since || t >= w.home.end {
		w.home.segment, w.home.since = segmentAt(w.f.home, t), t
	}
	return w.home.segment
}

// dayState is what the calendars and the weeks say about an instant's day, without the hours.
type dayState struct {
	end    int64 // microseconds
	closed bool  // a calendar is closed all day
	kept   bool  // the week is
	as     weekdays
}

// day returns the state of an instant's day.
func (w *walk) day(micro int64) dayState {
	t := floorSeconds(micro)
	s := dayState{end: noEnd / 1_000_000, kept: true}
	for i, c := range w.f.calendars {
		v := w.look(i, t)
		s.end = min(s.end, v.instant(v.day+1, 0))
		if s.as == 0 {
			s.as = c.lends(v.day)
		}
	}

	for i, c := range w.f.calendars {
		open, until := c.at(w.views[i].day, 0, s.as)
		s.closed = s.closed || !open && until == minutesPerDay
	}

	if weeks := w.f.weeks; weeks != nil {
		home := w.homeAt(t)
		day, _ := splitCivil(t + home.offset)
		kept, until := weeks.at(day)
		s.kept = kept
		s.end = min(s.end, until*secondsPerDay-home.offset, home.end)
	}

	s.end *= 1_000_000
	w.broke = w.broke || !w.f.work.spend(int64(len(w.f.calendars)))
	return s
}

// civilSpan is civil time without its end.
type civilSpan struct{ from, to int64 }

// states calls fn with the states of a span's instants, in order.
func (w *walk) states(span civilSpan, fn func(part civilSpan, s dayState)) {
	for from := span.from; from < span.to && !w.broke; {
		s := w.day(w.instantOf(from))
		until := min(w.civilOf(s.end), span.to)
		fn(civilSpan{from, until}, s)
		from = until
	}
}

// openAllDay reports whether a day is open at all times of day.
func (w *walk) openAllDay(day int64) bool {
	open := true
	w.states(wholeDay(day), func(_ civilSpan, s dayState) { open = open && !s.closed })
	return open
}

// wholeDay is the civil time of a day.
func wholeDay(day int64) civilSpan { return civilSpan{day * microsPerDay, (day + 1) * microsPerDay} }

// move is a due time that moved, in civil time.
type move struct{ to, from int64 }

// nextMoved returns the first instant after t, and not after limit, to which a due time moves. The
// instant may also be a due time of its own day.
func (w *walk) nextMoved(t, limit int64) (m move, ok bool) {
	span := civilSpan{w.civilOf(t + 1), w.civilOf(limit + 1)}
	for span.from < span.to && !w.broke {
		day := floorDay(span.from)
		if m, ok = w.movedTo(day, civilSpan{span.from, min(span.to, (day+1)*microsPerDay)}); ok {
			return m, !w.broke
		}
		span.from = w.nextTarget(day) * microsPerDay
	}

	return m, false
}

func floorDay(civil int64) int64 {
	day, _ := splitCivil(floorSeconds(civil))
	return day
}

// movedTo returns the first civil time in a span of a day to which a due time moves. It also
// returns the nearest due time that moves there.
func (w *walk) movedTo(day int64, span civilSpan) (best move, ok bool) {
	best.to = noCivil
	w.states(span, func(part civilSpan, s dayState) {
		for !s.closed && part.from < part.to && best.to == noCivil && !w.broke {
			m, ok := w.source(day, part)
			if !ok {
				return
			}

			// The new day may be closed at this hour.
			if hours := w.open(w.instantOf(m.to)); !hours.open {
				part.from = w.civilOf(hours.end)
				continue
			}
			best = m
		}
	})

	return best, best.to != noCivil && !w.broke
}

// source returns the first civil time in an open span to which a due time of a closed day moves. It
// ignores the hours of the span.
func (w *walk) source(day int64, span civilSpan) (best move, ok bool) {
	best.to = noCivil
	spans := []civilSpan{span} // open on day, and closed on all days between day and the source
	for k := int64(1); k <= MaxMove && len(spans) > 0 && !w.broke; k++ {
		var closed []civilSpan
		by := -k * w.f.move * microsPerDay
		for _, span := range spans {
			if span.to = min(span.to, best.to); span.from >= span.to {
				continue
			}
			from, shut := w.nominal(civilSpan{span.from + by, span.to + by})
			if from != noCivil {
				best = move{from - by, from}
			}
			for _, part := range shut {
				closed = append(closed, civilSpan{part.from - by, part.to - by})
			}
		}
		spans = closed
	}

	return best, best.to != noCivil
}

// nominal returns the civil time of the first due time in a span whose day is closed. It also
// returns the closed parts of the span.
func (w *walk) nominal(span civilSpan) (best int64, closed []civilSpan) {
	best = noCivil
	w.states(span, func(part civilSpan, s dayState) {
		if !s.closed {
			return
		}
		closed = append(closed, part)
		if best != noCivil || !s.kept || !w.f.civil {
			return
		}
		eachPart(w.f.as(s.as), func(c *Cron) {
			after := -floorSeconds(-part.from) - 1 // whole seconds
			if at := c.nextCivil(after); at != never && at*1_000_000 < part.to {
				best = min(best, at*1_000_000)
			}
		}, nil)
	})

	if w.f.elapsed {
		best = min(best, w.nominalElapsed(span))
	}

	return best, closed
}

// nominalElapsed is like nominal, for schedules that follow elapsed time. It looks at all instants
// at which the clock shows a time of the span.
func (w *walk) nominalElapsed(span civilSpan) int64 {
	best := noCivil
	until := floorSeconds(span.to) + maxOffset
	for t := floorSeconds(span.from) - maxOffset; t <= until; {
		home := segmentAt(w.f.home, t)
		offset := home.offset * 1_000_000
		from, to := max(t*1_000_000, span.from-offset), min(min(home.end, until+1)*1_000_000, span.to-offset)
		for from < to && !w.broke {
			s := w.day(from)
			found := false
			if s.closed && s.kept {
				eachPart(w.f.as(s.as), nil, func(part Schedule) {
					if due, ok := part.Next(time.UnixMicro(from - 1)); ok && micros(due) < min(to, s.end) {
						best, found = min(best, micros(due)+offset), true
					}
				})
			}
			if from = s.end; found {
				break
			}
		}
		t = home.end
	}

	return best
}

// as returns the schedule of a day that counts as the given weekdays.
func (f *Filtered) as(days weekdays) Schedule {
	if days != 0 {
		return f.lent[days]
	}
	return f.base
}

// eachPart calls civil with each cron expression that is due once for each civil time. It calls
// elapsed with each other schedule. Either may be nil.
func eachPart(s Schedule, civil func(*Cron), elapsed func(Schedule)) {
	switch s := s.(type) {
	case nil:
		return
	case Union:
		for _, part := range s {
			eachPart(part, civil, elapsed)
		}
		return
	case *Cron:
		if !s.elapsed {
			if civil != nil {
				civil(s)
			}
			return
		}
	}

	if elapsed != nil {
		elapsed(s)
	}
}

// nextTarget returns a day after the given one. No due time moves to a day between them.
func (w *walk) nextTarget(day int64) int64 {
	after := w.instantOf((day+1)*microsPerDay) - 1
	due, ok := w.f.base.Next(time.UnixMicro(after))
	first := floorDay(w.civilOf(w.f.skip(after, micros(due), ok))) - 1 // a gap may have skipped it the day before
	if w.f.weeks != nil {
		if kept, until := w.f.weeks.at(day); !kept {
			first = max(first, until-1)
		}
	}

	// Due times come from the day first or later, and move forward. Due times of earlier days move
	// to an open day at the latest.
	if w.f.move > 0 {
		if first <= day+1 || !w.openAllDay(day) {
			return day + 1
		}
		return first
	}

	// Due times move back, at most to the open day before first.
	for n := 0; n < MaxMove && first > day+1 && !w.broke; n++ {
		if first--; w.openAllDay(first) {
			break
		}
	}

	return max(first, day+1)
}

// movedFrom returns the instant from which a due time moved. ok is false if the due time belongs to
// its own day.
func (f Filtered) movedFrom(due time.Time) (from time.Time, ok bool) {
	at := micros(due)
	if _, own := f.direct(at-1, at); own || f.move == 0 {
		return from, false
	}

	w := f.walk()
	m, ok := w.nextMoved(at-1, at)
	if !ok {
		return from, false
	}

	return time.UnixMicro(w.instantOf(m.from)).In(f.home), true
}

// movesTo returns where the due time of a closed day moves. ok is false if the instant is no such
// due time, or if the due time is dropped.
func (f Filtered) movesTo(due time.Time) (to time.Time, ok bool) {
	if f.move == 0 {
		return to, false
	}

	w := f.walk()
	at := micros(due)
	next := func(span civilSpan) int64 {
		from, _ := w.nominal(span)
		return from
	}

	span := civilSpan{w.civilOf(at), w.civilOf(at + 1)}
	if shown := at + w.homeAt(floorSeconds(at)).offset*1_000_000; shown < span.from { // the second pass
		next, span = w.nominalElapsed, civilSpan{shown, shown + 1}
	}

	// A gap may have skipped several times of day. Each moves to its own target. Some may be
	// dropped.
	for from := next(span); from != noCivil && !w.broke; from = next(span) {
		if to, ok := w.target(from); ok {
			return to, true
		}
		if span.from = from + 1; span.from >= span.to {
			break
		}
	}
	return to, false
}

// target returns where the due time of a closed day moves. ok is false if the due time is dropped.
func (w *walk) target(from int64) (to time.Time, ok bool) {
	for k := int64(1); k <= MaxMove && !w.broke; k++ {
		at := w.instantOf(from + k*w.f.move*microsPerDay)
		if w.day(at).closed {
			continue
		}
		return time.UnixMicro(at).In(w.f.home), w.open(at).open && at >= earliestMicros && at < latestMicros
	}
	return to, false
}

// Mover is a schedule that moves due times.
type Mover interface {
	// MovedFrom returns the time from which a due time moved. ok is false if the due time did not
	// move.
	MovedFrom(due time.Time) (from time.Time, ok bool)
}

// MovedFrom returns the time from which a due time of a schedule moved. If it did not move, it
// returns nil.
func MovedFrom(s Schedule, due time.Time) *time.Time {
	if m, ok := s.(Mover); ok {
		if from, ok := m.MovedFrom(due); ok {
			return &from
		}
	}
	return nil
}

// MovedFrom returns the time from which a due time moved.
func (f Filtered) MovedFrom(due time.Time) (from time.Time, ok bool) { return f.movedFrom(due) }

// MovedFrom returns the time from which a due time moved.
func (b Bounded) MovedFrom(due time.Time) (from time.Time, ok bool) {
	if m, is := b.Schedule.(Mover); is {
		return m.MovedFrom(due)
	}
	return from, false
}

// MovedFrom returns the time from which a due time moved. The result has the same shift as the due
// time.
func (s Shifted) MovedFrom(due time.Time) (from time.Time, ok bool) {
	m, is := s.Schedule.(Mover)
	if !is {
		return from, false
	}
	from, ok = m.MovedFrom(due.Add(-s.By))
	return from.Add(s.By), ok
}
