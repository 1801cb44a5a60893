package sql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"strings"
	"sync"
	"testing"

	"go-crontab/test/faultproxy"
)

// put writes a setting, the smallest possible change.
func put(tx *Tx, name, value string) error {
	_, err := tx.Exec("put", `
		INSERT INTO setting (name, value)
		VALUES (?, ?)
		ON DUPLICATE KEY UPDATE value = VALUES(value)`, name, value)
	return err
}

const count = "SELECT COUNT(*) FROM setting WHERE name = ?"

// TestFates sends a transaction through every fate, and compares the answer to the caller with what
// was written, and with the number of runs of its function.
func TestFates(t *testing.T) {
	f := setUp(t)
	const open = -1 // the proxy answered, so the server knows of no end
	deadlock := faultproxy.Error(1213, "40001", "Deadlock found when trying to get lock")
	commit, insert := faultproxy.CommitOf("INSERT INTO setting"), faultproxy.SQL("INSERT INTO setting")
	for name, c := range map[string]struct {
		rule          faultproxy.Rule
		ran           int // number of calls of fn
		stands        int64
		unknown, fine bool
	}{
		"nothing goes wrong": {
			faultproxy.Rule{Match: faultproxy.SQL("no such statement"), Action: deadlock}, 1, 1, false, true,
		},
		"a statement deadlocks twice": {
			faultproxy.Rule{Match: insert, Times: 2, Action: deadlock}, 3, 1, false, true,
		},
		"a statement deadlocks for ever": {
			faultproxy.Rule{Match: insert, Times: -1, Action: deadlock}, maxTries, 0, false, false,
		},
		"a statement waits too long for a lock": {
			faultproxy.Rule{Match: insert, Action: faultproxy.Error(1205, "HY000", "Lock wait timeout exceeded")}, 2, 1,
			false, true,
		},
		"a statement is refused": {
			faultproxy.Rule{Match: insert, Action: faultproxy.Error(1406, "22001", "Data too long")}, 1, 0, false,
			false,
		},
		"the link is cut before a statement": {
			faultproxy.Rule{Match: insert, Action: faultproxy.CutBefore()}, 1, 0, false, false,
		},
		"the link is cut after a statement": {
			faultproxy.Rule{Match: insert, Action: faultproxy.CutAfter()}, 1, 0, false, false,
		},
		"COMMIT deadlocks, as on a cluster": {
			faultproxy.Rule{Match: commit, Action: deadlock}, 2, 1, false, true,
		},
		"COMMIT never arrives": {
			faultproxy.Rule{Match: commit, Action: faultproxy.CutBefore()}, 1, 0, true, false,
		},
		"the reply to COMMIT is lost": {
			faultproxy.Rule{Match: commit, Action: faultproxy.CutAfter()}, 1, 1, true, false,
		},
		"COMMIT is answered by a number of no kind": {
			faultproxy.Rule{Match: commit, Action: faultproxy.Error(1105, "HY000", "Unknown error")}, 1, open, true,
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			db, proxy := f.behind(2)
			proxy.Add(c.rule)
			ran := 0
			err := db.Tx(t.Context(), func(tx *Tx) error {
				ran++
				return put(tx, name, "x")
			})

			if ran != c.ran {
				t.Errorf("got %d runs of the function, want %d", ran, c.ran)
			}

			if IsUnknown(err) != c.unknown || (err == nil) != c.fine {
				t.Errorf("got error %v (unknown: %v), want unknown: %v, fine: %v", err, IsUnknown(err), c.unknown,
					c.fine)
			}

			// The locking read waits until the server notices that a connection is gone.
			if c.stands != open {
				f.want("rows that stand", c.stands, count+" FOR UPDATE", name)
			}
		})
	}
}

// TestDeadlock makes two transactions take two locks crosswise. MySQL ends one, which runs again
// from its beginning.
func TestDeadlock(t *testing.T) {
	f := setUp(t)
	f.exec("INSERT INTO locks (id, name) VALUES (8, 'one'), (9, 'two')")
	var met sync.WaitGroup
	met.Add(2)
	crosswise := func(first, second LockID, ran *int) error {
		return f.db.Tx(f.Context(), func(tx *Tx) error {
			*ran++
			if err := tx.TakeLocks([]LockID{first}); err != nil {
				return err
			}
			if *ran == 1 {
				met.Done()
				met.Wait()
			}
			return tx.TakeLocks([]LockID{second})
		})
	}

	var a, b int
	done := make(chan error, 1)
	go func() { done <- crosswise(8, 9, &a) }()
	err := crosswise(9, 8, &b)
	if other := <-done; err != nil || other != nil {
		t.Fatalf("got %v and %v, want both applied", err, other)
	}
	if a+b != 3 {
		t.Errorf("got %d and %d runs, want 3 in all", a, b)
	}

	f.want("writes of lock 8", 2, "SELECT n FROM locks WHERE id = 8")
	f.want("writes of lock 9", 2, "SELECT n FROM locks WHERE id = 9")
}

