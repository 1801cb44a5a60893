package job

import (
	"strings"
	"testing"
	"time"
)

// TestPastAt: a single due time is too late once the misfire rules would not start it any more.
func TestPastAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)

	for name, c := range map[string]struct {
		late   time.Duration
		change func(*Spec)
		want   string // a part of the refusal; "" for none
	}{
		"ahead":                              {-time.Hour, func(*Spec) {}, ""},
		"an hour late, which is the default": {time.Hour, func(*Spec) {}, ""},
		"a moment later": {
			time.Hour + time.Millisecond, func(*Spec) {},
			"was 1h ago, and this job starts at most 1h late (misfire.max_age)",
		},
		"a wrong year": {
			6 * 366 * 24 * time.Hour, func(*Spec) {}, "2021-01-10T08:00:00Z was 6 years ago",
		},
		"a wrong week": {7 * 24 * time.Hour, func(*Spec) {}, "was 7 days ago"},
		"allowed by max_age": {
			7 * 24 * time.Hour, func(s *Spec) { s.Misfire.MaxAge = Duration(168 * time.Hour) }, "",
		},
		"a shorter max_age": {
			3 * time.Minute, func(s *Spec) { s.Misfire.MaxAge = Duration(2 * time.Minute) },
			"at most 2m late (misfire.max_age)",
		},
		"late, and no misfire yet": {
			50 * time.Second, func(s *Spec) { s.Misfire.MaxAge = Duration(10 * time.Second) }, "",
		},
		"a misfire that is not started": {
			70 * time.Second, func(s *Spec) { s.Misfire.MaxAge = Duration(10 * time.Second) },
			"was 1m10s ago, and this job starts at most 1m late (misfire.after)",
		},
		"policy skip, no misfire yet": {time.Minute, func(s *Spec) { s.Misfire.Policy = MisfireSkip }, ""},
		"policy skip": {
			2 * time.Minute, func(s *Spec) { s.Misfire.Policy = MisfireSkip }, "at most 1m late (misfire.after)",
		},
		"policy all": {
			2 * time.Hour, func(s *Spec) { s.Misfire.Policy = MisfireAll }, "at most 1h late (misfire.max_age)",
		},
		"a start deadline": {
			10 * time.Minute, func(s *Spec) { s.StartDeadline = Duration(5 * time.Minute) },
			"at most 5m late (start_deadline)",
		},
		"no single due time": {9000 * time.Hour, func(s *Spec) { s.At, s.Schedule = nil, "@daily" }, ""},
	} {
		at := now.Add(-c.late)
		s := Spec{Name: "j", Command: "true", At: &at}
		c.change(&s)
		s.Defaults(now)

		err := s.CheckPastAt(now)
		switch {
		case c.want == "" && err != nil, c.want != "" && err == nil:
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		case err != nil && (!strings.Contains(err.Error(), c.want) || err.(Problems)[0].Field != "at" ||
			!strings.Contains(err.Error(), "--now")):
			t.Errorf("%s: got %q, want %q of the field at, and what to do", name, err, c.want)
		}
	}
}

// TestPastAtWithJitter: jitter shifts the due time, so an instant that has passed may still lie
// ahead.
func TestPastAtWithJitter(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	s := Spec{Name: "j", Command: "true", At: &now, Jitter: Duration(24 * time.Hour)}
	s.Defaults(now)
	sched, err := s.Compile()
	if err != nil {
		t.Fatal(err)
	}

	due, ok := sched.Next(now)
	if !ok {
		t.Fatal("jitter has not shifted the due time")
	}

	for late, refused := range map[time.Duration]bool{time.Hour: false, time.Hour + time.Microsecond: true} {
		if err := s.CheckPastAt(due.Add(late)); (err != nil) != refused {
			t.Errorf("%s behind the due time: got %v", late, err)
		}
	}
}
