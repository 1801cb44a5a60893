package job

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	t.Parallel()
	day := func(text string) *time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return &at
	}

	for expr, want := range map[string]string{
		"0 3 * * *":                "at 03:00 every day, UTC",
		"0 3 * * 1-5":              "at 03:00 on weekdays, UTC",
		"*/15 9-17 * * MON-FRI":    "every 15 minutes from 09:00 to 17:45 on weekdays, UTC",
		"*/5 * * * *":              "every 5 minutes, UTC",
		"* * * * *":                "every minute, UTC",
		"*/7 * * * *":              "every hour at minutes 0 to 56 in steps of 7, UTC",
		"5/15 * * * SAT,SUN":       "every hour at minutes 5, 20, 35 and 50 on Saturdays and Sundays, UTC",
		"@hourly":                  "every hour, on the hour, UTC",
		"30 * * * *":               "every hour at minute 30, UTC",
		"0 */6 * * *":              "at 00:00, 06:00, 12:00 and 18:00 every day, UTC",
		"0 */2 * * *":              "every 2 hours from 00:00 to 22:00, UTC",
		"@yearly":                  "at 00:00 on 1 January, UTC",
		"@weekly":                  "at 00:00 on Sundays, UTC",
		"0 0 13 * FRI":             "at 00:00 on the 13th of the month and also on Fridays, UTC",
		"0 9 L * *":                "at 09:00 on the last day of the month, UTC",
		"0 9 LW,15W,1 3-5 *":       "at 09:00 on the 1st, the weekday nearest the 15th and the last weekday of the month, in March to May, UTC",
		"0 9 * * 5L,5#2,MON":       "at 09:00 on Mondays and also on the second Friday and the last Friday of the month, UTC",
		"0 0 */2 * *":              "at 00:00 on every 2nd day from the 1st to the 31st of the month, UTC",
		"0 0 */2 * 1-7":            "at 00:00 every day, UTC",
		"*/10 * * * * *":           "every 10 seconds, UTC",
		"15 30 6 * * *":            "at 06:30:15 every day, UTC",
		"1,7,9 3,5-7,17 * * *":     "at minutes 1, 7 and 9 of hours 3, 5 to 7 and 17 every day, UTC",
		"30 6 1 1 * 2027-2030":     "at 06:30 on 1 January, in 2027 to 2030, UTC",
		"* * 5,10 * * * *":         "at every second of every minute of hours 5 and 10 every day, UTC",
		"0 9 * 1,3,7 TUE-SUN":      "at 09:00 on Tuesdays to Sundays, in January, March and July, UTC",
		"0 9 29 2 *":               "at 09:00 on 29 February, UTC",
		"0 0 11,12,13,22,23 6 *":   "at 00:00 on the 11th to the 13th, the 22nd and the 23rd of the month, in June, UTC",
		"1-59/2 0-58/29 3 * * * *": "at seconds 1 to 59 in steps of 2 of minutes 0, 29 and 58 of hour 3 every day, UTC",
	} {
		s := Spec{Schedule: expr}
		if got := s.Words(English); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", expr, got, want)
		}
	}

	for want, s := range map[string]Spec{
		"at 09:00 on weekdays, and at 12:00 on Saturdays, Asia/Shanghai": {
			Schedules: []string{"0 9 * * MON-FRI", "0 12 * * SAT"}, Timezone: "Asia/Shanghai",
		},
		"every 15 minutes; first at 2027-01-01 04:30:00 UTC": {
			Every: Duration(15 * time.Minute), Start: day("2027-01-01T04:30:00Z"),
		},
		"every hour; first at 2027-01-01 04:30:00.25 UTC": {
			Every: Duration(time.Hour), Start: day("2027-01-01T04:30:00.25Z"),
		},
		"once, at 2027-10-31 02:30:00 +01:00 Europe/Berlin": {
			At: day("2027-10-31T01:30:00Z"), Timezone: "Europe/Berlin",
		},
		"every 1 hour, 30 minutes and 10 milliseconds; first at 2027-01-01 00:00:00 UTC; until 2028-01-01 00:00:00 UTC; 24 times in total": {
			Every: Duration(90*time.Minute + 10*time.Millisecond), Start: day("2027-01-01T00:00:00Z"),
			End: day("2028-01-01T00:00:00Z"), MaxFires: 24,
		},
		`at 03:00 every day, UTC; from 2027-01-01 00:00:00 UTC on; once in total; where the calendars "a", "b" and "c d" are open; each delayed by the job's own fixed part of 5 minutes`: {
			Schedule: "0 3 * * *", Start: day("2027-01-01T00:00:00Z"), MaxFires: 1,
			Calendars: []string{"a", "b", "c d"}, Jitter: Duration(5 * time.Minute),
		},
		"": {Schedule: "61 * * * *"},
	} {
		if got := s.Words("xx"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// TestWordsSayAll parses the words by rules of its own, and compares the result with the
// expression.
func TestWordsSayAll(t *testing.T) {
	t.Parallel()
	from := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		at := from.Add(time.Duration(rapid.Int64Range(0, 27*365*24).Draw(t, "hours")) * time.Hour)
		expr := expressionNear(at, rapid.Bool().Draw(t, "with seconds")).Draw(t, "expr")
		c, err := ParseCron(expr, nil)
		if err != nil {
			t.Skip("not taken")
		}

		words := english{}.cron(c.inWords())
		said, err := readWords(words)
		if err != nil {
			t.Fatalf("%s: %q: %v", expr, words, err)
		}

		check := func(civil int64) {
			if got, want := said(time.Unix(civil, 0).UTC()), c.fields.matches(civil); got != want {
				t.Fatalf("%s: %q: %s is said to match: %v, and does: %v", expr, words, civilText(civil), got, want)
			}
		}

		civil := at.Unix()
		for range 20 {
			if civil = c.nextCivil(civil); civil == never {
				break
			}
			for _, off := range []int64{0, 1, -1, 60, -60, 3600, -3600, 86400, -86400, 7 * 86400, 30 * 86400,
				366 * 86400} {
				if y := time.Unix(civil+off, 0).UTC().Year(); y >= firstYear && y <= lastYear {
					check(civil + off)
				}
			}
		}

		for range 50 {
			check(at.Unix() + rapid.Int64Range(0, 60*86400).Draw(t, "off"))
		}
	})
}

