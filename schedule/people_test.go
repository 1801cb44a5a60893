package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/schedule/edit"
	"go-crontab/sql"
	"go-crontab/test/faultproxy"

	"github.com/go-sql-driver/mysql"
)

// person makes changes through a node.
type person struct {
	*cluster
	*edit.Editor
	session *testSession
	ctx     context.Context
	soon    loop.Wake // holds the wakes of the node's claimer: there may be work at once
	metrics *limited
}

// person adds a person with a node of their own, whose number is used for nothing else.
func (c *cluster) person(dsn string) *person {
	p := &person{
		cluster: c, session: &testSession{number: 99, now: t0}, soon: make(loop.Wake, 100), metrics: new(limited),
	}
	p.session.minted.Store(1)
	p.ctx = job.WithActor(c.Context(), job.Actor{Who: "alice", Origin: "10.0.0.7"})
	p.Editor = edit.New(edit.Config{
		DB: openDB(c.T, dsn), Session: p.session, Metrics: p.metrics, StopsSeen: 20 * time.Millisecond, WakeClaimer: p.soon,
	})
	return p
}

// limited counts refusals by limits.
type limited struct {
	mu       sync.Mutex
	refusals map[job.Limit]int
}

func (l *limited) Limited(limit job.Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusals == nil {
		l.refusals = map[job.Limit]int{}
	}
	l.refusals[limit]++
}

// wakes returns the number of wakes since the last call.
func (p *person) wakes() (n int) {
	for ; len(p.soon) > 0; n++ {
		<-p.soon
	}
	return n
}

// at sets the clock of the person.
func (p *person) at(seconds float64) *person {
	p.session.now = t0.Add(time.Duration(seconds * float64(time.Second)))
	return p
}

func (p *person) must(done edit.Done, err error) edit.Done {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
	return done
}

func (p *person) creates(spec job.Spec) int64 {
	p.Helper()
	if spec.Command == "" {
		spec.Command = "true"
	}
	return p.must(p.Create(p.ctx, spec, false)).ID
}

// ofEvery is every with the required fields of a definition.
func ofEvery(name string, seconds int) job.Spec {
	spec := every(name, seconds)
	spec.Command = "true"
	return spec
}

const (
	endedRuns = "SELECT CONCAT_WS(' ', (r.due - ?) / 1000000, NULLIF(CONCAT('to ', (r.due_last - ?) / 1000000), ''), r.due_count," +
		" r.outcome, r.final, r.reason) FROM run r WHERE r.state = 'ended' ORDER BY r.job_id, r.due, r.attempt"
	cursors = "SELECT CONCAT_WS(' ', name, version, changes, CONCAT('next ', (next_due - ?) / 1000000), CONCAT('parked ', (parked - ?) / 1000000)," +
		" IF(paused, 'paused', NULL), IF(crowded, 'crowded', NULL), IF(living IS NULL, 'deleted', NULL)) FROM job ORDER BY name"
	auditLines = "SELECT CONCAT_WS(' ', who, action, app, name, NULLIF(reason, ''), IF(was IS NULL, NULL, 'was'), IF(became IS NULL, NULL, 'became'))" +
		" FROM audit ORDER BY id"
)

func (c *cluster) wantEnded(what string, want ...string) {
	c.Helper()
	c.want(what, c.rows(endedRuns, int64(t0), int64(t0)), want...)
}

func (c *cluster) wantJobs(what string, want ...string) {
	c.Helper()
	c.want(what, c.rows(cursors, int64(t0), int64(t0)), want...)
}

