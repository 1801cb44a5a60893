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

	code, out = run(t, []string{env[0], `GOCRONTAB_LABELS=a="b`}, "serve", "--check", "--listen", "127.0.0.1:99999",
		"--probe-listen", "127.0.0.1:abc", "--slots", "-1", "--session-expiry", "0s", "--drain-grace", "-5s",
		"--rate-limit", "-1", "--login-life", "1s", "--host", "a b", "--public-url", "x", "--tls-cert", "/nix",
		"--tls-key", "/nix", "--http-allow", "a/b")
	if code != exitUsage {
		t.Errorf("everything is wrong: got code %d", code)
	}
	for _, want := range []string{
		`--listen "127.0.0.1:99999": want`, `--probe-listen "127.0.0.1:abc": want`, "--slots -1: want",
		"--session-expiry 0s: want", "--drain-grace -5s: want", "--rate-limit -1: want", "--login-life 1s: want",
		`--host "a b": want`, `--public-url "x": want`, "--tls-cert, --tls-key: ", "/nix", "GOCRONTAB_LABELS", "a/b",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("everything is wrong: got no %q in\n%s", want, out)
		}
	}
	for _, not := range []string{"[]", "drain grace", "slots: -1"} {
		if strings.Contains(out, not) {
			t.Errorf("everything is wrong: got %q in\n%s", not, out)
		}
	}
	if !regexp.MustCompile(`(?m)^session-expiry +0s `).MatchString(out) {
		t.Errorf("a duration of zero is not shown in\n%s", out)
	}
}
