package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// calendarOracle knows calendars by brute force: it reads the wall clock of an instant and goes
// through the text of the definitions line by line.
type calendarOracle struct {
	specs []CalendarSpec
	zone  *time.Location // of calendars without one
	t     testing.TB
}

func (o calendarOracle) local(c CalendarSpec, at time.Time) time.Time {
	if c.Timezone == "" {
		return at.In(o.zone)
	}
	return at.In(zone(o.t, c.Timezone))
}

// names reports whether an entry names a date.
func (o calendarOracle) names(d CalendarDay, date string) bool {
	end := d.End
	if end == "" {
		end = d.Date
	}

	if len(d.Date) == len("12-25") {
		date = date[len("2027-"):]
		if end < d.Date { // over the end of the year
			return date >= d.Date || date <= end
		}
	}

	return d.Date <= date && date <= end
}

// find returns the entry of a list that counts for a date.
func (o calendarOracle) find(list []CalendarDay, date string) *CalendarDay {
	for _, size := range []int{len("2027-02-06"), len("12-25")} {
		for i := range list {
			if len(list[i].Date) == size && o.names(list[i], date) {
				return &list[i]
			}
		}
	}
	return nil
}

var oracleDays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// lent returns the days that an instant's day counts as; nil: itself.
func (o calendarOracle) lent(at time.Time) []time.Weekday {
	for _, c := range o.specs {
		local := o.local(c, at)
		d := o.find(c.Include, local.Format(time.DateOnly))
		if d == nil {
			continue
		}
		var work []time.Weekday
		for i, name := range oracleDays {
			if len(c.ExcludeWeekdays) > 0 && !slices.Contains(c.ExcludeWeekdays, name) ||
				len(c.ExcludeWeekdays) == 0 && i > 0 && i < 6 {
				work = append(work, time.Weekday(i))
			}
		}
		as := work
		switch {
		case d.As == "" && slices.Contains(work, local.Weekday()):
			continue
		case d.As != "" && d.As != "workday":
			as = []time.Weekday{time.Weekday(slices.Index(oracleDays, d.As))}
		}
		if len(as) > 0 && !(len(as) == 1 && as[0] == local.Weekday()) {
			return as
		}
	}

	return nil
}

func (o calendarOracle) open(at time.Time) bool {
	lent := o.lent(at)
	for _, c := range o.specs {
		local := o.local(c, at)
		days := lent
		if days == nil {
			days = []time.Weekday{local.Weekday()}
		}
		date := local.Format(time.DateOnly)
		included := o.find(c.Include, date) != nil
		if !included && o.find(c.Exclude, date) != nil {
			return false
		}
		for _, day := range days {
			if !included && slices.Contains(c.ExcludeWeekdays, oracleDays[day]) {
				return false
			}
			if len(c.Hours.Only) > 0 && !o.inHours(c.Hours.Only, day, local) || o.inHours(c.Hours.Except, day, local) {
				return false
			}
		}
	}

	return true
}

// inHours reads lines of the one form that the tests write: "mon 08:00-18:00", the second time
// later or on the next day.
func (o calendarOracle) inHours(lines []string, day time.Weekday, local time.Time) bool {
	clock := local.Format("15:04")
	for _, line := range lines {
		name, times, _ := strings.Cut(line, " ")
		from, to, _ := strings.Cut(times, "-")
		first := time.Weekday(slices.Index(oracleDays, name))
		switch {
		case from < to && first == day && from <= clock && clock < to,
			from > to && first == day && from <= clock,
			from > to && (first+1)%7 == day && clock < to:
			return true
		}
	}

	return false
}

// entryNear draws an entry near an instant.
func entryNear(at time.Time) *rapid.Generator[CalendarDay] {
	return rapid.Custom(func(t *rapid.T) CalendarDay {
		day := func(label string) time.Time { return at.AddDate(0, 0, rapid.IntRange(-4, 4).Draw(t, label)) }
		from, to := day("from"), day("to")
		format := rapid.SampledFrom([]string{time.DateOnly, time.DateOnly, "01-02"}).Draw(t, "format")
		if to.Before(from) {
			from, to = to, from
		}

		d := CalendarDay{Date: from.Format(format), Note: rapid.SampledFrom([]string{"", "a note"}).Draw(t, "note")}
		if rapid.Bool().Draw(t, "range") {
			d.End = to.Format(format)
		}

		return d
	})
}

func calendarNear(at time.Time, zones ...string) *rapid.Generator[CalendarSpec] {
	hours := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		clock := rapid.SampledFrom([]string{"00:00", "00:30", "02:00", "02:30", "03:00", "09:00", "17:45", "24:00"})
		from, to := clock.Draw(t, "from"), clock.Filter(func(s string) bool { return s != "00:00" }).Draw(t, "to")
		if from == "24:00" {
			from = "00:15"
		}
		if from == to {
			to = "23:59"
		}
		return fmt.Sprintf("%s %s-%s", rapid.SampledFrom(oracleDays).Draw(t, "day"), from, to)
	}), 0, 6)

	return rapid.Custom(func(t *rapid.T) CalendarSpec {
		c := CalendarSpec{Timezone: rapid.SampledFrom(append(zones, "")).Draw(t, "calendar's zone")}
		c.Exclude = rapid.SliceOfN(entryNear(at), 0, 3).Draw(t, "exclude")
		if rapid.Bool().Draw(t, "weekends") {
			c.ExcludeWeekdays = rapid.SliceOfNDistinct(rapid.SampledFrom(oracleDays), 0, 7, rapid.ID).Draw(t,
				"weekdays")
		}
		if rapid.IntRange(0, 2).Draw(t, "hours") == 0 {
			c.Hours = CalendarHours{Only: hours.Draw(t, "only"), Except: hours.Draw(t, "except")}
		}
		c.Include = rapid.SliceOfN(entryNear(at), 0, 3).Draw(t, "include")
		for i := range c.Include {
			c.Include[i].As = rapid.SampledFrom([]string{"", "", "workday", "mon", "wed", "sat", "sun"}).Draw(t, "as")
		}
		return c
	})
}