// TestCreate: a new job is claimed from its first due time on; a name is taken once in each app.
func TestCreate(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	p.creates(ofEvery("j", 4))
	if _, err := p.Create(p.ctx, ofEvery("j", 4), false); !errors.Is(err, sql.ErrExists) {
		t.Errorf("the same name: got %v, want sql.ErrExists", err)
	}

	other := ofEvery("j", 4)
	other.App = "other"
	p.creates(other)
	p.must(p.Create(p.ctx, ofEvery("paused", 4), true))
	if _, err := p.Create(p.ctx, job.Spec{Name: "x"}, false); err == nil {
		t.Error("without a schedule: got no error")
	}

	c.wantJobs("cursors", "j 1 1 next 4.0000", "j 1 1 next 4.0000", "paused 1 1 parked 4.0000 paused")
	m.claims(1)
	c.want("started", m.starts(4), "j@4", "j@4")
	c.want("audit", c.rows(auditLines), "alice create default j became", "alice create other j became",
		"alice create default paused became", "alice pause default paused")
	c.want("versions", c.rows("SELECT CONCAT_WS(' ', version, who, created = ?) FROM job_version", int64(t0)),
		"1 alice 1", "1 alice 1", "1 alice 1")
}

// TestPauseThatIsOverInTime: a daily job that is paused for one second at T-5 s still runs.
func TestPauseThatIsOverInTime(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	id := p.creates(job.Spec{Name: "daily", Schedule: "0 13 * * *"}) // an hour after t0
	m.claims(3592)
	p.must(p.at(3595).Pause(p.ctx, id, job.PauseRequest{}))
	c.wantJobs("paused", "daily 1 2 parked 3600.0000 paused")
	c.want("nothing is left", c.rows(allRuns, int64(t0)))
	p.must(p.at(3596).Resume(p.ctx, id))
	m.claims(3596)
	c.want("started", m.starts(3600), "daily@3600")
	c.wantEnded("nothing was skipped")
	if n := p.wakes(); n != 3 {
		t.Errorf("the node was woken %d times, want 3", n)
	}
}

// TestResumeAppliesTheMisfirePolicy: due times within a pause become one counted run, and the
// latest of the due times starts late.
func TestResumeAppliesTheMisfirePolicy(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	id := p.creates(ofEvery("j", 10))
	m.claims(1)
	p.must(p.at(5).Pause(p.ctx, id, job.PauseRequest{Reason: "maintenance"}))
	m.claims(36)
	c.want("while it is paused", c.rows(allRuns, int64(t0)))
	p.must(p.at(36).Resume(p.ctx, id))
	m.claims(36.2)
	c.want("started late", m.starts(36.2), "j@30")
	c.finish(30, "j")
	c.want("and on", m.starts(40), "j@40")
	c.finish(40, "j")
	c.wantEnded("counted", "10.0000 to 20.0000 2 skipped 1 the job was paused until 2026-11-02T12:00:36Z", "30.0000 succeeded 1", "40.0000 succeeded 1")
}

// TestPauseWithAnEnd: a pause ends by itself, and claims continue from its beginning.
func TestPauseWithAnEnd(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	spec := ofEvery("j", 10)
	spec.Misfire.Policy = job.MisfireSkip
	id := p.creates(spec)
	m.claims(1)
	until := t0.Add(25 * time.Second)
	p.must(p.at(5).Pause(p.ctx, id, job.PauseRequest{Reason: "maintenance", Until: until}))
	p.must(p.at(6).Pause(p.ctx, id, job.PauseRequest{})) // changes nothing
	c.wantJobs("paused", "j 1 2 next 25.0000 parked 10.0000 paused")
	m.claims(24)
	c.want("before it ends", c.rows(allRuns, int64(t0)))
	m.claims(25.1)
	c.wantJobs("resumed", "j 1 3 next 40.0000")
	c.want("started", m.starts(30), "j@30")
	c.wantEnded("counted", "10.0000 to 20.0000 2 skipped 1 the job was paused until 2026-11-02T12:00:25Z")
	c.want("pauses", c.rows("SELECT job_id FROM job_pause"))
	c.want("audit", c.rows(auditLines), "alice create default j became", "alice pause default j maintenance became",
		"go-crontab resume default j its pause had an end")
}

