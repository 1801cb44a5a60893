package schedule

import (
	"testing"
	"time"
)

// TestNothingStaysBehindAMark: if a look without a lower bound leaves due times unclaimed, later
// looks find them at any age.
func TestNothingStaysBehindAMark(t *testing.T) {
	look := func(m *member, at float64) {
		m.Helper()
		if _, err := m.claimer.look(m.Context(), m.at(at)); err != nil {
			m.Fatal(err)
		}
	}
	for name, hinder := range map[string]func(m *member) (over func()){
		"somebody has locked the job": func(m *member) func() {
			tx, err := m.cluster.db.Raw().Begin()
			if err != nil {
				m.Fatal(err)
			}
			if _, err := tx.Exec("UPDATE job SET begun_to = 0"); err != nil {
				m.Fatal(err)
			}
			return func() { tx.Rollback() }
		},
		"the lease is stale": func(m *member) func() {
			m.session.stale = true
			return func() { m.session.stale = false }
		},
		"the set of prepared runs is full": func(m *member) func() {
			most := m.claimer.Most
			m.claimer.Most = 0
			return func() { m.claimer.Most = most }
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			m := c.member(1, c.dsn)
			c.create(every("j", 4), t0)
			over := hinder(m)
			look(m, 20)
			over()
			c.want("claimed meanwhile", c.rows("SELECT id FROM run"))

			look(m, 40)
			c.want("claimed then", c.rows("SELECT (MIN(due) - ?) / 1000000 FROM run", int64(t0)), "4.0000")
		})
	}
}

// TestOldCursorsOfAllShares: a round covers the shares of all other sessions, one in each look, and
// moves the mark only at its end.
func TestOldCursorsOfAllShares(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	m.session.others = 3
	look := func(at float64) {
		if _, err := m.claimer.look(m.Context(), m.at(at)); err != nil {
			t.Fatal(err)
		}
	}
	claimed := func() []string {
		return c.rows("SELECT DISTINCT j.name FROM run r JOIN job j ON j.id = r.job_id ORDER BY 1")
	}
	for _, at := range []float64{70, 70.5, 71} { // nothing is there: the round ends
		look(at)
	}
	if mark := m.claimer.round.mark; mark != t0.Add(60*time.Second) {
		t.Fatalf("the mark of an empty table is %v, want 10 s behind the beginning of the round", mark.Sub(t0))
	}

	for i, name := range []string{"a", "b", "c", "d"} {
		c.hash = 256*i + 10
		c.create(every(name, 5), t0)
	}
	look(71.5)
	c.want("claimed behind the mark", claimed())
	m.claimer.round.again()
	look(72)
	if got := claimed(); len(got) != 2 || got[0] != "a" {
		t.Errorf("a look claimed %v, want its own share and one other", got)
	}
	look(72.5)
	look(73)
	c.want("claimed by the round", claimed(), "a", "b", "c", "d")
}

// TestCursorBefore1970: a job whose cursor was edited to an impossible value reports that, and is
// not overlooked.
func TestCursorBefore1970(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	id := c.create(every("j", 400), t0)
	c.exec("INSERT INTO job (app_id, name, hash, next_due) VALUES (1, 'old', 5, -5)")
	c.exec("INSERT INTO job_version (job_id, version, definition, created) SELECT j.id, 1, v.definition, 0 FROM job j, job_version v"+
		" WHERE j.name = 'old' AND v.job_id = ?", id)
	if _, err := m.claimer.look(m.Context(), m.at(20)); err != nil {
		t.Fatal(err)
	}
	c.want("runs", c.rows("SELECT id FROM run"))
	c.want("the job", c.rows("SELECT error FROM job WHERE name = 'old'"), "its next due time is before 1970, so its row was changed by hand; edit the job to repair it")
}
