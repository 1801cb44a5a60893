package schedule

import (
	"context"

	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// takeIdle prepares idle runs that are due within the look-ahead: retries, runs that people asked for, backfills. Those that
// are due already are started from where they are, see overdue.go.
func (c *Claimer) takeIdle(ctx context.Context, now job.Micros) (found int, err error) {
	room := min(claimBatch, c.Most-c.Prepared.Len())
	if !c.Session.Fresh() || room <= 0 {
		return 0, nil
	}
	slice := shareOf(c.Session)
	slice.From, slice.Before = now, now.Add(c.LookAhead)
	idle, err := trip.IdleRuns(c.DB.Reader(ctx), slice, room)
	if err != nil || len(idle) == 0 {
		return 0, err
	}

	launches := make([]trip.Launch, len(idle))
	for i := range idle {
		launches[i] = idle[i].Launch
	}
	var taken []trip.Run
	return len(idle), c.Exclusion.Do(ctx, lock.Change{
		Name: "take",
		Rows: func(tx *sql.Tx) error {
			taken = nil
			got, err := trip.Take(tx, c.Session.Number(), trip.NoOwner, launches)
			taken = atLaunches(idle, got)
			return err
		},
		// As with a claim, nobody asks what became of it: runs that were taken and are in no set become overdue.
		Settle: func(*sql.Tx) error { taken = nil; return nil },
		Sets:   func() { c.Prepared.Add(taken) },
	})
}

// atLaunches returns the runs that were taken, at their new launches.
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
