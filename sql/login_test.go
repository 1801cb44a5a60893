package sql

import (
	"testing"

	"github.com/go-sql-driver/mysql"

	"go-crontab/test/testdb"
)

// TestLoginAfterRestart: a server that has just started, as after a failover, accepts a user with a
// password over TCP. MySQL caches the proof of the password, and demands more without it.
func TestLoginAfterRestart(t *testing.T) {
	t.Parallel()
	server := testdb.Server(t)
	if err := server.CreateSchema(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}

	root := open(t, server.DSN("s"), DefaultTimeouts, 1)
	for _, host := range []string{"localhost", "127.0.0.1"} {
		if _, err := root.Raw().Exec("CREATE USER 'someone'@'" + host + "' IDENTIFIED BY 'a password'"); err != nil {
			t.Fatal(err)
		}
		if _, err := root.Raw().Exec("GRANT ALL ON s.* TO 'someone'@'" + host + "'"); err != nil {
			t.Fatal(err)
		}
	}

	cfg, err := mysql.ParseDSN(server.DSNAt(server.Addr(), "s"))
	if err != nil {
		t.Fatal(err)
	}

	cfg.User, cfg.Passwd = "someone", "a password"
	db := open(t, cfg.FormatDSN(), DefaultTimeouts, 1)
	for range 2 {
		if err := db.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	if err := db.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
