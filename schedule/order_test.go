package schedule

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// inTurn returns the runs that a member has started since the last call, in the order of their
// starts.
func (m *member) inTurn() (out []string) {
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	for _, s := range m.set.started {
		out = append(out, fmt.Sprintf("%s@%g", s.Spec.Name, s.Due.Sub(t0).Seconds()))
	}
	m.set.started = nil
	return out
}

// looks makes the three looks of a node in the order in which they may harm most: the claim and the
// start come before the look for overdue runs. It returns the starts in their order.
func (m *member) looks(seconds float64) []string {
	m.Helper()
	m.claims(seconds)
	if _, err := m.starter.start(m.Context(), m.session.now, m.session.now); err != nil {
		m.Fatal(err)
	}
	if _, err := m.starter.takeOverdue(m.Context(), m.session.now); err != nil {
		m.Fatal(err)
	}
	return m.inTurn()
}

// backlogged is a cluster after an outage of 30 s: the first two due times are prepared for a session that is gone, and
// nobody has claimed the later ones. It returns a living member whose claims start what is due.
func backlogged(t *testing.T, overlap job.Overlap) (c *cluster, m *member) {
	c = newCluster(t)
	gone, m := c.member(1, c.dsn), c.member(2, c.dsn)
	spec := every("j", 5)
	spec.Overlap = overlap
	c.create(spec, t0)
	gone.claims(0)
	m.claimer.Starter = m.starter
	return c, m
}

// TestLateDueTimesStartInOrder: after an outage, the first due time starts, whoever has prepared it.
func TestLateDueTimesStartInOrder(t *testing.T) {
	t.Run("skip", func(t *testing.T) {
		c, m := backlogged(t, job.OverlapSkip)
		c.want("after the outage", m.looks(32), "j@5")
		c.want("a moment later", m.looks(33))
		c.want("outcomes", c.outcomes(), "j 10 skipped", "j 15 skipped", "j 20 skipped", "j 25 skipped", "j 30 skipped")
		c.want("the next one", m.looks(35))
		c.finish(5, "j")
		c.want("the next one", m.looks(40), "j@40")
	})
	t.Run("allow", func(t *testing.T) {
		c, m := backlogged(t, job.OverlapAllow)
		started := append(m.looks(32), m.looks(33)...)
		c.want("in order", started, "j@5", "j@10", "j@15", "j@20", "j@25", "j@30")
	})
	t.Run("queue", func(t *testing.T) {
		c, m := backlogged(t, job.OverlapQueue)
		c.want("after the outage", m.looks(32), "j@5")
		c.want("the others wait", m.looks(33))
		c.want("in line", c.runsNow(), "j 5 executing", "j 10 waiting", "j 15 waiting", "j 20 waiting", "j 25 waiting", "j 30 waiting")
	})
	t.Run("replace: the latest", func(t *testing.T) {
		c, m := backlogged(t, job.OverlapReplace)
		started := append(m.looks(32), m.looks(33)...)
		c.want("started", started[len(started)-1:], "j@30")
	})
}

// TestADueTimeOnTimeWaitsForAHeldOne: once a node holds a late due time of a job, the next one waits
// behind it although it is on time.
func TestADueTimeOnTimeWaitsForAHeldOne(t *testing.T) {
	c, m := backlogged(t, job.OverlapAllow)
	c.exec("UPDATE run SET due_now = ? WHERE due <= ?", int64(t0.Add(32*time.Second)), int64(t0.Add(10*time.Second)))
	c.want("held", m.looks(33))
	c.want("held", m.starts(33.1))
	c.want("on time", m.starts(35))
	c.want("taken over", m.looks(35.1), "j@5", "j@10")
	c.want("the others", m.looks(37), "j@15", "j@20", "j@25", "j@30", "j@35")
}

// TestNobodyIsHeldForEver: a run that this node cannot start is given up, and not waited for again.
func TestNobodyIsHeldForEver(t *testing.T) {
	c, m := backlogged(t, job.OverlapAllow)
	var first int64
	if err := c.db.Raw().QueryRow("SELECT MIN(id) FROM run").Scan(&first); err != nil {
		t.Fatal(err)
	}
	m.starter.aside.put(first, t0.Add(60*time.Second)) // as if MySQL refused its start

	c.want("held", m.looks(32))
	c.want("held", m.looks(36.9))
	c.want("given up", append(m.looks(37), m.looks(39)...), "j@10", "j@15", "j@20", "j@25", "j@30", "j@35")
	c.want("on time", m.looks(40), "j@40")
	c.want("later", m.looks(60.1), "j@45", "j@50", "j@55", "j@60", "j@5")
}

