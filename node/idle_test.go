package node_test

import (
	"testing"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/node"
	"go-crontab/session"
	"go-crontab/sql"
)

// TestIdleStatements: an idle node sends MySQL fewer than five statements a second, as counted by
// the server, and hardly ever reconnects.
func TestIdleStatements(t *testing.T) {
	const (
		// per second, without the statements of new connections; runs had 2.95 to 4.1: once a minute
		// more is looked at
		most = 5.0
		// New connections a second: on a busy machine two loops sometimes overlap and need two.
		mostLinks = 1.0
		perLink   = 5 // statements per new connection
		calm      = 10 * time.Second
		watch     = 20 * time.Second
	)
	long(t)

	// The real period. This changes a global, so the test does not run in parallel.
	was := node.SetWatermarkPeriod(2 * time.Second)
	t.Cleanup(func() { node.SetWatermarkPeriod(was) })
	server, err := privatedb.Start(t.Context(), privatedb.Options{})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { server.Stop() })
	if err := server.CreateSchema(t.Context(), "idle"); err != nil {
		t.Fatal(err)
	}

	c := newClusterOn(t, server.DSN("idle"))
	c.start("idle", func(cfg *node.Config) { cfg.Expiry = session.DefaultExpiry })
	time.Sleep(calm) // until its loops have noticed that there is no work

	before, links := counted(t, c.db.DB, "Questions"), counted(t, c.db.DB, "Connections")
	begun := time.Now()
	time.Sleep(watch)
	took := time.Since(begun).Seconds()

	// This connection counts too: the earlier one was closed when idle.
	links = counted(t, c.db.DB, "Connections") - links
	asked := counted(t, c.db.DB, "Questions") - before - perLink*links
	rate, linked := float64(asked)/took, float64(links)/took
	t.Logf("%.2f statements and %.2f new connections a second", rate, linked)
	if rate > most || linked > mostLinks {
		t.Errorf("an idle node sends %.2f statements and connects %.2f times a second, want at most %.1f and %.1f",
			rate, linked, most, mostLinks)
	}

	if rate < 1.5 {
		t.Errorf("an idle node sends %.2f statements a second: its beats and glances alone are 2, "+
			"so this count is wrong", rate)
	}
}

// counted returns a counter of the server.
func counted(t *testing.T, db *sql.DB, what string) (n int64) {
	t.Helper()
	if err := db.Raw().QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE '"+what+"'").Scan(&what, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
