package schedule

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// TestPlaces: a node takes no run of a job that it may not run, ahead of time, when it is due, or
// when it is overdue.
func TestPlaces(t *testing.T) {
	c := newCluster(t)
	left, right := c.member(1, c.dsn), c.member(2, c.dsn)
	left.placed("left")
	right.placed("right")
	spec := every("j", 10)
	spec.Selector = "zone=right"
	id := c.create(spec, t0)
	other := every("other", 10)
	other.Selector = "zone=elsewhere"
	c.create(other, t0)

	left.claims(1)
	c.want("left claims for others", c.rows(allRuns, int64(t0)), "j 10.0000 idle 0 0", "other 10.0000 idle 0 0")
	left.claims(2)
	c.want("and takes nothing", c.rows(allRuns, int64(t0)), "j 10.0000 idle 0 0", "other 10.0000 idle 0 0")
	right.claims(2)
	c.want("right takes its own ahead of time", c.rows(allRuns, int64(t0)), "j 10.0000 prepared 1 2", "other 10.0000 idle 0 0")
	c.want("left leaves it alone", left.takesOverdue(13))
	c.want("right starts it", right.starts(13), "j@10")
	right.ends("j", 10, 14, succeeded)

	left.claims(15)
	c.want("left leaves idle ones alone", left.takesOverdue(21.5))
	c.want("right starts it when it is due", right.takesOverdue(21.5), "j@20")
	right.ends("j", 20, 25, succeeded)

	right.claims(26)
	spec.Selector = "zone=left"
	c.edit(id, spec, "begun_to = begun_to")
	right.starts(30) // it reads the definition
	c.want("right gives back what was moved", right.starts(30))
	c.want("left starts it", append(left.takesOverdue(30.1), left.takesOverdue(30.2)...), "j@30")
}

// placed gives the member a label.
func (m *member) placed(zone string) {
	labels := map[string]string{"zone": zone}
	m.claimer.Labels, m.starter.Labels = labels, labels
}

// TestManyRunsForNobody: runs that no node may run do not keep a node from later runs.
func TestManyRunsForNobody(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	nobody := every("nobody", 10)
	nobody.Selector, nobody.Overlap = "zone=elsewhere", job.OverlapAllow
	stuck, id := c.create(nobody, t0), c.create(every("j", 3600), t0)
	rows := make([]string, 2000)
	for i := range rows {
		rows[i] = fmt.Sprintf("(%d, %d, 1, %d, 'manual', %d, 'idle', 0, 0, 7, 5)", i+1, stuck, i+1, i+1)
	}
	c.exec("INSERT INTO run (id, job_id, app_id, due, kind, request, state, owner, claim, due_now, hash) VALUES " + strings.Join(rows, ", "))
	c.exec("INSERT INTO run (id, job_id, app_id, due, kind, request, state, owner, claim, due_now, hash) VALUES (9000, ?, 1, ?, 'manual', 1, 'idle', 0, 0, ?, 5)",
		id, int64(t0), int64(t0))
	c.want("it comes to the last one", m.takesOverdue(1), "j@0")
}

// TestSlotIsPassedOn: a woken run that finds no node does not keep the rest of its group waiting.
func TestSlotIsPassedOn(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	c.exec("INSERT INTO grp (id, name, slots) VALUES (7, 'g', 1)")
	for i, name := range []string{"a", "b", "c"} {
		spec := every(name, 1000)
		start := t0.Add(time.Duration(10+i) * time.Second).Time()
		spec.Start, spec.Group = &start, "g"
		c.create(spec, t0)
	}

	m.claims(8)
	c.want("a", m.starts(12), "a@10")
	spec := every("b", 1000)
	start := t0.Add(11 * time.Second).Time()
	spec.Start, spec.Group, spec.Selector = &start, "g", "zone=elsewhere"
	c.edit(2, spec, "begun_to = begun_to")
	m.ends("a", 10, 13, succeeded)
	c.want("b is woken", c.runsNow(), "b 11 idle", "c 12 waiting")
	m.takesOverdue(14)
	c.want("it goes first", c.runsNow(), "b 11 idle", "c 12 waiting")
	m.takesOverdue(18.5)
	c.want("c is woken", c.runsNow(), "b 11 idle", "c 12 idle")
	c.want("and begins", m.takesOverdue(18.6), "c@12")
	m.ends("c", 12, 19, succeeded)
	spec.Selector = ""
	c.edit(2, spec, "begun_to = begun_to")
	c.want("b asks for the slot again", m.takesOverdue(20), "b@11")
	m.ends("b", 11, 21, succeeded)
	c.want("slots", c.rows("SELECT taken FROM grp"), "0")
}

