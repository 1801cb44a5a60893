package sql

import (
	"context"
	"database/sql/driver"
	"time"
)

// LongestTransaction bounds how long a transaction of this pool takes from its first statement to
// its commit. It allows for a few statements of at most Timeouts.Read each. If a connection is
// silent for longer than Timeouts.Idle, MySQL ends its transaction, even if the node is gone.
func (db *DB) LongestTransaction() time.Duration { return db.timeouts.Idle + 4*db.timeouts.Read }

// driverConn lists the optional interfaces of a driver's connection that database/sql uses.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	driver.NamedValueChecker
}

// conn is a connection on which a transaction of DB.Tx begins without a round trip. With autocommit
// off, the first statement begins the transaction, and COMMIT or ROLLBACK ends it as always. A
// transaction that has sent nothing needs no end. All other statements need autocommit on. Turning
// autocommit on or off costs one statement. In a series of transactions it stays off.
type conn struct {
	driverConn
	manual bool // autocommit is off
	open   bool // in a transaction of DB.Tx
	sent   bool // the open transaction has sent a statement
	dirty  bool // unknown whether the last transaction is over
}

// silent is a context key. It allows a transaction to begin without a round trip.
type silent struct{}

const (
	autocommitOn  = "SET autocommit=1"
	autocommitOff = "SET autocommit=0"
)

// BeginTx begins a transaction.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if ctx.Value(silent{}) == nil || opts != (driver.TxOptions{}) {
		if err := c.automatic(ctx); err != nil {
			return nil, err
		}
		return c.driverConn.BeginTx(ctx, opts)
	}

	if err := c.set(ctx, autocommitOff, true); err != nil {
		return nil, err
	}

	c.open, c.sent = true, false
	return (*transaction)(c), nil
}

// set turns autocommit on or off. database/sql drops the connection if the statement fails.
func (c *conn) set(ctx context.Context, statement string, manual bool) error {
	if c.manual == manual {
		return nil
	}
	_, err := c.driverConn.ExecContext(ctx, statement, nil)
	if err == nil {
		c.manual = manual
	}
	return err
}

// automatic turns autocommit on, unless the statement belongs to an open transaction of DB.Tx.
func (c *conn) automatic(ctx context.Context) error {
	if c.open {
		c.sent = true
		return nil
	}
	return c.set(ctx, autocommitOn, false)
}

// ExecContext runs a statement.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.automatic(ctx); err != nil {
		return nil, err
	}
	return c.driverConn.ExecContext(ctx, query, args)
}

// QueryContext runs a query.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.automatic(ctx); err != nil {
		return nil, err
	}
	return c.driverConn.QueryContext(ctx, query, args)
}

// PrepareContext prepares a statement that runs next. database/sql calls it when the driver cannot
// write the arguments into the statement's text.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := c.automatic(ctx); err != nil {
		return nil, err
	}
	return c.driverConn.PrepareContext(ctx, query)
}

// transaction is a conn in a transaction that began without a round trip.
type transaction conn

func (t *transaction) Commit() error   { return t.end("COMMIT") }
func (t *transaction) Rollback() error { return t.end("ROLLBACK") }

func (t *transaction) end(statement string) error {
	t.open = false
	if !t.sent {
		return nil
	}
	_, err := t.driverConn.ExecContext(context.Background(), statement, nil)
	t.dirty = err != nil
	return err
}

// IsValid reports whether the connection may be reused. It may not if the reply to COMMIT or
// ROLLBACK failed: the next transaction might continue the old one.
func (c *conn) IsValid() bool { return !c.dirty && c.driverConn.IsValid() }
