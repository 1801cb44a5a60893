package testdb

import (
	"database/sql"
	"strings"
	"testing"
)

// Reads returns the number of rows and index entries that the only connection of a pool has read
// until now, including lookups that found nothing.
func Reads(t testing.TB, db *sql.DB) (sum int64) {
	t.Helper()
	rows, err := db.Query("SHOW SESSION STATUS LIKE 'Handler_read%'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		sum += n
	}

	return sum
}

// Numbers returns the numbers that a query selects.
func Numbers(t testing.TB, db *sql.DB, query string, args ...any) (out []int64) {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}

	return out
}

// WantIndex asks the server how it would run statements now. want holds names of indexes, separated
// by |.
func WantIndex(t testing.TB, db *sql.DB, name string, statements []string, want string) {
	t.Helper()
	explained := 0
	for _, s := range statements {
		verb, _, _ := strings.Cut(strings.TrimLeft(strings.Join(strings.Fields(s), " "), "( "), " ")
		if !strings.Contains("SELECT UPDATE DELETE", verb) {
			continue
		}
		rows, err := db.Query("EXPLAIN FORMAT=TRADITIONAL " + s)
		if err != nil {
			t.Fatalf("EXPLAIN %.80s: %v", s, err)
		}

		columns, _ := rows.Columns()
		for rows.Next() {
			values, ptrs := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				ptrs[i] = &values[i]
			}

			if err := rows.Scan(ptrs...); err != nil {
				t.Fatal(err)
			}

			line := map[string]string{}
			for i, c := range columns {
				if b, ok := values[i].([]byte); ok {
					line[c] = string(b)
				}
			}

			if line["table"] == "" || line["table"] == "n" { // a constant, or the list that came with the statement
				continue
			}

			explained++
			if key := line["key"]; key == "" || !strings.Contains("|"+want+"|", "|"+key+"|") || line["type"] == "ALL" {
				t.Errorf("%s: got index %q (access %s) of table %s, want %s, in %.120s", name, key, line["type"],
					line["table"], want, s)
			}
		}

		rows.Close()
	}

	if explained == 0 {
		t.Errorf("%s: no statement was seen", name)
	}
}
