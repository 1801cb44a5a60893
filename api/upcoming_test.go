package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/auth"
)

// ahead makes jobs that are due at known times.
func ahead(t *testing.T) *site {
	t.Helper()
	s := start(t, nil)
	s.create("daily", object{
		"schedule": "30 2 * * *", "timezone": "Europe/Berlin", "app": "shop", "labels": object{"team": "data"},
		"description": "a; b, c\\d",
	})

	s.create("hourly", object{"schedule": "0 * * * *"})
	s.create("minutely", object{"schedule": "* * * * *", "app": "shop"})
	s.create("resting", object{"schedule": "* * * * *", "paused": true})
	s.create("never", object{"schedule": "0 0 1 1 *"})
	return s
}

func TestUpcoming(t *testing.T) {
	t.Parallel()
	s := ahead(t)
	span := "from=2027-03-28T00:00:00Z&to=2027-03-28T03:00:00Z" // the night in which Berlin's clocks go forward
	_, items := s.walk("/api/v1/upcoming?limit=200&" + span)
	if len(items) != 1+3+180 {
		t.Fatalf("got %d due times", len(items))
	}

	if !slices.IsSortedFunc(items, func(a, b object) int {
		x, _ := time.Parse(time.RFC3339, a.text("due"))
		y, _ := time.Parse(time.RFC3339, b.text("due"))
		return x.Compare(y)
	}) {
		t.Error("they are not in order")
	}

	var daily object
	for _, o := range items {
		if o.text("job") == "daily" {
			daily = o
		}
	}

	if daily.text("due") != "2027-03-28T03:00:00+02:00" || daily.text("mark") != "gap" || daily.text("app") != "shop" ||
		daily.text("timezone") != "Europe/Berlin" {
		t.Errorf("got %v", daily)
	}

	// Paging returns each due time once, even if several are at the same instant.
	for _, limit := range []int{1, 7} {
		short := "from=2027-03-28T00:55:00Z&to=2027-03-28T01:05:00Z"
		_, whole := s.walk("/api/v1/upcoming?limit=200&" + short)
		_, pages := s.walk(fmt.Sprintf("/api/v1/upcoming?limit=%d&%s", limit, short))
		if fmt.Sprint(whole) != fmt.Sprint(pages) || len(whole) != 12 {
			t.Errorf("by %d: got %d, want %d", limit, len(pages), len(whole))
		}
	}

	for filter, want := range map[string]int{"app=shop": 181, "label=team=data": 1, "name=our": 3, "app=none": 0} {
		if _, got := s.walk("/api/v1/upcoming?limit=200&" + filter + "&" + span); len(got) != want {
			t.Errorf("%s: got %d, want %d", filter, len(got), want)
		}
	}

	few := s.call("GET", "/api/v1/upcoming?most=3&"+span, nil).want(200).object()
	if len(few.items("items")) != 4 || few.text("frequent_count") != "1" ||
		few.items("frequent")[0].text("job") != "minutely" || few.items("frequent")[0].text("count") != "180" {
		t.Errorf("with at most three of each: got %v", few)
	}

	limited := s.as(s.newToken("reader", auth.Viewer, "shop"))
	if _, got := limited.walk("/api/v1/upcoming?limit=200&" + span); len(got) != 181 {
		t.Errorf("who sees one app: got %d", len(got))
	}

	if n := limited.call("GET", "/api/v1/upcoming/counts?step=hour&"+span,
		nil).want(200).object(); n.text("total") != "181" || n.text("jobs") != "2" {
		t.Errorf("who sees one app: got %v", n)
	}

	if _, got := s.walk("/api/v1/upcoming?to=" + url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339)) +
		"&name=hourly"); len(got) > 1 {
		t.Errorf("from now on: got %v", got)
	}
}