// predicate reports whether the words match an instant of a clock.
type predicate func(time.Time) bool

// readWords reads what english says of a cron expression.
func readWords(words string) (predicate, error) {
	words = strings.Replace(words, "every hour, on the hour", "every hour at minute 0", 1)
	var all []predicate
	for {
		rest, in, found := cutLast(words, ", in ")
		if !found {
			break
		}
		p, err := readYearsOrMonths(in)
		if err != nil {
			return nil, err
		}
		words, all = rest, append(all, p)
	}

	times, days, found := strings.Cut(words, " on ")
	if found {
		p, err := readDays("on " + days)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}

	p, err := readTimes(strings.TrimSuffix(times, " every day"))
	if err != nil {
		return nil, err
	}

	all = append(all, p)
	return func(t time.Time) bool { return !slices.ContainsFunc(all, func(p predicate) bool { return !p(t) }) }, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func monthNumber(name string) (int, error) {
	for m := time.January; m <= time.December; m++ {
		if m.String() == name {
			return int(m), nil
		}
	}
	return 0, fmt.Errorf("%q is no month", name)
}

func readYearsOrMonths(text string) (predicate, error) {
	if set, err := readSet(text, strconv.Atoi); err == nil {
		return func(t time.Time) bool { return set[t.Year()] }, nil
	}
	set, err := readSet(text, monthNumber)
	return func(t time.Time) bool { return set[int(t.Month())] }, err
}

// items takes a list apart.
func items(text string) []string { return strings.Split(strings.Replace(text, " and ", ", ", 1), ", ") }

// readSet reads "5, 10 to 20 in steps of 5 and 7".
func readSet(text string, value func(string) (int, error)) (map[int]bool, error) {
	set := map[int]bool{}
	for _, item := range items(text) {
		body, steps, stepped := strings.Cut(item, " in steps of ")
		from, to, ranged := strings.Cut(body, " to ")
		first, err := value(from)
		if err != nil {
			return nil, err
		}
		last, step := first, 1
		if ranged {
			if last, err = value(to); err != nil {
				return nil, err
			}
		}
		if stepped {
			if step, err = strconv.Atoi(steps); err != nil || step < 2 {
				return nil, fmt.Errorf("%q is no step", steps)
			}
		}
		for n := first; n <= last; n += step {
			set[n] = true
		}
	}

	return set, nil
}

var (
	pacePattern   = regexp.MustCompile(`^every (?:(\d+) )?(second|minute|hour)s?(?: from (\S+) to (\S+))?$`)
	hourlyPattern = regexp.MustCompile(`^every hour at minutes? (.*)$`)
	fieldPattern  = regexp.MustCompile(
		`^at (?:(every second|seconds? .*) of )?(every minute|minutes? .*) of (every hour|hours? .*)$`)
)

func readClock(text string) (int, error) {
	t, err := time.Parse(time.TimeOnly, (text + ":00")[:8])
	return timeOf(t.Hour(), t.Minute(), t.Second()), err
}

func readTimes(text string) (predicate, error) {
	second := func(t time.Time) int { return timeOf(t.Hour(), t.Minute(), t.Second()) }
	if m := hourlyPattern.FindStringSubmatch(text); m != nil {
		set, err := readSet(m[1], strconv.Atoi)
		return func(t time.Time) bool { return set[t.Minute()] && t.Second() == 0 }, err
	}

	if m := pacePattern.FindStringSubmatch(text); m != nil {
		step := map[string]int{"second": 1, "minute": 60, "hour": 3600}[m[2]]
		if m[1] != "" {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				return nil, err
			}
			step *= n
		}
		first, last := 0, 86399
		if m[3] != "" {
			var err1, err2 error
			first, err1 = readClock(m[3])
			last, err2 = readClock(m[4])
			if err1 != nil || err2 != nil || (last-first)%step != 0 {
				return nil, fmt.Errorf("%q does not come out even", text)
			}
		} else if 86400%step != 0 || step > 3600 {
			return nil, fmt.Errorf("%q says not when", text)
		}
		return func(t time.Time) bool {
			at := second(t)
			return at >= first && at <= last && (at-first)%step == 0
		}, nil
	}

	if m := fieldPattern.FindStringSubmatch(text); m != nil {
		part := func(text, otherwise string) (map[int]bool, error) {
			if text == "" {
				text = otherwise
			}
			word, list, _ := strings.Cut(text, " ")
			if word == "every" {
				return nil, nil
			}
			return readSet(list, strconv.Atoi)
		}
		s, err1 := part(m[1], "second 0")
		min, err2 := part(m[2], "")
		h, err3 := part(m[3], "")
		if err1 != nil || err2 != nil || err3 != nil {
			return nil, fmt.Errorf("%q: %v %v %v", text, err1, err2, err3)
		}
		in := func(set map[int]bool, n int) bool { return set == nil || set[n] }
		return func(t time.Time) bool { return in(s, t.Second()) && in(min, t.Minute()) && in(h, t.Hour()) }, nil
	}

	list, found := strings.CutPrefix(text, "at ")
	if !found {
		return nil, fmt.Errorf("%q says not when", text)
	}

	set, err := readSet(list, readClock)
	return func(t time.Time) bool { return set[second(t)] }, err
}