// TestPauseAgain: a second pause replaces the reason and the end.
func TestPauseAgain(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	id := p.creates(ofEvery("j", 10))
	p.must(p.Pause(p.ctx, id, job.PauseRequest{Reason: "first"}))
	p.must(p.at(5).Pause(p.ctx, id, job.PauseRequest{Reason: "second", Until: t0.Add(time.Hour)}))
	c.wantJobs("paused", "j 1 3 next 3600.0000 parked 10.0000 paused")
	c.want("pause", c.rows("SELECT CONCAT_WS(' ', (since - ?) / 1000000, who, reason) FROM job_pause", int64(t0)), "0.0000 alice second")
	p.must(p.at(6).Resume(p.ctx, id))
	if done := p.must(p.at(7).Resume(p.ctx, id)); done.Result != job.BulkUnchanged {
		t.Errorf("resume of a job that is not paused: got %s", done.Result)
	}
	c.wantJobs("resumed", "j 1 4 next 10.0000")
}

// TestUpdate: an edit takes back runs that have not begun. It continues with the first new due time
// after now and after all runs that have begun.
func TestUpdate(t *testing.T) {
	for name, test := range map[string]struct {
		claimed, edited float64
		spec            job.Spec
		jobs, runs      string
		starts          string
	}{
		"a new due time comes before the one that was taken back": {
			1, 5, ofEvery("j", 7), "j 2 2 next 7.0000", "", "j@7",
		},
		"the same due times: what was claimed starts under the new definition": {
			1, 5, ofEvery("renamed", 8), "renamed 2 2 next 16.0000", "renamed 8.0000 prepared 1 1", "renamed@8",
		},
		"what is due already stays": {
			1, 8.2, ofEvery("j", 9), "j 2 2 next 9.0000", "j 8.0000 prepared 1 1", "j@8 j@9",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			p, m := c.person(c.dsn), c.member(1, c.dsn)
			id := p.creates(ofEvery("j", 8))
			m.claims(test.claimed)

			p.must(p.at(test.edited).Update(p.ctx, id, 1, test.spec))
			c.wantJobs("job", test.jobs)
			c.want("runs", []string{strings.Join(c.rows(allRuns, int64(t0)), "; ")}, test.runs)

			m.claims(test.edited)
			started := m.starts(test.edited)
			for s := test.edited; s < 10; s += 0.1 {
				started = append(started, m.starts(s)...)
				for _, run := range started {
					var due float64
					name, seconds, _ := strings.Cut(run, "@")
					fmt.Sscan(seconds, &due)
					c.finish(due, name)
				}
			}

			c.want("started", []string{strings.Join(started, " ")}, test.starts)
			if _, err := p.Update(p.ctx, id, 1, test.spec); !errors.Is(err, job.ErrChanged) {
				t.Errorf("at an old version: got %v, want job.ErrChanged", err)
			}
		})
	}
}

// TestNothingRunsTwice: an edit never returns to a due time that has begun (rule B), with or
// without a row.
func TestNothingRunsTwice(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	id := p.creates(ofEvery("j", 8))
	m.claims(1)
	m.at(7.99)
	if _, err := m.starter.start(m.Context(), m.session.now, m.session.now.Add(minLead)); err != nil {
		t.Fatal(err)
	}

	c.want("started ahead of time", m.set.take(), "j@8")
	c.finish(8, "j")
	c.exec("DELETE FROM run WHERE state = 'ended'") // as retention does
	spec := ofEvery("j", 8)
	spec.Jitter = job.Duration(time.Microsecond) // other due times
	p.must(p.at(7.995).Update(p.ctx, id, 0, spec))
	c.want("cursor is behind it", c.rows("SELECT next_due > ? FROM job", int64(t0.Add(8*time.Second))), "1")
	p.must(p.at(7.996).Pause(p.ctx, id, job.PauseRequest{}))
	p.must(p.at(7.997).Update(p.ctx, id, 0, ofEvery("j", 4)))
	c.wantJobs("and of a paused job", "j 3 4 parked 12.0000 paused")
}

