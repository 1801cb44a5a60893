package job

import (
	"errors"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzCron holds what must be true of any text: no panic, an error of our own type, at least one
// due time, and due times that increase and agree with Last and Count.
func FuzzCron(f *testing.F) {
	for i, expr := range []string{
		"*/5 * * * *", "0 3 * * MON-FRI", "0 0 L,LW,15W * *", "0 0 * * 5#3,7L,SUN-TUE", "0 0 12 ? * 2-6 2027/2",
		"30 2 29 2 ?", "* 2 28 3 * 2027", "0,30 */2 1-31/7 JAN-DEC/3 *", "1-0 * * * *", "22-6 22-6 * 11-2 FRI-MON",
		"0 0 31 2 *", "@daily", "@every 5m", "CRON_TZ=Asia/Tokyo * * * * *", "H/15 * * * *", "0 0 L-3 * *",
		"1,2,, * * * *",
		"0 0 1 1 * 2099", "00 000 01 09 07", "* * * * * * */129", "５ * * * *", "0 0 * * \u017fun",
	} {
		f.Add(expr, uint8(i), int64(1_600_000_000+i*20_000_000))
	}

	f.Fuzz(func(t *testing.T, expr string, zoneAt uint8, sec int64) {
		loc := zone(t, oracleZones[int(zoneAt)%len(oracleZones)])
		c, err := ParseCron(expr, loc)
		if err != nil {
			var ce *CronError
			if c != nil || !errors.As(err, &ce) || ce.Problem.Code() == "" ||
				utf8.ValidString(expr) && !utf8.ValidString(err.Error()) {
				t.Fatalf("%q: %v, %#v", expr, c, err)
			}
			return
		}
		first, ok := c.Next(time.Time{})
		if !ok || first.Year() < firstYear || first.Year() > lastYear {
			t.Fatalf("%q %s: first due time %v, %v", expr, loc, first, ok)
		}
		from := time.Unix(sec, 0)
		now, n := from, int64(0)
		for ; n < 20; n++ {
			next, ok := c.Next(now)
			if !ok {
				break
			}
			if !next.After(now) {
				t.Fatalf("%q %s: Next(%v) = %v", expr, loc, now, next)
			}
			if last, ok := c.Last(now, next); !ok || !last.Equal(next) {
				t.Fatalf("%q %s: Last(%v, %v) = %v, %v", expr, loc, now, next, last, ok)
			}
			c.Mark(next)
			now = next
		}
		if got := c.Count(from, now); got != n {
			t.Fatalf("%q %s: Count(%v, %v) = %d, want %d", expr, loc, from, now, got, n)
		}
		// The plain form of the fields is the same expression.
		fields := c.Fields()
		var plain string
		for _, field := range fields {
			plain += field + " "
		}
		if len(plain) > maxCronLength {
			return
		}
		again, err := ParseCron(plain, loc)
		if err != nil || again.Fields() != fields || again.Elapsed() != c.Elapsed() || again.Count(from, now) != n {
			t.Fatalf("%q reads as %q, and that as %v, %v", expr, plain, again, err)
		}
	})
}
