package schedule

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/result"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// ended is the end that a test gives a run.
type ended struct {
	outcome job.Outcome
	again   float64 // when the next attempt starts; zero: none follows
}

var succeeded = ended{outcome: job.Succeeded}

// ends lets the member end a job's run that was due at an instant, as its recorder does.
func (m *member) ends(name string, due float64, seconds float64, how ended) {
	m.Helper()
	now := m.at(seconds)
	e := trip.End{Outcome: how.outcome, Final: how.again == 0, Started: now, Ended: now}
	if how.again != 0 {
		e.Again = t0.Add(time.Duration(how.again * float64(time.Second)))
	}

	at := int64(t0.Add(time.Duration(due * float64(time.Second))))
	row := m.db.Raw().QueryRow("SELECT r.id, r.claim, r.job_id FROM run r JOIN job j ON j.id = r.job_id"+
		" WHERE j.name = ? AND r.due = ? AND r.state = 'executing' AND r.owner = ?", name, at, m.session.number)
	if err := row.Scan(&e.Run, &e.Claim, &e.JobID); err != nil {
		m.Fatalf("run of %s due at %g: %v", name, due, err)
	}

	m.recorder().Put(e, true)
	flushing, cancel := context.WithTimeout(m.Context(), 20*time.Second)
	defer cancel()
	m.recorder().Flush(flushing) // the server may still hold the rows of a connection that was cut
	if n := m.recorder().Waiting(); n > 0 {
		m.Fatalf("the end of %s at %g is not written", name, due)
	}
}

func (m *member) recorder() *result.Recorder {
	if m.ending == nil {
		m.ending = result.New(result.Config{
			Exclusion: m.starter.Exclusion, Session: m.session, Executing: m.set, WakeOverdue: m.woken,
			Definitions: Reader{m.starter.Definitions, m.starter.DB}, Log: m.starter.Log,
		})
	}
	return m.ending
}

// runsNow lists the runs that have not ended, and their states.
func (c *cluster) runsNow() []string {
	return c.rows("SELECT CONCAT_WS(' ', j.name, ROUND((r.due - ?) / 1000000), r.state) FROM run r JOIN job j ON j.id = r.job_id"+
		" WHERE r.state NOT IN ('ended', 'prepared') ORDER BY j.name, r.due, r.attempt", int64(t0))
}

func (c *cluster) outcomes() []string {
	return c.rows("SELECT CONCAT_WS(' ', j.name, ROUND((r.due - ?) / 1000000), r.outcome) FROM run r JOIN job j ON j.id = r.job_id"+
		" WHERE r.state = 'ended' ORDER BY j.name, r.due, r.attempt", int64(t0))
}

func (c *cluster) runningOf(name string) []string {
	return c.rows("SELECT ROUND((r.due - ?) / 1000000) FROM job j JOIN run r ON r.id = j.running WHERE j.name = ?", int64(t0), name)
}

// TestQueueInOrder: due times wait for earlier ones, and start in order, each when the run before
// it ends.
func TestQueueInOrder(t *testing.T) {
	c := newCluster(t)
	m, other := c.member(1, c.dsn), c.member(2, c.dsn)
	spec := every("j", 2)
	spec.Overlap, spec.Queue = job.OverlapQueue, 2
	c.create(spec, t0)
	m.claims(0)
	c.want("first", m.starts(2), "j@2")
	c.want("while that executes", m.starts(8))
	c.want("two wait, one is skipped", c.runsNow(), "j 2 executing", "j 4 waiting", "j 6 waiting")
	m.ends("j", 2, 9, succeeded)
	c.want("the next one is idle", c.runsNow(), "j 4 idle", "j 6 waiting")
	if n := len(m.woken); n != 1 {
		t.Errorf("woken %d times, want 1", n)
	}
	c.want("it is its turn", c.runningOf("j"), "4")

	c.want("a later due time does not overtake it", m.starts(10))
	c.want("any node starts it", other.takesOverdue(10.1), "j@4")
	other.ends("j", 4, 11, succeeded)
	c.want("then the next", other.takesOverdue(11.1), "j@6")
	other.ends("j", 6, 12, succeeded)
	c.want("then the next", other.takesOverdue(12.1), "j@10")
	other.ends("j", 10, 13, succeeded)
	c.want("nothing is left", c.runsNow())
	c.want("outcomes", c.outcomes(), "j 2 succeeded", "j 4 succeeded", "j 6 succeeded", "j 8 skipped", "j 10 succeeded")
}

