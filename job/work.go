package job

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"go-crontab/job/problem"
)

// Work bounds what somebody's questions about schedules may cost. A stretch of time in which the calendars of a schedule
// neither open nor close costs a unit for each of these, and where they are open one for each of its expressions. Once it is
// used up, or its context has ended, every walk of a schedule of On ends at once, with an answer that means nothing: whoever
// asks looks at Err before making use of it. It is not for several goroutines. A nil Work bounds nothing.
type Work struct {
	ctx    context.Context
	whole  *Work // what is spent here is spent there, too
	budget int64
	spent  int64
	err    error
}

// Budgets of work. A unit takes about a microsecond.
const (
	// DefiningWork is for one definition: a request that asks about a job, or one that creates or changes it.
	DefiningWork = 300_000
	// ListingWork is for a request about many jobs, and JobWork for each of them.
	ListingWork = 1_000_000
	JobWork     = 100_000
)

// ErrTooExpensive says that the budget of a Work was used up.
var ErrTooExpensive = errors.New("the schedule is too expensive to compute")

// NewWork makes a budget of so many units, which ends with ctx.
func NewWork(ctx context.Context, units int64) *Work { return &Work{ctx: ctx, budget: units} }

// Part is a budget of its own within another one.
func (w *Work) Part(units int64) *Work { return &Work{ctx: w.ctx, whole: w, budget: units} }

// Spent returns how many units were used.
func (w *Work) Spent() int64 { return w.spent }

// Err is nil while there is something left; else ErrTooExpensive, or why the context has ended.
func (w *Work) Err() error {
	switch {
	case w == nil:
		return nil
	case w.err == nil && w.ctx.Err() != nil:
		return context.Cause(w.ctx)
	}
	return w.err
}

// ctxEvery is after how many units the context is looked at.
const ctxEvery = 1 << 10

// spend uses units. It is false when there are no more, and from then on.
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

// On is a schedule whose walks use this work. Once that is used up it has no due time.
func (w *Work) On(s Schedule) Schedule { return worked{w.on(s), w} }

// worked has no due times when its work is used up: what a walk has come to then means nothing.
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

// Mark is that of the schedule.
func (s worked) Mark(due time.Time) Mark { return markOf(s.Schedule, due) }

func (w *Work) on(s Schedule) Schedule {
	switch s := s.(type) {
	case Shifted:
		return Shifted{w.on(s.Schedule), s.By}
	case Bounded:
		s.Schedule = w.on(s.Schedule)
		if s.counted != nil {
			s.counted = newTally() // what was counted when the work ended is not to be remembered elsewhere
		}
		return s
	case Filtered:
		s.work, s.cost = w, costOf(s.base)
		return s
	}
	return s // jumps to its answer
}

// costOf is how many units one look at a schedule costs.
func costOf(s Schedule) int64 {
	if u, ok := s.(Union); ok {
		return int64(len(u))
	}
	return 1
}

// Explain says of ErrTooExpensive what makes a definition expensive, and what to do, as Problems. Other errors stay.
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
		why += ", all counted since start, " + s.Start.Format(time.DateOnly)
	}
	return Wrong("schedule", problem.TooExpensive.Advise("give a later start, no max_fires, or a calendar with fewer windows"), why)
}

// Affordable tells whether the due times of a definition can be computed: nil, Problems, or why it is not known.
func (s *Spec) Affordable(ctx context.Context, now time.Time, calendars []*Calendar) error {
	if len(s.Calendars) == 0 {
		return nil
	}
	schedule, err := s.Compile(calendars...)
	if err != nil {
		return nil // what is wrong with it is said elsewhere
	}
	err = Compute(ctx, DefiningWork, func(w *Work) error {
		Preview(w.On(schedule), now, warnAhead)
		return nil
	})
	return s.Explain(err, calendars)
}

// ErrBusy says that this process already computes as many schedules as it may.
var ErrBusy = errors.New("this node is busy computing schedules for others")

// computeWait is how long one waits for those who compute.
const computeWait = 5 * time.Second

// computing has as many places as may compute schedules at once for people: half of the processors. The other half is left
// to whatever starts commands.
var computing = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// Computing counts those who compute schedules for people in this process.
func Computing() int { return len(computing) }

// Compute does schedule arithmetic that somebody has asked for: within a budget, not beside many others, and no longer than
// whoever asked waits for it. It returns the error of do, and else that of the work.
func Compute(ctx context.Context, units int64, do func(*Work) error) error {
	w := NewWork(ctx, units)
	return w.Turn(func() error { return do(w) })
}

// Turn is Compute for a part of what w is for.
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
