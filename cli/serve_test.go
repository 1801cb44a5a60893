package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/sql"
	"go-crontab/test/testdb"

	"github.com/go-sql-driver/mysql"
	"github.com/spf13/cobra"
)

// migrated returns the DSN of an empty, migrated cluster.
func migrated(t *testing.T) (dsn string) {
	t.Helper()
	dsn = testdb.DSN(t)
	code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate", "--bootstrap", "-o", "json")
	var m migration
	if err := json.Unmarshal([]byte(out), &m); code != 0 || err != nil || m.Token == "" {
		t.Fatalf("migrate: code %d, %s", code, out)
	}
	adminTokens.Store(dsn, m.Token)
	return dsn
}

func execute(t *testing.T, dsn, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open(dsn, sql.DefaultTimeouts, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Raw().Exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}

func TestMigrateTellsWhatItDid(t *testing.T) {
	t.Parallel()

	dsn := testdb.DSN(t)
	file := filepath.Join(t.TempDir(), "dsn")
	if err := os.WriteFile(file, []byte(dsn+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	code, out := run(t, []string{"GOCRONTAB_DSN=", "GOCRONTAB_DSN_FILE=" + file}, "migrate", "-o", "json")
	var m migration
	if err := json.Unmarshal([]byte(out), &m); code != 0 || err != nil || m.From != 0 || m.To < 1 {
		t.Fatalf("got code %d, %s, want from 0 to 1 or more", code, out)
	}

	// The variable wins over the file, the flag over the variable.
	code, out = run(t, []string{"GOCRONTAB_DSN=nonsense", "GOCRONTAB_DSN_FILE=" + file}, "migrate", "--dsn", dsn)
	if want := fmt.Sprintf("the tables are already at version %d\n", m.To); code != 0 || out != want {
		t.Errorf("again: got code %d, %q, want %q", code, out, want)
	}
	if code, out = run(t, []string{"GOCRONTAB_DSN=nonsense", "GOCRONTAB_DSN_FILE=" + file},
		"migrate"); code != exitUsage {
		t.Errorf("variable and file: got code %d, %s; want the variable to win", code, out)
	}

	if code, out = run(t, nil, "migrate"); code != exitUsage || !strings.Contains(out, "GOCRONTAB_DSN") {
		t.Errorf("without a DSN: got code %d, %s", code, out)
	}

	execute(t, dsn, "INSERT INTO schema_version (version_id, is_applied) VALUES (9999, 1)")
	execute(t, dsn, "UPDATE setting SET value = '9999' WHERE name = 'compatible_since'")
	if code, out = run(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate"); code != exitRefused ||
		!strings.Contains(out, "use a newer go-crontab") {
		t.Errorf("newer schema: got code %d, %s", code, out)
	}

	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}

	c.DBName = "none_of_that_name"
	if code, out = run(t, []string{"GOCRONTAB_DSN=" + c.FormatDSN()}, "migrate"); code != exitFailed ||
		!strings.Contains(out, "CREATE DATABASE") {
		t.Errorf("no schema: got code %d, %s; want what to do", code, out)
	}
}

func TestJobsEndToEnd(t *testing.T) {
	t.Parallel()

	s := serve(t, migrated(t), "one").ready()
	steps := []struct {
		line string
		code int
		want string // in stdout or stderr
	}{
		{"job ls", 0, "There are no jobs yet"},
		{"job add hello --every 1s --label team=a -- echo hello, world", 0, "added default/hello, id 1, next due "},
		{"job add hello --every 1s -- true", exitRefused, "job rm default/hello"},
		{"job add bad --schedule 61 -- true", exitRefused, "schedule: "},
		{"job add bad --every 5 -- true", exitRefused, "every: "},
		{"job add ops/fail --schedule @yearly -o name -- exit 7", 0, "ops/fail\n"},
		{"job add later --at +10h --paused -- true", 0, "no scheduled runs until it is resumed"},
		{"job ls", 0, "default/hello"},
		{"job ls -o name --app ops", 0, "ops/fail\n"},
		{"job ls -o name --status paused", 0, "default/later\n"},
		{"job show hello", 0, "team=a"},
		{"job show 1 -o yaml", 0, "every: 1s\n"},
		{"job next fail", exitNotFound, `there is no job "fail"`},
		{"job next ops/fail -n 2 -o json", 0, `"due": "`},
		{"job next ops/fail", 0, "01-01 00:00:00+00:00"},
		{"job resume later", 0, "resumed default/later, next due"},
		{"job pause later -o name", 0, "default/later\n"},
		{"job run ops/fail --wait", exitFailed, "ops/fail failed: exit status 7"},
		{"job history ops/fail", 0, "exit status 7, manual"},
		{"run ls --job ops/fail --outcome failed", 0, "ops/fail"},
		{"run show ops/fail", 0, "exit code  7"},
		{"run show ops/fail", 0, "exit status 7  (exit_code)"},
		{"run show ops/fail -o json", 0, `"reason_code": "exit_code"`},
		{"run ls --outcome failed -o json", 0, `"reason_code": "exit_code"`},
		{"run logs hello", 0, "hello, world\n"},
		{"run logs later", exitNotFound, "has not run yet"},
		{"run show 4294967299999", exitNotFound, `there is no run or job "4294967299999"`},
		{"cluster -o name", 0, "one\n"},
		{"cluster", 0, "session expiry 5s"},
		{"job pause --app ops --reason disks --yes", 0, "paused ops/fail"},
		{"job pause --name-contains fail --dry-run", 0, "unchanged"},
		{"job resume --app ops --status paused --yes -o name", 0, "ops/fail\n"},
		{"job run --label team=a --dry-run -o json", 0, `"matched": 1`},
		{"job versions ops/fail -o name", 0, "1\n"},
		{"job diff ops/fail", 0, "versions 1 and 1 are the same"},
		{"job rollback ops/fail 1", 0, "already has the definition of version 1"},
		{"job rollback ops/fail 9", exitNotFound, "job versions ops/fail"},
		{"job rm hello -o name", 0, "default/hello\n"},
		{"job rm hello", exitNotFound, "there is no job"},
		{"job show 1", exitNotFound, "there is no job"},
	}

	for _, step := range steps {
		if step.line == "run logs hello" {
			await(t, "a run of hello", 20*time.Second, func() bool { return len(s.runs("hello")) > 0 })
		}
		got := s.ask(strings.Fields(step.line)...)
		if got.code != step.code || !strings.Contains(got.out+got.err, step.want) {
			t.Errorf("%s: got %+v; want code %d and %q", step.line, got, step.code, step.want)
		}
	}

	// Again through the real program, with its environment and exit codes.
	env := s.env()
	if code, out := run(t, env, "job", "run", "ops/fail", "-w"); code != exitFailed ||
		!strings.Contains(out, "exit status 7") {
		t.Errorf("job run -w: got code %d, %s", code, out)
	}
	if code, out := run(t, env, "job", "show", "nix"); code != exitNotFound {
		t.Errorf("job show nix: got code %d, %s", code, out)
	}

	if code, out := run(t, env, "__complete", "job", "show", "ops/"); code != 0 || !strings.Contains(out, "ops/fail") {
		t.Errorf("completion: got code %d, %s", code, out)
	}

	s.signal(syscall.SIGTERM)
	if code := s.exit(15 * time.Second); code != 0 {
		t.Errorf("SIGTERM: got code %d, want 0", code)
	}

	onlyJSON(t, s.out.String())
}

// TestAbort: a node that crashes or is aborted by a watchdog ends by a signal. Go's exit code for a
// crash is the code for invalid settings, after which the unit does not restart the node.
func TestAbort(t *testing.T) {
	t.Parallel()
	s := serve(t, migrated(t), "one").ready()
	s.signal(syscall.SIGABRT)
	if code := s.exit(15 * time.Second); code != -1 {
		t.Errorf("got exit code %d, want a signal", code)
	}
}

// TestSecondNodeOfAName: a second live node with the same name ends with exit code 4, so the unit
// does not restart it. After a kill -9 or a drain of the first node, the name is free.
func TestSecondNodeOfAName(t *testing.T) {
	t.Parallel()

	dsn := migrated(t)
	first := serve(t, dsn, "one").ready()

	second := serve(t, dsn, "one")
	if code := second.exit(15 * time.Second); code != exitRefused {
		t.Errorf("got exit code %d, want %d", code, exitRefused)
	}

	second.says(`another live node is named .{0,2}"one.{0,2}" \(address `+regexp.QuoteMeta(first.url)+`, pid `+
		strconv.Itoa(first.cmd.Process.Pid), 0)
	if got := status(first.url + "/readyz"); got != http.StatusOK {
		t.Errorf("the first node: got status %d, want that it is still ready", got)
	}

	first.signal(syscall.SIGKILL)
	first.exit(10 * time.Second)
	third := serve(t, dsn, "one").ready()

	third.signal(syscall.SIGTERM) // a fourth node that starts now waits for the end of the drain
	serve(t, dsn, "one").ready()
	if code := third.exit(15 * time.Second); code != 0 {
		t.Errorf("SIGTERM: got code %d, want 0", code)
	}
}

func TestDrainHandsOver(t *testing.T) {
	t.Parallel()

	dsn := migrated(t)
	a, b := serve(t, dsn, "a").ready(), serve(t, dsn, "b").ready()
	gate := filepath.Join(t.TempDir(), "gate")
	if got := a.ask("job", "add", "tick", "--every", "1s", "--overlap", "allow", "--", "true"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := a.ask("job", "add", "long", "--schedule", "@yearly", "--",
		"until [ -e "+gate+" ]; do sleep .05; done; echo done"); got.code != 0 {
		t.Fatalf("%+v", got)
	}

	var on *server // the node that executes the long run
	if got := a.ask("job", "run", "long"); got.code != 0 {
		t.Fatalf("%+v", got)
	}

	await(t, "long is running", 20*time.Second, func() bool {
		for name, s := range map[string]*server{"a": a, "b": b} {
			if got := a.ask("run", "ls", "--state", "running", "--node", name, "-j", "long", "-o",
				"name"); strings.TrimSpace(got.out) != "" {
				on = s
			}
		}
		return on != nil
	})

	other := a
	if on == a {
		other = b
	}

	on.signal(syscall.SIGTERM)
	await(t, "not ready while draining", 15*time.Second,
		func() bool { return status(on.url+"/readyz") != http.StatusOK })
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := on.exit(15 * time.Second); code != 0 {
		t.Fatalf("drain: got code %d, want 0", code)
	}

	if runs := other.runs("long"); len(runs) != 1 || runs[0].Outcome != job.Succeeded {
		t.Errorf("the command under way: got %+v, want it succeeded", runs)
	}

	drained := time.Now()
	await(t, "every due time succeeded once, also after the drain", 20*time.Second, func() bool {
		runs := other.runs("tick")
		for i, r := range runs {
			if r.Outcome != job.Succeeded || i > 0 && runs[i-1].Due.Sub(r.Due) != time.Second {
				return false
			}
		}
		return len(runs) > 0 && runs[0].Due.After(drained)
	})

	onlyJSON(t, on.out.String())
}

func TestSecondSignalKillsCommands(t *testing.T) {
	t.Parallel()

	dsn := migrated(t)
	s := serve(t, dsn, "one", "--drain-grace", "1m").ready()
	if got := s.ask("job", "add", "forever", "--schedule", "@yearly", "--", "sleep 600"); got.code != 0 {
		t.Fatalf("%+v", got)
	}

	s.ask("job", "run", "forever")
	await(t, "it is running", 20*time.Second,
		func() bool { return s.ask("run", "ls", "--state", "running", "-o", "name").out != "" })
	s.signal(syscall.SIGINT)
	s.says("draining", 15*time.Second)

	select {
	case <-s.ended:
		t.Fatal("the node did not wait for its command")
	case <-time.After(500 * time.Millisecond):
	}

	s.signal(syscall.SIGINT)
	if code := s.exit(10 * time.Second); code != 0 {
		t.Errorf("got code %d, want 0", code)
	}

	next := serve(t, dsn, "two").ready()
	if runs := next.runs("forever"); len(runs) != 1 || runs[0].Outcome != job.Killed {
		t.Errorf("got %+v, want it killed", runs)
	}
}

func TestEndOfInputDrains(t *testing.T) {
	t.Parallel()
	s := serve(t, migrated(t), "one", "--stop-on-eof").ready()
	if err := s.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if code := s.exit(10 * time.Second); code != 0 {
		t.Errorf("got code %d, want 0", code)
	}
	s.says("session ended", time.Second)
}

func TestRefusedJoin(t *testing.T) {
	t.Parallel()

	refused := func(dsn, want string, args ...string) {
		t.Helper()
		args = append([]string{
			"serve", "--node", "x", "--listen", "127.0.0.1:0", "--session-expiry", "5s", "--state-dir", t.TempDir(),
		}, args...)
		code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, args...)
		if code != exitRefused || !strings.Contains(out, "error: this node cannot join: ") ||
			!strings.Contains(out, want) {
			t.Errorf("got code %d, %s; want code %d and %q", code, out, exitRefused, want)
		}
	}

	dsn := migrated(t)
	execute(t, dsn, "DELETE FROM locks")
	refused(dsn, "; restore it: go-crontab migrate")
	if code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate"); code != 0 {
		t.Fatalf("migrate: code %d, %s", code, out)
	}

	s := serve(t, dsn, "one").ready()
	refused(dsn, "start it with --session-expiry=5s", "--session-expiry", "6s")
	s.signal(syscall.SIGTERM)
	s.exit(10 * time.Second)
	execute(t, dsn, "INSERT INTO schema_version (version_id, is_applied) VALUES (9999, 1)")
	execute(t, dsn, "UPDATE setting SET value = '9999' WHERE name = 'compatible_since'")
	refused(dsn, "use a newer go-crontab")
}

// TestWaitsForMigrate: nodes may start before the tables exist.
func TestWaitsForMigrate(t *testing.T) {
	t.Parallel()
	dsn := testdb.DSN(t)
	s := serve(t, dsn, "one")
	s.says("the schema is empty; waiting for its tables, create them with: go-crontab migrate", 15*time.Second)
	if code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate"); code != 0 {
		t.Fatalf("migrate: code %d, %s", code, out)
	}
	s.ready()
}

func TestAnswersBeforeMySQLDoes(t *testing.T) {
	t.Parallel()

	s := serve(t, "u:hunter2@tcp(127.0.0.1:1)/db", "one")
	if got := status(s.url + "/healthz"); got != http.StatusOK {
		t.Errorf("healthz: got %d, want 200", got)
	}
	if got := status(s.url + "/readyz"); got != http.StatusServiceUnavailable {
		t.Errorf("readyz: got %d, want 503", got)
	}
	if got := s.ask("job", "add", "x", "--every", "5s", "--", "true"); got.code != exitFailed ||
		!strings.Contains(got.err, "use another node") {
		t.Errorf("job add: got %+v, want failed and what to do", got)
	}

	s.says("MySQL is not ready for this node yet", 15*time.Second)
	taken := strings.TrimPrefix(s.url, "http://")
	code, out := run(t, []string{"GOCRONTAB_DSN=u@tcp(127.0.0.1:1)/db"}, "serve", "--listen", taken)
	if code != exitFailed || !strings.Contains(out, "address already in use") || !strings.Contains(out, "--listen ") {
		t.Errorf("port in use: got code %d, %s", code, out)
	}

	s.signal(syscall.SIGTERM)
	if code := s.exit(10 * time.Second); code != 0 {
		t.Errorf("SIGTERM while waiting: got code %d, want 0", code)
	}
	if strings.Contains(s.out.String(), "hunter2") {
		t.Errorf("the password is in the log: %s", s.out.String())
	}

	onlyJSON(t, s.out.String())
}

// Try a valid password, a wrong one, and one in an invalid DSN.
func TestPasswordIsNeverShown(t *testing.T) {
	t.Parallel()

	const password = "hunter2-€-geheim"
	dsn := testdb.DSN(t)
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}

	user := c.DBName[max(0, len(c.DBName)-20):]
	for _, statement := range []string{
		"CREATE USER '%s'@'%%' IDENTIFIED BY '" + password + "'", "GRANT ALL ON *.* TO '%s'@'%%'",
	} {
		execute(t, dsn, fmt.Sprintf(statement, user))
	}

	t.Cleanup(func() { execute(t, dsn, fmt.Sprintf("DROP USER '%s'@'%%'", user)) })

	c.User, c.Passwd = user, password
	good := c.FormatDSN()
	c.Passwd = "wrong-" + password
	bad := c.FormatDSN()
	var all strings.Builder
	keep := func(_ int, out string) { all.WriteString(out) }
	_, out := run(t, nil, "migrate", "--bootstrap", "-o", "json", "--dsn", good)
	keep(0, out)
	var m migration
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatalf("migrate: %s", out)
	}

	adminTokens.Store(good, m.Token)
	s := serve(t, good, "one", "--log-level", "debug").ready()
	s.ask("job", "add", "env", "--schedule", "@yearly", "--", "env; cat /proc/self/environ")
	got := s.ask("job", "run", "env", "--wait")
	if got.code != 0 || !strings.Contains(got.out, "GOCRONTAB_JOB=env") {
		t.Errorf("job run: got %+v", got)
	}

	all.WriteString(got.out + got.err)
	s.signal(syscall.SIGTERM)
	s.exit(10 * time.Second)
	all.WriteString(s.out.String())
	keep(run(t, []string{"GOCRONTAB_DSN=" + bad}, "migrate"))

	for _, broken := range []string{
		"u:" + password + "@h/d", "u:a/" + password + "@tcp(h)", "u:" + password + "@tcp(h", password,
		"mysql://u:" + password + "@h/d",
	} {
		code, out := run(t, []string{"GOCRONTAB_DSN=" + broken}, "serve")
		if code != exitUsage {
			t.Errorf("DSN %q: got code %d, want %d", broken, code, exitUsage)
		}
		keep(code, out)
	}

	wrong := serve(t, bad, "two")
	wrong.says("Access denied", 20*time.Second)
	wrong.signal(syscall.SIGTERM)
	wrong.exit(10 * time.Second)
	all.WriteString(wrong.out.String())

	for _, part := range []string{"hunter2", "geheim"} {
		if i := strings.Index(all.String(), part); i >= 0 {
			t.Errorf("%q is shown: …%s…", part, all.String()[max(0, i-200):min(i+50, all.Len())])
		}
	}
}

