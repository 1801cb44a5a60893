package job

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestClosedDaysMove shows on_closed and weeks by examples.
func TestClosedDaysMove(t *testing.T) {
	t.Parallel()
	work := CalendarSpec{Name: "c", ExcludeWeekdays: []string{"sat", "sun"}, Exclude: []CalendarDay{
		{Date: "2026-12-24", End: "2026-12-26"}, {Date: "2027-01-01"},
	}}
	hours := work
	hours.Hours = CalendarHours{Only: []string{"mon-thu 08:00-18:00", "fri 08:00-12:00"}}
	never := CalendarSpec{Name: "c", ExcludeWeekdays: []string{"mon-sun"}, Include: []CalendarDay{{Date: "2027-12-01", As: "wed"}}}
	all := []string{"c"}
	for name, c := range map[string]struct {
		spec Spec
		cal  CalendarSpec
		from string
		want string
	}{
		"the last working day": {
			Spec{Schedule: "0 15 L * *", OnClosed: ClosedPrevious, Calendars: all}, work, "2026-10-02",
			"10-30 from 10-31, 11-30, 12-31, 01-29 from 01-31",
		},
		"the first working day": {
			Spec{Schedule: "0 9 1 * *", OnClosed: ClosedNext, Calendars: all}, work, "2026-10-02",
			"11-02 from 11-01, 12-01, 01-04 from 01-01, 02-01",
		},
		"skip": {Spec{Schedule: "0 9 1 * *", Calendars: all}, work, "2026-10-02", "12-01, 02-01, 03-01, 04-01"},
		"two fall together": {
			Spec{Schedule: "0 9 * * SAT,SUN", OnClosed: ClosedNext, Calendars: all}, work, "2026-10-02",
			"10-05 from 10-04, 10-12 from 10-11, 10-19 from 10-18, 10-26 from 10-25",
		},
		"daily gains none": {
			Spec{Schedule: "0 9 * * *", OnClosed: ClosedPrevious, Calendars: all}, work, "2026-10-02",
			"10-02, 10-05, 10-06, 10-07",
		},
		"hours drop it": {
			Spec{Schedule: "0 15 1,3,4 * *", OnClosed: ClosedPrevious, Calendars: all}, hours, "2026-10-02",
			"11-03, 11-04, 12-01, 12-03",
		},
		"more than 366 days": {
			Spec{Schedule: "0 9 30 11 *", OnClosed: ClosedPrevious, Calendars: all}, never, "2026-10-02",
			"12-01 from 11-30",
		},
		"every second week": {
			Spec{Schedule: "0 3 * * MON", Weeks: &Weeks{2, "2026-10-08"}}, work, "2026-09-01", "10-05, 10-19, 11-02, 11-16",
		},
		"the week before the move": {
			Spec{Schedule: "0 3 * * SUN", Weeks: &Weeks{2, "2026-10-05"}, OnClosed: ClosedNext, Calendars: all}, work,
			"2026-10-02", "10-12 from 10-11, 10-26 from 10-25, 11-09 from 11-08, 11-23 from 11-22",
		},
	} {
		if len(c.spec.Calendars) == 0 {
			c.cal = CalendarSpec{Name: "other"}
		}
		c.spec.Timezone = "Europe/Berlin"
		s, err := c.spec.Compile(compiledCalendar(t, c.cal))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		from, _ := time.Parse(time.DateOnly, c.from)
		var got []string
		for _, due := range Preview(s, from, 4) {
			day := due.In(zone(t, "Europe/Berlin")).Format("01-02")
			if was := MovedFrom(s, due); was != nil {
				day += " from " + was.Format("01-02")
			}
			got = append(got, day)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: got %s, want %s", name, strings.Join(got, ", "), c.want)
		}
	}
}

