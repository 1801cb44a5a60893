package job

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// moveOracle knows on_closed and weeks by their definition: it takes each due time of the schedule,
// day by day, and walks from it until a day is open.
type moveOracle struct {
	calendarOracle
	by    int // days; 0: skip
	weeks *Weeks
	shut  map[string]bool // by calendar, date, and what the date counts as

	offsets []time.Duration // of the zone, the largest first

	// What was worked out before, by Unix time.
	instants map[int64]time.Time
	answers  map[int64]bool
}

func newMoveOracle(t testing.TB, zone *time.Location) moveOracle {
	return moveOracle{
		calendarOracle: calendarOracle{zone: zone, t: t}, shut: map[string]bool{},
		instants: map[int64]time.Time{}, answers: map[int64]bool{},
	}
}

// learn finds the offsets of the zone in a range.
func (o *moveOracle) learn(from, to time.Time) {
	for at := from; at.Before(to); at = at.Add(6 * time.Hour) {
		if offset := civilOfInstant(at, o.zone).Sub(at); !slices.Contains(o.offsets, offset) {
			o.offsets = append(o.offsets, offset)
		}
	}
	slices.Sort(o.offsets)
	slices.Reverse(o.offsets)
}

// closesWeeks reports whether every day of a usual week is closed.
func (o *moveOracle) closesWeeks() bool {
	for d := range time.Saturday + 1 {
		day := time.Date(2003, 6, 1+int(d), 12, 0, 0, 0, time.UTC) // far from all entries with a year
		closed := false
		for _, c := range o.specs {
			weekly := newMoveOracle(o.t, time.UTC)
			weekly.specs = []CalendarSpec{{ExcludeWeekdays: c.ExcludeWeekdays, Hours: c.Hours}}
			closed = closed || weekly.closed(day)
		}
		if !closed {
			return false
		}
	}

	return true
}

// civil is a time of the wall clock, written as if in UTC.
func civilOfInstant(at time.Time, zone *time.Location) time.Time {
	at = at.In(zone)
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
}

// instant returns when the clock first shows a civil time, or jumps over it. Clocks jump by quarters
// of an hour here.
func (o *moveOracle) instant(civil time.Time) time.Time {
	at, known := o.instants[civil.Unix()]
	if !known {
		at = o.findInstant(civil)
		o.instants[civil.Unix()] = at
	}
	return at
}

func (o *moveOracle) findInstant(civil time.Time) time.Time {
	const quarter = 15 * time.Minute
	for _, offset := range o.offsets {
		if at := civil.Add(-offset); civilOfInstant(at, o.zone).Equal(civil) {
			return at
		}
	}

	at := civil.Add(-39 * time.Hour).Truncate(quarter)
	for civilOfInstant(at, o.zone).Before(civil) {
		at = at.Add(quarter)
	}
	return at
}

// closed reports whether a calendar is closed all day.
func (o *moveOracle) closed(at time.Time) bool {
	closed, known := o.answers[at.Unix()]
	if !known {
		closed = o.findClosed(at)
		o.answers[at.Unix()] = closed
	}
	return closed
}

func (o *moveOracle) findClosed(at time.Time) bool {
	lent := o.lent(at)
	for i, c := range o.specs {
		local := o.local(c, at)
		key := fmt.Sprint(i, local.Format(time.DateOnly), lent)
		shut, known := o.shut[key]
		if !known {
			shut = true
			alone := calendarOracle{specs: o.specs[i : i+1], zone: time.UTC, t: o.t}
			alone.specs = slices.Clone(alone.specs)
			alone.specs[0].Timezone = ""
			day := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC)
			for m := 0; m < 24*60 && shut; m++ {
				shut = !alone.openAs(day.Add(time.Duration(m)*time.Minute), lent)
			}
			o.shut[key] = shut
		}
		if shut {
			return true
		}
	}

	return false
}

// kept reports whether the week of an instant is kept, by counting weeks from the first one.
func (o *moveOracle) kept(at time.Time) bool {
	if o.weeks == nil {
		return true
	}

	monday, _ := time.Parse(time.DateOnly, o.weeks.From)
	for monday.Weekday() != time.Monday {
		monday = monday.AddDate(0, 0, -1)
	}

	date := civilOfInstant(at, o.zone)
	for ; !monday.After(date); monday = monday.AddDate(0, 0, 7*o.weeks.Every) {
		if date.Before(monday.AddDate(0, 0, 7)) {
			return true
		}
	}

	return false
}

