package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

const cnHolidays = `{"timezone": "beijing", "exclude_weekdays": ["Sunday", "sat"], "description": "2027",
	"exclude": [{"date": "2027-02-05", "end": "2027-02-11", "note": "Spring Festival"}, "05-01", "2027-10-01..2027-10-07"],
	"include": [{"date": "2027-02-13", "note": "调休"}]}`

func TestCalendars(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const path = "/api/v1/calendars/cn%20%E5%81%87"
	r := s.call("PUT", path, cnHolidays).want(201)
	if got := r.header.Get("Location"); got != path {
		t.Errorf("Location is %q", got)
	}

	c := r.object()
	for field, want := range map[string]string{
		"name": "cn 假", "timezone": "Asia/Shanghai", "description": "2027", "exclude_weekdays": "[sat sun]",
		"jobs": "0", "version": "1",
		"exclude": "[map[date:2027-02-05 end:2027-02-11 note:Spring Festival] map[date:05-01] map[date:2027-10-01 end:2027-10-07]]",
		"include": "[map[date:2027-02-13 note:调休]]", "hours": "", "error": "",
	} {
		if got := c.text(field); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}

	if got := s.call("GET", path, nil).want(200).body; got != r.body {
		t.Errorf("GET: got %s, want what PUT answered", got)
	}

	// The answer of GET can be edited and sent back; the same again changes nothing.
	c["hours"] = object{"only": []string{"mon-fri 08:00-18:00"}}
	if got := s.call("PUT", path, c).want(200).object(); got.text("version") != "2" ||
		got.text("hours") != "map[only:[mon-fri 08:00-18:00]]" {
		t.Errorf("edited: got %v", got)
	}

	if got := s.call("PUT", path, c).want(200).object(); got.text("version") != "2" {
		t.Errorf("the same again: got %v", got)
	}

	s.call("POST", "/api/v1/calendars", `{"name": "b"}`).want(201)
	if r := s.call("POST", "/api/v1/calendars", `{"name": "b"}`).want(409); !strings.Contains(r.body,
		"replace it with PUT") {
		t.Errorf("got %s", r.body)
	}

	id := s.create("j", object{"schedule": "0 9 * * 1-5", "timezone": "Asia/Shanghai",
		"calendars": []string{"cn 假"}}).text("id")
	if items := s.call("GET", "/api/v1/calendars?limit=1", nil).want(200).object().items("items"); len(items) != 1 ||
		items[0].text("name") != "cn 假" ||
		items[0].text("jobs") != "1" || items[0].text("excludes") != "3" || items[0].text("includes") != "1" ||
		items[0].text("timezone") != "Asia/Shanghai" {
		t.Errorf("the list: got %v", items)
	}

	if ids, items := s.walk("/api/v1/calendars?limit=1"); len(ids) != 2 || items[1].text("name") != "b" {
		t.Errorf("the whole list: got %v", items)
	}

	if r := s.call("DELETE", path, nil).want(409); !strings.Contains(r.body, "in-use") ||
		!strings.Contains(r.body, "default/j") {
		t.Errorf("deleted in use: got %s", r.body)
	}

	s.call("PATCH", "/api/v1/jobs/"+id, `{"calendars": null}`).want(200)
	s.call("DELETE", path, nil).want(204)
	s.call("DELETE", path, nil).want(404)
	if r := s.call("GET", path, nil).want(404); !strings.Contains(r.body, "create it with PUT") {
		t.Errorf("got %s", r.body)
	}
}

