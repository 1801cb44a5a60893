package job

import (
	"fmt"

	"go-crontab/job/problem"
)

// MaxWeeks is the longest distance between kept weeks, in weeks.
const MaxWeeks = 520

// Weeks keeps some weeks of a cron schedule: the week of From, and every Every-th week after it. A
// week begins on Monday. The date of a due time in the job's time zone decides which week it is in.
// Weeks before the week of From are not kept.
type Weeks struct {
	Every int    `json:"every"`
	From  string `json:"from"` // a date such as 2026-01-05
}

func (s *Spec) checkWeeks(p *Problems) {
	if s.Weeks == nil {
		return
	}

	if s.Schedule == "" && len(s.Schedules) == 0 {
		p.Add("weeks", problem.OnlyWith, "schedule or schedules")
	}

	if n := s.Weeks.Every; n < 1 || n > MaxWeeks {
		p.Add("weeks.every", problem.NotBetween, n, 1, MaxWeeks)
	}

	if _, yearly, err := parseDate(s.Weeks.From); err != nil || yearly {
		p.Add("weeks.from", problem.NotADateWithYear, shorten(s.Weeks.From), firstYear, lastYear)
	}
}

// keptWeeks are compiled Weeks.
type keptWeeks struct {
	monday int64 // Monday of the first kept week, in days since 1970-01-01
	every  int64
}

// compile returns nil if there are no weeks to keep, or if they are invalid.
func (w *Weeks) compile() *keptWeeks {
	if w == nil || w.Every < 1 {
		return nil
	}
	day, yearly, err := parseDate(w.From)
	if err != nil || yearly {
		return nil
	}
	return &keptWeeks{mondayOf(day), int64(w.Every)}
}

func mondayOf(day int64) int64 { return day - int64(weekdayOf(day)+6)%7 }

// at reports whether the week of a day is kept. It also returns the first later day for which the
// answer may differ.
func (k *keptWeeks) at(day int64) (kept bool, until int64) {
	if day < k.monday {
		return false, k.monday
	}
	monday := mondayOf(day)
	if left := (monday - k.monday) / 7 % k.every; left > 0 {
		return false, monday + 7*(k.every-left)
	}
	return true, monday + 7
}

// String returns a text for lists of commands: "every 2 weeks from 2026-01-05".
func (w *Weeks) String() string { return fmt.Sprintf("every %d weeks from %s", w.Every, w.From) }
