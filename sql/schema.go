package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go-crontab/job"
)

// These functions describe the server, the schema and the rights on it. They read without locks,
// and read a bounded amount. No step in the trip of a run uses them.

// Now returns the current time of MySQL's clock.
func (db *DB) Now(ctx context.Context) (job.Micros, error) {
	var at job.Micros
	if err := db.db.QueryRowContext(ctx, "SELECT "+Clock).Scan(&at); err != nil {
		return 0, fmt.Errorf("read clock: %w", err)
	}
	return at, nil
}

// SchemaVersions returns two versions: the schema's version, and the version for which this program
// is made. The first is 0 if no migration ever ran.
func (db *DB) SchemaVersions(ctx context.Context) (have, want int64, err error) {
	p, err := db.provider(ctx)
	if err != nil {
		return 0, 0, err
	}
	have, err = db.SchemaVersion(ctx)
	return have, newestMigration(p), err
}

// TableState describes a table. Rows and Bytes are the server's estimates.
type TableState struct {
	Engine  string
	Rows    int64
	Bytes   int64 // of rows and indexes
	Free    int64 // bytes of the file that no row occupies
	Columns []string
	Indexes []string
}

// Tables describes the tables of the schema, by name.
func (db *DB) Tables(ctx context.Context) (map[string]*TableState, error) {
	out := map[string]*TableState{}
	err := db.query(ctx, "list tables", func(rows *stdsql.Rows) error {
		var name string
		t := &TableState{}
		err := rows.Scan(&name, &t.Engine, &t.Rows, &t.Bytes, &t.Free)
		out[name] = t
		return err
	}, `
		SELECT table_name, COALESCE(engine, ''), COALESCE(table_rows, 0),
			COALESCE(data_length, 0) + COALESCE(index_length, 0), COALESCE(data_free, 0)
		FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'`)
	if err != nil {
		return nil, err
	}

	add := func(what string, list func(*TableState) *[]string, query string) error {
		return db.query(ctx, what, func(rows *stdsql.Rows) error {
			var table, name string
			err := rows.Scan(&table, &name)
			if t := out[table]; t != nil {
				*list(t) = append(*list(t), name)
			}
			return err
		}, query)
	}

	if err := add("list columns", func(t *TableState) *[]string { return &t.Columns }, `
		SELECT table_name, column_name
		FROM information_schema.columns
		WHERE table_schema = DATABASE()`); err != nil {
		return nil, err
	}

	return out, add("list indexes", func(t *TableState) *[]string { return &t.Indexes }, `
		SELECT DISTINCT table_name, index_name
		FROM information_schema.statistics
		WHERE table_schema = DATABASE()`)
}

// MissingLocks names the lock rows that do not exist.
func (db *DB) MissingLocks(ctx context.Context) ([]string, error) {
	have := map[int64]bool{}
	ids, err := IDs(db.Reader(ctx), "list lock rows", "SELECT id FROM locks")
	if err != nil {
		return nil, err
	}

	for _, id := range ids {
		have[id] = true
	}

	var out []string
	for id, name := range requiredLocks {
		if !have[int64(id)] {
			out = append(out, name)
		}
	}

	return out, nil
}

// User returns the account that the server uses for this connection, as user@host, and the schema.
func (db *DB) User(ctx context.Context) (user, schema string, err error) {
	err = db.db.QueryRowContext(ctx, "SELECT CURRENT_USER(), DATABASE()").Scan(&user, &schema)
	return user, schema, err
}

// Denied is a right that the user lacks on a table.
type Denied struct{ Right, Table string }

// DeniedRights returns the rights on tables that nodes need and the user lacks. It sends an EXPLAIN
// of a statement of each kind. An EXPLAIN needs the same rights as its statement, however they were
// granted. It changes and locks nothing.
func (db *DB) DeniedRights(ctx context.Context) ([]Denied, error) {
	tables, err := expectedTables() // from the migrations, because the server may hide tables from the user
	if err != nil {
		return nil, err
	}

	var out []Denied
	for _, t := range slices.Sorted(maps.Keys(tables)) {
		column := tables[t].Columns[0]
		for _, try := range []struct{ right, query string }{
			{"SELECT", "EXPLAIN SELECT 1 FROM " + t + " LIMIT 1"},
			{"INSERT", "EXPLAIN INSERT INTO " + t + " VALUES ()"},
			{"UPDATE", "EXPLAIN UPDATE " + t + " SET " + column + " = " + column + " WHERE 1 = 0"},
			{"DELETE", "EXPLAIN DELETE FROM " + t + " WHERE 1 = 0"},
		} {
			if !slices.Contains(rightsOn(t), try.right) {
				continue
			}

			err := db.query(ctx, "explain", func(*stdsql.Rows) error { return nil }, try.query)
			switch {
			case IsDenied(err):
				out = append(out, Denied{try.right, t})
			case number(err) == 0 && err != nil:
				return nil, err
			// A strict server may reject the values, but it checks the right first.
			default:
			}
		}
	}

	return out, nil
}

// IsDenied reports whether the server refused a statement because a right is missing.
func IsDenied(err error) bool {
	switch number(err) {
	case 1044, 1142, 1143, 1227, 1370:
		return true
	}
	return false
}