// TestReplace: a later due time gets the executing run killed, and starts when it is dead.
func TestReplace(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	spec := every("j", 2)
	spec.Overlap = job.OverlapReplace
	spec.Retry = job.Retry{Attempts: 3}
	c.create(spec, t0)
	m.claims(0)
	c.want("first", m.starts(2), "j@2")
	c.want("second", m.starts(4))
	wishes, err := trip.Wishes(c.db.Reader(t.Context()), 1)
	if err != nil || len(wishes) != 1 || !wishes[0].Replace {
		t.Errorf("wishes: %v, %v", wishes, err)
	}

	c.want("third", m.starts(6))
	c.want("the second one has lost its place", c.runsNow(), "j 2 executing", "j 6 waiting")
	m.ends("j", 2, 6.5, ended{job.Killed, 7})
	c.want("the third one starts", m.takesOverdue(6.6), "j@6")
	c.want("what was replaced is not tried again", c.outcomes(), "j 2 killed", "j 4 superseded")
}

// TestForeignRunInLine: the row of a waiting run was edited by hand and names a different job now.
// The job in whose line it waits goes on.
func TestForeignRunInLine(t *testing.T) {
	c := newCluster(t)
	c.exec("DROP TRIGGER run_updated") // it forbids that
	m := c.member(1, c.dsn)
	spec := every("j", 2)
	spec.Overlap = job.OverlapReplace
	c.create(spec, t0)
	m.claims(0)
	c.want("first", m.starts(2), "j@2")
	c.want("second", m.starts(4))

	c.exec("UPDATE run SET job_id = 999 WHERE state = 'waiting'")
	c.want("third", m.starts(6))
	m.ends("j", 2, 6.5, succeeded)
	c.want("a later one starts", m.starts(8), "j@8")
}

// TestRetryWaits: the end of an attempt inserts the next one, which waits for another run of its
// job.
func TestRetryWaits(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	c.create(every("j", 2), t0)
	m.claims(0)
	c.want("first", m.starts(2), "j@2")
	m.ends("j", 2, 3, ended{job.Failed, 5})
	c.want("its retry", c.runsNow(), "j 2 idle")
	c.want("the next due time comes first", m.starts(4), "j@4")
	c.want("the retry waits", m.takesOverdue(5.1))
	c.want("rows", c.runsNow(), "j 2 waiting", "j 4 executing")
	c.want("a due time is skipped", m.starts(6))
	m.ends("j", 4, 7, succeeded)
	c.want("the retry starts", m.takesOverdue(7.1), "j@2")
	m.ends("j", 2, 8, succeeded)
	c.want("outcomes", c.outcomes(), "j 2 failed", "j 2 succeeded", "j 4 succeeded", "j 6 skipped")
}

// TestKilledRunIsNotRetried: a run that should be killed fails by itself before.
func TestKilledRunIsNotRetried(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	c.create(every("j", 2), t0)
	m.claims(0)
	m.starts(2)
	c.exec("UPDATE run SET wish = 'kill' WHERE state = 'executing'")
	m.ends("j", 2, 3, ended{job.Failed, 5})
	c.want("no attempt follows", c.runsNow())
	c.want("it is final", c.rows("SELECT final FROM run WHERE state = 'ended'"), "1")
}

// TestCrowdedJob: after an edit from overlap allow, all runs that began before exclude others.
func TestCrowdedJob(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	spec := every("j", 2)
	spec.Overlap = job.OverlapAllow
	id := c.create(spec, t0)
	m.claims(0)
	c.want("both", append(m.starts(2), m.starts(4)...), "j@2", "j@4")
	spec.Overlap = job.OverlapQueue
	c.edit(id, spec, "crowded = 1")
	m.starts(6) // it reads the definition
	m.starts(6.1)
	m.ends("j", 4, 6.2, succeeded)
	m.takesOverdue(6.3)
	c.want("it waits for the other one", c.runsNow(), "j 2 executing", "j 6 waiting")
	m.ends("j", 2, 6.4, succeeded)
	c.want("then it starts", m.takesOverdue(6.5), "j@6")
	c.want("the job is not crowded any more", c.rows("SELECT crowded FROM job"), "0")
}

