package job

import (
	"fmt"
	"slices"
	"time"

	"go-crontab/job/problem"
)

func (s *Spec) validateCalendars(p *Problems) {
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

// uncalendared returns the definition without its calendars.
func (s *Spec) uncalendared() *Spec {
	if len(s.Calendars) == 0 || s.unscheduled() { // the latter may have none, and Compile says so
		return s
	}
	plain := *s
	plain.Calendars = nil
	return &plain
}

// filter filters the schedule by the definition's calendars, which it finds in given.
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

	return f
}

// ExcludedBy returns the calendar that excludes an instant from the definition's due times, and the
// reason: a holiday's note, or a rule. ok is false if no calendar excludes the instant, or if it is
// not a due time even without calendars.
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

	var p Problems
	f, _ := s.filter(&p, s.base(&p, zone), zone, calendars).(Filtered)
	if p != nil {
		return "", "", false
	}

	if s.Jitter > 0 {
		at = at.Add(-s.shift())
	}

	return f.why(at)
}

// KindCalendar is the kind of calendars in the audit.
const KindCalendar Kind = "calendar"
