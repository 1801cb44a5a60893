package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"

	"go-crontab/internal/faultproxy"
	"go-crontab/internal/testdb"
	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
)

// t0 is when most tests begin, by MySQL's clock: a whole hour of 2027.
const t0 = job.Micros(1_800_000_000_000_000)

// after is an instant so much later than t0.
func after(d time.Duration) job.Micros { return t0.Add(d) }

// fakeSession is a session whose clock stands still until a test moves it.
type fakeSession struct {
	id uuid.UUID

	mu                 sync.Mutex
	now                job.Micros
	stale              bool
	index, of, buckets int
	counter            int64
}

func newSession(n byte) *fakeSession {
	return &fakeSession{id: uuid.UUID{0: n, 15: n}, now: t0, of: 1, buckets: 16}
}

func (s *fakeSession) ID() uuid.UUID { return s.id }
func (s *fakeSession) Node() string  { return fmt.Sprintf("node %d", s.id[0]) }

func (s *fakeSession) Now() job.Micros {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *fakeSession) set(now job.Micros) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}

func (s *fakeSession) Fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.stale
}

func (s *fakeSession) Reserve(n int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counter += n
	return s.counter - n + 1
}

func (s *fakeSession) Mint() job.Launch                { return job.Launch{Session: s.id, N: s.Reserve(1)} }
func (s *fakeSession) Share() (index, of, buckets int) { return s.index, s.of, s.buckets }

// fakeExecuting is an executing set in which nothing is ever spawned.
type fakeExecuting struct {
	mu    sync.Mutex // of added
	slots int
	ended map[int64]bool
	added []job.Started

	killed []job.Launch
	over   []job.Launch

	written map[int64]job.Launch // that were over before the rows were read, and are no more
}

func (x *fakeExecuting) Len() int { return len(x.added) }
func (x *fakeExecuting) Free() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	calls := 0
	for _, s := range x.added {
		if s.Spec != nil && s.Spec.HTTP != nil {
			calls++
		}
	}
	return x.slots - len(x.added) + calls - (calls+job.CallsPerSlot-1)/job.CallsPerSlot
}
func (x *fakeExecuting) HasEnded(id int64) bool            { return x.ended[id] }
func (x *fakeExecuting) IsOver(_ int64, l job.Launch) bool { return slices.Contains(x.over, l) }
func (x *fakeExecuting) Over() map[int64]job.Launch        { return x.written }
func (x *fakeExecuting) Add(s job.Started) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.added = append(x.added, s)
}
func (x *fakeExecuting) Kill(l job.Launch, _ bool) {
	x.killed = append(x.killed, l)
}

// fixture is a migrated schema, and one node's stages on it, through a fault proxy.
type fixture struct {
	*testing.T
	dsn       string
	beside    *sql.DB
	proxy     *faultproxy.Proxy
	session   *fakeSession
	prepared  *Prepared
	executing *fakeExecuting
	planner   *Planner
	claimer   *Claimer
	starter   *Starter
	editor    *Editor

	soon, freed, flushed, woken int // how often each was called
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	dsn := testdb.DSN(t)
	migrator := open(t, dsn, sql.MigrateTimeouts)
	if _, _, err := migrator.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	migrator.Close()
	return node(t, dsn, 1)
}

// anew is the fixture of a subtest: the same schema, emptied, and a node that knows nothing. Such subtests run one after
// another.
func (f *fixture) anew(t *testing.T) *fixture {
	t.Helper()
	for _, table := range []string{"job", "task", "history", "output", "request", "waiting", "slot", "grp", "audit", "pause", "calendar", "job_ref", "job_term", "job_part", "job_version", "notable", "moved", "job_app", "run_app", "folder", "folder_node"} {
		f.exec("TRUNCATE TABLE " + table)
	}
	f.exec("DELETE FROM setting WHERE name = 'restored'")
	return node(t, f.dsn, 1)
}

