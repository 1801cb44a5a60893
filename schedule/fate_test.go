package schedule

import (
	"slices"
	"testing"

	"go-crontab/job"
	"go-crontab/test/faultproxy"
)

// TestFates: with every fate of a COMMIT, the runs take the same course, at most a little later.
func TestFates(t *testing.T) {
	deadlock := faultproxy.Error(1213, "40001", "Deadlock found")
	for name, rule := range map[string]faultproxy.Rule{
		"a wait that is lost":                 {Match: faultproxy.CommitOf("SET awaited = awaited"), Action: faultproxy.CutBefore()},
		"a wait whose reply is lost":          {Match: faultproxy.CommitOf("SET awaited = awaited"), Action: faultproxy.CutAfter()},
		"a wait that is refused":              {Match: faultproxy.CommitOf("SET awaited = awaited"), Action: deadlock},
		"an end and a wake that are lost":     {Match: faultproxy.CommitOf("SET state = 'idle', owner = 0"), Action: faultproxy.CutBefore()},
		"an end and a wake, reply lost":       {Match: faultproxy.CommitOf("SET state = 'idle', owner = 0"), Action: faultproxy.CutAfter()},
		"an end and a wake that are refused":  {Match: faultproxy.CommitOf("SET state = 'idle', owner = 0"), Action: deadlock},
		"an end and a retry that are lost":    {Match: faultproxy.CommitOf("r.attempt \\+ 1"), Action: faultproxy.CutBefore()},
		"an end and a retry, reply lost":      {Match: faultproxy.CommitOf("r.attempt \\+ 1"), Action: faultproxy.CutAfter()},
		"a plain end that is lost":            {Match: faultproxy.CommitOf("r.awaited = 0"), Action: faultproxy.CutBefore()},
		"a plain end whose reply is lost":     {Match: faultproxy.CommitOf("r.awaited = 0"), Action: faultproxy.CutAfter()},
		"each statement of a wake is refused": {Match: faultproxy.SQL("SET j.running"), Action: deadlock},
		"a slot that is taken, reply lost":    {Match: faultproxy.CommitOf("SET taken"), Action: faultproxy.CutAfter()},
		"a slot that is taken and lost":       {Match: faultproxy.CommitOf("SET taken"), Action: faultproxy.CutBefore()},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			dsn, proxy := c.proxied()
			m := c.member(1, dsn)
			c.exec("INSERT INTO grp (id, name, slots) VALUES (7, 'g', 1)")
			spec := every("j", 2)
			spec.Overlap, spec.Group, spec.Retry = job.OverlapQueue, "g", job.Retry{Attempts: 2}
			c.create(spec, t0)
			c.create(every("plain", 2), t0)
			m.claims(-7) // j and plain, each due at 2
			injected := proxy.Add(rule)

			started := m.settles(2)
			c.exec("UPDATE job SET next_due = NULL")
			c.exec("INSERT INTO run (id, job_id, app_id, version, due, kind, request, state, owner, claim, due_now, hash)"+
				" SELECT id + 1000, id, 1, 1, ?, 'manual', 1, 'idle', 0, 0, ?, hash FROM job WHERE name = 'j'", int64(t0)+3_000_000, int64(t0)+3_000_000)
			started = append(started, m.settles(4)...)
			m.ends("plain", 2, 5, succeeded)
			m.ends("j", 2, 5, ended{job.Failed, 8})
			started = append(started, m.settles(9)...)
			m.ends("j", 3, 10, succeeded)
			started = append(started, m.settles(14)...)
			m.ends("j", 2, 15, succeeded)
			slices.Sort(started)
			c.want("started", started, "j@2", "j@2", "j@3", "plain@2")
			c.want("outcomes", c.outcomes(), "j 2 failed", "j 2 succeeded", "j 3 succeeded", "plain 2 succeeded")
			c.want("slots", c.rows("SELECT taken FROM grp"), "0")
			if injected.Fired() != 1 {
				t.Errorf("the fault happened %d times, want once", injected.Fired())
			}
		})
	}
}

// settles lets the member do all its work at an instant, and returns the runs that it started.
func (m *member) settles(seconds float64) (started []string) {
	for range 3 { // lost runs are overdue
		seconds += 0.001
		now := m.at(seconds)
		if _, err := m.starter.start(m.Context(), now, now); err != nil {
			m.Logf("start: %v", err)
		}
		now = m.at(seconds + 2.5)
		if _, err := m.starter.takeOverdue(m.Context(), now); err != nil {
			m.Logf("take overdue: %v", err)
		}
		started = append(started, m.set.take()...)
	}
	return started
}