// TestEditSettlesThePast: before an edit or a deletion moves the cursor, passed due times without
// runs become one counted row (rule P).
func TestEditSettlesThePast(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	for _, name := range []string{"deleted", "edited", "paused"} {
		p.creates(ofEvery(name, 10))
	}

	ids := map[string]int64{"deleted": 1, "edited": 2, "paused": 3}
	p.must(p.at(15).Pause(p.ctx, ids["paused"], job.PauseRequest{}))
	p.at(35)
	p.must(p.Delete(p.ctx, ids["deleted"]))
	p.must(p.Update(p.ctx, ids["edited"], 0, ofEvery("edited", 7)))
	p.must(p.Update(p.ctx, ids["paused"], 0, ofEvery("paused", 7)))
	c.wantJobs("jobs", "deleted 1 2 deleted", "edited 2 2 next 42.0000", "paused 2 3 parked 42.0000 paused")
	c.wantEnded("counted", "10.0000 to 30.0000 3 superseded 1 the job was deleted",
		"10.0000 to 30.0000 3 superseded 1 the schedule was changed before the due time was claimed",
		"10.0000 to 30.0000 3 skipped 1 paused since 2026-11-02T12:00:15Z; the schedule was changed before the due time was claimed")
	m.claims(36)
	c.want("claimed", m.starts(42), "edited@42")
	if _, err := p.Delete(p.ctx, ids["deleted"]); !errors.Is(err, sql.ErrNotFound) {
		t.Errorf("deleted twice: got %v, want sql.ErrNotFound", err)
	}
}

// TestDelete: runs that have not begun are taken back. A due run ends superseded at its start.
func TestDelete(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	id := p.creates(ofEvery("j", 4))
	m.claims(1)
	p.must(p.at(4.1).Delete(p.ctx, id))
	c.want("runs", c.rows(allRuns, int64(t0)), "j 4.0000 prepared 1 1")
	c.want("nothing starts", m.starts(8))
	c.wantEnded("ended", "4.0000 superseded 1 the job was deleted")
	p.creates(ofEvery("j", 4)) // the name is free
}

// TestBrokenJob: a job whose definition cannot be read can be paused, resumed and deleted, and an
// edit repairs it.
func TestBrokenJob(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	id := p.creates(ofEvery("j", 4))
	c.exec("UPDATE job_version SET definition = '{'")
	p.must(p.at(5).Pause(p.ctx, id, job.PauseRequest{}))
	p.must(p.at(6).Resume(p.ctx, id))
	c.wantJobs("resumed", "j 1 3 next 4.0000")
	m.claims(6)
	if broken := c.rows("SELECT error FROM job"); broken[0] == "" {
		t.Error("the job does not say why it has no due times")
	}

	p.must(p.at(7).Update(p.ctx, id, 0, ofEvery("j", 5)))
	c.want("repaired", c.rows("SELECT error FROM job"), "")
	m.claims(7)
	c.want("started", m.starts(10), "j@10")
	c.exec("UPDATE job_version SET definition = '{'")
	c.exec("UPDATE job SET next_due = ?", int64(t0.Add(25*time.Second)))
	p.must(p.at(30).Delete(p.ctx, id))
	c.wantEnded("nobody knows how many", "25.0000 to 30.0000 superseded 1 the job was deleted")
}

// TestCrowded: a job that comes from overlap allow looks at all of its executing runs (rule X).
func TestCrowded(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	spec := ofEvery("j", 4)
	spec.Overlap = job.OverlapAllow
	id := p.creates(spec)
	p.must(p.Update(p.ctx, id, 0, ofEvery("j", 4)))
	c.wantJobs("from allow", "j 2 2 next 4.0000 crowded")
	c.exec("UPDATE job SET crowded = 0")
	p.must(p.Update(p.ctx, id, 0, spec))
	c.wantJobs("to allow", "j 3 3 next 4.0000")
}