// TestReadCommitted: a transaction sees what others have committed so far, and nothing uncommitted.
func TestReadCommitted(t *testing.T) {
	f := setUp(t)
	jobID := f.newJob("j")
	seen := func(tx *Tx) (n int) {
		err := tx.query("count", func(rows *stdsql.Rows) error { return rows.Scan(&n) },
			"SELECT COUNT(*) FROM run WHERE job_id = ?", jobID)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}

	f.tx(func(tx *Tx) error {
		if n := seen(tx); n != 0 {
			t.Errorf("at first: got %d runs, want none", n)
		}

		err := f.db.Tx(f.Context(), func(other *Tx) error {
			if _, err := other.Exec("insert", `
				INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash)
				VALUES (1, ?, 1, 1, 'schedule', 'idle', 0, 0, 1, 1)`, jobID); err != nil {
				return err
			}
			if n := seen(tx); n != 0 {
				t.Errorf("before its COMMIT: got %d runs, want none", n)
			}
			return nil
		})

		if n := seen(tx); n != 1 {
			t.Errorf("after its COMMIT: got %d runs, want 1", n)
		}
		return err
	})
}

// TestContext: a transaction checks its context before it begins, and is not interrupted after
// that.
func TestContext(t *testing.T) {
	f := setUp(t)
	away := errors.New("the client went away")
	ctx, cancel := context.WithCancelCause(f.Context())
	err := f.db.Tx(ctx, func(tx *Tx) error {
		cancel(away)
		return put(tx, "begun", "x")
	})
	if err != nil {
		t.Errorf("cancelled once begun: got %v, want it applied", err)
	}

	f.want("rows of the one that had begun", 1, count, "begun")
	err = f.db.Tx(ctx, func(tx *Tx) error {
		t.Error("a transaction began on a context that had ended")
		return nil
	})
	if err != away {
		t.Errorf("cancelled before: got %v, want the cause, %v", err, away)
	}
}

// TestPanicGivesTheConnectionBack: web servers recover from panics, so a panic must not keep a
// connection and its locks.
func TestPanicGivesTheConnectionBack(t *testing.T) {
	f := setUp(t)
	db := open(t, f.dsn, DefaultTimeouts, 1)
	func() {
		defer func() {
			if p := recover(); p != "bad luck" {
				t.Errorf("got panic %v, want it passed on", p)
			}
		}()
		db.Tx(f.Context(), func(tx *Tx) error {
			put(tx, "panicked", "x")
			panic("bad luck")
		})
	}()

	ctx := background(t)
	if err := db.Raw().PingContext(ctx); err != nil {
		t.Fatalf("the only connection: %v", err)
	}

	f.want("rows of the panicked one", 0, count, "panicked")
}

// TestTakeLocks: a lock excludes others, and a missing row is an error that says what to do.
func TestTakeLocks(t *testing.T) {
	f := setUp(t)
	f.exec("INSERT INTO locks (id, name) VALUES (3, 'three'), (9, 'nine'), (254, 'last but one'), (255, 'last')")
	order := make(chan string, 2)
	holding, finish := make(chan bool), make(chan bool)
	first := make(chan error, 1)
	go func() {
		first <- f.db.Tx(f.Context(), func(tx *Tx) error {
			err := tx.TakeLocks([]LockID{3, LockSessions, 3}) // one lock twice
			holding <- true
			<-finish
			order <- "first"
			return err
		})
	}()

	<-holding
	done := make(chan error, 1)
	go func() {
		done <- f.db.Tx(f.Context(), func(tx *Tx) error {
			err := tx.TakeLocks([]LockID{9, 3})
			if err == nil {
				order <- "second"
			}
			return err
		})
	}()

	f.awaitLockWait()
	close(finish)
	if a, b := <-first, <-done; a != nil || b != nil {
		t.Fatalf("got %v and %v, want both applied", a, b)
	}
	if got := <-order; got != "first" {
		t.Errorf("got %s past the lock first, want the one who held it", got)
	}

	f.exec("DELETE FROM locks WHERE id = ?", LockID(255))
	err := f.db.Tx(f.Context(), func(tx *Tx) error { return tx.TakeLocks([]LockID{254, 255}) })
	if err == nil || !strings.Contains(err.Error(), "the table locks has 1 of 2 rows; restore them: go-crontab migrate") {
		t.Errorf("a lock without a row: got %v, want an error that says so", err)
	}

	f.want("writes of the other lock of that transaction", 0, "SELECT n FROM locks WHERE id = 254")
}
