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
	invalid  bool
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

const (
	pause = 20 * time.Millisecond  // before a look writes
	noted = 20 * time.Millisecond  // what is a stall
	told  = 100 * time.Millisecond // … that limits of time heed
)

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
		if late := time.Since(begun) - pause; late > noted {
			stalls.Lock()
			stalls.all = append(stalls.all, stall{begun, late})
			stalls.Unlock()
		}
	}
}

// stalled is the longest stall that ended after an instant, or has not ended, if limits of time heed it.
func stalled(since time.Time) time.Duration {
	if late := stalledIn(since, time.Now()); late > told {
		return late
	}
	return 0
}

// stalledIn is the longest stall of which some was between two instants.
func stalledIn(from, to time.Time) (longest time.Duration) {
	if begun := look.Load(); begun != nil && begun.Before(to) { // before the list, which has it as soon as it is over
		if late := time.Since(*begun) - pause; late > noted {
			longest = late
		}
	}
	stalls.Lock()
	defer stalls.Unlock()
	return max(longest, longestIn(stalls.all, from, to))
}

// longestIn is the longest of stalls, which are in order, of which some was between two instants.
func longestIn(all []stall, from, to time.Time) (longest time.Duration) {
	for i := len(all) - 1; i >= 0 && all[i].at.Add(pause+all[i].long).After(from); i-- {
		if all[i].at.Before(to) {
			longest = max(longest, all[i].long)
		}
	}
	return longest
}

// TestLongestIn: a stall counts for what was measured while it lasted, and for nothing before or after.
func TestLongestIn(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	after := func(d time.Duration) time.Time { return at.Add(d) }
	all := []stall{{at, 2 * time.Second}, {after(10 * time.Second), time.Second}, {after(12 * time.Second), 3 * time.Second}}
	for _, c := range []struct{ from, to, want time.Duration }{
		{-time.Second, 0, 0},
		{-time.Second, time.Millisecond, 2 * time.Second},
		{time.Second, 20 * time.Second, 3 * time.Second},
		{3 * time.Second, 9 * time.Second, 0},
		{3 * time.Second, 11 * time.Second, time.Second},
		{14 * time.Second, 14 * time.Second, 3 * time.Second},
		{16 * time.Second, 60 * time.Second, 0},
	} {
		if got := longestIn(all, after(c.from), after(c.to)); got != c.want {
			t.Errorf("from %s to %s: got %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

// measured has what the machine stalled during lengths of time that since has measured: a length of so many nanoseconds
// there is once.
var measured sync.Map

// since is time.Since of something of which within is told later.
func since(at time.Time) time.Duration {
	took := time.Since(at)
	measured.Store(took, stalled(at))
	return took
}

var printing sync.Mutex

// scenario begins one: id is that of docs/internals/reliability.md, injected says what is done to the cluster.
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

// invalidate has the line say that it says nothing: the machine itself may have done what the program must not do.
func (r *report) invalidate(format string, args ...any) {
	r.invalid = true
	r.figure(format, args...)
}

func (r *report) print() {
	verdict := "PASS"
	if r.invalid {
		verdict = "INVALID"
	}
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

// within fails the scenario when something took longer than promised: what since, or await, has measured, or what is just over.
func (r *report) within(what string, took, limit time.Duration) {
	r.t.Helper()
	late, known := measured.Load(took)
	if !known {
		late = stalled(time.Now().Add(-took))
	}
	r.lasted(what, took, limit, 3*late.(time.Duration))
}

// lasted is within for who knows what the machine stalled meanwhile.
func (r *report) lasted(what string, took, limit, late time.Duration) {
	r.t.Helper()
	r.figure("%s %s", what, short(took))
	switch {
	case took > limit+late:
		r.t.Errorf("%s: %s, want at most %s, and %s because the machine itself stalled", what, short(took), limit, short(late))
	case took > limit:
		r.figure("which is more than %s while the machine itself stalled", short(limit))
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
	return since(begun)
}
