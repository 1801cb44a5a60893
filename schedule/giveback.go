package schedule

import (
	"context"
	"slices"

	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// GiveBack makes everything that this session has prepared idle, so that other nodes start it on time. It is for a node that is
// about to stop, that is cordoned, or that has lost its guard. Without it they would start the runs two seconds late.
//
// Whoever calls it lets nothing new be claimed or started before.
func (s *Starter) GiveBack(ctx context.Context) error {
	return s.Exclusion.Alone(ctx, lock.Change{
		Name: "give back",
		Rows: func(tx *sql.Tx) error {
			for part := range slices.Chunk(s.Prepared.launches(), startBatch) {
				if _, err := trip.Release(tx, s.Session.Number(), trip.Prepared, part); err != nil {
					return err
				}
			}
			return nil
		},
		// If it was not applied, the runs become overdue.
		Settle: func(*sql.Tx) error { return nil },
		Sets:   s.Prepared.Forget,
	})
}

// launches lists what the set holds, in the order of ids.
func (p *Prepared) launches() []trip.Launch {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]trip.Launch, 0, len(p.byRun))
	for _, it := range p.byRun {
		out = append(out, it.Launch)
	}
	slices.SortFunc(out, func(a, b trip.Launch) int { return int(a.Run - b.Run) })
	return out
}
