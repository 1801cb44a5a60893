package job

import (
	"fmt"
	"slices"
	"time"

	"go-crontab/job/problem"
)

func (s *Spec) validateCalendars(p *Problems) {
	s.checkOnClosed(p)
	if len(s.Calendars) > MaxCalendars {
		p.Add("calendars", problem.TooMany, len(s.Calendars), MaxCalendars)
		return
	}

	for i, name := range s.Calendars {
		field := fmt.Sprintf("calendars[%d]", i)
		checkName(p, field, name)
		if first := slices.Index(s.Calendars, name); first < i {
			p.Add(field, problem.GivenAlreadyAs, problem.Quoted(shorten(name)), fmt.Sprintf("calendars[%d]", first))
		}
	}
}

func (s *Spec) checkOnClosed(p *Problems) {
	switch s.OnClosed {
	case "":
	case ClosedSkip, ClosedNext, ClosedPrevious:
		if len(s.Calendars) == 0 {
			p.Add("on_closed", problem.OnlyWith.Advise("name the calendars whose closed days it is about"), "calendars")
		}
	default:
		p.Add("on_closed", problem.NotOneOf, shorten(string(s.OnClosed)), "skip, next, previous")
	}
}

// uncalendared returns the definition without its calendars and without the fields that concern
// calendars.
func (s *Spec) uncalendared() *Spec {
	if len(s.Calendars) == 0 && s.OnClosed == "" || s.unscheduled() { // the latter may have none, and Compile says so
		return s
	}
	plain := *s
	plain.Calendars, plain.OnClosed = nil, ""
	return &plain
}

// filter filters the schedule by the definition's calendars. given holds these calendars.
func (s *Spec) filter(p *Problems, base Schedule, zone *time.Location, given []*Calendar) Schedule {
	mine := make([]*Calendar, 0, len(s.Calendars))
	for i, name := range s.Calendars {
		at := slices.IndexFunc(given, func(c *Calendar) bool { return c.name == name })
		if at < 0 {
			p.Add(fmt.Sprintf("calendars[%d]", i), problem.NoCalendar, shorten(name))
			continue
		}
		mine = append(mine, given[at])
	}

	if *p != nil {
		return nil
	}

	f, err := NewFiltered(base, zone, mine...)
	if err != nil {
		p.Put("schedule", problem.Of(err))
	}

	f.weeks, f.move = s.Weeks.compile(), s.OnClosed.direction()
	return f
}

// ExcludedBy returns the calendar that excludes an instant from the definition's due times, and the
// reason: a holiday's note, or a rule. ok is false if no calendar excludes the instant, or if the
// instant would be no due time even without calendars.
func (s *Spec) ExcludedBy(at time.Time, calendars ...*Calendar) (calendar, why string, ok bool) {
	plain := *s.uncalendared()
	plain.MaxFires = 0 // excluded due times do not count
	bare, err := plain.Compile()
	if err != nil || len(s.Calendars) == 0 || !dueAt(bare, at) {
		return "", "", false
	}

	zone, err := LoadZone(s.Timezone)
	if err != nil {
		return "", "", false
	}

	f, at, ok := s.filtered(at, zone, calendars)
	if !ok {
		return "", "", false
	}

	return f.why(at)
}

// filtered returns the schedule without bounds and jitter. It also returns the instant without the
// jitter.
func (s *Spec) filtered(at time.Time, zone *time.Location, calendars []*Calendar) (Filtered, time.Time, bool) {
	var p Problems
	f, ok := s.filter(&p, s.base(&p, zone), zone, calendars).(Filtered)
	if s.Jitter > 0 {
		at = at.Add(-s.shift())
	}

	return f, at, ok && p == nil
}

// MovesTo returns where the due time of a closed day moves, by on_closed. ok is false if the
// instant is no such due time. ok is also false if the due time is dropped, because no day within
// MaxMove days is open.
func (s *Spec) MovesTo(at time.Time, calendars ...*Calendar) (to time.Time, ok bool) {
	zone, err := LoadZone(s.Timezone)
	if err != nil || s.OnClosed.direction() == 0 {
		return to, false
	}

	f, bare, ok := s.filtered(at, zone, calendars)
	if !ok {
		return to, false
	}

	to, ok = f.movesTo(bare)
	return to.Add(at.Sub(bare)), ok
}

// KindCalendar is the kind of calendars in audit lines.
const KindCalendar Kind = "calendar"
