package schedule

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql/trip"
)

const (
	claimPeriod = 500 * time.Millisecond
	// neglect is how late a due time must be before any session claims it. Until then only the
	// session whose share contains it claims it.
	neglect = time.Second
	// lanes is the number of parts of a backlog that are claimed in parallel.
	lanes = 2
	// laneTurn is the longest time that lanes claim a backlog before the loop turns to idle runs,
	// backfills and neglected shares.
	laneTurn = time.Second
)

// Run claims until ctx is over.
func (c *Claimer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var lane sync.WaitGroup
	lane.Go(func() { c.runSlowLane(ctx) })
	defer lane.Wait()
	defer cancel()

	wait := loop.Jitter(claimPeriod)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		case <-c.Wake:
			c.round.again()
		}

		now := c.Session.Now()
		c.reach.adapt(c.LookAhead, c.Prepared.Len(), c.Most)
		if wait = claimPeriod; !c.round.due(now) && c.Lookout.NothingToClaim(now.Add(c.LookAhead)) {
			continue // a change on this node wakes the loop; the lookout sees changes on others a moment later
		}
		more, err := c.look(ctx, now)
		if err != nil && ctx.Err() == nil {
			c.Log.Warn("cannot claim due times, trying again", "error", err)
		}
		if more {
			wait = 0
		}
	}
}

// look claims one batch of the session's own share, and neglected due times in one share of
// another session. It reports whether there is more to claim at once.
func (c *Claimer) look(ctx context.Context, now job.Micros) (more bool, err error) {
	own, others := shareOf(c.Session), otherShares(c.Session)
	other := others[turn(now)%len(others)]
	own.Before, other.Before = now.Add(c.reach.near(c.LookAhead)), now.Add(-neglect)

	c.round.begin(now)
	for _, slice := range []trip.Slice{own, other} {
		slice.From = c.round.from(slice)
		c.left.Store(false)
		more, err := c.claimIn(ctx, now, slice)
		if err != nil || more {
			return more, err // a busy node leaves the rest to others
		}
		if !c.left.Load() {
			c.round.claimed(slice)
		}
	}

	c.round.end(append(others, own))

	if err := c.feed(ctx, now); err != nil {
		return false, err
	}

	found, err := c.takeIdle(ctx, now)
	return err == nil && found == claimBatch, err
}

// claimIn claims one batch of a slice, and reports whether there is more. During a backlog it
// claims parts of the slice in parallel, several batches each. MySQL then works on one part while
// this node computes the others.
func (c *Claimer) claimIn(ctx context.Context, now job.Micros, slice trip.Slice) (more bool, err error) {
	if slice.FromHash >= slice.ToHash {
		return false, nil
	}
	if !c.backlog {
		found, err := c.claim(ctx, now, slice)
		c.backlog = found >= claimBatch
		return c.backlog, err
	}

	// Claim the parts of the slice in parallel, one lane each.
	full, failed := make([]bool, lanes), make([]error, lanes)
	var all sync.WaitGroup
	for i := range lanes {
		part := slice
		width := slice.ToHash - slice.FromHash
		part.FromHash, part.ToHash = slice.FromHash+width*i/lanes, slice.FromHash+width*(i+1)/lanes
		all.Go(func() { full[i], failed[i] = c.claimOn(ctx, part) })
	}

	all.Wait()
	c.backlog = slices.Contains(full, true)
	return c.backlog, errors.Join(failed...)
}

// claimOn claims batches of a slice until a batch is not full or laneTurn has passed. It reports
// whether there is more.
func (c *Claimer) claimOn(ctx context.Context, slice trip.Slice) (more bool, err error) {
	for over := c.Session.Now().Add(laneTurn); ; {
		now := c.Session.Now()
		found, err := c.claim(ctx, now, slice)
		if found < claimBatch || err != nil || now > over {
			return found >= claimBatch, err
		}
	}
}

// shareOf returns the hashes of a session's share, without bounds of time. For a moment, sessions
// may count each other differently. Then their shares overlap or leave a gap. Neither does harm:
// claims are guarded, and any session claims a due time in a gap once it is late.
func shareOf(s Session) trip.Slice {
	index, of := s.Share()
	if index < 0 || of <= 0 {
		return trip.Slice{} // the session has not seen the others yet, or takes no work
	}
	return trip.Slice{FromHash: index * job.Hashes / of, ToHash: (index + 1) * job.Hashes / of}
}

// otherShares returns the shares of the other sessions, in the order of this session's turns.
func otherShares(s Session) []trip.Slice {
	index, of := s.Share()
	// Cover every hash that a row can have: a hash that was changed outside the program may be in
	// no share.
	all := trip.Slice{FromHash: math.MinInt16, ToHash: math.MaxInt16 + 1}
	if index < 0 || of <= 1 {
		return []trip.Slice{all}
	}

	out := make([]trip.Slice, 0, of)
	for i := range of - 1 {
		other := (index + 1 + i) % of
		slice := trip.Slice{FromHash: other * job.Hashes / of, ToHash: (other + 1) * job.Hashes / of}
		if other == 0 {
			slice.FromHash = all.FromHash
		}
		if other == of-1 {
			slice.ToHash = all.ToHash
		}
		out = append(out, slice)
	}

	return out
}

// turn numbers the looks by MySQL's clock, so all sessions have the same number at a time. So two
// sessions never look at the same foreign share at once. With equal turns, all sessions that
// finish a backlog early would compete for the rows of the slowest session, and delay it.
func turn(now job.Micros) int { return int(now.Time().UnixMicro() / claimPeriod.Microseconds()) }