// TestMove: a job moves to another app; its name must be free there.
func TestMove(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	id := p.creates(ofEvery("j", 4))
	other := ofEvery("j", 4)
	other.App = "other"
	p.must(p.Update(p.ctx, id, 0, other))
	m.claims(1)
	m.starts(4)
	c.want("app of the run", c.rows("SELECT a.name FROM run r JOIN app a ON a.id = r.app_id WHERE state = 'executing'"), "other")
	second := p.creates(ofEvery("j", 4))
	if _, err := p.Update(p.ctx, second, 0, other); !errors.Is(err, sql.ErrExists) {
		t.Errorf("a name that is taken: got %v, want sql.ErrExists", err)
	}
	back := ofEvery("back", 4)
	p.must(p.Update(p.ctx, id, 0, back))
	c.want("its runs stay where they were", c.rows("SELECT a.name FROM run r JOIN app a ON a.id = r.app_id WHERE r.state = 'executing'"), "other")
}

// TestSingleInstant: an overdue instant is due at once, and never twice.
func TestSingleInstant(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	instant := func(seconds float64) job.Spec {
		at := t0.Add(time.Duration(seconds * float64(time.Second))).Time()
		return job.Spec{Name: "j", At: &at, Command: "true"}
	}
	id := p.creates(instant(-5))
	m.claims(0)
	p.must(p.at(0).Update(p.ctx, id, 0, ofEvery("j", 1000)))
	p.must(p.at(0).Update(p.ctx, id, 0, instant(-5))) // due times with a run
	c.wantJobs("there is a run", "j 3 3")
	m.claims(1)
	m.starts(1)
	c.want("runs", c.rows(allRuns, int64(t0)), "j -5.0000 executing 1 1")
	p.must(p.at(2).Update(p.ctx, id, 0, instant(-3)))
	c.wantJobs("another instant that has passed", "j 4 4 next -3.0000")
}

// TestAnswersAfterWindows: a change is answered once no earlier start can be spawned any more.
func TestAnswersAfterWindows(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	id := p.creates(ofEvery("j", 4))
	m.claims(1)
	m.starter.Window = 300 * time.Millisecond
	m.starts(4)
	began := time.Now()
	p.must(p.at(4.1).Pause(p.ctx, id, job.PauseRequest{}))
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("answered after %s, want the window of 200 ms and a margin of 100 ms", took)
	}
	began = time.Now()
	p.must(p.at(10).Resume(p.ctx, id))
	if took := time.Since(began); took > 250*time.Millisecond {
		t.Errorf("answered after %s, though no window is open", took)
	}
}

// TestLockedJob: a batch does not wait for a locked row of a job, and makes its other changes.
func TestLockedJob(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	kept, other := p.creates(ofEvery("kept", 4)), p.creates(ofEvery("other", 4))
	tx, err := c.db.Raw().Begin()
	if err != nil {
		t.Fatal(err)
	}

	defer tx.Rollback()
	if _, err := tx.Exec("SELECT id FROM job WHERE id = ? FOR UPDATE", kept); err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	done, err := p.Each(p.ctx, []edit.Change{{Action: job.ActionPause, ID: kept}, {Action: job.ActionPause, ID: other}})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	if !errors.Is(done[0].Err, edit.ErrLocked) || done[1].Result != job.BulkChanged {
		t.Errorf("got %+v", done)
	}
}

// TestBusyJob: a change of a single job waits for its row, even if each look finds it locked.
func TestBusyJob(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	id := p.creates(ofEvery("busy", 4))
	tx, err := c.db.Raw().Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("SELECT id FROM job WHERE id = ? FOR UPDATE", id); err != nil {
		t.Fatal(err)
	}

	done := make(chan error, 1)
	go func() { _, err := p.Pause(p.ctx, id, job.PauseRequest{}); done <- err }()
	time.Sleep(1200 * time.Millisecond) // longer than all looks together
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("got %v", err)
	}
}

