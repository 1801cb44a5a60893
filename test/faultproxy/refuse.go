package faultproxy

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/go-sql-driver/mysql"
)

// A Schema remembers the contents of a schema after its migrations, and can restore them.
type Schema struct {
	db     *sql.DB
	tables []string
	seeded map[string]bool // tables with rows from a migration
}

const (
	// firstID and idsEach give every table a range of its own for generated ids. So an id is
	// recognised anywhere: in another table's column, negated, or in a text.
	firstID = 1_100_000_000
	idsEach = 10_000_000

	// FirstLaunch is where a test's counter of launches should begin, so that launches are
	// recognised as well.
	FirstLaunch = 2_100_000_000
)

const seedPrefix = "seed_"

// unreset lists the tables that no change in a test touches.
var unreset = []string{"locks", "goose_db_version"}

// NewSchema takes a schema just after its migrations. The pool must not lead through a proxy with
// rules.
func NewSchema(t testing.TB, db *sql.DB) *Schema {
	t.Helper()
	s := &Schema{db: db, seeded: map[string]bool{}}
	for _, table := range column(t, db, "SELECT TABLE_NAME FROM information_schema.TABLES"+
		" WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE' ORDER BY TABLE_NAME") {
		if !slices.Contains(unreset, table) {
			s.tables = append(s.tables, table)
		}
	}

	generated := column(t, db, "SELECT TABLE_NAME FROM information_schema.COLUMNS"+
		" WHERE TABLE_SCHEMA = DATABASE() AND EXTRA LIKE '%auto_increment%'")

	for i, table := range s.tables {
		if slices.Contains(generated, table) {
			run(t, db, fmt.Sprintf("ALTER TABLE %s AUTO_INCREMENT = %d", table, firstID+i*idsEach))
		}
		if len(column(t, db, "SELECT 1 FROM "+table+" LIMIT 1")) > 0 {
			s.seeded[table] = true
			run(t, db, "CREATE TABLE "+seedPrefix+table+" LIKE "+table) // with its key, which groups of servers need
			run(t, db, "INSERT INTO "+seedPrefix+table+" SELECT * FROM "+table)
		}
	}

	return s
}

// Reset removes all rows except those from the migrations.
func (s *Schema) Reset(t testing.TB) {
	t.Helper()
	tx, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()

	do := func(statement string) {
		t.Helper()
		if _, err := tx.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}

	for _, table := range s.filled(t) {
		do("DELETE FROM " + table)
	}

	for table := range s.seeded {
		do("INSERT INTO " + table + " SELECT * FROM " + seedPrefix + table)
	}

	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// filled returns the tables that have rows.
func (s *Schema) filled(t testing.TB) []string {
	t.Helper()
	var each []string
	for _, table := range s.tables {
		each = append(each, fmt.Sprintf("SELECT '%s' FROM DUAL WHERE EXISTS (SELECT 1 FROM %s)", table, table))
	}
	return column(t, s.db, strings.Join(each, " UNION ALL "))
}

// Dump returns every row of every table as a sorted list of lines, and the answer as one more line.
// An id becomes its table's name and its rank there, and a random UUID becomes "uuid", because both
// differ between two otherwise equal histories.
func (s *Schema) Dump(t testing.TB, answer any) []string {
	t.Helper()
	said, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}

	lines := []string{"answer " + string(said)}
	for _, table := range s.filled(t) {
		lines = append(lines, s.rows(t, table)...)
	}

	text := s.nameIDs(uuids.ReplaceAllString(strings.Join(lines, "\x00"), "uuid"))
	lines = strings.Split(text, "\x00")
	slices.Sort(lines)
	return lines
}

var (
	uuids = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	ids   = regexp.MustCompile(`\b[12][0-9]{9}\b`)
)

func (s *Schema) nameIDs(text string) string {
	seen := ids.FindAllString(text, -1)
	slices.Sort(seen)
	seen = slices.Compact(seen)

	names, count := map[string]string{}, map[string]int{}
	for _, id := range seen {
		if kind := s.kind(id); kind != "" {
			count[kind]++
			names[id] = fmt.Sprintf("%s#%d", kind, count[kind])
		}
	}
	return ids.ReplaceAllStringFunc(text, func(id string) string { return cmp.Or(names[id], id) })
}