// TestReleasedRunKeepsItsSlot: a run that was started, never spawned, and started again takes no
// second slot.
func TestReleasedRunKeepsItsSlot(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	c.exec("INSERT INTO grp (id, name, slots) VALUES (7, 'g', 1)")
	spec := every("a", 1000)
	spec.Group = "g"
	id := c.create(spec, t0.Add(-time.Second))
	m.claims(0)
	m.starts(0)
	release := func() {
		c.exec("UPDATE run SET state = 'idle', owner = 0, started = 0, spawn_by = 0 WHERE state = 'executing'")
	}

	release()
	c.want("it starts again", m.takesOverdue(1), "a@0")
	c.want("one slot is taken", c.rows("SELECT taken FROM grp"), "1")
	release()
	c.exec("UPDATE job SET living = NULL, next_due = NULL WHERE id = ?", id)
	m.takesOverdue(2)
	c.want("a refusal gives it back", c.rows("SELECT taken FROM grp"), "0")
}

// TestPriority: with more due runs than slots, the highest priority goes first, both for prepared
// and for overdue runs.
func TestPriority(t *testing.T) {
	c := newCluster(t)
	m, other := c.member(1, c.dsn), c.member(2, c.dsn)
	for i, rank := range []int{0, 5, -5, 9} {
		spec := every(fmt.Sprintf("j%d", rank), 1000)
		start := t0.Add(time.Duration(10+i) * time.Millisecond).Time()
		spec.Start, spec.Priority = &start, rank
		c.create(spec, t0)
	}

	m.claims(1)
	m.set.slots, other.set.slots = 1, 1
	var order []string
	for range 2 {
		order = append(order, m.starts(11)...)
	}

	for range 2 {
		order = append(order, other.takesOverdue(14)...)
	}

	for i := range order {
		order[i], _, _ = strings.Cut(order[i], "@")
	}

	c.want("order", order, "j9", "j5", "j0", "j-5")
}

// TestReadyRuns: the heap returns the earliest run first among equals, and keeps runs that are not
// due.
func TestReadyRuns(t *testing.T) {
	p := NewPrepared()
	run := func(id int64, at int, rank int) trip.Run {
		return trip.Run{Launch: trip.Launch{Run: id, Claim: 1}, DueNow: t0.Add(time.Duration(at) * time.Second), Rank: rank}
	}

	p.Add([]trip.Run{run(1, 1, 0), run(2, 2, 5), run(3, 3, 0), run(4, 9, 9)})
	ids := func(runs []trip.Run) (out []int64) {
		for _, r := range runs {
			out = append(out, r.Launch.Run)
		}
		return out
	}

	now := t0.Add(5 * time.Second)
	if got := ids(p.Take(now, 1)); !slices.Equal(got, []int64{2}) {
		t.Errorf("first: got %v", got)
	}
	if at, ok := p.Next(); !ok || at != t0.Add(time.Second) {
		t.Errorf("next look: %v, %v", at, ok)
	}

	p.Drop(trip.Launch{Run: 1, Claim: 1})
	if got := ids(p.Take(now, 5)); !slices.Equal(got, []int64{3}) {
		t.Errorf("then: got %v", got)
	}

	p.Return(run(3, 3, 0), now)
	if got := ids(p.Take(now, 5)); !slices.Equal(got, []int64{3}) {
		t.Errorf("returned: got %v", got)
	}
	if p.Len() != 3 {
		t.Errorf("%d runs, want 3", p.Len())
	}
}

