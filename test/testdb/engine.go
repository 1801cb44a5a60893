package testdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
)

// Engine holds the differences between MariaDB and MySQL that tests depend on.
type Engine struct {
	MariaDB bool
	// Galera says that the server is a member of a cluster. A table change there does not wait for
	// transactions: it ends every transaction that has read the table.
	Galera bool

	// Isolation is the variable with the isolation level. MariaDB knows MySQL's name for it only
	// since 11.1.
	Isolation string

	// Reads is the number of rows that a statement of a run's three steps may read for each row
	// that it needs, as counted by Handler_read. MySQL also counts the rows of JSON_TABLE, and rows
	// that an UPDATE of two tables remembers and finds again.
	Reads int
}

// EngineOf returns the engine of the server that t's schemas are on.
func EngineOf(t testing.TB) Engine {
	t.Helper()
	said, err := server()
	if err != nil {
		t.Fatalf("test database: %v", err)
	}
	if strings.Contains(said.version, "MariaDB") {
		return Engine{MariaDB: true, Galera: said.galera, Isolation: "tx_isolation", Reads: 2}
	}
	return Engine{Isolation: "transaction_isolation", Reads: 3}
}

// answers are the server's answers about itself.
type answers struct {
	version string
	galera  bool
}

var server = sync.OnceValues(func() (said answers, err error) {
	c, err := shared()
	if err != nil {
		return said, err
	}
	conn, done, err := connect(c)
	if err != nil {
		return said, err
	}
	defer done()
	if said.version, err = last(conn, "SELECT VERSION()"); err != nil {
		return said, err
	}
	on, err := last(conn, "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'") // only servers that may be members know it
	said.galera = on == "ON"
	return said, err
})

// last returns the last column of a row, or "" without a row.
func last(conn driver.Conn, query string) (string, error) {
	rows, err := conn.(driver.QueryerContext).QueryContext(context.Background(), query, nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()

	row := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(row); errors.Is(err, io.EOF) {
		return "", nil
	} else if err != nil {
		return "", err
	}

	value, _ := row[len(row)-1].([]byte)
	return string(value), nil
}
