package testdb

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestSchemasAreEmptyAndApart(t *testing.T) {
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()

			db := open(t, DSN(t))
			if _, err := db.Exec("CREATE TABLE t (s VARCHAR(20))"); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec("INSERT INTO t VALUES ('你好 🕰')"); err != nil {
				t.Fatal(err)
			}

			var got string
			if err := db.QueryRow("SELECT s FROM t").Scan(&got); err != nil || got != "你好 🕰" {
				t.Errorf("got %q, %v; want the text that was written", got, err)
			}
		})
	}
}

func TestSchemaIsDroppedDespiteAnOpenTransaction(t *testing.T) {
	var dsn string
	t.Run("leave a transaction open", func(t *testing.T) {
		dsn = DSN(t)
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("CREATE TABLE t (a INT)"); err != nil {
			t.Fatal(err)
		}

		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("INSERT INTO t VALUES (1)"); err != nil {
			t.Fatal(err)
		}
	})

	const unknownDatabase = 1049
	_, err := open(t, dsn).Exec("SELECT 1")
	if refused, ok := err.(*mysql.MySQLError); !ok || refused.Number != unknownDatabase {
		t.Errorf("got %v, want error %d: the schema is gone", err, unknownDatabase)
	}
}

func TestServerOfItsOwn(t *testing.T) {
	t.Parallel()

	db := Server(t)
	if err := db.CreateSchema(t.Context(), "crontab"); err != nil {
		t.Fatal(err)
	}
	viaTCP := open(t, db.DSNAt(db.Addr(), "crontab"))
	if _, err := viaTCP.Exec("CREATE TABLE t (a INT)"); err != nil {
		t.Fatal(err)
	}

	addr := db.Addr()
	if err := db.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := viaTCP.Ping(); err == nil {
		t.Error("a killed server answers")
	}
	if err := db.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	if db.Addr() != addr {
		t.Errorf("got address %s after the restart, want %s as before", db.Addr(), addr)
	}
	if _, err := viaTCP.Exec("INSERT INTO t VALUES (1)"); err != nil {
		t.Errorf("after kill and restart: %v", err)
	}
}

func TestSchemaName(t *testing.T) {
	for _, test := range []string{"T", "TestA/b c/Ü", strings.Repeat("x", 200)} {
		name := schemaName(test)
		if len(name) > nameMax || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			t.Errorf("test %q: got %q, want at most %d characters that need no quotes", test, name, nameMax)
		}
		if name == schemaName(test) {
			t.Errorf("test %q: got the same name twice", test)
		}
	}
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestExternalServer(t *testing.T) {
	server := Server(t)
	t.Setenv(External, server.DSNAt(server.Addr(), "untouched")+"?parseTime=true")
	var name string
	t.Run("a test on it", func(t *testing.T) {
		dsn := DSN(t)
		c, err := mysql.ParseDSN(dsn)
		if err != nil || c.Addr != server.Addr() || !c.ParseTime || c.DBName == "untouched" {
			t.Fatalf("got %s, %v; want a new schema there, and the parameters kept", dsn, err)
		}
		if err := open(t, dsn).QueryRow("SELECT DATABASE()").Scan(&name); err != nil || name != c.DBName {
			t.Errorf("got schema %q, %v; want %q", name, err, c.DBName)
		}
	})

	var n int
	row := open(t, server.DSN("")).QueryRow("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?",
		name)
	if err := row.Scan(&n); err != nil || n != 0 {
		t.Errorf("got %d schemata %s after the test, %v; want none", n, name, err)
	}

	t.Setenv(External, "no dsn")
	if _, err := shared(); err == nil || !strings.Contains(err.Error(), External) {
		t.Errorf("got %v, want an error that names %s", err, External)
	}
}
