package faultproxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"go-crontab/test/testdb"
)

func TestSilentPartitionKeepsLocks(t *testing.T) {
	f := setUpImpatient(t)
	tx := f.begin(2)
	f.proxy.Blackhole(BothWays)

	began := time.Now()
	if err := tx.Commit(); number(err) != lost {
		t.Errorf("Commit: got %v, want no answer", err)
	}
	if took := time.Since(began); took < readTimeout {
		t.Errorf("gave up after %v, want the read timeout, %v", took, readTimeout)
	}
	f.through.Close()
	time.Sleep(50 * time.Millisecond)
	if f.wantState(0); !f.locked() {
		t.Error("the server has noticed that its client is gone")
	}

	f.proxy.Heal() // and the COMMIT arrives
	f.eventually("the COMMIT arrives", func() bool { return f.state() == 2 })
	f.eventually("the lock is free", func() bool { return !f.locked() })
}

func TestPartitionForGood(t *testing.T) {
	f := setUpImpatient(t)
	tx := f.begin(2)
	f.proxy.Blackhole(ToServer)
	if err := tx.Commit(); number(err) != lost {
		t.Errorf("Commit: got %v, want no answer", err)
	}

	f.proxy.CutAll()
	f.proxy.Heal()
	f.eventually("the lock is free", func() bool { return !f.locked() })
	f.wantState(0)
}

func TestOneWayPartition(t *testing.T) {
	f := setUpImpatient(t)
	tx := f.begin(2)
	f.proxy.Blackhole(ToClient)
	if err := tx.Commit(); number(err) != lost {
		t.Errorf("Commit: got %v, want no answer", err)
	}
	f.wantState(2)
}

func TestNobodyGetsInDuringAPartition(t *testing.T) {
	f := setUp(t)
	nobody := func() bool { return len(f.proxy.openLinks()) == 0 }
	f.through.Close()
	f.eventually("the first connection has ended", nobody)
	f.proxy.Blackhole(ToClient)
	db := f.open(func(c *mysql.Config) { c.ReadTimeout = readTimeout })
	if err := db.Ping(); number(err) != lost {
		t.Errorf("got %v, want no greeting", err)
	}

	db.Close()
	f.eventually("the proxy forgets a client that has given up", nobody)

	db = f.open(func(c *mysql.Config) { c.ReadTimeout = 0 })
	result := make(chan error, 1)
	go func() { result <- db.Ping() }()
	time.Sleep(50 * time.Millisecond)
	f.proxy.Heal()
	if err := <-result; err != nil {
		t.Errorf("after the heal: %v", err)
	}
}

func TestDelay(t *testing.T) {
	f := setUp(t)
	conn := f.conn()
	const there, back = 100 * time.Millisecond, 300 * time.Millisecond
	f.proxy.Delay(ToServer, there)
	f.proxy.Delay(ToClient, back)

	began := time.Now()
	readRows(t, conn, 900)

	// Thousands of packets, but one wait: a line is long, not narrow.
	if took := time.Since(began); took < there+back || took > 9*time.Second {
		t.Errorf("took %v, want a little more than %v", took, there+back)
	}

	f.proxy.Heal()
	quick(t, "healed", there+back, func() { readRows(t, conn, 1) })
}

func TestSlow(t *testing.T) {
	f := setUp(t)
	f.proxy.Slow(ToServer, 100_000)
	began := time.Now()
	f.exec(f.through, "DO '"+strings.Repeat("x", 60_000)+"'")
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("60 kB at 100 kB/s took %v, want 600 ms", took)
	}
	f.proxy.Slow(ToServer, 0)
	quick(t, "no longer slow", 500*time.Millisecond,
		func() { f.exec(f.through, "DO '"+strings.Repeat("x", 60_000)+"'") })
}

// quick fails unless one of ten tries takes less than a limit: a busy machine may be late itself.
func quick(t *testing.T, what string, limit time.Duration, try func()) {
	t.Helper()
	var took time.Duration
	for range 10 {
		began := time.Now()
		try()
		if took = time.Since(began); took < limit {
			return
		}
	}

	t.Errorf("%s: took %v", what, took)
}

func TestResetAfter(t *testing.T) {
	f := setUp(t)
	one := f.open(func(*mysql.Config) {})
	one.SetMaxOpenConns(1)
	f.exec(one, "DO 1")
	const size = 4 + 1 + len("DO 1")

	f.proxy.ResetAfter(ToServer, 3*int64(size)+2)
	for range 3 {
		f.exec(one, "DO 1")
	}

	if _, err := one.Exec("DO 1"); number(err) != lost {
		t.Errorf("the command in which the last byte falls: got %v", err)
	}
	if err := one.Ping(); number(err) != lost {
		t.Errorf("a new connection has the same bytes, too few for a handshake: got %v", err)
	}

	f.proxy.Heal()
	f.exec(one, "DO 1")

	f.proxy.ResetAfter(ToClient, 0)
	if _, err := one.Exec("UPDATE task SET state = 7"); number(err) != lost {
		t.Errorf("the first byte of a reply: got %v", err)
	}

	f.wantState(7)
	if n := f.proxy.Counts().Resets; n < 3 {
		t.Errorf("%d resets are counted, want 3 at least", n)
	}

	f.proxy.Heal()
	f.exec(one, "DO 1")
	before := f.proxy.Counts().Resets
	f.proxy.CutAll()
	f.exec(one, "DO 1")
	if n := f.proxy.Counts().Resets; n != before {
		t.Errorf("%d other cuts are counted as resets", n-before)
	}
}

