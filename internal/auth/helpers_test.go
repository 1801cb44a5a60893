package auth

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"

	"github.com/go-sql-driver/mysql"
)

// place is a migrated schema of its own, behind a proxy.
type place struct {
	*testing.T
	db    *sql.DB
	dsn   string
	proxy *faultproxy.Proxy
	Issuer
	statements *atomic.Int64 // through the proxy, including COMMIT and ROLLBACK
}

func setUp(t *testing.T) *place {
	t.Helper()
	t.Parallel()
	dsn := testdb.DSN(t)
	m, err := sql.Open(dsn, sql.MigrateTimeouts, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}

	m.Close()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}

	p := &place{T: t, dsn: dsn, proxy: faultproxy.New(t, cfg.Net, cfg.Addr), statements: new(atomic.Int64)}
	p.proxy.OnCommand(func(c faultproxy.Command) {
		if c.IsStatement() {
			p.statements.Add(1)
		}
	})

	p.db = p.open()
	p.Issuer = Issuer{DB: p.db}
	return p
}

// open makes another pool, as of another node.
func (p *place) open() *sql.DB {
	p.Helper()
	db, err := sql.Open(p.proxy.DSN(p.dsn), sql.DefaultTimeouts, 8)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { db.Close() })
	return db
}

func (p *place) gate() *Gate { return NewGate(p.open(), slog.New(slog.DiscardHandler)) }

// token makes a token.
func (p *place) token(name string, role Role, apps ...string) (row TokenRow, token string) {
	p.Helper()
	row, token, err := p.Create(p.from("10.0.0.1"), Spec{Name: name, Grant: Grant{role, apps}, Life: time.Hour})
	if err != nil {
		p.Fatal(err)
	}
	return row, token
}

// from returns the context of a request from an address.
func (p *place) from(address string) context.Context {
	return job.WithActor(p.Context(), job.Actor{Who: "root", Origin: address})
}

func (p *place) exec(query string, args ...any) {
	p.Helper()
	if _, err := p.db.Raw().Exec(query, args...); err != nil {
		p.Fatal(err)
	}
}

func (p *place) number(query string, args ...any) (n int64) {
	p.Helper()
	if err := p.db.Raw().QueryRow(query, args...).Scan(&n); err != nil {
		p.Fatalf("%s: %v", query, err)
	}
	return n
}

// refusal fails the test unless err is a Refused with this reason.
func (p *place) refusal(what string, err error) *Refused {
	p.Helper()
	var r *Refused
	if !errors.As(err, &r) {
		p.Fatalf("%s: got %v, want not let in", what, err)
	}
	return r
}
