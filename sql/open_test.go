package sql

import (
	stdsql "database/sql"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"pgregory.net/rapid"

	"go-crontab/test/testdb"
)

// TestSettingsAreInForce checks every connection of a full pool, with a DSN that asks for the
// opposite of everything.
func TestSettingsAreInForce(t *testing.T) {
	t.Parallel()
	cfg, err := mysql.ParseDSN(testdb.DSN(t))
	if err != nil {
		t.Fatal(err)
	}

	cfg.ParseTime, cfg.ClientFoundRows, cfg.InterpolateParams, cfg.RejectReadOnly = false, false, false, false
	cfg.MultiStatements, cfg.ReadTimeout, cfg.Loc = true, time.Hour, time.FixedZone("Asia/Tokyo", 9*3600)
	isolation := testdb.EngineOf(t).Isolation
	cfg.Params = map[string]string{
		"autocommit": "0", "innodb_lock_wait_timeout": "50", "lock_wait_timeout": "86400", "wait_timeout": "28800",
		"time_zone": "'+05:00'", "sql_mode": "''",
		isolation: "'SERIALIZABLE'", "character_set_client": "latin1", "collation_connection": "latin1_swedish_ci",
	}

	longest, most := "max_execution_time", "8000" // of a statement
	if testdb.EngineOf(t).MariaDB {
		longest, most = "max_statement_time", "8"
	}

	cfg.Params[longest] = "1"
	const size = 5
	db := open(t, cfg.FormatDSN()+"&charset=latin1",
		Timeouts{Dial: time.Second, Read: 7 * time.Second, LockWait: 3 * time.Second, Idle: 9 * time.Second}, size)
	ctx := background(t)
	connections := map[int64]bool{}
	for range size {
		c, err := db.Raw().Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()

		for variable, want := range map[string]string{
			isolation: "READ-COMMITTED", longest: most, "innodb_lock_wait_timeout": "3", "lock_wait_timeout": "6",
			"wait_timeout": "9", "time_zone": "+00:00",
			"sql_mode": "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION", "autocommit": "1",
			"character_set_client":  "utf8mb4",
			"character_set_results": "utf8mb4", "collation_connection": "utf8mb4_bin",
		} {
			var got string
			err := c.QueryRowContext(ctx, "SELECT @@SESSION."+variable).Scan(&got)
			if err != nil || got != want {
				t.Errorf("%s: got %q, %v; want %q", variable, got, err, want)
			}
		}

		var id int64
		if err := c.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
			t.Fatal(err)
		}

		connections[id] = true
		if _, err := c.ExecContext(ctx, "SELECT 1; SELECT 2"); err == nil {
			t.Error("two statements in one were taken")
		}
		if _, err := c.ExecContext(ctx, "CREATE TEMPORARY TABLE own (v INT) ENGINE = InnoDB"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.ExecContext(ctx, "INSERT INTO own VALUES (1)"); err != nil {
			t.Fatal(err)
		}

		r, err := c.ExecContext(ctx, "UPDATE own SET v = 1")
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := r.RowsAffected(); n != 1 {
			t.Errorf("a row that an UPDATE left as it was: got %d rows, want it counted", n)
		}
	}

	if len(connections) != size {
		t.Fatalf("got %d connections, want %d", len(connections), size)
	}
	if n := db.Raw().Stats().MaxOpenConnections; n != size {
		t.Errorf("got room for %d connections, want %d", n, size)
	}
}

// TestSettingsSurviveReconnects: a connection that replaces a broken one has the settings too.
func TestSettingsSurviveReconnects(t *testing.T) {
	f := setUp(t)
	db, proxy := f.behind(1)
	for range 3 {
		var isolation, mode string
		err := db.Raw().QueryRow(`
			SELECT @@SESSION.`+testdb.EngineOf(t).Isolation+`, @@SESSION.sql_mode`).Scan(&isolation, &mode)
		if err != nil || isolation != "READ-COMMITTED" || !strings.HasPrefix(mode, "STRICT_ALL_TABLES") {
			t.Errorf("got isolation %q, mode %q, %v", isolation, mode, err)
		}
		proxy.CutAll()
	}

	if n := proxy.Counts().Connections; n != 3 {
		t.Errorf("got %d connections, want 3", n)
	}
}

