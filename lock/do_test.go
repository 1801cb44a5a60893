package lock_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"
)

// fixture is an exclusion whose connections go through a fault proxy, and a pool without the proxy.
type fixture struct {
	*testing.T
	beside *sql.DB
	x      *lock.Exclusion
	proxy  *faultproxy.Proxy
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	dsn := testdb.DSN(t)
	open := func(dsn string, timeouts sql.Timeouts) *sql.DB {
		db, err := sql.Open(dsn, timeouts, 8)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}

	migrator := open(dsn, sql.MigrateTimeouts)
	if _, _, err := migrator.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Raw().Exec("INSERT INTO locks (id, name) VALUES (2, 'two'), (3, 'three')"); err != nil {
		t.Fatal(err)
	}

	migrator.Close()
	p := faultproxy.Before(t, dsn)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	x := lock.New(open(p.DSN(dsn), sql.DefaultTimeouts), lock.Unmeasured{}, log)
	return &fixture{t, open(dsn, sql.MigrateTimeouts), x, p}
}

func (f *fixture) number(query string, args ...any) (n int) {
	f.Helper()
	if err := f.beside.Raw().QueryRow(query, args...).Scan(&n); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
	return n
}

// session is the owner of the runs in this test.
const session trip.Owner = 7

// run inserts a prepared run and returns its launch.
func (f *fixture) run() trip.Launch {
	f.Helper()
	run := trip.Run{
		Launch: trip.Launch{Run: 1, Claim: 1}, JobID: 1, AppID: 1, Kind: trip.Schedule, Attempt: 1, Due: 1, DueNow: 1,
	}
	err := f.beside.Tx(f.Context(), func(tx *sql.Tx) error { return trip.Insert(tx, session, []trip.Run{run}) })
	if err != nil {
		f.Fatal(err)
	}
	return run.Launch
}

// begin is a change like those of the stages: it updates the row of a run, and puts the run into a
// set.
type begin struct {
	f       *fixture
	launch  trip.Launch
	began   bool // according to the last Rows, corrected by the last Settle
	rows    int  // calls of Rows
	settled int  // calls of Settle
	sets    int  // calls of Sets
	set     []trip.Launch
}

func (f *fixture) begin() *begin { return &begin{f: f, launch: f.run()} }

func (b *begin) change() lock.Change {
	return lock.Change{
		Name:  "start",
		Locks: []sql.LockID{3, 2},
		Rows: func(tx *sql.Tx) error {
			b.rows++
			n, err := trip.Start(tx, session, 0, false, []trip.Launch{b.launch}, 1, 1)
			b.began = n == 1
			return err
		},
		Settle: func(tx *sql.Tx) error {
			b.settled++
			started, err := trip.StartedAmong(tx, session, []trip.Launch{b.launch})
			if err != nil {
				return err
			}
			b.began = started[b.launch]
			return nil
		},
		Sets: func() {
			b.sets++
			if b.began {
				b.set = append(b.set, b.launch)
			}
		},
	}
}

// inStep compares the set with the row.
func (b *begin) inStep() {
	b.f.Helper()
	executing := b.f.number("SELECT COUNT(*) FROM run WHERE state = 'executing' FOR UPDATE")
	if executing != len(b.set) {
		b.f.Errorf("%d rows execute and %d runs are in the set", executing, len(b.set))
	}
}

