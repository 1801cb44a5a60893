package privatedb

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// small returns options for a server that starts quickly and takes little memory.
func small(dir string) Options {
	return Options{Dir: dir, Pool: 16, Redo: 8, Extra: []string{"--loose-innodb-flush-method=nosync"}}
}

func start(t *testing.T, o Options) *DB {
	t.Helper()
	db, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := db.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})

	return db
}

// write commits a row, and read finds it.
func write(t *testing.T, db *DB) {
	t.Helper()
	err := db.exec(t.Context(), "CREATE DATABASE kept",
		"CREATE TABLE kept.t (a INT) ENGINE=InnoDB", "INSERT INTO kept.t VALUES (42)")
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, db *DB) {
	t.Helper()
	var a int
	if err := query(t, db.DSN("kept"), "SELECT a FROM t", &a); err != nil || a != 42 {
		t.Errorf("read the row committed before: got %d, %v; want 42", a, err)
	}
}

func query(t *testing.T, dsn, statement string, into any) error {
	t.Helper()
	pool, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	return pool.QueryRowContext(t.Context(), statement).Scan(into)
}

// Environment variables of a helper process: its task, and its folder ("": a temporary one).
const helperDo, helperDir = "PRIVATEDB_TEST_DO", "PRIVATEDB_TEST_DIR"

// TestHelperParent is the parent process that other tests start and kill, and no test of its own.
func TestHelperParent(t *testing.T) {
	do := os.Getenv(helperDo)
	if do == "" {
		return
	}

	db, err := Start(context.Background(), small(os.Getenv(helperDir)))
	if err != nil {
		fmt.Println("ERROR", strings.ReplaceAll(err.Error(), "\n", " / "))
		os.Exit(1)
	}

	fmt.Println("READY", db.PID(), db.watcher.cmd.Process.Pid, db.Dir())
	if do == "exit" {
		os.Exit(3)
	}

	time.Sleep(time.Minute)
}

// life is a helper process and its server.
type life struct {
	cmd             *exec.Cmd
	server, watcher int
	dir             string
}

// helper makes a command that runs this test binary as a parent.
func helper(t *testing.T, do, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperParent$")
	cmd.Env = append(os.Environ(), helperDo+"="+do, helperDir+"="+dir)
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})

	return cmd
}

// live runs cmd until its server answers.
func live(t *testing.T, cmd *exec.Cmd) life {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	line, err := bufio.NewReader(out).ReadString('\n')
	l := life{cmd: cmd}
	if _, scanErr := fmt.Sscanf(line, "READY %d %d %s", &l.server, &l.watcher, &l.dir); scanErr != nil {
		t.Fatalf("the helper says %q (%v), want READY", line, err)
	}
	return l
}

// die kills the process like kill -9.
func (l life) die(t *testing.T) {
	t.Helper()
	if err := l.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = l.cmd.Wait()
}

// alive reports whether a server of the folder runs: after the parent's death only a server can
// hold the lock.
func alive(t *testing.T, dir string) bool {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "server.lock"))
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}

	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK
}

// eventually fails unless ok becomes true within 30 s.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