// kind returns the name of the table, or "launch", for a number of ten digits that is an id;
// otherwise "".
func (s *Schema) kind(id string) string {
	var n int
	_, _ = fmt.Sscan(id, &n)
	switch i := (n - firstID) / idsEach; {
	case n >= FirstLaunch && n < FirstLaunch+idsEach:
		return "launch"
	case n >= firstID && i < len(s.tables):
		return s.tables[i]
	}
	return ""
}

func (s *Schema) rows(t testing.TB, table string) (lines []string) {
	t.Helper()
	rows, err := s.db.Query("SELECT * FROM " + table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}

	for rows.Next() {
		values, into := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}

		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}

		line := table
		for i, v := range values {
			if table == "request" && columns[i] == "digest" || table == "ending" && columns[i] != "id" {
				continue // a digest of a text with ids; ids in bytes and the server's clock
			}
			line += " " + columns[i] + "=" + printable(v)
		}

		lines = append(lines, line)
	}

	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}

	return lines
}

func printable(v []byte) string {
	switch {
	case v == nil:
		return "NULL"
	case utf8.Valid(v) && !slices.Contains(v, 0):
		return string(v)
	}
	return fmt.Sprintf("%x", v)
}

func run(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func column(t testing.TB, db *sql.DB, query string) (out []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()

	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}

	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}

	return out
}

// InTransaction matches the statements of transactions, including COMMIT.
func InTransaction(c Command) bool {
	return c.IsStatement() && !c.rollsBack() && (c.begins() || c.Tx != nil)
}

// nth matches the n-th statement of transactions, counted from 1; n = 0 matches no statement.
type nth struct {
	mu   sync.Mutex
	n    int
	seen int
	sql  string // the matched statement
}

func (m *nth) match(c Command) bool {
	if !InTransaction(c) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.seen++; m.seen != m.n {
		return false
	}

	m.sql = c.SQL
	return true
}

// mostStatements limits the statements of a change, in case the change never ends.
const mostStatements = 200

// RefuseEach makes a change once undisturbed, and then once for each statement of its transactions.
// Each time it refuses that statement with a deadlock (error 1213): the server rolls the
// transaction back, and the closure runs again. The rows and the answer must then equal those of
// the undisturbed change.
//
// RefuseEach calls prepare on a schema that was just reset. prepare inserts the rows that the
// change needs, through connections of p. The change returns its answer to the caller.
func RefuseEach(t *testing.T, s *Schema, prepare func() (p *Proxy, change func() (any, error))) {
	t.Helper()
	var undisturbed []string
	for k := 0; k <= mostStatements; k++ {
		s.Reset(t)
		p, change := prepare()

		refused := &nth{n: k}
		injected := p.Add(Rule{Match: refused.match,
			Action: Error(1213, "40001", "Deadlock found when trying to get lock")})
		answer, err := change()
		injected.Remove()

		if err != nil {
			t.Errorf("statement %d refused (%.80s): %v", k, refused.sql, err)
			if k == 0 {
				return
			}
			continue
		}

		got := s.Dump(t, answer)
		switch {
		case k == 0:
			undisturbed = got
		case !slices.Equal(got, undisturbed):
			t.Errorf("statement %d refused (%.80s): rows that are not those of an undisturbed change (-),"+
				" and instead of them (+):\n%s",
				k, refused.sql, difference(undisturbed, got))
		}

		if k > 0 && injected.Fired() == 0 {
			if k == 1 {
				t.Error("it has no statement in a transaction")
			}
			return
		}
	}

	t.Errorf("it has more than %d statements", mostStatements)
}

func difference(before, after []string) string {
	var out strings.Builder
	for _, line := range before {
		if !slices.Contains(after, line) {
			fmt.Fprintln(&out, "-", line)
		}
	}

	for _, line := range after {
		if !slices.Contains(before, line) {
			fmt.Fprintln(&out, "+", line)
		}
	}

	return out.String()
}

// StandStill returns a DSN on whose connections MySQL's clock always shows the same time, in
// seconds of Unix time.
func StandStill(dsn string, seconds int64) string {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		panic(fmt.Sprintf("stop the clock of a DSN: %v", err))
	}
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	config.Params["timestamp"] = fmt.Sprint(seconds)
	return config.FormatDSN()
}
