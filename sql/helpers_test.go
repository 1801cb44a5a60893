package sql

import (
	"context"
	stdsql "database/sql"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"
)

// fixture is a migrated schema and a pool on it, for one test.
type fixture struct {
	*testing.T
	dsn string
	db  *DB
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	dsn := testdb.DSN(t)
	migrate(t, dsn)
	return &fixture{t, dsn, open(t, dsn, DefaultTimeouts, 8)}
}

// in returns the fixture for a subtest on the same schema. Such subtests run one after another.
func (f *fixture) in(t *testing.T) *fixture { return &fixture{t, f.dsn, f.db} }

// patient returns the fixture with long timeouts, for a test that fills large tables.
func (f *fixture) patient() *fixture { return &fixture{f.T, f.dsn, open(f, f.dsn, MigrateTimeouts, 2)} }

func migrate(t testing.TB, dsn string) {
	t.Helper()
	m := open(t, dsn, MigrateTimeouts, 2)
	if _, _, err := m.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Close()
}

func open(t testing.TB, dsn string, timeouts Timeouts, size int) *DB {
	t.Helper()
	db, err := Open(dsn, timeouts, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// behind opens a pool whose connections go through a fault proxy.
func (f *fixture) behind(size int) (*DB, *faultproxy.Proxy) {
	f.Helper()
	p := faultproxy.Before(f.T, f.dsn)
	return open(f.T, p.DSN(f.dsn), DefaultTimeouts, size), p
}

// exec changes rows behind the back of the code under test.
func (f *fixture) exec(query string, args ...any) {
	f.Helper()
	if _, err := f.db.Raw().ExecContext(f.Context(), query, args...); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
}

// number reads one number.
func (f *fixture) number(query string, args ...any) (n int64) {
	f.Helper()
	var v stdsql.NullInt64
	if err := f.db.Raw().QueryRowContext(f.Context(), query, args...).Scan(&v); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
	return v.Int64
}

// statements counts the connections of this schema that execute a statement and are in a state.
func (f *fixture) statements(statement, state string) int {
	f.Helper()
	n, err := testdb.Executing(f.db.Raw(), statement, state)
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

// tx runs fn in a transaction and fails the test unless it is applied.
func (f *fixture) tx(fn func(tx *Tx) error) {
	f.Helper()
	if err := f.db.Tx(f.Context(), fn); err != nil {
		f.Fatal(err)
	}
}

// newJob inserts a job that is not due, and returns its id.
func (f *fixture) newJob(name string) (id int64) {
	f.Helper()
	f.exec("INSERT IGNORE INTO app (id, name) VALUES (1, 'a')")
	res, err := f.db.Raw().ExecContext(f.Context(), `
		INSERT INTO job (app_id, name, hash, next_due)
		VALUES (1, ?, 7, 1000)`, name)
	if err != nil {
		f.Fatal(err)
	}
	if id, err = res.LastInsertId(); err != nil {
		f.Fatal(err)
	}

	f.exec("INSERT INTO job_version (job_id, version, definition, created) VALUES (?, 1, '{}', 1)", id)
	return id
}

// session returns a recognizable session id.
func session(n byte) uuid.UUID { return uuid.UUID{0: n, 15: n} }

// awaitLockWait returns once a transaction of this schema waits for a lock.
func (f *fixture) awaitLockWait() {
	f.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		switch _, waiting, err := testdb.Transactions(f.db.Raw()); {
		case err != nil:
			f.Fatal(err)
		case waiting > 0:
			return
		}

		if time.Now().After(end) {
			f.Fatal("not within 10 s: a transaction that waits for a lock")
		}
		time.Sleep(120 * time.Millisecond) // asking more often returns the same cached answer
	}
}

func background(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
