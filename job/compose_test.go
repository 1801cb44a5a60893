package job

import (
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// naive lists the due times of s in (from, to] by asking for one after another.
func naive(s Schedule, from, to time.Time) (dues []time.Time) {
	for t := from; ; {
		due, ok := s.Next(t)
		if !ok || due.After(to) {
			return dues
		}
		dues = append(dues, due)
		t = due
	}
}

// TestComposedSchedulesAgreeWithThemselves holds Last and Count against Next, and Next against its
// definition, for random compositions.
func TestComposedSchedulesAgreeWithThemselves(t *testing.T) {
	t.Parallel()
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		instant := func(name string) time.Time {
			return epoch.Add(time.Duration(rapid.Int64Range(0, 100_000).Draw(t, name)) * time.Second)
		}

		simple := rapid.Custom(func(t *rapid.T) Schedule {
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				e, err := NewEvery(time.Duration(rapid.Int64Range(600, 9000).Draw(t, "interval"))*time.Second,
					instant("first"))
				if err != nil {
					t.Fatal(err)
				}
				return e
			case 1:
				return NewAt(instant("at"))
			}
			c, err := ParseCron(
				rapid.SampledFrom([]string{"*/15 * * * *", "0 */2 * * *", "30 3 * * *", "0,30 1-5 * * *"}).Draw(t,
					"cron"), time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			return c
		})

		union := Union(rapid.SliceOfN(simple, 1, 3).Draw(t, "schedules"))
		by := time.Duration(rapid.Int64Range(0, 3000).Draw(t, "shift")) * time.Second
		b := Bounded{
			Schedule: Shifted{union, by}, First: instant("start"), Fires: rapid.Int64Range(0, 20).Draw(t, "fires"),
		}
		if rapid.Bool().Draw(t, "remembers") {
			b.counted = new(atomic.Pointer[tally])
		}

		if rapid.Bool().Draw(t, "ends") {
			b.End = instant("end")
		}

		from, to := instant("from"), instant("to")
		if to.Before(from) {
			from, to = to, from
		}

		// By definition: every due time of any part, shifted, once, from First on, not after End,
		// the first Fires.
		var want []time.Time
		n := int64(0)
		for at := b.First.Add(-time.Microsecond); ; n++ {
			var due time.Time
			for _, s := range union {
				if d, ok := s.Next(at.Add(-by)); ok && (due.IsZero() || d.Add(by).Before(due)) {
					due = d.Add(by)
				}
			}
			if due.IsZero() || due.After(to) || !b.End.IsZero() && due.After(b.End) || b.Fires > 0 && n == b.Fires {
				break
			}
			if due.After(from) {
				want = append(want, due)
			}
			at = due
		}

		got := naive(b, from, to)
		if len(got) != len(want) {
			t.Fatalf("Next yields %d due times, want %d", len(got), len(want))
		}

		for i := range got {
			if !got[i].Equal(want[i]) {
				t.Fatalf("due time %d is %s, want %s", i, got[i], want[i])
			}
		}

		if n := b.Count(from, to); n != int64(len(want)) {
			t.Errorf("Count is %d, want %d", n, len(want))
		}

		last, ok := b.Last(from, to)
		if ok != (len(want) > 0) || ok && !last.Equal(want[len(want)-1]) {
			t.Errorf("Last is %s, %v; want the last of %v", last, ok, want)
		}
	})
}

// TestUnionsOfCronCountByDays holds the count of a union against its due times one by one, around
// changes of the clock.
func TestUnionsOfCronCountByDays(t *testing.T) {
	t.Parallel()
	exprs := []string{
		"0-29 * * * * *", "*/7 * * * * *", "* * * * *", "*/20 * * * *", "30 2 * * *", "15,45 1-3 * * *", "0 0 * * *",
		"20 2 * * 0", "0 2 L * *", "10 * * 3 *",
		"0 30 2 28-31 3,10 *", "5 3 * * 1#2", "59 23 * * *",
	}

	changes := map[string]time.Time{
		"Europe/Berlin":       time.Date(2027, 3, 28, 0, 0, 0, 0, time.UTC),
		"America/New_York":    time.Date(2027, 11, 7, 4, 0, 0, 0, time.UTC),
		"Australia/Lord_Howe": time.Date(2027, 4, 3, 14, 0, 0, 0, time.UTC),
		"UTC":                 time.Date(2027, 2, 28, 20, 0, 0, 0, time.UTC),
		"Pacific/Apia":        time.Date(2011, 12, 30, 8, 0, 0, 0, time.UTC), // skipped a day
	}

	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(changes))).Draw(t, "zone")
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		long, some := rapid.Bool().Draw(t, "long"), exprs
		if long {
			some = exprs[2:] // not each second
		}
		var u Union
		for _, expr := range rapid.SliceOfN(rapid.SampledFrom(some), 1, 4).Draw(t, "schedules") {
			c, err := ParseCron(expr, zone)
			if err != nil {
				t.Fatal(err)
			}
			u = append(u, c)
		}
		if u.crons() == nil {
			t.Fatal("it is not counted by days")
		}
		from := changes[name].Add(time.Duration(rapid.Int64Range(-3_000, 9_000).Draw(t, "from")) * time.Second)
		to := from.Add(time.Duration(rapid.Int64Range(-10, 9_000).Draw(t, "takes")) * time.Second)
		if long { // whole days
			from, to = from.Add(-72*time.Hour), to.Add(50*time.Hour)
		}
		if n, want := u.Count(from, to), len(naive(u, from, to)); n != int64(want) {
			t.Errorf("%v from %s to %s: %d due times, want %d", u, from, to, n, want)
		}
	})
}

// TestLongUnions: a viewer asks for a preview of what would take hours to count one by one.
func TestLongUnions(t *testing.T) {
	t.Parallel()
	start := time.Date(1971, 1, 1, 0, 0, 0, 0, time.UTC)
	s := Spec{
		App: "a", Name: "n", Command: "true", Schedules: []string{"0-29 * * * * *", "30-59 * * * * *"}, Start: &start,
		MaxFires: 2_000_000_000,
	}
	s.Defaults(start)
	schedule, err := s.Compile()
	if err != nil {
		t.Fatal(err)
	}

	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	if n, want := schedule.Count(start.Add(-1), now), int64(now.Sub(start)/time.Second)+1; n != want {
		t.Errorf("%d due times, want %d", n, want)
	}

	for t0 := now; t0.Before(now.Add(1000 * time.Second)); {
		due, ok := schedule.Next(t0)
		if !ok || !due.Equal(t0.Add(time.Second)) {
			t.Fatalf("after %s comes %s, %v", t0, due, ok)
		}
		t0 = due
	}
}
