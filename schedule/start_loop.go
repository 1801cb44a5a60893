package schedule

import (
	"context"
	"sync"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
)

const (
	// together is how far beyond the lead one start reaches. Runs that are due within together
	// share one transaction.
	together = 15 * time.Millisecond
	// overduePeriod is the time between two looks for overdue runs.
	overduePeriod = time.Second
	// startPeriod is the longest pause between two looks.
	startPeriod = 250 * time.Millisecond
)

// Run starts runs until ctx is over. A second goroutine looks for overdue runs: these looks read
// many rows, and due runs must not wait for them.
func (s *Starter) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var overdue sync.WaitGroup
	overdue.Go(func() { s.runOverdue(ctx) })
	defer overdue.Wait()
	defer cancel()

	for {
		now := s.Session.Now()
		if wait := s.untilNext(now); wait > 0 {
			s.pace.rest()
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(wait):
			case <-s.Prepared.signal:
			case <-s.Wake:
			}
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}

		s.pace.begin()
		took, err := s.start(ctx, now, now.Add(s.pace.lead()+together))
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("cannot start runs, trying again", "error", err)
		}
		if took > 0 {
			s.pace.end()
		} else { // the lease is not fresh, or there is no room
			s.pace.rest()
			select {
			case <-ctx.Done():
			case <-time.After(startPeriod):
			case <-s.Wake:
			}
		}
	}
}

// runOverdue starts overdue runs until ctx is over.
func (s *Starter) runOverdue(ctx context.Context) {
	asked := false // a run was woken, or the last look left work
	_ = loop.Loop{
		First:  loop.Jitter(overduePeriod),
		Period: overduePeriod,
		Wake:   s.WakeOverdue,
		Log:    s.Log,
		Failed: "cannot start overdue runs, trying again",
	}.Run(ctx, func(ctx context.Context, woken bool) (pause time.Duration, err error) {
		if !s.mayStart() || s.Executing.Free() <= 0 {
			asked = false
			return 0, loop.ErrSkipped
		}
		now := s.Session.Now()
		if !asked && !woken && s.Lookout.NothingToStart(now) {
			return 0, loop.ErrSkipped
		}
		next, err := s.takeOverdue(ctx, now)
		next = s.alarm.pause(next, s.Session.Now())
		asked = next < overduePeriod || err != nil
		return max(time.Millisecond, next), err
	})
}

// untilNext returns the time until the next start. It is zero when a run is due within the lead.
func (s *Starter) untilNext(now job.Micros) time.Duration {
	at, ok := s.Prepared.Next()
	if !ok {
		return startPeriod
	}
	return min(startPeriod, max(0, at.Sub(now)-s.pace.lead()))
}
