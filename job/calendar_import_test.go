package job

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var importNow = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// shown formats days as date..end=as!note, with a plus before included days.
func shown(d ImportedDays) string {
	var out []string
	for i, list := range [][]CalendarDay{d.Exclude, d.Include} {
		for _, d := range list {
			s := []string{"", "+"}[i] + d.Date
			if d.End != "" {
				s += ".." + d.End
			}
			if d.As != "" {
				s += "=" + d.As
			}
			if d.Note != "" {
				s += "!" + d.Note
			}
			out = append(out, s)
		}
	}

	return strings.Join(out, " ")
}

func TestParseCSV(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"dates alone": {"2027-01-01\n2027-12-25\n", "2027-01-01 2027-12-25"},
		"all columns": {
			"2027-02-05,2027-02-11,holiday,Spring Festival\n2027-02-06,,workday,work,mon\n12-25,,exclude,",
			"2027-02-05..2027-02-11!Spring Festival 12-25 +2027-02-06=mon!work",
		},
		"a header": {
			"Note, Date ,kind\nx,2027-01-01,open\n\"a, b\",2027-01-02,", "2027-01-02!a, b +2027-01-01!x",
		},
		"a header of synonyms": {"from;to;summary\n2027-01-01;2027-01-02;x", "2027-01-01..2027-01-02!x"},
		"a spreadsheet's": {
			"\ufeffdate,end,kind,note\r\n2027/2/6,2027/2/10,,春节\r\n20270301,,,\r\n,,,\r\n",
			"2027-02-06..2027-02-10!春节 2027-03-01",
		},
		"tabs and comments": {"# ours\n2027-01-01\t\t\tNew Year\n\n# the end", "2027-01-01!New Year"},
		"nothing":           {"", ""},
		"a header alone":    {"date,note\n", ""},
		"a long note": {
			"2027-01-01,,," + strings.Repeat("é", 200), "2027-01-01!" + strings.Repeat("é", 126) + "…",
		},
	} {
		got, err := ParseCSV([]byte(c.text))
		if err != nil || shown(got) != c.want {
			t.Errorf("%s: got %s, %v; want %s", name, shown(got), err, c.want)
		}
	}
}

func TestParseCSVRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, line, says string }{
		"a word as date":        {"2027-01-01\nNew Year", "line 2", "write it like 2027-02-06, or 12-25"},
		"a note as end":         {"2027-01-01,New Year", "line 1", "the columns are date, end, kind, note"},
		"another kind":          {"2027-01-01,,maybe", "line 1", "exclude or include"},
		"day first":             {"31.12.2027", "line 1", "is not a date"},
		"a day that is none":    {"2027/2/30", "line 1", "is not a date"},
		"too many columns":      {"2027-01-01,,,,,x", "line 1", "has 6 columns"},
		"an unknown column":     {"date,colour\n2027-01-01,red", "line 1", `"colour" is unknown`},
		"a column twice":        {"date,from\n2027-01-01,red", "line 1", "appears twice"},
		"as of a closed day":    {"2027-01-01,,,,mon", "line 1", "only be used with the kind include"},
		"as nothing":            {"2027-01-01,,open,,x", "line 1", "is not one of mon"},
		"a quote":               {"2027-01-01\n\"2027-01-02\nx", "line 3", "quote"},
		"another encoding":      {"2027-01-01\n2027-01-02,,,caf\xe9", "line 2", "UTF-8"},
		"the end first":         {"2027-01-02,2027-01-01", "line 1", "is before"},
		"more than a day holds": {strings.Repeat("2027-01-01\n", MaxCalendarDays+5), "line 10001", "has at most"},
		"too large":             {strings.Repeat("#", MaxCalendarSize+1), "file", "at most 1048576"},
	} {
		got, err := ParseCSV([]byte(c.text))
		var p Problems
		if !errors.As(err, &p) || len(p) == 0 || p[0].Field != c.line || !strings.Contains(p[0].Message, c.says) ||
			shown(got) != "" {
			t.Errorf("%s: got %s, %v; want a problem of %s that says %q, and nothing else", name, shown(got), err,
				c.line, c.says)
		}
	}

	_, err := ParseCSV([]byte(strings.Repeat("x\n", 1000)))
	if p := (Problems)(nil); !errors.As(err, &p) || len(p) != maxImportProblems || p[19].Field != "line 20" {
		t.Errorf("a thousand bad lines: got %v, want the first %d", err, maxImportProblems)
	}
}

