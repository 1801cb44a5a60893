package session

import (
	"log/slog"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"

	"go-crontab/internal/loop"
	"go-crontab/sql"
	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"
)

// fixture is a migrated schema with two pools, one through a fault proxy.
type fixture struct {
	*testing.T
	dsn     string
	direct  *sql.DB
	db      *sql.DB // through the proxy
	proxy   *faultproxy.Proxy
	timings Timings
	log     *slog.Logger
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
	return connect(t, dsn)
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

func connect(t *testing.T, dsn string) *fixture {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}

	timings, err := NewTimings(MinExpiry)
	if err != nil {
		t.Fatal(err)
	}

	p := faultproxy.New(t, cfg.Net, cfg.Addr)
	return &fixture{
		t, dsn, open(t, dsn, sql.MigrateTimeouts), open(t, p.DSN(dsn), timings.SQL), p, timings,
		slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

// reset returns the fixture for a subtest: the same schema in its initial state, with new
// connections. Such subtests run one after another.
func (f *fixture) reset(t *testing.T) *fixture {
	t.Helper()
	for _, table := range []string{"session", "life", "setting", "audit"} {
		f.exec("TRUNCATE TABLE " + table)
	}
	return connect(t, f.dsn)
}

func (f *fixture) exec(query string, args ...any) {
	f.Helper()
	if _, err := f.direct.Raw().Exec(query, args...); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
}

func (f *fixture) want(what string, want int64, query string, args ...any) {
	f.Helper()
	if got := f.number(query, args...); got != want {
		f.Errorf("%s: got %d, want %d", what, got, want)
	}
}

func (f *fixture) number(query string, args ...any) (n int64) {
	f.Helper()
	if err := f.direct.Raw().QueryRow(query, args...).Scan(&n); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
	return n
}

// pulse returns a connection for beats, through the proxy.
func (f *fixture) pulse() *sql.Pulse {
	f.Helper()
	p, err := sql.OpenPulse(f.proxy.DSN(f.dsn), f.timings.SQL)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { p.Close() })
	return p
}

// join registers a session.
func (f *fixture) join(node string) *Session {
	f.Helper()
	clock := NewClock()
	if err := ReadClock(f.Context(), f.pulse(), clock); err != nil {
		f.Fatal(err)
	}

	s, err := Register(f.Context(), f.db, clock, f.timings, Identity{Node: node, Slots: 3}, f.log)
	if err != nil {
		f.Fatal(err)
	}

	// Its lease stays fresh as if it beat, however slow the test is.
	s.lease.clock = func() time.Duration { return time.Duration(s.lease.sent.Load()) }
	return s
}

// calls holds the wakes of a reaper: for changed members, and for burials.
type calls struct{ changed, buried loop.Wake }

// forget forgets changes.
func (c *calls) forget() {
	for len(c.changed) > 0 {
		<-c.changed
	}
}

// surroundings are a reaper's Lookout and Cordon.
type surroundings struct {
	alone bool
	obeys int // calls of Obey
}

func (s *surroundings) Alone() bool { return s.alone }
func (s *surroundings) Obey()       { s.obeys++ }

// reaper returns a reaper whose wakes count.
func (f *fixture) reaper(s *Session) (*Reaper, *calls) {
	n := &calls{make(loop.Wake, 100), make(loop.Wake, 100)}
	around := new(surroundings)
	return NewReaper(ReaperConfig{
		DB: f.db, Session: s, Lookout: around, Cordon: around, Log: f.log,
		Wake: loop.NewWake(), WakeClaimer: n.changed, WakeReaper: n.buried,
	}), n
}

// peer inserts a session that never beats by itself, of an earlier life.
func (f *fixture) peer(n byte) uuid.UUID {
	f.Helper()
	id := uuid.UUID{0: n, 15: n}
	f.exec("INSERT INTO life (session, node, started) VALUES (?, 'peer', 1)", id[:])
	f.exec(`
		INSERT INTO session (id, node, started, beat_at)
		VALUES (?, 'peer', 1, CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED))`, id[:])
	return id
}

func (f *fixture) lives(id uuid.UUID) bool {
	return f.number("SELECT COUNT(*) FROM session WHERE id = ?", id[:]) == 1
}

// gone reports whether the life of a session is recorded as over.
func (f *fixture) gone(id uuid.UUID) bool {
	f.Helper()
	return f.number("SELECT COUNT(*) FROM life WHERE session = ? AND gone > 1", id[:]) == 1
}