// TestWhatCalendarsDo checks that next, preview, explain and days agree.
func TestWhatCalendarsDo(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.call("PUT", "/api/v1/calendars/cn", cnHolidays).want(201)
	body := object{"schedule": "0 9 * * 1-5", "timezone": "Asia/Shanghai", "calendars": []string{"cn"}}
	id := s.create("j", body).text("id")
	const want = "2027-02-04T09:00:00+08:00 2027-02-12T09:00:00+08:00 2027-02-13T09:00:00+08:00=makeup 2027-02-15T09:00:00+08:00 "
	shown := func(o object, field string) (out string) {
		for _, item := range o.items(field) {
			out += item.text("due")
			if m := item.text("mark"); m != "" {
				out += "=" + m
			}
			out += " "
		}
		return out
	}

	if got := shown(s.call("GET", "/api/v1/jobs/"+id+"/next?from=2027-02-04T00:00:00Z&n=4", nil).want(200).object(),
		"items"); got != want {
		t.Errorf("next: got %s, want %s", got, want)
	}

	body["from"], body["n"] = "2027-02-04T00:00:00Z", 4
	if got := shown(s.call("POST", "/api/v1/preview", body).want(200).object(), "next"); got != want {
		t.Errorf("preview: got %s, want %s", got, want)
	}

	for at, says := range map[string]string{
		"2027-02-08T09:00:00+08:00": "calendar cn excludes it: Spring Festival",
		"2028-05-01T09:00:00+08:00": "calendar cn excludes it: 05-01",
		"2027-02-13T09:00:00+08:00": "it is due in",
	} {
		e := s.call("GET", "/api/v1/jobs/"+id+"/explain?at="+strings.ReplaceAll(at, "+", "%2B"), nil).want(200).object()
		if !strings.Contains(e.text("answer"), says) {
			t.Errorf("%s: got %v, want %q", at, e, says)
		}
		if closed := strings.Contains(says, "excludes"); closed != (e.text("cause") == "calendar" &&
			e.text("calendar", "name") == "cn") {
			t.Errorf("%s: got cause %s, calendar %s", at, e.text("cause"), e.text("calendar"))
		}
	}

	days := s.call("GET", "/api/v1/calendars/cn/days?from=2027-02-10&to=2027-02-14",
		nil).want(200).object().items("items")
	got := ""
	for _, d := range days {
		got += fmt.Sprintf("%s %s %s %s %s; ", d.text("date"), d.text("weekday"), d.text("state"), d.text("as"),
			d.text("why"))
	}

	const wantDays = "2027-02-10 wed closed  Spring Festival; 2027-02-11 thu closed  Spring Festival; 2027-02-12 fri open  ; 2027-02-13 sat makeup mon-fri 调休; 2027-02-14 sun closed  Sunday is off; "
	if got != wantDays {
		t.Errorf("days: got %s, want %s", got, wantDays)
	}

	if days := s.call("GET", "/api/v1/calendars/cn/days", nil).want(200).object().items("items"); len(days) != 31 ||
		days[0].text("date") < s.node.Now().Add(-24*time.Hour).Format(time.DateOnly) {
		t.Errorf("days from today on: got %d from %v", len(days), days[0])
	}

	// A broken calendar only breaks requests for due times of its jobs.
	if _, err := s.db.Raw().Exec(`UPDATE calendar SET spec = '{"name":"cn","new":1}'`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Raw().Exec(`UPDATE calendar SET digest = UNHEX(SHA2(spec, 256))`); err != nil {
		t.Fatal(err)
	}

	for _, path := range []string{"/api/v1/jobs/" + id + "/next", "/api/v1/calendars/cn/days"} {
		if r := s.call("GET", path, nil).want(409); !strings.Contains(r.body, "unreadable") {
			t.Errorf("%s: got %s", path, r.body)
		}
	}

	if c := s.call("GET", "/api/v1/calendars/cn", nil).want(200).object(); !strings.Contains(c.text("error"),
		"unknown field") {
		t.Errorf("got %v", c)
	}

	s.call("GET", "/api/v1/jobs/"+id, nil).want(200)
	s.call("PUT", "/api/v1/calendars/cn", cnHolidays).want(200)
	s.call("GET", "/api/v1/jobs/"+id+"/next", nil).want(200)
}

func TestImportCalendar(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.call("PUT", "/api/v1/calendars/c", `{"exclude_weekdays": ["sun"], "exclude": ["12-25"]}`).want(201)
	const csv = "date,end,kind,note\n2027-02-05,2027-02-11,,Spring Festival\n2027-02-13,,workday,\n"
	imported := func(r *reply) string {
		o := r.object()
		return fmt.Sprintf("%s %s %s %s", o.text("exclude"), o.text("include"), o.text("exclude_weekdays"),
			o.text("imported"))
	}

	for _, c := range []struct {
		path, body, media string
		status            int
		want              string
	}{
		{
			"c/import?mode=add", csv, "text/csv; charset=utf-8", 200,
			"[map[date:12-25] map[date:2027-02-05 end:2027-02-11 note:Spring Festival]] [map[date:2027-02-13]] [sun] map[excludes:1 includes:1]",
		},
		{
			"c/import?format=csv", "2027-01-01", "text/plain", 200,
			"[map[date:2027-01-01]]  [sun] map[excludes:1 includes:0]",
		},
		{"new/import",
			"BEGIN:VCALENDAR\nX-WR-CALNAME:ours\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20271225\nRRULE:FREQ=YEARLY;COUNT=2\nSUMMARY:work\nEND:VEVENT\nEND:VCALENDAR", "text/calendar", 201,
			"[map[date:2027-12-25 note:work] map[date:2028-12-25 note:work]]   map[excludes:2 includes:0]"},
		{"new/import?format=ics&workday=work",
			"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20271225\nSUMMARY:work\nEND:VEVENT\nEND:VCALENDAR",
			"application/octet-stream", 200,
			" [map[date:2027-12-25 note:work]]  map[excludes:0 includes:1]"},
		{
			"c/import?dry_run=true", "2028-01-01", "text/csv", 200,
			"[map[date:2028-01-01]]  [sun] map[excludes:1 includes:0]",
		},
	} {
		r := s.call("POST", "/api/v1/calendars/"+c.path, c.body, "Content-Type", c.media)
		if r.status != c.status || imported(r) != c.want {
			t.Errorf("%s: got %d %s, want %d %s", c.path, r.status, imported(r), c.status, c.want)
		}
	}

	if c := s.call("GET", "/api/v1/calendars/c", nil).object(); c.text("version") != "3" ||
		c.text("exclude") != "[map[date:2027-01-01]]" {
		t.Errorf("after all: got %v; a dry run changes nothing", c)
	}

	if c := s.call("GET", "/api/v1/calendars/new", nil).object(); c.text("description") != "ours" {
		t.Errorf("got %v", c)
	}

	r := s.call("POST", "/api/v1/calendars/c/import?format=csv", "2027-01-02\n2027-13-01\n,x\n").want(422)
	if p := r.object().items("errors"); len(p) != 2 || p[0].text("field") != "line 2" ||
		p[1].text("field") != "line 3" {
		t.Errorf("got %s", r.body)
	}

	s.call("GET", "/api/v1/calendars/c", nil).want(200)
	if c := s.call("GET", "/api/v1/calendars/c", nil).object(); c.text("version") != "3" {
		t.Errorf("of a bad file something was taken: %v", c)
	}

	// Concurrent imports lose nothing.
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			r := s.call("POST", "/api/v1/calendars/c/import?format=csv&mode=add", fmt.Sprintf("2028-03-%02d", i+1))
			if r.status != 200 {
				t.Errorf("got %d %s", r.status, r.body)
			}
		})
	}

	all.Wait()
	if c := s.call("GET", "/api/v1/calendars/c", nil).object(); len(c.items("exclude")) != 9 {
		t.Errorf("got %v, want 9 days", c.text("exclude"))
	}
}