func TestUpcomingCounts(t *testing.T) {
	t.Parallel()
	s := ahead(t)
	span := "from=2027-03-28T00:00:00Z&to=2027-03-28T03:00:00Z"
	for step, want := range map[string]string{"hour": "[61 62 61]", "day": "[184]", "": "[61 62 61]"} {
		got := s.call("GET", "/api/v1/upcoming/counts?"+span+"&step="+step, nil).want(200).object()
		if want == "[184]" { // to the end of the last step
			if got.text("counts") != "[1465]" || got.text("to") != "2027-03-29T00:00:00Z" {
				t.Errorf("by day: got %v", got)
			}
			continue
		}

		if got.text("counts") != want || got.text("total") != "184" || got.text("jobs") != "3" ||
			got.text("step") != "hour" {
			t.Errorf("by %q: got %v, want %s", step, got, want)
		}
	}

	if few := s.call("GET", "/api/v1/upcoming/counts?most=3&"+span,
		nil).want(200).object(); few.text("counts") != "[1 2 1]" || few.text("frequent_count") != "1" {
		t.Errorf("without the frequent ones: got %v", few)
	}

	minutes := s.call("GET", "/api/v1/upcoming/counts?step=minute&"+span, nil).want(200).object()
	if list := minutes["counts"].([]any); len(list) != 180 || fmt.Sprint(list[0]) != "2" ||
		fmt.Sprint(list[1]) != "1" || fmt.Sprint(list[60]) != "3" {
		t.Errorf("by minute: got %v", list)
	}

	for query, field := range map[string]string{
		"from=2027-03-28T00:00:00Z&to=2027-03-28T00:00:00Z":             "to",
		"from=2027-03-28T00:00:00Z&to=2029-03-28T00:00:00Z":             "to",
		"from=2027-03-01T00:00:00Z&to=2027-03-28T00:00:00Z&step=minute": "step",
		"step=week":     "step",
		"from=tomorrow": "from",
	} {
		problem := s.call("GET", "/api/v1/upcoming/counts?"+query, nil).want(422).object()
		if got := problem.items("errors")[0].text("field"); got != field {
			t.Errorf("%s: got %v, want a problem with %s", query, problem, field)
		}
	}
}

// feed requests the calendar as a calendar program does.
func (s *site) feed(path, password string) (status int, body string, challenges []string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "GET", s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if password != "" {
		r.SetBasicAuth("calendar", password)
	}

	resp, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header.Values("WWW-Authenticate")
}

func TestUpcomingFeed(t *testing.T) {
	t.Parallel()
	s := ahead(t)
	viewer := s.newToken("calendar", auth.Viewer, "shop")
	status, text, _ := s.feed("/api/v1/upcoming.ics?days=3", viewer)
	if status != 200 || strings.Contains(text, "hourly") || strings.Contains(text, "resting") {
		t.Fatalf("%d %s", status, text)
	}

	events := strings.Count(text, "BEGIN:VEVENT\r\n")
	whole := strings.Count(text, "DTSTART;VALUE=DATE:")
	if whole != 3 || events < 5 || events > 6 || strings.Count(text, "END:VEVENT\r\n") != events ||
		!strings.HasPrefix(text, "BEGIN:VCALENDAR\r\n") || !strings.HasSuffix(text, "END:VCALENDAR\r\n") {
		t.Errorf("got %d events, %d of whole days: %s", events, whole, text)
	}

	if unfolded := strings.ReplaceAll(text, "\r\n ", ""); !strings.Contains(unfolded,
		`DESCRIPTION:a\; b\, c\\d\nat 02:30 every day\, Europe/Berlin`) ||
		!strings.Contains(unfolded, "SUMMARY:shop/daily\r\n") {
		t.Errorf("got %s", unfolded)
	}

	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\r\n"), "\r\n") {
		if len(line) > 75 || strings.ContainsAny(line, "\r\n") {
			t.Errorf("a line is %d bytes long: %q", len(line), line)
		}
	}

	if _, again, _ := s.feed("/api/v1/upcoming.ics?days=3", viewer); uids(again) != uids(text) {
		t.Error("the same event has another id when it is asked for again")
	}

	// Callers without access, and other routes, where a password does not count.
	status, _, challenges := s.feed("/api/v1/upcoming.ics", "")
	if status != 401 ||
		!slices.ContainsFunc(challenges, func(c string) bool { return strings.HasPrefix(c, "Basic ") }) {
		t.Errorf("nobody: got %d, %q", status, challenges)
	}

	if status, _, _ = s.feed("/api/v1/upcoming.ics", "gocrontab_made-up"); status != 401 {
		t.Errorf("a wrong one: got %d", status)
	}

	if status, text, _ = s.feed("/api/v1/upcoming.ics", s.token); status != 403 ||
		!strings.Contains(text, "role viewer") {
		t.Errorf("the token of an admin: got %d %s", status, text)
	}

	for _, path := range []string{"/api/v1/upcoming", "/api/v1/jobs", "/api/v1/me"} {
		if status, _, challenges := s.feed(path, viewer); status != 401 ||
			slices.ContainsFunc(challenges, func(c string) bool { return strings.HasPrefix(c, "Basic ") }) {
			t.Errorf("%s: a password counts: %d, %q", path, status, challenges)
		}
	}

	if r := s.call("GET", "/api/v1/upcoming.ics", nil); r.status != 200 {
		t.Errorf("a bearer token: got %d %s", r.status, r.body)
	}
}

func uids(calendar string) string {
	var out []string
	for line := range strings.Lines(calendar) {
		if strings.HasPrefix(line, "UID:") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}
