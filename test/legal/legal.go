// Package legal ties the rules for runs to the code: triggers refuse every change of a row that the
// rules forbid. Tests install them into their database. A refusal stays on record even if its
// transaction was rolled back and retried.
package legal

import (
	_ "embed"
	"strings"
	"testing"

	"go-crontab/sql"
)

//go:embed legal.sql
var triggers string

// Watch installs the triggers. The test fails if they have refused a change by its end.
func Watch(t testing.TB, db *sql.DB) {
	t.Helper()
	engine := recordEngine(t, db)
	for _, statement := range statements() {
		if _, err := db.Raw().Exec(strings.Replace(statement, "ENGINE=MyISAM", "ENGINE="+engine, 1)); err != nil {
			t.Fatalf("legal changes: %v\n%s", err, statement)
		}
	}

	t.Cleanup(func() {
		for _, what := range Refused(t, db) {
			t.Errorf("illegal %s", what)
		}
	})
}

// recordEngine returns the storage engine of the record.
func recordEngine(t testing.TB, db *sql.DB) string {
	t.Helper()
	if Keeps(t, db) {
		return "MyISAM"
	}
	return "InnoDB"
}

// Keeps reports whether a refusal stays on record. Members of MySQL Group Replication write only
// InnoDB tables, so there the record of a refusal is rolled back with its transaction. Such a refusal
// fails a test only if the code does not get over it.
func Keeps(t testing.TB, db *sql.DB) bool {
	t.Helper()
	var groups int
	err := db.Raw().QueryRow(`
		SELECT COUNT(*)
		FROM information_schema.plugins
		WHERE plugin_name = 'group_replication' AND plugin_status = 'ACTIVE'`).Scan(&groups)
	if err != nil {
		t.Fatalf("legal changes: %v", err)
	}
	return groups == 0
}

// Refused returns the refused changes.
func Refused(t testing.TB, db *sql.DB) (out []string) {
	t.Helper()
	rows, err := db.Raw().Query("SELECT what FROM illegal ORDER BY n")
	if err != nil {
		t.Fatalf("legal changes: %v", err)
	}
	defer rows.Close()

	for rows.Next() {
		var what string
		if err := rows.Scan(&what); err != nil {
			t.Fatalf("legal changes: %v", err)
		}
		out = append(out, what)
	}

	return out
}

// statements divides the file at empty lines: a trigger has semicolons inside.
func statements() (out []string) {
	for part := range strings.SplitSeq(triggers, "\n\n") {
		if strings.HasPrefix(part, "CREATE") {
			out = append(out, strings.TrimSuffix(strings.TrimSpace(part), ";"))
		}
	}
	return out
}
