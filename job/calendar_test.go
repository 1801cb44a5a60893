package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// china is how the spring of 2027 could be: the festival's week is off, the Saturday before and the
// one after are not.
func china() CalendarSpec {
	return CalendarSpec{
		Name: "cn", Timezone: "Asia/Shanghai", ExcludeWeekdays: []string{"sat", "sun"},
		Exclude: []CalendarDay{
			{Date: "2027-02-05", End: "2027-02-11", Note: "Spring Festival"}, {Date: "05-01", Note: "Labour Day"},
		},
		Include: []CalendarDay{{Date: "2027-01-30", Note: "make-up"}, {Date: "2027-02-13", As: "thu"}},
	}
}

func compiledCalendar(t testing.TB, c CalendarSpec) *Calendar {
	t.Helper()
	c.Defaults()
	out, err := c.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// dueDays lists the days on which a definition is due, with its marks.
func dueDays(t testing.TB, s Spec, from, to string, calendars ...*Calendar) string {
	t.Helper()
	first, err := time.ParseInLocation(time.DateOnly, from, zone(t, s.Timezone))
	if err != nil {
		t.Fatal(err)
	}

	sched, err := s.Compile(calendars...)
	if err != nil {
		t.Fatal(err)
	}

	var out []string
	for at := first.Add(-1); ; {
		due, ok := sched.Next(at)
		text := due.In(zone(t, s.Timezone)).Format("01-02")
		if !ok || due.In(zone(t, s.Timezone)).Format(time.DateOnly) > to {
			return strings.Join(out, " ")
		}
		if m := sched.(Marker).Mark(due); m != Unmarked {
			text += string(m[0])
		}
		out, at = append(out, text), due
	}
}

func TestMakeupWorkdays(t *testing.T) {
	t.Parallel()
	cn := compiledCalendar(t, china())
	shop := compiledCalendar(t, CalendarSpec{Name: "shop", Hours: CalendarHours{Only: []string{"mon-fri 08:00-18:00"}}})
	for name, c := range map[string]struct {
		cron string
		with []*Calendar
		want string
	}{
		"every working day": {
			"0 9 * * 1-5", nil, "01-28 01-29 01-30m 02-01 02-02 02-03 02-04 02-12 02-13m 02-15",
		},
		"every day": {
			"0 9 * * *", nil, "01-28 01-29 01-30m 02-01 02-02 02-03 02-04 02-12 02-13m 02-15",
		},
		"Thursdays":                          {"0 9 * * 4", nil, "01-28 02-04 02-13m"},
		"Saturdays are working days here":    {"0 9 * * 6", nil, ""},
		"the second Thursday":                {"0 9 * * 4#2", nil, "02-13m"},
		"a day of the month":                 {"0 9 30 * *", nil, "01-30m"},
		"a day of the month, or Mondays":     {"0 9 30 * 1", nil, "01-30m 02-01 02-15"},
		"hours of another calendar, outside": {"0 7 * * 1-5", []*Calendar{shop}, ""},
		"hours of another calendar, inside": {
			"0 8 * * 1-5", []*Calendar{shop}, "01-28 01-29 01-30m 02-01 02-02 02-03 02-04 02-12 02-13m 02-15",
		},
		"hours of another calendar, the last is out": {"0 18 * * *", []*Calendar{shop}, ""},
	} {
		s := Spec{Schedule: c.cron, Timezone: "Asia/Shanghai", Calendars: []string{"cn"}}
		for _, also := range c.with {
			s.Calendars = append(s.Calendars, also.Name())
		}
		if got := dueDays(t, s, "2027-01-28", "2027-02-15", append(c.with, cn)...); got != c.want {
			t.Errorf("%s (%s): got %s, want %s", name, c.cron, got, c.want)
		}
	}

	// The calendar has its own zone: 02:00 in Berlin is 09:00 in Shanghai on the same day, 20:00 is
	// 03:00 on the next.
	if got := dueDays(t, Spec{Schedule: "0 20 * * *", Timezone: "Europe/Berlin", Calendars: []string{"cn"}},
		"2027-02-02", "2027-02-15", cn); got != "02-02 02-03 02-11 02-12m 02-14 02-15" {
		t.Errorf("evenings in Berlin: got %s", got)
	}
}

// TestWorkingWeeks: the working week is all days that are not off.
func TestWorkingWeeks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		off  []string
		cron string
		want string
	}{
		"Friday and Saturday are off": {[]string{"fri", "sat"}, "0 9 * * 0-4", "02-04 02-05m 02-06m 02-07"},
		"the usual cron misses it":    {[]string{"fri", "sat"}, "0 9 * * 1-5", "02-04"},
		"a job for weekends":          {[]string{"mon-fri"}, "0 9 * * 6,0", "02-05m 02-06 02-07"},
		"nothing is off":              {nil, "0 9 * * 1-5", "02-04 02-05 02-06m"},
		"everything is off":           {[]string{"mon-sun"}, "0 9 * * *", "02-05 02-06"},
	} {
		cal := compiledCalendar(t, CalendarSpec{
			Name: "c", ExcludeWeekdays: c.off, Include: []CalendarDay{{Date: "2027-02-05", End: "2027-02-06"}},
		})
		if got := dueDays(t, Spec{Schedule: c.cron, Timezone: "UTC", Calendars: []string{"c"}}, "2027-02-04",
			"2027-02-07", cal); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestCronOnWeekdays holds the expression of a day that counts as others against brute force, for
// every day of years.
func TestCronOnWeekdays(t *testing.T) {
	t.Parallel()
	for _, days := range []string{"*", "1-5", "MON-FRI", "1", "0,6", "1-5/2", "5L", "1#1", "0#5,3L", "1,5#2", "7",
		"2-6", "1-4,5#1", "1L,2L,3L,4L,5L"} {
		for _, dom := range []string{"*", "13", "L", "15W", "*/2"} {
			expr := "0 9 " + dom + " * " + days
			c, err := ParseCron(expr, time.UTC)
			if err != nil {
				t.Fatal(err)
			}

			for _, as := range []weekdays{1, 2, 1 << 3, 1 << 5, 1 << 6, usualWork, usualWork &^ 2, 1 | 1<<6} {
				o := newOracle(expr)
				for d := range time.Saturday + 1 {
					if as.has(d) {
						o.as = append(o.as, d)
					}
				}

				other, err := c.on(as)
				if err != nil {
					t.Fatal(err)
				}

				from := time.Date(2027, 12, 1, 0, 0, 0, 0, time.UTC)
				last := from
				for at := from; at.Before(from.AddDate(0, 5, 0)); at = at.AddDate(0, 0, 1) {
					due := at.Add(9 * time.Hour)
					want := o.matches(due)
					if other == nil {
						if want {
							t.Fatalf("%s as %s: never due, want %s", expr, as, due)
						}
						continue
					}

					next, ok := other.Next(last)
					if got := ok && next.Equal(due); got != want {
						t.Fatalf("%s as %s: the due time after %s is %s, want %v of %s", expr, as, last, next,
							want, due)
					}
					if n := other.Count(at, at.AddDate(0, 0, 1)); (n == 1) != want {
						t.Fatalf("%s as %s: %d due times on %s, want %v", expr, as, n, at, want)
					}
					if want {
						last = due
					}
				}
			}
		}
	}
}

// TestClosedIsJumpedOver: what takes billions of due times, or all days there are, takes no time.
func TestClosedIsJumpedOver(t *testing.T) {
	t.Parallel()
	epoch := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	often, err := NewEvery(10*time.Millisecond, epoch)
	if err != nil {
		t.Fatal(err)
	}

	everyMinute, _ := ParseCron("* * * * *", nil)
	odd, _ := ParseCron("1-59/2 * * * *", zone(t, "Europe/Berlin"))
	at := NewAt(epoch.AddDate(0, 6, 0))
	year := CalendarSpec{Exclude: []CalendarDay{{Date: "2027-01-01", End: "2027-12-31"}}}
	all := CalendarSpec{Exclude: []CalendarDay{{Date: "01-01", End: "12-31"}}}
	weekdays := CalendarSpec{ExcludeWeekdays: []string{"mon-sun"}}
	hours := CalendarSpec{Hours: CalendarHours{Only: []string{}}}
	for h := range 24 { // the even minutes of no hour in which odd is due
		hours.Hours.Only = append(hours.Hours.Only, fmt.Sprintf("%02d:10-%02d:11,%02d:20-%02d:21", h, h, h, h))
	}

	for name, c := range map[string]struct {
		base Schedule
		cal  CalendarSpec
		next time.Time
	}{
		"a year of every 10 ms":              {often, year, epoch.AddDate(1, 0, 0)},
		"a year of minutes":                  {everyMinute, year, epoch.AddDate(1, 0, 0)},
		"all days of every 10 ms":            {often, all, time.Time{}},
		"all days of a minute":               {everyMinute, all, time.Time{}},
		"all weekdays":                       {often, weekdays, time.Time{}},
		"one instant":                        {at, year, time.Time{}},
		"hours at which nothing is ever due": {odd, hours, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			c.cal.Name = "c"
			f, err := NewFiltered(c.base, zone(t, "Europe/Berlin"), compiledCalendar(t, c.cal))
			if err != nil {
				t.Fatal(err)
			}
			if !c.next.IsZero() {
				c.next = c.next.Add(-time.Hour) // midnight in Berlin
			}
			began := time.Now()
			next, ok := f.Next(epoch.Add(time.Hour))
			if ok == c.next.IsZero() || ok && !next.Equal(c.next) {
				t.Errorf("Next: got %s, %v; want %s", next, ok, c.next)
			}
			end := epoch.AddDate(0, 11, 0)
			if n := f.Count(epoch, end); n != 0 {
				t.Errorf("Count: got %d", n)
			}
			if last, ok := f.Last(epoch, end); ok {
				t.Errorf("Last: got %s", last)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %s", took)
			} else {
				t.Log(took)
			}
		})
	}

	// In the following year every holiday comes.
	cal := year
	cal.Name = "c"
	f, err := NewFiltered(often, time.UTC, compiledCalendar(t, cal))
	if err != nil {
		t.Fatal(err)
	}

	from, to := epoch.Add(time.Hour), epoch.AddDate(1, 0, 0).Add(time.Minute)
	if n := f.Count(from, to); n != 6001 {
		t.Errorf("Count of the first minute: got %d, want 6001", n)
	}

	if last, ok := f.Last(from, to.Add(3*time.Millisecond)); !ok || !last.Equal(to) {
		t.Errorf("Last: got %s, want %s", last, to)
	}

	if last, ok := f.Last(time.Time{}, epoch.AddDate(2000, 0, 0)); !ok || last.Year() != 2100 && last.Year() != 2099 {
		t.Errorf("Last of all times: got %s, %v", last, ok)
	}
}

