package result

import (
	"log/slog"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"

	"go-crontab/internal/faultproxy"
	"go-crontab/internal/testdb"
	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
)

// fixture is a recorder whose connections lead through a fault proxy, and a pool beside it.
type fixture struct {
	*testing.T
	beside   *sql.DB
	through  *sql.DB // the proxy
	proxy    *faultproxy.Proxy
	recorder *Recorder
	session  uuid.UUID
	written  map[int64]int // by task: how often it was said
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	dsn := testdb.DSN(t)
	open := func(dsn string, timeouts sql.Timeouts) *sql.DB {
		db, err := sql.Open(dsn, timeouts, 4)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
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
	f := &fixture{T: t, beside: open(dsn, sql.MigrateTimeouts), through: open(p.DSN(dsn), sql.DefaultTimeouts), proxy: p, session: uuid.UUID{1}, written: map[int64]int{}}
	f.recorder = New(lock.New(f.through, f.log()), func() job.Micros { return 1 }, func() {}, f.log())
	return f
}

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

// outcomes has the session execute n tasks and returns how they ended.
func (f *fixture) outcomes(n int) (out []*Outcome) {
	f.Helper()
	err := f.beside.Tx(f.Context(), func(tx *sql.Tx) error {
		var tasks []job.Task
		for i := range n {
			tasks = append(tasks, job.Task{JobID: 1, Due: job.Micros(1000 + i), DueNow: job.Micros(1000 + i)})
		}
		return tx.InsertTasks(tasks)
	})
	if err != nil {
		f.Fatal(err)
	}
	f.exec("UPDATE task SET state = 2, session_id = ?, launch = id", f.session[:])
	rows, err := f.beside.SessionTasks(f.Context(), f.session, 0, n)
	if err != nil || len(rows) != n {
		f.Fatalf("got %d tasks, %v; want %d", len(rows), err, n)
	}
	for _, r := range rows {
		out = append(out, &Outcome{
			Task: r.Task,
			Run: job.Run{Launch: r.Launch, JobID: r.JobID, Due: r.Due, Until: r.Due, Count: 1, Attempt: r.Attempt, Final: true, Started: r.Due, Ended: r.Due + 5,
				Result: job.Result{Outcome: job.Succeeded}},
			Written: func() { f.written[r.ID]++ },
		})
	}
	return out
}

// putAll hands outcomes to the recorder.
func (f *fixture) putAll(outcomes []*Outcome) {
	for _, o := range outcomes {
		f.recorder.Put(o)
	}
}

// recorded holds all outcomes against history: each was written once, and said to be.
func (f *fixture) recorded(outcomes []*Outcome) {
	f.Helper()
	for _, o := range outcomes {
		if n := f.written[o.Task.ID]; n != 1 {
			f.Errorf("task %d: said to be written %d times, want once", o.Task.ID, n)
		}
		f.want("records of a run", 1, "SELECT COUNT(*) FROM history WHERE session_id = ? AND launch = ?", o.Run.Launch.Session[:], o.Run.Launch.N)
	}
	f.want("tasks", 0, "SELECT COUNT(*) FROM task")
	f.want("records", len(outcomes), "SELECT COUNT(*) FROM history")
	if n := f.recorder.Waiting(); n != 0 {
		f.Errorf("%d outcomes wait still", n)
	}
}