// TestFates sends a change through every fate. Sets runs once if the rows are known and never
// otherwise, and afterwards set and row agree.
func TestFates(t *testing.T) {
	t.Parallel()
	const some = -1 // once, or again after a lock timeout
	const statement = "SET state = 'executing'"
	commit := faultproxy.CommitOf(statement)
	settling := faultproxy.SQL("(?s)FROM run .*FOR UPDATE")
	deadlock := faultproxy.Error(1213, "40001", "Deadlock found")
	for name, c := range map[string]struct {
		rules               []faultproxy.Rule
		rows, settled, sets int // calls of each
		fails               bool
		started             int // runs in the set at the end
	}{
		"nothing goes wrong": {nil, 1, 0, 1, false, 1},
		"the rows are refused": {
			[]faultproxy.Rule{{Match: faultproxy.SQL(statement),
				Action: faultproxy.Error(1406, "22001", "Data too long")}}, 1, 0, 0, true, 0},
		"the locks are refused": {
			[]faultproxy.Rule{{Match: faultproxy.SQL("UPDATE locks"),
				Action: faultproxy.Error(1142, "42000", "command denied")}}, 0, 0, 0, true, 0},
		"the link is cut amid the rows": {
			[]faultproxy.Rule{{Match: faultproxy.SQL(statement), Action: faultproxy.CutAfter()}}, 1, 0, 0, true, 0},
		"the rows deadlock twice": {
			[]faultproxy.Rule{{Match: faultproxy.SQL(statement), Times: 2, Action: deadlock}}, 3, 0, 1, false, 1},
		"the commit is refused, and given the second time": {
			[]faultproxy.Rule{{Match: commit, Action: deadlock}}, 2, 0, 1, false, 1},
		"the reply to the commit is lost": {
			[]faultproxy.Rule{{Match: commit, Action: faultproxy.CutAfter()}}, 1, 1, 1, false, 1},
		"the commit never arrives": {
			[]faultproxy.Rule{{Match: commit, Action: faultproxy.CutBefore()}}, 1, some, 1, false, 0},
		"the commit arrives after its sender gave up": {
			[]faultproxy.Rule{{Match: commit, Action: faultproxy.HoldBefore(3500 * time.Millisecond)}}, 1, some, 1,
			false, 1},
		"the reply is lost, and settling fails at first": {
			[]faultproxy.Rule{{Match: settling, Times: 2, Action: faultproxy.CutBefore()},
				{Match: commit, Action: faultproxy.CutAfter()}}, 1, 3, 1, false, 1},
		"the reply is lost, and that of the settling commit too": {
			[]faultproxy.Rule{{Match: commit, Action: faultproxy.CutAfter()},
				{Match: faultproxy.CommitOf("(?s)FROM run .*FOR UPDATE"), Action: faultproxy.CutAfter()}}, 1, 2, 1,
			false, 1},
		"the commit never arrives, and the reply of the settling commit is lost": {
			[]faultproxy.Rule{{Match: commit, Action: faultproxy.CutBefore()},
				{Match: faultproxy.CommitOf("(?s)FROM run .*FOR UPDATE"), Action: faultproxy.CutAfter()}}, 1, some, 1,
			false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			for _, r := range c.rules {
				f.proxy.Add(r)
			}

			k := f.begin()
			err := f.x.Do(t.Context(), k.change())
			if (err != nil) != c.fails {
				t.Errorf("got error %v, want one: %v", err, c.fails)
			}
			if sql.IsUnknown(err) {
				t.Errorf("got %v: nobody may be left with an unknown commit", err)
			}
			if k.rows != c.rows || k.sets != c.sets {
				t.Errorf("Rows ran %d times and Sets %d times, want %d and %d", k.rows, k.sets, c.rows, c.sets)
			}

			if k.settled != c.settled && !(c.settled == some && k.settled > 0) {
				t.Errorf("Settle ran %d times, want %d", k.settled, c.settled)
			}
			if len(k.set) != c.started {
				t.Errorf("got %d runs in the set, want %d", len(k.set), c.started)
			}

			k.inStep()
			locks := f.number("SELECT SUM(n) FROM locks")
			if want := 2 * f.number("SELECT COUNT(*) FROM run WHERE state = 'executing'"); locks != want {
				t.Errorf("got %d writes of lock rows, want %d: they belong to the transaction", locks, want)
			}
		})
	}
}

var errOver = errors.New("the session is over")

// TestSessionEndsUnsettled: a commit is unknown and MySQL stays away. Only the end of the session
// ends the wait, and the sets do not change.
func TestSessionEndsUnsettled(t *testing.T) {
	f := setUp(t)
	k := f.begin()
	lost := f.proxy.Add(faultproxy.Rule{
		Match: faultproxy.CommitOf("SET state = 'executing'"), Action: faultproxy.CutAfter(),
	})
	f.proxy.OnCommand(func(c faultproxy.Command) {
		if c.IsCommit() {
			f.proxy.Refuse()
		}
	})

	ctx, end := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.x.Do(ctx, k.change()) }()
	if err := lost.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}

	select {
	case err := <-done:
		t.Fatalf("it ended with %v before the session did", err)
	case <-time.After(300 * time.Millisecond): // three attempts to settle
	}

	end(errOver)
	err := <-done
	if !errors.Is(err, errOver) || !strings.HasPrefix(err.Error(), "settle start: ") {
		t.Errorf("got %v, want settle start: %v", err, errOver)
	}
	if k.rows != 1 || k.sets != 0 {
		t.Errorf("Rows ran %d times and Sets %d times, want 1 and 0", k.rows, k.sets)
	}
	if n := f.number("SELECT COUNT(*) FROM run WHERE state = 'executing'"); n != 1 {
		t.Errorf("got %d rows that execute, want 1: the commit had arrived", n)
	}

	// The exclusion is free.
	f.proxy.Heal()
	if err := f.x.Alone(t.Context(),
		lock.Change{Name: "next", Rows: func(*sql.Tx) error { return nil }, Sets: func() {}}); err != nil {
		t.Errorf("the next change: %v", err)
	}
}

// TestEndedContext: no change begins with a context that has ended.
func TestEndedContext(t *testing.T) {
	f := setUp(t)
	k := f.begin()
	ctx, end := context.WithCancelCause(t.Context())
	end(errOver)
	for name, do := range map[string]func(context.Context, lock.Change) error{"Do": f.x.Do, "Alone": f.x.Alone} {
		if err := do(ctx, k.change()); !errors.Is(err, errOver) {
			t.Errorf("%s: got %v, want %v", name, err, errOver)
		}
	}

	if k.rows+k.sets != 0 {
		t.Errorf("Rows ran %d times and Sets %d times, want neither", k.rows, k.sets)
	}
}