// due returns what becomes of a due time of the schedule: an instant, or nothing.
func (o *moveOracle) due(at, civil time.Time) (to time.Time, moved, ok bool) {
	if !o.kept(at) {
		return to, false, false
	}
	if !o.closed(at) {
		return at, false, o.open(at)
	}

	for k := 1; o.by != 0 && k <= 366; k++ {
		to = o.instant(civil.AddDate(0, 0, k*o.by))
		if !o.closed(to) {
			return to, true, o.open(to)
		}
	}

	return to, false, false
}

// openAs is open for a day that counts as others.
func (o calendarOracle) openAs(at time.Time, as []time.Weekday) bool {
	if as == nil {
		as = []time.Weekday{at.Weekday()}
	}

	c := o.specs[0]
	date := at.Format(time.DateOnly)
	included := o.find(c.Include, date) != nil
	if !included && o.find(c.Exclude, date) != nil {
		return false
	}

	for _, day := range as {
		if !included && slices.Contains(c.ExcludeWeekdays, oracleDays[day]) ||
			len(c.Hours.Only) > 0 && !o.inHours(c.Hours.Only, day, at) || o.inHours(c.Hours.Except, day, at) {
			return false
		}
	}

	return true
}

// dailyTimes are expressions for the oracle, with few due times a day.
func dailyTimes(at time.Time) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		minute := rapid.SampledFrom([]string{"0", "30", "0", "15,45", "*/30"}).Draw(t, "minute")
		hour := rapid.SampledFrom([]string{"0", "2", "3", "1-3", "9", "23", "9,17", "*/7", "0,12", "*"}).Draw(t, "hour")
		near := at.AddDate(0, 0, rapid.IntRange(-3, 3).Draw(t, "near"))
		day := rapid.SampledFrom([]string{
			"* * *", "* * *", "* * SUN", "* * SAT,SUN", "* * MON-FRI", "* * MON", "L * *", "LW * *", "1 * *",
			"* * 5L", "* * SUN#2", fmt.Sprintf("%d * *", near.Day()), fmt.Sprintf("%d %d *", near.Day(), near.Month()),
			fmt.Sprintf("* * %d", near.Weekday()),
		}).Draw(t, "day")
		return minute + " " + hour + " " + day
	})
}

// TestMovedEqualsOracle compares schedules with on_closed and weeks with their definition, near clock
// changes of many zones and under random calendars of several zones.
func TestMovedEqualsOracle(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	all := oracleTransitions(t)
	rapid.Check(t, func(rt *rapid.T) { compareMoved(t, rt, all) })
}

