package faultproxy

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// claim is the rule in most tests: it matches the COMMIT of the transaction that sets the state to
// 2.
func claim(a Action) Rule { return Rule{Match: CommitOf(`UPDATE task SET state = 2\b`), Action: a} }

func TestFateOfACommit(t *testing.T) {
	const d = 100 * time.Millisecond
	for name, c := range map[string]struct {
		action Action
		err    int // of Commit
		state  int // afterwards
		after  time.Duration
	}{
		"a lost COMMIT changes nothing":                 {CutBefore(), lost, 1, 0},
		"a lost acknowledgement changes all the same":   {CutAfter(), lost, 2, 0},
		"a late acknowledgement is one":                 {Hold(d), 0, 2, d},
		"a late and lost acknowledgement":               {Hold(d).ThenCut(), lost, 2, d},
		"a late COMMIT is one":                          {HoldBefore(d), 0, 2, d},
		"a late and lost COMMIT":                        {HoldBefore(d).ThenCut(), lost, 1, d},
		"a refused COMMIT leaves the transaction open":  {Error(1290, "HY000", "read only"), 1290, 1, 0},
		"a COMMIT of what a deadlock has rolled back":   {Error(1213, "40001", "deadlock"), 1213, 1, 0},
		"a sqlstate may be left out, a text be missing": {Error(1205, "", ""), 1205, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			fault := f.proxy.Add(claim(c.action))

			if err := f.begin(1).Commit(); err != nil {
				t.Errorf("the transaction that was not meant: %v", err)
			}
			if n := fault.Fired(); n != 0 {
				t.Errorf("fired %d times, want 0", n)
			}

			tx, began := f.begin(2), time.Now()
			if err := tx.Commit(); number(err) != c.err {
				t.Errorf("Commit: got %v, want error %d", err, c.err)
			}
			if took := time.Since(began); took < c.after {
				t.Errorf("Commit took %v, want %v at least", took, c.after)
			}

			f.wait(fault.Wait)
			f.wait(fault.Settle)
			f.wantState(c.state)
			if err := f.begin(3).Commit(); err != nil {
				t.Errorf("the transaction after: %v", err)
			}
			if n := fault.Fired(); n != 1 {
				t.Errorf("fired %d times, want 1", n)
			}
		})
	}
}

func TestReplyIsHeldAfterTheFact(t *testing.T) {
	f := setUp(t)
	fault := f.proxy.Add(claim(Hold(0)))
	tx, result := f.begin(2), make(chan error, 1)
	go func() { result <- tx.Commit() }()

	f.wait(fault.Wait)
	f.wantState(2)

	select {
	case err := <-result:
		t.Errorf("Commit came back before its reply was released: %v", err)
	default:
	}

	fault.Release()
	if err := <-result; err != nil {
		t.Error(err)
	}

	f.wait(fault.Settle)
}

func TestReplyNobodyWaitsFor(t *testing.T) {
	f := setUpImpatient(t)
	fault := f.proxy.Add(claim(Hold(0)))
	if err := f.begin(2).Commit(); number(err) != lost {
		t.Errorf("Commit: got %v, want no answer", err)
	}
	f.wantState(2)
	fault.Release()
	f.wait(fault.Settle)
}

func TestGhostCommit(t *testing.T) {
	f := setUpImpatient(t)
	fault := f.proxy.Add(claim(HoldBefore(0)))

	if err := f.begin(2).Commit(); number(err) != lost {
		t.Fatalf("Commit: got %v, want no answer", err)
	}

	f.through.Close() // the client is completely gone
	f.wantState(0)
	if !f.locked() {
		t.Error("the server has given up a transaction whose client seems to be there")
	}

	fault.Release()
	f.wait(fault.Settle)
	f.wantState(2)
	f.eventually("the lock is free", func() bool { return !f.locked() })
}

func TestGhostMayBeDropped(t *testing.T) {
	f := setUpImpatient(t)
	fault := f.proxy.Add(claim(HoldBefore(0).ThenCut()))

	if err := f.begin(2).Commit(); number(err) != lost {
		t.Fatalf("Commit: got %v, want no answer", err)
	}
	fault.Release()
	f.wait(fault.Settle)
	f.eventually("the lock is free", func() bool { return !f.locked() })
	f.wantState(0)
}

