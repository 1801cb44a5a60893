package job

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := LoadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func cron(t testing.TB, expr, zoneName string) *Cron {
	t.Helper()
	c, err := ParseCron(expr, zone(t, zoneName))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func instant(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// wantFires checks the due times after from, written in RFC 3339 with the offset that the wall
// clock shows.
func wantFires(t *testing.T, expr, zoneName, from string, want ...string) {
	t.Helper()
	c := cron(t, expr, zoneName)
	var got []string
	for _, due := range Preview(c, instant(t, from), len(want)) {
		got = append(got, due.Format(time.RFC3339))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q %s after %s:\n got %v\nwant %v", expr, zoneName, from, got, want)
	}
}

func TestCronDoesNotRepeatGorhillsBugs(t *testing.T) {
	for name, c := range map[string]struct {
		expr, zone, from string
		want             []string
	}{
		"west of UTC, Next does not go backwards before a gap": {
			"*/10 * * * *", "America/New_York", "2026-03-08T01:40:00-05:00",
			[]string{"2026-03-08T01:50:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-08T03:10:00-04:00"}},
		"a fixed time in the gap does not fire for ever": {
			"30 2 * * *", "America/New_York", "2026-03-08T01:30:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"}},
		"the second pass of the autumn hour goes on, not back to the first": {
			"*/20 * * * *", "America/New_York", "2026-11-01T01:40:00-04:00",
			[]string{
				"2026-11-01T01:00:00-05:00", "2026-11-01T01:20:00-05:00", "2026-11-01T01:40:00-05:00",
				"2026-11-01T02:00:00-05:00",
			}},
		"east of UTC, the first pass is not skipped": {
			"*/30 * * * *", "Europe/London", "2026-10-25T00:30:00+01:00",
			[]string{
				"2026-10-25T01:00:00+01:00", "2026-10-25T01:30:00+01:00", "2026-10-25T01:00:00Z",
				"2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z",
			}},
		"a fixed time in the repeat fires on the first pass alone": {
			"30 1 * * *", "Europe/London", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T01:30:00+01:00", "2026-10-26T01:30:00Z"}},
		"half an hour's gap adds no due times": {
			"*/15 * * * *", "Australia/Lord_Howe", "2026-10-04T01:40:00+10:30",
			[]string{"2026-10-04T01:45:00+10:30", "2026-10-04T02:30:00+11:00", "2026-10-04T02:45:00+11:00"}},
		"a gap at midnight adds no due times": {
			"*/30 * * * *", "Africa/Cairo", "2026-04-23T23:00:00+02:00",
			[]string{"2026-04-23T23:30:00+02:00", "2026-04-24T01:00:00+03:00", "2026-04-24T01:30:00+03:00"}},
		"month 09 is September": {
			"0 0 1 09 *", "UTC", "2026-01-01T00:00:00Z", []string{"2026-09-01T00:00:00Z", "2027-09-01T00:00:00Z"}},
		"months 01 to 03 are a range": {
			"0 0 1 01-03 *", "UTC", "2026-01-01T00:00:00Z", []string{
				"2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "2027-01-01T00:00:00Z",
			}},
		"day 05 is Friday": {
			"0 0 * * 05", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z"}},
		"days 5-7 are Friday to Sunday": {
			"0 0 * * 5-7", "UTC", "2026-11-01T00:00:00Z", []string{
				"2026-11-06T00:00:00Z", "2026-11-07T00:00:00Z", "2026-11-08T00:00:00Z", "2026-11-13T00:00:00Z",
			}},
		"days FRI-SUN are Friday to Sunday": {
			"0 0 * * FRI-SUN", "UTC", "2026-11-01T00:00:00Z", []string{
				"2026-11-06T00:00:00Z", "2026-11-07T00:00:00Z", "2026-11-08T00:00:00Z", "2026-11-13T00:00:00Z",
			}},
		"days 1-7/2 are Monday, Wednesday, Friday and Sunday": {
			"0 0 * * 1-7/2", "UTC", "2026-11-01T00:00:00Z", []string{
				"2026-11-02T00:00:00Z", "2026-11-04T00:00:00Z", "2026-11-06T00:00:00Z", "2026-11-08T00:00:00Z",
				"2026-11-09T00:00:00Z",
			}},
		"six fields begin with the second": {
			"*/10 * * * * *", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-01T00:00:10Z", "2026-11-01T00:00:20Z"}},
		"Quartz's daily noon is noon": {
			"0 0 12 * * ?", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-01T12:00:00Z", "2026-11-02T12:00:00Z"}},
		"six fields end with the year if the last holds one": {
			"0 12 1 1 * 2030-2032", "UTC", "2026-11-01T00:00:00Z", []string{
				"2030-01-01T12:00:00Z", "2031-01-01T12:00:00Z", "2032-01-01T12:00:00Z",
			}},
		"two restricted day fields are alternatives, */2 included": {
			"0 0 */2 * 1", "UTC", "2026-11-01T00:00:00Z", []string{
				"2026-11-02T00:00:00Z", "2026-11-03T00:00:00Z", "2026-11-05T00:00:00Z", "2026-11-07T00:00:00Z",
				"2026-11-09T00:00:00Z",
			}},
		"years may be far apart": {
			"0 0 0 1 1 ? */100", "UTC", "1970-01-01T00:00:00Z", []string{"2070-01-01T00:00:00Z"}},
		"L is the last day, whatever else is in the list": {
			"0 0 L,15 * *", "UTC", "2026-02-01T00:00:00Z", []string{
				"2026-02-15T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-15T00:00:00Z", "2026-03-31T00:00:00Z",
			}},
		"weekdays nearest to a day stay in its month": {
			"0 0 1W,31W * *", "UTC", "2026-07-31T00:00:00Z", []string{
				"2026-08-03T00:00:00Z", "2026-08-31T00:00:00Z", "2026-09-01T00:00:00Z", "2026-10-01T00:00:00Z",
				"2026-10-30T00:00:00Z",
			}},
		"the last and the numbered weekday": {
			"0 0 * * FRIL,1#1", "UTC", "2026-11-01T00:00:00Z", []string{
				"2026-11-02T00:00:00Z", "2026-11-27T00:00:00Z", "2026-12-07T00:00:00Z", "2026-12-25T00:00:00Z",
			}},

		"macros in any case, @midnight too": {
			" @MidNight\t", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-02T00:00:00Z"}},
		"white space does not count": {
			"  0\t3   * * *\n", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-01T03:00:00Z"}},
		"from between two seconds": {
			"* * * * * * *", "UTC", "2026-11-01T00:00:00.999999999Z", []string{"2026-11-01T00:00:01Z"}},
		"from long before the first year": {
			"0 0 1 1 *", "UTC", "0001-01-01T00:00:00Z", []string{"1970-01-01T00:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) { wantFires(t, c.expr, c.zone, c.from, c.want...) })
	}
}

func TestCronRefuses(t *testing.T) {
	for name, c := range map[string]struct{ expr, want string }{
		"a minute out of range":  {"61 * * * *", `cron "61 * * * *": minute "61": not between 0 and 59`},
		"day 0":                  {"0 0 0 * *", `day-of-month "0": not between 1 and 31`},
		"day of week 8":          {"0 0 * * 8", `day-of-week "8": not between 0 and 7`},
		"a number of any length": {"0 0 * 99999999999999999999999 *", `not between 1 and 12`},
		"a range out of range":   {"0 5-25 * * *", `hour "5-25": "25" is not between 0 and 23`},
		"a word":                 {"x * * * *", `minute "x": not a number`},
		"a wrong month":          {"0 0 1 SEPT *", `month "SEPT": not a number or a name such as JAN`},
		"hours backwards": {
			"0 22-6 * * *", `hour "22-6": the range runs backwards; write 22-23,0-6`,
		},
		"hours backwards with a step": {"0 22-6/2 * * *", `write 22,0-6/2`},
		"minutes backwards": {
			"50-10 * * * *", `minute "50-10": the range runs backwards; write 50-59,0-10`,
		},
		"what makes gorhill panic": {"1-0 * * * *", `write 1-59,0`},
		"months backwards":         {"0 0 1 11-2 *", `write 11-12,1-2`},
		"days backwards":           {"0 0 25-5 * *", `write 25-31,1-5`},
		"named days backwards": {
			"0 0 * * FRI-MON", `day-of-week "FRI-MON": the range runs backwards; write FRI-SAT,SUN-MON`,
		},
		"days from Sunday by its other number": {"0 0 * * 7-2", `write 0-2`},
		"years backwards": {
			"0 0 1 1 * 2030-2028", `year "2030-2028": the range runs backwards; write 2028-2030`,
		},
		"a step of zero": {"*/0 * * * *", `minute "*/0": the step must not be 0; write *`},
		"a step past the field": {
			"*/60 * * * *", `minute "*/60": the step is larger than the range; write 0`,
		},
		"a step past the range":    {"10-20/15 * * * *", `the step is larger than the range; write 10`},
		"a step that is no number": {"*/x * * * *", `minute "*/x": the step is not a number`},
		"an empty item": {
			"1,2, * * * *", `minute "1,2,": the list has an empty item; remove the comma`,
		},
		"a lone comma":                   {", * * * *", `an empty item`},
		"a negative number":              {"-5 * * * *", `minute "-5": not a number`},
		"week 6 of a month":              {"0 0 * * 5#6", `day-of-week "5#6": the week "6" is not between 1 and 5`},
		"a lone L for a day of the week": {"0 0 * * L", `write 6L for the last Saturday`},
		"W after a range":                {"0 0 1-5W * *", `W takes one day, not a range`},
		"L W # in other fields":          {"L 0 * * *", `minute "L": not a number`},
		"days before the last": {
			"0 0 L-3 * *",
			`day-of-month "L-3": counting back from the last day is not supported; give the job three schedules, with day 28 in months 1,3,5,7,8,10,12, day 27 in 4,6,9,11 and day 25 in 2`,
		},
		"Jenkins' H":             {"H * * * *", `minute "H": H (a hashed value) is not supported`},
		"Jenkins' H with a step": {"H/15 * * * *", `the job's jitter spreads the starts`},
		"@every": {
			"@every 5m", `@every is not a cron expression; give the job "every": "5m" instead of a schedule`,
		},
		"@reboot": {"@reboot", `a cluster has no boot to run at`},
		"a zone before the fields": {
			"CRON_TZ=Asia/Tokyo 0 9 * * *",
			`a time zone does not belong in the expression; set the job's timezone to "Asia/Tokyo"`,
		},
		"a zone and nothing else": {
			"TZ=", `a time zone does not belong in the expression; set the job's timezone`,
		},
		"an unknown macro":   {"@fortnightly", `@fortnightly is not a known macro; the macros are @yearly`},
		"junk after a macro": {"@daily junk", `nothing can follow a macro; write @daily alone`},
		"nothing":            {" ", `empty; write five fields`},
		"too few fields":     {"0 0 * *", `has 4 fields; at least 5 are needed`},
		"too many fields":    {"0 0 0 1 1 * 2030 true", `has 8 fields, which is too many`},
		"a line of /etc/crontab": {
			"0 3 * * * root",
			`day-of-week "root": not a number or a name such as SUN; six fields are read as second minute hour`,
		},
		"a year that gorhill lacks":    {"0 0 1 1 * 2100", `year "2100": not between 1970 and 2099`},
		"30 February":                  {"0 0 30 2 *", `never fires: no day from 1970 to 2099 matches`},
		"29 February of a common year": {"0 0 29 2 * 2027", `never fires`},
		"a gap that nothing else matches": {
			"* 2 28 3 * 2027", `never fires: daylight saving in Europe/Berlin skips every time that matches`,
		},
		"an expression without an end": {
			strings.Repeat("1,", 200) + "1 * * * *", `409 bytes long; at most 256 are allowed`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseCron(c.expr, zone(t, "Europe/Berlin"))
			var ce *CronError
			if !errors.As(err, &ce) || got != nil {
				t.Fatalf("%q: got %v, %v; want a CronError", c.expr, got, err)
			}

			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q:\n got %s\nwant %s", c.expr, err, c.want)
			}

			if ce.Expr != c.expr {
				t.Errorf("Expr = %q, want %q", ce.Expr, c.expr)
			}
		})
	}
}

func TestCronIsReadAs(t *testing.T) {
	for name, c := range map[string]struct {
		expr    string
		fields  [7]string
		layout  string
		elapsed bool
	}{
		"crontab": {
			"*/5 0 * * *", [7]string{"0", "*/5", "0", "*", "*", "*", "*"},
			"minute hour day-of-month month day-of-week", true,
		},
		"an implicit second is fixed": {
			"0 0 * * *", [7]string{"0", "0", "0", "*", "*", "*", "*"}, "minute hour day-of-month month day-of-week",
			false,
		},
		"all hours one by one are": {
			"0 0-23 * * *", [7]string{"0", "0", "0-23", "*", "*", "*", "*"},
			"minute hour day-of-month month day-of-week", false,
		},
		"a star later on is no start": {
			"0 0,* * * *", [7]string{"0", "0", "0,*", "*", "*", "*", "*"}, "minute hour day-of-month month day-of-week",
			false,
		},
		"seconds first": {
			"* 0 0 ? JAN-MAR SAT-SUN", [7]string{"*", "0", "0", "*", "1-3", "6-7", "*"},
			"second minute hour day-of-month month day-of-week", true,
		},
		"year last": {
			"00 0012 * * ? 2027,2029/2", [7]string{"0", "0", "12", "*", "*", "*", "2027,2029/2"},
			"minute hour day-of-month month day-of-week year", false,
		},
		"a step in the sixth is no year": {
			"0 0 1 1 * 1-6/3", [7]string{"0", "0", "1", "1", "*", "1-6/3", "*"},
			"second minute hour day-of-month month day-of-week", false,
		},
		"all seven": {
			"1 2 3 lw,04W 5 fri#2,07L 2030", [7]string{"1", "2", "3", "LW,4W", "5", "5#2,0L", "2030"},
			"second minute hour day-of-month month day-of-week year", false,
		},
		"a macro": {
			"@Weekly", [7]string{"0", "0", "0", "*", "*", "0", "*"}, "minute hour day-of-month month day-of-week",
			false,
		},
		"the hour's macro": {
			"@hourly", [7]string{"0", "0", "*", "*", "*", "*", "*"}, "minute hour day-of-month month day-of-week", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := cron(t, c.expr, "UTC")

			if got.Fields() != c.fields || got.Layout() != c.layout || got.Elapsed() != c.elapsed {
				t.Errorf("%q: got %q %q %v, want %q %q %v", c.expr, got.Fields(), got.Layout(), got.Elapsed(), c.fields,
					c.layout, c.elapsed)
			}
			if want := strings.Join(strings.Fields(c.expr), " "); got.String() != want {
				t.Errorf("String() = %q, want %q", got, want)
			}
		})
	}
}

func TestCronEnds(t *testing.T) {
	c := cron(t, "0 0 1 1 * 2030", "UTC")
	due := instant(t, "2030-01-01T00:00:00Z")
	if next, ok := c.Next(due); ok {
		t.Errorf("Next after the last year = %v", next)
	}

	far := instant(t, "9999-12-31T23:59:59Z")
	if last, ok := c.Last(time.Time{}, far); !ok || !last.Equal(due) {
		t.Errorf("Last = %v, %v; want %v", last, ok, due)
	}

	if n := c.Count(time.Time{}, far); n != 1 {
		t.Errorf("Count = %d, want 1", n)
	}

	if _, ok := c.Last(due, far); ok {
		t.Error("Last includes from")
	}

	if _, ok := c.Last(far, due); ok || c.Count(far, due) != 0 {
		t.Error("a backwards interval holds something")
	}

	every := cron(t, "* * * * * * *", "America/New_York")
	if next, ok := every.Next(far); ok {
		t.Errorf("Next(%v) = %v", far, next)
	}

	// Midnight to midnight by the wall clock, standard time at both ends.
	if n, want := every.Count(time.Time{}, far), int64(47482*secondsPerDay); n != want {
		t.Errorf("seconds of 1970 to 2099 = %d, want %d", n, want)
	}
}

// TestCronIsSharedSafely is for the race detector; gorhill's own expression fails it, and gives
// wrong answers.
func TestCronIsSharedSafely(t *testing.T) {
	c := cron(t, "0 0 L * *", "America/New_York")
	from := instant(t, "2026-01-01T00:00:00Z")
	want := Preview(c, from, 24)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got := Preview(c, from, 24); !slices.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
				if n := c.Count(from, want[23]); n != 24 {
					t.Errorf("Count = %d, want 24", n)
				}
				if last, ok := c.Last(from, want[23]); !ok || !last.Equal(want[23]) {
					t.Errorf("Last = %v", last)
				}
			}
		})
	}

	wg.Wait()
}

// TestLastAndCountAreFast takes the best of a few tries: other tests and other people share the
// machine.
func TestLastAndCountAreFast(t *testing.T) {
	from, to := instant(t, "2026-01-01T00:00:00Z"), instant(t, "2036-01-01T00:00:00Z")
	for _, expr := range []string{"* * * * * * *", "0-59 0-59 0-23 * * * *", "0 0 29 2 *", "0 0 1 1 * 2026"} {
		c := cron(t, expr, "America/New_York")
		best := time.Hour
		for range 5 {
			start := time.Now()
			c.Last(from, to)
			c.Count(from, to)
			best = min(best, time.Since(start))
		}

		if best > 50*time.Millisecond {
			t.Errorf("%q: Last and Count took %v", expr, best)
		}
	}
}
