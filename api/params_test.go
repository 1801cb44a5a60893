package api_test

import (
	"strings"
	"testing"
)

// TestParams: a request gives values of parameters, or is refused with the parameter in question.
func TestParams(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	j := s.create("report", object{
		"schedule": nil, "manual": true, "params": object{
			"day": object{"type": "date", "default": "yesterday"}, "n": object{"type": "integer", "required": true},
		},
	})
	path := "/api/v1/jobs/" + j.text("id")
	if j.text("status") != "active" {
		t.Errorf("got %v", j)
	}

	for body, field := range map[string]string{
		`{}`: "params.n", `{"params": {"n": "5"}}`: "params.n", `{"params": {"n": [5]}}`: "params.n",
		`{"params": {"n": 5, "m": 5}}`: "params.m", `{"params": {"n": 5, "day": "01.11.2026"}}`: "params.day",
		`{"params": []}`: "params", `{"param": {"n": 5}}`: "param",
	} {
		r := s.call("POST", path+"/run", decode(t, body, body))
		if r.status != 422 || !strings.Contains(r.body, `"field":"`+field+`"`) {
			t.Errorf("%s: got %d %s, want a problem of %s", body, r.status, r.body, field)
		}
	}
	if n := s.count("SELECT COUNT(*) FROM run"); n != 0 {
		t.Errorf("%d runs of refused requests", n)
	}

	if r := s.call("POST", path+"/run", object{"params": object{"n": 5}}); r.status != 202 {
		t.Errorf("got %d %s", r.status, r.body)
	}
	if r := s.call("POST", path+"/backfill", object{"from": "2026-01-01T00:00:00Z"}); r.status != 422 {
		t.Errorf("a backfill: got %d %s", r.status, r.body)
	}
	if r := s.call("PATCH", path, object{"schedule": "0 3 * * *"}); r.status != 422 {
		t.Errorf("two schedules: got %d %s", r.status, r.body)
	}
}