// TestBoundsOfMoved: the bounds judge moved times, also of an interval that begins on a closed day.
func TestBoundsOfMoved(t *testing.T) {
	t.Parallel()
	work := compiledCalendar(t, CalendarSpec{Name: "c", ExcludeWeekdays: []string{"sat", "sun"}})
	start := time.Date(2026, 10, 3, 9, 0, 0, 0, time.UTC) // a Saturday
	end := start.AddDate(0, 0, 9)
	for closed, want := range map[OnClosed]string{ClosedNext: "05 06", ClosedPrevious: "05 06"} {
		s := Spec{Every: Duration(24 * time.Hour), Start: &start, End: &end, MaxFires: 2, Calendars: []string{"c"}, OnClosed: closed}
		schedule, err := s.Compile(work)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, due := range Preview(schedule, start.AddDate(0, 0, -9), 9) {
			got = append(got, due.Format("02"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %s, want %s", closed, got, want)
		}
	}
}

func TestClosedDaysAreChecked(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for want, change := range map[string]func(*Spec){
		"on_closed: can only be used with calendars":         func(s *Spec) { s.OnClosed = ClosedNext },
		"on_closed: can only be used with":                   func(s *Spec) { s.OnClosed = ClosedSkip },
		"on_closed: \"later\" is not one of":                 func(s *Spec) { s.OnClosed = "later" },
		"weeks.every: 0 is not between 1 and 520":            func(s *Spec) { s.Weeks = &Weeks{0, "2026-01-05"} },
		"weeks.every: 521 is not between 1 and 520":          func(s *Spec) { s.Weeks = &Weeks{521, "2026-01-05"} },
		"weeks.from: \"\" is not a date":                     func(s *Spec) { s.Weeks = &Weeks{2, ""} },
		"weeks.from: \"2026-02-30\" is not a date":           func(s *Spec) { s.Weeks = &Weeks{2, "2026-02-30"} },
		"weeks.from: \"01-05\" is not a date":                func(s *Spec) { s.Weeks = &Weeks{2, "01-05"} },
		"weeks: can only be used with schedule or":           func(s *Spec) { s.Schedule, s.Weeks, s.At = "", &Weeks{2, "2026-01-05"}, &at },
		"weeks: can only be used with schedule or schedules": func(s *Spec) { s.Schedule, s.Weeks, s.Every = "", &Weeks{2, "2026-01-05"}, 1e9 },
	} {
		s := Spec{Name: "n", Schedule: "0 3 * * *", Command: "true"}
		change(&s)
		s.Defaults(at)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}

	s := Spec{Name: "n", Schedule: "0 3 * * *", Command: "true", Calendars: []string{"c"}, OnClosed: ClosedSkip}
	if s.Defaults(at); s.OnClosed != "" {
		t.Errorf("skip is stored as %q", s.OnClosed)
	}
}

func TestMovedWords(t *testing.T) {
	t.Parallel()
	s := Spec{Schedule: "0 3 * * MON", Timezone: "UTC", Weeks: &Weeks{2, "2026-01-05"}, Calendars: []string{"x"}, OnClosed: ClosedNext}
	for l, want := range map[Language]string{
		English: `at 03:00 on Mondays, UTC; every second week from that of 2026-01-05 on; moved to the next open day of the calendar "x"`,
		Chinese: `每周一 03:00（UTC）；自 2026-01-05 所在周起，每 2 周一次；遇休息日顺延到日历“x”开放的下一天`,
	} {
		if got := s.Words(l); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestMovedWork: what a definition with on_closed costs stays within the budgets of nodes, and a
// calendar that closes a year costs no more than its days.
func TestMovedWork(t *testing.T) {
	t.Parallel()
	work := CalendarSpec{Name: "c", ExcludeWeekdays: []string{"sat", "sun"}}
	year := CalendarSpec{Name: "c", Exclude: []CalendarDay{{Date: "2027-01-02", End: "2027-12-31"}}}
	for name, c := range map[string]struct {
		spec Spec
		cal  CalendarSpec
		most int64 // units for 10 due times
	}{
		"daily":          {Spec{Schedule: "0 9 * * *"}, work, 200},
		"Sundays":        {Spec{Schedule: "0 9 * * SUN"}, work, 500},
		"each minute":    {Spec{Schedule: "* * * * *"}, work, 500},
		"yearly":         {Spec{Schedule: "0 9 1 1 *"}, work, 1000},
		"a leap day":     {Spec{Schedule: "0 9 29 2 *"}, work, 1000},
		"a year is shut": {Spec{Schedule: "0 9 * * *"}, year, 3000},
	} {
		for _, closed := range []OnClosed{ClosedNext, ClosedPrevious} {
			c.spec.Timezone, c.spec.Calendars, c.spec.OnClosed = "Europe/Berlin", []string{"c"}, closed
			s, err := c.spec.Compile(compiledCalendar(t, c.cal))
			if err != nil {
				t.Fatal(err)
			}
			w := NewWork(t.Context(), 1_000_000)
			began := time.Now()
			got := Preview(w.On(s), time.Date(2026, 12, 28, 0, 0, 0, 0, time.UTC), 10)
			t.Log(name, closed, w.Spent(), time.Since(began))
			if len(got) != 10 || w.Err() != nil || w.Spent() > c.most {
				t.Errorf("%s, %s: %d due times, %d units (at most %d), %v", name, closed, len(got), w.Spent(), c.most, w.Err())
			}
		}
	}
}

func BenchmarkMovedNext(b *testing.B) {
	cal, err := (&CalendarSpec{Name: "c", ExcludeWeekdays: []string{"sat", "sun"}}).Compile()
	if err != nil {
		b.Fatal(err)
	}

	for _, closed := range []OnClosed{ClosedSkip, ClosedNext, ClosedPrevious} {
		for _, expr := range []string{"0 9 * * *", "0 9 L * *", "* * * * *"} {
			b.Run(fmt.Sprint(closed, " ", expr), func(b *testing.B) {
				s := Spec{Schedule: expr, Timezone: "America/New_York", Calendars: []string{"c"}, OnClosed: closed}
				schedule, err := s.Compile(cal)
				if err != nil {
					b.Fatal(err)
				}
				now := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
				b.ReportAllocs()
				for b.Loop() {
					now, _ = schedule.Next(now)
				}
			})
		}
	}
}
