package trip

import (
	"math/rand/v2"
	"testing"
	"time"

	"go-crontab/job"
)

func second(s float64) job.Micros { return job.Micros(s * 1e6) }

func rated(starts int, period time.Duration) *Group {
	return &Group{Slots: 100, Rate: job.Rate{Starts: starts, Period: job.Micros(period.Microseconds())}}
}

// TestRate: a start counts for its period and a tenth more.
func TestRate(t *testing.T) {
	t.Parallel()
	g := rated(3, 10*time.Second)
	for _, at := range []float64{0, 1, 2} {
		if !(g.Admits(second(at)) > 0) {
			t.Errorf("no start at %g", at)
		}
		g.Count(second(at))
	}

	for at, want := range map[float64]int{2: 0, 10.9: 0, 11: 1, 11.9: 1, 12: 2, 13: 3, 1: 0, -5: 0} {
		if got := g.Admits(second(at)); got != want {
			t.Errorf("at %g: it admits %d, want %d", at, got, want)
		}
	}

	for others, want := range map[int]float64{0: 11, 1: 12, 2: 13, 3: 13, 9: 13} {
		if got := g.NextStart(second(3), others); got != second(want) {
			t.Errorf("after %d others: at %d, want %g", others, got, want)
		}
	}

	if got := g.Recent(second(11)); got != 1 {
		t.Errorf("%d starts in the period, want 1", got)
	}
	if got := g.NextStart(second(20), 0); got != second(20) {
		t.Errorf("when nothing has started for a while: got %d", got)
	}
	if none := rated(0, 0); none.Admits(0) < 1e6 || none.Free(0) != 100 {
		t.Error("a group without a rate does not admit everything")
	}
}

// TestRateAfterClockSteps: a clock that is set back again and again admits no more than the rate, and
// the text of the column keeps everything.
func TestRateAfterClockSteps(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := rated(1+r.IntN(5), time.Duration(1+r.IntN(5))*time.Second)
		var started []job.Micros
		clock, shown := job.Micros(1e12), job.Micros(0)
		for range 200 {
			clock += job.Micros(r.IntN(300_000))
			if r.IntN(20) == 0 {
				shown -= job.Micros(r.IntN(3_000_000))
			}
			if g.bringBack(clock + shown); g.Admits(clock+shown) == 0 {
				continue
			}
			g.Count(clock + shown)
			again := &Group{Rate: g.Rate}
			again.SetStarts(g.startsText())
			g.Starts = again.Starts
			started = append(started, clock)
		}

		for i := g.Rate.Starts; i < len(started); i++ {
			if started[i]-started[i-g.Rate.Starts] <= g.Rate.Period {
				t.Fatalf("seed %d: %d starts within %s", seed, g.Rate.Starts+1, g.Rate.PeriodText())
			}
		}
		if len(started) < 2 {
			t.Fatalf("seed %d: only %d starts", seed, len(started))
		}
	}
}

// TestClockSetBack: a group whose starts lie far ahead waits for one more period, and no longer.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	g := rated(2, time.Minute)
	g.Count(second(10_000))
	g.Count(second(10_001))
	if g.bringBack(second(9_990)) {
		t.Error("starts within a period were moved")
	}
	if !g.bringBack(second(100)) || g.Admits(second(110)) != 0 || g.Admits(second(161)) != 2 {
		t.Errorf("got %v", g.Starts)
	}
}

// TestPoisonedRate: rows that somebody edited by hand are no rates, and do not make a node fail.
func TestPoisonedRate(t *testing.T) {
	t.Parallel()
	for _, r := range []job.Rate{{Starts: -1, Period: 1}, {Starts: 1 << 30, Period: 1e6}, {Starts: 1, Period: -5}, {Starts: 1, Period: 1 << 62}} {
		g := &Group{Slots: 1, Rate: r}
		g.SetStarts(make([]byte, 100))
		g.Count(1)
		if g.Free(5) != 1 || g.nextWake(1, true, 5) != 0 || g.startsText() != nil || r.String() != "" {
			t.Errorf("%v is a rate", r)
		}
	}
	g := rated(2, time.Minute)
	g.SetStarts([]byte("seventeen letters"))
	g.bringBack(5)
	if len(g.Starts) != 2 || g.Admits(5) != 0 {
		t.Errorf("got %v", g.Starts)
	}
}
