package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/result"
	"go-crontab/sql"
	"go-crontab/sql/trip"
	"go-crontab/test/legal"
	"go-crontab/test/testdb"
)

// t0 is the beginning of the tests, by the clock of their database.
var t0 = job.MicrosOf(time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC))

// cluster is a schema with the tables of the trip.
type cluster struct {
	*testing.T
	dsn string
	db  *sql.DB

	hash int // of the jobs that are created
}

// member is a node of a cluster whose steps a test takes one by one.
type member struct {
	*cluster
	claimer *Claimer
	starter *Starter
	session *testSession
	set     *executing
	ending  *result.Recorder
	woken   loop.Wake // holds the wakes of the recorder: waiting runs became idle
}

type testSession struct {
	number trip.Owner
	minted atomic.Int64
	now    job.Micros
	stale  bool
	others int // number of other sessions
	peers  []map[string]string
}

func (s *testSession) Number() trip.Owner { return s.number }
func (s *testSession) Now() job.Micros    { return s.now }
func (s *testSession) Fresh() bool        { return !s.stale }
func (s *testSession) Share() (int, int)  { return 0, 1 + s.others }
func (s *testSession) Mint(n int) int64 {
	return int64(s.number)<<32 + s.minted.Add(int64(n)) - int64(n)
}

func (s *testSession) Unsettled() time.Duration   { return 0 }
func (s *testSession) Peers() []map[string]string { return s.peers }

// noEnds is a node on which nothing ends.
type noEnds struct{}

func (noEnds) Push(context.Context, []int64) {}

// executing is a set that holds the started runs.
type executing struct {
	mu      sync.Mutex
	started []job.Started
	slots   int
}

func (x *executing) Free() int { x.mu.Lock(); defer x.mu.Unlock(); return x.slots - len(x.started) }
func (x *executing) Add(s []job.Started) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.started = append(x.started, s...)
}

func (x *executing) TooLate() int64 { return 0 }

// Written does nothing.
func (x *executing) Written([]trip.Launch) {}

// take returns the runs that were started since the last call, as "job@seconds".
func (x *executing) take() (out []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.started {
		out = append(out, fmt.Sprintf("%s@%g", s.Spec.Name, s.Due.Sub(t0).Seconds()))
	}
	x.started = nil
	slices.Sort(out)
	return out
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	t.Parallel()
	dsn := testdb.DSN(t)
	c := &cluster{T: t, dsn: dsn, db: openDB(t, dsn), hash: 5}
	if _, _, err := c.db.Migrate(context.Background()); err != nil {
		c.Fatal(err)
	}
	legal.Watch(t, c.db)
	return c
}

