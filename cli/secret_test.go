package cli

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/secret"
	"go-crontab/test/testdb"
)

// TestSecretCommands stores secrets in a cluster whose two nodes get the key in different ways, and
// lets a job print one.
func TestSecretCommands(t *testing.T) {
	t.Parallel()

	const value = "hunter2-Zq8=+pg"
	dsn := testdb.DSN(t)
	code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate", "--bootstrap")
	token := regexp.MustCompile(`gocrontab_\w+`).FindString(out)
	if code != exitOK || token == "" {
		t.Fatalf("exit code %d\n%s", code, out)
	}

	code, key := run(t, nil, "secret", "keygen")
	if _, err := secret.Parse(key); err != nil || code != exitOK {
		t.Fatalf("keygen: %d %q %v", code, key, err)
	}

	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	newer := secret.NewKey() + "\n"
	s := serve(t, dsn, "one", "--"+secretKeyFlag, file("keys", newer+key)).ready()
	two := start(t, []string{"GOCRONTAB_DSN=" + dsn, secretKeyEnv + "=" + key}, "serve", "--node", "two", "--listen",
		"127.0.0.1:0", "--session-expiry", "5s", "--state-dir", t.TempDir())
	other := &server{two, two.says(`"api":"(http://[^"]+)"`, 20*time.Second)}
	other.ready()

	var said strings.Builder
	ask := func(s *server, in string, want int, args ...string) string {
		t.Helper()
		p := start(t, []string{"GOCRONTAB_TOKEN=" + token, "GOCRONTAB_SERVER=" + s.url}, args...)
		_, _ = io.WriteString(p.stdin, in)
		_ = p.stdin.Close()
		if code := p.exit(30 * time.Second); code != want {
			t.Fatalf("%q: exit code %d, want %d\n%s", args, code, want, p.out.String())
		}
		said.WriteString(p.out.String())
		return p.out.String()
	}

	ask(other, value+"\n", exitOK, "secret", "set", "pg")
	ask(other, "", exitOK, "secret", "set", "file", "--from-file", file("value", value+"\r\n"), "--app", "shop")
	ask(s, "", exitUsage, "secret", "set", "pg")
	ask(s, "", exitUsage, "secret", "set", "pg", value[:3])
	ask(s, "\xff\xff\xff\xff", exitUsage, "secret", "set", "pg")
	if out := ask(s, "", exitOK, "secret",
		"ls"); !regexp.MustCompile(`(?s)pg +all .* old.*file +shop .* old`).MatchString(out) {
		t.Errorf("got\n%s", out)
	}

	if out := ask(s, "", exitOK, "secret", "rotate"); !strings.Contains(out, "2 secrets") {
		t.Errorf("got\n%s", out)
	}
	if out := ask(other, "", exitOK, "secret", "ls"); strings.Count(out, " unknown") != 2 {
		t.Errorf("got\n%s", out)
	}

	ask(s, "", exitOK, "job", "add", "show", "--schedule", "@yearly", "--env", "PW={{secret.pg}}", "--selector",
		"node=one", "--", `test ${#PW} = 15 && echo "it is $PW"`)
	if out := ask(s, "", exitOK, "job", "run", "show", "--wait"); !strings.Contains(out, "it is ***") {
		t.Errorf("got\n%s", out)
	}

	ask(s, "", exitRefused, "secret", "rm", "pg")
	ask(s, "", exitOK, "job", "rm", "show", "--yes")
	if out := ask(s, "", exitNotFound, "secret", "rm", "file"); !strings.Contains(out, "for all apps") {
		t.Errorf("got\n%s", out)
	}

	ask(s, "", exitOK, "secret", "rm", "pg")
	ask(s, "", exitOK, "secret", "rm", "file", "--app", "shop")
	for name, text := range map[string]string{
		"a command": said.String(), "the log of a node": s.out.String(), "the log of the other": two.out.String(),
	} {
		if strings.Contains(text, value[:7]) || strings.Contains(text, strings.TrimSpace(key)) {
			t.Errorf("%s has the value or the key:\n%s", name, text)
		}
	}

	for name, c := range map[string]struct{ flag, env, want string }{
		"no file":      {filepath.Join(dir, "none"), "", "--secret-key-file: stat"},
		"no key in it": {file("bad", value), "", "line 1 is not a key"},
		"no key":       {"", value, "GOCRONTAB_SECRET_KEY: line 1 is not a key"},
	} {
		if code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn, secretKeyEnv + "=" + c.env}, "serve",
			"--"+secretKeyFlag, c.flag, "--listen", "127.0.0.1:0"); code != exitUsage ||
			!strings.Contains(out, c.want) || strings.Contains(out, value) {
			t.Errorf("%s: exit code %d\n%s", name, code, out)
		}
	}
}
