package cli

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go-crontab/sql"
	"go-crontab/test/testdb"

	"github.com/go-sql-driver/mysql"
)

// documentedGrants returns the SQL statements in docs/security.md that create the MySQL users.
func documentedGrants(t *testing.T) []string {
	t.Helper()

	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}

	_, section, _ := strings.Cut(string(page), "\n## MySQL\n")
	_, block, found := strings.Cut(section, "```sql\n")
	block, _, closed := strings.Cut(block, "```")
	if !found || !closed {
		t.Fatal("docs/security.md has no statements for MySQL")
	}

	var out []string
	for statement := range strings.SplitSeq(block, ";") {
		if statement = strings.Join(strings.Fields(statement), " "); statement != "" {
			out = append(out, statement)
		}
	}

	if len(out) != 3 {
		t.Fatalf("got the statements %q", out)
	}

	return out
}

// TestDocumentedGrants: with the two documented users a cluster works, a node's DSN cannot change
// the audit, and changes by the other user are detected.
func TestDocumentedGrants(t *testing.T) {
	t.Parallel()

	server := testdb.Server(t)
	if err := server.CreateSchema(t.Context(), "crontab"); err != nil {
		t.Fatal(err)
	}

	root := server.DSN("crontab")
	for _, statement := range documentedGrants(t) {
		execute(t, root, strings.ReplaceAll(statement, "'…'", "'secret'"))
	}

	as := func(user string) string {
		c, err := mysql.ParseDSN(root)
		if err != nil {
			t.Fatal(err)
		}
		c.User, c.Passwd = user, "secret"
		return c.FormatDSN()
	}

	nodes, migrator := as("crontab"), as("crontab_migrate")
	direct := []string{"GOCRONTAB_DSN=" + nodes}

	migrate := func(args ...string) string {
		t.Helper()
		code, out := run(t, []string{"GOCRONTAB_DSN=" + migrator}, append([]string{"migrate"}, args...)...)
		if code != 0 {
			t.Fatalf("migrate %v: code %d, %s", args, code, out)
		}
		return out
	}

	migrate()

	// long ago
	execute(t, root,
		"INSERT INTO audit (at, who, action, kind) VALUES (1, 'ann', 'update', 'job'), (2, 'ann', 'update', 'job')")

	for statement := range strings.SplitSeq(migrate("--print-grants", "crontab"), ";\n") {
		if statement != "" {
			execute(t, root, statement)
		}
	}

	token := strings.TrimSpace(regexp.MustCompile(`gocrontab_[0-9A-Za-z]+`).FindString(migrate("--bootstrap")))
	adminTokens.Store(nodes, token)
	one, two := serve(t, nodes, "one").ready(), serve(t, nodes, "two").ready()
	one.ask("job", "add", "tick", "--every", "1s", "--", "echo tick")
	if got := one.ask("job", "run", "tick", "--wait"); got.code != 0 {
		t.Fatalf("job run: %+v", got)
	}

	for _, args := range [][]string{
		{"job", "pause", "tick"}, {"job", "resume", "tick"}, {"retention", "set", "--age", "24h"},
		{"job", "rm", "tick", "--yes"},
	} {
		if got := one.ask(args...); got.code != 0 {
			t.Errorf("%v: %+v", args, got)
		}
	}

	two.signal(syscall.SIGKILL)
	two.exit(10 * time.Second)
	await(t, "the end of a killed node in the audit", time.Minute, func() bool {
		return strings.Contains(one.ask("audit", "--action", "reap").out, "two")
	})
	await(t, "a chain with all lines", time.Minute, func() bool {
		_, out := run(t, direct, "audit", "verify", "--direct")
		return regexp.MustCompile(`Verified \d\d+ links, from 1 `).MatchString(out)
	})

	if code, out := run(t, direct, "doctor", "--direct"); strings.Contains(out, "(grants)") ||
		strings.Contains(out, "(audit-chain)") && !strings.Contains(out, "lines are kept for 400 days") {
		t.Errorf("doctor: code %d, %s", code, out)
	}

	for _, statement := range []string{
		"DELETE FROM audit", "UPDATE audit SET who = 'nobody'",
		"REPLACE INTO audit (id, at, who, action, kind) VALUES (1, 1, '', '', '')", "TRUNCATE TABLE audit",
		"DROP TABLE audit",
		"DELETE FROM audit_chain", "UPDATE audit_chain SET hash = ''", "TRUNCATE TABLE audit_chain",
		"INSERT INTO audit (id, at, who, action, kind) VALUES (1, 1, '', '', '') ON DUPLICATE KEY UPDATE who = ''",
	} {
		if err := executed(nodes, statement); err == nil || !strings.Contains(err.Error(), "denied") {
			t.Errorf("as a node, %s: got %v, want it denied", statement, err)
		}
	}

	if out := migrate(); !strings.Contains(out, "removed 2 audit entries older than 400 days") {
		t.Errorf("migrate, with old lines: %s", out)
	}
	if got := one.ask("audit", "verify"); got.code != 0 || !strings.Contains(got.out, "from 2 ") {
		t.Errorf("without the old lines: %+v", got)
	}

	head := regexp.MustCompile(`\d+:[0-9a-f]{64}`).FindString(one.ask("audit", "verify").out)
	if got := one.ask("audit", "verify", "--head", head); got.code != 0 {
		t.Errorf("the head %s: %+v", head, got)
	}

	execute(t, migrator, "DELETE FROM audit WHERE action = 'pause'")
	if got := one.ask("audit", "verify"); got.code != exitFailed || !strings.Contains(got.out, "is missing") {
		t.Errorf("a line was removed by hand: %+v", got)
	}
	if got := one.ask("doctor"); got.code == 0 || !strings.Contains(got.out, "(audit-chain)") {
		t.Errorf("a line was removed by hand, doctor: %+v", got)
	}

	execute(t, migrator,
		"DELETE a, c FROM audit a JOIN audit_chain c ON c.line = a.id WHERE c.seq >= "+strings.Split(head, ":")[0])
	if code, out := run(t, direct, "audit", "verify", "--direct", "--head", head); code != exitFailed ||
		!regexp.MustCompile(`ends at link|has the hash|is missing`).MatchString(out) {
		t.Errorf("the newest lines were removed: code %d, %s", code, out)
	}
}

// executed runs an SQL statement and returns its error.
func executed(dsn, statement string) error {
	db, err := sql.Open(dsn, sql.DefaultTimeouts, 1)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Raw().Exec(statement)
	return err
}