// edit writes another definition of a job.
func (c *cluster) edit(id int64, spec job.Spec, set string) {
	c.Helper()
	spec.App, spec.Command = "default", "true"
	spec.Defaults(t0.Time())
	text, err := spec.Encode()
	if err != nil {
		c.Fatal(err)
	}
	c.exec("UPDATE job SET version = version + 1, "+set+" WHERE id = ?", id)
	c.exec("INSERT INTO job_version (job_id, version, definition, created) SELECT id, version, ?, 0 FROM job WHERE id = ?", text, id)
}

// TestGroup: no more runs of a group execute than it has slots. Among the waiting runs the highest
// priority goes first.
func TestGroup(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	c.exec("INSERT INTO grp (id, name, slots) VALUES (7, 'g', 2)")
	for i, name := range []string{"a", "b", "c", "d"} {
		spec := every(name, 100)
		start := t0.Add(time.Duration(100+i) * time.Second).Time()
		spec.Start, spec.Group, spec.Priority = &start, "g", i/3*10
		c.create(spec, t0)
	}

	taken := func() []string { return c.rows("SELECT taken FROM grp") }
	m.claims(95)
	c.want("two begin", m.starts(104), "a@100", "b@101")
	c.want("slots", taken(), "2")
	c.want("two wait", c.runsNow(), "a 100 executing", "b 101 executing", "c 102 waiting", "d 103 waiting")
	m.ends("a", 100, 105, succeeded)
	c.want("the highest priority is woken", c.runsNow(), "b 101 executing", "c 102 waiting", "d 103 idle")
	c.want("slots", taken(), "1")
	c.want("and starts", m.takesOverdue(105.1), "d@103")
	m.ends("b", 101, 106, ended{job.Failed, 107})
	c.want("a retry holds no slot", m.takesOverdue(106.1), "c@102")
	m.takesOverdue(107.1)
	c.want("it waits for one", c.runsNow(), "b 101 waiting", "c 102 executing", "d 103 executing")
	m.ends("c", 102, 108, succeeded)
	c.want("and gets it", m.takesOverdue(108.1), "b@101")
	m.ends("b", 101, 109, succeeded)
	m.ends("d", 103, 109, succeeded)
	c.want("all slots are free", taken(), "0")
}

// TestWokenRunGoesFirst: for five seconds no other run takes the slot of a woken run.
func TestWokenRunGoesFirst(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	c.exec("INSERT INTO grp (id, name, slots) VALUES (7, 'g', 1)")
	for i, name := range []string{"a", "b", "c"} {
		spec := every(name, 100)
		start := t0.Add(time.Duration(100+5*i) * time.Second).Time()
		spec.Start, spec.Group = &start, "g"
		c.create(spec, t0)
	}

	m.claims(100.5)
	c.want("a has the slot", m.starts(105), "a@100")
	m.ends("a", 100, 108, succeeded)
	c.want("b was woken", c.runsNow(), "b 105 idle")
	c.want("c does not take its slot", m.starts(110))
	c.want("both wait", c.runsNow(), "b 105 idle", "c 110 waiting")
	c.want("b begins", m.takesOverdue(110.5), "b@105")
	m.ends("b", 105, 111, succeeded)
	c.want("c begins", m.takesOverdue(111.1), "c@110")
}

// TestCatchUpOneAfterTheOther: late starts by the misfire policy all neither overlap nor get
// skipped.
func TestCatchUpOneAfterTheOther(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	spec := every("j", 100)
	spec.Misfire = job.Misfire{Policy: job.MisfireAll, MaxCount: 3}
	c.create(spec, t0)
	m.claims(480)
	var order []string
	for at := 480.0; at < 484; at++ {
		order = append(order, m.starts(at)...)
		order = append(order, m.takesOverdue(at+0.1)...)
		if len(c.runsNow()) > 0 {
			m.ends("j", 200+(at-480)*100, at+0.2, succeeded)
		}
		if at == 482 {
			break
		}
	}

	c.want("order", order, "j@200", "j@300", "j@400")
	c.want("outcomes", c.outcomes(), "j 100 missed", "j 200 succeeded", "j 300 succeeded", "j 400 succeeded")
}

