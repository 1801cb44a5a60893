package job

import (
	"slices"
	"sync/atomic"
	"time"
)

// Union is due whenever any of its schedules is due. If several are due at the same instant, that
// is one due time.
type Union []Schedule

var _ Schedule = Union{}

// Next returns the first due time after t of any schedule.
func (u Union) Next(t time.Time) (due time.Time, ok bool) {
	for _, s := range u {
		if d, found := s.Next(t); found && (!ok || d.Before(due)) {
			due, ok = d, true
		}
	}
	return due, ok
}

// Last returns the last due time in (from, to] of any schedule.
func (u Union) Last(from, to time.Time) (due time.Time, ok bool) {
	for _, s := range u {
		if d, found := s.Last(from, to); found && (!ok || d.After(due)) {
			due, ok = d, true
		}
	}
	return due, ok
}

// Count returns the number of due times in (from, to]. For cron expressions of one time zone the
// cost grows with the number of days. For other schedules Count visits every due time, except those
// of the schedule with the most due times.
func (u Union) Count(from, to time.Time) int64 {
	if len(u) == 0 {
		return 0
	}

	if c := u.crons(); c != nil {
		return c.count(seconds(from)+1, seconds(to)+1)
	}

	counts := make([]int64, len(u))
	for i, s := range u {
		counts[i] = s.Count(from, to)
	}

	most := slices.Index(counts, slices.Max(counts))
	rest := slices.Delete(slices.Clone(u), most, most+1)
	n := counts[most]
	for t := from; ; n++ {
		due, ok := rest.Next(t)
		if !ok || due.After(to) {
			return n
		}
		if dueAt(u[most], due) {
			n--
		}
		t = due
	}
}

func dueAt(s Schedule, t time.Time) bool {
	due, ok := s.Next(t.Add(-time.Microsecond))
	return ok && due.Equal(t)
}

// Bounded limits a schedule. It has no due time before First, no due time after End, and at most
// Fires due times. A zero End or Fires sets no limit.
type Bounded struct {
	Schedule
	First, End time.Time
	Fires      int64

	counted *atomic.Pointer[tally] // cache of fired; nil: none
}

var _ Schedule = Bounded{}

// tally is the number of due times up to an instant.
type tally struct {
	to time.Time
	n  int64
}

func newTally() *atomic.Pointer[tally] { return new(atomic.Pointer[tally]) }

// fired counts the due times from First on, up to t. Code that steps through due times calls fired
// for each of them. So fired remembers the last count, and then counts only the new due times.
func (b Bounded) fired(t time.Time) int64 {
	last := tally{to: b.before()}
	if b.counted != nil {
		if l := b.counted.Load(); l != nil && !l.to.After(t) {
			last = *l
		}
	}

	if !t.After(last.to) {
		return last.n
	}

	last = tally{t, last.n + b.Schedule.Count(last.to, t)}
	if b.counted != nil {
		b.counted.Store(&last)
	}

	return last.n
}

// before returns the last instant before First.
func (b Bounded) before() time.Time { return b.First.Add(-time.Microsecond) }

// Next returns the first due time after t.
func (b Bounded) Next(t time.Time) (due time.Time, ok bool) {
	if t.Before(b.before()) {
		t = b.before()
	}
	due, ok = b.Schedule.Next(t)
	if !ok || !b.End.IsZero() && due.After(b.End) || b.Fires > 0 && b.fired(due) > b.Fires {
		return time.Time{}, false
	}
	return due, true
}

// Last returns the last due time in (from, to].
func (b Bounded) Last(from, to time.Time) (due time.Time, ok bool) {
	from, to = b.clip(from, to)
	if !to.After(from) {
		return time.Time{}, false
	}

	due, ok = b.Schedule.Last(from, to)
	if !ok || b.Fires == 0 || b.fired(due) <= b.Fires {
		return due, ok
	}

	if due, ok = b.final(due); !ok || !due.After(from) {
		return time.Time{}, false
	}

	return due, true
}

// final returns the last due time of the schedule, which is number b.Fires. The caller has checked
// that over is later: more than b.Fires due times lie at or before it.
func (b Bounded) final(over time.Time) (time.Time, bool) {
	low, high := b.before(), over // invariant: Count to low ≤ Fires < Count to high
	counted := int64(0)           // up to low
	for high.Sub(low) > time.Microsecond {
		mid := low.Add(high.Sub(low) / 2).Truncate(time.Microsecond)
		if !mid.After(low) {
			break
		}
		if n := counted + b.Schedule.Count(low, mid); n <= b.Fires {
			low, counted = mid, n
		} else {
			high = mid
		}
	}

	return b.Schedule.Last(b.before(), low)
}

// Count returns the number of due times in (from, to].
func (b Bounded) Count(from, to time.Time) int64 {
	from, to = b.clip(from, to)
	if !to.After(from) {
		return 0
	}
	n := b.Schedule.Count(from, to)
	if b.Fires > 0 {
		n = min(n, max(0, b.Fires-b.fired(from)))
	}
	return n
}

func (b Bounded) clip(from, to time.Time) (time.Time, time.Time) {
	if from.Before(b.before()) {
		from = b.before()
	}
	if !b.End.IsZero() && to.After(b.End) {
		to = b.End
	}
	return from, to
}

// Shifted is due a constant time after its schedule: the job's part of jitter.
type Shifted struct {
	Schedule
	By time.Duration
}

var _ Schedule = Shifted{}

// Next returns the first due time after t.
func (s Shifted) Next(t time.Time) (time.Time, bool) { return s.shift(s.Schedule.Next(t.Add(-s.By))) }

// Last returns the last due time in (from, to].
func (s Shifted) Last(from, to time.Time) (time.Time, bool) {
	return s.shift(s.Schedule.Last(from.Add(-s.By), to.Add(-s.By)))
}

// Count returns the number of due times in (from, to].
func (s Shifted) Count(from, to time.Time) int64 {
	return s.Schedule.Count(from.Add(-s.By), to.Add(-s.By))
}

func (s Shifted) shift(t time.Time, ok bool) (time.Time, bool) {
	if !ok {
		return time.Time{}, false
	}
	return t.Add(s.By), true
}

// Marker is a schedule that knows how a clock change affects a due time.
type Marker interface{ Mark(due time.Time) Mark }

func markOf(s Schedule, due time.Time) Mark {
	if m, ok := s.(Marker); ok {
		return m.Mark(due)
	}
	return Unmarked
}

// Mark returns the mark of a schedule that is due at that instant, if one of them has a mark.
func (u Union) Mark(due time.Time) Mark {
	for _, s := range u {
		if dueAt(s, due) {
			if m := markOf(s, due); m != Unmarked {
				return m
			}
		}
	}
	return Unmarked
}

// Mark returns the mark of the schedule.
func (b Bounded) Mark(due time.Time) Mark { return markOf(b.Schedule, due) }

// Mark returns the mark of the unshifted due time.
func (s Shifted) Mark(due time.Time) Mark { return markOf(s.Schedule, due.Add(-s.By)) }
