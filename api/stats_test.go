package api_test

import (
	"fmt"
	"testing"
	"time"
)

// TestStats runs some jobs and finds them counted on a node that executes none.
func TestStats(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	o, _ := s.other(nil)
	empty := o.call("GET", "/api/v1/stats?minutes=1", nil).want(200).object()
	if got := len(empty.items("series")); got != 7 || empty.text("executing") != "0" ||
		empty.text("last_minute", "lateness_p50_ms") != "" || empty.text("step_seconds") != "10" ||
		empty.text("slots") == "0" {
		t.Errorf("of nothing: got %d parts, %v", got, empty)
	}

	good, bad := s.create("good", object{"overlap": "allow"}).text("id"),
		s.create("bad", object{"command": "exit 1"}).text("id")
	for range 3 {
		s.call("POST", "/api/v1/jobs/"+good+"/run", nil).want(202)
	}

	s.call("POST", "/api/v1/jobs/"+bad+"/run", nil).want(202)
	s.ran(bad, 1)
	s.ran(good, 3)
	s.running(s.create("long", object{"command": "sleep 600"}).text("id"))
	queued := s.create("queued", object{"command": "sleep 600", "overlap": "queue"}).text("id")
	s.running(queued)
	s.call("POST", "/api/v1/jobs/"+queued+"/run", nil).want(202)

	// As if nodes were late: none may run it.
	nobodys := s.create("nobodys", object{"selector": "zone=nowhere"}).text("id")
	s.call("POST", "/api/v1/jobs/"+nobodys+"/run", nil).want(202)
	var got object
	sum := func(field string) (n int) {
		for _, part := range got.items("series") {
			k := 0
			fmt.Sscan(part.text(field), &k)
			n += k
		}
		return n
	}

	await(t, "all is counted and written", time.Minute, func() bool {
		time.Sleep(200 * time.Millisecond)
		got = o.call("GET", "/api/v1/stats", nil).want(200).object()
		return sum("starts") == 6 && got.text("waiting") == "1"
	})

	if sum("ends") != 4 || sum("failed") != 1 || got.text("executing") != "2" || got.text("backlog") != "1" ||
		len(got.items("series")) != 31 || got.text("most") != "10000" {
		t.Errorf("got %v", got)
	}

	if nodes := got.items("nodes"); len(nodes) != 1 || nodes[0].text("node") != "knoten-1" ||
		nodes[0].text("slots") != got.text("slots") {
		t.Errorf("got %v", nodes)
	}

	with := 0
	for _, part := range got.items("series") {
		if (part.text("lateness_p50_ms") != "") != (part.text("starts") != "0") ||
			(part.text("lateness_p99_ms") != "") != (part.text("starts") != "0") {
			t.Errorf("got %v, want lateness where something began", part)
		}
		if part.text("lateness_p50_ms") != "" {
			with++
		}
	}

	if with == 0 {
		t.Error("no part has a lateness")
	}

	await(t, "the last minute has them", time.Minute, func() bool {
		time.Sleep(200 * time.Millisecond)
		rate := o.call("GET", "/api/v1/stats", nil).want(200).object().text("last_minute", "starts_per_second")
		return rate != "" && rate != "0"
	})

	s.call("GET", "/api/v1/stats?minutes=16", nil).want(422)
}
