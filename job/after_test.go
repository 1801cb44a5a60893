package job

import (
	"strings"
	"testing"
	"time"
)

// TestAfterAndDelay: what is wrong with jobs without a schedule of their own, and how they read.
func TestAfterAndDelay(t *testing.T) {
	t.Parallel()
	start := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		spec           Spec
		wrong          string // a part of the error; "": none
		words, chinese string
	}{
		"delay": {
			Spec{Delay: Duration(5 * time.Minute)}, "", "5 minutes after the end of each run", "每次运行结束 5 分钟后",
		},
		"delay from an instant on": {
			Spec{Delay: Duration(time.Hour), Start: &start, End: &start}, "",
			"1 hour after the end of each run; first at 2027-01-01 00:00:00 UTC; until 2027-01-01 00:00:00 UTC",
			"每次运行结束 1 小时后；首次 2027-01-01 00:00:00 UTC；到 2027-01-01 00:00:00 UTC 为止",
		},
		"short":        {spec: Spec{Delay: Duration(time.Millisecond)}, wrong: "delay: 1ms is not between 1s and 366d"},
		"two kinds":    {spec: Spec{Delay: Duration(time.Hour), Schedule: "* * * * *"}, wrong: "schedule: 2 of schedule"},
		"a count":      {spec: Spec{Delay: Duration(time.Hour), MaxFires: 5}, wrong: "max_fires: cannot be used with delay"},
		"jitter":       {spec: Spec{After: &After{Jobs: []string{"a"}}, Jitter: 1e9}, wrong: "jitter: cannot be used with after"},
		"an end":       {spec: Spec{After: &After{Jobs: []string{"a"}}, End: &start}, wrong: "end: cannot be used with after"},
		"nobody":       {spec: Spec{After: &After{}}, wrong: "after.jobs: is empty"},
		"on what":      {spec: Spec{After: &After{Jobs: []string{"a"}, On: "x"}}, wrong: `after.on: "x" is not one of success, failure, end`},
		"match what":   {spec: Spec{After: &After{Jobs: []string{"a"}, Match: "x"}}, wrong: `after.match: "x" is not one of all, any`},
		"twice":        {spec: Spec{After: &After{Jobs: []string{"a", "default/a"}}}, wrong: "after.jobs[1]: default/a is given twice"},
		"no name":      {spec: Spec{After: &After{Jobs: []string{"b/"}}}, wrong: "after.jobs[0]: is empty"},
		"within alone": {spec: Spec{After: &After{Jobs: []string{"a"}, Within: 1e9}}, wrong: "after.within: can only be used with"},
		"one": {
			Spec{After: &After{Jobs: []string{"extract"}}}, "", "each time a run of extract succeeds", "extract 每次运行成功后",
		},
		"any": {
			Spec{After: &After{Jobs: []string{"a", "b/c"}, On: OnFailure, Match: MatchAny}}, "",
			"each time a run of a or b/c fails", "a 或 b/c 每次运行失败后",
		},
		"all": {
			Spec{After: &After{Jobs: []string{"a", "b/c"}, On: OnEnd}}, "",
			"each time runs of a and b/c have all ended within 24 hours", "a、b/c 在 24 小时内都结束后",
		},
	} {
		s := c.spec
		s.Name, s.Command = "j", "true"
		s.Defaults(time.Unix(0, 0))
		switch err := s.Validate(); {
		case c.wrong == "" && err != nil, c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: got %v, want %q", name, err, c.wrong)
		case c.wrong == "" && (s.Words(English) != c.words || s.Words(Chinese) != c.chinese):
			t.Errorf("%s: got %q and %q", name, s.Words(English), s.Words(Chinese))
		}
	}
}
