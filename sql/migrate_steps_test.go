package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"
)

func TestStatementsOfMigrations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                                  nil,
		"-- a; b\n":                         nil,
		"-- +goose Up\nA;\n-- x\nB\n  C;\n": {"A", "B\n  C"},
		"A; -- by itself; so\nB;":           {"A", "B"},
		"A 'x; y', '--';\nB 'it''s; ''';":   {"A 'x; y', '--'", "B 'it''s; '''"},
		"A '--\n;' b -- it's\n;C":           {"A '--\n;' b", "C"},
		"A 'open; B":                        {"A 'open; B"},
		"A; -- without an end":              {"A"},
	} {
		if got := statements(text); !slices.Equal(got, want) {
			t.Errorf("%q:\n\tgot  %q\n\twant %q", text, got, want)
		}
	}
}

// emptySchema returns a schema without migrations, with a pool through a proxy and one next to it.
func emptySchema(t *testing.T) (f *fixture, db *DB, proxy *faultproxy.Proxy) {
	t.Helper()
	dsn := testdb.DSN(t)
	proxy = faultproxy.Before(t, dsn)
	return &fixture{t, dsn, open(t, dsn, MigrateTimeouts, 2)}, open(t, proxy.DSN(dsn), MigrateTimeouts, 2), proxy
}

// ofMigrations matches the statements of the files; the proxy shows statements on one line.
func ofMigrations(t *testing.T) func(faultproxy.Command) bool {
	t.Helper()
	files, err := migrations()
	if err != nil {
		t.Fatal(err)
	}

	all := map[string]bool{}
	for _, m := range files {
		for _, s := range m.statements {
			all[strings.Join(strings.Fields(s), " ")] = true
		}
	}

	return func(c faultproxy.Command) bool { return c.IsStatement() && all[c.SQL] }
}

// schema returns the definitions of the schema's tables and views and their rows, except for values
// that differ each time.
func (f *fixture) schema() (all map[string]string) {
	f.Helper()
	all = map[string]string{}
	rows, err := f.db.Raw().Query(`
		SELECT table_name
		FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name NOT IN (?, ?)`, versionTable, lockTable)
	if err != nil {
		f.Fatal(err)
	}
	defer rows.Close()

	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			f.Fatal(err)
		}
		names = append(names, name)
	}

	for _, name := range names {
		made, err := f.db.Raw().Query("SHOW CREATE TABLE " + name)
		if err != nil {
			f.Fatal(err)
		}

		columns, _ := made.Columns()
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(string)
		}

		if !made.Next() || made.Scan(values...) != nil {
			f.Fatalf("%s: cannot be shown", name)
		}

		made.Close()
		text := *values[1].(*string)
		text = strings.ReplaceAll(text, "`"+f.text1("SELECT DATABASE()")+"`.", "")
		count := "SELECT COUNT(*) FROM " + name
		if strings.HasPrefix(name, "v_") {
			count = "SELECT 0"
		}

		all[name] = fmt.Sprintf("%s\n%d rows", text, f.number(count))
	}

	return all
}

// text1 reads one text.
func (f *fixture) text1(query string) (text string) {
	f.Helper()
	if err := f.db.Raw().QueryRow(query).Scan(&text); err != nil {
		f.Fatal(err)
	}
	return text
}

// TestMigrateGoesOn: migrate loses MySQL at each statement of each migration, once before the
// statement runs and once after. The next migrate continues from there, and the result equals that
// of an undisturbed one.
func TestMigrateGoesOn(t *testing.T) {
	t.Parallel()
	whole := testdb.DSN(t)
	migrate(t, whole)
	want := (&fixture{t, whole, open(t, whole, MigrateTimeouts, 2)}).schema()

	f, db, proxy := emptySchema(t)
	match := ofMigrations(t)
	cuts := 0
	for ; ; cuts++ {
		if cuts > 1000 {
			t.Fatal("1000 cuts, and no end")
		}

		rule := faultproxy.Rule{Match: match, Action: faultproxy.CutAfter()}
		if cuts%2 == 0 {
			// The first match is the statement whose reply was lost before: it is tried again.
			rule = faultproxy.Rule{Match: match, Skip: min(cuts, 1), Action: faultproxy.CutBefore()}
		}

		cut := proxy.Add(rule)
		_, _, err := db.Migrate(t.Context())
		if cut.Fired() == 0 {
			cut.Remove()
			if err != nil {
				t.Fatalf("behind the last statement: %v", err)
			}
			break
		}

		if err == nil {
			t.Fatalf("cut %d: no error", cuts)
		}
		if strings.Contains(err.Error(), "already") || strings.Contains(err.Error(), "Duplicate") {
			t.Fatalf("cut %d: %v", cuts, err)
		}
	}

	t.Logf("%d cuts", cuts)
	if cuts < 100 {
		t.Errorf("got %d cuts, want two for each statement", cuts)
	}

	got := f.schema()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s:\n\tgot  %s\n\twant %s", name, got[name], text)
		}
	}

	if len(got) != len(want) {
		t.Errorf("got %d tables and views, want %d", len(got), len(want))
	}
	if err := open(t, f.dsn, DefaultTimeouts, 2).Check(t.Context()); err != nil {
		t.Errorf("who joins: %v", err)
	}
}

// TestMigrateTakesNothingOfOthers: a table that no migrate has made is never taken over, even after
// several attempts.
func TestMigrateTakesNothingOfOthers(t *testing.T) {
	t.Parallel()
	f, db, _ := emptySchema(t)
	f.exec("CREATE TABLE run (whose INT PRIMARY KEY)")
	for range 3 {
		_, _, err := db.Migrate(t.Context())
		if err == nil || !strings.Contains(err.Error(), "0001_initial.sql, statement ") ||
			!strings.Contains(err.Error(), "must not have tables of other programs") {
			t.Fatalf("got %v, want it refused, and what to do", err)
		}
	}

	f.exec("DROP TABLE run")
	if _, _, err := db.Migrate(t.Context()); err != nil {
		t.Errorf("when it is gone: %v", err)
	}
}

// TestMigrateStopsBetween: a migrate that is asked to stop finishes the current migration and
// begins no other.
func TestMigrateStopsBetween(t *testing.T) {
	t.Parallel()
	f, db, proxy := emptySchema(t)
	stop := errors.New("somebody said so")
	ended, end := context.WithCancelCause(t.Context())
	end(stop)
	if _, _, err := db.Migrate(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("before the first: got %v, want it stopped", err)
	}

	f.want("tables of the first", 0, `
		SELECT COUNT(*)
		FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name = 'job'`)

	ctx, cancel := context.WithCancelCause(t.Context())
	var asked atomic.Bool
	proxy.OnCommand(func(c faultproxy.Command) {
		if faultproxy.SQL("CREATE TABLE retention")(c) && asked.CompareAndSwap(false, true) {
			cancel(stop)
			time.Sleep(50 * time.Millisecond)
		}
	})

	if _, _, err := db.Migrate(ctx); !errors.Is(err, stop) || !asked.Load() {
		t.Errorf("within the first: got %v, asked: %v; want it carried out, and no other", err, asked.Load())
	}
	if from, to, err := db.Migrate(t.Context()); err != nil || from != 1 || to == 1 {
		t.Errorf("the next: got %d to %d, %v", from, to, err)
	}
}
