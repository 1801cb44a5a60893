package job

import (
	"time"

	"go-crontab/job/problem"
)

// Backfill is a request to start all due times of a job in a range now, even due times that ran
// before.
type Backfill struct {
	ID       int64
	JobID    int64
	From, To Micros // range of due times, inclusive
	Parallel int    // most runs at once
	Missing  bool   // leave out due times with a successful run

	State   BackfillState
	NextDue Micros // first due time without a run; zero: none left
	Total   int64  // due times in the range
	Planned int64  // due times that have or had a run
	LeftOut int64  // due times left out because they succeeded before
	Who     string
	Created Micros
	Updated Micros
}

// BackfillState is the progress of a backfill.
type BackfillState int8

// The states of a backfill.
const (
	Backfilling BackfillState = iota
	BackfillDone
	BackfillCancelled
)

// Bounds of backfills.
const (
	MaxParallel     = 100
	MaxBackfillDues = 1_000_000
)

// CheckBackfill returns the problems of a requested backfill, as Problems, or nil. now is MySQL's
// clock.
func CheckBackfill(from, to time.Time, parallel int, now time.Time) error {
	var p Problems
	checkYear(&p, "from", from)
	checkYear(&p, "to", to)
	switch {
	case p != nil:
	case from.After(now):
		p.Add("from", problem.LiesAhead, from.Format(time.RFC3339))
	case to.Before(from):
		p.Add("to", problem.Before, to.Format(time.RFC3339), "from", from.Format(time.RFC3339))
	case to.After(now):
		p.Add("to", problem.LiesAhead, to.Format(time.RFC3339))
	}

	if parallel < 1 || parallel > MaxParallel {
		p.Add("parallel", problem.NotBetween, parallel, 1, MaxParallel)
	}

	if p == nil {
		return nil
	}

	return p
}

func checkYear(p *Problems, field string, t time.Time) {
	if t.IsZero() {
		p.Add(field, problem.Missing.Advise("give a time such as 2027-01-31T03:00:00Z"))
	} else if y := t.UTC().Year(); y < 1971 || y > 2099 {
		p.Add(field, problem.YearNotBetween, y, 1971, 2099)
	}
}