func TestNodeEndsWithItsAPI(t *testing.T) {
	t.Parallel()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	l.Close() // makes the API fail immediately
	s := serveSettings{dsn: "u@tcp(127.0.0.1:1)/db", node: "one"}
	var log written
	s.logging = logging{level: "info", format: "json"}
	n, err := node.New(node.Config{DSN: s.dsn, Name: s.node, Log: s.logger(&log)})
	if err != nil {
		t.Fatal(err)
	}

	stop := onSignals()
	defer stop.forget()

	done := make(chan error, 1)
	go func() { done <- s.run(n, l, nil, stop, s.logger(&log)) }()
	select {
	case err := <-done:
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v, want why the API ended", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the node lives on without its API")
	}

	if cause := context.Cause(stop.drain); cause == nil || !strings.Contains(cause.Error(), "the API stopped") {
		t.Errorf("got a drain because of %v, want that of the API's end", cause)
	}
}

func TestStateDirIsTakenOnce(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "state")
	var log written
	l := (&logging{level: "info", format: "json"}).logger(&log)
	got, release, err := takeStateDir(dir, "x", l)
	if err != nil || got != dir {
		t.Fatalf("got %q, %v", got, err)
	}

	if _, _, err := takeStateDir(dir, "x", l); !errors.Is(err, errTaken) {
		t.Errorf("while it is taken: got %v, want %v", err, errTaken)
	}

	release()
	if _, release, err := takeStateDir(dir, "x", l); err != nil {
		t.Errorf("after it was given back: %v", err)
	} else {
		release()
	}

	for node, want := range map[string]string{"web-1": "web-1", "a/b": "a%2Fb", "..": "node-..", "你": "%E4%BD%A0"} {
		if got := fileName(node); got != want {
			t.Errorf("%q: got %q, want %q", node, got, want)
		}
	}
}

