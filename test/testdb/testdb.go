// Package testdb gives tests a real database server: a fresh schema each, or a server of their own to kill.
//
// No TestMain is needed. The first test of a process that asks for a schema starts one private server for the whole
// process (0.6 s), in a temporary folder; when the process ends, in whatever way, the server's watcher ends it and
// removes the folder. Servers are per process, not per `go test ./...`: packages stay independent, and nothing has
// to find out which test process is the last.
//
// Not inside a testing/synctest bubble: its clock runs ahead of any server.
//
// A machine without a server program fails the tests, with the command that installs one. It never skips them.
package testdb

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"go-crontab/internal/privatedb"
)

// External names an environment variable: the go-sql-driver/mysql DSN of a server to use instead of a private one.
// Its user must be allowed to create and drop databases. The DSN's own database is not touched.
const External = "GOCRONTAB_TEST_DSN"

// DSN makes an empty utf8mb4 schema and returns its DSN, without connection parameters unless External has some.
// The schema is dropped when t ends; connections that t left open are ended by that. Parallel tests may call it.
// The server may lose everything when it is killed: tests that kill one use Server.
func DSN(t testing.TB) string {
	t.Helper()
	base, err := shared()
	if err != nil {
		t.Fatalf("test database: %v", err)
	}
	name := schemaName(t.Name())
	if err := create(base, name); err != nil {
		t.Fatalf("test database: %v", err)
	}
	t.Cleanup(func() {
		if err := drop(base, name); err != nil {
			t.Errorf("drop test database: %v", err)
		}
	})
	base.DBName = name
	return base.FormatDSN()
}

// Server starts a server for t alone, durable and with a TCP port, which t may kill and restart. It has no schema
// yet, see CreateSchema, and is removed when t ends.
func Server(t testing.TB) *privatedb.DB {
	t.Helper()
	db, err := privatedb.Start(context.Background(), privatedb.Options{Pool: 64, Redo: 16, TCP: true, Durable: true})
	if err != nil {
		t.Fatalf("test database: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Stop(); err != nil {
			t.Errorf("stop test database: %v", err)
		}
	})
	return db
}

// shared returns the configuration of the server that all tests of this process use, a copy for each caller.
func shared() (*mysql.Config, error) {
	if dsn := os.Getenv(External); dsn != "" {
		c, err := mysql.ParseDSN(dsn)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", External, err)
		}
		return c, nil
	}
	dsn, err := private()
	if err != nil {
		return nil, err
	}
	return mysql.ParseDSN(dsn)
}

// private starts the shared server, once. It is never stopped from here: the end of the process does that.
var private = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := privatedb.Start(ctx, privatedb.Options{
		Pool: 64, Redo: 16,
		// Nobody restarts it on its data, so nothing needs to reach the disk.
		Extra: []string{"--innodb-doublewrite=OFF", "--loose-innodb-flush-method=nosync"},
	})
	if err != nil {
		return "", err
	}
	return db.DSN(""), nil
})

// nameMax is the longest name of a schema, in characters.
const nameMax = 64

// schemaName is unique on every server and shows where it comes from: "test_<test>_<26 random characters>".
func schemaName(test string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '_'
	}, test)
	unique := strings.ToLower(rand.Text())
	return "test_" + plain[:min(len(plain), nameMax-len("test__")-len(unique))] + "_" + unique
}
