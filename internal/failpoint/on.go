//go:build failpoint

package failpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// The environment variables of the point and of the log.
const (
	Variable    = "GOCRONTAB_FAILPOINT"
	LogVariable = "GOCRONTAB_FAILPOINT_LOG"
)

// Reads reports whether this package reads an environment variable. Child processes that run this
// program need such variables.
func Reads(variable string) bool { return variable == Variable || variable == LogVariable }

var (
	name string
	left int // passes until this process kills itself
	log  *os.File

	mu     sync.Mutex
	passed = map[string]bool{}
)

func init() {
	if text := os.Getenv(Variable); text != "" {
		at := strings.LastIndexByte(text, ':')
		n, err := strconv.Atoi(text[at+1:])
		if at < 1 || err != nil || n < 1 {
			fmt.Fprintf(os.Stderr, "%s=%q: want name:n, as in \"commit claim:3\"\n", Variable, text)
			os.Exit(2)
		}
		name, left = text[:at], n
	}

	if path := os.Getenv(LogVariable); path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", LogVariable, err)
			os.Exit(2)
		}
		log = f
	}
}

// Here is a point.
func Here(when, what string) {
	if name == "" && log == nil {
		return
	}

	point := when + " " + what
	mu.Lock()
	defer mu.Unlock()
	if log != nil && !passed[point] {
		passed[point] = true
		fmt.Fprintln(log, point)
	}

	if point != name {
		return
	}
	if left--; left > 0 {
		return
	}

	for { // other goroutines may run for a moment, as with any kill; this one must not go on
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

// Trail holds the names of the statements that a transaction has sent.
type Trail struct{ written []string }

// Before is a point before a statement is sent.
func (t *Trail) Before(what string) {
	Here("before", what)
	if !slices.Contains(t.written, what) {
		t.written = append(t.written, what)
	}
}

// Commit is a point for each statement of the transaction, before COMMIT.
func (t *Trail) Commit() {
	for _, what := range t.written {
		Here("commit", what)
	}
}

// Committed is a point for each statement of the transaction, after COMMIT.
func (t *Trail) Committed() {
	for _, what := range t.written {
		Here("committed", what)
	}
}