// TestBackfillTakesTurns: a backfill and the schedule wait for each other, and neither loses a due
// time.
func TestBackfillTakesTurns(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	id := c.create(every("j", 10), t0)
	for i := range 3 {
		due := int64(t0.Add(time.Duration(i-100) * time.Second))
		c.exec("INSERT INTO run (id, job_id, app_id, due, kind, request, state, owner, claim, due_now, hash) VALUES (?, ?, 1, ?, 'backfill', 1, 'idle', 0, 0, ?, 5)",
			i+1, id, due, int64(t0)+int64(i))
	}

	m.claims(1)
	c.want("the backfill begins", m.takesOverdue(1), "j@-100")
	c.want("its others wait", c.runsNow(), "j -100 executing", "j -99 waiting", "j -98 waiting")
	c.want("a due time waits", m.starts(10))
	m.ends("j", -100, 11, succeeded)
	c.want("its turn", m.takesOverdue(11.1), "j@10")
	m.ends("j", 10, 12, succeeded)
	c.want("then the backfill", m.takesOverdue(12.1), "j@-99")
	m.ends("j", -99, 13, succeeded)
	c.want("nothing else waits", m.takesOverdue(13.1), "j@-98")
	m.claims(15)
	m.starts(20)
	c.want("a due time waits", c.runsNow(), "j -98 executing", "j 20 waiting")
	m.claims(25)
	m.starts(30)
	c.want("a second one does not", c.runsNow(), "j -98 executing", "j 20 waiting")
}

// TestTurns: after a scheduled run a backfill goes first; after a backfill's run the schedule does.
func TestTurns(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	spec := every("j", 10)
	spec.Overlap = job.OverlapQueue
	id := c.create(spec, t0)
	m.claims(15)
	c.want("the schedule begins", m.starts(15), "j@10")
	for i := range 2 {
		due := int64(t0.Add(time.Duration(i-100) * time.Second))
		c.exec("INSERT INTO run (id, job_id, app_id, due, kind, request, state, owner, claim, due_now, hash) VALUES (?, ?, 1, ?, 'backfill', 1, 'idle', 0, 0, ?, 5)",
			i+1, id, due, int64(t0)+int64(i))
	}

	m.takesOverdue(16)
	m.claims(25)
	m.starts(30)
	c.want("all wait", c.runsNow(), "j -100 waiting", "j -99 waiting", "j 10 executing", "j 20 waiting", "j 30 waiting")
	var order []string
	at := 31.0
	for _, due := range []float64{10, -100, 20, -99} {
		m.ends("j", due, at, succeeded)
		order = append(order, m.takesOverdue(at+0.1)...)
		at++
	}

	c.want("order", order, "j@-100", "j@20", "j@-99", "j@30")
}

// TestKeptJob: while the row of a job stays locked, its ends are set aside, and the ends of other
// jobs are written.
func TestKeptJob(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	spec := every("j", 2)
	spec.Overlap = job.OverlapQueue
	id := c.create(spec, t0)
	spec.Name = "other"
	c.create(spec, t0)
	m.claims(0)
	m.starts(2)
	m.starts(4)
	tx, err := c.db.Raw().Begin()
	if err != nil {
		t.Fatal(err)
	}

	defer tx.Rollback()
	if _, err := tx.Exec("SELECT id FROM job WHERE id = ? FOR UPDATE", id); err != nil {
		t.Fatal(err)
	}

	var e trip.End
	c.db.Raw().QueryRow("SELECT id, claim, job_id FROM run WHERE job_id = ? AND state = 'executing'", id).Scan(&e.Run, &e.Claim, &e.JobID)
	e.Outcome, e.Final, e.Started, e.Ended = job.Succeeded, true, t0, t0
	m.recorder().Put(e, true)
	began := time.Now()
	m.at(5)
	m.recorder().Push(t.Context(), []int64{id})
	if n := m.recorder().Waiting(); n != 1 || time.Since(began) > 5*time.Second {
		t.Errorf("%d ends wait after %v", n, time.Since(began))
	}

	c.want("other goes on", c.rows("SELECT COUNT(*) FROM run r JOIN job j ON j.id = r.job_id WHERE j.name = 'other' AND r.state = 'waiting'"), "1")
	row := c.db.Raw().QueryRow("SELECT r.id, r.claim, r.job_id FROM run r JOIN job j ON j.id = r.job_id WHERE j.name = 'other' AND r.state = 'executing'")
	if err := row.Scan(&e.Run, &e.Claim, &e.JobID); err != nil {
		t.Fatal(err)
	}

	m.recorder().Put(e, true)
	m.recorder().Push(t.Context(), []int64{e.JobID})
	c.want("it starts", m.takesOverdue(5.1), "other@4")
	tx.Rollback()
	m.recorder().Push(t.Context(), []int64{id})
	c.want("then the first one does", m.takesOverdue(5.2), "j@4")
}

