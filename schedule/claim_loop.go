package schedule

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

const (
	claimPeriod = 500 * time.Millisecond
	// fullPeriod is how often a look has no lower bound. Dead entries of the index, which a long backup keeps from being
	// purged, stand before the living ones: a look that begins at the watermark does not pass them.
	fullPeriod = time.Minute
	// neglect is how late a due time is when any session claims it: the one whose share it is in seems not to.
	neglect = time.Second
	// behindMark is how far the watermark stays behind the clock.
	behindMark = 10 * time.Second
)

// Run claims until ctx is over.
func (c *Claimer) Run(ctx context.Context) error {
	var lane sync.WaitGroup
	lane.Go(func() { c.runSlowLane(ctx) })
	defer lane.Wait()

	wait := rand.N(claimPeriod) // so that nodes do not march in step
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		case <-c.signal:
			c.fullAt = 0
		}

		more, err := c.look(ctx, c.Session.Now())
		if err != nil && ctx.Err() == nil {
			c.Log.Warn("cannot claim due times, trying again", "error", err)
		}
		wait = claimPeriod
		if more {
			wait = 0
		}
	}
}

// Look makes the next look come at once and without a lower bound. It is for changes that may set a cursor into the past, such as
// the end of a pause. A look that is lost with its node is made up for within a minute.
func (c *Claimer) Look() { c.signal.up() }

// look claims one batch of the session's own share, and of the others what their sessions left behind. It reports whether
// there is more to claim at once.
func (c *Claimer) look(ctx context.Context, now job.Micros) (more bool, err error) {
	full := now >= c.fullAt
	own := shareOf(c.Session)
	own.Before = now.Add(c.LookAhead)
	neglected := trip.Slice{ToHash: job.Hashes, Before: now.Add(-neglect)}
	if !full {
		own.From, neglected.From = c.mark, c.mark
	}

	for _, slice := range []trip.Slice{own, neglected} {
		found, err := c.claim(ctx, now, slice)
		if err != nil || found == claimBatch {
			return err == nil, err // who has enough to do leaves the rest to others
		}
	}
	if err := c.feed(ctx, now); err != nil {
		return false, err
	}
	if found, err := c.takeIdle(ctx, now); err != nil || found == claimBatch {
		return err == nil, err
	}
	if full { // every job with an old cursor has been seen
		c.fullAt, c.mark = now.Add(fullPeriod), now.Add(-behindMark)
	}
	return false, nil
}

// shareOf is the slice of all times and the hashes of a session's share. Sessions that count each other differently for a moment
// have shares that overlap or leave a gap. That is harmless: claims are guarded, and what nobody prefers is claimed once it is late.
func shareOf(s Session) trip.Slice {
	index, of := s.Share()
	return trip.Slice{FromHash: index * job.Hashes / of, ToHash: (index + 1) * job.Hashes / of}
}
