package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go-crontab/job"
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

// absolute is how every command prints an instant: by the clock of a zone, with the offset. So it means the same to
// everybody, and any command reads it. It has a fraction only where the instant has one.
func absolute(t *time.Time, zone *time.Location) string {
	if t == nil || t.IsZero() {
		return ""
	}
	format := time.DateTime
	if t.Nanosecond() >= int(time.Millisecond) {
		format += ".000"
	}
	return t.In(zone).Format(format + zoneOffset)
}

// zoneOffset is how an instant ends.
const zoneOffset = "-07:00"

// whole is absolute without a fraction, for tables.
func whole(t *time.Time, zone *time.Location) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.In(zone).Format(time.DateTime + zoneOffset)
}

// bothClocks is an instant as the viewer's clock shows it, and as the job's does where that shows another time.
func bothClocks(t *time.Time, zone, viewer *time.Location) string {
	if t == nil || t.IsZero() || sameClock(zone, viewer, *t) {
		return absolute(t, viewer)
	}
	return fmt.Sprintf("%s (%s %s)", absolute(t, viewer), absolute(t, zone), zone)
}

// zone is where the viewer is: --timezone, or this machine's zone ($TZ). Commands print times in it, and read typed times
// without an offset in it.
func (c *console) zone() *time.Location {
	if c.timezone != "" {
		if zone, err := job.LoadZone(c.timezone); err == nil {
			return zone
		}
	}
	return time.Local
}

// now is the present by the clock that the viewer reads.
func (c *console) now() time.Time { return time.Now().In(c.zone()) }

// zoneName names a zone to people.
func zoneName(zone *time.Location) string {
	if zone != time.Local {
		return zone.String()
	}

	name, _ := machineZone()
	if named, err := job.LoadZone(name); err == nil && sameClock(named, zone, time.Now()) {
		return name + ", this machine's time zone (--timezone names another)"
	}
	return "this machine's time zone (--timezone names another)"
}

// sameClock reports whether the clocks of two zones show the same time at an instant.
func sameClock(a, b *time.Location, at time.Time) bool {
	_, offsetA := at.In(a).Zone()
	_, offsetB := at.In(b).Zone()
	return offsetA == offsetB
}

// rfc3339 finds instants in a text of the API.
var rfc3339 = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// timesIn rewrites the instants in a text of the API as absolute prints them.
func timesIn(text string, zone *time.Location) string {
	return rfc3339.ReplaceAllStringFunc(text, func(s string) string {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return s
		}
		return absolute(&t, zone)
	})
}

// both is absolute, in the zone of now, and relative.
func both(t *time.Time, now time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s (%s)", absolute(t, now.Location()), relative(t, now))
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

// parseTime is how every command reads an instant: as absolute prints it, in RFC 3339, as a date with or without a time in
// the given zone, or as a distance from now such as +10m.
func parseTime(s string, zone *time.Location, now time.Time) (time.Time, error) {
	if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
		d, err := time.ParseDuration(s)
		if err != nil {
			return time.Time{}, fmt.Errorf("%q: want a distance such as +90s, +10m or -24h", s)
		}
		return now.Add(d).Truncate(time.Second), nil
	}

	for _, format := range []string{time.RFC3339, time.DateTime + "Z07:00", "2006-01-02 15:04Z07:00"} {
		if t, err := time.Parse(format, s); err == nil {
			return t, nil
		}
	}

	for _, format := range []string{
		time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly,
	} {
		if civil, err := time.Parse(format, s); err == nil {
			t, err := civilTime(civil, zone)
			if err != nil {
				err = fmt.Errorf("%q: %w", s, err)
			}
			return t, err
		}
	}

	return time.Time{}, fmt.Errorf(`%q: want "2027-01-31 09:00:00+01:00", "2027-01-31 09:00" in %s, or +10m from now`,
		s, zoneName(zone))
}

// civilTime is the instant at which the clock of a zone shows a civil time. A time that the clock shows twice, or skips, is
// refused: nobody could say which instant is meant.
func civilTime(civil time.Time, zone *time.Location) (time.Time, error) {
	var found []time.Time
	for _, distance := range []time.Duration{-24 * time.Hour, 24 * time.Hour} { // the offsets before and after a change
		_, offset := civil.Add(distance).In(zone).Zone()
		t := civil.Add(-time.Duration(offset) * time.Second).In(zone)

		if _, actual := t.Zone(); actual == offset && !slices.ContainsFunc(found, t.Equal) {
			found = append(found, t)
		}
	}

	switch len(found) {
	case 0:
		return time.Time{}, fmt.Errorf("the clock of %s skips %s; give another time, or one with an offset",
			zoneName(zone), civil.Format(time.DateTime))
	case 1:
		return found[0], nil
	}

	return time.Time{}, fmt.Errorf(`the clock of %s shows that time twice; give "%s" or "%s"`,
		zoneName(zone), absolute(&found[0], zone), absolute(&found[1], zone))
}
