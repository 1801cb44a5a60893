package faultproxy

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"go-crontab/test/testdb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fixture is a schema with one task in state 0, with a pool through a proxy and a direct one.
type fixture struct {
	*testing.T
	proxy   *Proxy
	through *sql.DB // the client interpolates arguments
	direct  *sql.DB
	dsn     string
}

// Timeouts of a pool through the proxy. They are long, so that a busy machine does not look like a
// fault, except in tests that are about a wait in vain.
const (
	patience    = 10 * time.Second
	readTimeout = 3 * time.Second // also covers the steps before the read, so it cannot be shorter
)

func setUp(t *testing.T) fixture {
	t.Parallel()
	return proxied(t, testdb.DSN(t))
}

func proxied(t *testing.T, dsn string) fixture {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{T: t, proxy: New(t, config.Net, config.Addr), dsn: dsn, direct: open(t, dsn)}
	f.through = f.open(func(*mysql.Config) {})
	f.exec(f.direct, "CREATE TABLE task (id INT PRIMARY KEY, state INT NOT NULL) ENGINE = InnoDB")
	f.exec(f.direct, "INSERT INTO task VALUES (1, 0)")
	f.exec(f.through, "DO 1") // opens one connection
	return f
}

// open makes a pool that does not print the errors that the tests cause.
func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}

	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// setUpImpatient is setUp with readTimeout.
func setUpImpatient(t *testing.T) fixture {
	f := setUp(t)
	_ = f.through.Close()
	f.through = f.open(func(c *mysql.Config) { c.ReadTimeout = readTimeout })
	f.exec(f.through, "DO 1")
	return f
}

// open makes another pool through the proxy.
func (f fixture) open(change func(*mysql.Config)) *sql.DB {
	f.Helper()
	config, err := mysql.ParseDSN(f.proxy.DSN(f.dsn))
	if err != nil {
		f.Fatal(err)
	}
	config.ReadTimeout, config.InterpolateParams = patience, true
	change(config)
	return open(f.T, config.FormatDSN())
}

func (f fixture) exec(db *sql.DB, query string, args ...any) {
	f.Helper()
	if _, err := db.ExecContext(f.Context(), query, args...); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
}

// conn takes one connection through the proxy.
func (f fixture) conn() *sql.Conn {
	f.Helper()
	conn, err := f.through.Conn(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = conn.Close() })
	return conn
}

// id returns the server's id of a connection.
func (f fixture) id(conn *sql.Conn) (id int) {
	f.Helper()
	if err := conn.QueryRowContext(f.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		f.Fatal(err)
	}
	return id
}

// begin sets the task's state in a transaction through the proxy and leaves that open.
func (f fixture) begin(state int) *sql.Tx {
	f.Helper()
	tx, err := f.through.BeginTx(context.Background(), nil)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE task SET state = ? WHERE id = 1", state); err != nil {
		f.Fatal(err)
	}
	return tx
}

// state returns the task's state as other connections see it.
func (f fixture) state() (state int) {
	f.Helper()
	if err := f.direct.QueryRowContext(f.Context(), "SELECT state FROM task WHERE id = 1").Scan(&state); err != nil {
		f.Fatal(err)
	}
	return state
}

func (f fixture) wantState(want int) {
	f.Helper()
	if got := f.state(); got != want {
		f.Errorf("state: got %d, want %d", got, want)
	}
}

// locked reports whether a transaction keeps the task locked.
func (f fixture) locked() bool {
	f.Helper()
	_, err := f.direct.ExecContext(f.Context(), "SELECT * FROM task WHERE id = 1 FOR UPDATE NOWAIT")
	switch number(err) {
	case 0:
		return false
	case 1205, 3572: // MariaDB's and MySQL's refusal to wait
		return true
	}

	f.Fatal(err)
	return false
}

// eventually waits for a thing that the server does in its own time.
func (f fixture) eventually(what string, happened func() bool) {
	f.Helper()
	for end := time.Now().Add(30 * time.Second); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			f.Fatalf("not within 30 s: %s", what)
		}
	}
}

func (f fixture) wait(wait func(context.Context) error) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 30*time.Second)
	defer cancel()
	if err := wait(ctx); err != nil {
		f.Fatal(err)
	}
}

// number returns the server's error number: 0 without an error, -1 for an error that came from
// elsewhere.
func number(err error) int {
	refusal := (*mysql.MySQLError)(nil)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &refusal):
		return int(refusal.Number)
	}
	return -1
}

const lost = -1 // the number of an error that no server gave
