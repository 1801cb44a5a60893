package api_test

import (
	"strings"
	"testing"
	"time"
)

// TestRateOfGroup: a group may have slots, a rate, or both.
func TestRateOfGroup(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	put := func(body any) *reply { t.Helper(); return s.call("PUT", "/api/v1/groups/g", body) }

	g := put(object{"rate": "10/60s"}).want(200).object()
	if g.text("rate") != "10/1m" || g.text("starts") != "0" || g["slots"] != nil || g["next_start"] != nil {
		t.Errorf("a rate alone: got %v", g)
	}
	if g := put(object{"slots": 2}).want(200).object(); g.text("slots") != "2" || g["rate"] != nil || g["starts"] != nil {
		t.Errorf("slots alone: got %v", g)
	}
	put(object{"slots": 2, "rate": "2/1m"}).want(200)

	now := time.Now().UnixMicro()
	s.exec("UPDATE grp SET starts = UNHEX(CONCAT(LPAD(HEX(?), 16, '0'), LPAD(HEX(?), 16, '0')))", now-50_000_000, now)
	g = s.call("GET", "/api/v1/groups/g", nil).want(200).object()
	next, err := time.Parse(time.RFC3339, g.text("next_start"))
	if g.text("starts") != "2" || err != nil || next.Sub(time.UnixMicro(now)).Round(time.Second) != 11*time.Second {
		t.Errorf("when the rate is used up: got %v", g)
	}

	for _, wrong := range []struct{ rate, says string }{
		{"10", "is not a rate; give starts and their period, such as 10/1m"},
		{"ten/1m", "is not a rate"},
		{"10/1", "is not a rate"},
		{"10/1m/2", "is not a rate"},
		{"0/1m", "0 is not between 1 and 1000; it is the number of starts in a period"},
		{"-3/1m", "-3 is not between 1 and 1000"},
		{"1001/1m", "1001 is not between 1 and 1000"},
		{"10/0s", "0s is not between 1s and 24h; it is the period"},
		{"10/25h", "25h is not between 1s and 24h"},
		{"10/500ms", "500ms is not between 1s and 24h"},
	} {
		r := put(object{"rate": wrong.rate}).want(422)
		if !strings.Contains(r.body, wrong.says) || !strings.Contains(r.body, `"field":"rate"`) {
			t.Errorf("%s: got %s", wrong.rate, r.body)
		}
	}
	put(object{"rate": 10}).want(422)
	put(object{}).want(422)
	put(object{"slots": 0, "rate": "10/1m"}).want(422)
}
