package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/sql"
	"go-crontab/sql/trip"
	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"

	"github.com/go-sql-driver/mysql"
)

// TestRestoredElsewhere: an empty schema is refused as a restored one, and stays empty.
func TestRestoredElsewhere(t *testing.T) {
	t.Parallel()
	dsn := testdb.DSN(t)
	code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate", "--after-restore")
	if code != exitRefused || !strings.Contains(out, "no backup was restored into it") {
		t.Errorf("got code %d, %s; want it refused", code, out)
	}
	if code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate"); code != exitOK ||
		!strings.Contains(out, "created the tables") {
		t.Errorf("a new cluster: got code %d, %s", code, out)
	}
}

// TestRestoreWaitsForSilence: the session expiry determines when a silent node counts as stopped.
func TestRestoreWaitsForSilence(t *testing.T) {
	t.Parallel()

	dsn := migrated(t)
	execute(t, dsn, "INSERT INTO setting (name, value) VALUES ('session_expiry_ms', '600000')") // one beat per minute
	execute(t, dsn, "INSERT INTO session (id, node, address, pid, version, slots, labels, handlers, started, beat_at)"+
		" SELECT UNHEX(REPEAT('01', 16)), 'one', '', 1, '', 1, '{}', '[]', at, at FROM (SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED) - 60000000 AS at) a")
	code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate", "--after-restore")
	if code != exitRefused || !strings.Contains(out, "node one is still alive") ||
		!strings.Contains(out, "wait 2m0s") {
		t.Errorf("a minute after a beat: got code %d, %s", code, out)
	}

	execute(t, dsn, "UPDATE session SET beat_at = beat_at - 61000000")
	if code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate", "--after-restore"); code != 0 {
		t.Errorf("two minutes after it: got code %d, %s", code, out)
	}
}

// TestRestoreOfALargeCluster: counting due times takes too long or fails. The database is accepted
// anyway.
func TestRestoreOfALargeCluster(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		action  faultproxy.Action
		counted bool
	}{
		"slowly":   {faultproxy.Hold(4 * time.Second), true}, // longer than a node's statement timeout
		"not once": {faultproxy.Error(1317, "70100", "Query execution was interrupted"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dsn := migrated(t)
			cfg, err := mysql.ParseDSN(dsn)
			if err != nil {
				t.Fatal(err)
			}

			proxy := faultproxy.New(t, cfg.Net, cfg.Addr)
			rule := proxy.Add(faultproxy.Rule{Match: faultproxy.SQL("WHERE owner > -2 AND due <"), Action: c.action})
			code, out := run(t, []string{"GOCRONTAB_DSN=" + proxy.DSN(dsn)}, "migrate", "--after-restore", "-o", "json")
			var m migration
			if err := json.Unmarshal([]byte(out), &m); code != 0 || err != nil || m.Restored == nil ||
				rule.Fired() == 0 {
				t.Fatalf("got code %d, %s", code, out)
			}
			if counted := m.Restored.NotCounted == ""; counted != c.counted {
				t.Errorf("got %s", out)
			}

			db, err := sql.Open(dsn, sql.DefaultTimeouts, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()

			stops, err := trip.Stops(db.Reader(t.Context()))
			paused := func(s trip.Stop) bool { return s.Kind == trip.StopCluster && s.Reason == sql.RestoredReason }
			if err != nil || !slices.ContainsFunc(stops, paused) {
				t.Errorf("got %+v, %v; want the cluster paused", stops, err)
			}

			if c.counted {
				return
			}

			proxy.Add(faultproxy.Rule{Match: faultproxy.SQL("WHERE owner > -2 AND due <"), Action: c.action})
			if code, out := run(t, []string{"GOCRONTAB_DSN=" + proxy.DSN(dsn)}, "migrate",
				"--after-restore"); code != 0 || !strings.Contains(out, "could not be counted: ") ||
				!strings.Contains(out, "cluster resume") {
				t.Errorf("as text: got code %d, %s", code, out)
			}
		})
	}
}