func openDB(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(dsn, sql.DefaultTimeouts, 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func (c *cluster) exec(statement string, args ...any) {
	c.Helper()
	if _, err := c.db.Raw().Exec(statement, args...); err != nil {
		c.Fatalf("%s: %v", statement, err)
	}
}

// rows returns the first column of a query, as text.
func (c *cluster) rows(query string, args ...any) (out []string) {
	c.Helper()
	rows, err := c.db.Raw().Query(query, args...)
	if err != nil {
		c.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			c.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

func (c *cluster) want(what string, got []string, want ...string) {
	c.Helper()
	if !slices.Equal(got, want) {
		c.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// member adds a node. Its pool is its own, so that it may be cut off.
func (c *cluster) member(number trip.Owner, dsn string) *member {
	db := openDB(c.T, dsn)
	log := slog.New(slog.NewTextHandler(c.Output(), nil))
	m := &member{cluster: c, session: &testSession{number: number, now: t0}, set: &executing{slots: 100}, woken: make(loop.Wake, 100)}
	m.session.minted.Store(1)
	x, defs, prepared := lock.New(db, lock.Unmeasured{}, log), NewDefinitions(), NewPrepared()
	m.claimer = NewClaimer(ClaimerConfig{
		DB: db, Exclusion: x, Session: m.session, Definitions: defs, Prepared: prepared, Lookout: Blind{}, Log: log,
		LookAhead: 10 * time.Second, Most: 1000,
	})
	m.starter = NewStarter(StarterConfig{
		DB: db, Exclusion: x, Session: m.session, Definitions: defs, Prepared: prepared, Executing: m.set, Ends: noEnds{},
		Lookout: Blind{}, Log: log, Window: time.Second,
	})
	return m
}

// create adds a job with its cursor at the first due time after an instant.
func (c *cluster) create(spec job.Spec, after job.Micros) (id int64) {
	c.Helper()
	if spec.App == "" {
		spec.App = "default"
	}
	if spec.Command == "" {
		spec.Command = "true"
	}

	spec.Defaults(t0.Time())
	schedule, err := spec.Compile()
	if err != nil {
		c.Fatal(err)
	}

	text, err := spec.Encode()
	if err != nil {
		c.Fatal(err)
	}

	var cursor any
	if due, ok := next(schedule, after); ok {
		cursor = int64(due)
	}

	result, err := c.db.Raw().Exec("INSERT INTO job (app_id, name, hash, next_due) VALUES (1, ?, ?, ?)", spec.Name, c.hash, cursor)
	if err != nil {
		c.Fatal(err)
	}

	id, _ = result.LastInsertId()
	c.exec("INSERT INTO job_version (job_id, version, definition, created) VALUES (?, 1, ?, 0)", id, text)
	return id
}

// every makes a job with a period in seconds from t0 on.
func every(name string, seconds int) job.Spec {
	start := t0.Time()
	return job.Spec{Name: name, Every: job.Duration(time.Duration(seconds) * time.Second), Start: &start}
}

// at sets the clock of the member.
func (m *member) at(seconds float64) job.Micros {
	m.session.now = t0.Add(time.Duration(seconds * float64(time.Second)))
	return m.session.now
}

func (m *member) claims(seconds float64) {
	m.Helper()
	now := m.at(seconds)
	own := shareOf(m.session) // to its end: a look leaves some for later, see reach
	own.Before = now.Add(m.claimer.LookAhead)
	if _, err := m.claimer.claim(m.Context(), now, own); err != nil {
		m.Fatal(err)
	}
	for more := true; more; {
		var err error
		m.claimer.round.again()
		if more, err = m.claimer.look(m.Context(), now); err != nil {
			m.Fatal(err)
		}
	}
}

// starts lets the member start the runs that are due at an instant.
func (m *member) starts(seconds float64) []string {
	m.Helper()
	now := m.at(seconds)
	for {
		took, err := m.starter.start(m.Context(), now, now)
		if err != nil {
			m.Fatal(err)
		}
		if took == 0 {
			return m.set.take()
		}
	}
}

func (m *member) takesOverdue(seconds float64) []string {
	m.Helper()
	if _, err := m.starter.takeOverdue(m.Context(), m.at(seconds)); err != nil {
		m.Fatal(err)
	}
	return m.set.take()
}

// finish ends a run as a recorder does.
func (c *cluster) finish(due float64, name string) {
	c.Helper()
	c.exec("UPDATE run r JOIN job j ON j.id = r.job_id SET r.state = 'ended', r.owner = -2, r.outcome = 'succeeded', r.final = 1"+
		" WHERE r.due = ? AND j.name = ? AND r.state = 'executing'", int64(t0.Add(time.Duration(due*float64(time.Second)))), name)
}

const allRuns = "SELECT CONCAT_WS(' ', j.name, (r.due - ?) / 1000000, r.state, NULLIF(r.outcome, 'none'), r.claim, r.owner, r.reason)" +
	" FROM run r JOIN job j ON j.id = r.job_id ORDER BY j.name, r.due, r.attempt"

// TestClaimAndStart: due times within the look-ahead become prepared runs, and each starts when it
// is due.
func TestClaimAndStart(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	c.create(every("j", 4), t0)
	m.claims(0)
	c.want("claimed", c.rows(allRuns, int64(t0)), "j 4.0000 prepared 1 1", "j 8.0000 prepared 1 1")
	c.want("before it is due", m.starts(3.9))
	c.want("when it is due", m.starts(4), "j@4")
	c.want("once", m.starts(4))
	c.want("the job", c.rows("SELECT CONCAT_WS(' ', (next_due - ?) / 1000000, (begun_to - ?) / 1000000) FROM job", int64(t0), int64(t0)), "12.0000 4.0000")
}

// TestOverlapSkips: while a run executes, no other run of its job starts.
func TestOverlapSkips(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	c.create(every("j", 2), t0)
	free := every("free", 2)
	free.Overlap = job.OverlapAllow
	c.create(free, t0)
	m.claims(0)
	c.want("first", m.starts(2), "free@2", "j@2")
	c.want("while that executes", m.starts(4), "free@4")
	c.finish(2, "j")
	c.want("after its end", m.starts(6), "free@6", "j@6")
	skipped := c.rows("SELECT CONCAT_WS(' ', (due - ?) / 1000000, outcome, final, reason) FROM run WHERE outcome = 'skipped'", int64(t0))
	if len(skipped) != 1 || !strings.HasPrefix(skipped[0], "4.0000 skipped 1 the run due ") {
		t.Errorf("skipped: got %q", skipped)
	}
}

// TestOverdueRunIsTakenOver: if a node does not start its run, another node starts it two seconds
// later, once.
func TestOverdueRunIsTakenOver(t *testing.T) {
	c := newCluster(t)
	hung, well := c.member(1, c.dsn), c.member(2, c.dsn)
	c.create(every("j", 5), t0)
	hung.claims(0)
	c.want("too early", well.takesOverdue(6.9))
	c.want("overdue", well.takesOverdue(7.2), "j@5")
	c.want("its first owner comes back", hung.starts(7.3))
	c.want("rows", c.rows(allRuns, int64(t0)), "j 5.0000 executing 2 2", "j 10.0000 prepared 1 1")
}

// TestForgottenRunIsStarted: a run that is prepared for a session whose set does not hold it, as
// after a claim with an unknown end.
func TestForgottenRunIsStarted(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	c.create(every("j", 5), t0)
	m.claims(0)
	m.starter.Prepared.Forget()
	c.want("overdue", m.takesOverdue(7.1), "j@5")
}

// TestDeletedAndPaused: prepared runs of paused and deleted jobs do not start.
func TestDeletedAndPaused(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	paused, deleted, gone := c.create(every("paused", 3), t0), c.create(every("deleted", 3), t0), c.create(every("gone", 3), t0)
	m.claims(-4)
	c.exec("UPDATE job SET paused = 1 WHERE id = ?", paused)
	c.exec("UPDATE job SET living = NULL, next_due = NULL WHERE id = ?", deleted)
	c.exec("DELETE FROM job WHERE id = ?", gone)
	c.want("before they are due", m.starts(2.9))
	c.want("when they are due", m.starts(3))
	c.want("outcomes", c.rows("SELECT CONCAT_WS(' ', outcome, reason) FROM run WHERE state = 'ended' ORDER BY job_id"),
		"skipped the job is paused", "superseded the job was deleted", "superseded the job was deleted")
}

// TestEditedJob: a start uses the current definition, which it has to read first.
func TestEditedJob(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	id := c.create(every("j", 5), t0)
	m.claims(0)
	spec := every("edited", 5)
	spec.App, spec.Command = "default", "false"
	spec.Defaults(t0.Time())
	text, _ := spec.Encode()
	c.exec("INSERT INTO job_version (job_id, version, definition, created) VALUES (?, 2, ?, 0)", id, text)
	c.exec("UPDATE job SET version = 2 WHERE id = ?", id)
	c.want("started", m.starts(5), "edited@5")
}

// TestIdleRuns: an idle run is prepared ahead of its time, or started directly if it is due
// already.
func TestIdleRuns(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	spec := every("j", 3600)
	spec.Overlap = job.OverlapAllow
	id := c.create(spec, t0)
	insert := func(run int64, seconds int) {
		due := int64(t0.Add(time.Duration(seconds) * time.Second))
		c.exec("INSERT INTO run (id, job_id, app_id, due, kind, request, state, owner, claim, due_now, hash) VALUES (?, ?, 1, ?, 'manual', ?, 'idle', 0, 0, ?, 5)",
			run, id, due, run, due)
	}
	insert(1, 5)
	insert(2, 60)
	insert(3, -1)
	m.claims(0)
	c.want("prepared", c.rows("SELECT CONCAT_WS(' ', id, state, owner, claim) FROM run ORDER BY id"), "1 prepared 1 1", "2 idle 0 0", "3 idle 0 0")
	c.want("due already", m.takesOverdue(0.1), "j@-1")
	c.want("due later", m.starts(5), "j@5")
}
