package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/schedule/edit"
	"go-crontab/sql"
	"go-crontab/sql/trip"
	"go-crontab/test/faultproxy"
)

// past makes a range of instants from seconds after t0.
func past(from, to float64, parallel int) edit.Range {
	instant := func(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))).Time() }
	return edit.Range{From: instant(from), To: instant(to), Parallel: parallel}
}

func (p *person) backfills(id int64, want edit.Range, key string) trip.BackfillRow {
	p.Helper()
	b, err := p.Backfill(p.ctx, id, want, key)
	if err != nil {
		p.Fatal(err)
	}
	return b
}

// overlapping makes a job that has been due every 10 s since before t0, and whose runs may overlap.
func (p *person) overlapping() int64 {
	spec := ofEvery("j", 10)
	start := t0.Add(-1000 * time.Second).Time()
	spec.Start, spec.Overlap = &start, job.OverlapAllow
	id := p.creates(spec)
	p.must(p.Update(p.ctx, id, 0, spec))
	p.exec("UPDATE job SET next_due = ?", int64(t0.Add(1000*time.Second))) // nothing but the backfill
	return id
}

func (c *cluster) wantBackfill(what, want string) {
	c.Helper()
	c.want(what, c.rows("SELECT CONCAT_WS(' ', state, CONCAT('next ', (next_due - ?) / 1000000), total, planned, left_out) FROM backfill", int64(t0)), want)
}

func (c *cluster) finishAll(outcome string) {
	c.exec("UPDATE run SET state = 'ended', owner = -2, outcome = ?, final = 1 WHERE state = 'executing'", outcome)
}

// TestBackfill: a backfill keeps its allowed number of runs alive until no due time is left.
func TestBackfill(t *testing.T) {
	c := newCluster(t)
	p, m, other := c.person(c.dsn), c.member(1, c.dsn), c.member(2, c.dsn)
	id := p.overlapping()
	b := p.backfills(id, past(-60, -20, 2), "key")
	if again := p.at(1).backfills(id, past(-60, -20, 2), "key"); again != b {
		t.Errorf("asked again: got %+v, want %+v", again, b)
	}

	c.wantBackfill("at first", "running next -60.0000 5 0 0")
	m.claims(1)
	other.claims(1)
	c.want("two at once", m.starts(1), "j@-50", "j@-60")
	c.wantBackfill("two begun", "running next -40.0000 5 2 0")
	m.claims(2)
	c.want("while they execute", m.starts(2))
	c.finish(-50, "j")
	other.claims(3)
	c.want("one has ended", other.starts(3), "j@-40")
	c.finishAll("succeeded")
	m.claims(4)
	c.want("the others have", m.starts(4), "j@-20", "j@-30")
	c.wantBackfill("all begun", "running 5 5 0")
	m.claims(5)
	c.wantBackfill("while they execute", "running 5 5 0")
	c.finishAll("succeeded")
	m.claims(6)
	c.wantBackfill("done", "done 5 5 0")
	c.want("runs", c.rows("SELECT CONCAT_WS(' ', kind, request = ?, COUNT(*)) FROM run GROUP BY kind, request", b.ID), "backfill 1 5")
}

// TestBackfillOfMissing: due times with a succeeded run of any kind are left out.
func TestBackfillOfMissing(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	id := p.overlapping()
	p.backfills(id, past(-60, -40, 5), "")
	m.claims(1)
	m.starts(1)
	c.finish(-60, "j")
	c.finish(-40, "j")
	c.finishAll("failed")
	m.claims(2)
	c.exec("DELETE FROM backfill")
	want := past(-60, -20, 5)
	want.Missing = true
	p.backfills(id, want, "")
	m.claims(3)
	c.want("what is missing", m.starts(3), "j@-20", "j@-30", "j@-50")
	c.wantBackfill("two were there", "running 5 3 2")
}

