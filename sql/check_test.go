package sql

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"
)

const sentinel = "this node cannot join: "

func wantRefusal(t *testing.T, what string, err error, text string) {
	t.Helper()
	if !errors.Is(err, ErrRefuseJoin) || err.Error() != sentinel+text {
		t.Errorf("%s: got %v, want %s%s", what, err, sentinel, text)
	}
}

func TestServerVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"8.0.0": "", "8.0.42": "", "8.4.5": "", "9.0.1": "", "9.5.0-commercial": "", "8.0.35-0ubuntu0.22.04.1": "",
		"10.0.0":         "",
		"10.6.0-MariaDB": "", "10.11.14-MariaDB-0+deb12u2": "", "11.4.2-MariaDB-ubu2404": "", "12.0.1-MariaDB": "",
		"5.5.5-10.6.16-MariaDB-1:10.6.16+maria~ubu2004": "", "11.8.0-mariadb": "",
		"8.0":                      "",
		"5.7.44":                   `the server is MySQL 5.7.44, want 8.0 or newer`,
		"10.5.28-MariaDB":          `the server is MariaDB 10.5.28-MariaDB, want 10.6 or newer`,
		"5.5.5-10.5.9-MariaDB-log": `the server is MariaDB 5.5.5-10.5.9-MariaDB-log, want 10.6 or newer`,
		"5.5.68-MariaDB":           `the server is MariaDB 5.5.68-MariaDB, want 10.6 or newer`,
		"8":                        `cannot read the server's version "8"`,
		"":                         `cannot read the server's version ""`,
		"eight.0.1":                `cannot read the server's version "eight.0.1"`,
		"8.x":                      `cannot read the server's version "8.x"`,
	} {
		err := CheckVersion(version)
		if want == "" {
			if err != nil {
				t.Errorf("%q: got %v, want it taken", version, err)
			}
			continue
		}
		wantRefusal(t, version, err, want)
	}
}

func wantWait(t *testing.T, what string, err error, text string) {
	t.Helper()
	if err == nil || errors.Is(err, ErrRefuseJoin) || err.Error() != text {
		t.Errorf("%s: got %v, want it to wait: %s", what, err, text)
	}
}

