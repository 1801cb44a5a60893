package testdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// lockWaitTimeout is MySQL's error for a lock timeout.
const lockWaitTimeout = 1205

func create(c *mysql.Config, name string) error {
	return exec(c, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4")
}

// drop removes a schema. A transaction may still be open on it, perhaps because the test cut its
// connection. It would delay the drop for as long as it lives, so drop ends it after 2 s.
func drop(c *mysql.Config, name string) error {
	statement := "DROP DATABASE IF EXISTS " + name
	err := exec(c, "SET lock_wait_timeout=2", statement)
	if refused := (*mysql.MySQLError)(nil); !errors.As(err, &refused) || refused.Number != lockWaitTimeout {
		return err
	}
	if err := disconnect(c, name); err != nil {
		return err
	}
	return exec(c, "SET lock_wait_timeout=20", statement)
}

// disconnect ends all connections to the schema.
func disconnect(c *mysql.Config, name string) error {
	c = c.Clone()
	c.DBName = ""
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()

	threads, err := Threads(db)
	for _, t := range threads {
		if t.Schema == name {
			_, _ = db.Exec(fmt.Sprintf("KILL %d", t.ID)) // fails if the connection has ended by itself, which is fine
		}
	}

	return err
}

// exec runs statements on a separate connection, up to the first error.
func exec(c *mysql.Config, statements ...string) error {
	conn, done, err := connect(c)
	if err != nil {
		return err
	}
	defer done()

	for _, s := range statements {
		if _, err := conn.(driver.ExecerContext).ExecContext(context.Background(), s, nil); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}

	return nil
}

// connect opens a connection without a schema. It uses the driver itself: database/sql belongs to
// package sql, and a pool would need an owner that closes it.
func connect(c *mysql.Config) (driver.Conn, func(), error) {
	c = c.Clone()
	c.DBName, c.Logger = "", &mysql.NopLogger{}
	c.Timeout, c.ReadTimeout, c.WriteTimeout = 10*time.Second, time.Minute, time.Minute
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, nil, err
	}
	conn, err := connector.Connect(context.Background())
	if err != nil {
		return nil, nil, err
	}

	return conn, func() { _ = conn.Close() }, nil
}
