package api_test

import (
	"strings"
	"testing"
)

// TestClosedDays follows on_closed and weeks through next, preview, upcoming and explain.
func TestClosedDays(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.call("PUT", "/api/v1/calendars/c", `{"exclude_weekdays": ["sat", "sun"]}`).want(201)
	body := object{
		"schedule": "0 9 * * SUN", "timezone": "Europe/Berlin", "calendars": []string{"c"}, "on_closed": "next",
		"weeks": object{"every": 2, "from": "2031-05-07"},
	}
	id := s.create("j", body).text("id")
	const want = "2031-05-12T09:00:00+02:00=moved from 2031-05-11T09:00:00+02:00 " +
		"2031-05-26T09:00:00+02:00=moved from 2031-05-25T09:00:00+02:00 "
	shown := func(o object, field string) (out string) {
		for _, item := range o.items(field) {
			out += item.text("due") + "=" + item.text("mark") + " from " + item.text("moved_from") + " "
		}
		return out
	}

	if got := shown(s.call("GET", "/api/v1/jobs/"+id+"/next?n=2", nil).want(200).object(), "items"); got != want {
		t.Errorf("next: got %s, want %s", got, want)
	}

	body["n"] = 2
	preview := s.call("POST", "/api/v1/preview", body).want(200).object()
	if got := shown(preview, "next"); got != want {
		t.Errorf("preview: got %s, want %s", got, want)
	}

	if words := preview.text("words"); !strings.Contains(words, "every second week from that of 2031-05-07 on") ||
		!strings.Contains(words, `moved to the next open day of the calendar "c"`) {
		t.Errorf("got the words %s", words)
	}

	for at, says := range map[string][3]string{
		"2031-05-11T07:00:00Z": {"calendar", "Sunday is off. It moves to 2031-05-12T09:00:00+02:00", "2031-05-12T09:00:00+02:00"},
		"2031-05-18T07:00:00Z": {"weeks", "(weeks: every 2 weeks from 2031-05-07)", ""},
		"2031-05-12T07:00:00Z": {"ahead", "it is due in", ""},
		"2031-05-13T07:00:00Z": {"not_due", "not a due time", ""},
	} {
		e := s.call("GET", "/api/v1/jobs/"+id+"/explain?at="+at, nil).want(200).object()
		if e.text("cause") != says[0] || !strings.Contains(e.text("answer"), says[1]) {
			t.Errorf("%s: got %v, want %q", at, e, says)
		}
		if says[2] != "" && e.text("calendar", "moved_to") != says[2] {
			t.Errorf("%s: got %v, want moved_to %s", at, e, says[2])
		}
	}

	s.call("POST", "/api/v1/preview", `{"schedule": "@daily", "on_closed": "next"}`).want(422)
	s.call("POST", "/api/v1/preview", `{"schedule": "@daily", "weeks": {"every": 2}}`).want(422)
	for field, change := range map[string]object{
		"on_closed":   {"calendars": nil},
		"weeks.every": {"weeks": object{"every": 521}},
		"weeks.from":  {"weeks": object{"from": "05-05"}},
		"weeks":       {"schedule": nil, "timezone": nil, "every": "1h"},
	} {
		if r := s.call("PATCH", "/api/v1/jobs/"+id, change).want(422); !strings.Contains(r.body, `"field":"`+field+`"`) &&
			!strings.Contains(r.body, `"field": "`+field+`"`) {
			t.Errorf("%s: got %s", field, r.body)
		}
	}
}
