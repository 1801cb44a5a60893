package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/test/faultproxy"
)

// TestOneBadRunHoldsUpNoOther: MySQL refuses a batch because of one run. The other runs start at
// once, and that run rests.
func TestOneBadRunHoldsUpNoOther(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	var want []string
	for i := range 9 {
		c.create(every(fmt.Sprintf("j%d", i), 60), t0)
		if i != 4 {
			want = append(want, fmt.Sprintf("j%d@60", i))
		}
	}

	m.claims(55)
	c.exec("UPDATE run SET due_now = 9223372036854775000 WHERE job_id = (SELECT id FROM job WHERE name = 'j4')") // its window cannot be written
	for range 3 {
		if _, err := m.starter.start(m.Context(), m.at(60), m.at(60)); err != nil {
			t.Fatal(err)
		}
	}

	c.want("started", m.set.take(), want...)
	if n := m.starter.Prepared.Len(); n != 1 {
		t.Errorf("%d runs are prepared still, want the bad one", n)
	}
	if took, err := m.starter.start(m.Context(), m.at(61), m.at(61)); took != 0 || err != nil {
		t.Errorf("a second later it took %d, %v; want the bad one to rest", took, err)
	}
}

// TestOneBadJobHoldsUpNoOther: MySQL refuses a claim because of one job. The other jobs are
// claimed, and that job is marked.
func TestOneBadJobHoldsUpNoOther(t *testing.T) {
	c := newCluster(t)
	dsn, proxy := c.proxied()
	m := c.member(1, dsn)
	c.exec("INSERT INTO app (id, name) VALUES (1, 'default')")
	ids := map[string]int64{}
	for i := range 5 {
		name := fmt.Sprintf("j%d", i)
		ids[name] = c.create(every(name, 60), t0)
	}
	proxy.Add(faultproxy.Rule{
		Match:  faultproxy.SQL(fmt.Sprintf(`(?s)INSERT INTO run .*\(\d+,%d,`, ids["j2"])),
		Action: faultproxy.Error(1264, "22003", "Out of range value"), Times: 1000,
	})
	m.claims(55)
	c.want("claimed", c.rows("SELECT j.name FROM run r JOIN job j ON j.id = r.job_id ORDER BY 1"), "j0", "j1", "j3", "j4")
	c.want("broken", c.rows("SELECT CONCAT(name, ' ', error LIKE 'MySQL rejects its due times%') FROM job WHERE error <> ''"), "j2 1")
	c.want("audit", c.rows("SELECT CONCAT_WS(' ', action, kind, name) FROM audit"), "break job j2")
}

// TestPauseOfAnAppEnds: after the pause of an app, the misfire policy judges the due times within
// the pause. Due times that do not start end skipped.
func TestPauseOfAnAppEnds(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	spec := every("j", 10)
	spec.Misfire.Policy = job.MisfireSkip
	c.create(spec, t0)
	c.exec("INSERT INTO stop (kind, name, app_id, since, until, who) VALUES ('app', 'default', 1, ?, ?, 'ann')",
		int64(t0.Add(5*time.Second)), int64(t0.Add(45*time.Second)))
	m.claimer.Stops = NewStops(StopsConfig{DB: m.db, Log: m.claimer.Log})
	look := func(at float64) {
		now := m.at(at)
		if err := m.claimer.Stops.look(m.Context()); err != nil {
			t.Fatal(err)
		}
		m.claimer.round.again()
		if _, err := m.claimer.look(m.Context(), now); err != nil {
			t.Fatal(err)
		}
	}

	look(20)
	c.want("runs in the pause", c.rows("SELECT id FROM run"))
	look(46)
	got := c.rows("SELECT CONCAT_WS(' ', state, outcome, due_count, LEFT(reason, 24)) FROM run ORDER BY due")
	slices.Sort(got)
	c.want("runs behind it", got, "ended skipped 4 the job was paused until", "prepared none")
}