// TestEndingRun: a run does not begin to wait for a run that may be ending. It is judged again
// later.
func TestEndingRun(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	spec := every("j", 2)
	spec.Overlap = job.OverlapQueue
	c.create(spec, t0)
	m.claims(-7)
	m.claims(-5)
	m.starts(2)
	tx, err := c.db.Raw().Begin()
	if err != nil {
		t.Fatal(err)
	}

	defer tx.Rollback()
	if _, err := tx.Exec("SELECT id FROM run WHERE state = 'executing' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}

	c.want("its row is locked", m.starts(4))
	c.want("nothing waits", c.runsNow(), "j 2 executing")
	tx.Rollback()
	m.starts(4.1)
	c.want("now it waits", c.runsNow(), "j 2 executing", "j 4 waiting")
	m.ends("j", 2, 5, succeeded)
	c.want("and is woken", c.runsNow(), "j 4 idle")
}

// TestManyLines: with 1,000 waiting runs in 20 jobs, ending, counting or waking the runs of one job
// reads no rows of other jobs.
func TestManyLines(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	spec := every("j", 2)
	spec.Overlap = job.OverlapQueue
	id := c.create(spec, t0)
	var full []int64
	for i := range 20 {
		spec.Name = fmt.Sprintf("full%d", i)
		full = append(full, c.create(spec, t0.Add(time.Hour)))
		for k := range 50 {
			r := trip.Run{JobID: full[i], Kind: trip.Schedule, Due: t0.Add(time.Duration(k) * time.Second)}
			run := 10_000*(i+1) + k
			c.exec("INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash) VALUES (?, ?, 1, ?, 'schedule', 'idle', 0, 0, 0, 5)",
				run, full[i], int64(r.Due))
			c.exec("UPDATE run SET state = 'waiting', owner = -1, due_now = ? WHERE id = ?", int64(trip.JobPlace(&r)), run)
		}
	}
	m.claims(0)
	m.starts(2)
	m.starts(4)
	m.ends("j", 2, 5, succeeded)
	c.want("only its own next run is woken", c.rows("SELECT CONCAT(job_id, ' ', state) FROM run WHERE state = 'idle'"), fmt.Sprintf("%d idle", id))

	reads := func(what string, most int, do func(tx *sql.Tx) error) {
		err := c.db.Tx(t.Context(), func(tx *sql.Tx) error {
			before, err := handlerReads(tx)
			if err != nil {
				return err
			}
			if err := do(tx); err != nil {
				return err
			}
			after, err := handlerReads(tx)
			if after-before > most {
				t.Errorf("%s: reads %d rows, want at most %d", what, after-before, most)
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	reads("count two lines", 150, func(tx *sql.Tx) error {
		queued, err := trip.Queued(tx, []int64{full[3], id})
		if queued[full[3]] != 50 || queued[id] != 0 {
			t.Errorf("queued: %v", queued)
		}
		return err
	})
	reads("wake the next run of a job", 60, func(tx *sql.Tx) error {
		woken, err := trip.WakeJobs(tx, []int64{full[3]}, nil, t0.Add(500*time.Second))
		if woken != 1 {
			t.Errorf("woken: %d", woken)
		}
		return err
	})
	c.want("the first one", c.rows("SELECT id FROM run WHERE state = 'idle' AND job_id = ?", full[3]), "40000")
}

// handlerReads returns the number of rows and index entries that the connection has read.
func handlerReads(tx *sql.Tx) (n int, err error) {
	scan := func(rows *sql.Rows) (v int, err error) {
		var name string
		err = rows.Scan(&name, &v)
		return v, err
	}
	found, err := sql.Select(tx, "read status", scan, "SHOW SESSION STATUS LIKE 'Handler_read%'")
	for _, v := range found {
		n += v
	}
	return n, err
}
