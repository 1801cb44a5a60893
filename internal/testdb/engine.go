package testdb

import (
	"context"
	"database/sql/driver"
	"strings"
	"sync"
	"testing"
)

// Engine holds everything that tests expect differently of MariaDB and of MySQL.
type Engine struct {
	MariaDB bool

	// Isolation is the variable that shows the isolation level. MariaDB knows MySQL's name for it only since 11.1.
	Isolation string

	// Reads is how many rows a statement of the trip may read at most for each that it needs, as Handler_read counts.
	// MySQL counts the rows of JSON_TABLE too, and those that an UPDATE of two tables remembers and finds again.
	Reads int
}

// EngineOf tells which server t's schemas are on.
func EngineOf(t testing.TB) Engine {
	t.Helper()
	version, err := serverVersion()
	if err != nil {
		t.Fatalf("test database: %v", err)
	}
	if strings.Contains(version, "MariaDB") {
		return Engine{MariaDB: true, Isolation: "tx_isolation", Reads: 2}
	}
	return Engine{Isolation: "transaction_isolation", Reads: 3}
}

var serverVersion = sync.OnceValues(func() (string, error) {
	c, err := shared()
	if err != nil {
		return "", err
	}
	conn, done, err := connect(c)
	if err != nil {
		return "", err
	}
	defer done()
	rows, err := conn.(driver.QueryerContext).QueryContext(context.Background(), "SELECT VERSION()", nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	row := make([]driver.Value, 1)
	if err := rows.Next(row); err != nil {
		return "", err
	}
	version, _ := row[0].([]byte)
	return string(version), nil
})