var datePattern = regexp.MustCompile(`^on (\d+) ([A-Z]\w+)$`)

func readDays(text string) (predicate, error) {
	if m := datePattern.FindStringSubmatch(text); m != nil {
		day, err1 := strconv.Atoi(m[1])
		month, err2 := monthNumber(m[2])
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("%q is no date", text)
		}
		return func(t time.Time) bool { return t.Day() == day && int(t.Month()) == month }, nil
	}

	var any []predicate
	for _, said := range strings.Split(text, " and also ") {
		list, found := strings.CutPrefix(said, "on ")
		if !found {
			return nil, fmt.Errorf("%q are no days", said)
		}
		ofMonth, isOfMonth := strings.CutSuffix(list, " of the month")
		for _, item := range items(ofMonth) {
			read := readWeekday
			if isOfMonth {
				read = readMonthday
			}
			p, err := read(item)
			if err != nil {
				return nil, err
			}
			any = append(any, p)
		}
	}

	return func(t time.Time) bool { return slices.ContainsFunc(any, func(p predicate) bool { return p(t) }) }, nil
}

func isWeekday(t time.Time) bool { return t.Weekday() != time.Saturday && t.Weekday() != time.Sunday }

func readWeekday(item string) (predicate, error) {
	if item == "weekdays" {
		return isWeekday, nil
	}

	from, to, ranged := strings.Cut(item, " to ")
	if !ranged {
		to = from
	}

	first, ok1 := parseWeekday(strings.TrimSuffix(from, "s"))
	last, ok2 := parseWeekday(strings.TrimSuffix(to, "s"))
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("%q is no day of the week", item)
	}

	monday := func(d time.Weekday) int { return (int(d) + 6) % 7 }
	return func(t time.Time) bool {
		return monday(first) <= monday(t.Weekday()) && monday(t.Weekday()) <= monday(last)
	}, nil
}

