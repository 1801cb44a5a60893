package schedule

import (
	"context"

	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// takeIdle prepares idle runs that become due within the look-ahead: retries, manual runs,
// backfills, and runs that a node claimed for other nodes. Idle runs that are already due start
// without being prepared: see overdue.go. takeIdle returns the number of runs that it took.
func (c *Claimer) takeIdle(ctx context.Context, now job.Micros) (took int, err error) {
	room := min(claimBatch, c.Most-c.Prepared.Len())
	if !c.Session.Fresh() || room <= 0 {
		return 0, nil
	}

	r := c.DB.Reader(ctx)
	found, err := trip.IdleRuns(r, trip.Slice{From: now, Before: now.Add(c.LookAhead), ToHash: job.Hashes}, claimBatch)
	if err != nil || len(found) == 0 {
		return 0, err
	}

	defs, err := c.Definitions.current(r, found)
	if err != nil {
		return 0, err
	}

	idle := c.ours(found, defs)
	idle = idle[:min(room, len(idle))]
	if len(idle) == 0 {
		return 0, nil
	}

	launches := make([]trip.Launch, len(idle))
	for i := range idle {
		launches[i] = idle[i].Launch
	}

	var taken []trip.Run
	err = c.Exclusion.Do(ctx, lock.Change{
		Name: "take",
		Rows: func(tx *sql.Tx) error {
			taken = nil
			got, err := trip.Take(tx, c.Session.Number(), trip.NoOwner, launches)
			taken = atLaunches(idle, got)
			return err
		},
		// As in a claim, nobody looks up the runs of an unknown commit. If the commit was applied,
		// the runs are in no set, and become overdue.
		Settle: func(*sql.Tx) error { taken = nil; return nil },
		Sets:   func() { c.Prepared.Add(taken) },
	})

	return len(taken), err
}

// ours returns the idle runs that this session should take: runs in its share, runs of jobs that
// only some nodes may run, if this node is one of them, and runs that a node claimed for other
// nodes. For the last two the share does not count, because the node with the share may not be
// allowed to run them. For example, a node with handlers only may not run commands.
func (c *Claimer) ours(found []trip.Held, defs map[int64]*Definition) (out []trip.Held) {
	share := shareOf(c.Session)
	for _, h := range found {
		d := defs[h.JobID]
		if d == nil || !d.admits(c.Labels) {
			continue // other nodes take the run; a run of a deleted job ends when it is due
		}
		placed := d.Err == nil && d.Place.String() != ""
		claimed := h.Launch.Claim == 0 && ofSchedule(&h.Run)
		if placed || claimed || h.Hash >= share.FromHash && h.Hash < share.ToHash {
			h.Rank = d.rank()
			out = append(out, h)
		}
	}

	return out
}

// atLaunches returns the runs that were taken, with their new launches.
func atLaunches(idle []trip.Held, launches []trip.Launch) (runs []trip.Run) {
	claims := make(map[int64]int32, len(launches))
	for _, l := range launches {
		claims[l.Run] = l.Claim
	}
	for _, h := range idle {
		if claim, ok := claims[h.Launch.Run]; ok {
			h.Claim = claim
			runs = append(runs, h.Run)
		}
	}
	return runs
}
