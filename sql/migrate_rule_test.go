package sql

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// ruleSince is the first migration that must state for each change of a hot table that it locks
// nothing.
const ruleSince = 2

// TestMigrationsLockNothing: see docs/upgrades.md. A server that cannot obey ALGORITHM and LOCK
// refuses the statement, so its author learns that from the tests and not at night from a cluster.
func TestMigrationsLockNothing(t *testing.T) {
	files, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}

	for _, file := range files {
		number, _, _ := strings.Cut(file.Name(), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			t.Fatalf("%s: does not begin with a number", file.Name())
		}
		if version < ruleSince {
			continue
		}

		text, err := migrationFiles.ReadFile("migrations/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}

		for _, fault := range lockingStatements(string(text)) {
			t.Errorf("%s: %s", file.Name(), fault)
		}
	}
}

func TestLockingStatements(t *testing.T) {
	const may = ""
	for text, want := range map[string]string{
		"ALTER TABLE run ADD COLUMN x INT NOT NULL DEFAULT 0, ALGORITHM=INSTANT;":           may,
		"alter table run add key x (due),\n  algorithm = inplace, lock = none;":             may,
		"ALTER TABLE alert ADD KEY x (id);":                                                 may,
		"ALTER TABLE run_note ADD KEY x (id);":                                              may,
		"CREATE OR REPLACE VIEW v AS SELECT t.id FROM run t JOIN job j ON j.id = t.job_id;": may,
		"CREATE TABLE x (id INT COMMENT 'of run; see job');":                                may,
		"INSERT INTO setting (name, value) VALUES ('run', 'DELETE FROM run');":              may,
		"CREATE INDEX x ON output (due) ALGORITHM=INPLACE LOCK=NONE;":                       may,
		"INSERT INTO alert (app, job, output) VALUES ('a', 'b', 'c');":                      may,
		"DROP VIEW v_run, v_job;":                                                           may,
		"-- ALTER TABLE run ADD KEY x (due);\nCREATE TABLE x (id INT); -- UPDATE run":       may,
		"CREATE TABLE x (id INT);\n-- +goose Down\nALTER TABLE run DROP KEY x;":             may,

		"ALTER TABLE run ADD KEY x (due);":                                  "ALTER TABLE run",
		"ALTER TABLE `output` ADD COLUMN x INT;":                            "ALTER TABLE `output`",
		"ALTER TABLE job ADD COLUMN x INT, LOCK=NONE;":                      "ALTER TABLE job",
		"ALTER TABLE job ADD COLUMN x INT, ALGORITHM=INPLACE;":              "ALTER TABLE job",
		"ALTER TABLE job ADD COLUMN x INT, ALGORITHM=INPLACE, LOCK=SHARED;": "ALTER TABLE job",
		"ALTER TABLE job ADD COLUMN x INT, ALGORITHM=COPY, LOCK=NONE;":      "ALTER TABLE job",
		"ALTER TABLE job ADD COLUMN x INT, ALGORITHM=NOCOPY, LOCK=NONE;":    "ALTER TABLE job",
		"ALTER TABLE job ADD COLUMN x INT COMMENT 'ALGORITHM=INSTANT';":     "ALTER TABLE job",
		"ALTER TABLE job ADD COLUMN x INT; -- ALGORITHM=INSTANT":            "ALTER TABLE job",
		"CREATE TABLE x (id INT COMMENT 'one; two');\n" +
			"ALTER TABLE output ADD KEY x (counted);": "ALTER TABLE output",
		"ALTER TABLE alert ADD KEY x (id), ALGORITHM=INSTANT;\n" +
			"ALTER ONLINE TABLE run ADD KEY x (hash);": "ALTER ONLINE TABLE run",
		"CREATE INDEX x ON output (due);":                              "CREATE INDEX x ON output",
		"CREATE UNIQUE INDEX x ON run(due);":                           "CREATE UNIQUE INDEX x ON run",
		"DROP INDEX live ON run;":                                      "DROP INDEX live ON run",
		"UPDATE run SET hash = 0 WHERE hash > 5;":                      "UPDATE run",
		"UPDATE alert a JOIN job j ON j.id = a.job_id SET a.seen = 0;": "UPDATE alert a JOIN job",
		"DELETE FROM output WHERE due < 0;":                            "DELETE FROM output",
		"INSERT INTO x (id) SELECT id FROM output;":                    "INSERT INTO x (id) SELECT id FROM output",
		"OPTIMIZE TABLE job;":                                          "OPTIMIZE TABLE job",
		"LOCK TABLES run WRITE;":                                       "LOCK TABLES run",
		"DROP TABLE alert, output;":                                    "DROP TABLE alert, output",
		"TRUNCATE output;":                                             "TRUNCATE output",
		"RENAME TABLE run TO old_run;":                                 "RENAME TABLE run",
	} {
		got := lockingStatements("-- +goose Up\n" + text)
		if want == may && len(got) > 0 || want != may && (len(got) != 1 || !strings.HasPrefix(got[0], want)) {
			t.Errorf("%s\n\tgot  %q\n\twant %q", text, got, want)
		}
	}
}

