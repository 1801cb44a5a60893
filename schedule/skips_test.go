package schedule

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go-crontab/job"
)

// text collects the lines of a log. Timers write them from goroutines of their own.
type text struct {
	mu sync.Mutex
	b  strings.Builder
}

func (x *text) Write(line []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(line)
}

// take returns the lines since the last call.
func (x *text) take() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.b.Reset()
	return x.b.String()
}

// TestSkipLog: the first skipped due time of a job is logged at once, and the following ones once a
// minute, with their number.
func TestSkipLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out text
		l := newSkipLog(slog.New(slog.NewTextHandler(&out, nil)))
		wantLines := func(want ...string) {
			t.Helper()
			synctest.Wait()
			lines := strings.Split(strings.TrimSpace(out.take()), "\n")
			if len(want) == 0 && lines[0] == "" {
				return
			}
			if len(lines) != len(want) {
				t.Fatalf("got %q, want %d lines", lines, len(want))
			}
			for i := range want {
				if !strings.Contains(lines[i], want[i]) {
					t.Errorf("got %q, want %q in it", lines[i], want[i])
				}
			}
		}

		busy := job.Reason{Code: job.ReasonJobDeleted, Text: "busy"}
		skipped := func(id int64, count int64) {
			l.note(skip{jobID: id, job: fmt.Sprintf("shop/j%d", id), outcome: job.Skipped, reason: busy, count: count})
		}

		for range 40 {
			skipped(1, 1)
		}
		wantLines(`level=INFO msg="run not started" job=shop/j1 outcome=skipped reason=busy due=- count=1`)

		l.note(skip{jobID: 2, job: "shop/j2", outcome: job.Missed, reason: busy, count: 7})
		wantLines("level=WARN")
		l.note(skip{jobID: 3, job: "shop/j3", outcome: job.Superseded, count: 1})
		wantLines()

		time.Sleep(skipEvery + time.Second)
		synctest.Wait()
		wantLines("job=shop/j1 outcome=skipped reason=busy due=- count=39")
		skipped(1, 3)
		wantLines()
		time.Sleep(skipEvery + time.Second)
		synctest.Wait()
		wantLines("count=3")
		time.Sleep(skipEvery + time.Second)
		synctest.Wait()
		wantLines()
		skipped(1, 1)
		wantLines("count=1") // at once again

		for id := range int64(3 * maxSkipping) {
			skipped(10+id, 1)
		}
		synctest.Wait()
		if n := strings.Count(out.take(), "\n"); n > maxSkipping {
			t.Errorf("got %d lines for many jobs, want at most %d", n, maxSkipping)
		}
		time.Sleep(skipEvery + time.Second)
		synctest.Wait()
		if got := out.take(); !strings.Contains(got, "job=others") {
			t.Errorf("got %s, want a line about the other jobs", got)
		}
		time.Sleep(skipEvery + time.Second)
		synctest.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		if n := len(l.jobs); n != 0 {
			t.Errorf("%d jobs are remembered forever", n)
		}
	})
}
