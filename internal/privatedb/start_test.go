package privatedb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestDataOutlivesStopAndStart(t *testing.T) {
	t.Parallel()
	o := small(t.TempDir())
	o.Durable = true
	db := start(t, o)
	write(t, db)
	if err := db.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := db.Stop(); err != nil {
		t.Errorf("second Stop: got %v, want nothing to do", err)
	}

	if err := db.Restart(t.Context()); !errors.Is(err, errStopped) {
		t.Errorf("Restart after Stop: got %v, want %v", err, errStopped)
	}
	read(t, start(t, o))
}

func TestKillAndRestartKeepCommits(t *testing.T) {
	t.Parallel()
	o := small(t.TempDir())
	o.TCP = true
	db := start(t, o)
	write(t, db)
	pid, addr := db.PID(), db.Addr()
	for range 3 {
		if err := db.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := db.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		read(t, db)
	}

	if err := db.Restart(t.Context()); err != nil { // of a living server
		t.Fatal(err)
	}

	read(t, db)
	if db.PID() == pid || db.Addr() != addr {
		t.Errorf("got pid %d, address %s; want another pid than %d, the address %s", db.PID(), db.Addr(), pid, addr)
	}

	var n int
	if err := query(t, db.DSNAt(addr, "kept"), "SELECT COUNT(*) FROM t", &n); err != nil || n != 1 {
		t.Errorf("over TCP: got %d rows, %v; want 1", n, err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	db := start(t, small(""))
	for variable, want := range map[string]string{
		"innodb_flush_log_at_trx_commit": "2",
		"innodb_buffer_pool_size":        "16777216",
		"character_set_server":           "utf8mb4",
		"performance_schema":             "0",
		"log_bin":                        "0",
		"skip_networking":                "1",
	} {
		var got string
		if err := query(t, db.DSN(""), "SELECT @@"+variable, &got); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", variable, got, err, want)
		}
	}

	if info, err := os.Stat(filepath.Dir(db.Socket())); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's folder: got %v, %v; want mode 0700, the socket makes everybody root", info.Mode(), err)
	}
}

func TestSecondParentIsRefused(t *testing.T) {
	t.Parallel()
	db := start(t, small(t.TempDir()))
	second, err := Start(t.Context(), small(db.Dir()))
	if err == nil {
		second.Stop()
		t.Fatal("two servers share a folder")
	}

	if !strings.Contains(err.Error(), db.Dir()+" is in use by process") {
		t.Errorf("got %q, want the folder and its owner", err)
	}
	if err := db.CreateSchema(t.Context(), "x"); err != nil {
		t.Errorf("the first is disturbed: %v", err)
	}
}

func TestLongAndOddPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30), "it's [odd] (*) 数据")
	db := start(t, small(dir))
	if len(db.Socket()) > socketMax {
		t.Errorf("got a socket path of %d bytes, want at most %d", len(db.Socket()), socketMax)
	}

	write(t, db)
	if err := db.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	read(t, db)
	if err := db.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(db.Socket())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket's own folder after Stop: got %v, want it gone", err)
	}
}

func TestOddShortPathKeepsSocketWithData(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "a (b) [c] *")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	db := start(t, small(dir))
	if filepath.Dir(filepath.Dir(db.Socket())) != db.Dir() {
		t.Skipf("the temporary folder itself is long: %s", dir)
	}

	write(t, db)
	read(t, db)
}

// TestPathWithAnAt uses a folder whose path cannot be in a DSN.
func TestPathWithAnAt(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "a@b")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	db := start(t, small(dir))
	write(t, db)
	read(t, db)
	if strings.Contains(db.DSN("kept"), "@b") || !strings.Contains(db.Dir(), "a@b") {
		t.Errorf("got the DSN %s for the folder %s", db.DSN("kept"), db.Dir())
	}
}

func TestHalfMadeDataIsRedone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	junk := filepath.Join(dir, "data.new-1")
	if err := os.MkdirAll(filepath.Join(junk, "mysql"), 0o700); err != nil {
		t.Fatal(err)
	}

	start(t, small(dir))
	if _, err := os.Stat(junk); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("leftover of a cut short first start: got %v, want it gone", err)
	}
}

func TestFailedStartTellsWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()
	o := small(t.TempDir())
	start(t, o).Stop()
	o.Extra = []string{"--no-such-flag"}
	db, err := Start(t.Context(), o)
	if err == nil {
		db.Stop()
		t.Fatal("a server with an unknown flag starts")
	}

	if !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("got %q, want the server's own words", err)
	}
	if alive(t, o.Dir) {
		t.Error("a process is left")
	}
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stop := errors.New("the user has second thoughts")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(stop) }) // while the data folder is made
	if db, err := Start(ctx, small(dir)); !errors.Is(err, stop) {
		t.Fatalf("got %v, %v; want %v", db, err, stop)
	}
	if alive(t, dir) {
		t.Error("a process is left")
	}

	start(t, small(dir))
}

func TestWaitReportsADeadServer(t *testing.T) {
	t.Parallel()
	db := start(t, small(""))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := db.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it lives: got %v, want %v", err, context.DeadlineExceeded)
	}
	if err := syscall.Kill(db.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}

	if err := db.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got %v, want how it ended", err)
	}
	if err := db.Restart(t.Context()); err != nil {
		t.Error(err)
	}
}

// Not parallel: it looks at all goroutines of the process.
func TestNoGoroutineWhileRunning(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	start(t, small(""))
	goleak.VerifyNone(t, leaks)
}

// TestFreePorts checks that a caller that asks for several ports before listening gets different
// ones.
func TestFreePorts(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 1000 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Fatalf("%d twice", port)
		}
		seen[port] = true
	}
}