// TestCalendarComesBeforeJitter, and before max_fires: excluded due times do not count.
func TestCalendarComesBeforeJitter(t *testing.T) {
	t.Parallel()
	cal := compiledCalendar(t, CalendarSpec{
		Name: "c", Hours: CalendarHours{Only: []string{"sat,sun 00:00-24:00", "mon-fri 09:00-09:01"}},
	})
	from := time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC) // a Monday
	s := Spec{
		App: "a", Name: "n", Schedule: "0 9,10 * * *", Calendars: []string{"c"}, Jitter: Duration(2 * time.Hour),
		Start: &from, MaxFires: 3,
	}
	sched, err := s.Compile(cal)
	if err != nil {
		t.Fatal(err)
	}

	by := s.shift()
	if by < 2*time.Minute {
		t.Fatalf("the job's own part of the jitter is %s: take another name", by)
	}

	got := Preview(sched, from, 10)
	var want []time.Time
	for d := range 3 {
		want = append(want, from.AddDate(0, 0, d).Add(9*time.Hour+by))
	}

	if !slices.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}

	if calendar, why, ok := s.ExcludedBy(from.Add(10*time.Hour+by), cal); !ok || calendar != "c" ||
		why != "the hours of the day are 09:00-09:01" {
		t.Errorf("10:00: got %q, %q, %v", calendar, why, ok)
	}
}

