package result

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"
)

// fixture is a recorder with connections through a fault proxy, and a pool without the proxy.
type fixture struct {
	*testing.T
	beside   *read.DB
	through  *read.DB // the proxy
	proxy    *faultproxy.Proxy
	recorder *Recorder
	session  *testSession
	jobs     int
	written  map[trip.Launch]int // number of reports
}

// testSession is a session that stays alive.
type testSession struct {
	number trip.Owner
	minted atomic.Int64
	now    job.Micros
}

func (s *testSession) Number() trip.Owner { return s.number }
func (s *testSession) Now() job.Micros    { return s.now }
func (s *testSession) Mint(n int) int64   { return s.id(s.minted.Add(int64(n)) - int64(n) + 1) }

func (s *testSession) id(n int64) int64 { return int64(s.number)<<32 + n }

func setUp(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	dsn := testdb.DSN(t)
	open := func(dsn string, timeouts sql.Timeouts) *read.DB {
		db, err := sql.Open(dsn, timeouts, 4)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return &read.DB{DB: db}
	}
	migrator := open(dsn, sql.MigrateTimeouts)
	if _, _, err := migrator.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	migrator.Close()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}

	p := faultproxy.New(t, cfg.Net, cfg.Addr)
	f := &fixture{
		T: t, beside: open(dsn, sql.MigrateTimeouts), through: open(p.DSN(dsn), sql.DefaultTimeouts), proxy: p,
		session: &testSession{number: 7, now: 1_800_000_000_000_000}, written: map[trip.Launch]int{},
	}
	f.recorder = New(Config{
		Exclusion: lock.New(f.through.DB, lock.Unmeasured{}, f.log()), Session: f.session, Executing: f, Log: f.log(),
	})
	f.exec("INSERT INTO app (name) VALUES ('x'), ('shop')")
	f.exec("INSERT INTO life (id, session, node, started) VALUES (7, REPEAT('7', 16), 'n1', 1), (8, REPEAT('8', 16), 'n2', 1)")
	return f
}

// Written counts reports.
func (f *fixture) Written(launches []trip.Launch) {
	for _, l := range launches {
		f.written[l]++
	}
}

// lookout is a Lookout that knows nothing but what a test says.
type lookout struct{ behind func() bool }

func (l lookout) Behind() bool { return l.behind != nil && l.behind() }
func (lookout) NoLimits() bool { return false }

func (f *fixture) log() *slog.Logger { return slog.New(slog.NewTextHandler(f.Output(), nil)) }

func (f *fixture) exec(query string, args ...any) {
	f.Helper()
	if _, err := f.beside.Raw().Exec(query, args...); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
}

func (f *fixture) number(query string, args ...any) (n int) {
	f.Helper()
	if err := f.beside.Raw().QueryRow(query, args...).Scan(&n); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
	return n
}

func (f *fixture) want(what string, want int, query string, args ...any) {
	f.Helper()
	if got := f.number(query, args...); got != want {
		f.Errorf("%s: got %d, want %d", what, got, want)
	}
}

// job makes a job with a definition.
func (f *fixture) job(app, definition string) (id int64) {
	f.Helper()
	f.jobs++
	res, err := f.beside.Raw().Exec("INSERT INTO job (app_id, name, hash) SELECT id, ?, 1 FROM app WHERE name = ?", fmt.Sprint(f.jobs), app)
	if err != nil {
		f.Fatal(err)
	}
	id, _ = res.LastInsertId()
	f.exec("INSERT INTO job_version (job_id, version, definition, created) VALUES (?, 1, ?, 1)", id, definition)
	return id
}

// executing makes the session execute n runs of a job, and returns their ends.
func (f *fixture) executing(n int) (ends []trip.End) {
	f.Helper()
	id := f.job("x", "{}")
	for i := range n {
		due := 1000 + int64(i)
		l := trip.Launch{Run: f.session.Mint(1), Claim: 1}
		f.exec(`INSERT INTO run (id, job_id, app_id, version, due, kind, state, owner, claim, due_now, hash, session, started)
			VALUES (?, ?, 1, 1, ?, 'schedule', 'executing', 7, 1, ?, 1, 7, ?)`, l.Run, id, due, due, due)
		ends = append(ends, trip.End{
			Launch: l, JobID: id, Outcome: job.Succeeded, Final: true, Started: job.Micros(due), Ended: job.Micros(due + 5),
		})
	}
	return ends
}

// put hands ends to the recorder, and makes it write all waiting ends.
func (f *fixture) put(ends ...trip.End) {
	f.Helper()
	for _, e := range ends {
		f.recorder.Put(e, false)
	}
	f.flush()
}

// flush makes the recorder write all waiting ends.
func (f *fixture) flush() {
	f.Helper()
	for range 20 {
		if f.recorder.Waiting() == 0 {
			return
		}
		if _, err := f.recorder.finish(f.Context()); err != nil {
			f.Log(err)
		}
	}
	f.Errorf("%d ends wait still", f.recorder.Waiting())
}
