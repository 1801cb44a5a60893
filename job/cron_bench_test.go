package job

import (
	"testing"
	"time"
)

func BenchmarkCronNext(b *testing.B) {
	for _, expr := range []string{"*/5 * * * *", "30 2 * * *", "0 9 * * MON-FRI", "0 0 L * *", "0 0 29 2 *",
		"* * * * * * *"} {
		b.Run(expr, func(b *testing.B) {
			loc, err := LoadZone("America/New_York")
			if err != nil {
				b.Fatal(err)
			}
			c, err := ParseCron(expr, loc)
			if err != nil {
				b.Fatal(err)
			}
			now := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
			b.ReportAllocs()
			for b.Loop() {
				next, ok := c.Next(now)
				if !ok {
					next = time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
				}
				now = next
			}
		})
	}
}

func BenchmarkParseCron(b *testing.B) {
	for _, expr := range []string{"*/5 * * * *", "0 9 * * MON-FRI", "0 0 12 ? * 5#3 2026-2030"} {
		b.Run(expr, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseCron(expr, time.UTC); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCronTenYears(b *testing.B) {
	loc, err := LoadZone("America/New_York")
	if err != nil {
		b.Fatal(err)
	}

	c, err := ParseCron("* * * * * * *", loc)
	if err != nil {
		b.Fatal(err)
	}

	from, to := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)
	b.Run("Last", func(b *testing.B) {
		for b.Loop() {
			c.Last(from, to)
		}
	})

	b.Run("Count", func(b *testing.B) {
		for b.Loop() {
			c.Count(from, to)
		}
	})
}
