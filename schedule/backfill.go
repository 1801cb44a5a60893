package schedule

import (
	"context"

	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

const (
	// backfillBatch bounds the backfills that one look feeds with runs.
	backfillBatch = 100
	// backfillLooks bounds how many due times of a backfill one look checks for an earlier success.
	backfillLooks = 1000
	// backfillSpread is the most due times between a backfill's oldest live run and its cursor.
	// Each look counts the live runs in that range, so the range must stay short.
	backfillSpread = 2000
)

// meal is the change that one look makes to a backfill.
type meal struct {
	trip.Hungry
	before job.Micros // the cursor when it was read
	dues   []job.Micros
	rank   int // the priority of its runs
}

// feed gives backfills their next runs, up to the number that may be alive at once. The rows hold
// all the state: a look counts the live runs and moves the cursor. Two looks at the same time are
// safe: the second one finds the cursor moved and writes nothing.
func (c *Claimer) feed(ctx context.Context, now job.Micros) error {
	if !c.Session.Fresh() || c.Most <= c.Prepared.Len() {
		return nil
	}

	hungry, err := trip.HungryBackfills(c.DB.Reader(ctx), c.fed, backfillBatch)
	if err != nil {
		return err
	}

	c.fed = 0 // the next look starts from the first backfill, unless this batch is full
	if len(hungry) == backfillBatch {
		c.fed = hungry[len(hungry)-1].ID
	}
	if len(hungry) == 0 {
		return nil
	}
	if err := c.learnFor(ctx, hungry); err != nil {
		return err
	}

	var meals []meal
	for i := range hungry {
		m, err := c.serve(ctx, &hungry[i], now)
		if err != nil {
			return err
		}
		if m != nil {
			meals = append(meals, *m)
		}
	}

	return c.writeMeals(ctx, meals, now)
}

// learnFor reads the definitions of backfills that are not cached.
func (c *Claimer) learnFor(ctx context.Context, hungry []trip.Hungry) error {
	candidates := make([]trip.Candidate, len(hungry))
	for i := range hungry {
		candidates[i] = trip.Candidate{JobID: hungry[i].JobID, Version: hungry[i].Version}
	}
	return c.learn(ctx, candidates)
}

// serve computes the next due times of a backfill. It returns nil if nothing changes.
func (c *Claimer) serve(ctx context.Context, h *trip.Hungry, now job.Micros) (*meal, error) {
	m := &meal{Hungry: *h, before: h.NextDue}
	m.Updated = now
	if h.Deleted {
		m.State, m.NextDue = trip.BackfillCancelled, 0
		return m, nil
	}

	d, ok := c.Definitions.Get(h.JobID, h.Version)
	if !ok || d.Err != nil || !d.admits(c.Labels) {
		return nil, nil // the backfill goes on once the job can be read, on a node that may run it
	}
	if !c.Limits.mayFeed(d.Spec.App, now) {
		return nil, nil // the backfill goes on when its app may start more runs
	}

	m.rank = d.Spec.Priority

	alive, oldest, err := h.Alive(c.DB.Reader(ctx))
	if err != nil {
		return nil, err
	}

	m.DoneTo = oldest - 1
	if alive == 0 {
		m.DoneTo = h.Last
		if h.NextDue != 0 {
			m.DoneTo = h.NextDue - 1
		}
	}

	// Choose due times for the free places, then see whether anything has changed.
	if h.NextDue != 0 && alive < h.Parallel {
		if err := m.choose(c.DB.Reader(ctx), d.Schedule, h.Parallel-alive); err != nil {
			return nil, err
		}
	}

	switch {
	case m.NextDue == 0 && alive == 0 && len(m.dues) == 0:
		m.State = trip.BackfillDone
	case m.NextDue == h.NextDue:
		return nil, nil
	}

	return m, nil
}

// choose takes at most `most` due times from the cursor on, and moves the cursor past them.
func (m *meal) choose(r sql.Reader, s job.Schedule, most int) error {
	if spread := s.Count(m.DoneTo.Time(), (m.NextDue - 1).Time()); spread > backfillSpread {
		return nil
	}

	first := m.NextDue - 1 // after an edit of the job, the cursor may be no due time
	for looks := 0; len(m.dues) < most && looks < backfillLooks; {
		var dues []job.Micros
		for at := first; len(dues) < most; {
			due, ok := next(s, at)
			if !ok || due > m.Last {
				break
			}
			dues, at = append(dues, due), due
		}
		looks += len(dues)
		if len(dues) == 0 {
			m.NextDue = 0
			return nil
		}
		done := map[job.Micros]bool{}
		if m.Missing {
			var err error
			if done, err = trip.Succeeded(r, m.JobID, dues); err != nil {
				return err
			}
		}
		for _, due := range dues {
			if len(m.dues) == most {
				break
			}
			if first = due; done[due] {
				m.LeftOut++
				continue
			}
			m.dues = append(m.dues, due)
			m.Planned++
		}
	}

	m.NextDue = 0
	if due, ok := next(s, first); ok && due <= m.Last {
		m.NextDue = due
	}

	return nil
}

// writeMeals moves the cursors and inserts the runs as prepared. It drops backfills whose cursors
// have moved since they were read.
func (c *Claimer) writeMeals(ctx context.Context, meals []meal, now job.Micros) error {
	if len(meals) == 0 {
		return nil
	}

	ids := make([]int64, len(meals))
	runs := make([][]trip.Run, len(meals))
	for i := range meals {
		ids[i], runs[i] = meals[i].ID, meals[i].runs(c.Session, now)
	}

	var claimed []trip.Run
	return c.Exclusion.Do(ctx, lock.Change{
		Name: "backfill",
		Rows: func(tx *sql.Tx) error {
			claimed = nil
			cursors, err := trip.CursorsOfBackfills(tx, ids)
			if err != nil {
				return err
			}
			var moved []trip.BackfillRow
			for i := range meals {
				if cursor, ok := cursors[meals[i].ID]; ok && cursor == meals[i].before {
					moved = append(moved, meals[i].BackfillRow)
					claimed = append(claimed, runs[i]...)
				}
			}
			if err := trip.MoveBackfills(tx, moved); err != nil {
				return err
			}
			return trip.Insert(tx, c.Session.Number(), claimed)
		},
		// As in a claim, nobody looks up the runs of an unknown commit: they become overdue.
		Settle: func(*sql.Tx) error { claimed = nil; return nil },
		Sets:   func() { c.Prepared.Add(claimed) },
	})
}

// runs makes the runs of the chosen due times.
func (m *meal) runs(s Session, now job.Micros) []trip.Run {
	if len(m.dues) == 0 {
		return nil
	}

	id, given := s.Mint(len(m.dues)), job.ParseGiven(m.Given)
	out := make([]trip.Run, len(m.dues))
	for i, due := range m.dues {
		out[i] = trip.Run{
			Launch: trip.Launch{Run: id + int64(i), Claim: 1}, JobID: m.JobID, AppID: m.AppID, Version: m.Version,
			Kind: trip.Backfill, Request: m.ID, Attempt: 1, Given: given, Due: due, DueNow: max(now, due), Hash: m.Hash, Rank: m.rank,
		}
	}

	return out
}