func ics(events ...string) string {
	var s strings.Builder
	s.WriteString("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n")
	for _, e := range events {
		s.WriteString("BEGIN:VEVENT\r\n" + strings.ReplaceAll(e, "\n", "\r\n") + "\r\nEND:VEVENT\r\n")
	}
	return s.String() + "END:VCALENDAR\r\n"
}

func TestParseICS(t *testing.T) {
	t.Parallel()
	const from = "DTSTART;VALUE=DATE:"
	for name, c := range map[string]struct{ text, want string }{
		"a day":                    {ics(from + "20270101\nSUMMARY:New Year"), "2027-01-01!New Year"},
		"its end is not in it":     {ics(from + "20270205\nDTEND;VALUE=DATE:20270212"), "2027-02-05..2027-02-11"},
		"an end that is its start": {ics(from + "20270205\nDTEND;VALUE=DATE:20270205"), "2027-02-05"},
		"a duration": {
			ics(from+"20270205\nDURATION:P3D", from+"20270301\nDURATION:P1W"),
			"2027-02-05..2027-02-07 2027-03-01..2027-03-07",
		},
		"midnights": {
			ics("DTSTART;TZID=Europe/Berlin:20270101T000000\nDTEND;TZID=Europe/Berlin:20270103T000000"),
			"2027-01-01..2027-01-02",
		},
		"folded, escaped": {ics(from + "20270101\nSUMMARY:a\\, b\\n\n  \\;\n\tc"), "2027-01-01!a, b ;c"},
		"parameters":      {ics("DTSTART;X-A=\"a:b;c\";VALUE=DATE:20270101"), "2027-01-01"},
		"small letters":   {strings.ToLower(ics(from + "20270101")), "2027-01-01"},
		"bare line feeds": {strings.ReplaceAll(ics(from+"20270101"), "\r", ""), "2027-01-01"},
		"cancelled":       {ics(from+"20270101\nSTATUS:CANCELLED", from+"20270102\nSTATUS:CONFIRMED"), "2027-01-02"},
		"other components": {
			strings.Replace(ics(from+"20270101\nBEGIN:VALARM\nTRIGGER:-PT15M\nEND:VALARM"), "VERSION",
				"BEGIN:VTIMEZONE\r\nBEGIN:STANDARD\r\nDTSTART:16011028T030000\r\nRRULE:FREQ=HOURLY\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\nBEGIN:VTODO\r\nDTSTART:20270505T100000\r\nEND:VTODO\r\nVERSION", 1), "2027-01-01",
		},
		"make-up workdays": {
			ics(from+"20270101\nSUMMARY:元旦（休）", from+"20270103\nSUMMARY:元旦（班）"), "2027-01-01!元旦（休） +2027-01-03!元旦（班）",
		},
		"Apple's marks": {ics(from+"20270101\nX-APPLE-SPECIAL-DAY:WORK-HOLIDAY\nSUMMARY:a",
			from+"20270103\nX-APPLE-SPECIAL-DAY:ALTERNATE-WORKDAY\nSUMMARY:b",
			from+"20270115\nSUMMARY:a festival"), "2027-01-01!a +2027-01-03!b"},
		"every year": {
			ics(from + "20101225\nDTEND;VALUE=DATE:20101227\nRRULE:FREQ=YEARLY"), "12-25..12-26",
		},
		"every year, over its end": {
			ics(from + "20261230\nDTEND;VALUE=DATE:20270103\nRRULE:FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=30"),
			"12-30..01-02",
		},
		"leap days": {ics(from + "20240229\nRRULE:FREQ=YEARLY"), "02-29"},
		"every year for a while": {
			ics(from + "20270301\nRRULE:FREQ=YEARLY;UNTIL=20290301"), "2027-03-01 2028-03-01 2029-03-01",
		},
		"so many times": {
			ics(from + "20270301\nRRULE:FREQ=YEARLY;INTERVAL=2;COUNT=3"), "2027-03-01 2029-03-01 2031-03-01",
		},
		"but not then": {
			ics(from + "20270301\nRRULE:FREQ=YEARLY;COUNT=4\nEXDATE;VALUE=DATE:20280301,20290301"),
			"2027-03-01 2030-03-01",
		},
		"the last Monday of May": {
			ics(from + "20270531\nRRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO;COUNT=4"),
			"2027-05-31 2028-05-29 2029-05-28 2030-05-27",
		},
		"the fourth Thursday": {
			ics(from + "20261126\nRRULE:FREQ=YEARLY;BYDAY=4TH;BYMONTH=11;COUNT=3"), "2026-11-26 2027-11-25 2028-11-23",
		},
		"election days": {
			ics(from + "19961105\nRRULE:FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8;COUNT=3"),
			"1996-11-05 2000-11-07 2004-11-02",
		},
		"Fridays the 13th": {
			ics(from + "20270813\nRRULE:FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;COUNT=3"),
			"2027-08-13 2028-10-13 2029-04-13",
		},
		"the last day of the month": {
			ics(from + "20270131\nRRULE:FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=3"), "2027-01-31 2027-02-28 2027-03-31",
		},
		"the 31st, where there is": {
			ics(from + "20270131\nRRULE:FREQ=MONTHLY;COUNT=3"), "2027-01-31 2027-03-31 2027-05-31",
		},
		"the 20th Monday of a year": {
			ics(from + "19970519\nRRULE:FREQ=YEARLY;BYDAY=20MO;COUNT=3"), "1997-05-19 1998-05-18 1999-05-17",
		},
		"every other week": {
			ics(from + "19970902\nRRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,TH;WKST=SU"),
			"1997-09-02 1997-09-04 1997-09-16 1997-09-18",
		},
		"weeks begin on Monday": {
			ics(from + "19970805\nRRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO"),
			"1997-08-05 1997-08-10 1997-08-19 1997-08-24",
		},
		"weeks begin on Sunday": {
			ics(from + "19970805\nRRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU"),
			"1997-08-05 1997-08-17 1997-08-19 1997-08-31",
		},
		"every third day": {
			ics(from + "20270101\nRRULE:FREQ=DAILY;INTERVAL=3;UNTIL=20270108T120000Z"),
			"2027-01-01 2027-01-04 2027-01-07",
		},
		"until a midnight in Shanghai": {
			ics("DTSTART;TZID=China Standard Time:20270101T000000\nRRULE:FREQ=DAILY;UNTIL=20270102T160000Z"),
			"2027-01-01 2027-01-02 2027-01-03",
		},
		"until right before that": {
			ics("DTSTART;TZID=China Standard Time:20270101T000000\nRRULE:FREQ=DAILY;UNTIL=20270102T155959Z"),
			"2027-01-01 2027-01-02",
		},
		"until a midnight in New York": {
			ics("DTSTART;TZID=America/New_York:20270101T000000\nRRULE:FREQ=DAILY;UNTIL=20270103T050000Z"),
			"2027-01-01 2027-01-02 2027-01-03",
		},
		"until an evening there": {
			ics("DTSTART;TZID=America/New_York:20270101T000000\nRRULE:FREQ=DAILY;UNTIL=20270103T045959Z"),
			"2027-01-01 2027-01-02",
		},
		"until a local time": {
			ics("DTSTART:20270101T000000\nRRULE:FREQ=DAILY;UNTIL=20270103T000000"), "2027-01-01 2027-01-02 2027-01-03",
		},
		"two months": {
			ics(from + "20270105\nRRULE:FREQ=YEARLY;BYMONTH=1,7;COUNT=3"), "2027-01-05 2027-07-05 2028-01-05",
		},
		"long ago": {ics(from+"19500101", from+"19690102\nRRULE:FREQ=YEARLY;COUNT=3"), "1970-01-02 1971-01-02"},
	} {
		got, err := ParseICS(nil, []byte(c.text), importNow, "班")
		if err != nil || shown(got) != c.want {
			t.Errorf("%s: got %s, %v; want %s", name, shown(got), err, c.want)
		}
	}

	got,
		err := ParseICS(nil, []byte(
		ics(from+"20400101\nRRULE:FREQ=YEARLY", from+"20200228\nDTEND;VALUE=DATE:20200302\nRRULE:FREQ=YEARLY")),
		importNow, "")
	if err != nil || len(got.Exclude) != 60+80 || got.Exclude[0].Date != "2040-01-01" ||
		got.Exclude[139].Date != "2099-02-28" {
		t.Errorf("what no yearly entry can say: got %d days from %s, %v; want one for each year up to 2099",
			len(got.Exclude), shown(got), err)
	}

	got,
		err = ParseICS(nil, []byte(
		strings.Replace(ics(from+"20270101\nX-APPLE-SPECIAL-DAY:WORK-HOLIDAY", from+"20270115"), "VERSION:2.0",
			"X-WR-CALNAME:中国大陆节假日", 1)), importNow, "班")
	if err != nil || got.Ignored != 1 || got.Title != "中国大陆节假日" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestParseICSRefuses(t *testing.T) {
	t.Parallel()
	const from = "DTSTART;VALUE=DATE:"
	var rules []string
	for range maxRules + 1 {
		rules = append(rules, from+"20270101\nRRULE:FREQ=YEARLY;COUNT=1")
	}

	for name, c := range map[string]struct{ text, line, says string }{
		"a time of day":        {ics("DTSTART:20270101T090000Z"), "line 4", "has a time of day"},
		"midnight in UTC":      {ics("DTSTART:20270101T000000Z"), "line 4", "has a time of day"},
		"an end with a time":   {ics(from + "20270101\nDTEND:20270101T170000"), "line 5", "has a time of day"},
		"no start":             {ics("SUMMARY:x"), "line 3", "no DTSTART"},
		"two starts":           {ics(from + "20270101\n" + from + "20270102"), "line 5", "twice"},
		"a start that is none": {ics(from + "2027-01-01"), "line 4", "is not a date such as 20270206"},
		"a day that is none":   {ics(from + "20270230"), "line 4", "is not a date"},
		"years that are none":  {ics(from + "00010101"), "line 4", "between 1900 and 2099"},
		"the end first":        {ics(from + "20270102\nDTEND;VALUE=DATE:20270101"), "line 5", "ends before it begins"},
		"years of it":          {ics(from + "20270102\nDTEND;VALUE=DATE:20290101"), "line 3", "at most 366"},
		"hours of it":          {ics(from + "20270102\nDURATION:PT3H"), "line 5", "such as P3D"},
		"an unknown part": {
			ics("SUMMARY:x\n" + from + "20270101\nRRULE:FREQ=YEARLY;BYSETPOS=1"), "line 6",
			"BYSETPOS is not supported",
		},
		"every hour":   {ics(from + "20270101\nRRULE:FREQ=HOURLY"), "line 5", "FREQ=HOURLY is not one of"},
		"no frequency": {ics(from + "20270101\nRRULE:COUNT=3"), "line 5", "no FREQ"},
		"both bounds": {
			ics(from + "20270101\nRRULE:FREQ=YEARLY;COUNT=3;UNTIL=20280101"), "line 5", "both COUNT and UNTIL",
		},
		"twice": {
			ics(from + "20270101\nRRULE:FREQ=YEARLY;COUNT=3;COUNT=3"), "line 5", "has COUNT twice",
		},
		"an n-th day of a week": {
			ics(from + "20270101\nRRULE:FREQ=WEEKLY;BYDAY=2MO"), "line 5", "cannot be used with FREQ=WEEKLY",
		},
		"a weekday of none": {
			ics(from + "20270101\nRRULE:FREQ=WEEKLY;BYDAY=XX"), "line 5", "write it like MO, 2MO or -1MO",
		},
		"a month of none":     {ics(from + "20270101\nRRULE:FREQ=YEARLY;BYMONTH=13"), "line 5", "from 1 to 12"},
		"an interval of none": {ics(from + "20270101\nRRULE:FREQ=YEARLY;INTERVAL=0"), "line 5", "from 1 to 99999"},
		"a changed occurrence": {
			ics(from + "20270101\nRECURRENCE-ID;VALUE=DATE:20270101"), "line 5", "RECURRENCE-ID is not supported",
		},
		"dates beside the rule": {
			ics(from + "20270101\nRDATE;VALUE=DATE:20280101"), "line 5", "RDATE is not supported",
		},
		"an exception of none": {ics(from + "20270101\nRRULE:FREQ=YEARLY\nEXDATE:x"), "line 6", "EXDATE"},
		"no calendar":          {"", "line 1", "no BEGIN:VCALENDAR"},
		"a CSV file":           {"2027-01-01,,x\n", "line 1", "is not an iCalendar property"},
		"a page of the web":    {"<!DOCTYPE html>\n<p>Not found: it is gone</p>", "line 1", "is not an iCalendar property"},
		"events alone":         {"BEGIN:VEVENT\nEND:VEVENT", "line 1", "outside of a VCALENDAR"},
		"a torn file": {
			"BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + from + "20270101\n", "line 3", "ends inside VEVENT",
		},
		"an end of nothing": {"BEGIN:VCALENDAR\nEND:VEVENT", "line 2", "without a beginning"},
		"very deep":         {strings.Repeat("BEGIN:VCALENDAR\n", 100), "line 9", "nested"},
		"very many rules":   {ics(rules...), "line 2005", "more than 500"},
		"too many days":     {ics(from+"20200101\nRRULE:FREQ=DAILY", from+"20200101"), "line 3", "has at most"},
		"another encoding":  {"BEGIN:VCALENDAR\n\xff", "line 2", "UTF-8"},
	} {
		got, err := ParseICS(nil, []byte(c.text), importNow, "班")
		var p Problems
		if !errors.As(err, &p) || len(p) == 0 || p[0].Field != c.line || !strings.Contains(p[0].Message, c.says) ||
			shown(got) != "" {
			t.Errorf("%s: got %s, %v; want a problem of %s that says %q, and nothing else", name, shown(got), err,
				c.line, c.says)
		}
	}
}

// imported holds what must be true of whatever comes of a file.
func imported(t *testing.T, got ImportedDays, err error, took time.Duration) {
	t.Helper()
	if took > 10*time.Second {
		t.Fatalf("it took %s", took)
	}
	if err != nil {
		var p Problems
		if !errors.As(err, &p) || len(p) == 0 || len(p) > maxImportProblems || shown(got) != "" {
			t.Fatalf("got %+v with %v", got, err)
		}
		for _, q := range p {
			if !regexp.MustCompile(`^(line [1-9]\d*|file)$`).MatchString(q.Field) || q.Message == "" ||
				len(q.Message) > 400 {
				t.Fatalf("the problem %q: %q is of no use", q.Field, q.Message)
			}
		}
		return
	}

	c := CalendarSpec{Name: "x", Exclude: got.Exclude, Include: got.Include}
	c.Defaults()
	if p := (Problems)(nil); errors.As(c.Validate(), &p) &&
		!slices.ContainsFunc(p, func(q Problem) bool { return q.Field == "calendar" }) {
		t.Fatalf("it is no calendar: %v", p)
	}
}

func FuzzParseCSV(f *testing.F) {
	for _, seed := range []string{"2027-01-01,2027-01-03,holiday,\"a, b\"\n", "date;note\n12-25;x",
		"# x\n\n2027/2/6\t\tworkday\t\tmon", "kind,as,date\nopen,workday,02-29"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		began := time.Now()
		got, err := ParseCSV(text)
		imported(t, got, err, time.Since(began))
	})
}

