package sql

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/internal/testdb"
)

const (
	// migrationRows names an environment variable: rows in each hot table of TestMigrateBesideWrites.
	migrationRows = "GOCRONTAB_TEST_MIGRATIONS"
	fewRows       = 3000
	// longestStall is what a migration may hold up a write of a hot table.
	longestStall = time.Second
)

// TestMigrateBesideWrites: tables full of rows are brought to the newest version step by step, while somebody inserts,
// updates and deletes rows of each of them all the time. No write fails, none is lost, and with many rows none is held up
// for longer than a second.
func TestMigrateBesideWrites(t *testing.T) {
	// Those before 4 were written before the first release, when nobody had tables with rows.
	rows, big, first := fewRows, false, int64(4)
	if text := os.Getenv(migrationRows); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q, want a number of rows", migrationRows, text)
		}
		rows, big = n, true
	}
	f := newMigrationFixture(t, big)
	p, err := f.db.provider(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	f.fillHot(rows)
	t.Logf("%d rows in each of %d tables, in %s", rows, len(hotWrites), time.Since(began).Round(time.Millisecond))

	writers := f.startWriters()
	if big {
		writers.during(func() { time.Sleep(10 * time.Second) })
		t.Logf("without a migration: the longest write took %s", writers)
	}
	for v := first + 1; v <= newestMigration(p); v++ {
		var err error
		began := time.Now()
		writers.during(func() { _, err = p.UpTo(t.Context(), v) })
		if err != nil {
			t.Fatalf("migration %d: %v", v, err)
		}
		t.Logf("migration %2d: %8s, the longest write took %s", v, time.Since(began).Round(time.Millisecond), writers)
		if stall := writers.longest(); big && stall > longestStall {
			t.Errorf("migration %d held a write up for %s, want at most %s", v, stall, longestStall)
		}
	}
	writers.stop()
	for _, w := range writers.all {
		if w.err != nil {
			t.Errorf("write of %s: %v", w.Table, w.err)
		}
		k := w.done.Load() / 2 // those with an odd number are deleted, 2, 4, 6 … stay
		f.want("rows of "+w.Table+" that were written meanwhile", k, "SELECT COUNT(*) FROM "+w.Table+" WHERE "+w.Mine)
		f.want("what was written into "+w.Table, 3*k*(k+1), "SELECT COALESCE(SUM("+w.Value+"), 0) FROM "+w.Table+" WHERE "+w.Mine)
		f.want("rows of "+w.Table+" that were there before", int64(rows), "SELECT COUNT(*) FROM "+w.Table+" WHERE NOT ("+w.Mine+")")
		t.Logf("%s: %d rows inserted and updated, %d deleted", w.Table, w.done.Load(), w.done.Load()-k)
	}
}

// newMigrationFixture is an empty schema; one for many rows is on a server of its own that writes to disk as in earnest.
func newMigrationFixture(t *testing.T, big bool) *fixture {
	t.Helper()
	if !big || os.Getenv(testdb.External) != "" {
		t.Parallel()
		dsn := testdb.DSN(t)
		return &fixture{t, dsn, open(t, dsn, MigrateTimeouts, 8)}
	}
	server, err := privatedb.Start(t.Context(), privatedb.Options{Durable: true, Pool: 1024, Redo: 512})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	if err := server.CreateSchema(t.Context(), "hot"); err != nil {
		t.Fatal(err)
	}
	t.Log(server.Program().Version)
	return &fixture{t, server.DSN("hot"), open(t, server.DSN("hot"), MigrateTimeouts, 8)}
}

// hotWrite is how a hot table is filled and written, in words that all versions of the tables understand. Its own rows
// are numbered from 1, and Value of a row is three times its number.
type hotWrite struct {
	Table, Fill, Insert, Update, Delete string
	Value, Mine                         string
}

var hotWrites = []hotWrite{{
	Table: "job",
	Fill: `INSERT INTO job (app, name, hash, spec, next_due, created, updated)
		SELECT CONCAT('app-', n MOD 400), CONCAT('job-', n), n MOD 1024, CONCAT('{"labels":"', REPEAT('x', 300), '"}'), 1800000000000000 + n, 1, 1`,
	Insert: "INSERT INTO job (app, name, hash, spec, created, updated) VALUES ('writer', ?, 1, '{}', 1, 1)",
	Update: "UPDATE job SET last_due = ? WHERE app = 'writer' AND name = ?",
	Delete: "DELETE FROM job WHERE app = 'writer' AND name = ?",
	Value:  "last_due", Mine: "app = 'writer'",
}, {
	Table:  "task",
	Fill:   "INSERT INTO task (job_id, due, due_now, hash) SELECT n, 1800000000000000 + n, 1800000000000000 + n, n MOD 1024",
	Insert: "INSERT INTO task (job_id, due, due_now, hash) VALUES (-1, ?, 1, 1)",
	Update: "UPDATE task SET state = 1, session_id = REPEAT('w', 16), launch = 7, started = ? WHERE job_id = -1 AND due = ?",
	Delete: "DELETE FROM task WHERE job_id = -1 AND due = ?",
	Value:  "started", Mine: "job_id = -1",
}, {
	Table: "history",
	Fill: `INSERT INTO history (job_id, due, origin, session_id, launch, outcome, due_last, started, ended, node)
		SELECT n MOD 1000, 1700000000000000 + n, IF(n MOD 500 = 0, n, 0), REPEAT('s', 16), n, IF(n MOD 100 = 0, 2, 1), 1700000000000000 + n, 1, 2, CONCAT('node-', n MOD 3)`,
	Insert: "INSERT INTO history (job_id, due, session_id, launch, outcome, due_last, ended) VALUES (-1, ?, REPEAT('w', 16), due, 1, 1, 1)",
	Update: "UPDATE history SET lateness = ? WHERE job_id = -1 AND due = ?",
	Delete: "DELETE FROM history WHERE job_id = -1 AND due = ?",
	Value:  "lateness", Mine: "job_id = -1",
}, {
	Table:  "output",
	Fill:   "INSERT INTO output (session_id, launch, head, tail) SELECT REPEAT('s', 16), n, REPEAT('o', 100), ''",
	Insert: "INSERT INTO output (session_id, launch, head, tail) VALUES (REPEAT('w', 16), ?, '', '')",
	Update: "UPDATE output SET tail = ? WHERE session_id = REPEAT('w', 16) AND launch = ?",
	Delete: "DELETE FROM output WHERE session_id = REPEAT('w', 16) AND launch = ?",
	Value:  "CAST(tail AS UNSIGNED)", Mine: "session_id = REPEAT('w', 16)",
}}