func TestDeadlockReallyRollsBack(t *testing.T) {
	for name, code := range map[string]uint16{"deadlock": 1213, "changed record": 1020} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			f.proxy.Add(Rule{Match: SQL(`state = 5`), Action: Error(code, "40001", "injected")})
			tx := f.begin(2)
			if !f.locked() {
				t.Error("the transaction has no lock to begin with")
			}

			_, err := tx.Exec("UPDATE task SET state = 5 WHERE id = 1")
			if number(err) != int(code) {
				t.Errorf("got %v, want error %d", err, code)
			}
			if f.locked() {
				t.Error("the lock has survived")
			}
			if err := tx.Rollback(); err != nil {
				t.Errorf("Rollback: %v", err)
			}

			f.wantState(0)
		})
	}
}

func TestOtherErrorsLeaveTheTransaction(t *testing.T) {
	f := setUp(t)
	f.proxy.Add(Rule{Match: SQL(`state = 5`), Action: Error(1205, "HY000", "injected: lock wait timeout")})
	fault := f.proxy.Add(Rule{Match: func(c Command) bool { return c.IsCommit() && len(c.Tx) == 2 }, Action: Hold(1)})

	tx := f.begin(2)
	if _, err := tx.Exec("UPDATE task SET state = 5 WHERE id = 1"); number(err) != 1205 {
		t.Errorf("got %v, want error 1205", err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}

	f.wantState(2)
	if fault.Fired() != 1 {
		t.Error("the refused statement stands in the transaction")
	}
}

// TestAutocommitOff: without autocommit the first statement begins a transaction.
func TestAutocommitOff(t *testing.T) {
	f := setUp(t)

	conn := f.conn()
	for _, s := range []string{"SET autocommit=0", "UPDATE task SET state = 1 WHERE id = 1", "COMMIT",
		"UPDATE task SET state = 2 WHERE id = 1", "ROLLBACK", "SET autocommit=1"} {
		if _, err := conn.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}

	if f.wantState(1); f.proxy.Counts().Transactions != 2 {
		t.Errorf("got %d transactions, want 2", f.proxy.Counts().Transactions)
	}

	for _, s := range []string{"SET autocommit=0", "UPDATE task SET state = 3 WHERE id = 1"} {
		if _, err := conn.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}

	fault := f.proxy.Add(Rule{Match: CommitOf("state = 3"), Action: CutBefore()})
	if _, err := conn.ExecContext(t.Context(), "COMMIT"); number(err) != lost {
		t.Errorf("got %v, want no answer", err)
	}

	f.wait(fault.Wait)
	f.eventually("it is rolled back", func() bool { return !f.locked() })
	f.wantState(1)
}

func TestPreparedStatements(t *testing.T) {
	f := setUp(t)
	db := f.open(func(c *mysql.Config) { c.InterpolateParams = false })
	const update = "UPDATE task SET state = ? WHERE id = ?"
	before := f.proxy.Counts()
	f.exec(db, update, 1, 1)
	after := f.proxy.Counts()
	if n := after.Statements - before.Statements; n != 1 {
		t.Errorf("a prepared statement counts as %d, want 1", n)
	}

	if n := after.Commands - before.Commands; n < 2 {
		t.Errorf("a prepared statement takes %d commands, want 2 or 3", n)
	}

	fault := f.proxy.Add(Rule{Match: SQL(`^UPDATE task SET state = \?`), Action: CutAfter()})
	if _, err := db.Exec(update, 2, 1); number(err) != lost {
		t.Errorf("got %v, want no answer", err)
	}

	f.wait(fault.Wait)
	f.wantState(2)

	inTx := f.proxy.Add(Rule{Match: CommitOf(`state = \?`), Action: CutBefore()})
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(update, 3, 1); err != nil {
		t.Fatal(err)
	}

	if err := tx.Commit(); number(err) != lost {
		t.Errorf("Commit: got %v, want no answer", err)
	}

	f.wait(inTx.Wait)
	f.wantState(2)
}

func TestRulesCount(t *testing.T) {
	f := setUp(t)
	do := func() int {
		_, err := f.through.Exec("DO 42")
		return number(err)
	}
	first := f.proxy.Add(Rule{Match: SQL(`^DO 42$`), Skip: 1, Times: 2, Action: Error(1290, "HY000", "first")})
	second := f.proxy.Add(Rule{Match: SQL(`^DO 42$`), Skip: 1, Times: -1, Action: Error(1205, "HY000", "second")})

	for i, want := range []int{0, 1290, 1290, 1205, 1205} {
		if got := do(); got != want {
			t.Errorf("statement %d: got error %d, want %d", i+1, got, want)
		}
	}

	f.wait(first.Wait)
	f.wait(second.Wait)
	second.Remove()
	if got := do(); got != 0 {
		t.Errorf("after Remove: got error %d", got)
	}
	if first.Fired() != 2 || second.Fired() != 2 {
		t.Errorf("fired %d and %d times, want 2 and 2", first.Fired(), second.Fired())
	}

	if f.proxy.Add(Rule{Action: CutBefore()}); len(f.proxy.rules) != 1 {
		t.Errorf("%d rules are kept, want only the one that may still fire", len(f.proxy.rules))
	}
	if got := do(); got != lost {
		t.Errorf("a rule that matches everything: got error %d", got)
	}
}

func TestGap(t *testing.T) {
	f := setUp(t)
	fault := f.proxy.Add(Rule{Match: SQL(`^DO 42$`), Skip: 1, Times: 2, Gap: 2,
		Action: Error(1205, "HY000", "injected")})

	for i, want := range []int{0, 1205, 0, 0, 1205, 0, 0, 0} {
		if _, err := f.through.Exec("DO 42"); number(err) != want {
			t.Errorf("statement %d: got error %d, want %d", i+1, number(err), want)
		}
	}

	if fault.Fired() != 2 {
		t.Errorf("fired %d times, want 2", fault.Fired())
	}
}

func TestRulesUnderConcurrency(t *testing.T) {
	f := setUp(t)
	fault := f.proxy.Add(Rule{Match: SQL(`^DO 42$`), Times: 5, Action: Error(1205, "HY000", "injected")})

	results := make(chan int)
	for range 20 {
		go func() {
			_, err := f.through.Exec("DO 42")
			results <- number(err)
		}()
	}

	refused := 0
	for range 20 {
		if <-results == 1205 {
			refused++
		}
	}

	if refused != 5 || fault.Fired() != 5 {
		t.Errorf("%d statements were refused and %d firings counted, want 5", refused, fault.Fired())
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	i := inject(Rule{Action: CutAfter(), Times: 2})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := i.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
}

func TestObservation(t *testing.T) {
	f := setUp(t)
	var seen []Command
	f.proxy.OnCommand(func(c Command) { seen = append(seen, c) })
	before := f.proxy.Counts()
	if err := f.begin(1).Commit(); err != nil {
		t.Fatal(err)
	}
	if err := f.begin(2).Rollback(); err != nil {
		t.Fatal(err)
	}

	if err := f.through.Ping(); err != nil {
		t.Fatal(err)
	}

	f.proxy.OnCommand(nil)
	f.exec(f.through, "DO 1")

	after := f.proxy.Counts()
	got := Counts{after.Connections - before.Connections, after.Commands - before.Commands,
		after.Statements - before.Statements, after.Transactions - before.Transactions,
		after.Commits - before.Commits, 0}
	if want := (Counts{0, 8, 7, 2, 1, 0}); got != want {
		t.Errorf("counts: got %+v, want %+v", got, want)
	}

	if n := f.proxy.Statements(); n != after.Statements {
		t.Errorf("Statements: got %d, want %d", n, after.Statements)
	}
	if len(seen) != 7 || seen[2].SQL != "COMMIT" || len(seen[2].Tx) != 2 || seen[3].Tx != nil || seen[6].Op != Ping {
		t.Errorf("the hook saw %+v", seen)
	}
}

// The proxy must count a long result's packets as the server does, above all around 256. Otherwise
// it takes a row for the beginning of the next reply, or the reverse.
func TestReplyAfterResultsOfAnyLength(t *testing.T) {
	f := setUp(t)

	conn := f.conn()
	for rows := 245; rows < 260; rows++ {
		got := readRows(t, conn, rows)
		if got != rows {
			t.Fatalf("got %d rows, want %d", got, rows)
		}
		fault := f.proxy.Add(Rule{Match: SQL(`^DO 42$`), Action: Hold(1)})
		if _, err := conn.ExecContext(t.Context(), "DO 42"); err != nil {
			t.Fatal(err)
		}

		if fault.Fired() != 1 {
			t.Errorf("behind %d rows the reply was not seen", rows)
		}
	}
}

// readRows reads a result of this many rows.
func readRows(t *testing.T, conn *sql.Conn, rows int) (n int) {
	t.Helper()
	result, err := conn.QueryContext(t.Context(),
		"WITH RECURSIVE s AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM s WHERE i < ?) SELECT i FROM s", rows)
	if err != nil {
		t.Fatal(err)
	}
	defer result.Close()

	for result.Next() {
		n++
	}

	if err := result.Err(); err != nil {
		t.Fatal(err)
	}

	return n
}
