//go:build unix

package cli

import (
	"regexp"
	"strings"
	"testing"
)

// TestServeCheck: serve --check prints the settings in effect and where they come from, without
// secrets, and needs no database.
func TestServeCheck(t *testing.T) {
	t.Parallel()

	env := []string{
		"GOCRONTAB_DSN=crontab:hunter2/@tcp(127.0.0.1:1,127.0.0.1:2)/cron", "GOCRONTAB_SLOTS=7",
		"GOCRONTAB_SECRET_KEY=hunter2", "HOME=/home/x",
	}
	code, out := run(t, env[:2], "serve", "--check", "--node", "web-1", "--session-expiry", "10s")
	if code != exitOK || strings.Contains(out, "hunter2") || !strings.Contains(out, "The settings are valid") {
		t.Errorf("got code %d, %s", code, out)
	}
	for _, want := range []string{
		`dsn +crontab:\*\*\*@tcp\(127\.0\.0\.1:1,127\.0\.0\.1:2\)/cron +GOCRONTAB_DSN`, `slots +7 +GOCRONTAB_SLOTS`,
		`node +web-1 +--node`, `session-expiry +10s +--session-expiry`, `look-ahead +10s +default`,
		`state-dir +\S+/go-crontab/web-1 +default`, `advertise +http://127\.0\.0\.1:8610 +default`,
	} {
		if !regexp.MustCompile(`(?m)^` + want + ` *$`).MatchString(out) {
			t.Errorf("got no %s in\n%s", want, out)
		}
	}

	code, out = run(t, append(env, "GOCRONTAB_SLOT=5", "GOCRONTAB_LOOK_AHEAD=soon", "GOCRONTAB_RUN_AS=nobodyx"),
		"serve", "--check", "--listen", "8610", "--label", "os=minix")
	if code != exitUsage || strings.Contains(out, "hunter2") {
		t.Errorf("bad settings: got code %d, %s", code, out)
	}
	for _, want := range []string{
		"did you mean GOCRONTAB_SLOTS?", `GOCRONTAB_LOOK_AHEAD "soon": want a duration`, `--listen "8610": want host:port`,
		"--label: os is set by the node itself", "GOCRONTAB_SECRET_KEY: ", "nobodyx",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("bad settings: got no %q in\n%s", want, out)
		}
	}
}
