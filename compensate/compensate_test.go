package compensate

import (
	"context"
	"errors"
	"log/slog"
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

// set is a set that knows what it is told.
type set struct {
	mu    sync.Mutex
	tasks map[int64]job.Launch
}

func (s *set) Has(task int64, l job.Launch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.tasks[task]
	return ok && known == l
}

func (s *set) add(task int64, l job.Launch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks[task] = l
}

// fixture is a compensator whose connections lead through a fault proxy, and a pool beside it.
type fixture struct {
	*testing.T
	beside              *sql.DB
	proxy               *faultproxy.Proxy
	x                   *lock.Exclusion
	c                   *Compensator
	prepared, executing *set
	freed               int
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
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	db := open(p.DSN(dsn), sql.DefaultTimeouts)
	f := &fixture{T: t, beside: open(dsn, sql.MigrateTimeouts), proxy: p, x: lock.New(db, log),
		prepared: &set{tasks: map[int64]job.Launch{}}, executing: &set{tasks: map[int64]job.Launch{}}}
	f.c = New(Compensator{DB: db, Exclusion: f.x, Session: uuid.UUID{1}, Sets: []Set{f.prepared, f.executing}, Freed: func() { f.freed++ }, Log: log})
	return f
}

func (f *fixture) exec(query string, args ...any) {
	f.Helper()
	if _, err := f.beside.Raw().Exec(query, args...); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
}

func (f *fixture) want(what string, want int, query string, args ...any) {
	f.Helper()
	var got int
	if err := f.beside.Raw().QueryRow(query, args...).Scan(&got); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
	if got != want {
		f.Errorf("%s: got %d, want %d", what, got, want)
	}
}

// own plans n tasks and has a session own them, prepared and executing by turns.
func (f *fixture) own(session uuid.UUID, jobID int64, n int) []sql.TaskRow {
	f.Helper()
	err := f.beside.Tx(f.Context(), func(tx *sql.Tx) error {
		var tasks []job.Task
		for i := range n {
			tasks = append(tasks, job.Task{JobID: jobID, Due: job.Micros(1 + i), DueNow: job.Micros(1 + i)})
		}
		return tx.InsertTasks(tasks)
	})
	if err != nil {
		f.Fatal(err)
	}
	f.exec("UPDATE task SET state = 1 + (id MOD 2), session_id = ?, launch = id, started = 7, spawn_by = 8 WHERE job_id = ?", session[:], jobID)
	rows, err := f.beside.SessionTasks(f.Context(), session, 0, 100_000)
	if err != nil || len(rows) != n {
		f.Fatalf("got %d tasks, %v; want %d", len(rows), err, n)
	}
	return rows
}

// know puts a task into the set that mirrors its row.
func (f *fixture) know(r sql.TaskRow) {
	if r.State == job.Prepare {
		f.prepared.add(r.ID, r.Launch)
	} else {
		f.executing.add(r.ID, r.Launch)
	}
}

const idle = "SELECT COUNT(*) FROM task WHERE job_id = ? AND state = 0 AND session_id = DEFAULT(session_id) AND launch = 0 AND started = 0 AND spawn_by = 0 AND attempt = 1"

// TestFreesWhatNoSetKnows: tasks of this session that are in no set go back to idle, whatever their state; those of a
// set stay, and so do all of another session's.
func TestFreesWhatNoSetKnows(t *testing.T) {
	f := setUp(t)
	theirs := uuid.UUID{2}
	f.own(theirs, 2, 4)
	rows := f.own(f.c.Session, 1, 12)
	for i, r := range rows {
		switch i % 3 {
		case 0:
			f.know(r)
		case 1: // a launch of long ago: the set does not know this one
			f.prepared.add(r.ID, job.Launch{Session: f.c.Session, N: r.Launch.N + 1000})
		}
	}
	owned, err := f.c.Compensate(t.Context())
	if owned != 4 || err != nil {
		t.Errorf("got %d owned, %v; want 4", owned, err)
	}
	f.want("idle tasks of ours", 8, idle, 1)
	for i, r := range rows {
		if i%3 == 0 {
			f.want("a task that a set knows", 1, "SELECT COUNT(*) FROM task WHERE id = ? AND state = ? AND session_id = ? AND launch = ?", r.ID, int(r.State), f.c.Session[:], r.Launch.N)
		}
	}
	f.want("tasks of the other session", 4, "SELECT COUNT(*) FROM task WHERE session_id = ? AND state > 0", theirs[:])
	if f.freed != 1 {
		t.Errorf("told %d times of idle tasks, want once", f.freed)
	}
	if owned, err := f.c.Compensate(t.Context()); owned != 4 || err != nil || f.freed != 1 {
		t.Errorf("the next look: got %d owned, %v, told %d times; want it to find nothing", owned, err, f.freed)
	}
}

// TestPages: a session may own more than a page, and more than a batch of them may be unknown.
func TestPages(t *testing.T) {
	f := setUp(t)
	rows := f.own(f.c.Session, 1, 2*page+700)
	for i, r := range rows {
		if i < 100 || i == page || i == 2*page+699 {
			f.know(r)
		}
	}
	owned, err := f.c.Compensate(t.Context())
	if owned != 102 || err != nil {
		t.Errorf("got %d owned, %v; want 102", owned, err)
	}
	f.want("idle tasks", 2*page+700-102, idle, 1)
}

// TestExactlyAPage: a page that is full may be the last one.
func TestExactlyAPage(t *testing.T) {
	f := setUp(t)
	for _, r := range f.own(f.c.Session, 1, page) {
		f.know(r)
	}
	if owned, err := f.c.Compensate(t.Context()); owned != page || err != nil || f.freed != 0 {
		t.Errorf("got %d owned, %v, told %d times; want %d, never", owned, err, f.freed, page)
	}
}

// TestNotBetweenRowsAndSets: a claim's rows are committed and its set is not changed yet. Compensation reads those rows,
// waits for the claim, and leaves them alone.
func TestNotBetweenRowsAndSets(t *testing.T) {
	f := setUp(t)
	rows := f.own(f.c.Session, 1, 2)
	f.exec("UPDATE task SET state = 0, session_id = NULL, launch = NULL WHERE id = ?", rows[0].ID)
	// The reply to the claim's commit is under way for as long as we want.
	held := f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("SET state = 1"), Action: faultproxy.Hold(0)})
	claimed := make(chan error, 1)
	go func() {
		var took []job.Task
		claimed <- f.x.Do(t.Context(), lock.Change{
			Name: "claim",
			Rows: func(tx *sql.Tx) (err error) {
				took, err = tx.Claim(f.c.Session, 77, []int64{rows[0].ID})
				return err
			},
			Settle: func(*sql.Tx) error { return errors.New("nothing to settle") },
			Sets:   func() { f.prepared.add(took[0].ID, took[0].Launch) },
		})
	}()
	if err := held.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.want("claimed tasks that no set knows yet", 1, "SELECT COUNT(*) FROM task WHERE id = ? AND state = 1", rows[0].ID)
	read := make(chan bool, 1)
	f.proxy.OnCommand(func(c faultproxy.Command) {
		if faultproxy.SQL("FORCE INDEX .owner.")(c) {
			read <- true
		}
	})
	done := make(chan error, 1)
	go func() { _, err := f.c.Compensate(t.Context()); done <- err }()
	<-read
	select {
	case err := <-done:
		held.Release()
		<-claimed
		t.Fatalf("it ended with %v while a claim was under way", err)
	case <-time.After(200 * time.Millisecond):
	}
	held.Release()
	if err := errors.Join(<-claimed, <-done); err != nil {
		t.Fatal(err)
	}
	f.want("claimed tasks that the set knows", 1, "SELECT COUNT(*) FROM task WHERE id = ? AND state = 1 AND launch = 77", rows[0].ID)
	f.want("idle tasks, which no set knew", 1, idle, 1)
}

