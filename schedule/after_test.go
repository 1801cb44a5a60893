package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/schedule/edit"
	"go-crontab/sql/trip"
)

// following makes a job that follows others.
func following(name string, a job.After) job.Spec {
	return job.Spec{Name: name, Command: "true", Overlap: job.OverlapAllow, After: &a}
}

// executes makes a member start the runs that are due, and end them with an outcome.
func (m *member) executes(seconds float64, outcome job.Outcome, name string) {
	m.Helper()
	m.claims(seconds)
	m.starter.start(m.Context(), m.at(seconds), m.at(seconds))
	m.takesOverdueKeeping(seconds)
	for _, s := range m.set.started {
		if s.Spec.Name == name {
			m.recorder().Put(trip.End{
				Launch: s.Launch, JobID: s.JobID, Outcome: outcome, Final: true, Started: m.session.now, Ended: m.session.now,
			}, true)
		}
	}
	m.recorder().Flush(m.Context())
	m.set.started = slices.DeleteFunc(m.set.started, func(s job.Started) bool { return s.Spec.Name == name })
}

func (m *member) takesOverdueKeeping(seconds float64) {
	m.Helper()
	if _, err := m.starter.takeOverdue(m.Context(), m.at(seconds)); err != nil {
		m.Fatal(err)
	}
}

const runsOf = "SELECT CONCAT_WS(' ', j.name, r.state, NULLIF(r.outcome, 'none')) FROM run r JOIN job j ON j.id = r.job_id" +
	" WHERE j.name LIKE ? AND r.state <> 'prepared' ORDER BY j.name, r.due, r.id"

// TestFollowsOne: each final end that counts makes one run due, with what it follows.
func TestFollowsOne(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	p.creates(ofEvery("up", 10))
	p.creates(following("ok", job.After{Jobs: []string{"up"}}))
	p.creates(following("bad", job.After{Jobs: []string{"default/up"}, On: job.OnFailure}))
	p.creates(following("both", job.After{Jobs: []string{"up"}, On: job.OnEnd}))
	p.creates(following("then", job.After{Jobs: []string{"ok"}}))

	m.executes(10, job.Succeeded, "up")
	c.want("after a success", c.rows(runsOf, "%"), "both idle", "ok idle", "up ended succeeded")
	m.executes(10.5, job.Succeeded, "ok")
	c.want("the chain goes on", c.rows(runsOf, "then"), "then idle")
	given := c.rows("SELECT given FROM run r JOIN job j ON j.id = r.job_id WHERE j.name = 'then'")[0]
	up := job.ParseGiven(given).Upstream
	if up.Job != "default/ok" || up.Outcome != job.Succeeded || up.Scheduled != t0.Add(10*time.Second) || up.Head != 1 {
		t.Errorf("given %s", given)
	}

	m.executes(20, job.TimedOut, "up")
	c.want("after a failure", c.rows(runsOf, "bad"), "bad idle")
	c.want("of both kinds", c.rows(runsOf, "both"), "both executing", "both idle")
	c.want("only the fast path is left out", c.rows("SELECT DISTINCT CONCAT_WS(' ', j.name, r.awaited) FROM run r JOIN job j ON j.id = r.job_id"+
		" WHERE r.state IN ('executing', 'ended') ORDER BY 1"), "both 0", "ok 2", "then 0", "up 2")
}

