package job

import (
	"testing"
	"time"
)

func TestCronWhereTheClockJumps(t *testing.T) {
	for name, c := range map[string]struct {
		expr, zone, from string
		want             []string
	}{
		"several civil times of a gap collapse into its end": {
			"0,20,40 2 * * *", "Europe/Berlin", "2026-03-28T03:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"}},
		"and into what is due there anyway": {
			"30 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00", "2026-03-30T02:30:00+02:00"}},
		"the gap's end counts once if it is due itself": {
			"0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"}},
		"a star in the hour takes both passes": {
			"30 * * * *", "Europe/Berlin", "2026-10-25T01:30:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00"}},
		"a star in the minute with a fixed hour takes both passes": {
			"*/30 2 * * *", "Europe/Berlin", "2026-10-25T01:30:00+02:00",
			[]string{
				"2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00",
				"2026-10-25T02:30:00+01:00", "2026-10-26T02:00:00+01:00",
			}},
		"and nothing of a gap": {
			"*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-30T02:00:00+02:00"}},
		"a star in the second does too": {
			"*/30 30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00+02:00",
			[]string{
				"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:30+02:00", "2026-10-25T02:30:00+01:00",
				"2026-10-25T02:30:30+01:00",
			}},
		"from inside the second pass, what was due in the first is over": {
			"0,30 2 * * *", "Europe/Berlin", "2026-10-25T02:10:00+01:00",
			[]string{"2026-10-26T02:00:00+01:00"}},
		"Lord Howe, half an hour forward": {
			"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
		"Lord Howe, half an hour back": {
			"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00+11:00",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"}},
		"Cairo has no midnight": {
			"0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00+02:00",
			[]string{"2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"}},
		"Santiago has no midnight": {
			"0 0 * * *", "America/Santiago", "2026-09-05T12:00:00-04:00",
			[]string{"2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"}},
		"Santiago shows eleven in the evening twice": {
			"30 23 * * *", "America/Santiago", "2026-04-04T12:00:00-03:00",
			[]string{"2026-04-04T23:30:00-03:00", "2026-04-05T23:30:00-04:00"}},
		"Asuncion had no midnight, on a Sunday only": {
			"0 0 * * 0", "America/Asuncion", "2023-09-30T12:00:00-04:00",
			[]string{"2023-10-01T01:00:00-03:00", "2023-10-08T00:00:00-03:00"}},
		"Apia skipped 30 December 2011: its times come at once": {
			"0 9,17 * * *", "Pacific/Apia", "2011-12-29T12:00:00-10:00",
			[]string{"2011-12-29T17:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00"}},
		"Apia, on that day only": {
			"0 9 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00-10:00",
			[]string{"2011-12-31T00:00:00+14:00", "2012-12-30T09:00:00+14:00"}},
		"Apia, by elapsed time": {
			"0 */12 * * *", "Pacific/Apia", "2011-12-29T11:00:00-10:00",
			[]string{"2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"}},
		"Casablanca goes back for Ramadan": {
			"30 2 * * *", "Africa/Casablanca", "2026-02-14T12:00:00+01:00",
			[]string{"2026-02-15T02:30:00+01:00", "2026-02-16T02:30:00Z"}},
		"Casablanca goes forward after it": {
			"30 2 * * *", "Africa/Casablanca", "2026-03-21T12:00:00Z",
			[]string{"2026-03-22T03:00:00+01:00", "2026-03-23T02:30:00+01:00"}},
		"Dublin's winter is its daylight saving": {
			"30 1 * * *", "Europe/Dublin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T02:00:00+01:00", "2026-03-30T01:30:00+01:00"}},
		"Dublin's repeat": {
			"30 1 * * *", "Europe/Dublin", "2026-10-24T12:00:00+01:00",
			[]string{"2026-10-25T01:30:00+01:00", "2026-10-26T01:30:00Z"}},
		"Troll jumps two hours": {
			"30 1,2 * * *", "Antarctica/Troll", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T01:30:00+02:00"}},
		"Chatham is 45 minutes off": {
			"0 3 * * *", "Pacific/Chatham", "2026-09-26T12:00:00+12:45",
			[]string{"2026-09-27T03:45:00+13:45", "2026-09-28T03:00:00+13:45"}},
		"Shanghai does not jump any more": {
			"30 2 * * *", "Asia/Shanghai", "2026-03-28T12:00:00+08:00",
			[]string{"2026-03-29T02:30:00+08:00", "2026-03-30T02:30:00+08:00"}},
		"Shanghai did until 1991": {
			"30 2 * * *", "Asia/Shanghai", "1991-04-13T12:00:00+08:00",
			[]string{"1991-04-14T03:00:00+09:00", "1991-04-15T02:30:00+09:00"}},

		"from the last day of a leap year, which package time gives an end in the past": {
			"0 12 1 7 *", "America/New_York", "2096-12-31T12:00:00-05:00",
			[]string{"2097-07-01T12:00:00-04:00", "2098-07-01T12:00:00-04:00"}},
		"the same by elapsed time": {
			"0 */12 31,1 12,7 *", "America/New_York", "2096-12-31T00:00:00-05:00",
			[]string{"2096-12-31T12:00:00-05:00", "2097-07-01T00:00:00-04:00", "2097-07-01T12:00:00-04:00"}},
	} {
		t.Run(name, func(t *testing.T) { wantFires(t, c.expr, c.zone, c.from, c.want...) })
	}
}

