package job

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// oracleZones jump by 24, 3, 2 hours, one hour, 45, 30 and 15 minutes; at midnight, before and
// after it; east and west of UTC; forward in winter, in spring and around Ramadan.
var oracleZones = []string{
	"Africa/Cairo", "Africa/Casablanca", "Africa/Juba", "America/Asuncion", "America/Caracas", "America/Havana",
	"America/Los_Angeles", "America/New_York", "America/Nuuk", "America/Santiago", "America/Sao_Paulo",
	"America/Scoresbysund", "America/St_Johns", "Antarctica/Casey", "Antarctica/Troll", "Asia/Amman", "Asia/Beirut",
	"Asia/Gaza", "Asia/Jerusalem", "Asia/Pyongyang", "Asia/Tehran", "Atlantic/Azores", "Australia/Adelaide",
	"Australia/Lord_Howe", "Australia/Sydney", "Europe/Berlin", "Europe/Chisinau", "Europe/Dublin", "Europe/Istanbul",
	"Europe/London", "Europe/Moscow", "Pacific/Apia", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Fakaofo",
	"Pacific/Fiji", "Pacific/Norfolk", "Pacific/Tongatapu",
}

type transition struct {
	loc *time.Location
	at  int64
}

func (x transition) String() string {
	return time.Unix(x.at, 0).In(x.loc).Format(time.RFC3339) + " " + x.loc.String()
}

func oracleTransitions(t testing.TB) (all []transition) {
	t.Helper()
	for _, name := range oracleZones {
		loc, err := LoadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		at := transitionsOf(loc, time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC),
			time.Date(2038, 1, 1, 0, 0, 0, 0, time.UTC))
		if len(at) == 0 {
			t.Fatalf("%s: no transition", name)
		}
		for _, at := range at {
			all = append(all, transition{loc, at})
		}
	}

	return all
}

// item draws one item of a field, in all the ways to write it.
func item(lo, hi int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		value := func(label string) int { return rapid.IntRange(lo, hi).Draw(t, label) }
		a, b := value("a"), value("b")
		a, b = min(a, b), max(a, b)
		switch rapid.IntRange(0, 5).Draw(t, "shape") {
		case 0:
			return fmt.Sprintf("%d-%d", a, b)
		case 1:
			return fmt.Sprintf("*/%d", rapid.IntRange(1, hi-lo).Draw(t, "step"))
		case 2:
			return fmt.Sprintf("%d-%d/%d", a, b, rapid.IntRange(1, max(b-a, 1)).Draw(t, "step"))
		case 3:
			return fmt.Sprintf("%d/%d", a, rapid.IntRange(1, max(hi-a, 1)).Draw(t, "step"))
		case 4:
			return fmt.Sprintf("%02d", a)
		}

		return fmt.Sprint(a)
	})
}

// listOf draws a field: often *, otherwise a few items.
func listOf(items ...*rapid.Generator[string]) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 3).Draw(t, "free") == 0 {
			return rapid.SampledFrom([]string{"*", "*", "?"}).Draw(t, "star")
		}

		list := rapid.SliceOfN(rapid.OneOf(items...), 1, 3).Draw(t, "items")
		if rapid.IntRange(0, 19).Draw(t, "late star") == 0 {
			list = append(list, "*")
		}

		return strings.Join(list, ",")
	})
}

// expressions near an instant: the date fields are mostly such that something fires within days.
func expressionNear(at time.Time, withSeconds bool) *rapid.Generator[string] {
	free := rapid.Just("*")
	day := rapid.Map(rapid.IntRange(-1, 1), func(n int) string { return fmt.Sprint(at.AddDate(0, 0, n).Day()) })
	dom := listOf(item(1, 31), day, day, rapid.SampledFrom([]string{"L", "LW", "l", "1W", "15W", "31W", "28w"}))
	dow := listOf(item(0, 6), rapid.SampledFrom([]string{
		"7", "07", "5-7", "1-7", "1-7/2", "FRI-SUN", "sat-sun", "SUN-TUE", "Mon", "SUN", "5L", "7L", "SUNL", "0#1",
		"SUN#5", "7#2", "6#4",
	}))
	month := listOf(item(1, 12), rapid.Just(at.Format("Jan")), rapid.Just("JAN-DEC"), rapid.Just("1-12"))
	hour := listOf(item(0, 23), item(0, 4), item(0, 3), rapid.SampledFrom([]string{"23", "0", "1", "2", "3", "0-23"}))
	return rapid.Custom(func(t *rapid.T) string {
		words := []string{
			listOf(item(0, 59), rapid.SampledFrom([]string{"0", "30", "0,30", "59"})).Draw(t, "minute"),
			hour.Draw(t, "hour"),
		}
		words = append(words, rapid.OneOf(free, dom).Draw(t, "dom"), rapid.OneOf(free, free, month).Draw(t, "month"),
			rapid.OneOf(free, dow).Draw(t, "dow"))
		if withSeconds {
			words = append([]string{listOf(item(0, 59), rapid.Just("0")).Draw(t, "second")}, words...)
			words = append(words,
				rapid.SampledFrom([]string{"*", "*", "2010-2037", "*/1", fmt.Sprintf("%d,2050", at.Year())}).Draw(t,
					"year"))
		}

		return strings.Join(words, " ")
	})
}

// fatal is what *testing.T and *rapid.T share here.
type fatal interface {
	Helper()
	Fatalf(string, ...any)
}