func TestRefuseAndCutAll(t *testing.T) {
	f := setUp(t)
	f.proxy.Refuse()
	f.exec(f.through, "DO 1") // existing connections continue
	if err := f.open(func(*mysql.Config) {}).Ping(); number(err) != lost {
		t.Errorf("a new connection: got %v", err)
	}

	tx := f.begin(2)
	f.proxy.CutAll()
	if err := tx.Commit(); number(err) != lost {
		t.Errorf("a connection that was cut: got %v", err)
	}
	if err := f.through.Ping(); number(err) != lost {
		t.Errorf("the connection in its place: got %v", err)
	}

	f.proxy.Heal()
	f.exec(f.through, "DO 1")
	f.wantState(0)
}

func TestServerEndsAConnection(t *testing.T) {
	f := setUp(t)
	conn := f.conn()
	f.exec(f.direct, fmt.Sprint("KILL ", f.id(conn)))
	f.eventually("the proxy lets go of it", func() bool { return len(f.proxy.openLinks()) == 0 })
	if err := conn.PingContext(t.Context()); err == nil {
		t.Error("the connection still works")
	}
}

func TestServerEndsAConnectionInAPartition(t *testing.T) {
	f := setUpImpatient(t)
	conn := f.conn()
	id := f.id(conn)
	f.proxy.Blackhole(ToClient)
	f.exec(f.direct, fmt.Sprint("KILL ", id))
	time.Sleep(50 * time.Millisecond)
	began := time.Now()
	if _, err := conn.ExecContext(t.Context(), "DO 1"); number(err) != lost {
		t.Errorf("got %v, want no answer", err)
	}

	if took := time.Since(began); took < readTimeout {
		t.Errorf("the client knew after %v that the server had hung up", took)
	}
}

func TestNoServer(t *testing.T) {
	f := setUp(t)
	nowhere := New(t, "unix", t.TempDir()+"/none")
	if err := open(t, nowhere.DSN(f.dsn)).Ping(); number(err) != lost {
		t.Errorf("got %v, want a reset", err)
	}
}

// Close must return, whatever its connections wait for. TestMain checks for leaked goroutines.
func TestCloseInTheMiddle(t *testing.T) {
	f := setUp(t)
	results := make(chan error)

	commit := func(a Action) *Injected {
		fault := f.proxy.Add(claim(a))
		tx := f.begin(2)
		go func() { results <- tx.Commit() }()
		f.wait(fault.Wait)
		return fault
	}

	before := commit(HoldBefore(0))
	f.exec(f.direct, "INSERT INTO task VALUES (2, 0)")
	f.proxy.Blackhole(BothWays)
	go func() { results <- f.open(func(*mysql.Config) {}).Ping() }()
	time.Sleep(20 * time.Millisecond)
	f.proxy.Close()

	for range 2 {
		if err := <-results; number(err) != lost {
			t.Errorf("got %v, want no answer", err)
		}
	}

	f.wait(before.Settle)
	f.proxy.Close() // twice does no harm
}

func TestServerOverTCP(t *testing.T) {
	t.Parallel()

	server := testdb.Server(t)
	if err := server.CreateSchema(t.Context(), "tasks"); err != nil {
		t.Fatal(err)
	}
	f := proxied(t, server.DSNAt(server.Addr(), "tasks"))
	ghost := f.proxy.Add(claim(HoldBefore(0)))
	tx, result := f.begin(2), make(chan error, 1)
	go func() { result <- tx.Commit() }()
	f.wait(ghost.Wait)
	f.wantState(0)
	ghost.Release()

	if err := <-result; err != nil {
		t.Errorf("Commit: %v", err)
	}

	acknowledgement := f.proxy.Add(claim(CutAfter()))
	if err := f.begin(2).Commit(); number(err) != lost {
		t.Errorf("Commit: got %v, want no answer", err)
	}

	f.wait(acknowledgement.Wait)
	f.wantState(2)

	tx = f.begin(3)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); number(err) != lost {
		t.Errorf("Commit on a dead server: got %v", err)
	}
	if err := f.through.Ping(); number(err) != lost {
		t.Errorf("Ping of a dead server: got %v", err)
	}

	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	f.exec(f.through, "DO 1")
	f.wantState(2)
}