func TestFlagWinsOverVariable(t *testing.T) { // not parallel: it sets the environment
	t.Setenv("GOCRONTAB_SLOTS", "7")
	t.Setenv("GOCRONTAB_NODE", "from-env")
	t.Setenv("GOCRONTAB_LISTEN", "")
	var s serveSettings
	cmd := &cobra.Command{}
	s.flags(cmd)
	if err := cmd.ParseFlags([]string{"--node", "from-flag"}); err != nil {
		t.Fatal(err)
	}

	if err := takeEnv(cmd.Flags(), serveVariables, []string{"dsn"}); err != nil {
		t.Fatal(err)
	}
	if s.slots != 7 || s.node != "from-flag" || s.listen != "127.0.0.1:8610" {
		t.Errorf("got slots %d, node %q, listen %q; want 7, from-flag, and the default for an empty one", s.slots,
			s.node, s.listen)
	}

	t.Setenv("GOCRONTAB_LOG_LEVEL", "loud")
	if got := command("serve"); got.code != exitUsage || !strings.Contains(got.err, "GOCRONTAB_LOG_LEVEL") ||
		!strings.Contains(got.err, "debug, info, warn, error") {
		t.Errorf("got %+v, want usage, the variable and what it takes", got)
	}
}

// TestProbeListen: the separate listener answers probes and nothing else.
func TestProbeListen(t *testing.T) {
	t.Parallel()

	s := serve(t, migrated(t), "probed", "--probe-listen", "127.0.0.1:0")
	probes := s.says(`"probes":"(http://[^"]+)"`, 20*time.Second)
	await(t, "ready", 20*time.Second, func() bool { return status(probes+"/readyz") == http.StatusOK })

	for path, want := range map[string]int{"/healthz": 200, "/api/v1/jobs": 404, "/": 404} {
		if got := status(probes + path); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}

	s.signal(syscall.SIGTERM)
	if code := s.exit(20 * time.Second); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}
