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

// Engine holds everything that tests expect differently of MariaDB and of MySQL.
type Engine struct {
	MariaDB bool
	// Galera tells that the server is a member of a cluster: a change of a table there waits for no transaction, but ends those
	// that have read it.
	Galera bool

	// Isolation is the variable that shows the isolation level. MariaDB knows MySQL's name for it only since 11.1.
	Isolation string

	// Reads is how many rows a statement of the trip may read at most for each that it needs, as Handler_read counts.
	// MySQL counts the rows of JSON_TABLE too, and those that an UPDATE of two tables remembers and finds again.
	Reads int
}

// EngineOf tells which server t's schemas are on.
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

// answers are what the server says of itself.
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

// last returns the last column of a row; nothing if there is none.
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