// expectedTables returns the tables that the migrations create, with columns and indexes. It reads
// them from the text of the migrations.
func expectedTables() (map[string]*TableState, error) {
	all, err := migrations()
	if err != nil {
		return nil, err
	}

	out := map[string]*TableState{}
	for _, m := range all {
		for _, statement := range m.statements {
			readDefinition(out, statement)
		}
	}

	for _, t := range out {
		slices.Sort(t.Columns)
		slices.Sort(t.Indexes)
	}

	return out, nil
}

// readDefinition applies a statement of a migration to the tables. It understands only the style of
// our own migrations.
func readDefinition(tables map[string]*TableState, statement string) {
	words := strings.Fields(strings.ReplaceAll(statement, "(", " ( "))
	is := func(want ...string) bool {
		if len(words) < len(want) {
			return false
		}
		for i, w := range want {
			if !strings.EqualFold(words[i], w) {
				return false
			}
		}
		return true
	}

	switch {
	case is("CREATE", "TABLE"):
		name := words[2]
		if is("CREATE", "TABLE", "IF", "NOT", "EXISTS") {
			name = words[5]
		}
		_, body, _ := strings.Cut(statement, "(")
		t := &TableState{}
		tables[name] = t
		for _, part := range splitOutside(body[:strings.LastIndexByte(body, ')')], ',') {
			t.define(strings.Fields(strings.ReplaceAll(part, "(", " (")), true)
		}
	case is("ALTER", "TABLE") && tables[words[2]] != nil:
		t := tables[words[2]]
		_, body, _ := strings.Cut(statement, words[2])
		for _, part := range splitOutside(body, ',') {
			t.define(strings.Fields(strings.ReplaceAll(part, "(", " (")), false)
		}
	case is("CREATE", "INDEX"), is("CREATE", "UNIQUE", "INDEX"):
		if i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, "ON") }); i > 0 &&
			tables[words[i+1]] != nil {
			tables[words[i+1]].Indexes = append(tables[words[i+1]].Indexes, words[i-1])
		}
	case is("DROP", "TABLE"):
		for _, name := range splitOutside(strings.Join(words[2:], " "), ',') {
			delete(tables, strings.TrimSpace(name))
		}
	}
}

// define applies one part of a table definition.
func (t *TableState) define(words []string, create bool) {
	next := func(options ...string) bool {
		if len(words) > 0 && slices.ContainsFunc(options,
			func(o string) bool { return strings.EqualFold(o, words[0]) }) {
			words = words[1:]
			return true
		}
		return false
	}

	drop := func(list *[]string) {
		*list = slices.DeleteFunc(*list, func(s string) bool { return len(words) > 0 && s == words[0] })
	}
	if !create {
		switch {
		case next("ADD"):
			create = true
		case next("DROP"):
			if next("KEY", "INDEX") {
				drop(&t.Indexes)
			} else {
				next("COLUMN")
				drop(&t.Columns)
			}
			return
		default: // ALGORITHM, LOCK, MODIFY …
			return
		}
	}

	switch {
	case next("PRIMARY"):
		t.Indexes = append(t.Indexes, "PRIMARY")
	case next("UNIQUE"), len(words) > 0 && (strings.EqualFold(words[0], "KEY") || strings.EqualFold(words[0], "INDEX")):
		next("KEY", "INDEX")
		t.Indexes = append(t.Indexes, words[0])
	case next("CONSTRAINT", "CHECK"):
	default:
		next("COLUMN")
		if len(words) > 0 {
			t.Columns = append(t.Columns, words[0])
		}
	}
}

// splitOutside splits a text at a byte. It does not split within parentheses and quotes.
func splitOutside(text string, at byte) []string {
	var out []string
	depth, from, quote := 0, 0, byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == at && depth == 0:
			out = append(out, text[from:i])
			from = i + 1
		}
	}

	return append(out, text[from:])
}

// SchemaFaults lists tables, columns and indexes that the migrations create but the schema lacks.
// It also lists tables whose engine is not InnoDB. A missing index is a fault, because statements
// that name the index fail. A table that the server hides from the user does not count as missing;
// see DeniedRights.
func (db *DB) SchemaFaults(ctx context.Context, have map[string]*TableState) ([]string, error) {
	want, err := expectedTables()
	if err != nil {
		return nil, err
	}

	var out []string
	for name, w := range want {
		h := have[name]
		if h == nil || len(h.Columns) == 0 {
			err := db.query(ctx, "explain", func(*stdsql.Rows) error { return nil },
				"EXPLAIN SELECT 1 FROM "+name+" LIMIT 1")
			switch {
			case number(err) == 0 && err != nil:
				return nil, err
			case !IsDenied(err): // 1146: no such table
				out = append(out, "table "+name+" is missing")
			}
			continue
		}

		if !strings.EqualFold(h.Engine, "InnoDB") {
			out = append(out, "table "+name+" has the engine "+h.Engine)
		}

		for _, c := range w.Columns {
			if !slices.Contains(h.Columns, c) {
				out = append(out, "column "+name+"."+c+" is missing")
			}
		}

		for _, i := range w.Indexes {
			if !slices.Contains(h.Indexes, i) {
				out = append(out, "index "+i+" of "+name+" is missing")
			}
		}
	}

	slices.Sort(out)
	return out, nil
}
