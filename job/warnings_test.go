package job

import (
	"strings"
	"testing"
	"time"
)

func TestWarnings(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	past := now.Add(-time.Hour)
	for name, c := range map[string]struct {
		change func(*Spec)
		want   string // a part of the only warning; "" for none
	}{
		"nothing odd": {func(s *Spec) {}, ""},
		"runs longer than its period": {
			func(s *Spec) { s.Timeout = Duration(2 * time.Hour) }, "due again after 1h: due times in between are skipped",
		},
		"which is allowed": {
			func(s *Spec) { s.Timeout, s.Overlap = Duration(2*time.Hour), OverlapAllow }, "",
		},
		"and queues": {
			func(s *Spec) { s.Timeout, s.Overlap = Duration(2*time.Hour), OverlapQueue }, "when 10 already wait",
		},
		"and is replaced": {
			func(s *Spec) { s.Timeout, s.Overlap = Duration(2*time.Hour), OverlapReplace }, "is then killed",
		},
		"retries longer than its period": {
			func(s *Spec) { s.Retry = Retry{Attempts: 4, Backoff: Duration(25 * time.Minute)} },
			"retries wait up to 1h15m",
		},
		"retries within its period": {
			func(s *Spec) { s.Retry = Retry{Attempts: 3, Backoff: Duration(25 * time.Minute)} }, "",
		},
		"never started late": {
			func(s *Spec) { s.Misfire.MaxAge = Duration(10 * time.Second) }, "no due time ever starts late",
		},
		"a queue that never fills": {
			func(s *Spec) { s.Overlap, s.StartDeadline = OverlapQueue, Duration(time.Minute) }, "never fills",
		},
		"far away": {func(s *Spec) { s.Schedule = "0 0 29 2 *" }, "more than a year away, on 2028-02-29"},
		"over":     {func(s *Spec) { s.End = &past }, "no due time in the future"},
		"once":     {func(s *Spec) { s.Schedule, s.At = "", &now }, ""},
	} {
		s := Spec{Name: "j", Command: "true", Schedule: "0 * * * *"}
		c.change(&s)
		s.Defaults(now)
		sched, err := s.Compile()
		if err != nil {
			t.Fatal(name, err)
		}

		got := s.Warnings(sched, now)
		switch {
		case c.want == "" && len(got) != 0, c.want != "" && len(got) != 1:
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		case c.want != "" && !strings.Contains(got[0].Message, c.want):
			t.Errorf("%s: got %q, want %q", name, got[0], c.want)
		}
	}
}
