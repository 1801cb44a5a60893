package alert

import (
	"math"
	"testing"

	"go-crontab/internal/trail"
	"go-crontab/job"
)

// TestPositionOfAHand: a position that no row ever reaches is corrected. A position after removed
// rows is kept.
func TestPositionOfAHand(t *testing.T) {
	t.Parallel()
	const now = job.Micros(1e15)
	anchor := position{Since: now - 9e6, Ends: trail.Trail{High: 40_000}, Lines: trail.Trail{High: 0}}
	for what, c := range map[string]struct{ at, want position }{
		"a usual one": {position{Since: 5, Ends: trail.Trail{High: 40_990}, Lines: trail.Trail{High: 12}},
			position{Since: 5, Ends: trail.Trail{High: 40_990}, Lines: trail.Trail{High: 12}}},
		"rows were removed": {position{Since: 5, Ends: trail.Trail{High: 42_000}},
			position{Since: 5, Ends: trail.Trail{High: 42_000}}},
		"a hand's": {position{Since: math.MaxInt64, Ends: trail.Trail{High: math.MaxInt64},
			Lines: trail.Trail{High: 1 << 40}}, anchor},
		"the least numbers": {position{Since: math.MinInt64, Ends: trail.Trail{High: math.MinInt64}},
			position{Since: math.MinInt64, Ends: anchor.Ends}},
	} {
		got := c.at
		got.within(anchor, now)
		if got.Since != c.want.Since || got.Ends.High != c.want.Ends.High || got.Lines.High != c.want.Lines.High {
			t.Errorf("%s: got %+v, want %+v", what, got, c.want)
		}
	}
}

// TestRulesOfAHand: an unusable rule cannot be decoded. A missing field with a default gets the
// default.
func TestRulesOfAHand(t *testing.T) {
	t.Parallel()
	for spec, reads := range map[string]bool{
		`{"on":["failed"],"channels":["x"]}`:  true,
		`{"on":["backlog"],"channels":["x"]}`: true,
		// the built-in text is used
		`{"on":["failed"],"channels":["x"],"title":"{{"}`:                                   true,
		`{"on":["failures"],"channels":["x"]}`:                                              false,
		`{"on":["failures"],"channels":["x"],"failures":{"count":0,"within":"1m"}}`:         false,
		`{"on":["failures"],"channels":["x"],"failures":{"count":-3,"within":"1m"}}`:        false,
		`{"on":["failures"],"channels":["x"],"failures":{"count":3,"within":"-1m"}}`:        false,
		`{"on":["failed"],"channels":["x"],"repeat":"-1s"}`:                                 false,
		`{"on":["late_finish"],"channels":["x"]}`:                                           false,
		`{"on":["backlog"],"channels":["x"],"backlog":{"tasks":-1,"older_than":"1m"}}`:      false,
		`{"on":["failures"],"channels":["x"],"failures":{"count":3,"within":"1m"}}`:         true,
		`{"on":["never_ran","clock_skew"],"channels":["x"],"never_ran":"1h","severity":""}`: true,
		`{"on":`: false,
	} {
		if r, err := DecodeRule(&Definition{Spec: spec}); (err == nil) != reads {
			t.Errorf("%s: got %+v, %v", spec, r, err)
		}
	}
}