func TestExcludedBy(t *testing.T) {
	t.Parallel()
	cn := compiledCalendar(t, china())
	plain := compiledCalendar(t, CalendarSpec{Name: "plain", Exclude: []CalendarDay{
		{Date: "2027-03-01", End: "2027-03-02"}, {Date: "2027-03-03"},
	},
		Hours: CalendarHours{Except: []string{"tue 00:00-24:00", "thu 08:00-10:00"}}})
	for at, want := range map[string]string{
		"2027-02-08 09:00": "cn: Spring Festival",
		"2027-02-06 09:00": "cn: Spring Festival", // and a Saturday
		"2027-02-20 09:00": "cn: Saturday is off",
		"2028-05-01 09:00": "cn: Labour Day",
		"2027-01-30 09:00": "cn: make-up: the day counts as mon-fri",
		"2027-03-02 09:00": "plain: 2027-03-01 to 2027-03-02",
		"2027-03-03 09:00": "plain: 2027-03-03",
		"2027-03-09 09:00": "plain: no hour of the day is open",
		"2027-03-11 09:00": "plain: the hours of the day are 00:00-08:00, 10:00-24:00",
		"2027-03-12 09:00": "", // it is due
		"2027-03-12 09:01": "", // nothing is due then in any case
	} {
		s := Spec{Schedule: "0 9 * * *", Timezone: "Asia/Shanghai", Calendars: []string{"cn", "plain"}}
		if strings.HasPrefix(at, "2027-01-30") {
			s.Schedule = "0 9 * * 6"
		}

		instant, err := time.ParseInLocation("2006-01-02 15:04", at, zone(t, "Asia/Shanghai"))
		if err != nil {
			t.Fatal(err)
		}

		got, why, ok := s.ExcludedBy(instant, plain, cn)
		if ok {
			got += ": " + why
		}

		if got != want {
			t.Errorf("%s: got %q, want %q", at, got, want)
		}
	}
}