// TestCheckRefuses breaks each condition of the protocol, one at a time.
func TestCheckRefuses(t *testing.T) {
	f := setUp(t)
	f.exec("CREATE TABLE whole LIKE schema_version")
	f.exec("INSERT INTO whole SELECT * FROM schema_version")
	mend := func() {
		f.exec("CREATE TABLE IF NOT EXISTS schema_version LIKE whole")
		f.exec("DELETE FROM schema_version")
		f.exec("INSERT INTO schema_version SELECT * FROM whole")
		f.exec("DELETE FROM locks")
		if err := f.db.restoreLocks(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	for name, c := range map[string]struct {
		damage func(f *fixture)
		want   string
	}{
		"nothing is wrong": {func(*fixture) {}, ""},
		"the missing lock row of the sessions": {func(f *fixture) { f.exec("DELETE FROM locks WHERE id = 0") },
			"the table locks lacks the row session; restore it: go-crontab migrate"},
		"a lock row that moved": {func(f *fixture) { f.exec("UPDATE locks SET id = 257 WHERE id = 0") },
			"the table locks lacks the row session; restore it: go-crontab migrate"},
		"a newer schema": {func(f *fixture) {
			f.exec("INSERT INTO schema_version (version_id, is_applied) VALUES (9999, 1)")
			f.exec("UPDATE setting SET value = '9999' WHERE name = 'compatible_since'")
		},
			"the schema has version 9999, and this program knows versions up to NEWEST; use a newer go-crontab"},
		// No version is older than the first; any number except 0 will do.
		"an older schema": {func(f *fixture) { f.exec("UPDATE schema_version SET version_id = -1") },
			"the schema has version -1, and this program needs NEWEST; upgrade it: go-crontab migrate"},
		"a lock wait that outlasts the client": {func(f *fixture) { f.db.timeouts.Read = 2 * time.Second },
			"innodb_lock_wait_timeout is 2s, want less than the read timeout 2s"},
		"a silent node that keeps its locks": {func(f *fixture) { f.db.timeouts.Idle = 7 * time.Second },
			"wait_timeout is 8s, want at most 7s"},
	} {
		t.Run(name, func(t *testing.T) {
			mend()
			f := &fixture{t, f.dsn, open(t, f.dsn, DefaultTimeouts, 2)}
			c.damage(f)
			p, err := f.db.provider(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			want := strings.ReplaceAll(c.want, "NEWEST", fmt.Sprint(newestMigration(p)))
			switch err := f.db.Check(t.Context()); {
			case want != "":
				wantRefusal(t, name, err, want)
			case err != nil:
				t.Errorf("got %v, want it to pass", err)
			}
		})
	}
}

// TestCheckWaitsForTables: a node may start before the first migrate, and waits for the tables.
func TestCheckWaitsForTables(t *testing.T) {
	f := setUp(t)
	const empty = "the schema is empty; waiting for its tables, create them with: go-crontab migrate"
	f.exec("DELETE FROM setting WHERE name = 'compatible_since'")
	f.exec("DELETE FROM schema_version WHERE version_id > 0")
	wantWait(t, "before the first step", f.db.Check(t.Context()), empty)
	f.exec("DROP TABLE schema_version")
	wantWait(t, "an empty schema", f.db.Check(t.Context()), empty)
}

// TestCheckMissesTables drops each table that the migrations create.
func TestCheckMissesTables(t *testing.T) {
	f := setUp(t)
	rows, err := f.db.Raw().Query(
		"SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE " +
			"TABLE' AND table_name NOT LIKE 'schema\\_%'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	var made []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		made = append(made, name)
	}

	if len(made) < 40 {
		t.Errorf("%d tables, want 40 at least", len(made))
	}

	for _, name := range made {
		f.exec("RENAME TABLE " + name + " TO away")
		wantWait(t, name, f.db.Check(t.Context()), "the schema lacks the tables "+name+"; waiting until a backup is restored")
		f.exec("RENAME TABLE away TO " + name)
	}

	if err := f.db.Check(t.Context()); err != nil {
		t.Errorf("all there again: %v", err)
	}
}

// TestCheckOfServers changes settings of the whole server.
func TestCheckOfServers(t *testing.T) {
	t.Parallel()
	server := testdb.Server(t)
	if err := server.CreateSchema(t.Context(), "crontab"); err != nil {
		t.Fatal(err)
	}

	migrate(t, server.DSN("crontab"))
	set := func(statement string) {
		t.Helper()
		if _, err := open(t, server.DSN("crontab"), DefaultTimeouts,
			1).Raw().Exec("SET GLOBAL " + statement); err != nil {
			t.Fatal(err)
		}
	}

	check := func() error { return open(t, server.DSN("crontab"), DefaultTimeouts, 1).Check(t.Context()) }
	if err := check(); err != nil {
		t.Errorf("as it comes: %v", err)
	}

	set("read_only = 1")
	wantWait(t, "a replica, or a primary that is being replaced", check(),
		"the server is read-only (@@read_only=1); waiting for the primary; GOCRONTAB_DSN must point to it")
	set("read_only = 0")
	set("max_allowed_packet = 4194304")
	wantRefusal(t, "small packets", check(),
		"max_allowed_packet is 4194304 bytes, want at least 8388608; raise it on the server")
}

// TestCheckOutOfReach: a server that is unreachable now is no reason to refuse for good.
func TestCheckOutOfReach(t *testing.T) {
	f := setUp(t)
	db, proxy := f.behind(1)
	for i := range 6 { // each statement of Check, and the connection itself
		proxy.CutAll()
		rule := proxy.Add(faultproxy.Rule{Match: faultproxy.SQL("SELECT"), Skip: i, Action: faultproxy.CutAfter()})
		err := db.Check(t.Context())
		if rule.Fired() == 0 {
			rule.Remove()
			if i < 3 {
				t.Errorf("Check has %d statements, want more", i)
			}
			break
		}

		if err == nil || errors.Is(err, ErrRefuseJoin) || !IsAway(err) {
			t.Errorf("cut at statement %d: got %v, want an error that is away", i, err)
		}
	}

	proxy.Refuse()
	proxy.CutAll()
	if err := db.Check(t.Context()); err == nil || errors.Is(err, ErrRefuseJoin) || !IsAway(err) {
		t.Errorf("connection refused: got %v, want an error that is away", err)
	}
}

// nobodyWatched reports no silence: the caller sees each session for the first time.
func nobodyWatched(uuid.UUID, int64) time.Duration { return 0 }

// TestJoinExpiryBesideTheDead: the rows of dead sessions, as after a power cut of all machines, do
// not keep out a node with a different expiry forever. The node joins once they have been silent
// for their own expiry, both by MySQL's clock and by its own.
func TestJoinExpiryBesideTheDead(t *testing.T) {
	f := setUp(t)
	const day = 24 * time.Hour
	wait := "this node's session expiry is 5s, but the cluster's is 20s; waiting 20s to see whether one of its last " +
		"%d nodes is still running"
	refused := sentinel +
		"this node's session expiry is 5s, but the cluster's is 20s (running nodes: %d); " +
		"start it with --session-expiry=20s, or stop all nodes to change it"
	for name, c := range map[string]struct {
		ago, silent []time.Duration
		want        string
	}{
		"nobody is there": {nil, nil, ""},
		"dead for a day, and watched": {
			[]time.Duration{day, day}, []time.Duration{21 * time.Second, time.Minute}, "",
		},
		"dead for a day, and nobody has watched": {[]time.Duration{day}, []time.Duration{0}, fmt.Sprintf(wait, 1)},
		"one of two was not watched for long enough": {
			[]time.Duration{day, day}, []time.Duration{20 * time.Second, time.Minute}, fmt.Sprintf(wait, 1),
		},
		"its beat is in a future of MySQL's clock": {[]time.Duration{-day}, []time.Duration{time.Minute}, ""},
		"it beats": {[]time.Duration{time.Second}, []time.Duration{0}, fmt.Sprintf(refused, 1)},
		"MySQL's clock was put back, and it beats": {
			[]time.Duration{-time.Second}, []time.Duration{0}, fmt.Sprintf(refused, 1),
		},
		"one of three beats": {
			[]time.Duration{day, 10 * time.Second, day}, []time.Duration{day, 0, 0}, fmt.Sprintf(refused, 1),
		},
		"MySQL's clock stands still, and nobody beats": {
			[]time.Duration{10 * time.Second}, []time.Duration{time.Hour}, fmt.Sprintf(refused, 1),
		},
	} {
		f.exec("DELETE FROM session")
		f.exec("REPLACE INTO setting (name, value) VALUES ('session_expiry_ms', '20000')")
		silent := map[uuid.UUID]time.Duration{}
		for i, ago := range c.ago {
			id := session(byte(1 + i))
			silent[id] = c.silent[i]
			f.tx(func(tx *Tx) error { return tx.InsertSession(SessionRow{ID: id, Node: "n"}) })
			f.exec("UPDATE session SET beat_at = beat_at - ? WHERE id = ?", ago.Microseconds(), id[:])
		}

		err := f.db.Tx(t.Context(), func(tx *Tx) error {
			return tx.JoinExpiry(5*time.Second, func(id uuid.UUID, _ int64) time.Duration { return silent[id] })
		})
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && got != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		if refuses := errors.Is(err, ErrRefuseJoin); refuses != strings.HasPrefix(c.want, sentinel) {
			t.Errorf("%s: refused for good: %t", name, refuses)
		}

		want := 20 * time.Second
		if c.want == "" {
			want = 5 * time.Second
		}
		if got, err := f.db.SessionExpiry(t.Context()); err != nil || got != want {
			t.Errorf("%s: got agreed expiry %v, %v; want %v", name, got, err, want)
		}
	}
}

func TestJoinExpiry(t *testing.T) {
	f := setUp(t)
	join := func(expiry time.Duration) error {
		return f.db.Tx(f.Context(), func(tx *Tx) error { return tx.JoinExpiry(expiry, nobodyWatched) })
	}
	agreed := func(want time.Duration) {
		t.Helper()
		if got, err := f.db.SessionExpiry(f.Context()); err != nil || got != want {
			t.Errorf("got agreed expiry %v, %v; want %v", got, err, want)
		}
	}

	agreed(0)
	if err := join(20 * time.Second); err != nil {
		t.Errorf("the first node of all: %v", err)
	}

	agreed(20 * time.Second)
	if err := join(30 * time.Second); err != nil {
		t.Errorf("another expiry while nobody is there: %v", err)
	}

	agreed(30 * time.Second)
	f.tx(func(tx *Tx) error { return tx.InsertSession(SessionRow{ID: session(1), Node: "one"}) })
	if err := join(30 * time.Second); err != nil {
		t.Errorf("the cluster's expiry: %v", err)
	}

	wantRefusal(t, "another expiry beside a node", join(5*time.Second),
		"this node's session expiry is 5s, but the cluster's is 30s (running nodes: 1); "+
			"start it with --session-expiry=30s, or stop all nodes to change it")
	f.tx(func(tx *Tx) error { return tx.InsertSession(SessionRow{ID: session(2), Node: "two"}) })
	wantRefusal(t, "another expiry beside two nodes", join(31*time.Second),
		"this node's session expiry is 31s, but the cluster's is 30s (running nodes: 2); "+
			"start it with --session-expiry=30s, or stop all nodes to change it")
	agreed(30 * time.Second)
	f.exec("DELETE FROM setting WHERE name = 'session_expiry_ms'")
	if err := join(31 * time.Second); err != nil {
		t.Errorf("a setting that somebody deleted: %v", err)
	}

	agreed(31 * time.Second)
	f.exec("DELETE FROM locks WHERE id = 0")
	if err := join(31 * time.Second); err == nil || errors.Is(err, ErrRefuseJoin) {
		t.Errorf("no lock row: got %v, want an error", err)
	}
}

// TestFirstNodesAgree starts nodes with different expiries at the same time, in an empty cluster
// and in one that was left: one node decides, and nodes with a different expiry are refused.
func TestFirstNodesAgree(t *testing.T) {
	f := setUp(t)
	for round := range 5 {
		f.exec("DELETE FROM session")
		if round%2 == 0 {
			f.exec("DELETE FROM setting WHERE name = 'session_expiry_ms'")
		}

		errs := make([]error, 6)
		expiry := func(i int) time.Duration { return time.Duration(10+i%3) * time.Second }
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				errs[i] = f.db.Tx(f.Context(), func(tx *Tx) error {
					if err := tx.JoinExpiry(expiry(i), nobodyWatched); err != nil {
						return err
					}
					return tx.InsertSession(SessionRow{ID: session(byte(1 + i)), Node: "n"})
				})
			})
		}

		all.Wait()
		agreed, err := f.db.SessionExpiry(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		for i, err := range errs {
			switch joins := agreed == expiry(i); {
			case joins && err != nil:
				t.Errorf("round %d: node with the agreed expiry %s: got %v, want it to join", round, agreed, err)
			case !joins && !errors.Is(err, ErrRefuseJoin):
				t.Errorf("round %d: node with expiry %s in a cluster with %s: got %v, want it refused", round,
					expiry(i), agreed, err)
			}
		}
	}
}

// TestMigrate: migrate may run in many processes at once and repeatedly, restores lock rows, and
// refuses to go back.
func TestMigrate(t *testing.T) {
	t.Parallel()
	dsn := testdb.DSN(t)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			db := open(t, dsn, MigrateTimeouts, 2)
			defer db.Close()
			if from, to, err := db.Migrate(t.Context()); err != nil || to < 1 || from > to {
				t.Errorf("got %d to %d, %v", from, to, err)
			}
		})
	}

	all.Wait()
	f := &fixture{t, dsn, open(t, dsn, MigrateTimeouts, 2)}
	f.want("lock rows", 1, "SELECT COUNT(*) FROM locks WHERE id = 0 AND name = 'session'")
	f.exec("DELETE FROM locks")
	from, to, err := f.db.Migrate(t.Context())
	if err != nil || from != to {
		t.Errorf("the second time: got %d to %d, %v; want no change", from, to, err)
	}

	f.want("lock rows, restored", 2, "SELECT COUNT(*) FROM locks")
	f.exec("INSERT INTO schema_version (version_id, is_applied) VALUES (9999, 1)")
	if from, to, err := f.db.Migrate(t.Context()); !errors.Is(err, ErrRefuseJoin) || from != 9999 || to != 9999 {
		t.Errorf("a newer schema: got %d to %d, %v; want it refused", from, to, err)
	}
}
