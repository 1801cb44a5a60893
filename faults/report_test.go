//go:build faults

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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
	begun    time.Time
}

// A stall is that this machine was late itself: so long between two looks at the clock and one small write to the disk.
type stall struct {
	at   time.Time
	long time.Duration
}

var stalls struct {
	sync.Mutex
	all []stall
}

// look is when the look that is under way began: a stall that goes on counts already.
var look atomic.Pointer[time.Time]

const pause = 20 * time.Millisecond // before a look writes

// watchMachine notes stalls, for as long as the tests run. Limits of time are longer by what the machine was late itself:
// where others use it too, a scenario would say more about them than about the program.
func watchMachine(dir string) {
	f, err := os.Create(filepath.Join(dir, "probe"))
	if err != nil {
		return
	}
	defer f.Close()
	defer look.Store(nil)
	for {
		begun := time.Now()
		look.Store(&begun)
		time.Sleep(pause)
		if _, err := f.WriteAt([]byte("x"), 0); err != nil {
			return
		}
		_ = f.Sync()
		if late := time.Since(begun) - pause; late > 100*time.Millisecond {
			stalls.Lock()
			stalls.all = append(stalls.all, stall{begun, late})
			stalls.Unlock()
		}
	}
}

// stalled is the longest stall that ended after an instant, or has not ended.
func stalled(since time.Time) (longest time.Duration) {
	if begun := look.Load(); begun != nil { // before the list, which has it as soon as it is over
		if late := time.Since(*begun) - pause; late > 100*time.Millisecond {
			longest = late
		}
	}
	stalls.Lock()
	defer stalls.Unlock()
	for i := len(stalls.all) - 1; i >= 0 && stalls.all[i].at.Add(pause+stalls.all[i].long).After(since); i-- {
		longest = max(longest, stalls.all[i].long)
	}
	return longest
}

var printing sync.Mutex

// scenario begins one: id is that of docs/reliability.md, injected says what is done to the cluster.
func scenario(t *testing.T, id, injected string) *report {
	t.Helper()
	r := &report{t: t, id: id, injected: injected, begun: time.Now()}
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
	if late := stalled(r.begun); late > 500*time.Millisecond {
		r.figure("the machine itself stalled for up to %s", short(late))
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
	if late := 3 * stalled(r.begun); took > limit+late {
		r.t.Errorf("%s: %s, want at most %s, and %s because the machine itself stalled", what, short(took), limit, short(late))
	}
}

func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// await waits for something to become true and returns how long that took. The limit is longer by what the machine itself
// was late, as in within.
func await(t testing.TB, what string, limit time.Duration, ok func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	for !ok() {
		if late := 3 * stalled(begun); time.Since(begun) > limit+late {
			t.Fatalf("not within %s, and %s because the machine itself stalled: %s", limit, short(late), what)
		}
		time.Sleep(25 * time.Millisecond)
	}
	return time.Since(begun)
}
