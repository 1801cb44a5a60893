package job

import (
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

// TestComposedSchedulesAgreeWithThemselves holds Last and Count against Next, and Next against its definition, for
// random compositions.
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
				e, err := NewEvery(time.Duration(rapid.Int64Range(600, 9000).Draw(t, "interval"))*time.Second, instant("first"))
				if err != nil {
					t.Fatal(err)
				}
				return e
			case 1:
				return NewAt(instant("at"))
			}
			c, err := ParseCron(rapid.SampledFrom([]string{"*/15 * * * *", "0 */2 * * *", "30 3 * * *", "0,30 1-5 * * *"}).Draw(t, "cron"), time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			return c
		})
		union := Union(rapid.SliceOfN(simple, 1, 3).Draw(t, "schedules"))
		by := time.Duration(rapid.Int64Range(0, 3000).Draw(t, "shift")) * time.Second
		b := Bounded{Schedule: Shifted{union, by}, First: instant("start"), Fires: rapid.Int64Range(0, 20).Draw(t, "fires")}
		if rapid.Bool().Draw(t, "ends") {
			b.End = instant("end")
		}
		from, to := instant("from"), instant("to")
		if to.Before(from) {
			from, to = to, from
		}
		// By definition: every due time of any part, shifted, once, from First on, not after End, the first Fires.
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
