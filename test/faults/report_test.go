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

// A report is the line that a scenario prints at its end.
type report struct {
	t        *testing.T
	id       string
	injected string
	figures  []string
	skipped  string
	invalid  bool
	begun    time.Time
}

// A stall is a delay of this machine itself, between two looks at the clock with a small write to
// the disk.
type stall struct {
	at   time.Time
	long time.Duration
}

var stalls struct {
	sync.Mutex
	all []stall
}

// look is the beginning of the current look: an unfinished stall already counts.
var look atomic.Pointer[time.Time]

const (
	pause = 20 * time.Millisecond  // before a look writes
	noted = 20 * time.Millisecond  // shortest stall that is recorded
	told  = 100 * time.Millisecond // shortest stall that extends time limits
)

// watchMachine records stalls while the tests run. They extend time limits: on a shared machine a
// scenario would otherwise measure the other users more than the program.
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

// stalled returns the longest stall that ended after an instant or has not ended, if it is long
// enough to extend limits.
func stalled(since time.Time) time.Duration {
	if late := stalledIn(since, time.Now()); late > told {
		return late
	}
	return 0
}

// stalledIn returns the longest stall that overlaps an interval.
func stalledIn(from, to time.Time) (longest time.Duration) {
	if begun := look.Load(); begun != nil && begun.Before(to) { // before the list, which gets it as soon as it is over
		if late := time.Since(*begun) - pause; late > noted {
			longest = late
		}
	}
	stalls.Lock()
	defer stalls.Unlock()
	return max(longest, longestIn(stalls.all, from, to))
}

// longestIn returns the longest stall that overlaps an interval. The stalls are in order.
func longestIn(all []stall, from, to time.Time) (longest time.Duration) {
	for i := len(all) - 1; i >= 0 && all[i].at.Add(pause+all[i].long).After(from); i-- {
		if all[i].at.Before(to) {
			longest = max(longest, all[i].long)
		}
	}
	return longest
}

// TestLongestIn: a stall counts for measurements during it, and for no others.
func TestLongestIn(t *testing.T) {
	t.Parallel()

	at := time.Unix(1000, 0)
	after := func(d time.Duration) time.Time { return at.Add(d) }
	all := []stall{{at, 2 * time.Second}, {after(10 * time.Second), time.Second},
		{after(12 * time.Second), 3 * time.Second}}

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

// measured maps a duration that since has measured to the stalls of the machine during it. A
// duration in nanoseconds is practically unique.
var measured sync.Map

// since is time.Since, for a duration that is later passed to within.
func since(at time.Time) time.Duration {
	took := time.Since(at)
	measured.Store(took, stalled(at))
	return took
}

var printing sync.Mutex

// scenario begins a scenario. id is its number in docs/internals/reliability.md, and injected
// describes its fault.
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

// skip ends the scenario on a machine that lacks a requirement.
func (r *report) skip(format string, args ...any) {
	r.t.Helper()
	r.skipped = fmt.Sprintf(format, args...)
	r.t.Skip(r.skipped)
}

// invalidate marks the line as meaningless: the machine itself may have caused a thing that the
// program must not do.
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

// within fails the scenario if something took longer than promised. The duration comes from since
// or await, or has just ended.
func (r *report) within(what string, took, limit time.Duration) {
	r.t.Helper()
	late, known := measured.Load(took)
	if !known {
		late = stalled(time.Now().Add(-took))
	}
	r.lasted(what, took, limit, 3*late.(time.Duration))
}

// lasted is within for a caller that knows the machine's stalls.
func (r *report) lasted(what string, took, limit, late time.Duration) {
	r.t.Helper()
	r.figure("%s %s", what, short(took))
	switch {
	case took > limit+late:
		r.t.Errorf("%s: %s, want at most %s, and %s because the machine itself stalled", what, short(took), limit,
			short(late))
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

// await waits for a condition and returns the time that it took. Like within, it extends the limit
// by the machine's stalls.
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