func FuzzParseICS(f *testing.F) {
	const from = "DTSTART;VALUE=DATE:20270101\n"
	for _, seed := range []string{
		ics(from+"DTEND;VALUE=DATE:20270103\nSUMMARY:x 班",
			from+"RRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO,2TU;UNTIL=20400101\nEXDATE:20270531"),
		ics(from+"RRULE:FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=-1,15;COUNT=9",
			from+"DURATION:P2W\nX-APPLE-SPECIAL-DAY:ALTERNATE-WORKDAY"),
		ics(from+"RRULE:FREQ=WEEKLY;BYDAY=SA,SU;WKST=SU",
			"DTSTART;TZID=\"a:b\":20270101T000000\nRRULE:FREQ=DAILY;INTERVAL=400"),
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, text []byte) {
		began := time.Now()
		got, err := ParseICS(nil, text, importNow, "班")
		imported(t, got, err, time.Since(began))
	})
}

func BenchmarkWorstICS(b *testing.B) {
	var events []string
	for range maxRules {
		events = append(events,
			fmt.Sprintf("DTSTART;VALUE=DATE:%d0101\nRRULE:FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30", firstEventYear))
	}

	text := []byte(ics(events...))
	for b.Loop() {
		if _, err := ParseICS(nil, text, importNow, ""); err != nil {
			b.Fatal(err)
		}
	}
}