// TestMissingLockRow: a missing lock row would exclude no other change, so it is an error and no
// row changes.
func TestMissingLockRow(t *testing.T) {
	f := setUp(t)
	k := f.begin()
	if _, err := f.beside.Raw().Exec("DELETE FROM locks WHERE id = ?", 3); err != nil {
		t.Fatal(err)
	}

	for name, do := range map[string]func(context.Context, lock.Change) error{"Do": f.x.Do, "Alone": f.x.Alone} {
		if err := do(t.Context(), k.change()); err == nil ||
			!strings.Contains(err.Error(), "the table locks has 1 of 2 rows") {
			t.Errorf("%s: got %v, want an error that says so", name, err)
		}
	}

	if k.rows+k.sets != 0 {
		t.Errorf("Rows ran %d times and Sets %d times, want neither", k.rows, k.sets)
	}

	k.inStep()
	if n := f.number("SELECT SUM(n) FROM locks"); n != 0 {
		t.Errorf("got %d writes of the other lock row, want none", n)
	}
}

// TestChangesRunTogether: changes of different runs do not wait for each other within the process.
func TestChangesRunTogether(t *testing.T) {
	f := setUp(t)
	var met, all sync.WaitGroup
	met.Add(3)
	for range 3 {
		all.Go(func() {
			err := f.x.Do(t.Context(), lock.Change{
				Name: "meet", Rows: func(*sql.Tx) error { met.Done(); met.Wait(); return nil }, Sets: func() {},
			})
			if err != nil {
				t.Error(err)
			}
		})
	}

	all.Wait()
}

// TestAlone: an exclusive change runs after the sets of earlier changes and before the rows of
// later ones. It gets its turn even if changes keep coming.
func TestAlone(t *testing.T) {
	f := setUp(t)
	var mu sync.Mutex
	var order []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}

	change := func(name string, rows func()) lock.Change {
		return lock.Change{
			Name: name,
			Rows: func(*sql.Tx) error {
				note(name + " rows")
				rows()
				return nil
			},
			Sets: func() { note(name + " sets") },
		}
	}

	began, finish := make(chan bool), make(chan bool)
	var all sync.WaitGroup
	do := func(with func(context.Context, lock.Change) error, c lock.Change) {
		all.Go(func() {
			if err := with(f.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}

	do(f.x.Do, change("before", func() { began <- true; <-finish }))
	<-began
	do(f.x.Alone, change("alone", func() {}))

	// Once an exclusive change is waiting, no other change gets in.
	for entered := true; entered; {
		entered = false
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := f.x.Do(ctx, lock.Change{
			Name: "try", Rows: func(*sql.Tx) error { entered = true; return nil }, Sets: func() {},
		})
		cancel()
		entered = entered || !errors.Is(err, context.DeadlineExceeded)
	}

	do(f.x.Do, change("behind", func() {}))
	close(finish)
	all.Wait()
	want := []string{"before rows", "before sets", "alone rows", "alone sets", "behind rows", "behind sets"}
	if !slices.Equal(order, want) {
		t.Errorf("got order %q, want %q", order, want)
	}
}

// TestAloneExcludes runs changes of both kinds at once and checks that none is in progress during
// an exclusive one.
func TestAloneExcludes(t *testing.T) {
	f := setUp(t)
	var inside, alone atomic.Int64
	body := func(c *atomic.Int64, ok func() bool) lock.Change {
		check := func(where string) {
			if !ok() {
				t.Errorf("%s: %d changes and %d alone are under way", where, inside.Load(), alone.Load())
			}
		}

		return lock.Change{
			Name: "x",
			Rows: func(*sql.Tx) error { c.Add(1); check("rows"); return nil },
			Sets: func() { check("sets"); c.Add(-1) },
		}
	}

	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for range 25 {
				var err error
				if i < 4 {
					err = f.x.Do(t.Context(), body(&inside, func() bool { return alone.Load() == 0 }))
				} else {
					err = f.x.Alone(t.Context(), body(&alone, func() bool {
						return alone.Load() == 1 && inside.Load() == 0
					}))
				}

				if err != nil {
					t.Error(err)
				}
			}
		})
	}

	all.Wait()
}

// TestQuiet: it waits for the sets of changes in progress, delays none that come later, and gives
// up with its context.
func TestQuiet(t *testing.T) {
	f := setUp(t)
	if err := f.x.Quiet(t.Context()); err != nil {
		t.Fatal(err)
	}

	began, finish := make(chan bool), make(chan bool)
	var set atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		err := f.x.Do(f.Context(), lock.Change{
			Name: "under way", Rows: func(*sql.Tx) error { began <- true; <-finish; return nil }, Sets: func() {
				set.Store(true)
			},
		})
		if err != nil {
			t.Error(err)
		}
	})

	<-began
	impatient, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := f.x.Quiet(impatient); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside a change that is under way: got %v", err)
	}

	all.Go(func() {
		if err := f.x.Quiet(f.Context()); err != nil || !set.Load() {
			t.Errorf("got %v, the sets were changed: %t", err, set.Load())
		}
	})

	close(finish)
	all.Wait()
	if err := f.x.Do(t.Context(),
		lock.Change{Name: "behind", Rows: func(*sql.Tx) error { return nil }, Sets: func() {}}); err != nil {
		t.Error(err)
	}
}