var (
	// quoted and remarks match text that says nothing about locks. Whichever begins first ends the
	// other.
	quoted  = regexp.MustCompile(`'(?:[^']|'')*'|--[^\n]*`)
	hot     = "`?\\b(?:job|run|output)\\b`?"
	changes = regexp.MustCompile(`(?i)^(?:ALTER\s+(?:ONLINE\s+)?(?:IGNORE\s+)?TABLE\s+(?:IF\s+EXISTS\s+)?` + hot +
		`(?:\s|$)|(?:CREATE|DROP)\b[^(]*\bINDEX\b[^(]*\bON\s+` + hot + `)`)
	// A write locks rows until it has finished all its rows; ofTable locks the table itself.
	writes = regexp.MustCompile(`(?i)^(?:UPDATE\s+` + hot +
		`|(?:UPDATE|DELETE|REPLACE|INSERT)\b.*?\b(?:FROM|JOIN|INTO)\s+` + hot + `)(?:[\s,;(]|$)`)
	ofTable = regexp.MustCompile(`(?i)^(?:OPTIMIZE|TRUNCATE|RENAME|LOCK|DROP)\b.*?[\s,]` + hot + `(?:[\s,;]|$)`)
	instant = regexp.MustCompile(`(?i)\bALGORITHM\s*=\s*INSTANT\b`)
	inplace = regexp.MustCompile(`(?i)\bALGORITHM\s*=\s*INPLACE\b`)
	noLock  = regexp.MustCompile(`(?i)\bLOCK\s*=\s*NONE\b`)
)

// lockingStatements returns the statements of a migration that may lock a hot table for long, each
// with the correct form.
func lockingStatements(text string) (faults []string) {
	up, _, _ := strings.Cut(text, "-- +goose Down")
	plain := quoted.ReplaceAllStringFunc(up, func(s string) string {
		if s[0] == '\'' {
			return "''"
		}
		return ""
	})

	for _, s := range splitOutside(plain, ';') {
		s = strings.Join(strings.Fields(s), " ")
		switch {
		case changes.MatchString(s):
			if !instant.MatchString(s) && !(inplace.MatchString(s) && noLock.MatchString(s)) {
				faults = append(faults,
					s+
						"\n\tmust say ALGORITHM=INSTANT, or ALGORITHM=INPLACE, LOCK=NONE, so that the server refuses "+
						"instead of locking")
			}
		case writes.MatchString(s):
			faults = append(faults,
				s+
					"\n\tlocks rows of a hot table until it is through with all of them; let nodes do it in small "+
					"batches, as result.Tidier does")
		case ofTable.MatchString(s):
			faults = append(faults, s+"\n\tlocks a hot table as a whole")
		}
	}

	return faults
}
