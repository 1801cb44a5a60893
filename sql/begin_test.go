package sql

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"go-crontab/test/faultproxy"
)

// TestBeginCostsNothing: transactions in a row begin without a round trip, and autocommit is on for
// all other statements.
func TestBeginCostsNothing(t *testing.T) {
	f := setUp(t)
	db, proxy := f.behind(1)
	var mu sync.Mutex
	var said []string
	proxy.OnCommand(func(c faultproxy.Command) {
		mu.Lock()
		defer mu.Unlock()
		word, _, _ := strings.Cut(strings.TrimSpace(c.SQL), " ")
		if word == "SET" || c.IsStatement() && len(c.SQL) < 12 {
			said = append(said, c.SQL)
		} else if c.IsStatement() {
			said = append(said, word)
		}
	})

	// opens the connection; some servers are also asked for variables
	if err := db.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}

	mu.Lock()
	said = nil
	mu.Unlock()
	heard := func(what string, want ...string) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(said, want) {
			t.Errorf("%s: got %q, want %q", what, said, want)
		}
		said = nil
	}

	write := func(tx *Tx) error { return put(tx, "x", "y") }
	tx := func(fn func(*Tx) error) {
		t.Helper()
		if err := db.Tx(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}

	tx(write)
	heard("the first transaction", autocommitOff, "INSERT", "COMMIT")
	tx(write)
	heard("another", "INSERT", "COMMIT")
	tx(func(*Tx) error { return nil })
	heard("one that does nothing")
	if _, err := db.SessionExpiry(t.Context()); err != nil {
		t.Fatal(err)
	}

	heard("a read behind them", autocommitOn, "SELECT")
	if _, err := db.SessionExpiry(t.Context()); err != nil {
		t.Fatal(err)
	}

	heard("another read", "SELECT")
	other, err := db.Raw().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}

	_ = other.Rollback()
	heard("a transaction of somebody else's", "START TRANSACTION"[:5], "ROLLBACK")
	tx(func(tx *Tx) error {
		if err := write(tx); err != nil {
			return err
		}
		return put(tx, "z", "y")
	})

	heard("and one of ours", autocommitOff, "INSERT", "INSERT", "COMMIT")
	if got := proxy.Counts(); got.Commits != 3 || got.Transactions != 4 {
		t.Errorf("got %d transactions and %d commits, want 4 and 3", got.Transactions, got.Commits)
	}
}

// TestCommitThatFails: a connection is not reused if its last transaction may still be open. The
// next transaction would continue that one, and might commit it.
func TestCommitThatFails(t *testing.T) {
	f := setUp(t)
	db, proxy := f.behind(1)
	proxy.Add(faultproxy.Rule{
		Match: faultproxy.CommitOf("INSERT INTO setting"), Action: faultproxy.Error(1105, "HY000", "Unknown error"),
	})
	if err := db.Tx(t.Context(), func(tx *Tx) error { return put(tx, "first", "y") }); !IsUnknown(err) {
		t.Fatalf("got %v, want unknown", err)
	}
	if err := db.Tx(t.Context(), func(tx *Tx) error { return put(tx, "second", "y") }); err != nil {
		t.Fatal(err)
	}

	f.want("the second", 1, count, "second")
	f.want("the first, whose connection was closed", 0, count+" FOR UPDATE", "first")
}

// TestPanicInATransaction: a panic rolls the transaction back, and the next one sees nothing from
// it.
func TestPanicInATransaction(t *testing.T) {
	f := setUp(t)
	db, _ := f.behind(1)
	func() {
		defer func() { _ = recover() }()
		_ = db.Tx(t.Context(), func(tx *Tx) error {
			if err := put(tx, "first", "y"); err != nil {
				t.Error(err)
			}
			panic("a bug")
		})
	}()

	if err := db.Tx(t.Context(), func(tx *Tx) error { return put(tx, "second", "y") }); err != nil {
		t.Fatal(err)
	}

	f.want("the second", 1, count, "second")
	f.want("the first", 0, count, "first")
	var mode int
	if err := db.Raw().QueryRowContext(t.Context(), "SELECT @@autocommit").Scan(&mode); err != nil || mode != 1 {
		t.Errorf("got autocommit %d, %v for a read, want 1", mode, err)
	}
}