// TestCancelBackfill: a cancelled backfill neither starts nor retries runs.
func TestCancelBackfill(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	id := p.overlapping()
	m.starter.Window = 0
	b := p.backfills(id, past(-60, -20, 2), "")
	m.claims(1)
	m.starter.Prepared.Forget()
	for range 2 {
		if b, err := p.at(2).CancelBackfill(p.ctx, b.ID); err != nil || b.State != trip.BackfillCancelled {
			t.Fatal(b, err)
		}
	}

	c.want("nothing starts", append(m.takesOverdue(4), m.takesOverdue(4.1)...))
	c.wantEnded("ended", "-60.0000 skipped 1 the backfill was cancelled", "-50.0000 skipped 1 the backfill was cancelled")
	m.claims(5)
	c.wantBackfill("cancelled", "cancelled 5 2 0")
	if _, err := p.CancelBackfill(p.ctx, 4711); !errors.Is(err, sql.ErrNotFound) {
		t.Errorf("no such backfill: got %v, want sql.ErrNotFound", err)
	}
}

// TestBackfillAndItsJob: a backfill rests while its job is paused, and ends with it.
func TestBackfillAndItsJob(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	id := p.overlapping()
	p.backfills(id, past(-60, -20, 2), "")
	p.must(p.Pause(p.ctx, id, job.PauseRequest{}))
	m.claims(1)
	c.wantBackfill("paused", "running next -60.0000 5 0 0")
	p.must(p.Resume(p.ctx, id))
	p.must(p.Delete(p.ctx, id))
	m.claims(2)
	c.wantBackfill("deleted", "cancelled 5 0 0")
	for name, want := range map[string]edit.Range{
		"ahead": past(10, 20, 1), "no due time": past(-9, -1, 1), "not parallel": past(-60, -20, 0), "no job": past(-60, -20, 1),
	} {
		if _, err := p.Backfill(p.ctx, id, want, ""); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// TestTwoFeedOneBackfill: if two nodes compute the same due times of a backfill, only one writes
// them.
func TestTwoFeedOneBackfill(t *testing.T) {
	c := newCluster(t)
	p, m, other := c.person(c.dsn), c.member(1, c.dsn), c.member(2, c.dsn)
	id := p.overlapping()
	p.backfills(id, past(-60, -20, 2), "")
	hungry, err := trip.HungryBackfills(c.db.Reader(c.Context()), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.claimer.learnFor(c.Context(), hungry); err != nil {
		t.Fatal(err)
	}

	slow, err := other.claimer.serve(c.Context(), &hungry[0], t0)
	if err != nil {
		t.Fatal(err)
	}

	m.claims(1)
	if err := other.claimer.writeMeals(c.Context(), []meal{*slow}, t0); err != nil {
		t.Fatal(err)
	}

	c.want("claimed", c.rows(allRuns, int64(t0)), "j -60.0000 prepared 1 1", "j -50.0000 prepared 1 1")
}

// TestUnknownCommitsOfABackfill: a backfill is created once, and its runs are not lost.
func TestUnknownCommitsOfABackfill(t *testing.T) {
	for name, action := range map[string]faultproxy.Action{"the reply is lost": faultproxy.CutAfter(), "the commit never arrives": faultproxy.CutBefore()} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			dsn, proxy := c.proxied()
			p, m := c.person(dsn), c.member(1, dsn)
			id := p.overlapping()
			m.starter.Window = 0
			proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("INSERT INTO backfill"), Action: action})
			b := p.backfills(id, past(-60, -30, 4), "")
			c.want("backfills", c.rows("SELECT id FROM backfill"), fmt.Sprint(b.ID))
			proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("INSERT INTO run"), Action: action})
			m.claims(1)
			m.claims(1.1)
			started := slices.Concat(m.starts(1.1), m.takesOverdue(4), m.takesOverdue(4.1))
			c.want("started", []string{strings.Join(started, " ")}, "j@-30 j@-40 j@-50 j@-60")
			proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("backfill b FORCE INDEX"), Action: action})
			if b, err := p.at(5).CancelBackfill(p.ctx, b.ID); err != nil || b.State != trip.BackfillCancelled {
				t.Fatal(b, err)
			}
			c.want("cancelled once", c.rows("SELECT COUNT(*) FROM audit WHERE action = 'cancel'"), "1")
		})
	}
}
