package api_test

import (
	"strings"
	"testing"
	"time"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	yearly := s.create("yearly", object{"schedule": "30 2 29 3 *", "timezone": "Europe/Berlin"}).text("id")
	busy := s.create("busy", object{"schedule": nil, "every": "1s"})
	paused := s.create("paused", object{"schedule": nil, "every": "1h"}).text("id")
	s.call("POST", "/api/v1/jobs/"+paused+"/pause", nil).want(200)
	first := s.ran(busy.text("id"), 1)
	due := first[len(first)-1].text("due")
	s.call("POST", "/api/v1/jobs/"+yearly+"/run", object{}).want(202)
	byHand := s.ran(yearly, 1)[0].text("due")
	second := byHand[:len("2027-01-30T02:00:00")] + "Z"
	ahead := time.Now().Add(6 * time.Second).Truncate(time.Second).Add(500 * time.Millisecond)
	for name, tc := range map[string]struct {
		job, at     string
		due         bool
		cause, says string
	}{
		"what ran": {busy.text("id"), due, true, "succeeded", "It was started"},
		"between two due times": {
			busy.text("id"), ahead.Add(-time.Hour).Format(time.RFC3339Nano), false, "not_due", "not a due time",
		},
		"a time that the clock skips": {
			yearly, "2026-03-29T02:30:00+01:00", false, "gap", "2026-03-29T03:00:00+02:00",
		},
		"the same with the other offset": {
			yearly, "2026-03-29T02:30:00+02:00", false, "gap", "2026-03-29T03:00:00+02:00",
		},
		"a due time before its creation": {
			yearly, "2025-03-29T02:30:00+01:00", true, "definition_is_younger", "did not exist yet",
		},
		"a due time that lies ahead":    {yearly, "2090-03-29T02:30:00+02:00", true, "ahead", "in the future"},
		"a run by hand":                 {yearly, byHand, false, "succeeded", "requested by hand. It was started"},
		"a run by hand, by its second":  {yearly, second, false, "succeeded", "requested by hand. It was started"},
		"a second before a run by hand": {yearly, "2026-01-30T02:00:00Z", false, "not_due", "not a due time"},
		"a paused job":                  {paused, s.pausedDue(paused), true, "paused", "paused since"},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.call("GET", "/api/v1/jobs/"+tc.job+"/explain?at="+strings.ReplaceAll(tc.at, "+", "%2B"),
				nil).want(200).object()
			if got.text("cause") != tc.cause || !strings.Contains(got.text("answer"), tc.says) ||
				(got.text("due") == "true") != tc.due {
				t.Errorf("at %s: got %v; want %v, %s, %q", tc.at, got, tc.due, tc.cause, tc.says)
			}
		})
	}

	s.call("GET", "/api/v1/jobs/"+yearly+"/explain", nil).want(422)
	s.call("GET", "/api/v1/jobs/999/explain?at=2026-01-01T00:00:00Z", nil).want(404)
}

// pausedDue is the next instant at which a paused job would be due.
func (s *site) pausedDue(id string) string {
	s.t.Helper()
	return s.call("GET", "/api/v1/jobs/"+id+"/next?n=1", nil).want(200).object().items("items")[0].text("due")
}
