package sql

import (
	"context"
	"database/sql/driver"
	"time"
)

// LongestTransaction is how long after its first statement a transaction of this pool may commit: a
// few statements of at most Timeouts.Read each, and MySQL ends the transaction of a link that is
// silent for longer than Timeouts.Idle, whatever became of its node.
func (db *DB) LongestTransaction() time.Duration { return db.timeouts.Idle + 4*db.timeouts.Read }

// driverConn is what a connection of the driver's can do, and what database/sql makes use of.
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
// off its first statement begins it, and COMMIT or ROLLBACK ends it, as always; one that has sent
// nothing has nothing to end. For what is no such transaction autocommit is on, as everybody
// expects who reads or writes by a single statement. So each change from the one to the other costs
// a statement, and a row of transactions costs none.
type conn struct {
	driverConn
	manual bool // autocommit is off
	open   bool // in a transaction of ours,
	sent   bool // which has sent something
	dirty  bool // nobody knows whether its last transaction is over
}

// silent is the key of a context in which a transaction may begin without a word.
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

// set turns autocommit on or off. If nobody knows whether it did, the connection is lost.
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

// automatic comes before what is no transaction of ours.
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

// PrepareContext prepares a statement, which is run before anything else is: for arguments that do
// not fit into its text.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := c.automatic(ctx); err != nil {
		return nil, err
	}
	return c.driverConn.PrepareContext(ctx, query)
}

// transaction is a conn in a transaction that began without a word.
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

// IsValid tells whether the connection may be used again. One that could not end its transaction
// may not: the next one would go on with that.
func (c *conn) IsValid() bool { return !c.dirty && c.driverConn.IsValid() }