func readOrdinal(text string) (int, error) {
	text, _ = strings.CutPrefix(text, "the ")
	n, err := strconv.Atoi(strings.TrimRight(text, "stndrh"))
	if err == nil && ordinal(n) != text {
		err = fmt.Errorf("%q is spelled wrong", text)
	}
	return n, err
}

var everyDayPattern = regexp.MustCompile(`^every (\d+..) day from (the \d+..) to (the \d+..)$`)

func readMonthday(item string) (predicate, error) {
	lastDay := func(t time.Time) int { return daysIn(t.Year(), t.Month()) }
	if item == "the last day" {
		return func(t time.Time) bool { return t.Day() == lastDay(t) }, nil
	}

	if item == "the last weekday" {
		return func(t time.Time) bool {
			for next := t.AddDate(0, 0, 1); next.Month() == t.Month(); next = next.AddDate(0, 0, 1) {
				if isWeekday(next) {
					return false
				}
			}
			return isWeekday(t)
		}, nil
	}

	if text, found := strings.CutPrefix(item, "the weekday nearest "); found {
		n, err := readOrdinal(text)
		return func(t time.Time) bool {
			day := time.Date(t.Year(), t.Month(), n, 0, 0, 0, 0, time.UTC)
			if day.Month() != t.Month() {
				return false
			}
			for _, off := range []int{0, -1, 1, -2, 2} {
				if near := day.AddDate(0, 0, off); near.Month() == t.Month() && isWeekday(near) {
					return near.Day() == t.Day()
				}
			}
			return false
		}, err
	}

	first, last, step := 0, 0, 1
	if m := everyDayPattern.FindStringSubmatch(item); m != nil {
		var errs [3]error
		step, errs[0] = readOrdinal(m[1])
		first, errs[1] = readOrdinal(m[2])
		last, errs[2] = readOrdinal(m[3])
		if errs != [3]error{} {
			return nil, fmt.Errorf("%q: %v", item, errs)
		}
	} else if set, err := readSet(item, readOrdinal); err == nil {
		return func(t time.Time) bool { return set[t.Day()] }, nil
	} else {
		week, name, _ := strings.Cut(strings.TrimPrefix(item, "the "), " ")
		day, ok := parseWeekday(name)
		nth := slices.Index(weekOrdinals[:], week)
		if !ok || nth < 0 && week != "last" {
			return nil, fmt.Errorf("%q is no day of the month", item)
		}
		return func(t time.Time) bool {
			if t.Weekday() != day {
				return false
			}
			return week == "last" && t.Day()+7 > lastDay(t) || (t.Day()-1)/7 == nth
		}, nil
	}

	return func(t time.Time) bool { return t.Day() >= first && t.Day() <= last && (t.Day()-first)%step == 0 }, nil
}
