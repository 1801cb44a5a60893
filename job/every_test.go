package job

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNewEveryRefuses(t *testing.T) {
	first := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		interval time.Duration
		first    time.Time
		want     string
	}{
		"less than 10 ms":             {9999 * time.Microsecond, first, "9.999ms is shorter than the minimum of 10ms"},
		"nothing":                     {0, first, "shorter than"},
		"a negative interval":         {-time.Hour, first, "shorter than"},
		"a fraction of a microsecond": {time.Second + time.Nanosecond, first, "not a whole number of microseconds"},
		"no first due time":           {time.Second, time.Time{}, "the first due time"},
		"a first that cannot be shown": {
			time.Second, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "not in the years 1 to 9999",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewEvery(c.interval, c.first); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestEveryKeepsItsPhase(t *testing.T) {
	first := instant(t, "2026-11-20T12:00:00.123456789Z")
	e, err := NewEvery(90*time.Minute, first)
	if err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]struct{ from, want string }{
		"long before":         {"0001-01-01T00:00:00Z", "2026-11-20T12:00:00.123456Z"},
		"a microsecond early": {"2026-11-20T12:00:00.123455999Z", "2026-11-20T12:00:00.123456Z"},
		"at the first":        {"2026-11-20T12:00:00.123456Z", "2026-11-20T13:30:00.123456Z"},
		"in another zone":     {"2026-11-20T22:00:00+09:00", "2026-11-20T13:30:00.123456Z"},
		// 36524 days are whole intervals
		"a hundred years on": {"2126-11-20T12:00:00.123456Z", "2126-11-20T13:30:00.123456Z"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := e.Next(instant(t, c.from))
			if !ok || got.Format(time.RFC3339Nano) != c.want {
				t.Errorf("Next(%s) = %v, %v; want %s", c.from, got, ok, c.want)
			}
		})
	}

	if got, ok := e.Next(instant(t, "9999-12-31T23:59:59.9Z")); ok {
		t.Errorf("Next at the end of time = %v", got)
	}

	if got, ok := e.Next(time.Unix(math.MaxInt64, 0)); ok {
		t.Errorf("Next past the end of time = %v", got)
	}

	if got, ok := (Every{}).Next(first); ok {
		t.Errorf("the zero Every is due at %v", got)
	}

	// A due time at the epoch is valid, although Micros(0) means no instant.
	epoch, err := NewEvery(time.Second, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}

	if got, ok := epoch.Next(time.Unix(-1, 0)); !ok || got.Unix() != 0 {
		t.Errorf("Next before the epoch = %v, %v", got, ok)
	}
}

func TestEveryEqualsAdding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := time.UnixMicro(rapid.Int64Range(-1e15, 4e15).Draw(t, "first"))
		interval := time.Duration(rapid.Int64Range(10_000, 1e12).Draw(t, "interval")) * time.Microsecond
		e, err := NewEvery(interval, first)
		if err != nil {
			t.Fatal(err)
		}

		from := first.Add(time.Duration(rapid.Int64Range(-2, 5).Draw(t, "steps"))*interval + time.Duration(
			rapid.Int64Range(-2000, 2000).Draw(t, "off")))
		to := from.Add(time.Duration(rapid.Int64Range(-1, 50).Draw(t, "length")) * interval / 7)
		var n int64
		var last, next time.Time
		for due := first; n < 100; due = due.Add(interval) {
			if !due.After(from) {
				continue
			}
			if next.IsZero() {
				next = due
			}
			if due.After(to) {
				break
			}
			n, last = n+1, due
		}

		if got, ok := e.Next(from); !ok || !got.Equal(next) {
			t.Fatalf("Next(%v) = %v, want %v", from, got, next)
		}

		if got := e.Count(from, to); got != n {
			t.Fatalf("Count(%v, %v) = %d, want %d", from, to, got, n)
		}

		if got, ok := e.Last(from, to); ok != (n > 0) || ok && !got.Equal(last) {
			t.Fatalf("Last(%v, %v) = %v %v, want %v", from, to, got, ok, last)
		}
	})
}

func TestAtIsDueOnce(t *testing.T) {
	due := instant(t, "2027-01-01T00:00:00.000001Z")
	a := NewAt(due.Add(999 * time.Nanosecond).In(time.FixedZone("", 3600)))
	before, after := due.Add(-1), due.Add(1)
	if got, ok := a.Next(before); !ok || !got.Equal(due) || got.Location() != time.UTC {
		t.Errorf("Next before = %v, %v", got, ok)
	}

	if got, ok := a.Next(due); ok {
		t.Errorf("Next at the due time = %v", got)
	}

	for name, c := range map[string]struct {
		from, to time.Time
		want     int64
	}{
		"it ends the interval":   {before, due, 1},
		"it is inside":           {before, after, 1},
		"it begins the interval": {due, after, 0},
		"it is later":            {time.Time{}, before, 0},
		"backwards":              {after, before, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := a.Last(c.from, c.to)
			if n := a.Count(c.from, c.to); n != c.want || ok != (n == 1) || ok && !got.Equal(due) {
				t.Errorf("Count = %d, Last = %v %v; want %d", n, got, ok, c.want)
			}
		})
	}

	if got, ok := NewAt(time.Time{}).Next(time.Time{}); ok {
		t.Errorf("no instant is due at %v", got)
	}
}

func TestPreviewStopsWhereTheScheduleDoes(t *testing.T) {
	a := NewAt(time.Unix(100, 0))
	if got := Preview(a, time.Unix(0, 0), 5); len(got) != 1 || got[0].Unix() != 100 {
		t.Errorf("got %v", got)
	}

	if got := Preview(a, time.Unix(0, 0), 0); len(got) != 0 {
		t.Errorf("n = 0: got %v", got)
	}

	if got := Preview(a, time.Unix(100, 0), 5); len(got) != 0 {
		t.Errorf("from is excluded: got %v", got)
	}
}
