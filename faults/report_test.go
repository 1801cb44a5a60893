//go:build faults

package faults

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// A report is the line that a scenario prints when it is over.
type report struct {
	t        *testing.T
	id       string
	injected string
	figures  []string
	skipped  string
}

var printing sync.Mutex

// scenario begins one: id is that of docs/reliability.md, injected says what is done to the cluster.
func scenario(t *testing.T, id, injected string) *report {
	t.Helper()
	r := &report{t: t, id: id, injected: injected}
	t.Cleanup(r.print)
	return r
}

// figure adds a figure to the line.
func (r *report) figure(format string, args ...any) {
	r.figures = append(r.figures, fmt.Sprintf(format, args...))
}

// skip ends the scenario where this machine cannot do what it needs.
func (r *report) skip(format string, args ...any) {
	r.t.Helper()
	r.skipped = fmt.Sprintf(format, args...)
	r.t.Skip(r.skipped)
}

func (r *report) print() {
	verdict := "PASS"
	switch {
	case r.t.Failed():
		verdict = "FAIL"
	case r.skipped != "":
		verdict = "SKIP"
		r.figures = []string{r.skipped}
	}
	line := fmt.Sprintf("%s %s  %s: %s (seed %d)\n", verdict, r.id, r.injected, strings.Join(r.figures, ", "), seed)
	printing.Lock()
	defer printing.Unlock()
	fmt.Print(line)
	path := os.Getenv(reportVariable)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		r.t.Log(err)
		return
	}
	defer f.Close()
	if _, err := f.WriteString(line); err != nil {
		r.t.Log(err)
	}
}

// within fails the scenario when something took longer than promised.
func (r *report) within(what string, took, limit time.Duration) {
	r.t.Helper()
	r.figure("%s %s", what, short(took))
	if took > limit {
		r.t.Errorf("%s: %s, promised %s", what, short(took), limit)
	}
}

func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// await waits for something to become true and returns how long that took.
func await(t testing.TB, what string, limit time.Duration, ok func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	for !ok() {
		if time.Since(begun) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
		time.Sleep(25 * time.Millisecond)
	}
	return time.Since(begun)
}
