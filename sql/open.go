package sql

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Timeouts bound what one statement may cost. LockWait < Read, so that the server has given up on a
// row lock before the client does: otherwise a write that nobody waits for any more would be
// applied later. For the same reason it gives up on the lock of a table, behind an ALTER TABLE that
// waits itself, a second before the client does (lock_wait_timeout): it does not notice that a
// client has gone while it waits for one, and would keep a connection for each that has.
type Timeouts struct {
	Dial     time.Duration
	Read     time.Duration // and write; bounds each statement, COMMIT included
	LockWait time.Duration // innodb_lock_wait_timeout, whole seconds
	Idle     time.Duration // wait_timeout, whole seconds: the server ends a transaction whose node fell silent
}

// DefaultTimeouts fit a session expiry of 20 s.
var DefaultTimeouts = Timeouts{
	Dial:     2 * time.Second,
	Read:     3 * time.Second,
	LockWait: 2 * time.Second,
	Idle:     8 * time.Second,
}

// MigrateTimeouts leave a migration the time that it needs.
var MigrateTimeouts = Timeouts{Dial: 5 * time.Second, Read: 30 * time.Minute, LockWait: time.Minute, Idle: time.Hour}

// longest is after how many seconds the server ends a statement; 0: never. What a migration has
// begun goes on without it: the next try finds it done.
func (t Timeouts) longest() int {
	if t == MigrateTimeouts {
		return 0
	}
	return int(t.Read/time.Second) + 1
}

// DB is a pool of connections to one schema.
type DB struct {
	db       *stdsql.DB
	timeouts Timeouts
	meter    Meter
}

// Open prepares a pool of at most size connections; it does not connect. dsn is that of
// github.com/go-sql-driver/mysql and names a schema; its address may list several servers that hold
// the same data, as in tcp(a:3306,b:3306), of which the first that takes writes is used. Parameters
// on which the protocol rests are set here, whatever the DSN says. Errors never repeat the
// password.
func Open(dsn string, t Timeouts, size int) (*DB, error) { return openPool(dsn, t, size, true) }

// openPool is Open; fresh asks servers that replicate among each other for reads that show what
// others have written.
func openPool(dsn string, t Timeouts, size int, fresh bool) (*DB, error) {
	all, err := configs(dsn, t)
	if err != nil {
		return nil, err
	}

	c, err := newHosts(all, fresh)
	if err != nil {
		return nil, fmt.Errorf("DSN: %w", err)
	}

	db := stdsql.OpenDB(&connector{Connector: c, init: []string{
		// By statement, because its variable has different names in MySQL and MariaDB.
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
		// Again, because a variable in the DSN comes after what the handshake said, and escaping
		// rests on it.
		"SET NAMES utf8mb4 COLLATE utf8mb4_bin",
		// autocommit, because without it a beat would begin a transaction that nobody commits; see
		// conn for transactions.
		fmt.Sprintf(
			"SET SESSION autocommit=1, innodb_lock_wait_timeout=%d, lock_wait_timeout=%d, wait_timeout=%d, "+
				"time_zone='+00:00',"+
				" sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"+
				// MariaDB has it on from 11.6.2 on: a locking read that waited for a row, which was
				// changed meanwhile, is then refused (error 1020), at READ COMMITTED too where one
				// of its subqueries reads without a lock.
				" /*M!110602 , innodb_snapshot_isolation=OFF */"+
				// What nobody waits for any more ends: the server does not notice while it reads,
				// and such reads would pile up. Seconds in MariaDB; milliseconds in MySQL, where it
				// bounds reads alone.
				" /*M! , max_statement_time=%[4]d */ /*!80000 , max_execution_time=%[4]d000 */",
			int(t.LockWait/time.Second), int(max(t.LockWait, t.Read-time.Second)/time.Second), int(t.Idle/time.Second),
			t.longest()),
	}})

	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxIdleTime(t.Idle / 2) // before the server's wait_timeout ends it
	db.SetConnMaxLifetime(5 * time.Minute)
	return &DB{db: db, timeouts: t}, nil
}

// configs are what the DSN says of each of its servers, one or several.
func configs(dsn string, t Timeouts) ([]*mysql.Config, error) {
	if strings.HasPrefix(dsn, "mysql://") || strings.HasPrefix(dsn, "mariadb://") {
		return nil, fmt.Errorf("DSN: is a URL; write it as user:password@tcp(host:3306)/schema")
	}

	dsn, l, err := cutLink(dsn)
	if err != nil {
		return nil, fmt.Errorf("DSN: %w", err)
	}

	each, err := splitHosts(dsn)
	if err != nil {
		return nil, fmt.Errorf("DSN: %w", err)
	}

	var all []*mysql.Config
	for _, one := range each {
		cfg, err := config(one, l, t)
		if err != nil {
			return nil, err
		}
		all = append(all, cfg)
	}

	return all, nil
}

func config(dsn string, l link, t Timeouts) (*mysql.Config, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		why := err.Error()
		if !strings.HasPrefix(why, "invalid DSN") { // it repeats a part of the DSN, which may be one of the password
			why = "not understood"
		}
		return nil, fmt.Errorf("DSN: %s; write it as user:password@tcp(host:3306)/schema", why)
	}

	if strings.Contains(cfg.Net, ":") { // a password, with no @ behind it
		return nil, fmt.Errorf("DSN: not understood; write it as user:password@tcp(host:3306)/schema")
	}
	if cfg.DBName == "" {
		return nil, fmt.Errorf("DSN: names no schema; write it as user:password@tcp(host:3306)/schema")
	}
	if t.LockWait < time.Second || t.LockWait >= t.Read || t.Read >= t.Idle {
		return nil, fmt.Errorf("timeouts: lock wait %s < read %s < idle %s does not hold", t.LockWait, t.Read, t.Idle)
	}

	if err := secureLink(cfg, l); err != nil {
		return nil, fmt.Errorf("DSN: %w", err)
	}

	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = t.Dial, t.Read, t.Read
	cfg.Loc, cfg.ParseTime = time.UTC, true
	cfg.ClientFoundRows = true   // an UPDATE counts the rows it matched, also those that it did not change
	cfg.InterpolateParams = true // one round trip a statement; the character set below makes it safe
	cfg.RejectReadOnly = true    // after a failover the old primary must not keep our connections
	cfg.MultiStatements, cfg.AllowAllFiles = false, false
	cfg.AllowCleartextPasswords, cfg.AllowFallbackToPlaintext = false, false
	cfg.Logger = &mysql.NopLogger{} // each error is returned as well
	cfg.Collation = ""
	if err := cfg.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin")); err != nil {
		return nil, fmt.Errorf("DSN: %w", err)
	}

	return cfg, nil
}

// connector runs the session's settings on each new connection, before anybody uses it: variables
// set by hand would be there on some connections of a pool and not on others.
type connector struct {
	driver.Connector
	init []string
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	link, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}

	for _, stmt := range c.init {
		if _, err := link.(driver.ExecerContext).ExecContext(ctx, stmt, nil); err != nil {
			link.Close()
			return nil, fmt.Errorf("%s: %w", stmt, err)
		}
	}

	if able, ok := link.(driverConn); ok {
		return &conn{driverConn: able}, nil
	}
	return link, nil
}

// Close closes all connections. Transactions in flight end refused or unknown.
func (db *DB) Close() error { return db.db.Close() }

// Ping asks whether MySQL answers.
func (db *DB) Ping(ctx context.Context) error { return db.db.PingContext(ctx) }

// Raw is for migrations and tests; nothing on the trip of a run uses it.
func (db *DB) Raw() *stdsql.DB { return db.db }
