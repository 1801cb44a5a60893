package node_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/schedule/edit"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// TestBackfill: each due time of the range is started once, with its own due time, and no more at a
// time than allowed. The same request again is the same backfill. Succeeded due times can be left
// out. A backfill can be cancelled.
func TestBackfill(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	g := newGauge(150 * time.Millisecond)
	n := c.start("one", func(cfg *node.Config) { cfg.Executor = g })
	other := c.start("two", func(cfg *node.Config) { cfg.Executor = g })
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j := n.create(job.Spec{Name: "hourly", Every: job.Duration(time.Hour), Start: &start, Overlap: job.OverlapAllow})
	from, to := start.Add(24*time.Hour), start.Add(47*time.Hour)
	b, err := n.Editor().Backfill(t.Context(), j.ID, edit.Range{From: from, To: to, Parallel: 3}, "key")
	if err != nil || b.Total != 24 {
		t.Fatalf("got %+v, %v; want 24 due times", b, err)
	}

	same, err := other.Editor().Backfill(t.Context(), j.ID, edit.Range{From: from, To: to, Parallel: 3}, "key")
	if err != nil || same.ID != b.ID {
		t.Errorf("the same request again: %+v, %v", same, err)
	}

	if _, err := other.Editor().Backfill(t.Context(), j.ID, edit.Range{From: from, To: to, Parallel: 4},
		"key"); !errors.Is(err, job.ErrKeyReused) {
		t.Errorf("another request with that key: %v", err)
	}

	done := func(id int64) func() bool {
		return func() bool {
			b, err := c.backfill(id)
			return err == nil && b.State == trip.BackfillDone
		}
	}

	await(t, "it is done", 40*time.Second, done(b.ID))
	if got := g.peak("hourly"); got != 3 {
		t.Errorf("%d at once, want 3", got)
	}

	var dues []job.Micros
	for _, r := range c.history(j.ID) {
		if r.Request == b.ID && r.Outcome == job.Succeeded {
			dues = append(dues, r.Due)
		}
	}

	if len(dues) != 24 || dues[0] != job.MicrosOf(from) || dues[23] != job.MicrosOf(to) || !slices.IsSorted(dues) {
		t.Errorf("got due times %v", dues)
	}
	if b, err = c.backfill(b.ID); err != nil {
		t.Fatal(err)
	}

	outcomes, _, err := c.db.BackfillOutcomes(t.Context(), &b)
	if err != nil || outcomes[job.Succeeded] != 24 {
		t.Errorf("outcomes: %v, %v", outcomes, err)
	}

	again, err := n.Editor().Backfill(t.Context(), j.ID,
		edit.Range{From: from, To: to.Add(2 * time.Hour), Parallel: 5, Missing: true}, "")
	if err != nil {
		t.Fatal(err)
	}

	await(t, "what was missing is done", 20*time.Second, done(again.ID))
	if b, err := c.backfill(again.ID); err != nil || b.LeftOut != 24 || b.Planned != 2 {
		t.Errorf("got %+v, %v; want 24 left out, 2 planned", b, err)
	}

	long, err := n.Editor().Backfill(t.Context(), j.ID, edit.Range{From: start, To: to, Parallel: 1}, "")
	if err != nil {
		t.Fatal(err)
	}

	await(t, "it has begun", 10*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state = 'ended' AND request = ?", long.ID) > 2
	})
	if b, err := other.Editor().CancelBackfill(t.Context(), long.ID); err != nil || b.State != trip.BackfillCancelled {
		t.Errorf("cancel: %+v, %v", b, err)
	}

	await(t, "what executed has ended", 10*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state <> 'ended' AND request = ?", long.ID) == 0
	})
	ended := c.count("SELECT COUNT(*) FROM run WHERE state = 'ended' AND request = ?", long.ID)
	time.Sleep(1500 * time.Millisecond)
	if n := c.count("SELECT COUNT(*) FROM run WHERE state = 'ended' AND request = ?", long.ID); n != ended {
		t.Errorf("%d runs after the cancel was answered", n-ended)
	}

	for name, err := range map[string]error{
		"ahead": second(
			n.Editor().Backfill(t.Context(), j.ID,
				edit.Range{From: from, To: time.Now().Add(time.Hour), Parallel: 1}, "")),
		"upside down": second(n.Editor().Backfill(t.Context(), j.ID, edit.Range{From: to, To: from, Parallel: 1}, "")),
		"too many": second(
			n.Editor().Backfill(t.Context(), j.ID, edit.Range{From: from, To: to, Parallel: 101}, "")),
		"no due time": second(
			n.Editor().Backfill(t.Context(), j.ID,
				edit.Range{From: from.Add(time.Minute), To: from.Add(2 * time.Minute), Parallel: 1}, "")),
	} {
		var p job.Problems
		if !errors.As(err, &p) || len(p) != 1 {
			t.Errorf("%s: got %v, want one problem", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestBackfillTakesTurns: runs that must not overlap do not, and neither the schedule nor the
// backfill loses a due time to the other. The schedule may skip its own due time while an earlier
// one is executing.
func TestBackfillTakesTurns(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	g := newGauge(0)
	g.took = func(a execute.Attempt) time.Duration { return 120 * time.Millisecond }
	n := c.start("one", func(cfg *node.Config) { cfg.Executor = g })
	c.start("two", func(cfg *node.Config) { cfg.Executor = g })
	j := n.create(job.Spec{Name: "turns", Every: job.Duration(time.Second)})
	now := n.Now()

	// Its due times before its creation follow from the interval.
	spec := j.Spec
	start := j.Spec.Start.Add(-time.Minute)
	spec.Start = &start
	if _, err := n.Editor().Update(t.Context(), j.ID, j.Changes, spec); err != nil {
		t.Fatal(err)
	}

	b, err := n.Editor().Backfill(t.Context(), j.ID,
		edit.Range{From: now.Add(-20 * time.Second), To: now, Parallel: 10}, "")
	if err != nil {
		t.Fatal(err)
	}

	await(t, "it is done", 60*time.Second, func() bool {
		b, err := c.backfill(b.ID)
		return err == nil && b.State == trip.BackfillDone
	})

	// A due time that waited for the backfill may still execute. It explains those that were skipped.
	c.settled(20*time.Second, n.Now())
	if got := g.peak("turns"); got != 1 {
		t.Errorf("%d at once", got)
	}

	runs := c.history(j.ID)
	slices.SortFunc(runs, func(a, b read.Run) int { return cmp.Compare(a.Started, b.Started) })
	var last job.Micros // start of the latest run of the backfill
	for _, r := range runs {
		if r.Request != 0 {
			last = r.Started
		}
	}

	left, inRow, lost := 20, 0, 0
	for _, r := range runs {
		overlaps := func(o read.Run) bool { return o.Request == 0 && o.Due < r.Due && o.Ended > r.Due }
		// Its turn came at a moment when no run of the backfill was planned.
		overtook := func(o read.Run) bool {
			return o.Request == 0 && o.Due > r.Due &&
				(strings.Contains(r.Reason.Text, "the run due "+o.Due.String()+" was still running") ||
					strings.Contains(r.Reason.Text, "another due time is already waiting"))
		}
		// The one before it had its turn only after this one was due, on a busy machine.
		waited := func(o read.Run) bool {
			return o.Request == 0 && o.Due < r.Due && o.Started > r.Due &&
				strings.Contains(r.Reason.Text, "another due time is already waiting")
		}

		switch {
		case r.Request == 0 && r.Outcome == job.Skipped && slices.ContainsFunc(runs, waited):
		case r.Request == 0 && r.Outcome == job.Skipped && (slices.ContainsFunc(runs, overlaps) || r.Ended > last):
		case r.Request == 0 && r.Outcome == job.Skipped && slices.ContainsFunc(runs, overtook) && lost < 2:
			lost++
		case r.Outcome != job.Succeeded:
			t.Errorf("due %s, origin %d: %s, %s", r.Due, r.Request, r.Outcome, r.Reason)
		case r.Request != 0:
			left, inRow = left-1, 0
		case left > 0:
			if inRow++; inRow == 10 { // enough for the ends to notice the backfill
				t.Errorf("ten due times in a row while %d of the backfill wait", left)
			}
		}
	}

	if left > 0 {
		t.Errorf("%d due times of the backfill have no run", left)
	}
}

// TestBackfillOfDeadNode: a run of a backfill that a dead node was executing ends lost, and the
// backfill continues.
func TestBackfillOfDeadNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.expiry = expiry
	n := c.start("one", func(cfg *node.Config) { cfg.Executor = newGauge(50 * time.Millisecond) })
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j := n.create(job.Spec{Name: "hourly", Every: job.Duration(time.Hour), Start: &start})
	b := trip.BackfillRow{
		ID: 77, JobID: j.ID, First: job.MicrosOf(start), Last: job.MicrosOf(start.Add(5 * time.Hour)),
		DoneTo: job.MicrosOf(start) - 1, Parallel: 1, Total: 6, Planned: 1,
		NextDue: job.MicrosOf(start.Add(time.Hour)), State: trip.Backfilling,
	}

	dead := c.deadSession(1)
	run := trip.Run{
		Launch: trip.Launch{Run: int64(dead)<<32 + 1, Claim: 1}, JobID: j.ID, AppID: 1, Version: 1,
		Kind: trip.Backfill, Request: b.ID, Attempt: 1, Due: b.First, DueNow: b.First, Hash: j.Hash,
	}

	if err := c.db.Tx(t.Context(), func(tx *sql.Tx) error {
		if err := trip.Insert(tx, dead, []trip.Run{run}); err != nil {
			return err
		}
		if _, err := trip.Start(tx, dead, 0, false, []trip.Launch{run.Launch}, job.MicrosOf(n.Now()), 0); err != nil {
			return err
		}
		if err := trip.MarkBegun(tx, []trip.Begun{{JobID: j.ID, Running: run.Launch.Run}}); err != nil {
			return err
		}

		return trip.InsertBackfill(tx, &b)
	}); err != nil {
		t.Fatal(err)
	}

	c.exec("UPDATE backfill SET planned = 1 WHERE id = 77")
	await(t, "it is done", 40*time.Second, func() bool {
		b, err := c.backfill(77)
		return err == nil && b.State == trip.BackfillDone
	})

	b, err := c.backfill(77)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := c.db.BackfillOutcomes(t.Context(), &b); err != nil || got[job.Lost] != 1 || got[job.Succeeded] != 5 {
		t.Errorf("got %v, %v; want one lost, five succeeded", got, err)
	}
}

// backfill reads a backfill.
func (c *cluster) backfill(id int64) (trip.BackfillRow, error) {
	return trip.BackfillOf(c.db.Reader(context.Background()), id)
}

// deadSession inserts a session whose last beat was at an instant.
func (c *cluster) deadSession(beat int64) trip.Owner {
	c.t.Helper()
	c.exec("INSERT INTO session (id, node, started, beat_at) VALUES (UNHEX(REPEAT('ab', 16)), 'dead', 1, ?)", beat)
	c.exec("INSERT INTO life (session, node, started) VALUES (UNHEX(REPEAT('ab', 16)), 'dead', 1)")
	return trip.Owner(c.count("SELECT id FROM life WHERE node = 'dead'"))
}
