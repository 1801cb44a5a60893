package privatedb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// DSN returns a DSN for go-sql-driver/mysql: root over the socket, without a password or
// parameters. schema may be "".
func (db *DB) DSN(schema string) string { return dsn("unix", db.socket, schema) }

// DSNAt is like DSN, but connects over TCP to addr ("host:port"), which is Addr or a proxy for it.
func (db *DB) DSNAt(addr, schema string) string { return dsn("tcp", addr, schema) }

func dsn(network, addr, schema string) string {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = "root", network, addr, schema
	return c.FormatDSN()
}

// Socket returns the path of the unix socket.
func (db *DB) Socket() string { return db.socket }

// Addr returns the TCP address, or "" without Options.TCP. It does not change on restarts.
func (db *DB) Addr() string {
	if db.port == 0 {
		return ""
	}
	return fmt.Sprintf("127.0.0.1:%d", db.port)
}

// PID returns the id of the server's process and process group. After the server has ended, another
// process may have this id.
func (db *DB) PID() int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.process.pid
}

// Dir returns the absolute path of the folder.
func (db *DB) Dir() string { return db.dir }

// Program returns the server program in use.
func (db *DB) Program() Server { return db.server }

// CreateSchema makes an empty schema (utf8mb4) unless it exists.
func (db *DB) CreateSchema(ctx context.Context, name string) error {
	quoted := "`" + strings.ReplaceAll(name, "`", "``") + "`"
	return db.exec(ctx, "CREATE DATABASE IF NOT EXISTS "+quoted+" CHARACTER SET utf8mb4")
}

// openTCP lets root connect from 127.0.0.1, even if the server resolves this address to another
// name.
func (db *DB) openTCP(ctx context.Context) error {
	return db.exec(ctx,
		"CREATE USER IF NOT EXISTS 'root'@'127.0.0.1'",
		"GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION")
}

// ping returns an error if the server does not accept a connection.
func (db *DB) ping(ctx context.Context) error { return db.exec(ctx) }

// exec runs statements on a new connection. It uses the driver without database/sql, because it
// needs no pool.
func (db *DB) exec(ctx context.Context, statements ...string) error {
	c, err := mysql.ParseDSN(db.DSN(""))
	if err != nil {
		return err
	}

	c.Logger = &mysql.NopLogger{}
	c.Timeout = 5 * time.Second
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}

	conn, err := connector.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()

	for _, s := range statements {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, s, nil); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}

	return nil
}
