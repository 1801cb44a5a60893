package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/auth"
	"go-crontab/job"
)

// expensiveJob makes a job with a schedule that once delayed healthy starts by 10 s: every second
// since 1971, minus eight calendars. No request can make such a job today.
func expensiveJob(s *site) (id string) {
	s.t.Helper()
	var names []any
	for c := range 8 {
		var closed []string
		for at := range 90 {
			minute := at*16 + 2*c
			closed = append(closed, fmt.Sprintf("%02d:%02d-%02d:%02d", minute/60, minute%60, minute/60, minute%60+1))
		}
		name := fmt.Sprint("windows-", c)
		s.call("PUT", "/api/v1/calendars/"+name,
			object{"timezone": "UTC", "hours": object{"except": []any{strings.Join(closed, ",")}}}).want(201)
		names = append(names, name)
	}

	whole := object{"start": "1971-01-01T00:00:00Z", "max_fires": 1_000_000_000}
	body := object{"name": "expensive", "schedule": "0 0 0 1 1 *", "command": "true", "calendars": names}
	refused := object{"name": "refused", "schedule": "* * * * * *", "command": "true", "calendars": names}
	for k, v := range whole {
		refused[k] = v
	}

	r := s.call("POST", "/api/v1/jobs", refused).want(422)
	if !strings.Contains(r.body, "is too expensive to compute") ||
		!strings.Contains(r.body, "counted since its start, 1971-01-01") {
		s.t.Errorf("creating it: got %s", r.body)
	}

	id = s.call("POST", "/api/v1/jobs", body).want(201).object().text("id")
	whole["schedule"] = "* * * * * *"
	if r := s.call("PATCH", "/api/v1/jobs/"+id, whole).want(422); !strings.Contains(r.body,
		"is too expensive to compute") {
		s.t.Errorf("editing it: got %s", r.body)
	}

	s.exec("UPDATE job SET next_due = 4000000000000000 WHERE id = ?", id)
	s.exec(`
			UPDATE job_version
			SET definition = JSON_SET(definition, '$.schedule', '* * * * * *', '$.start', '1971-01-01T00:00:00Z',`+
		" '$.max_fires', 1000000000) WHERE job_id = ?", id)
	return id
}

// TestExpensiveSchedule requests everything about a schedule that is too expensive: the answer says
// so, or omits the job with a mark.
func TestExpensiveSchedule(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := expensiveJob(s)
	for _, path := range []string{"/next?n=3", "/explain?at=2027-01-31T12:00:00Z"} {
		if r := s.call("GET", "/api/v1/jobs/"+id+path, nil).want(422); !strings.Contains(r.body, `"field":"schedule"`) {
			t.Errorf("%s: got %s", path, r.body)
		}
	}

	body := object{"from": "1971-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}
	if r := s.call("POST", "/api/v1/jobs/"+id+"/backfill", body); r.status != 422 {
		t.Errorf("a backfill: got %d %s", r.status, r.body)
	}

	cheap := s.create("cheap", object{"schedule": "0 * * * *", "calendars": []any{"windows-1"}}).text("id")
	for _, path := range []string{"/api/v1/upcoming", "/api/v1/upcoming/counts"} {
		o := s.call("GET", path, nil).want(200).object()
		if o.text("uncounted") != "1" || o.text("truncated") != "true" {
			t.Errorf("%s: got %v, want one job left out", path, o)
		}
	}

	o := s.call("GET", "/api/v1/upcoming", nil).want(200).object()
	if items := o.items("items"); len(items) == 0 || items[0].text("job_id") != cheap {
		t.Errorf("the cheap job is not listed: %v", o)
	}
	if r := s.call("GET", "/api/v1/upcoming.ics", nil).want(200); !strings.Contains(r.body, "There are more due times") {
		t.Error("the feed does not say that it is not whole")
	}
}

// TestReadsLeaveRoomForStarts: 40 clients request the due times of an expensive schedule while a
// job starts every 200 ms. It starts as usual, and computing stops once the clients disconnect.
func TestReadsLeaveRoomForStarts(t *testing.T) {
	s := start(t, nil)
	id := expensiveJob(s)
	viewer := s.as(s.newToken("viewer", auth.Viewer))
	s.create("healthy", object{"schedule": nil, "every": "200ms", "command": "true", "overlap": "allow"})
	started := func() int { return s.count("SELECT COUNT(*) FROM run WHERE started > 0") }
	await(t, "some starts", 10*time.Second, func() bool { return started() > 5 })
	s.exec("DELETE FROM run WHERE state = 'ended'")

	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	var clients sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	for range 40 {
		clients.Go(func() {
			for ctx.Err() == nil {
				what := viewer.asked(ctx, "/api/v1/jobs/"+id+"/next?n=3")
				mu.Lock()
				answers[what]++
				mu.Unlock()
			}
		})
	}

	await(t, "starts beside it", 15*time.Second, func() bool { return started() > 30 })
	hangUp()
	clients.Wait()
	await(t, "the end of all computing", 5*time.Second, func() bool { return job.Computing() == 0 })

	for what, n := range answers {
		if what != "422 invalid" && what != "503 busy" && what != "429 too-many-requests" && what != "hung up" {
			t.Errorf("%d answers were %s", n, what)
		}
	}

	if answers["422 invalid"] == 0 {
		t.Errorf("nobody was told that it is too expensive: %v", answers)
	}

	const most = 5_000_000 // microseconds; before, it was 10 s on two idle processors
	if late := s.count("SELECT COALESCE(MAX(started - due_now), 0) FROM run WHERE started > 0"); late > most {
		t.Errorf("a healthy start was %d µs late, want at most %d", late, most)
	}
}

// asked returns the answer to a GET.
func (s *site) asked(ctx context.Context, path string) string {
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
	if err != nil {
		return err.Error()
	}

	r.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := s.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return "hung up"
		}
		return err.Error()
	}

	defer resp.Body.Close()
	var p struct{ Type string }
	body, _ := io.ReadAll(resp.Body)
	_ = json.Unmarshal(body, &p)
	return fmt.Sprint(resp.StatusCode, " ", p.Type[strings.LastIndexByte(p.Type, ':')+1:])
}
