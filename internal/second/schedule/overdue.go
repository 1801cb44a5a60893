package schedule

import (
	"context"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// patience is how long a run may be overdue before any node may start it.
const patience = 2 * time.Second

// takeOverdue starts runs that nobody has started in time: prepared runs of nodes that died, hang or have no free slot, prepared runs
// of this session that its set does not hold, and idle runs that are due. Taking a run and starting it are one transaction. If
// they were two, two nodes could take a run from each other for ever.
// It reports whether there is more to do soon.
func (s *Starter) takeOverdue(ctx context.Context, now job.Micros) (again bool, err error) {
	room := min(startBatch, s.Executing.Free())
	if !s.Session.Fresh() || room <= 0 {
		return false, nil
	}
	found, err := s.findOverdue(ctx, now, room)
	if err != nil || len(found) == 0 {
		return false, err
	}

	runs, holders := make([]trip.Run, 0, len(found)), make(map[int64]trip.Owner, len(found))
	for _, h := range found {
		if h.Owner == s.Session.Number() && s.Prepared.Has(h.Launch) {
			continue // it waits for its turn
		}
		holders[h.Launch.Run] = h.Owner
		h.Claim++
		runs = append(runs, h.Run)
	}
	if len(runs) == 0 {
		return false, nil
	}
	verdicts, err := s.decide(ctx, runs, holders, now)
	if err != nil {
		return false, err
	}
	again = len(found) == room || slices.ContainsFunc(verdicts, func(v verdict) bool { return v.action == unread || v.action == hold && v.at == 0 })
	return again, s.learn(ctx, verdicts, now)
}

// findOverdue lists the runs that are to be taken, the earliest first.
func (s *Starter) findOverdue(ctx context.Context, now job.Micros, room int) ([]trip.Held, error) {
	r := s.DB.Reader(ctx)
	idle, err := trip.IdleRuns(r, trip.Slice{Before: now, ToHash: job.Hashes}, room)
	if err != nil || len(idle) == room {
		return idle, err
	}
	owners, err := trip.Owners(r)
	if err != nil {
		return nil, err
	}
	overdue, err := trip.Overdue(r, owners, 0, now.Add(-patience), room-len(idle))
	return append(idle, overdue...), err
}
