package job

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// limitsAt is a whole minute of 2027.
const limitsAt = Micros(1_800_000_000_000_000)

func TestCheckJobs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit, has, adds int64
		refused          bool
	}{
		"no limit":                                    {0, 1000, 1000, false},
		"there is room":                               {5, 4, 1, false},
		"the last one is there":                       {5, 5, 1, true},
		"many at once, one too many":                  {5, 2, 4, true},
		"many at once, just as many":                  {5, 2, 3, false},
		"over a limit that was lowered, one more":     {5, 9, 1, true},
		"over a limit that was lowered, none more":    {5, 9, 0, false},
		"over a limit that was lowered, and losing 1": {5, 9, -1, false},
	} {
		err := AppLimits{Jobs: c.limit}.CheckJobs("billing", c.has, c.adds)
		var over *OverLimit
		if errors.As(err, &over) != c.refused {
			t.Errorf("%s: got %v", name, err)
		}

		if c.refused && (over.App != "billing" || over.Limit != LimitJobs || over.Most != c.limit ||
			over.Has != c.has) {
			t.Errorf("%s: got %+v", name, over)
		}
	}
}

func TestCheckRun(t *testing.T) {
	t.Parallel()
	now := SecondOf(limitsAt)

	for name, c := range map[string]struct {
		limits  AppLimits
		starts  Starts
		waiting int64
		limit   Limit // that refuses; empty: none
		after   time.Duration
	}{
		"no limit":  {AppLimits{}, Starts{now: 1000}, 1000, "", 0},
		"one below": {AppLimits{RunsPerMinute: 3}, Starts{now: 1, now - 5: 1}, 0, "", 0},
		"at the limit": {
			AppLimits{RunsPerMinute: 3}, Starts{now: 2, now - 5: 1}, 0, LimitRuns, 55 * time.Second,
		},
		"far over it": {
			AppLimits{RunsPerMinute: 3}, Starts{now: 2, now - 5: 1, now - 50: 7}, 0, LimitRuns, 55 * time.Second,
		},
		"all of them in this second": {
			AppLimits{RunsPerMinute: 3}, Starts{now: 3}, 0, LimitRuns, 60 * time.Second,
		},
		"the first second that counts": {
			AppLimits{RunsPerMinute: 1}, Starts{now - 59: 1}, 0, LimitRuns, time.Second,
		},
		"the last second that does not": {AppLimits{RunsPerMinute: 1}, Starts{now - 60: 1}, 0, "", 0},
		"one that begins in the next second": {
			AppLimits{RunsPerMinute: 1}, Starts{now + 1: 1}, 0, LimitRuns, 60 * time.Second,
		},
		"counted before the clock was put back": {AppLimits{RunsPerMinute: 1}, Starts{now + 3600: 9}, 0, "", 0},
		"as many wait as may":                   {AppLimits{Waiting: 2}, nil, 2, LimitWaiting, 0},
		"one less":                              {AppLimits{Waiting: 2}, nil, 1, "", 0},
		"runs are full, whatever waits": {
			AppLimits{RunsPerMinute: 1, Waiting: 2}, Starts{now: 1}, 2, LimitRuns, 60 * time.Second,
		},
		"runs are not full, but as many as wait": {
			AppLimits{RunsPerMinute: 2, Waiting: 2}, Starts{now: 1}, 2, LimitWaiting, 0,
		},
	} {
		err := c.limits.CheckRun("billing", c.starts, c.waiting, limitsAt)

		var over *OverLimit
		if errors.As(err, &over); over == nil != (c.limit == "") ||
			over != nil && (over.Limit != c.limit || over.After != c.after) {
			t.Errorf("%s: got %+v, want %q after %s", name, over, c.limit, c.after)
		}
	}
}

// TestSteadyRate: a job that is due each second is never over a limit of sixty a minute, nor does
// one more fit.
func TestSteadyRate(t *testing.T) {
	t.Parallel()
	starts, limits := Starts{}, AppLimits{RunsPerMinute: 60}
	for n := range 300 {
		now := limitsAt.Add(time.Duration(n) * time.Second)
		if err := limits.CheckRun("a", starts, 0, now); err != nil {
			t.Fatalf("second %d: %v", n, err)
		}

		starts[SecondOf(now)]++
		starts.Forget(now)
		if n >= 59 && limits.CheckRun("a", starts, 0, now) == nil {
			t.Fatalf("second %d: the sixty-first run of a minute was let through", n)
		}

		if len(starts) > 60 {
			t.Fatalf("second %d: %d seconds are kept", n, len(starts))
		}
	}
}

func TestAppLimitsValidate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits AppLimits
		wrong  string // fields
	}{
		"none":             {AppLimits{}, ""},
		"all":              {AppLimits{Jobs: 1, RunsPerMinute: 1, Waiting: 1}, ""},
		"negative numbers": {AppLimits{Jobs: -1, RunsPerMinute: -1, Waiting: -1}, "jobs runs_per_minute waiting"},
		"too many":         {AppLimits{Jobs: MostLimit + 1, Waiting: MostLimit + 1}, "jobs waiting"},
	} {
		var p Problems
		errors.As(c.limits.Validate(), &p)
		var fields []string
		for _, q := range p {
			fields = append(fields, q.Field)
		}

		if got := strings.Join(fields, " "); got != c.wrong {
			t.Errorf("%s: got %q, want %q", name, got, c.wrong)
		}
	}
}

// TestOverLimitWords: each error names the app, the limit, the number it has, and what to do.
func TestOverLimitWords(t *testing.T) {
	t.Parallel()
	for _, e := range []OverLimit{
		{App: "billing", Limit: LimitJobs, Most: 5, Has: 4, Adds: 2},
		{App: "billing", Limit: LimitRuns, Most: 5, Has: 4, After: 12 * time.Second},
		{App: "billing", Limit: LimitWaiting, Most: 5, Has: 4},
	} {
		for _, part := range []string{"app billing", "5", "4", "admin of the cluster"} {
			if !strings.Contains(e.Error(), part) {
				t.Errorf("%q lacks %q", e.Error(), part)
			}
		}
	}
}
