package sql

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/internal/testdb"
)

// TestDefinitions reads definitions in parts, up to a bound.
func TestDefinitions(t *testing.T) {
	f := setUp(t)
	for i := range 10 {
		zone, limits := "UTC", ""
		if i%2 == 1 {
			zone, limits = "Asia/Tokyo", `, "limits": {"memory": 1}`
		}
		f.exec("INSERT INTO job (id, app, name, hash, spec, created, updated) VALUES (?, 'a', ?, 1, ?, 1, 1)", 100*i+1, i, `{"timezone": "`+zone+`"`+limits+`}`)
	}
	for most, want := range map[int]struct {
		zones string
		all   bool
	}{1: {"[{1 a 0 1 UTC}]", false}, 9: {"[{101 a 1 4 Asia/Tokyo} {1 a 0 5 UTC}]", false}, 10: {"[{101 a 1 5 Asia/Tokyo} {1 a 0 5 UTC}]", true}} {
		list, all, err := f.db.ZonesInUse(t.Context(), most)
		if got := fmt.Sprint(list); err != nil || got != want.zones || all != want.all {
			t.Errorf("zones of %d: got %s, %v, %v; want %+v", most, got, all, err, want)
		}
	}
	for _, c := range []struct {
		most, limit, jobs int
		all               bool
	}{{5, 9, 2, false}, {10, 9, 5, true}, {10, 3, 3, true}} {
		list, all, err := f.db.LimitedJobs(t.Context(), c.most, c.limit)
		if err != nil || len(list) != c.jobs || all != c.all {
			t.Errorf("%+v: got %d jobs, %v, %v", c, len(list), all, err)
		}
	}
	parts := 0
	for i := range 2 * definitionsAtOnce / 1000 {
		f.exec("INSERT INTO job (app, name, hash, spec, created, updated) SELECT 'b', CONCAT(?, ' ', a.id, ' ', b.id), 1, '{}', 1, 1 FROM locks a, locks b WHERE a.id < 100 AND b.id < 10", i)
	}
	all, err := f.db.definitions(t.Context(), 1_000_000, definitionsAtOnce, func(from, to int64) (bool, error) { parts++; return false, nil })
	if err != nil || !all || parts != 3 {
		t.Errorf("read in %d parts, %v, %v", parts, all, err)
	}
}

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
	f.exec("ALTER TABLE task DROP KEY owner")
	if have, err = f.db.Tables(t.Context()); err != nil {
		t.Fatal(err)
	}
	faults, err = f.db.SchemaFaults(t.Context(), have)
	if want := []string{"index owner of task is missing"}; err != nil || !slices.Equal(faults, want) {
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
		_, err = tx.ExecContext(ctx, "INSERT INTO place (selector) VALUES ('zone=a')")
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
