package schedule

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
)

// Claimer moves tasks that are due soon from idle to prepare, in this session's name.
type Claimer struct {
	DB        *sql.DB
	Exclusion *lock.Exclusion
	Session   Session
	Prepared  *Prepared
	Lookout   *Lookout
	Executing interface {
		Len() int
		Free() int
	}
	Places    *Places       // which tasks this node may take; nil: all
	LookAhead time.Duration // how long before it is due a task is claimed
	Cap       int           // tasks that may be prepared at once
	Slots     int           // attempts that may execute at once
	PerSlot   func() int    // how many attempts are likely to share a slot; nil: one
	Lanes     func() int    // how many batches are claimed at once, see sql.Lanes; nil: one
	Log       *slog.Logger

	wake   wake
	room   wake
	search job.Micros     // when a backlog is looked through for high priorities again
	behind job.Micros     // the earliest due time of the last look, if that left some for the next one; else zero
	missed map[int64]bool // what the last claim wanted and did not get: somebody took it, or has it locked
	hungry *atomic.Bool   // the last look left tasks that are due, because there was no room for them
}

const (
	claimPeriod = 500 * time.Millisecond
	claimBatch  = 800

	// searchDepth is how many due tasks of a backlog are looked through for a high priority, searchPause how long that is
	// left out after all had the same.
	searchDepth = 5000
	searchPause = 5 * time.Second

	// neglected is how late a task is before it is taken by a session that its bucket does not prefer.
	neglected = time.Second
	// urgent is how soon a task is due that is taken by whoever was told of it, preferred or not: whom it prefers may see
	// it only at the next glance.
	urgent = lookoutPeriod + 500*time.Millisecond
)

// NewClaimer sets what has no useful zero value.
func NewClaimer(c Claimer) *Claimer {
	c.wake, c.room, c.hungry = newWake(), newWake(), new(atomic.Bool)
	return &c
}

// Wake asks for a look now: a task was planned that is due at once.
func (c *Claimer) Wake() { c.wake.up() }

// Look asks for a look at what prefers this session: another node planned it, or gave it back.
func (c *Claimer) Look() {
	if !c.nothing() {
		c.room.up()
	}
}

// Room says that a slot became free.
func (c *Claimer) Room() {
	if c.hungry.Swap(false) {
		c.room.up()
	}
}

// Run claims until ctx ends.
func (c *Claimer) Run(ctx context.Context) error {
	wait := rand.N(claimPeriod)
	for {
		others := -neglected
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
			if wait == claimPeriod && c.nothing() {
				continue
			}
		case <-c.wake:
			others = urgent
		case <-c.room:
		}
		wait = claimPeriod
		n, err := c.claim(ctx, c.Session.Now(), others)
		switch {
		case err != nil && ctx.Err() == nil:
			c.Log.Warn("cannot claim tasks, trying again", "error", err)
		case n >= claimBatch:
			wait = 0 // there is more
		}
	}
}

// nothing tells whether there was no task to claim a moment ago.
func (c *Claimer) nothing() bool {
	g, ok := c.Lookout.seen()
	return ok && (g.FirstIdle == 0 || g.FirstIdle > c.Session.Now().Add(c.LookAhead))
}

