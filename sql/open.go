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

// Timeouts bound the cost of one statement.
//
// LockWait is less than Read, so that the server gives up on a row lock before the client does.
// Otherwise a write could be applied after its caller has stopped waiting.
//
// lock_wait_timeout is for table locks, which an ALTER TABLE may delay. It is a second shorter than
// Read, for the same reason. There is a second reason: a server that waits for a table lock does
// not notice that its client has gone, and would keep a connection for each such client.
type Timeouts struct {
	Dial     time.Duration
	Read     time.Duration // limits reading and writing of each statement, including COMMIT
	LockWait time.Duration // innodb_lock_wait_timeout, whole seconds
	// Idle is wait_timeout, in whole seconds. After this time the server ends the transaction of a
	// silent node.
	Idle time.Duration
}

// DefaultTimeouts fit a session expiry of 20 s.
var DefaultTimeouts = Timeouts{
	Dial:     2 * time.Second,
	Read:     3 * time.Second,
	LockWait: 2 * time.Second,
	Idle:     8 * time.Second,
}

// MigrateTimeouts leave migrations enough time.
var MigrateTimeouts = Timeouts{Dial: 5 * time.Second, Read: 30 * time.Minute, LockWait: time.Minute, Idle: time.Hour}

// longest returns the seconds after which the server ends a statement. For migrations it returns 0,
// which means never. So a migration's statement continues if migrate dies, and the next migrate
// finds it applied.
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

// Open prepares a pool of at most size connections. It does not connect. dsn has the format of
// github.com/go-sql-driver/mysql and names a schema. Its address may list several servers with the
// same data, as in tcp(a:3306,b:3306); the pool uses the first writable server. Open sets the
// parameters on which the protocol depends, whatever the DSN says. Errors never contain the
// password.
func Open(dsn string, t Timeouts, size int) (*DB, error) { return openPool(dsn, t, size, true) }

// openPool is like Open. With fresh, reads on a multi-writer cluster show everything that other
// members have written.
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
		// Set by a statement, because the variable's name differs between MySQL and MariaDB.
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
		// Set the character set again, because a variable in the DSN may override the one of the
		// handshake. Escaping depends on the character set.
		"SET NAMES utf8mb4 COLLATE utf8mb4_bin",
		// autocommit is on. Otherwise a beat would begin a transaction that never commits. For
		// transactions see conn.
		fmt.Sprintf(
			"SET SESSION autocommit=1, innodb_lock_wait_timeout=%d, lock_wait_timeout=%d, wait_timeout=%d, "+
				"time_zone='+00:00',"+
				" sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"+
				// This setting is on by default since MariaDB 11.6.2. It refuses a locking read
				// (error 1020) whose row changed while the read waited. That happens at READ
				// COMMITTED too, if a subquery reads without a lock.
				" /*M!110602 , innodb_snapshot_isolation=OFF */"+
				// This limit ends reads whose client has gone. The server would not notice, and
				// such reads would pile up. MariaDB counts in seconds. MySQL counts in
				// milliseconds, and limits only reads.
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

// Shown returns a DSN for people, without its password and its parameters.
func Shown(dsn string) string {
	all, err := configs(dsn, DefaultTimeouts)
	if err != nil || len(all) == 0 {
		return "***"
	}
	hosts := make([]string, len(all))
	for i, cfg := range all {
		hosts[i] = cfg.Addr
	}
	return fmt.Sprintf("%s:***@%s(%s)/%s", all[0].User, all[0].Net, strings.Join(hosts, ","), all[0].DBName)
}

// configs returns one configuration for each server that the DSN lists.
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
		// Other errors repeat a part of the DSN, and that part may contain some of the password.
		if !strings.HasPrefix(why, "invalid DSN") {
			why = "cannot be parsed"
		}
		return nil, fmt.Errorf("DSN: %s; write it as user:password@tcp(host:3306)/schema", why)
	}

	if strings.Contains(cfg.Net, ":") { // no @ follows the password
		return nil, fmt.Errorf("DSN: cannot be parsed; write it as user:password@tcp(host:3306)/schema")
	}
	if cfg.DBName == "" {
		return nil, fmt.Errorf("DSN: has no schema; write it as user:password@tcp(host:3306)/schema")
	}
	if t.LockWait < time.Second || t.LockWait >= t.Read || t.Read >= t.Idle {
		return nil, fmt.Errorf("timeouts: want lock wait (%s) < read (%s) < idle (%s)", t.LockWait, t.Read, t.Idle)
	}

	if err := secureLink(cfg, l); err != nil {
		return nil, fmt.Errorf("DSN: %w", err)
	}

	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = t.Dial, t.Read, t.Read
	cfg.Loc, cfg.ParseTime = time.UTC, true
	// An UPDATE counts the rows that it matched, including unchanged ones.
	cfg.ClientFoundRows = true
	cfg.InterpolateParams = true // one round trip per statement; safe because of the character set below
	cfg.RejectReadOnly = false   // type watched does it, and keeps the server's error text
	cfg.MultiStatements, cfg.AllowAllFiles = false, false
	cfg.AllowCleartextPasswords, cfg.AllowFallbackToPlaintext = false, false
	cfg.Logger = &mysql.NopLogger{} // each error is also returned
	cfg.Collation = ""
	if err := cfg.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin")); err != nil {
		return nil, fmt.Errorf("DSN: %w", err)
	}

	return cfg, nil
}

// connector applies the session's settings to each new connection before it is used. Settings made
// later would reach only some connections of the pool.
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

// Close closes all connections. Open transactions end refused or unknown.
func (db *DB) Close() error { return db.db.Close() }

// Ping checks that MySQL answers.
func (db *DB) Ping(ctx context.Context) error { return db.db.PingContext(ctx) }

// Raw is for migrations and tests. No step in the trip of a run uses it.
func (db *DB) Raw() *stdsql.DB { return db.db }
