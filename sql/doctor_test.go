package sql

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/internal/testdb"
)

// TestExpectedTables holds what is read off the text of the migrations against what they make.
func TestExpectedTables(t *testing.T) {
	f := setUp(t)
	have, err := f.db.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, err := expectedTables()
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range have {
		if name == versionTable || name == lockTable || name == stepTable {
			continue
		}
		w := want[name]
		if w == nil {
			t.Errorf("table %s: not found in the migrations", name)
			continue
		}
		slices.Sort(h.Columns)
		slices.Sort(h.Indexes)
		if !slices.Equal(h.Columns, w.Columns) {
			t.Errorf("columns of %s: got %v, want %v", name, w.Columns, h.Columns)
		}
		if !slices.Equal(h.Indexes, w.Indexes) {
			t.Errorf("indexes of %s: got %v, want %v", name, w.Indexes, h.Indexes)
		}
	}
	faults, err := f.db.SchemaFaults(t.Context(), have)
	if err != nil || faults != nil {
		t.Errorf("got %v, %v; want no fault", faults, err)
	}
	f.exec("ALTER TABLE run DROP KEY live")
	if have, err = f.db.Tables(t.Context()); err != nil {
		t.Fatal(err)
	}
	faults, err = f.db.SchemaFaults(t.Context(), have)
	if want := []string{"index live of run is missing"}; err != nil || !slices.Equal(faults, want) {
		t.Errorf("got %v, %v; want %v", faults, err, want)
	}
}

// TestLongTransactionsInAnyZone: how long a transaction has been open does not depend on the time zone of the server's machine.
func TestLongTransactionsInAnyZone(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"EST5", "UTC-9"} { // five hours behind UTC, nine ahead
		server, err := privatedb.Start(context.Background(), privatedb.Options{Pool: 64, Redo: 16, Env: []string{"TZ=" + zone}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Stop() })
		if err := server.CreateSchema(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		db := open(t, server.DSN("s"), DefaultTimeouts, 2)
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
		if list, _, err := db.LongTransactions(t.Context(), 3600); err != nil || len(list) != 0 {
			t.Errorf("%s: a new one is listed among those of an hour: got %+v, %v", zone, list, err)
		}
		time.Sleep(3 * time.Second)
		if list, _, err := db.LongTransactions(t.Context(), 1); err != nil || len(list) != 1 || list[0].Seconds < 2 || list[0].Seconds > 1800 {
			t.Errorf("%s: one of three seconds is not among those of one: got %+v, %v", zone, list, err)
		}
	}
}

// TestThreads: what others execute keeps nobody from being told of threads. MySQL refuses to show any while one of them executes what
// is no text.
func TestThreads(t *testing.T) {
	f := setUp(t)
	ctx, stop := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() {
		tx, err := f.patient().db.Raw().BeginTx(ctx, nil)
		if err != nil {
			return
		}
		defer tx.Rollback()
		_, err = tx.ExecContext(ctx, "INSERT INTO app (name) VALUES ('a')")
		for err == nil {
			_, err = tx.ExecContext(ctx, "DO SLEEP(0.2), ?, (SELECT COUNT(*) FROM job FOR UPDATE)", []byte("\xf2\xfe\x42\x58\xb5"))
		}
	})
	time.Sleep(3 * time.Second)
	mine := func(list []LongTransaction) bool {
		return slices.ContainsFunc(list, func(l LongTransaction) bool { return l.Seconds >= 2 && l.Seconds < 600 })
	}
	for range 3 {
		if list, all, err := f.db.LongTransactions(t.Context(), 1); all != testdb.EngineOf(t).MariaDB || err != nil || !mine(list) {
			t.Fatalf("got %v, %v", list, err)
		}
		if list, err := f.db.longTransactionsOfStatus(t.Context(), 1); err != nil || !mine(list) {
			t.Fatalf("in the status: got %v, %v", list, err)
		}
		if _, err := f.db.BinlogReaders(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