// claim takes one batch: tasks in preferred buckets that are due within the look-ahead, and tasks in any bucket
// that are due before now + others.
func (c *Claimer) claim(ctx context.Context, now job.Micros, others time.Duration) (int, error) {
	limit := c.capacity()
	if limit == 0 || !c.Session.Fresh() {
		c.hungry.Store(true)
		return 0, nil
	}
	// With enough to do, what prefers others is left to them, unless it is older: else all would reach for the same rows.
	ahead, until := now.Add(c.LookAhead), now.Add(others)
	var all []sql.Slice
	if c.behind != 0 {
		all, until = c.Places.look(c.Session, ahead, until), min(until, c.behind.Add(-neglected))
	}
	found, err := c.idle(ctx, c.Places.look(c.Session, ahead, until), all, limit+len(c.missed), now)
	if err != nil {
		return 0, err
	}
	if len(found) > 0 && found[0].DueNow < now {
		c.Lookout.sawIdle(found[0].DueNow)
	}
	if found, err = c.Places.only(ctx, found); err != nil {
		return 0, err
	}
	found = c.missedLast(found)
	if found = c.fitting(found[:min(len(found), limit)], now); len(found) == 0 {
		return 0, nil
	}
	_, _, buckets := c.Session.Share()
	ids := make([]int64, len(found))
	locks := make([]sql.LockID, len(found))
	low, high := found[0].ID, found[0].ID
	for i, f := range found {
		ids[i], locks[i] = f.ID, sql.BucketLock(bucketOf(f.Hash, buckets))
		low, high = min(low, f.ID), max(high, f.ID)
	}
	base := c.Session.Reserve(high - low + 1)
	var claimed, took []job.Task // took: of those claimed, what is known to stand
	err = c.Exclusion.Do(ctx, lock.Change{
		Name:  "claim",
		Locks: locks,
		Rows: func(tx *sql.Tx) (err error) {
			if claimed, took = nil, nil; !c.Session.Fresh() { // any more: what is given back now must not be taken again
				return nil
			}
			claimed, err = tx.Claim(c.Session.ID(), base, ids)
			took = claimed
			return err
		},
		Settle: func(tx *sql.Tx) error {
			if err := tx.TakeLocks(locks); err != nil { // written by the claim, too
				return err
			}
			rows, err := tx.LockTasks(taskIDs(claimed)) // of the others nothing was sent
			if err != nil {
				return err
			}
			took = standingClaims(claimed, rows)
			return nil
		},
		// If we die before this, the rows are prepared for a session that is gone: its peers free them.
		Sets: func() { c.Prepared.Add(took, c.Session.Now()) },
	})
	if err != nil {
		return 0, err
	}
	if c.missed = nil; len(claimed) < len(ids) {
		c.missed = map[int64]bool{}
		for _, id := range ids {
			c.missed[id] = true
		}
		for _, t := range claimed {
			delete(c.missed, t.ID)
		}
	}
	if len(claimed) == 0 {
		return 0, nil // looking again at once does not help
	}
	return len(found), nil
}

// missedLast puts what the last claim did not get behind the others: where somebody keeps it locked, it would take the
// place of others each time.
func (c *Claimer) missedLast(found []sql.Candidate) []sql.Candidate {
	if len(c.missed) == 0 {
		return found
	}
	again := slices.DeleteFunc(slices.Clone(found), func(f sql.Candidate) bool { return !c.missed[f.ID] })
	return append(slices.DeleteFunc(found, func(f sql.Candidate) bool { return c.missed[f.ID] }), again...)
}

// idle lists idle tasks, those that are due by priority. With a backlog that is longer than a batch it looks for a high
// priority only as far as searchDepth, in all as well, and not at each look while there are none.
func (c *Claimer) idle(ctx context.Context, look, all []sql.Slice, limit int, now job.Micros) ([]sql.Candidate, error) {
	found, err := c.DB.IdleTasks(ctx, look, limit)
	if err != nil {
		return nil, err
	}
	if c.behind = 0; len(found) == limit {
		c.behind = now
		for _, f := range found {
			if !c.missed[f.ID] {
				c.behind = min(c.behind, f.DueNow)
			}
		}
	}
	if len(found) == limit && found[limit-1].DueNow <= now && now >= c.search {
		if found, err = c.DB.IdleByPriority(ctx, look, searchDepth, limit); err != nil {
			return nil, err
		}
		high, err := c.DB.IdleByPriority(ctx, all, searchDepth, limit)
		if err != nil {
			return nil, err
		}
		for _, h := range high {
			if h.Priority > 0 && !slices.ContainsFunc(found, func(f sql.Candidate) bool { return f.ID == h.ID }) {
				found = append(found, h)
			}
		}
		if !slices.ContainsFunc(found, func(f sql.Candidate) bool { return f.Priority != 0 }) {
			c.search = now.Add(searchPause)
		}
	}
	slices.SortStableFunc(found, func(a, b sql.Candidate) int {
		if a.DueNow > now || b.DueNow > now {
			return cmp.Compare(a.DueNow, b.DueNow)
		}
		return cmp.Compare(b.Priority, a.Priority)
	})
	return found, nil
}

// capacity is how many tasks may be claimed now: free slots and look-ahead less what both sets hold, and none
// while every slot is taken, so that a full node does not keep tasks from others.
func (c *Claimer) capacity() int {
	if c.Executing.Free() <= 0 {
		return 0
	}
	return max(0, min(claimBatch*orOne(c.Lanes), c.Cap-c.Prepared.Len()-c.Executing.Len()))
}

// fitting leaves out tasks that are due and would only wait here: beside the free slots, one for each slot is enough to
// go on with. What is left may be taken by who has room, and is come back for when a slot becomes free.
func (c *Claimer) fitting(found []sql.Candidate, now job.Micros) []sql.Candidate {
	room := (c.Executing.Free()+c.Slots)*orOne(c.PerSlot) - c.Prepared.Due(now)
	fit := slices.DeleteFunc(found, func(f sql.Candidate) bool {
		if f.DueNow > now {
			return false
		}
		room--
		return room < 0
	})
	c.hungry.Store(room < 0)
	return fit
}
