package read

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/test/testdb"
)

// epoch is the due time of the first run of a filled table. The other runs follow 1 ms apart.
const epoch job.Micros = 1_700_000_000_000_000

// fixture is a schema with the tables of the trip.
type fixture struct {
	*testing.T
	db   *DB // with one connection, so that a test can count the rows that the server reads for it
	asks int64
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	db, err := sql.Open(testdb.DSN(t), sql.MigrateTimeouts, 1)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { db.Close() })
	f := &fixture{T: t, db: &DB{db}}
	if _, _, err := f.db.Migrate(context.Background()); err != nil {
		f.Fatal(err)
	}
	return f
}

// The types of readers on a database of a test.
func watch(db *DB) Watch         { return Watch{db} }
func checks(db *DB) Checks       { return Checks{db} }
func retention(db *DB) Retention { return Retention{db} }

func (f *fixture) exec(statement string, args ...any) {
	f.Helper()
	if _, err := f.db.Raw().Exec(statement, args...); err != nil {
		f.Fatalf("%s: %v", statement, err)
	}
}

func (f *fixture) number(query string, args ...any) (n int64) {
	f.Helper()
	if err := f.db.Raw().QueryRow(query, args...).Scan(&n); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
	return n
}

// numbers fills a table with the numbers 1 to most.
func (f *fixture) numbers(most int) {
	f.exec("CREATE TABLE IF NOT EXISTS num (n INT PRIMARY KEY) ENGINE=InnoDB")
	f.exec("TRUNCATE TABLE num")
	f.exec("INSERT INTO num VALUES (1)")
	for n := 1; n < most; n *= 2 {
		f.exec("INSERT INTO num SELECT n + ? FROM num WHERE n <= ?", n, min(n, most-n))
	}
}

// jobs makes n jobs: every 97th in app rare, the others in 40 apps. Rare properties are spread
// evenly.
func (f *fixture) jobs(n int) {
	f.numbers(max(n, 41))
	f.exec("INSERT INTO app (id, name) SELECT n, IF(n = 41, 'rare', CONCAT('app-', n)) FROM num WHERE n <= 41")
	f.exec(`INSERT INTO job (id, app_id, name, hash, next_due, paused, error, living, begun_to)
		SELECT n, IF(n MOD 97 = 1, 41, 1 + n MOD 40),
			CONCAT(ELT(1 + n MOD 5, 'nightly', 'backup', 'report', 'sync', 'ping'), '-', n),
			n MOD 1024, IF(n MOD 401 = 5 OR n MOD 503 = 6 OR n MOD 601 = 7, NULL, 9), n MOD 401 = 5,
				IF(n MOD 503 = 6, 'no such zone', ''),
			IF(n MOD 50 = 49, NULL, 1), 0
		FROM num WHERE n <= ?`, n)

	f.exec("INSERT INTO job_pause (job_id, since, who) SELECT id, 1, 'ann' FROM job WHERE paused")

	spec := job.Spec{App: "a", Name: "j", Command: "true", Labels: map[string]string{"env": "prod"}}
	text, err := json.Marshal(&spec)
	if err != nil {
		f.Fatal(err)
	}

	f.exec(`
		INSERT INTO job_version (job_id, version, definition, created)
		SELECT id, 1, ?, 1
		FROM job`, string(text))

	for _, x := range []struct {
		where string
		in    func(app string) job.Term
	}{
		{"id MOD 2 = 0", func(app string) job.Term { return job.LabelTerm(app, "env", "prod") }},
		{"id MOD 397 = 3", func(app string) job.Term { return job.LabelTerm(app, "team", "rare") }},
		{"id MOD 3 = 0", func(app string) job.Term { return job.OwnerTerm(app, "many") }},
		{"id MOD 91 = 2", func(app string) job.Term { return job.GroupTerm(app, "narrow") }},
	} {
		for _, app := range []string{"", "app-7", "rare"} {
			term := x.in(app)
			f.exec("INSERT INTO job_term (term, job_id) SELECT ?, j.id FROM job j JOIN app a ON a.id = j.app_id"+
				" WHERE j.living = 1 AND j."+x.where+" AND (? = '' OR a.name = ?)", term[:], app, app)
		}
	}

	f.exec(`
		INSERT INTO job_part (part, job_id, pos)
		SELECT SUBSTRING(name, n), id, n - 1
		FROM job
		JOIN num ON n <= CHAR_LENGTH(name)
		WHERE n <= 32 AND living = 1`)
}