func compareMoved(t testing.TB, rt *rapid.T, all []transition) {
	x := rapid.SampledFrom(all).Draw(rt, "transition")
	at := time.Unix(x.at, 0).In(x.loc)
	w := window{from: x.at - 5*24*3600, to: x.at + 5*24*3600, step: 60}
	o := newMoveOracle(t, x.loc)
	move := rapid.SampledFrom([]OnClosed{ClosedNext, ClosedPrevious, ClosedNext, ClosedPrevious, ""}).Draw(rt, "on closed")
	o.by = map[OnClosed]int{ClosedNext: 1, ClosedPrevious: -1}[move]
	var calendars []*Calendar
	margin := 30 * 24 * time.Hour
	for i, c := range rapid.SliceOfN(calendarNear(at, x.loc.String(), "", "", "Asia/Shanghai", "America/St_Johns"), 0,
		2).Draw(rt, "calendars") {
		c.Name = fmt.Sprint(i)
		compiled, err := c.Compile()
		if err != nil {
			rt.Fatal(err)
		}
		o.specs, calendars = append(o.specs, c), append(calendars, compiled)
	}

	if o.closesWeeks() {
		margin = 372 * 24 * time.Hour // due times may come from a year away
	}

	if rapid.IntRange(0, 2).Draw(rt, "weeks") == 0 {
		from := at.AddDate(0, 0, -rapid.IntRange(0, 60).Draw(rt, "days before"))
		o.weeks = &Weeks{rapid.IntRange(1, 4).Draw(rt, "every"), from.Format(time.DateOnly)}
	}

	// The due times of the schedule, with their civil times.
	type nominal struct{ at, civil time.Time }
	var nominals []nominal
	from, to := time.Unix(w.from, 0).Add(-margin), time.Unix(w.to, 0).Add(margin)
	o.learn(from.Add(-48*time.Hour), to.Add(48*time.Hour))
	var base Schedule
	if rapid.IntRange(0, 4).Draw(rt, "interval") == 0 {
		o.weeks = nil // of cron alone
		step := time.Duration(rapid.IntRange(60, 3000).Draw(rt, "minutes")) * time.Minute
		e, err := NewEvery(step, from.Truncate(time.Minute))
		if err != nil {
			rt.Fatal(err)
		}
		base = e
		for at := from.Truncate(time.Minute); at.Before(to); at = at.Add(step) {
			nominals = append(nominals, nominal{at, civilOfInstant(at, x.loc)})
		}
	} else {
		var u Union
		for range rapid.IntRange(1, 2).Draw(rt, "schedules") {
			expr := dailyTimes(at).Draw(rt, "expr")
			c, err := ParseCron(expr, x.loc)
			if err != nil {
				return // never fires
			}
			u = append(u, c)
			oracle := newOracle(expr)
			first := civilOfInstant(from, x.loc).Truncate(24 * time.Hour)
			for day := first; day.Before(to.Add(48 * time.Hour)); day = day.AddDate(0, 0, 1) {
				for minute := range 24 * 4 {
					civil := day.Add(time.Duration(minute) * 15 * time.Minute)
					if !oracleValue(oracle.fields[1], civil.Minute(), 0, 59) ||
						!oracleValue(oracle.fields[2], civil.Hour(), 0, 23) {
						continue
					}
					at := o.instant(civil)
					oracle.as = o.lent(at)
					if oracle.matches(civil) && (!oracle.elapsed || civilOfInstant(at, x.loc).Equal(civil)) {
						nominals = append(nominals, nominal{at, civil})
					}
					for d := 15 * time.Minute; oracle.elapsed && d <= 3*time.Hour; d += 15 * time.Minute {
						again := at.Add(d)
						oracle.as = o.lent(again)
						if civilOfInstant(again, x.loc).Equal(civil) && oracle.matches(civil) {
							nominals = append(nominals, nominal{again, civil})
						}
					}
				}
			}
		}
		if base = u; len(u) == 1 {
			base = u[0]
		}
	}

	f, err := NewFiltered(base, x.loc, calendars...)
	if err != nil {
		rt.Fatal(err)
	}
	f.weeks, f.move = o.weeks.compile(), move.direction()

	targets := map[int64][]int64{} // a gap may have swallowed several times of day
	for _, n := range nominals {
		if to, moved, ok := o.due(n.at, n.civil); ok && moved {
			targets[n.at.Unix()] = append(targets[n.at.Unix()], to.Unix())
		}
	}

	due, own, origins := map[int64]bool{}, map[int64]bool{}, map[int64][]int64{}
	for _, n := range nominals {
		to, moved, ok := o.due(n.at, n.civil)
		if !ok {
			continue
		}
		due[to.Unix()] = true
		if !moved {
			own[to.Unix()] = true
			continue
		}
		origins[to.Unix()] = append(origins[to.Unix()], n.at.Unix())
		if got, ok := f.movesTo(n.at); !ok || !slices.Contains(targets[n.at.Unix()], got.Unix()) {
			rt.Fatalf("%v of %v moves to %v, %v; want %v", n.at.In(x.loc), n.civil, got, ok, to.In(x.loc))
		}
	}

	var want []int64
	for sec := range due {
		if w.from <= sec && sec < w.to {
			want = append(want, sec)
		}
	}

	slices.Sort(want)
	probe := rapid.Int64Range(w.from, w.to-1)
	compareSchedule(rt, f, w, want, probe.Draw(rt, "p"), probe.Draw(rt, "q"), x.at, x.at-1)
	for _, sec := range want {
		from, moved := f.MovedFrom(time.Unix(sec, 0))
		if moved == own[sec] || moved && !slices.ContainsFunc(origins[sec], func(at int64) bool {
			// Of a time of day that occurs twice, the first pass is named.
			return civilOfInstant(time.Unix(at, 0), x.loc).Equal(civilOfInstant(from, x.loc))
		}) {
			rt.Fatalf("%v moved from %v, %v; want one of %v", time.Unix(sec, 0).In(x.loc), from, moved, origins[sec])
		}
		if mark := f.Mark(time.Unix(sec, 0)); (mark == Moved) != moved {
			rt.Fatalf("%v is marked %q, moved: %v", time.Unix(sec, 0), mark, moved)
		}
	}
}
