package schedule

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// patience is the time that a run may be overdue before any node may start it. It is longer with a
// slow link to MySQL: see pace.patience.
const patience = 2 * time.Second

// takeOverdue starts overdue runs: prepared runs of nodes that died, hang or have no free slot;
// prepared runs of this session that its set does not hold; and idle runs that are due. It returns
// the pause until the next look.
//
// Taking a run and starting it are one transaction. With two transactions, two nodes could take a
// run from each other forever.
func (s *Starter) takeOverdue(ctx context.Context, now job.Micros) (next time.Duration, err error) {
	if !s.mayStart() || s.Executing.Free() <= 0 {
		return overduePeriod, nil
	}

	woken, err := s.wakeByTime(ctx, now)
	if err != nil {
		return overduePeriod, err
	}
	if woken > 0 {
		now++ // they are due before this
	}

	found, others, err := s.findOverdue(ctx, now)
	if err != nil {
		return overduePeriod, err
	}
	if _, err := s.passSlotsOn(ctx, lateForSlots(others, now), now); err != nil {
		return overduePeriod, err
	}

	found, room, more := s.fitting(found)
	defer s.unreserve(room)
	more = more && len(found) > 0
	found = append(found, s.homeless(ctx, others, now)...) // these need no room
	if len(found) == 0 {
		return overduePeriod, nil // nothing to do until a slot is free
	}

	// Taking a run over raises its claim count, so judge the runs with the new count.
	runs, holders := make([]trip.Run, 0, len(found)), make(map[int64]trip.Owner, len(found))
	for _, h := range found {
		holders[h.Launch.Run] = h.Owner
		h.Claim++
		runs = append(runs, h.Run)
	}

	now = s.Session.Now() // with a slow link to MySQL the look took long, so the caller's now is old
	verdicts, err := s.decideHalves(ctx, runs, holders, now)
	if err != nil {
		return overduePeriod, err
	}

	return s.nextOverdue(verdicts, more), s.learn(ctx, verdicts, now)
}

// fitting returns as many of the first runs as there is room for, and reserves that room. It also
// reports whether runs are left.
func (s *Starter) fitting(found []trip.Held) (fit []trip.Held, taken int, more bool) {
	runs := make([]trip.Run, len(found))
	for i := range found {
		runs[i] = found[i].Run
	}
	room := s.reserve(len(runs))
	n, taken := s.fit(runs, room)
	s.unreserve(room - taken)
	return found[:n], taken, n < len(found)
}

// nextOverdue returns the pause until the next look.
func (s *Starter) nextOverdue(verdicts []verdict, more bool) time.Duration {
	switch {
	case more, slices.ContainsFunc(verdicts, func(v verdict) bool { return v.action == unread }):
		return 0
	case slices.ContainsFunc(verdicts, func(v verdict) bool { return v.action == hold && v.at == 0 }):
		s.busy++
		return busyPause(s.busy)
	}
	s.busy = 0
	return overduePeriod
}

// findOverdue lists the overdue runs that this node may run, by priority and then by time. It also
// returns the idle runs that only other nodes may run.
func (s *Starter) findOverdue(ctx context.Context, now job.Micros) (found, others []trip.Held, err error) {
	r := s.DB.Reader(ctx)
	found, others, err = s.findIn(r, []trip.Owner{trip.NoOwner}, trip.Idle, now)
	if err != nil {
		return nil, nil, err
	}
	if len(found) < startBatch {
		owners, err := trip.Owners(r)
		if err != nil {
			return nil, nil, err
		}
		overdue, _, err := s.findIn(r, owners, trip.Prepared, now.Add(-s.pace.patience()))
		if err != nil {
			return nil, nil, err
		}
		found = append(found, overdue...)
	}

	slices.SortStableFunc(found, func(a, b trip.Held) int {
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.DueNow, b.DueNow))
	})

	return found[:min(startBatch, len(found))], others, nil
}

// lateForSlots returns the groups of woken runs that have not started for some seconds. Only other
// nodes may run these runs.
func lateForSlots(others []trip.Held, now job.Micros) map[int32]bool {
	late := map[int32]bool{}
	for i := range others {
		if h := &others[i]; h.Group < 0 && h.DueNow < now.Add(-trip.WokenFirst) {
			late[-h.Group] = true
		}
	}
	return late
}

// passSlotsOn wakes the next runs of groups whose woken runs have found no node with room, or
// whose rate admits runs now. The earlier woken runs stay idle, and ask for a slot again when a
// node has room.
func (s *Starter) passSlotsOn(ctx context.Context, groups map[int32]bool, now job.Micros) (woken int, err error) {
	if len(groups) == 0 {
		return 0, nil
	}

	var wakes job.Micros
	err = s.Exclusion.Do(ctx, lock.Change{
		Name: "pass slots on",
		Rows: func(tx *sql.Tx) error {
			woken = 0
			locked, err := trip.LockGroupIDs(tx, slices.Sorted(maps.Keys(groups)))
			if err != nil {
				return err
			}
			groups := slices.Collect(maps.Values(locked))
			woken, err = trip.WakeGroups(tx, groups, now)
			wakes = firstWake(groups)
			return err
		},
		Settle: func(*sql.Tx) error { return nil }, // the next look reads the rows again
		Sets:   func() {},
	})
	if err != nil {
		return 0, err
	}

	s.setAlarm(wakes, now)
	if woken > 0 {
		s.WakeOverdue.Up()
	}
	return woken, nil
}

// overduePages bounds the batches that one look reads. A look needs several batches if this node
// may not run many of the runs.
const overduePages = 10

// findIn lists startable runs of the given owners. out is a batch that this node may run. others
// are the runs for other nodes that findIn read on the way.
func (s *Starter) findIn(
	r sql.Reader, owners []trip.Owner, state trip.State, before job.Micros,
) (out, others []trip.Held, err error) {
	after := trip.Held{}
	after.DueNow = math.MinInt64
	for range overduePages {
		page, err := trip.Startable(r, owners, state, after, before, startBatch)
		if err != nil || len(page) == 0 {
			return out, others, err
		}
		defs, err := s.Definitions.current(r, page)
		if err != nil {
			return nil, nil, err
		}
		for _, h := range page {
			if h.Owner == s.Session.Number() && s.Prepared.Has(h.Launch) ||
				s.aside.rests(h.Launch.Run, s.Session.Now()) {
				continue // this node will start the run anyway, or has set it aside
			}
			d := defs[h.JobID]
			if d != nil && !d.admits(s.Labels) {
				others = append(others, h)
				continue
			}
			if d != nil { // nil: the job is gone, and any node ends its runs
				h.Rank = d.rank()
			}
			out = append(out, h)
		}
		if len(page) < startBatch || len(out) >= startBatch {
			return out, others, nil
		}
		after = page[len(page)-1]
	}

	return out, others, nil
}