// TestNoNodeIsThere: a run that no living node may run waits for a node until the rules of its job
// would no longer start it.
func TestNoNodeIsThere(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	m.session.peers = []map[string]string{{"zone": "left"}, m.starter.Labels}
	soon := job.Misfire{Policy: job.MisfireSkip, After: job.Duration(5 * time.Second)}
	for name, change := range map[string]func(*job.Spec){
		"skip":     func(s *job.Spec) { s.Misfire = soon },
		"deadline": func(s *job.Spec) { s.StartDeadline = job.Duration(10 * time.Second) },
		"waits":    func(s *job.Spec) {},
		"there":    func(s *job.Spec) { s.Misfire, s.Selector = soon, "zone=left" },
	} {
		spec := every(name, 1000)
		spec.Selector = "zone=nowhere"
		change(&spec)
		c.create(spec, t0.Add(-time.Second))
	}
	m.claims(0)
	const ends = "SELECT CONCAT(j.name, ' ', r.outcome, ' ', r.reason) FROM run r JOIN job j ON j.id = r.job_id WHERE r.state = 'ended' ORDER BY j.name"
	m.takesOverdue(4)
	c.want("none is too late", c.rows(ends))
	m.takesOverdue(7)
	c.want("one may be 5 s late", c.rows(ends), "skip missed no node matches zone=nowhere")
	m.takesOverdue(11)
	c.want("one has a deadline", c.rows(ends), "deadline missed no node matches zone=nowhere", "skip missed no node matches zone=nowhere")

	c.exec("INSERT INTO run (id, job_id, app_id, due, kind, request, state, owner, claim, due_now, hash)"+
		" SELECT 9000, id, 1, ?, 'manual', 1, 'idle', 0, 0, ?, 5 FROM job WHERE name = 'waits'", int64(t0), int64(t0))
	m.takesOverdue(3000)
	c.want("what somebody asked for waits", c.rows("SELECT kind FROM run WHERE state = 'idle' ORDER BY kind"), "schedule", "manual")
	c.exec("UPDATE job SET living = NULL, next_due = NULL")
	m.takesOverdue(3001)
	c.want("nothing is left of deleted jobs", c.rows("SELECT kind FROM run WHERE state <> 'ended'"))
}

// TestNobodyRunsItInAPause: a due time of a paused app ends skipped, even if no node may run its
// job.
func TestNobodyRunsItInAPause(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	m.session.peers = []map[string]string{m.starter.Labels}
	stops := NewStops(StopsConfig{DB: c.db, Log: slog.New(slog.DiscardHandler)})
	m.claimer.Stops, m.starter.Stops = stops, stops
	look := func() {
		if err := stops.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	spec := every("j", 1000)
	spec.Selector = "zone=nowhere"
	c.create(spec, t0.Add(-time.Second))
	look()
	m.claims(0)
	m.takesOverdue(1)
	c.want("it waits for a node", c.rows("SELECT state FROM run"), "idle")

	c.exec("INSERT INTO stop (kind, since, who) VALUES ('cluster', ?, 'ann')", int64(t0))
	look()
	m.takesOverdue(2)
	c.want("it ends", c.rows("SELECT CONCAT(state, ' ', outcome, ' ', reason) FROM run"), "ended skipped the cluster is paused by ann")
}

// TestNoDefinition: a job whose definition was removed reports that, and does not delay other jobs.
func TestNoDefinition(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	gone := c.create(every("gone", 10), t0)
	c.create(every("good", 10), t0)
	c.exec("DELETE FROM job_version WHERE job_id = ?", gone)
	m.claims(2)
	c.want("the other one starts", m.starts(10), "good@10")
	c.want("it says so", c.rows("SELECT name FROM job WHERE error <> '' AND next_due IS NULL"), "gone")
}

// TestHashOutOfRange: a job with an edited hash is in no share, but is still claimed.
func TestHashOutOfRange(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	id := c.create(every("odd", 10), t0)
	c.exec("DROP TRIGGER job_updated") // it forbids that
	c.exec("UPDATE job SET hash = -24030 WHERE id = ?", id)
	m.claims(15)
	c.want("it is claimed", c.rows("SELECT state FROM run WHERE job_id = "+fmt.Sprint(id)+" ORDER BY due LIMIT 1"), "prepared")
}