func TestCalendarIsChecked(t *testing.T) {
	t.Parallel()
	day := func(d CalendarDay) CalendarSpec {
		return CalendarSpec{Name: "c", Exclude: []CalendarDay{{Date: "01-01"}, d}}
	}

	many := CalendarSpec{Name: "c", Include: make([]CalendarDay, MaxCalendarDays), Exclude: make([]CalendarDay, 1)}
	big := CalendarSpec{Name: "c"}
	for i := range MaxCalendarDays {
		big.Exclude = append(big.Exclude, CalendarDay{Date: dateText(int64(i)), Note: strings.Repeat("n", 100)})
	}

	for name, c := range map[string]struct {
		spec  CalendarSpec
		field string
		says  string
	}{
		"no name": {CalendarSpec{}, "name", "is empty"},
		"a zone that there is not": {
			CalendarSpec{Name: "c", Timezone: "Europe/Berln"}, "timezone", "did you mean Europe/Berlin?",
		},
		"a word as date": {
			day(CalendarDay{Date: "tomorrow"}), "exclude[1].date", "write it like 2027-02-06, or 12-25",
		},
		"a day that there is not": {day(CalendarDay{Date: "2027-02-29"}), "exclude[1].date", "is not a date"},
		"no date":                 {day(CalendarDay{}), "exclude[1].date", "is not a date"},
		"a year far away": {
			day(CalendarDay{Date: "2100-01-01"}), "exclude[1].date", "not between 1970 and 2099",
		},
		"an end before its begin": {
			day(CalendarDay{Date: "2027-02-06", End: "2027-02-05"}), "exclude[1].end", "is before 2027-02-06",
		},
		"an end of another kind": {
			day(CalendarDay{Date: "2027-02-06", End: "02-07"}), "exclude[1].end", "give the year in both dates, or in neither",
		},
		"an end that is none": {
			day(CalendarDay{Date: "2027-02-06", End: "x"}), "exclude[1].end", "is not a date",
		},
		"as of a closed day": {
			day(CalendarDay{Date: "2027-02-06", As: "mon"}), "exclude[1].as", "only be used in include",
		},
		"as nothing": {
			CalendarSpec{Name: "c", Include: []CalendarDay{{Date: "2027-02-06", As: "holiday"}}}, "include[0].as",
			"workday",
		},
		"a long note": {
			day(CalendarDay{Date: "2027-02-06", Note: strings.Repeat("x", 257)}), "exclude[1].note", "at most 256",
		},
		"a weekday that there is not": {
			CalendarSpec{Name: "c", ExcludeWeekdays: []string{"sat", "day"}}, "exclude_weekdays[1]",
			"is not a day of the week",
		},
		"a line without times": {
			CalendarSpec{Name: "c", Hours: CalendarHours{Only: []string{"mon-fri"}}}, "hours.only[0]",
			"write it like 08:00-18:00",
		},
		"a line of too much": {
			CalendarSpec{Name: "c", Hours: CalendarHours{Only: []string{"mon-fri 08:00 - 18:00"}}}, "hours.only[0]",
			"mon-fri 08:00-18:00",
		},
		"hours that there are not": {
			CalendarSpec{Name: "c", Hours: CalendarHours{Except: []string{"00:00-01:00", "mon 24:00-25:00"}}},
			"hours.except[1]", "between 00:00 and 24:00",
		},
		"empty hours": {
			CalendarSpec{Name: "c", Hours: CalendarHours{Except: []string{"08:00-08:00"}}}, "hours.except[0]",
			"00:00-24:00",
		},
		"too many lines": {
			CalendarSpec{Name: "c", Hours: CalendarHours{Only: make([]string, MaxCalendarHours+1)}}, "hours.only",
			"at most 24",
		},
		"very long lines": {
			CalendarSpec{Name: "c", Hours: CalendarHours{Only: []string{strings.Repeat("mon,", 5000)}}}, "hours",
			"at most 16384",
		},
		"too many days":   {many, "exclude", "at most 10000"},
		"too much in all": {big, "calendar", "at most 1048576"},
		"a description that is a book": {
			CalendarSpec{Name: "c", Description: strings.Repeat("x", MaxText+1)}, "description", "at most",
		},
	} {
		err := c.spec.Validate()
		var p Problems
		if !errors.As(err, &p) || len(p) != 1 || p[0].Field != c.field || !strings.Contains(p[0].Message, c.says) {
			t.Errorf("%s: got %.300v; want one problem of %s that says %q", name, err, c.field, c.says)
		}
	}
}