// TestALockedRunIsPassed: somebody keeps the row of the earlier run locked.
func TestALockedRunIsPassed(t *testing.T) {
	c, m := backlogged(t, job.OverlapAllow)
	tx, err := c.db.Raw().Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("SELECT * FROM run WHERE due = ? FOR UPDATE", int64(t0.Add(5*time.Second))); err != nil {
		t.Fatal(err)
	}

	c.want("the others", append(m.looks(32), m.looks(33)...), "j@10", "j@15", "j@20", "j@25", "j@30")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	c.want("free again", m.looks(34), "j@5")
}

// TestAHoldCostsNoDeadline: a run is not held if it would then be too late to start.
func TestAHoldCostsNoDeadline(t *testing.T) {
	second := job.Duration(time.Second)
	for name, c := range map[string]struct {
		spec job.Spec
		late time.Duration
		want action
	}{
		"it has time":                {job.Spec{}, 30 * time.Second, hold},
		"its start deadline is near": {job.Spec{StartDeadline: 33 * second}, 30 * time.Second, start},
		"its start deadline is far":  {job.Spec{StartDeadline: 40 * second}, 30 * time.Second, hold},
		"it would be a misfire":      {job.Spec{}, 58 * time.Second, start},
		"a misfire that starts all":  {job.Spec{Misfire: job.Misfire{Policy: job.MisfireAll}}, 58 * time.Second, hold},
	} {
		t.Run(name, func(t *testing.T) {
			now := t0.Add(c.late)
			r := held(2, 0, trip.Schedule, trip.Prepared).Run
			c.spec.Defaults(t0.Time())
			j := &jobScene{def: &Definition{Spec: &c.spec}, unbegun: []trip.Unbegun{{Run: 1, JobID: 1, Due: t0 - 1}}}
			got := start
			if v := inOrder(&r, j, now); v != nil {
				got = v.action
			}
			if got != c.want {
				t.Errorf("action %v, want %v", got, c.want)
			}
		})
	}
}

// TestOrderAmongNodes: two nodes work off one backlog side by side. Of each job the due times start
// in order, whichever node starts them.
func TestOrderAmongNodes(t *testing.T) {
	c := newCluster(t)
	gone, one, two := c.member(1, c.dsn), c.member(2, c.dsn), c.member(3, c.dsn)
	const jobs, dues = 40, 8
	end := t0.Add(42 * time.Second).Time()
	for i := range jobs {
		spec := every(fmt.Sprintf("j%d", i), 5)
		spec.Overlap, spec.End = job.OverlapAllow, &end
		c.create(spec, t0)
	}
	gone.claims(0)

	var started atomic.Int64
	var all sync.WaitGroup
	for _, m := range []*member{one, two} {
		m.claimer.Starter, m.set.slots = m.starter, 30 // less than the backlog, so both nodes get some
		all.Go(func() {
			for begin := time.Now(); started.Load() < jobs*dues && time.Since(begin) < 15*time.Second; {
				now := m.at(41 + time.Since(begin).Seconds())
				m.claimer.round.again()
				_, err := m.claimer.look(m.Context(), now)
				if err == nil {
					_, err = m.starter.start(m.Context(), now, now)
				}
				if err == nil {
					_, err = m.starter.takeOverdue(m.Context(), now)
				}
				if err != nil {
					t.Error(err)
				}
				started.Add(int64(len(m.inTurn())))
			}
		})
	}
	all.Wait()

	if n := started.Load(); n != jobs*dues {
		t.Errorf("%d runs started, want %d", n, jobs*dues)
	}
	disorder := c.rows("SELECT CONCAT_WS(' ', a.job_id, a.due, b.due) FROM run a JOIN run b ON b.job_id = a.job_id" +
		" AND b.due > a.due AND b.started > 0 AND b.started < a.started WHERE a.started > 0")
	if len(disorder) > 0 {
		t.Errorf("%d pairs of due times started in the wrong order", len(disorder))
	}
}
