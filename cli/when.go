package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go-crontab/job"
)

// relative describes the distance from now to t, such as "in 3m", "2h ago" or "now". If t is nil or
// zero, it returns "".
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

// units are the units of rough durations.
var units = []struct {
	name   string
	length time.Duration
}{
	{"s", time.Second},
	{"m", time.Minute},
	{"h", time.Hour},
	{"d", 24 * time.Hour},
	{"y", 365 * 24 * time.Hour},
}

// rough rounds a duration to its largest unit. If it has only a few of that unit, rough adds the
// next smaller unit: "1h 59m", "2d 18h", "5h".
func rough(d time.Duration) string {
	for i := len(units) - 1; i > 0; i-- {
		large, small := units[i], units[i-1]
		d := d.Round(small.length)
		whole, rest := d/large.length, d%large.length/small.length
		switch {
		case whole == 0:
		case whole >= 4:
			return fmt.Sprintf("%d%s", d.Round(large.length)/large.length, large.name)
		case rest == 0:
			return fmt.Sprintf("%d%s", whole, large.name)
		default:
			return fmt.Sprintf("%d%s %d%s", whole, large.name, rest, small.name)
		}
	}
	return fmt.Sprintf("%ds", d.Round(time.Second)/time.Second)
}

// absolute formats a time for all commands: in a time zone and with the offset. It shows
// milliseconds only if there are any. The text is unambiguous, and every command accepts it as
// input.
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

// zoneOffset is the format of the offset.
const zoneOffset = "-07:00"

// whole is absolute without milliseconds, for tables.
func whole(t *time.Time, zone *time.Location) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.In(zone).Format(time.DateTime + zoneOffset)
}

// bothClocks shows a time in the viewer's time zone. If the job's clock differs, it shows the time
// in the job's zone, too.
func bothClocks(t *time.Time, zone, viewer *time.Location) string {
	if t == nil || t.IsZero() || sameClock(zone, viewer, *t) {
		return absolute(t, viewer)
	}
	return fmt.Sprintf("%s (%s %s)", absolute(t, viewer), absolute(t, zone), zone)
}

// zone returns the viewer's time zone: --timezone, or this machine's ($TZ). Commands print times in
// this zone. They also parse times without an offset in this zone.
func (c *console) zone() *time.Location {
	if c.timezone != "" {
		if zone, err := job.LoadZone(c.timezone); err == nil {
			return zone
		}
	}
	return time.Local
}

// now returns the current time in the viewer's time zone.
func (c *console) now() time.Time { return time.Now().In(c.zone()) }

// zoneName returns the name of a time zone for people.
func zoneName(zone *time.Location) string {
	if zone != time.Local {
		return zone.String()
	}

	name, _ := machineZone()
	if named, err := job.LoadZone(name); err == nil && sameClock(named, zone, time.Now()) {
		return name + ", this machine's time zone (--timezone sets another)"
	}
	return "this machine's time zone (--timezone sets another)"
}

// sameClock reports whether the clocks of two zones agree at a time.
func sameClock(a, b *time.Location, at time.Time) bool {
	_, offsetA := at.In(a).Zone()
	_, offsetB := at.In(b).Zone()
	return offsetA == offsetB
}

// rfc3339 matches the times in a text from the API.
var rfc3339 = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// timesIn rewrites the times in a text from the API in the format of absolute.
func timesIn(text string, zone *time.Location) string {
	return rfc3339.ReplaceAllStringFunc(text, func(s string) string {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return s
		}
		return absolute(&t, zone)
	})
}

// both shows a time in two forms: absolute, in the zone of now, and relative.
func both(t *time.Time, now time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s (%s)", absolute(t, now.Location()), relative(t, now))
}

// precise formats a duration with about three digits: "12ms", "1.24s", "3m20s", "9d". Durations
// below a millisecond become "<1ms".
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

	return job.Duration(d).Text()
}

// parseTime parses a time for all commands: the format of absolute, RFC 3339, a date with an
// optional time in the given zone, or a distance from now such as +10m.
func parseTime(s string, zone *time.Location, now time.Time) (time.Time, error) {
	if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
		d, err := job.ParseDuration(s)
		switch {
		case errors.Is(err, job.ErrTooLong):
			return time.Time{}, fmt.Errorf("%q %w", s, err)
		case err != nil:
			return time.Time{}, fmt.Errorf("%q: want a distance from now, such as +90s, +10m or -7d", s)
		}
		return now.Add(d).Truncate(time.Second), nil
	}

	for _, format := range []string{time.RFC3339, time.DateTime + "Z07:00", "2006-01-02 15:04Z07:00"} {
		t, err := time.Parse(format, s)
		if err == nil {
			return t, nil
		}
		if wrong := outOfRange(err, s); wrong != "" {
			return time.Time{}, fmt.Errorf("%q: %s", s, wrong)
		}
	}

	for _, format := range []string{
		time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly,
	} {
		civil, err := time.Parse(format, s)
		if err == nil {
			t, err := civilTime(civil, zone)
			if err != nil {
				err = fmt.Errorf("%q: %w", s, err)
			}
			return t, err
		}
		if wrong := outOfRange(err, s); wrong != "" {
			return time.Time{}, fmt.Errorf("%q: %s", s, wrong)
		}
	}

	return time.Time{}, fmt.Errorf(`%q: want "2027-01-31 09:00:00+01:00", "2027-01-31 09:00" in %s, or +10m from now`,
		s, zoneName(zone))
}

// outOfRange returns the part of a time that does not exist, such as February 30. For a text in
// another format it returns "".
func outOfRange(err error, s string) string {
	var wrong *time.ParseError
	if !errors.As(err, &wrong) || !strings.HasSuffix(wrong.Message, "out of range") {
		return ""
	}

	month, err := time.Parse("2006-01", s[:min(7, len(s))])
	if strings.HasSuffix(wrong.Message, "day out of range") && err == nil {
		return fmt.Sprintf("%s has %d days", month.Format("January 2006"), month.AddDate(0, 1, -1).Day())
	}
	return strings.TrimPrefix(wrong.Message, ": ")
}

// civilTime returns the instant of a civil time in a zone. It refuses a time that the clock shows
// twice or never, because such a time is ambiguous.
func civilTime(civil time.Time, zone *time.Location) (time.Time, error) {
	var found []time.Time
	for _, distance := range []time.Duration{-24 * time.Hour, 24 * time.Hour} { // offsets before and after a change
		_, offset := civil.Add(distance).In(zone).Zone()
		t := civil.Add(-time.Duration(offset) * time.Second).In(zone)

		if _, actual := t.Zone(); actual == offset && !slices.ContainsFunc(found, t.Equal) {
			found = append(found, t)
		}
	}

	switch len(found) {
	case 0:
		return time.Time{}, fmt.Errorf("the clock of %s skips %s; give another time, or add an offset",
			zoneName(zone), civil.Format(time.DateTime))
	case 1:
		return found[0], nil
	}

	return time.Time{}, fmt.Errorf(`the clock of %s shows that time twice; give "%s" or "%s"`,
		zoneName(zone), absolute(&found[0], zone), absolute(&found[1], zone))
}