func TestBadCalendars(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.call("PUT", "/api/v1/calendars/c", `{}`).want(201)
	put := func(body string, status int, problem, field, says string) bad {
		return bad{"PUT", "/api/v1/calendars/c", body, nil, status, problem, field, says}
	}
	long := strings.Repeat(`"2027-01-01",`, 10_000) + `"2027-01-01"`
	for name, b := range map[string]bad{
		"no object": put(`[]`, 422, "invalid", "body", "is a list"),
		"an unknown field": put(`{"excludes_weekdays": []}`, 422, "invalid", "excludes_weekdays",
			"did you mean exclude_weekdays?"),
		"another name":           put(`{"name": "d"}`, 422, "invalid", "name", "cannot be renamed"),
		"days that are no list":  put(`{"exclude": "2027-01-01"}`, 422, "invalid", "exclude", "must be a list of days"),
		"a day that is a number": put(`{"exclude": [20270101]}`, 422, "invalid", "exclude[0]", "must be a day such as"),
		"a day that there is not": put(`{"exclude": ["2027-01-01", {"date": "2027-02-30"}]}`, 422, "invalid",
			"exclude[1].date", "is not a date"),
		"a typo in a day": put(`{"include": [{"dates": "2027-02-03"}]}`, 422, "invalid", "include[0].dates",
			"did you mean date?"),
		"a range of text": put(`{"exclude": ["2027-01-05..2027-01-01"]}`, 422, "invalid", "exclude[0].end",
			"is before"),
		"too many days": put(`{"exclude": [`+long+`]}`, 422, "invalid", "exclude", "at most 10000"),
		"hours":         put(`{"hours": {"only": ["late"]}}`, 422, "invalid", "hours.only[0]", "08:00-18:00"),
		"another zone": put(`{"timezone": "CST"}`, 422, "invalid", "timezone",
			"America/Chicago or Asia/Shanghai"),
		"very large": put(`{"description": "`+strings.Repeat("x", 2<<20)+`"}`, 413, "too-large", "",
			"2097152"),
		"a field of the server": {
			"POST", "/api/v1/calendars", `{"name": "x", "version": 3}`, nil, 422, "invalid", "version",
			"set by the server",
		},
		"no name": {"POST", "/api/v1/calendars", `{}`, nil, 422, "invalid", "name", "is empty"},
		"days backwards": {
			"GET", "/api/v1/calendars/c/days?from=2027-02-02&to=2027-02-01", nil, nil, 422, "invalid", "to",
			"before from",
		},
		"years of days": {
			"GET", "/api/v1/calendars/c/days?from=2027-02-02&to=2037-02-01", nil, nil, 422, "invalid", "to",
			"at most 1098",
		},
		"days of a word": {
			"GET", "/api/v1/calendars/c/days?from=today", nil, nil, 422, "invalid", "from", "such as 2027-02-01",
		},
		"days of none": {"GET", "/api/v1/calendars/d/days", nil, nil, 404, "not-found", "", "no calendar"},
		"a file of no kind": {
			"POST", "/api/v1/calendars/c/import", `{}`, nil, 415, "unsupported-media-type", "", "?format=csv",
		},
		"a format of none": {
			"POST", "/api/v1/calendars/c/import?format=xls", `{}`, nil, 422, "invalid", "format", "ics, csv",
		},
		"an empty dry_run": {
			"POST", "/api/v1/calendars/c/import?format=csv&dry_run=", "2027-01-01", nil, 422, "invalid", "dry_run", "is empty",
		},
		"a large file": {
			"POST", "/api/v1/calendars/c/import?format=csv", strings.Repeat("#", 1<<20+1), nil, 413, "too-large", "",
			"1048576",
		},
		"a file into a bad name": {
			"POST", "/api/v1/calendars/%07/import?format=csv", "2027-01-01", nil, 422, "invalid", "name",
			"control character",
		},
		"a job's calendar": {
			"POST", "/api/v1/jobs", `{"name": "x", "command": "true", "schedule": "@daily", "calendars": ["c", "nix"]}`,
			nil, 422, "invalid", "calendars[1]", "there is no calendar",
		},
		"a job's calendars": {
			"POST", "/api/v1/jobs", `{"name": "x", "command": "true", "schedule": "@daily", "calendars": "c"}`, nil,
			422, "invalid", "calendars", "a list of texts",
		},
		"a previewed calendar": {
			"POST", "/api/v1/preview", `{"schedule": "@daily", "calendars": ["nix"]}`, nil, 422, "invalid",
			"calendars[0]", "there is no calendar",
		},
		"nine previewed ones": {
			"POST", "/api/v1/preview", `{"schedule": "@daily", "calendars": ["a","b","c","d","e","f","g","h","i"]}`,
			nil, 422, "invalid", "calendars[0]", "there is no calendar",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.call(b.method, b.path, b.body, b.header...)
			p := r.object()
			if r.status != b.status || !strings.HasSuffix(p.text("type"), ":"+b.problem) ||
				!strings.Contains(r.body, b.says) {
				t.Fatalf("got %d %.300s, want %d %s that says %q", r.status, r.body, b.status, b.problem, b.says)
			}
			if errs := p.items("errors"); b.field != "" && (len(errs) == 0 || errs[0].text("field") != b.field) {
				t.Errorf("got %.300s, want the field %s", r.body, b.field)
			}
		})
	}

	if c := s.call("GET", "/api/v1/calendars/c", nil).want(200).object(); c.text("version") != "1" {
		t.Errorf("something was taken: %v", c)
	}
}

// TestPreviewOfJitter: a preview with the names of a job shows the job's real due times.
func TestPreviewOfJitter(t *testing.T) {
	s := start(t, nil)
	id := s.create("shifted", object{"app": "ops", "schedule": "0 3 * * *", "jitter": "1h"}).text("id")
	due := func(o object, field string) string { return o.items(field)[0].text("due") }
	const from = "2027-02-04T00:00:00Z"
	want := due(s.call("GET", "/api/v1/jobs/"+id+"/next?n=1&from="+from, nil).want(200).object(), "items")
	body := object{"schedule": "0 3 * * *", "jitter": "1h", "from": from, "n": 1}
	if got := due(s.call("POST", "/api/v1/preview", body).want(200).object(), "next"); got == want {
		t.Errorf("without its names: got %s too", got)
	}

	body["app"], body["name"] = "ops", "shifted"
	if got := due(s.call("POST", "/api/v1/preview", body).want(200).object(), "next"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
