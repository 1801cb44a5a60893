package result

import (
	"log/slog"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql/read"
)

// TestFigures repeatedly writes the figures of two processes, and finds each count once.
func TestFigures(t *testing.T) {
	f := setUp(t)
	now := job.MicrosOf(time.Unix(1_800_000_003, 0))
	clock := func() job.Micros { return now }
	one, two := NewFigures(f.beside.DB, clock, slog.New(slog.DiscardHandler)), NewFigures(f.beside.DB, clock, slog.New(slog.DiscardHandler))
	write := func() {
		t.Helper()
		for _, x := range []*Figures{one, two} {
			if err := x.write(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}

	check := func(want map[job.Micros]read.Figure) {
		t.Helper()
		rows, err := read.Figures(f.beside.Reader(t.Context()), 0)
		if err != nil {
			t.Fatal(err)
		}
		got := map[job.Micros]read.Figure{}
		for _, r := range rows {
			sum := got[r.At]
			sum.At, sum.Starts, sum.Ends, sum.Failed = r.At, sum.Starts+r.Starts, sum.Ends+r.Ends, sum.Failed+r.Failed
			sum.Late.Add(&r.Late)
			got[r.At] = sum
		}
		for at, w := range want {
			if got[at] != w {
				t.Errorf("at %s: got %+v, want %+v", at, got[at], w)
			}
			delete(got, at)
		}
		if len(got) > 0 {
			t.Errorf("got %v too much", got)
		}
	}

	write()
	check(nil)
	first, second := job.MicrosOf(time.Unix(1_800_000_000, 0)), job.MicrosOf(time.Unix(1_800_000_010, 0))
	one.Began(now, time.Millisecond)
	one.Began(now.Add(6*time.Second), time.Second)
	two.Began(now, time.Millisecond)
	two.Ended(now.Add(7*time.Second), job.Failed)
	one.Ended(now.Add(6*time.Second), job.Succeeded)
	one.Ended(now.Add(6*time.Second), job.Skipped) // nothing to do
	w := read.Figure{At: first, Starts: 3, Ends: 2}
	w.Late[job.LateClass(time.Millisecond)], w.Late[job.LateClass(time.Second)] = 2, 1
	last := read.Figure{At: second, Ends: 1, Failed: 1}
	for range 2 {
		write()
		check(map[job.Micros]read.Figure{first: w, second: last})
	}

	now = now.Add(30 * time.Second)
	one.Ended(now.Add(-24*time.Second), job.Killed) // late, into a part that is written already
	w.Ends, w.Failed = 3, 1
	write()
	check(map[job.Micros]read.Figure{first: w, second: last})
	now = now.Add(figuresKept)
	two.Began(now, 0)
	write()
	fresh := read.Figure{At: now - now%10_000_000, Starts: 1}
	fresh.Late[0] = 1
	check(map[job.Micros]read.Figure{fresh.At: fresh})
}
