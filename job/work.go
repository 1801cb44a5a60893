package job

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"go-crontab/job/problem"
)

// Work is a budget for schedule arithmetic in one request. It counts stretches of time in which the
// schedule's calendars neither open nor close. A stretch costs one unit per calendar. If the
// calendars are open, it also costs one unit per cron expression. Once the budget is spent or the
// context has ended, every schedule from On stops at once with a meaningless answer. So callers
// must check Err before they use the answer. A Work is not safe for concurrent use. A nil Work
// bounds nothing.
type Work struct {
	ctx    context.Context
	whole  *Work // units spent here count there, too
	budget int64
	spent  int64
	err    error
}

// Budgets. A unit takes about a microsecond.
const (
	// DefiningWork is for a request about one definition: it reads, creates or changes a job.
	DefiningWork = 300_000
	// ListingWork is for a request about many jobs. JobWork is for each job in such a request.
	ListingWork = 1_000_000
	JobWork     = 100_000
)

// ErrTooExpensive reports that the budget of a Work was used up.
var ErrTooExpensive = errors.New("the schedule is too expensive to compute")

// NewWork makes a budget in units. The budget also ends when ctx ends.
func NewWork(ctx context.Context, units int64) *Work { return &Work{ctx: ctx, budget: units} }

// Part makes a smaller budget within this one.
func (w *Work) Part(units int64) *Work { return &Work{ctx: w.ctx, whole: w, budget: units} }

// Spent returns the number of units used.
func (w *Work) Spent() int64 { return w.spent }

// Err returns nil while the budget lasts. After that it returns ErrTooExpensive, or the cause for
// which the context ended.
func (w *Work) Err() error {
	switch {
	case w == nil:
		return nil
	case w.err == nil && w.ctx.Err() != nil:
		return context.Cause(w.ctx)
	}
	return w.err
}

// ctxEvery is the number of units between two checks of the context.
const ctxEvery = 1 << 10

// spend uses units. It returns false once there are no more.
func (w *Work) spend(units int64) bool {
	if w == nil {
		return true
	}
	if w.err != nil {
		return false
	}

	before := w.spent
	w.spent += units
	switch {
	case w.spent > w.budget:
		w.err = ErrTooExpensive
	case before/ctxEvery != w.spent/ctxEvery && w.ctx.Err() != nil:
		w.err = context.Cause(w.ctx)
	case !w.whole.spend(units):
		w.err = w.whole.err
	}

	return w.err == nil
}

// On returns the schedule with a budget for its computations. Once the budget is spent, the
// schedule has no due time.
func (w *Work) On(s Schedule) Schedule { return worked{w.on(s), w} }

// worked is a schedule with a budget. Once the budget is spent it has no due times, because a
// computation that stopped early means nothing.
type worked struct {
	Schedule
	work *Work
}

// Next returns the first due time after t.
func (s worked) Next(t time.Time) (time.Time, bool) {
	due, ok := s.Schedule.Next(t)
	return due, ok && s.work.Err() == nil
}

// Last returns the last due time in (from, to].
func (s worked) Last(from, to time.Time) (time.Time, bool) {
	due, ok := s.Schedule.Last(from, to)
	return due, ok && s.work.Err() == nil
}

// Mark returns the mark of the schedule.
func (s worked) Mark(due time.Time) Mark { return markOf(s.Schedule, due) }

// MovedFrom returns the time from which a due time moved.
func (s worked) MovedFrom(due time.Time) (from time.Time, ok bool) {
	if m, is := s.Schedule.(Mover); is {
		return m.MovedFrom(due)
	}
	return from, false
}

func (w *Work) on(s Schedule) Schedule {
	switch s := s.(type) {
	case Shifted:
		return Shifted{w.on(s.Schedule), s.By}
	case Bounded:
		s.Schedule = w.on(s.Schedule)
		if s.counted != nil {
			s.counted = newTally() // do not share counts of a computation that stopped early
		}
		return s
	case Filtered:
		s.work, s.cost = w, costOf(s.base)
		return s
	}

	return s // computes its answer directly
}

// costOf returns the cost of one look at a schedule, in units.
func costOf(s Schedule) int64 {
	if u, ok := s.(Union); ok {
		return int64(len(u))
	}
	return 1
}

// Explain replaces ErrTooExpensive with Problems that say what makes the definition expensive, and
// what to do. Other errors stay unchanged.
func (s *Spec) Explain(err error, calendars []*Calendar) error {
	if !errors.Is(err, ErrTooExpensive) {
		return err
	}

	why, windows := "", 0
	for _, c := range calendars {
		windows = max(windows, c.windowsADay())
	}

	if windows > 0 {
		why += fmt.Sprintf(": %d windows a day × %d schedules", windows, max(1, len(s.Schedules)))
	}

	if s.MaxFires > 0 && s.Start != nil {
		why += ", counted since its start, " + s.Start.Format(time.DateOnly)
	}

	return Wrong("schedule",
		problem.TooExpensive.Advise("give a later start, no max_fires, or a calendar with fewer windows"), why)
}

// ErrBusy reports that too many requests are computing schedules in this process.
var ErrBusy = errors.New("this node is busy computing schedules for others")

// computeWait limits how long a request waits for a place in computing.
const computeWait = 5 * time.Second

// computing limits how many requests do schedule arithmetic at once, to half of the processors. The
// other half is left to the code that starts commands.
var computing = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// Computing returns the number of requests that compute schedules in this process.
func Computing() int { return len(computing) }

// Compute does the schedule arithmetic of a request within a budget. It limits how many requests
// compute at the same time, and stops when the caller's context ends. It returns the error of do.
// If do has no error, it returns the error of the work.
func Compute(ctx context.Context, units int64, do func(*Work) error) error {
	w := NewWork(ctx, units)
	return w.Turn(func() error { return do(w) })
}

// Turn does the same as Compute, for one part of the request to which w belongs.
func (w *Work) Turn(do func() error) error {
	late := time.NewTimer(computeWait)
	defer late.Stop()
	select {
	case computing <- struct{}{}:
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	case <-late.C:
		return ErrBusy
	}
	defer func() { <-computing }()

	if err := do(); err != nil {
		return err
	}
	return w.Err()
}