// fillHot gives each hot table so many rows, in pieces that the server's log can take.
func (f *fixture) fillHot(rows int) {
	f.Helper()
	const piece = 100_000
	f.exec("CREATE TABLE num (n INT PRIMARY KEY) ENGINE=InnoDB")
	f.exec("INSERT INTO num VALUES (1)")
	for n := 1; n < rows; n *= 2 {
		f.exec("INSERT INTO num SELECT n + ? FROM num WHERE n <= ?", n, min(n, rows-n))
	}
	for _, w := range hotWrites {
		for from := 1; from <= rows; from += piece {
			f.exec(w.Fill+" FROM num WHERE n BETWEEN ? AND ?", from, from+piece-1)
		}
	}
	f.exec("DROP TABLE num")
}

// hotWriter writes rows of one table, one after another.
type hotWriter struct {
	hotWrite
	done    atomic.Int64 // rows
	longest atomic.Int64 // nanoseconds that one statement took
	err     error        // once it has ended
}

func (w *hotWriter) run(ctx context.Context, db *DB) error {
	do := func(query string, args ...any) error {
		began := time.Now()
		// Not with ctx: what is begun is ended, so that it is known what stands.
		res, err := db.Raw().ExecContext(context.WithoutCancel(ctx), query, args...)
		if took := int64(time.Since(began)); took > w.longest.Load() {
			w.longest.Store(took)
		}
		if err != nil {
			return fmt.Errorf("%.40s …: %w", query, err)
		}
		if n, err := res.RowsAffected(); err != nil || n != 1 {
			return fmt.Errorf("%.40s …: wrote %d rows, %v; want 1", query, n, err)
		}
		return nil
	}
	for n := int64(1); ctx.Err() == nil; n++ {
		if err := do(w.Insert, n); err != nil {
			return err
		}
		if err := do(w.Update, 3*n, n); err != nil {
			return err
		}
		if n%2 == 1 {
			if err := do(w.Delete, n); err != nil {
				return err
			}
		}
		w.done.Store(n)
	}
	return nil
}

// hotWriters write all hot tables, each a connection of its own.
type hotWriters struct {
	t    *testing.T
	all  []*hotWriter
	stop func() // and wait until they have
}

func (f *fixture) startWriters() *hotWriters {
	ctx, cancel := context.WithCancel(f.Context())
	var group sync.WaitGroup
	ws := &hotWriters{t: f.T, stop: func() { cancel(); group.Wait() }}
	for _, h := range hotWrites {
		w := &hotWriter{hotWrite: h}
		ws.all = append(ws.all, w)
		group.Go(func() { w.err = w.run(ctx, f.db) })
	}
	f.Cleanup(ws.stop)
	return ws
}

// during notes the longest write while fn runs, those included that were begun in that time and ended later.
func (ws *hotWriters) during(fn func()) {
	ws.t.Helper()
	ws.progress(1) // a write of before has ended
	for _, w := range ws.all {
		w.longest.Store(0)
	}
	fn()
	ws.progress(2)
}

// progress waits until each has written so many rows more.
func (ws *hotWriters) progress(rows int64) {
	ws.t.Helper()
	for _, w := range ws.all {
		want := w.done.Load() + rows
		for end := time.Now().Add(5 * time.Minute); w.done.Load() < want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				ws.stop()
				ws.t.Fatalf("nobody writes rows of %s any more: %v", w.Table, w.err)
			}
		}
	}
}

func (ws *hotWriters) longest() (most time.Duration) {
	for _, w := range ws.all {
		most = max(most, time.Duration(w.longest.Load()))
	}
	return most
}

// String is how long the longest write of each table took.
func (ws *hotWriters) String() (text string) {
	for _, w := range ws.all {
		text += fmt.Sprintf("%s %s  ", w.Table, time.Duration(w.longest.Load()).Round(time.Millisecond))
	}
	return text
}