// TestMovedMeanwhile: what another session did to a row between the look and the lock stands.
func TestMovedMeanwhile(t *testing.T) {
	f := setUp(t)
	rows := f.own(f.c.Session, 1, 3)
	theirs := uuid.UUID{2}
	f.proxy.OnCommand(func(c faultproxy.Command) {
		if faultproxy.SQL("FROM task .*FOR UPDATE")(c) {
			f.exec("UPDATE task SET session_id = ?, launch = 5 WHERE id = ?", theirs[:], rows[0].ID)
			f.exec("DELETE FROM task WHERE id = ?", rows[1].ID)
		}
	})
	if _, err := f.c.Compensate(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.want("tasks of the other session", 1, "SELECT COUNT(*) FROM task WHERE session_id = ? AND launch = 5 AND state > 0", theirs[:])
	f.want("idle tasks", 1, idle, 1)
}

// TestUnknownRelease: whatever stands of a release whose answer was lost, the next look sees it.
func TestUnknownRelease(t *testing.T) {
	t.Parallel()
	for name, fate := range map[string]faultproxy.Action{"never arrives": faultproxy.CutBefore(), "reply lost": faultproxy.CutAfter()} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			f.own(f.c.Session, 1, 3)
			f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("SET state = 0"), Action: fate})
			for range 2 {
				if _, err := f.c.Compensate(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			f.want("idle tasks", 3, idle, 1)
			if owned, err := f.c.Compensate(t.Context()); owned != 0 || err != nil {
				t.Errorf("in the end: got %d owned, %v; want none", owned, err)
			}
		})
	}
}

// TestWake: who gave something up is not made to wait for the period, and a look that fails is repeated.
func TestWake(t *testing.T) {
	f := setUp(t)
	ctx, end := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	f.own(f.c.Session, 1, 1)
	f.proxy.Add(faultproxy.Rule{Match: faultproxy.SQL("FORCE INDEX .owner."), Action: faultproxy.CutBefore()})
	f.c.Wake()
	f.c.Wake() // does not block
	begin := time.Now()
	go func() { done <- f.c.Run(ctx) }()
	for n := 0; n == 0; time.Sleep(5 * time.Millisecond) {
		if err := f.beside.Raw().QueryRow(idle, 1).Scan(&n); err != nil || time.Since(begin) > 10*time.Second {
			t.Fatalf("not within 10 s: its task is idle; %v", err)
		}
	}
	over := errors.New("over")
	end(over)
	if err := <-done; err != over {
		t.Errorf("got %v, want %v", err, over)
	}
}