// compare holds Next, Last and Count against the oracle in a window. probes are instants in it.
func compare(t fatal, expr string, loc *time.Location, w window, probes ...int64) {
	t.Helper()
	c, err := ParseCron(expr, loc)
	if err != nil {
		var ce *CronError
		if errors.As(err, &ce) && (ce.Problem.Code() == "cron_never" || ce.Problem.Code() == "cron_skipped") {
			return
		}
		t.Fatalf("%v", err)
	}

	at := func(sec int64) time.Time { return time.Unix(sec, 0).In(loc) }
	want := w.fires(newOracle(expr))
	var got []int64
	for now := at(w.from - 1); ; {
		next, ok := c.Next(now)
		if ok && !next.After(now) {
			t.Fatalf("%q %s: Next(%v) = %v goes backwards", expr, loc, now, next)
		}
		if !ok || next.Unix() >= w.to {
			break
		}
		got, now = append(got, next.Unix()), next
	}

	if !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("%q %s: %d due times, want %d; differ at %d: got %v, want %v", expr, loc, len(got), len(want),
					i, clip(at, got, i), clip(at, want, i))
			}
		}
	}

	for _, p := range append(probes, w.from-1) {
		from := at(p).Add(300 * time.Millisecond)
		i, exact := slices.BinarySearch(want, p)
		if exact {
			i++
		}
		if next, ok := c.Next(from); i < len(want) && (!ok || next.Unix() != want[i]) {
			t.Fatalf("%q %s: Next(%v) = %v, want %v", expr, loc, from, next, at(want[i]))
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
			if n := c.Count(from, to); n != int64(j-i) {
				t.Fatalf("%q: Count(%v, %v) = %d, want %d", expr, from, to, n, j-i)
			}
			last, ok := c.Last(from, to)
			if ok != (j > i) || ok && last.Unix() != want[j-1] {
				t.Fatalf("%q: Last(%v, %v) = %v, %v; want %d of %d", expr, from, to, last, ok, j, len(want))
			}
		}
	}
}

func clip(at func(int64) time.Time, list []int64, i int) (near []string) {
	for ; i < len(list) && len(near) < 3; i++ {
		near = append(near, at(list[i]).Format(time.RFC3339))
	}
	return near
}

// long selects the whole oracle, which takes minutes, instead of a sample.
var long = os.Getenv("GOCRONTAB_TEST_LONG") != ""

func TestCronEqualsOracleByTheMinute(t *testing.T) {
	all := oracleTransitions(t)
	t.Logf("%d transitions in %d zones", len(all), len(oracleZones))
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SampledFrom(all).Draw(t, "transition")
		w := newWindow(x.loc, x.at-30*3600, x.at+30*3600, 60, 48*3600)
		probe := rapid.Int64Range(w.from, w.to-1)
		for range 3 {
			expr := expressionNear(time.Unix(x.at, 0).In(x.loc), false).Draw(t, "expr")
			compare(t, expr, x.loc, w, probe.Draw(t, "p"), probe.Draw(t, "q"), x.at, x.at-1)
		}
	})
}

func TestCronEqualsOracleByTheSecond(t *testing.T) {
	all := slices.DeleteFunc(oracleTransitions(t), func(x transition) bool {
		name := x.loc.String()
		return name == "Pacific/Apia" || name == "Pacific/Fakaofo" // a day's jump needs a day's margin
	})

	rapid.Check(t, func(t *rapid.T) {
		if !long && rapid.IntRange(0, 3).Draw(t, "sample") > 0 {
			return
		}
		x := rapid.SampledFrom(all).Draw(t, "transition")
		w := newWindow(x.loc, x.at-5000, x.at+5000, 1, 4*3600)
		probe := rapid.Int64Range(w.from, w.to-1)
		expr := expressionNear(time.Unix(x.at, 0).In(x.loc), true).Draw(t, "expr")
		compare(t, expr, x.loc, w, probe.Draw(t, "p"), probe.Draw(t, "q"), x.at, x.at-1)
	})
}

// TestCronEqualsOracleEverywhere tries the same expressions at each transition: of all zones and
// years in its long form, otherwise of a few years.
func TestCronEqualsOracleEverywhere(t *testing.T) {
	exprs := []string{
		"*/10 * * * *", "30 * * * *", "30 2 * * *", "0 0 * * *", "0,30 0-4,23 * * *", "*/15 1-2 * * *",
		"15 0-23 L * SUN",
	}
	years := map[int]bool{2011: true, 2028: true}
	for _, x := range oracleTransitions(t) {
		if !long && !years[time.Unix(x.at, 0).UTC().Year()] {
			continue
		}

		w := newWindow(x.loc, x.at-26*3600, x.at+26*3600, 60, 26*3600)
		for _, expr := range exprs {
			compare(t, expr, x.loc, w, x.at, x.at-1)
		}
	}
}

// TestCountEqualsNextOverYears crosses months, leap days and many transitions, which the windows do
// not.
func TestCountEqualsNextOverYears(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc, err := LoadZone(rapid.SampledFrom(oracleZones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}

		from := time.Unix(rapid.Int64Range(0, 4102444800).Draw(t, "from"),
			rapid.Int64Range(0, 999999999).Draw(t, "nsec"))
		c, err := ParseCron(expressionNear(from, rapid.Bool().Draw(t, "seconds")).Draw(t, "expr"), loc)
		if err != nil {
			return
		}

		var n int64
		to, last := from, time.Time{}
		for steps := rapid.Int64Range(1, 500).Draw(t, "steps"); n < steps; n++ {
			next, ok := c.Next(to)
			if !ok {
				break
			}
			to, last = next, next
		}

		if got := c.Count(from, to); got != n {
			t.Fatalf("%q %s: Count(%v, %v) = %d, want %d", c, loc, from, to, got, n)
		}

		if got, ok := c.Last(from, to); n > 0 && (!ok || !got.Equal(last)) {
			t.Fatalf("%q %s: Last(%v, %v) = %v %v, want %v", c, loc, from, to, got, ok, last)
		}
	})
}
