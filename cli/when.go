package cli

import (
	"fmt"
	"strings"
	"time"
)

// relative says how far t is from now: "in 3m", "2h ago", "now"; "" when there is no t.
func relative(t *time.Time, now time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	switch d := t.Sub(now); {
	case d >= time.Second:
		return "in " + rough(d)
	case d <= -time.Second:
		return rough(-d) + " ago"
	}
	return "now"
}

// rough is a length of time in its one largest unit that says enough.
func rough(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 2*365*day:
		return fmt.Sprintf("%dd", d/day)
	}
	return fmt.Sprintf("%dy", d/(365*day))
}

// absolute is an instant in a zone, with its fraction only where it has one.
func absolute(t *time.Time, zone *time.Location) string {
	if t == nil || t.IsZero() {
		return ""
	}
	format := "2006-01-02 15:04:05"
	if t.Nanosecond() >= int(time.Millisecond) {
		format += ".000"
	}
	return t.In(zone).Format(format + " MST")
}

// both is absolute and relative.
func both(t *time.Time, zone *time.Location, now time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s (%s)", absolute(t, zone), relative(t, now))
}

// precise is a length of time with about three digits: "12ms", "1.24s", "3m20s", "9d". Below a millisecond there is no more
// to say than that.
func precise(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		d = d.Round(time.Millisecond)
	case d < time.Minute:
		d = d.Round(10 * time.Millisecond)
	case d < 100*time.Hour:
		d = d.Round(time.Second)
	default:
		return rough(d)
	}
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// parseTime reads what people type for an instant: RFC 3339, a date with or without a time in the given zone, or a
// distance from now such as +10m.
func parseTime(s string, zone *time.Location, now time.Time) (time.Time, error) {
	if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
		d, err := time.ParseDuration(s)
		if err != nil {
			return time.Time{}, fmt.Errorf("%q: want a distance such as +90s, +10m or -24h", s)
		}
		return now.Add(d).Truncate(time.Second), nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	for _, format := range []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(format, s, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: want 2027-01-31T09:00:00+01:00, \"2027-01-31 09:00\", or +10m from now", s)
}