// TestBehindAnAlter: a statement that waits for the table lock of an ALTER TABLE, which itself
// waits for a reader, gives up in time and keeps its connection. While the server waits for such a
// lock it does not notice that a client has gone, so connection after connection would be lost.
func TestBehindAnAlter(t *testing.T) {
	if testdb.EngineOf(t).Galera {
		t.Skip("there a change of a table waits for no reader")
	}

	f := setUp(t)
	reader, err := f.patient().db.Raw().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()

	for _, s := range []string{"START TRANSACTION", "SELECT COUNT(*) FROM job"} {
		if _, err := reader.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}

	beside := f.patient()
	altered := make(chan error, 1)
	go func() {
		_, err := beside.db.Raw().Exec("ALTER TABLE job ADD KEY behind (resumed)")
		altered <- err
	}()

	for end := time.Now().Add(20 * time.Second); f.statements("ALTER TABLE job",
		"Waiting for table metadata lock") == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the change of the table does not wait")
		}
	}

	const size = 3
	db := open(t, f.dsn, DefaultTimeouts, size)
	var readers sync.WaitGroup
	var all, gaveUp atomic.Int64
	for range size {
		readers.Go(func() {
			for end := time.Now().Add(8 * time.Second); time.Now().Before(end); {
				_, err := IDs(db.Reader(t.Context()), "read a job", "SELECT id FROM job WHERE id = 1")
				all.Add(1)
				if IsLockWait(err) {
					gaveUp.Add(1)
				} else { // the server is a second ahead of the client; a busy machine may use that up
					t.Logf("got %v", err)
				}
			}
		})
	}

	readers.Wait()
	if got := gaveUp.Load(); 2*got <= all.Load() {
		t.Errorf("%d of %d waited for a lock in vain, want nearly all", got, all.Load())
	}

	for end := time.Now().Add(20 * time.Second); f.statements("SELECT",
		"Waiting for table metadata lock") > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("statements wait still that nobody waits for")
		}
	}

	if _, err := reader.ExecContext(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-altered; err != nil {
		t.Error(err)
	}

	if found, err := IDs(db.Reader(t.Context()), "read a job", "SELECT id FROM job WHERE id = 1"); err != nil ||
		len(found) != 0 {
		t.Errorf("behind it: got %v, %v; want that there is no such job", found, err)
	}
}

// TestCommitBehindAReadLock: a COMMIT that waits too long for a backup's read lock is known to be
// undone.
func TestCommitBehindAReadLock(t *testing.T) {
	t.Parallel()
	server := testdb.Server(t) // its own server, because the lock stops all commits
	if err := server.CreateSchema(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}

	migrate(t, server.DSN("s"))
	f := &fixture{t, server.DSN("s"), open(t, server.DSN("s"), DefaultTimeouts, 2)}
	backup, err := f.patient().db.Raw().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer backup.Close()

	err = f.db.once(t.Context(), func(tx *Tx) error {
		if err := put(tx, "x", "1"); err != nil {
			return err
		}
		_, err := backup.ExecContext(t.Context(), "FLUSH TABLES WITH READ LOCK")
		return err
	})
	if !IsLockWait(err) || !retryable(err) || !strings.HasPrefix(err.Error(), "commit: ") {
		t.Errorf("got %v, want that the commit waited for a lock in vain, and nothing of it stands", err)
	}

	if _, err := backup.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
	f.want("rows that were written", 0, count, "x")
}

