package schedule

import (
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// TestBehind: chores wait while something is overdue by more than a second, and only as long as somebody knows.
func TestBehind(t *testing.T) {
	now := job.Micros(1_000_000_000)
	for name, c := range map[string]struct {
		l    *Lookout
		want bool
	}{
		"nobody has looked":          {&Lookout{}, false},
		"there is no lookout":        {nil, false},
		"nothing is planned":         {behold(sql.Glance{}, 0), false},
		"a task is due now":          {behold(sql.Glance{FirstIdle: now}, 0), false},
		"a task is overdue":          {behold(sql.Glance{FirstIdle: now - 1_500_000}, 0), true},
		"a cursor is overdue":        {behold(sql.Glance{FirstIdle: now, FirstCursor: now - 1_500_000}, 0), true},
		"it was so, some time ago":   {behold(sql.Glance{FirstIdle: now - 1_500_000}, 2*blind), false},
		"the next is due in an hour": {behold(sql.Glance{FirstIdle: now + 3_600_000_000}, 0), false},
	} {
		if got := c.l.Behind(now); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

func behold(g sql.Glance, ago time.Duration) *Lookout {
	l := &Lookout{}
	l.last.Store(&glimpse{g, time.Now().Add(-ago)})
	return l
}
