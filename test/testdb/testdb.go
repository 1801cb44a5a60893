// Package testdb gives tests a real database server: a fresh schema for every test, or a separate
// server that the test may kill.
//
// No TestMain is needed. The first test of a process that asks for a schema starts a private server
// for the whole process (0.6 s), in a temporary folder. When the process ends, in whatever way, the
// server's watcher ends the server and removes the folder. Servers belong to a process, not to a
// run of `go test ./...`: packages stay independent, and no test process has to find out whether it
// is the last.
//
// Do not use it inside a testing/synctest bubble: the bubble's clock runs ahead of any server.
//
// On a machine without a server program the tests fail, and print the command that installs one.
// They are never skipped.
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

// External names an environment variable with the go-sql-driver/mysql DSN of a server to use
// instead of a private one. Its user must be allowed to create and drop databases. The DSN's own
// database is not touched.
const External = "GOCRONTAB_TEST_DSN"

// DSN makes an empty utf8mb4 schema and returns its DSN, without connection parameters except the
// ones in External. The schema is dropped when t ends, which also ends connections that t left
// open. Parallel tests may call it. The server may lose all data when it is killed: tests that kill
// a server use Server.
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

// Server starts a server for t alone, durable and with a TCP port, which t may kill and restart. It
// has no schema yet (see CreateSchema), and is removed when t ends.
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

// shared returns a copy of the configuration of the server that all tests of this process use.
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

// private starts the shared server, once. It is stopped by the end of the process, not from here.
var private = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := privatedb.Start(ctx, privatedb.Options{
		Pool: 64, Redo: 16,
		// The server is never restarted on its data, so nothing needs to reach the disk. Without a
		// file for each table, a schema of ours is made in half the time.
		Extra: []string{
			"--innodb-doublewrite=OFF", "--loose-innodb-flush-method=nosync", "--innodb-file-per-table=OFF",
			"--loose-sync-frm=OFF",
		},
	})
	if err != nil {
		return "", err
	}
	return db.DSN(""), nil
})

// nameMax is the longest name of a schema, in characters.
const nameMax = 64

// schemaName returns a name that is unique on every server and shows its origin: "test_<test>_<26
// random characters>".
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
