package schedule

import (
	"context"
	"errors"
	"sync"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql/trip"
)

// slowLane computes expensive schedules one after the other, in its own goroutine. So an expensive
// schedule delays only other expensive ones.
type slowLane struct {
	mu      sync.Mutex
	waiting []trip.Candidate
	held    map[int64]bool // jobs in the lane, waiting or being computed
	signal  loop.Wake
}

const (
	// quickWork is the work that a look spends on one schedule before the job goes to the slow
	// lane: about 5 ms.
	quickWork = 5_000
	// slowWork is the work that the slow lane spends on one schedule: about a second. A job that
	// needs more gets no due times until it is edited.
	slowWork = 1_000_000
)

func newSlowLane() *slowLane { return &slowLane{held: map[int64]bool{}, signal: loop.NewWake()} }

// add puts a job into the lane, unless it is there already.
func (l *slowLane) add(c trip.Candidate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held[c.JobID] {
		l.held[c.JobID] = true
		l.waiting = append(l.waiting, c)
		l.signal.Up()
	}
}

// has reports whether a job is in the lane.
func (l *slowLane) has(jobID int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[jobID]
}

// len returns the number of jobs in the lane.
func (l *slowLane) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// next returns the job that has waited longest. The job stays in held until done.
func (l *slowLane) next() (c trip.Candidate, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return c, false
	}
	c = l.waiting[0]
	l.waiting = l.waiting[1:]
	return c, true
}

func (l *slowLane) done(c trip.Candidate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, c.JobID)
}

// runSlowLane claims the jobs of the slow lane until ctx is over.
func (c *Claimer) runSlowLane(ctx context.Context) {
	for ctx.Err() == nil {
		candidate, ok := c.slow.next()
		if !ok {
			select {
			case <-ctx.Done():
			case <-c.slow.signal:
			}
			continue
		}
		if err := c.claimSlow(ctx, candidate); err != nil && ctx.Err() == nil {
			c.Log.Warn("cannot claim due times, trying again", "error", err,
				"job", c.Definitions.Name(candidate.JobID))
		}
		c.slow.done(candidate) // the next look finds the job again if it still has an unclaimed due time
	}
}

func (c *Claimer) claimSlow(ctx context.Context, candidate trip.Candidate) error {
	now := c.Session.Now()
	d, ok := c.Definitions.Get(candidate.JobID, candidate.Version)
	if !ok || !c.Session.Fresh() {
		return nil
	}

	work := job.NewWork(ctx, slowWork)
	p := c.plan(candidate, d, work, now)
	if err := work.Err(); err != nil {
		if !errors.Is(err, job.ErrTooExpensive) {
			return err
		}
		p.broken, p.dueTimes = err, dueTimes{}
	}

	return c.writeHalves(ctx, []plan{p}, c.Session.Now())
}
