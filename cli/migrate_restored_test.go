package cli

import (
	"strings"
	"testing"

	"go-crontab/internal/testdb"
)

// TestRestoredElsewhere: an empty schema is not taken for what was restored, and nothing is made in it.
func TestRestoredElsewhere(t *testing.T) {
	t.Parallel()
	dsn := testdb.DSN(t)
	code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate", "--after-restore")
	if code != exitRefused || !strings.Contains(out, "nothing was restored into it") {
		t.Errorf("got code %d, %s; want it refused", code, out)
	}
	if code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate"); code != exitOK || !strings.Contains(out, "created the tables") {
		t.Errorf("a new cluster: got code %d, %s", code, out)
	}
}

// TestRestoreWaitsForSilence: how long a node that lives may be silent follows from the session expiry.
func TestRestoreWaitsForSilence(t *testing.T) {
	t.Parallel()
	dsn := migrated(t)
	execute(t, dsn, "INSERT INTO setting (name, value) VALUES ('session_expiry_ms', '600000')") // a beat each minute
	execute(t, dsn, "INSERT INTO session (id, node, address, pid, version, slots, labels, handlers, started, beat_at)"+
		" SELECT UNHEX(REPEAT('01', 16)), 'one', '', 1, '', 1, '{}', '[]', at, at FROM (SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED) - 60000000 AS at) a")
	code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate", "--after-restore")
	if code != exitRefused || !strings.Contains(out, "node one lives") || !strings.Contains(out, "2m0s after the last one") {
		t.Errorf("a minute after a beat: got code %d, %s", code, out)
	}
	execute(t, dsn, "UPDATE session SET beat_at = beat_at - 61000000")
	if code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate", "--after-restore"); code != 0 {
		t.Errorf("two minutes after it: got code %d, %s", code, out)
	}
}