// Until 1972 Monrovia's clock was 44 minutes and 30 seconds slower than UTC; then it jumped to UTC.
func TestCronWhereOffsetsHaveSeconds(t *testing.T) {
	loc := zone(t, "Africa/Monrovia")
	before := time.Date(1972, 1, 6, 12, 0, 0, 0, loc)
	if _, offset := before.Zone(); offset != -(44*60 + 30) {
		t.Skipf("this zone data has another offset, %d s", offset)
	}

	at := transitionsOf(loc, before, before.AddDate(0, 0, 3))
	if len(at) != 1 {
		t.Fatalf("transitions at %v, want one", at)
	}

	for _, expr := range []string{"*/7 * * * *", "*/20 * * * * *", "10,50 0-23 * * *", "5,25 5,35 0,12,23 * * *",
		"0 0 * * *"} {
		compare(t, expr, loc, newWindow(loc, at[0]-13*3600, at[0]+13*3600, 1, 2*3600), at[0], at[0]-1)
	}

	wantFires(t, "0,15,30 0 7 1 *", "Africa/Monrovia", before.Format(time.RFC3339Nano), "1972-01-07T00:44:30Z",
		"1973-01-07T00:00:00Z")
}

func TestMark(t *testing.T) {
	for name, c := range map[string]struct {
		expr, zone, due string
		want            Mark
	}{
		"a usual day":                         {"30 2 * * *", "Europe/Berlin", "2026-03-28T02:30:00+01:00", Unmarked},
		"the end of a gap":                    {"30 2 * * *", "Europe/Berlin", "2026-03-29T03:00:00+02:00", Gap},
		"the end of a gap that took nothing":  {"0 3 * * *", "Europe/Berlin", "2026-03-29T03:00:00+02:00", Unmarked},
		"the end of a gap by elapsed time":    {"*/30 * * * *", "Europe/Berlin", "2026-03-29T03:00:00+02:00", Unmarked},
		"the only pass that counts":           {"30 2 * * *", "Europe/Berlin", "2026-10-25T02:30:00+02:00", Repeat},
		"the first pass":                      {"30 * * * *", "Europe/Berlin", "2026-10-25T02:30:00+02:00", Repeat},
		"the second pass":                     {"30 * * * *", "Europe/Berlin", "2026-10-25T02:30:00+01:00", Repeat},
		"before a repeat":                     {"30 * * * *", "Europe/Berlin", "2026-10-25T01:30:00+02:00", Unmarked},
		"the first time that is not repeated": {"0 * * * *", "Europe/Berlin", "2026-10-25T03:00:00+01:00", Unmarked},
		"the end of a skipped day":            {"0 9 * * *", "Pacific/Apia", "2011-12-31T00:00:00+14:00", Gap},
		"UTC":                                 {"0 * * * *", "UTC", "2026-10-25T03:00:00Z", Unmarked},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cron(t, c.expr, c.zone).Mark(instant(t, c.due)); got != c.want {
				t.Errorf("%q %s at %s: %q, want %q", c.expr, c.zone, c.due, got, c.want)
			}
		})
	}
}
