package schedule

import (
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/test/faultproxy"
)

// TestStartsWhatItClaimsLate: a claim starts due times that have come. It prepares runs that cannot
// start at once.
func TestStartsWhatItClaimsLate(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	m.claimer.Starter = m.starter
	c.exec("INSERT INTO grp (id, name, slots) VALUES (7, 'g', 1)")
	grouped := every("grouped", 60)
	grouped.Group = "g"
	c.create(grouped, t0)
	c.create(every("late", 60), t0)
	busy := c.create(every("busy", 60), t0)
	c.create(every("ahead", 66), t0)

	m.claims(0) // nothing has come
	c.want("started at once", m.set.take())
	c.exec("DELETE FROM run")
	c.exec("UPDATE job SET next_due = ? WHERE name <> 'ahead'", int64(t0.Add(60*time.Second)))
	c.exec("INSERT INTO run (id, job_id, app_id, version, due, kind, request, state, owner, claim, due_now, hash, started, spawn_by)"+
		" VALUES (77, ?, 1, 1, ?, 'schedule', 0, 'executing', 9, 1, ?, 5, 1, 1)", busy, int64(t0), int64(t0))
	c.exec("UPDATE job SET running = 77 WHERE id = ?", busy)

	m.claims(61)
	c.want("started at once", m.set.take(), "late@60")
	c.want("rows", c.rows("SELECT CONCAT_WS(' ', j.name, r.state, r.claim, r.owner, r.started > 0, r.spawn_by > r.started, j.running = r.id, j.begun_to = r.due)"+
		" FROM run r JOIN job j ON j.id = r.job_id WHERE r.id <> 77 ORDER BY j.name, r.due"),
		"ahead prepared 1 1 0 0 0 0", "busy prepared 1 1 0 0 0 0", "grouped prepared 1 1 0 0 0 0", "late executing 1 1 1 1 1 1")
}

// TestClaimStartsNoMoreThanThereIsRoomFor: runs without a slot are prepared.
func TestClaimStartsNoMoreThanThereIsRoomFor(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	m.claimer.Starter = m.starter
	m.set.slots = 2
	for _, name := range []string{"a", "b", "c", "d"} {
		c.create(every(name, 60), t0)
	}

	m.claims(61)
	if n := len(m.set.take()); n != 2 {
		t.Errorf("%d runs started, want 2", n)
	}

	c.want("states", c.rows("SELECT CONCAT(COUNT(*), ' ', state) FROM run GROUP BY state ORDER BY state"), "2 prepared", "2 executing")
	for slots, want := range map[int][2]int{2: {2, 0}, 8: {5, 3}, 20: {5, 5}} {
		m.set.slots = slots
		one, two := m.starter.reserve(5), m.starter.reserve(5)
		if one != want[0]*job.CallsPerSlot || two != want[1]*job.CallsPerSlot {
			t.Errorf("%d free slots: two looks for five runs each get %d and %d, want %v slots", slots, one, two, want)
		}
		m.starter.unreserve(one + two)
	}

	if m.starter.room.reserved != 0 {
		t.Errorf("%d slots stay reserved", m.starter.room.reserved)
	}
}

// TestFateOfAClaimThatStarts: with every fate of the commit, a due time starts once.
func TestFateOfAClaimThatStarts(t *testing.T) {
	for name, rule := range map[string]faultproxy.Rule{
		"it is lost":      {Match: faultproxy.CommitOf("INSERT INTO run"), Action: faultproxy.CutBefore()},
		"its reply is":    {Match: faultproxy.CommitOf("INSERT INTO run"), Action: faultproxy.CutAfter()},
		"it is refused":   {Match: faultproxy.CommitOf("INSERT INTO run"), Action: faultproxy.Error(1213, "40001", "Deadlock found")},
		"its mark is not": {Match: faultproxy.SQL("n.begun_to"), Action: faultproxy.Error(1213, "40001", "Deadlock found")},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			dsn, proxy := c.proxied()
			m := c.member(1, dsn)
			m.claimer.Starter = m.starter
			c.create(every("j", 60), t0)
			injected := proxy.Add(rule)

			var started []string
			for _, at := range []float64{61, 62, 63} {
				m.session.now = t0.Add(time.Duration(at * float64(time.Second)))
				m.claimer.round.again()
				if _, err := m.claimer.look(m.Context(), m.session.now); err != nil {
					t.Logf("claim: %v", err)
				}
				started = append(started, m.set.take()...)
			}

			c.want("started", started, "j@60")
			c.want("rows", c.rows("SELECT state FROM run WHERE due = ?", int64(t0.Add(60*time.Second))), string(job.Executing))
			if injected.Fired() != 1 {
				t.Errorf("the fault happened %d times, want once", injected.Fired())
			}
		})
	}
}