// TestManyJobs: a thousand jobs are created, changed, paused and deleted with few statements each.
func TestManyJobs(t *testing.T) {
	const n, most = 1000, 40 // 13 to 31 are usual, the most on Galera
	c := newCluster(t)
	proxied, proxy := c.proxied()
	p, m := c.person(proxied), c.member(1, c.dsn)
	m.claimer.Most = 10 * n
	changes := make([]edit.Change, n)
	apply := func(what string) {
		t.Helper()
		before := proxy.Statements()
		done, err := p.All(p.ctx, changes)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for i := range done {
			changes[i].ID = done[i].ID
			if done[i].Result != job.BulkChanged {
				t.Fatalf("%s: job %d: %+v", what, i, done[i])
			}
		}
		statements := proxy.Statements() - before
		t.Logf("%s: %d statements", what, statements)
		if statements > most {
			t.Errorf("%s: %d statements, want at most %d", what, statements, most)
		}
	}

	for i := range changes {
		spec := ofEvery(fmt.Sprint("job-", i), 4)
		changes[i] = edit.Change{Action: job.ActionCreate, Spec: &spec}
	}

	apply("create")
	m.claims(1)
	for i := range changes {
		spec := ofEvery(fmt.Sprint("job-", i), 3)
		changes[i].Action, changes[i].Spec = job.ActionUpdate, &spec
	}

	apply("update")
	m.claims(1)
	for i := range changes {
		changes[i].Action, changes[i].Spec = job.ActionPause, nil
	}

	apply("pause")
	for i := range changes {
		changes[i].Action = job.ActionResume
	}

	apply("resume")
	m.claims(1)
	for i := range changes {
		changes[i].Action = job.ActionDelete
	}

	apply("delete")
	c.want("runs", c.rows("SELECT COUNT(*) FROM run"), "0")
	c.want("lines of the audit", c.rows("SELECT COUNT(*) FROM audit"), fmt.Sprint(5*n))
}

// proxied returns a DSN that leads through a proxy.
func (c *cluster) proxied() (string, *faultproxy.Proxy) {
	c.Helper()
	cfg, err := mysql.ParseDSN(c.dsn)
	if err != nil {
		c.Fatal(err)
	}
	proxy := faultproxy.New(c.T, cfg.Net, cfg.Addr)
	return proxy.DSN(c.dsn), proxy
}

// TestUnknownCommitOfAChange: a change with an unknown commit is settled, and made once.
func TestUnknownCommitOfAChange(t *testing.T) {
	for name, action := range map[string]faultproxy.Action{
		"the reply is lost":        faultproxy.CutAfter(),
		"the commit never arrives": faultproxy.CutBefore(),
	} {
		for _, change := range []job.Action{job.ActionCreate, job.ActionUpdate, job.ActionPause, job.ActionResume, job.ActionDelete} {
			t.Run(fmt.Sprintf("%s: %s", change, name), func(t *testing.T) {
				c := newCluster(t)
				dsn, proxy := c.proxied()
				p, m := c.person(dsn), c.member(1, c.dsn)
				id := p.creates(ofEvery("j", 4))
				if change == job.ActionResume {
					p.must(p.Pause(p.ctx, id, job.PauseRequest{}))
				}
				m.claims(1)

				spec := ofEvery("j", 3)
				ch := edit.Change{Action: change, ID: id, Spec: &spec}
				if change == job.ActionCreate {
					ch.ID, spec.Name = 0, "k"
				}

				proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("INSERT INTO audit"), Action: action})
				done, err := p.All(p.ctx, []edit.Change{ch})
				if err != nil {
					t.Fatal(err)
				}
				if done[0].Result != job.BulkChanged || done[0].ID == 0 {
					t.Errorf("got %+v", done[0])
				}

				c.want("lines of the audit", c.rows("SELECT COUNT(*) FROM audit WHERE action = ? AND ref = ?", change, done[0].ID), "1")
			})
		}
	}
}