func TestCalendarsOfAJobAreChecked(t *testing.T) {
	t.Parallel()
	nine := strings.Fields("a b c d e f g h i")
	for field, names := range map[string][]string{"calendars": nine, "calendars[1]": {"a", "a"},
		"calendars[2]": {"a", "b", ""}} {
		s := Spec{Name: "n", Command: "true", Schedule: "@daily", Calendars: names}
		s.Defaults(time.Unix(0, 0))
		var p Problems
		if err := s.Validate(); !errors.As(err, &p) || len(p) != 1 || p[0].Field != field {
			t.Errorf("%v: got %v, want a problem of %s", names, err, field)
		}
	}

	s := Spec{Name: "n", Command: "true", Schedule: "@daily", Calendars: []string{"a", "b"}}
	s.Defaults(time.Unix(0, 0))
	if err := s.Validate(); err != nil {
		t.Errorf("got %v; which calendars there are is not for Validate to know", err)
	}

	var p Problems
	if _, err := s.Compile(compiledCalendar(t, CalendarSpec{Name: "a"})); !errors.As(err, &p) ||
		p[0].Field != "calendars[1]" {
		t.Errorf("got %v, want a problem of calendars[1]", err)
	}
}

func TestDaysOfACalendar(t *testing.T) {
	t.Parallel()
	spec := china()
	spec.Hours.Only = []string{"mon-thu 08:00-18:00", "fri 08:00-12:00,13:00-15:00", "sun 22:00-02:00"}
	cal := compiledCalendar(t, spec)
	days, err := cal.Days("2027-01-29", 16)
	if err != nil || len(days) != 16 {
		t.Fatalf("got %d days, %v", len(days), err)
	}

	for i, want := range map[int]string{
		0: "{2027-01-29 fri open  [08:00-12:00 13:00-15:00] }",
		1: "{2027-01-30 sat makeup mon-fri [08:00-12:00 13:00-15:00] make-up}",
		2: "{2027-01-31 sun closed  [] Sunday is off}", 3: "{2027-02-01 mon open  [00:00-02:00 08:00-18:00] }",
		7: "{2027-02-05 fri closed  [] Spring Festival}", 15: "{2027-02-13 sat makeup thu [08:00-18:00] }",
	} {
		if got := fmt.Sprint(days[i]); got != want {
			t.Errorf("day %d: got %s, want %s", i, got, want)
		}
	}

	for _, date := range []string{"", "02-01", "2100-01-01", "x"} {
		if _, err := cal.Days(date, 1); err == nil {
			t.Errorf("days from %q: got no error", date)
		}
	}

	if days, _ := cal.Days("2099-12-30", 10); len(days) != 2 {
		t.Errorf("at the end of days: got %d", len(days))
	}
}

