package schedule

import (
	"testing"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// TestGivenGoesAlong: what a run was given reaches its start on any way, and its next attempt.
func TestGivenGoesAlong(t *testing.T) {
	c := newCluster(t)
	m, other := c.member(1, c.dsn), c.member(2, c.dsn)
	spec := every("j", 3600)
	spec.Overlap = job.OverlapAllow
	id := c.create(spec, t0)

	given := &job.Given{Upstream: &job.Upstream{Job: "a/b", Run: 77, Outcome: job.Failed, Scheduled: t0}}
	insert := func(run int64, owner trip.Owner, seconds float64, g *job.Given) {
		due := m.at(seconds)
		c.tx(func(tx *sql.Tx) error {
			return trip.Insert(tx, owner, []trip.Run{{
				Launch: trip.Launch{Run: run}, JobID: id, AppID: 1, Version: 1, Kind: trip.Manual, Request: run, Attempt: 1,
				Given: g, Due: due, DueNow: due, Hash: c.hash,
			}})
		})
	}
	starts := func(what string, starter *Starter, set *executing, want int) {
		t.Helper()
		if _, err := starter.takeOverdue(t.Context(), m.session.now); err != nil {
			t.Fatal(err)
		}
		if len(set.started) != want {
			t.Fatalf("%s: started %d runs, want %d", what, len(set.started), want)
		}
		for _, s := range set.started {
			if (s.Given != nil) != (s.Launch.Run < 10) || s.Given != nil && *s.Given.Upstream != *given.Upstream {
				t.Errorf("%s: run %d was given %+v", what, s.Launch.Run, s.Given)
			}
		}
		set.started = nil
	}

	// Idle and due; taken ahead of its time; taken over from a node that does not start it.
	insert(1, trip.NoOwner, 1, given)
	insert(11, trip.NoOwner, 1, nil)
	m.at(2)
	starts("idle", m.starter, m.set, 2)

	insert(2, trip.NoOwner, 10, given)
	m.claims(4)
	if got := m.starter.Prepared.Take(m.at(20), 10); len(got) != 1 || got[0].Given == nil {
		t.Errorf("prepared: %+v", got)
	}
	other.at(30)
	m.at(30)
	starts("taken over", other.starter, other.set, 1)

	// A next attempt.
	c.tx(func(tx *sql.Tx) error { return trip.InsertAgain(tx, []trip.Again{{After: 2, Run: 3, At: m.at(31)}}) })
	m.at(32)
	starts("next attempt", m.starter, m.set, 1)
}

func (c *cluster) tx(do func(*sql.Tx) error) {
	c.Helper()
	if err := c.db.Tx(c.Context(), do); err != nil {
		c.Fatal(err)
	}
}
