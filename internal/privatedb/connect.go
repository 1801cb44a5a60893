package privatedb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// DSN is for go-sql-driver/mysql: root over the socket, no password, no parameters. schema may be "".
func (db *DB) DSN(schema string) string { return dsn("unix", db.socket, schema) }

// DSNAt is like DSN, over TCP to addr ("host:port"): Addr, or a proxy in front of it.
func (db *DB) DSNAt(addr, schema string) string { return dsn("tcp", addr, schema) }

func dsn(network, addr, schema string) string {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = "root", network, addr, schema
	return c.FormatDSN()
}

// Socket is the path of the unix socket.
func (db *DB) Socket() string { return db.socket }

// Addr is the TCP address, "" unless Options.TCP. It stays the same over restarts.
func (db *DB) Addr() string {
	if db.port == 0 {
		return ""
	}
	return fmt.Sprintf("127.0.0.1:%d", db.port)
}

// PID is the server's process id, also the id of its process group. After its end it is a number without meaning.
func (db *DB) PID() int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.process.pid
}

// Dir is the absolute path of the folder.
func (db *DB) Dir() string { return db.dir }

// Program is the server program in use.
func (db *DB) Program() Server { return db.server }

// CreateSchema makes an empty schema (utf8mb4) unless it is there.
func (db *DB) CreateSchema(ctx context.Context, name string) error {
	quoted := "`" + strings.ReplaceAll(name, "`", "``") + "`"
	return db.exec(ctx, "CREATE DATABASE IF NOT EXISTS "+quoted+" CHARACTER SET utf8mb4")
}

// openTCP lets root in from 127.0.0.1 under whatever name the server resolves that to.
func (db *DB) openTCP(ctx context.Context) error {
	return db.exec(ctx,
		"CREATE USER IF NOT EXISTS 'root'@'127.0.0.1'",
		"GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION")
}

// ping tells whether the server takes a connection.
func (db *DB) ping(ctx context.Context) error { return db.exec(ctx) }

// exec runs statements on a connection of its own. It goes straight to the driver: pools and everything else of
// database/sql belong to package sql.
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