// TestCalendarIsStored: Decode returns the encoded calendar in its canonical form.
func TestCalendarIsStored(t *testing.T) {
	t.Parallel()
	c := china()
	c.Timezone, c.ExcludeWeekdays, c.Include[0].As, c.Exclude[1].End = "beijing", []string{"Sunday", "SAT"}, "Workday",
		"05-01"
	c.Include[1].As = "Thursday"
	c.Defaults()
	text, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}

	const want = `{"name":"cn","timezone":"Asia/Shanghai","exclude":[{"date":"2027-02-05","end":"2027-02-11","note":"Spring Festival"},` +
		`{"date":"05-01","note":"Labour Day"}],"exclude_weekdays":["sat","sun"],"include":[{"date":"2027-01-30","as":"workday","note":"make-up"},` +
		`{"date":"2027-02-13","as":"thu"}]}`
	if text != want {
		t.Errorf("got\n%s, want\n%s", text, want)
	}

	again, err := DecodeCalendar(text)
	if err != nil || fmt.Sprint(again) != fmt.Sprint(c) {
		t.Errorf("got %v, %v; want %v", again, err, c)
	}

	for _, bad := range []string{"", "{", `{"name":"x","new":1}`, "[]"} {
		if _, err := DecodeCalendar(bad); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}

func TestAddDays(t *testing.T) {
	t.Parallel()
	got := AddDays([]CalendarDay{{Date: "01-01"}, {Date: "2027-02-06", Note: "old"}, {Date: "12-25", Note: "kept"}},
		[]CalendarDay{
			{Date: "2027-02-06", Note: "new"}, {Date: "2027-02-06", As: "mon"}, {Date: "12-25"}, {Date: "05-01"},
			{Date: "05-01"},
		})
	want := []CalendarDay{
		{Date: "01-01"}, {Date: "2027-02-06", Note: "new"}, {Date: "12-25", Note: "kept"},
		{Date: "2027-02-06", As: "mon"}, {Date: "05-01"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func BenchmarkFiltered(b *testing.B) {
	cal := compiledCalendar(b, china())
	c, err := ParseCron("0 9 * * 1-5", zone(b, "Asia/Shanghai"))
	if err != nil {
		b.Fatal(err)
	}

	f, err := NewFiltered(c, zone(b, "Asia/Shanghai"), cal)
	if err != nil {
		b.Fatal(err)
	}

	at := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		next, _ := f.Next(at)
		at = next
		if at.Year() > 2090 {
			at = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		}
	}
}

// TestManyCountsOfOneStart: a job that is bounded by max_fires asks for the count since its start
// with each due time.
func TestManyCountsOfOneStart(t *testing.T) {
	t.Parallel()
	start := time.Date(1971, 1, 1, 0, 0, 0, 0, time.UTC)
	s := Spec{
		App: "a", Name: "n", Every: Duration(10 * time.Millisecond), Start: &start, MaxFires: 1_000_000_000_000,
		Calendars: []string{"c"},
	}
	hours := CalendarHours{}
	for h := range 24 {
		hours.Except = append(hours.Except, fmt.Sprintf("%02d:10-%02d:20,%02d:30-%02d:40", h, h, h, h))
	}

	sched, err := s.Compile(compiledCalendar(t, CalendarSpec{Name: "c", Hours: hours}))
	if err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	if got := Preview(sched, time.Date(2027, 1, 1, 0, 9, 55, 0, time.UTC), 1000); len(got) != 1000 ||
		got[999] != time.Date(2027, 1, 1, 0, 20, 5, 0, time.UTC) {
		t.Errorf("got %d due times, the last %v", len(got), got[len(got)-1])
	}

	t.Log(time.Since(began)) // counting each from the start would take days
}
