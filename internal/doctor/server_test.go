package doctor

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/sql"
	"go-crontab/test/testdb"
)

// TestLongTransactionsInAnyZone: the age of a transaction does not depend on the time zone of the
// server's machine.
func TestLongTransactionsInAnyZone(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"EST5", "UTC-9"} { // five hours west of UTC, nine hours east
		server, err := privatedb.Start(context.Background(),
			privatedb.Options{Pool: 64, Redo: 16, Env: []string{"TZ=" + zone}})
		if err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { server.Stop() })
		if err := server.CreateSchema(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}

		db := (&patient{T: t}).open(server.DSN("s"), sql.DefaultTimeouts).DB
		if _, err := db.Raw().Exec("CREATE TABLE t (a INT) ENGINE = InnoDB"); err != nil {
			t.Fatal(err)
		}

		tx, err := db.Raw().Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.Exec("INSERT INTO t VALUES (1)"); err != nil {
			t.Fatal(err)
		}

		if list, _, err := readTransactions(t.Context(), db, 3600); err != nil || len(list) != 0 {
			t.Errorf("%s: a new one is listed among those of an hour: got %+v, %v", zone, list, err)
		}

		time.Sleep(3 * time.Second)
		if list, _, err := readTransactions(t.Context(), db, 1); err != nil || len(list) != 1 || list[0].Seconds < 2 ||
			list[0].Seconds > 1800 {
			t.Errorf("%s: one of three seconds is not among those of one: got %+v, %v", zone, list, err)
		}
	}
}

// TestThreads: threads are listed whatever statements other connections execute. MySQL refuses its
// own list while a statement is not valid text.
func TestThreads(t *testing.T) {
	p := admitShared(t)
	ctx, stop := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() {
		tx, err := p.open(p.dsn, sql.MigrateTimeouts).Raw().BeginTx(ctx, nil)
		if err != nil {
			return
		}
		defer tx.Rollback()
		_, err = tx.ExecContext(ctx, "INSERT INTO app (name) VALUES ('a')")
		for err == nil {
			_, err = tx.ExecContext(ctx, "DO SLEEP(0.2), ?, (SELECT COUNT(*) FROM job FOR UPDATE)",
				[]byte("\xf2\xfe\x42\x58\xb5"))
		}
	})

	time.Sleep(3 * time.Second)
	mine := func(list []longTransaction) bool {
		return slices.ContainsFunc(list, func(l longTransaction) bool { return l.Seconds >= 2 && l.Seconds < 600 })
	}

	for range 3 {
		if list, all, err := readTransactions(t.Context(), p.db.DB, 1); all != testdb.EngineOf(t).MariaDB ||
			err != nil || !mine(list) {
			t.Fatalf("got %v, %v", list, err)
		}
		if list, err := longOfStatus(p.db.Reader(t.Context()), 1); err != nil || !mine(list) {
			t.Fatalf("in the status: got %v, %v", list, err)
		}
		if _, err := binlogReaders(p.db.Reader(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}