func open(t *testing.T, dsn string, timeouts sql.Timeouts) *sql.DB {
	t.Helper()
	db, err := sql.Open(dsn, timeouts, 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// node wires the stages of a node.
func node(t *testing.T, dsn string, n byte) *fixture {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p := faultproxy.New(t, cfg.Net, cfg.Addr)
	db := open(t, p.DSN(dsn), sql.DefaultTimeouts)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	x := lock.New(db, log)
	f := &fixture{T: t, dsn: dsn, beside: open(t, dsn, sql.MigrateTimeouts), proxy: p, session: newSession(n), prepared: NewPrepared(), executing: &fakeExecuting{slots: 100}}
	soon := func() { f.soon++ }
	f.planner = &Planner{DB: db, Session: f.session, Soon: soon, Log: log}
	f.claimer = NewClaimer(Claimer{DB: db, Exclusion: x, Session: f.session, Prepared: f.prepared, Executing: f.executing, LookAhead: 10 * time.Second, Cap: 1000, Slots: 100, Log: log})
	f.starter = NewStarter(&Starter{Exclusion: x, Session: f.session, Prepared: f.prepared, Executing: f.executing, Slots: 100,
		Flush: func(context.Context) { f.flushed++ }, Freed: func() { f.freed++ }, Woken: func() { f.woken++ }, Log: log})
	f.editor = &Editor{DB: db, Session: f.session, Soon: soon}
	return f
}

func (f *fixture) exec(query string, args ...any) {
	f.Helper()
	if _, err := f.beside.Raw().Exec(query, args...); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
}

func (f *fixture) number(query string, args ...any) (n int64) {
	f.Helper()
	if err := f.beside.Raw().QueryRow(query, args...).Scan(&n); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
	return n
}

// statements counts connections of this schema that execute a statement, in a state.
func (f *fixture) statements(statement, state string) int {
	f.Helper()
	n, err := testdb.Executing(f.beside.Raw(), statement, state)
	if err != nil {
		f.Fatal(err)
	}
	return n
}

func (f *fixture) want(what string, want int64, query string, args ...any) {
	f.Helper()
	if got := f.number(query, args...); got != want {
		f.Errorf("%s: got %d, want %d", what, got, want)
	}
}

// awaitRelease returns once MySQL has rolled back what connections of this schema had begun that were cut.
func (f *fixture) awaitRelease() {
	f.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		switch open, _, err := testdb.Transactions(f.beside.Raw()); {
		case err != nil:
			f.Fatal(err)
		case open == 0:
			return
		}
		if time.Now().After(end) {
			f.Fatal("not within 10 s: the end of what a cut connection had begun")
		}
		time.Sleep(120 * time.Millisecond) // who asks more often gets the same answer again
	}
}

// create adds a job.
func (f *fixture) create(spec job.Spec) job.Job {
	f.Helper()
	if spec.Command == "" && spec.HTTP == nil {
		spec.Command = "true"
	}
	j, err := f.editor.Create(f.Context(), spec, false)
	if err != nil {
		f.Fatal(err)
	}
	return j
}

// start starts one batch, as Run does.
func (s *Starter) start(ctx context.Context, now job.Micros) {
	if t := s.take(now); len(t.tasks) > 0 {
		s.begin(ctx, now, t)
	}
}

// every is a job with an interval whose first due time is so long after t0.
func every(name string, interval, first time.Duration) job.Spec {
	start := after(first).Time()
	return job.Spec{Name: name, Every: job.Duration(interval), Start: &start, Overlap: job.OverlapAllow}
}

func at(name string, due job.Micros) job.Spec {
	t := due.Time()
	return job.Spec{Name: name, At: &t}
}

// update changes the definition of a job.
func (f *fixture) update(j job.Job, change func(*job.Spec)) job.Job {
	f.Helper()
	spec := j.Spec
	change(&spec)
	j, err := f.editor.Update(f.Context(), j.ID, j.Version, spec)
	if err != nil {
		f.Fatal(err)
	}
	return j
}

// dues lists the scheduled live tasks of a job, seconds after t0.
func (f *fixture) dues(id int64) []float64 {
	f.Helper()
	return f.seconds("SELECT due FROM task WHERE job_id = ? AND origin = 0 ORDER BY due", id)
}

func (f *fixture) seconds(query string, args ...any) []float64 {
	f.Helper()
	rows, err := f.beside.Raw().Query(query, args...)
	if err != nil {
		f.Fatal(err)
	}
	defer rows.Close()
	out := []float64{}
	for rows.Next() {
		var due job.Micros
		if err := rows.Scan(&due); err != nil {
			f.Fatal(err)
		}
		out = append(out, due.Sub(t0).Seconds())
	}
	return out
}

func (f *fixture) wantDues(what string, id int64, want ...float64) {
	f.Helper()
	if got := f.dues(id); !slices.Equal(got, want) {
		f.Errorf("%s: got due times %v, want %v seconds after t0", what, got, want)
	}
}

// runs lists the runs of a job, the earliest due first.
func (f *fixture) runs(id int64) []sql.RunRow {
	f.Helper()
	runs, err := f.beside.Runs(f.Context(), sql.RunFilter{JobID: id, Limit: 10_000})
	if err != nil {
		f.Fatal(err)
	}
	slices.Reverse(runs)
	return runs
}

// wantRuns holds runs against lines of "outcome due..until×count reason", the reason's beginning.
func (f *fixture) wantRuns(what string, id int64, want ...string) {
	f.Helper()
	var got []string
	for _, r := range f.runs(id) {
		got = append(got, fmt.Sprintf("%s %g..%g×%d %s", r.Outcome, r.Due.Sub(t0).Seconds(), r.Until.Sub(t0).Seconds(), r.Count, r.Reason))
	}
	if !slices.Equal(got, want) {
		f.Errorf("%s: got runs\n%q, want\n%q", what, got, want)
	}
}

// reach moves the clock and takes one step of each stage.
func (f *fixture) reach(now job.Micros) {
	f.Helper()
	f.session.set(now)
	if _, err := f.planner.plan(f.Context(), now); err != nil {
		f.Fatal(err)
	}
	if _, err := f.claimer.claim(f.Context(), now, -neglected); err != nil {
		f.Fatal(err)
	}
	f.starter.start(f.Context(), now)
}

// finish ends all attempts that were started, succeeded.
func (f *fixture) finish() {
	f.Helper()
	for _, s := range f.executing.added {
		err := f.beside.Tx(f.Context(), func(tx *sql.Tx) error {
			return tx.End([]int64{s.ID}, []job.Run{{
				Launch: s.Launch, JobID: s.JobID, Due: s.Due, Until: s.Due, Count: 1, Origin: s.Origin, Attempt: s.Attempt, Final: true, Ended: f.session.Now(),
				Result: job.Result{Outcome: job.Succeeded},
			}})
		})
		if err != nil {
			f.Fatal(err)
		}
	}
	f.executing.added = nil
}