// TestFollowsFromNowOn: an edit that begins to follow a job counts for runs that execute; runs of a
// deleted follower end; nothing happens any more once nobody follows.
func TestFollowsFromNowOn(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	up := p.creates(ofEvery("up", 10))
	m.claims(1)
	m.starter.start(m.Context(), m.at(10), m.at(10))
	p.at(11)
	id := p.creates(following("f", job.After{Jobs: []string{"up"}}))
	m.executes(12, job.Succeeded, "up")
	c.want("an executing run", c.rows(runsOf, "f"), "f idle")

	_, err := p.Delete(p.ctx, up)
	wantError(t, err, `the job "default/up" is in use by default/f`)
	spec := ofEvery("other", 10)
	_, err = p.Update(p.ctx, up, 0, spec)
	wantError(t, err, `the job "default/up" is in use by default/f`)
	_, err = p.Create(p.ctx, following("g", job.After{Jobs: []string{"upp"}}), false)
	wantError(t, err, `after.jobs[0]: there is no job "default/upp" to follow; did you mean "default/up"?`)
	_, err = p.Update(p.ctx, up, 0, following("up", job.After{Jobs: []string{"f"}}))
	wantError(t, err, "after.jobs: the job would follow itself: default/up → default/f → default/up")

	_, err = p.Backfill(p.ctx, id, past(1, 9, 2), "")
	wantError(t, err, "has no due times of its own")

	p.must(p.Delete(job.WithForce(p.ctx), up))
	p.at(13)
	p.creates(ofEvery("up", 10))
	m.executes(24, job.Succeeded, "up")
	if got := c.rows(runsOf, "f"); len(got) != 2 {
		t.Errorf("after the job was made again: %q", got)
	}
	p.must(p.Delete(p.ctx, id))
	m.executes(34, job.Succeeded, "up")
	if got := c.rows(runsOf, "f"); len(got) != 2 {
		t.Errorf("after the follower was deleted: %q", got)
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestGathersAll: a job that follows two branches of a chain runs once for each wave, whatever the
// order in which the runs of its upstream jobs end and its own are started.
func TestGathersAll(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	p.creates(ofEvery("s", 10))
	p.creates(following("a", job.After{Jobs: []string{"s"}}))
	p.creates(following("b", job.After{Jobs: []string{"s"}}))
	p.creates(following("d", job.After{Jobs: []string{"a", "b"}}))

	m.executes(10, job.Succeeded, "s")
	m.executes(11, job.Succeeded, "a")
	m.takesOverdueKeeping(11.5)
	c.want("one is missing", c.rows(runsOf, "d"))
	m.executes(12, job.Succeeded, "b")
	m.takesOverdueKeeping(12.5)
	c.want("complete", c.rows(runsOf, "d"), "d executing")
	m.executes(13, job.Succeeded, "d")

	// b fails: the second wave stays incomplete, and the third is not shifted.
	m.executes(20, job.Succeeded, "s")
	m.executes(21, job.Succeeded, "a")
	m.executes(22, job.Failed, "b")
	m.executes(30, job.Succeeded, "s")
	m.executes(31, job.Succeeded, "b")
	m.takesOverdueKeeping(31.5)
	c.want("another wave", c.rows(runsOf, "d"), "d ended succeeded")
	m.executes(32, job.Succeeded, "a")
	m.takesOverdueKeeping(32.5)
	c.want("its own wave", c.rows(runsOf, "d"), "d ended succeeded", "d executing")

	// b is run again for the second wave.
	p.at(33)
	if _, err := p.Rerun(p.ctx, p.failed(), func(edit.Asked) {}); err != nil {
		t.Fatal(err)
	}
	m.executes(34, job.Succeeded, "b")
	m.takesOverdueKeeping(34.5)
	c.want("the second wave", c.rows(runsOf, "d"), "d ended succeeded", "d executing", "d executing")
	c.want("nothing is left", c.rows("SELECT run_id FROM arrival"))

	// Both ends are written before either run of d is judged.
	m.executes(40, job.Succeeded, "s")
	m.takesOverdueKeeping(40.5)
	for _, name := range []string{"a", "b"} {
		c.finishing(m, name)
	}
	m.takesOverdueKeeping(41)
	if got := c.rows(runsOf, "d"); len(got) != 4 {
		t.Errorf("both at once: %q", got)
	}
}

// finishing ends the executing runs of a job without a look for other runs.
func (c *cluster) finishing(m *member, name string) {
	for _, s := range m.set.started {
		if s.Spec.Name == name {
			m.recorder().Put(trip.End{
				Launch: s.Launch, JobID: s.JobID, Outcome: job.Succeeded, Final: true, Started: m.session.now, Ended: m.session.now,
			}, true)
		}
	}
	m.recorder().Flush(m.Context())
	m.set.started = slices.DeleteFunc(m.set.started, func(s job.Started) bool { return s.Spec.Name == name })
}

// TestWaves: which arrivals go with the end of a run.
func TestWaves(t *testing.T) {
	name := func(s string) job.Name { return job.Name{App: "default", Name: s} }
	// An arrival is "job head scheduled", and ends a second after the one before.
	arrivals := func(lines ...string) (out []trip.Arrival) {
		for i, line := range lines {
			var a trip.Arrival
			fmt.Sscan(line, &a.Name.Name, &a.Head, &a.Scheduled)
			a.Name, a.Run, a.Ended = name(a.Name.Name), int64(i+1), t0.Add(time.Duration(i)*time.Second)
			a.Upstream = int64(a.Name.Name[0])
			out = append(out, a)
		}
		return out
	}
	for what, c := range map[string]struct {
		run      int64
		within   time.Duration
		arrivals []trip.Arrival
		want     []int64 // nil: incomplete
	}{
		"alone":                     {1, 0, arrivals("a 1 10"), nil},
		"gone":                      {7, 0, arrivals("a 1 10", "b 1 10"), nil},
		"one wave":                  {2, 0, arrivals("a 1 10", "b 1 10"), []int64{1, 2}},
		"another wave":              {2, 0, arrivals("a 1 10", "b 1 20"), nil},
		"two waves":                 {4, 0, arrivals("a 1 10", "a 1 20", "b 1 20", "b 1 10"), []int64{1, 4}},
		"twice in a wave":           {3, 0, arrivals("a 1 10", "a 1 10", "b 1 10"), []int64{1, 2, 3}},
		"chains of their own":       {3, 0, arrivals("a 1 10", "a 1 20", "b 2 15"), []int64{1, 2, 3}},
		"own chain, earlier":        {3, 0, arrivals("a 1 10", "b 2 15", "a 1 20"), []int64{1, 2, 3}},
		"by hand for a missing one": {2, 0, arrivals("a 1 10", "b 2 99"), []int64{1, 2}},
		"too far apart":             {3, time.Second, arrivals("a 1 10", "a 2 0", "b 1 10"), []int64{1, 2, 3}},
		"too far apart, alone":      {3, time.Second, arrivals("a 1 10", "b 1 20", "b 1 10"), nil},
	} {
		spec := following("d", job.After{Jobs: []string{"a", "b"}})
		spec.App, spec.After.Within = "default", job.Duration(max(c.within, time.Minute))
		if c.within != 0 {
			spec.After.Within = job.Duration(c.within)
		}
		spec.Defaults(t0.Time())
		var got []int64
		for _, a := range waveOf(c.run, &spec, c.arrivals) {
			got = append(got, a.Run)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %d, want %d", what, got, c.want)
		}
	}
}

// TestDelay: the next due time counts from the end of the run, whatever the end is.
func TestDelay(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	spec := job.Spec{Name: "j", Command: "true", Delay: job.Duration(5 * time.Second)}
	id := p.creates(spec)
	c.wantJobs("at once", "j 1 1 next 0.0000")
	m.executes(1, job.Failed, "nothing")
	c.wantJobs("while it executes", "j 1 1")
	m.executes(3, job.Failed, "j")
	c.wantJobs("after its end", "j 1 1 next 8.0000")

	// A run by hand does not move it.
	p.at(4)
	if _, err := p.RunNow(p.ctx, []int64{id}, 0, ""); err != nil {
		t.Fatal(err)
	}
	m.takesOverdueKeeping(4.5)
	c.wantJobs("beside a run by hand", "j 1 1 next 8.0000")
	m.claims(8)
	m.starter.start(m.Context(), m.at(8), m.at(8))
	c.wantJobs("after a refusal", "j 1 1 next 13.0000")
	m.executes(8.5, job.Succeeded, "j")
	c.wantJobs("after the run by hand", "j 1 1")

	// A longer delay counts from the same end, prepared or not.
	p.at(9)
	spec.Delay = job.Duration(15 * time.Second)
	p.must(p.Update(p.ctx, id, 0, spec))
	c.wantJobs("longer", "j 2 2 next 23.0000")
	m.executes(24, job.Succeeded, "nothing")
	spec.Delay = job.Duration(2 * time.Second)
	p.at(25)
	p.must(p.Update(p.ctx, id, 0, spec))
	c.wantJobs("while it executes", "j 3 3")
	m.executes(26, job.Succeeded, "j")
	c.wantJobs("shorter", "j 3 3 next 28.0000")

	// A pause parks it.
	m.executes(28, job.Succeeded, "nothing")
	p.at(29)
	p.must(p.Pause(p.ctx, id, job.PauseRequest{}))
	m.executes(30, job.Succeeded, "j")
	c.wantJobs("paused", "j 3 4 parked 32.0000 paused")
	p.at(100)
	p.must(p.Resume(p.ctx, id))
	m.executes(101, job.Succeeded, "j")
	c.wantJobs("resumed", "j 3 5 next 103.0000")

	// From a schedule and back, while a run executes.
	p.at(101.5)
	p.must(p.Update(p.ctx, id, 0, ofEvery("j", 10)))
	c.wantJobs("a schedule", "j 4 6 next 110.0000")
	m.executes(110, job.Succeeded, "nothing")
	p.at(111)
	p.must(p.Update(p.ctx, id, 0, spec))
	c.wantJobs("a delay again", "j 5 7")
	m.executes(112, job.Succeeded, "j")
	c.wantJobs("after the end of the old run", "j 5 7 next 114.0000")

	// Nobody starts it for long: the misfire policy skips it, and the chain goes on.
	spec.Misfire.Policy = job.MisfireSkip
	p.at(113)
	p.must(p.Update(p.ctx, id, 0, spec))
	m.claims(200)
	c.wantJobs("missed", "j 6 8")
	c.want("and claimed again", c.rows("SELECT (due - ?) / 1000000 FROM run WHERE state = 'prepared'", int64(t0)), "202.0000")
}