// TestPasswordStaysSecret writes DSNs in many wrong ways. No error of Open contains the password.
func TestPasswordStaysSecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	shapes := []string{
		"root:%s@tcp(db:3306)", "root:%s@tcp(db:3306/crontab", "root:%s@tcp(db:3306)crontab/x", "root:%s/crontab",
		"root:%s@db:3306/crontab",
		"root:%s@db/crontab", "root:%s@(db:3306/crontab", "root:%s", ":%s@/", "root:%s@tcp(db:3306)/",
		"root:%s@unix(/sock)/", "mysql://root:%s@db:3306/crontab",
		"mariadb://root:%s@db/crontab", "jdbc:mysql://root:%s@db/crontab",
		"root:%s@tcp(db:3306)/crontab?parseTime=perhaps",
		"root:x/%s@tcp(db:3306)", "root:x/y?tls=%s@tcp(db:3306)", "root:x/%%zz%s@tcp(db:3306)",
		"root:x/y?timeout=%s@tcp(db:3306)", "root:x/y?loc=%s@tcp(db:3306)/%%zz",
		"root:x/y?serverPubKey=%s@tcp(db:3306)", "root:x/y?parseTime=%s@tcp(db:3306)",
		"root@tcp(db:3306)/crontab?tls=%s", "password=%s", "root:%s@tcp(db:3306)/%%zz",
		"root:a?readTimeout=%s@tcp(db/1",
	}

	refused := 0
	check := func(t interface{ Errorf(string, ...any) }, dsn string) {
		for _, timeouts := range []Timeouts{DefaultTimeouts, {}} {
			db, err := Open(dsn, timeouts, 1)
			if err == nil {
				db.Close()
				continue
			}

			refused++
			for e := err; e != nil; {
				if strings.Contains(e.Error(), secret) || strings.Contains(fmt.Sprintf("%+v %#v", e, e), secret) {
					t.Errorf("%q: got error %q, which repeats the password", dsn, e)
				}
				u, ok := e.(interface{ Unwrap() error })
				if !ok {
					break
				}
				e = u.Unwrap()
			}
		}
	}

	for _, shape := range shapes {
		check(t, fmt.Sprintf(shape, secret))
	}

	if t.Failed() {
		return
	}
	if refused < len(shapes) {
		t.Errorf("only %d refusals: the shapes test little", refused)
	}

	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{
			"root", ":", "@", "/", "?", "&", "=", "(", ")", "tcp", "unix", "db", "3306", "%", "%zz", "tls", "timeout",
			"loc", "parseTime", secret,
		})
		check(t, strings.Join(rapid.SliceOfN(part, 1, 14).Draw(t, "parts"),
			"")+secret+strings.Join(rapid.SliceOfN(part, 0, 8).Draw(t, "rest"), ""))
	})
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	good := "root@tcp(db:3306)/crontab"
	for name, c := range map[string]struct {
		dsn      string
		timeouts Timeouts
		want     string // the whole error; "" if there is none
	}{
		"a good DSN":              {good, DefaultTimeouts, ""},
		"the timeouts to migrate": {good, MigrateTimeouts, ""},
		"no schema": {
			"root@tcp(db:3306)/", DefaultTimeouts,
			"DSN: has no schema; write it as user:password@tcp(host:3306)/schema",
		},
		"no @ behind a password": {
			"root:hunter2tcp(db:3306)/x", DefaultTimeouts,
			"DSN: cannot be parsed; write it as user:password@tcp(host:3306)/schema",
		},
		"a URL": {
			"mysql://root@db/crontab", DefaultTimeouts,
			"DSN: is a URL; write it as user:password@tcp(host:3306)/schema",
		},
		"as long a lock wait as a read": {good, Timeouts{
			Read: 2 * time.Second, LockWait: 2 * time.Second, Idle: 8 * time.Second,
		},
			"timeouts: want lock wait (2s) < read (2s) < idle (8s)"},
		"as long a read as may be idle": {good, Timeouts{
			Read: 8 * time.Second, LockWait: 2 * time.Second, Idle: 8 * time.Second,
		},
			"timeouts: want lock wait (2s) < read (8s) < idle (8s)"},
		"a lock wait that MySQL takes for 0 s": {good, Timeouts{
			Read: 2 * time.Second, LockWait: 999 * time.Millisecond, Idle: 8 * time.Second,
		},
			"timeouts: want lock wait (999ms) < read (2s) < idle (8s)"},
	} {
		db, err := Open(c.dsn, c.timeouts, 1)
		if err == nil {
			db.Close()
			err = fmt.Errorf("")
		}

		if err.Error() != c.want {
			t.Errorf("%s: got error %q, want %q", name, err, c.want)
		}
	}
}

// TestAbandonedReads: a read whose client has gone ends. Otherwise reads would pile up where each
// takes longer than its timeout.
func TestAbandonedReads(t *testing.T) {
	f := setUp(t)
	db := open(t, f.dsn, Timeouts{
		Dial: time.Second, Read: 2 * time.Second, LockWait: time.Second, Idle: 9 * time.Second,
	}, 1)
	if err := db.query(t.Context(), "sleep", func(*stdsql.Rows) error { return nil }, "SELECT SLEEP(60)"); err == nil {
		t.Fatal("it was waited for")
	}

	for end := time.Now().Add(20 * time.Second); f.statements("SELECT SLEEP",
		"") > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it goes on")
		}
	}
}