// runs makes n ended runs, a fifth of job 2 and the others of all jobs. One in 50 was skipped, one
// in 4,999 failed, one in 503 was requested, and one in 5,009 was on another node. The next 60 runs
// are executing.
func (f *fixture) runs(jobs, n int) {
	f.numbers(n + 60)
	f.exec(`
		INSERT INTO life (id, session, node, started)
		SELECT n, UNHEX(LPAD(HEX(n), 32, '0')), IF(n = 4, 'elsewhere', CONCAT('node-', n)), 1
		FROM num
		WHERE n <= 4`)

	f.exec(`INSERT INTO run (id, job_id, app_id, due, due_now, hash, kind, request, state, owner, claim, session,
		started, ended, outcome, final, exit_code)
		SELECT n, IF(n MOD 5 = 0, 2, 1 + n * 7 MOD ?), 1, ? + n * 1000, ? + n * 1000, n MOD 7,
			IF(n MOD 503 = 1, 'manual', 'schedule'),
			IF(n MOD 503 = 1, n, 0), IF(n > ?, 'executing', 'ended'), IF(n > ?, 1 + n MOD 3, -2), 1,
				IF(n MOD 5009 = 1, 4, 1 + n MOD 3),
			? + n * 1000 + 10, IF(n > ?, 0, ? + n * 1000 + 2000),
			IF(n > ?, 'none', IF(n MOD 4999 = 1, 'failed', IF(n MOD 50 = 7, 'skipped', 'succeeded'))), n <= ?,
				IF(n MOD 4999 = 1, 1, 0)
		FROM num`, jobs, int64(epoch), int64(epoch), n, n, int64(epoch), n, int64(epoch), n, n)

	f.exec("UPDATE run r JOIN job j ON j.id = r.job_id SET r.app_id = j.app_id")
	f.exec(`
		INSERT INTO notable (outcome, due, run_id, app_id, job_id)
		SELECT outcome, due, id, app_id, job_id
		FROM run
		WHERE outcome NOT IN ('succeeded', 'none')`)

	f.exec("ANALYZE TABLE run") // otherwise the server reads all entries to list the owners of runs
}

// reads counts the rows that the server reads while do runs.
func (f *fixture) reads(do func()) int64 {
	f.Helper()
	if f.asks == 0 {
		before := testdb.Reads(f.T, f.db.Raw())
		f.asks = testdb.Reads(f.T, f.db.Raw()) - before // the question reads rows itself
	}
	before := testdb.Reads(f.T, f.db.Raw())
	do()
	return testdb.Reads(f.T, f.db.Raw()) - before - f.asks
}

// readsAtMost fails the test if the server reads more rows while do runs.
func (f *fixture) readsAtMost(most int64, what string, do func()) {
	f.Helper()
	n := f.reads(do)
	f.Logf("%-50s %6d rows read, at most %d", what, n, most)
	if n > most {
		f.Errorf("%s: the server read %d rows, want at most %d", what, n, most)
	}
}

// must returns a value, or ends the test with its error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func ids[T any](rows []T, id func(*T) int64) string {
	var out []string
	for i := range rows {
		out = append(out, fmt.Sprint(id(&rows[i])))
	}
	return strings.Join(out, " ")
}

// texts reads one column.
func (f *fixture) texts(query string, args ...any) (out []string) {
	f.Helper()
	rows, err := f.db.Raw().Query(query, args...)
	if err != nil {
		f.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			f.Fatal(err)
		}
		out = append(out, text)
	}

	return out
}
