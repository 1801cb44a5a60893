package schedule

import (
	"context"
	"slices"

	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// GiveBack makes all prepared runs of this session idle, so other nodes start them on time.
// Without it, other nodes would start them two seconds late. A node gives its runs back when it is
// about to stop, is cordoned, or has lost its guard.
//
// The caller must stop claims and starts first.
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
		// If the commit was not applied, the runs become overdue.
		Settle: func(*sql.Tx) error { return nil },
		Sets:   s.Prepared.Forget,
	})
}

// launches lists the launches in the set, in the order of ids.
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