// allows reports whether an instant is open, in the calendar's time zone or, without one, in t's.
func allows(c *Calendar, t time.Time) bool {
	zone := c.zone
	if zone == nil {
		zone = t.Location()
	}
	day, second := splitCivil(civilOf(zone, t.Unix()))
	open, _ := c.at(day, second/60, c.lends(day))
	return open
}

// TestFilteredEqualsOracle compares schedules under one to three calendars, in several time zones,
// with brute force around transitions.
func TestFilteredEqualsOracle(t *testing.T) {
	t.Parallel()
	all := oracleTransitions(t)
	rapid.Check(t, func(rt *rapid.T) {
		x := rapid.SampledFrom(all).Draw(rt, "transition")
		at := time.Unix(x.at, 0).In(x.loc)
		w := newWindow(x.loc, x.at-2*24*3600, x.at+2*24*3600, 60, 48*3600)
		o := calendarOracle{zone: x.loc, t: t}
		var calendars []*Calendar
		for i, c := range rapid.SliceOfN(calendarNear(at, x.loc.String(), "Asia/Shanghai", "America/St_Johns"), 1,
			3).Draw(rt, "calendars") {
			c.Name = fmt.Sprint(i)
			compiled, err := c.Compile()
			if err != nil {
				rt.Fatal(err)
			}
			o.specs, calendars = append(o.specs, c), append(calendars, compiled)
		}

		var base Union
		var texts []string
		for range rapid.IntRange(1, 2).Draw(rt, "schedules") {
			expr := expressionNear(at, false).Draw(rt, "expr")
			c, err := ParseCron(expr, x.loc)
			if err != nil {
				return // never fires
			}
			base, texts = append(base, c), append(texts, expr)
		}

		var s Schedule = base
		if len(base) == 1 {
			s = base[0]
		}

		f, err := NewFiltered(s, x.loc, calendars...)
		if err != nil {
			rt.Fatal(err)
		}

		fires := map[string]map[int64]bool{} // by what every day is
		firesAs := func(as []time.Weekday) map[int64]bool {
			key := fmt.Sprint(as)
			if fires[key] == nil {
				fires[key] = map[int64]bool{}
				for _, expr := range texts {
					o := newOracle(expr)
					o.as = as
					for _, at := range w.fires(o) {
						fires[key][at] = true
					}
				}
			}
			return fires[key]
		}

		var want []int64
		for sec := w.from; sec < w.to; sec += 60 {
			at := time.Unix(sec, 0)
			if firesAs(o.lent(at))[sec] && o.open(at) {
				want = append(want, sec)
			}
			for i, c := range calendars {
				alone := calendarOracle{specs: o.specs[i : i+1], zone: x.loc, t: t}
				if got := allows(c, at.In(x.loc)); sec%3600 == 0 && got != alone.open(at) {
					rt.Fatalf("calendar %d at %v: it says %v", i, at.In(x.loc), got)
				}
			}
		}

		probe := rapid.Int64Range(w.from, w.to-1)
		compareSchedule(rt, f, w, want, probe.Draw(rt, "p"), probe.Draw(rt, "q"), x.at, x.at-1)
		for _, due := range want {
			if got := f.Mark(time.Unix(due, 0)); (got == Makeup) && o.lent(time.Unix(due, 0)) == nil {
				rt.Fatalf("%v is marked %s", time.Unix(due, 0).In(x.loc), got)
			}
		}
	})
}

// compareSchedule holds Next, Last and Count against the due times in a window.
func compareSchedule(t fatal, s Schedule, w window, want []int64, probes ...int64) {
	t.Helper()
	at := func(sec int64) time.Time { return time.Unix(sec, 0) }
	var got []int64
	for now := at(w.from - 1); ; {
		next, ok := s.Next(now)
		if ok && !next.After(now) {
			t.Fatalf("Next(%v) = %v goes backwards", now, next)
		}
		if !ok || next.Unix() >= w.to {
			break
		}
		got, now = append(got, next.Unix()), next
	}

	if !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("%d due times, want %d; differ at %d: got %v, want %v", len(got), len(want), i,
					clip(at, got, i), clip(at, want, i))
			}
		}
	}

	for _, p := range append(probes, w.from-1) {
		from := at(p).Add(300 * time.Millisecond)
		i, exact := slices.BinarySearch(want, p)
		if exact {
			i++
		}
		if next, ok := s.Next(from); i < len(want) && (!ok || next.Unix() != want[i]) {
			t.Fatalf("Next(%v) = %v, want %v", from, next, at(want[i]))
		}
		for _, q := range append(probes, w.to-1) {
			if q < p {
				continue
			}
			j, exact := slices.BinarySearch(want, q)
			if exact {
				j++
			}
			to := at(q).Add(700 * time.Millisecond)
			if n := s.Count(from, to); n != int64(j-i) {
				t.Fatalf("Count(%v, %v) = %d, want %d", from, to, n, j-i)
			}
			last, ok := s.Last(from, to)
			if ok != (j > i) || ok && last.Unix() != want[j-1] {
				t.Fatalf("Last(%v, %v) = %v, %v; want %d of %d", from, to, last, ok, j, len(want))
			}
		}
	}
}
