package node_test

import (
	"testing"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/node"
	"go-crontab/session"
	"go-crontab/sql"
)

// TestIdleStatements: a node with nothing to do asks MySQL less than five times a second, as the
// server counts, and hardly ever connects anew.
func TestIdleStatements(t *testing.T) {
	const (
		most      = 4.0 // a second, without what comes with a new connection; three runs had 2.95 to 3.15
		mostLinks = 1.0 // new connections a second: on a busy machine two loops meet now and then, and need two
		perLink   = 5   // statements that come with each
		calm      = 10 * time.Second
		watch     = 20 * time.Second
	)
	if testing.Short() {
		t.Skip("takes half a minute")
	}

	was := node.SetWatermarkPeriod(2 * time.Second) // as in earnest; so it does not run beside others
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
	time.Sleep(calm) // until its loops have seen that there is nothing

	before, links := counted(t, c.db.DB, "Questions"), counted(t, c.db.DB, "Connections")
	begun := time.Now()
	time.Sleep(watch)
	took := time.Since(begun).Seconds()

	// This connection is one, too: the one of the count before was closed as idle.
	links = counted(t, c.db.DB, "Connections") - links
	asked := counted(t, c.db.DB, "Questions") - before - perLink*links
	rate, linked := float64(asked)/took, float64(links)/took
	t.Logf("%.2f statements and %.2f new connections a second", rate, linked)
	if rate > most || linked > mostLinks {
		t.Errorf("an idle node sends %.2f statements and connects %.2f times a second, want at most %.1f and %.1f",
			rate, linked, most, mostLinks)
	}

	if rate < 1.5 {
		t.Errorf(
			"an idle node sends %.2f statements a second: its beats and glances alone are 2, so this count is wrong", rate)
	}
}

// counted is what the server has counted of something.
func counted(t *testing.T, db *sql.DB, what string) (n int64) {
	t.Helper()
	if err := db.Raw().QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE '"+what+"'").Scan(&what, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
