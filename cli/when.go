package cli

import (
	"fmt"
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

// absolute is how every command prints an instant: as the clock of a zone shows it, with the offset, so that it says the
// same to everybody and can be given to any command again. It has a fraction only where the instant has one.
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

// jobTime is an instant as the clock of a job's zone shows it, with the name of the zone, where that clock shows another
// time than the viewer's; else "".
func jobTime(t *time.Time, zone, viewer *time.Location) string {
	if t == nil || t.IsZero() {
		return ""
	}
	_, there := t.In(zone).Zone()
	if _, here := t.In(viewer).Zone(); here == there {
		return ""
	}
	return absolute(t, zone) + " " + zone.String()
}

// bothClocks is an instant as the viewer's clock shows it, and as the job's does where that is another time.
func bothClocks(t *time.Time, zone, viewer *time.Location) string {
	if there := jobTime(t, zone, viewer); there != "" {
		return fmt.Sprintf("%s (%s)", absolute(t, viewer), there)
	}
	return absolute(t, viewer)
}

// zone is the one in which commands print times, and read those that are typed without an offset: --timezone, or this
// machine's ($TZ).
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
	if zone == time.Local {
		return "this machine's time zone (--timezone)"
	}
	return zone.String()
}

// both is absolute, by the clock that now was read from, and relative.
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

// parseTime is how every command reads an instant: as absolute prints it, RFC 3339, a date with or without a time, which is
// of the given zone, or a distance from now such as +10m.
func parseTime(s string, zone *time.Location, now time.Time) (time.Time, error) {
	if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
		d, err := time.ParseDuration(s)
		if err != nil {
			return time.Time{}, fmt.Errorf("%q: want a distance such as +90s, +10m or -24h", s)
		}
		return now.Add(d).Truncate(time.Second), nil
	}
	for _, format := range []string{time.RFC3339, time.DateTime + "Z07:00"} {
		if t, err := time.Parse(format, s); err == nil {
			return t, nil
		}
	}
	for _, format := range []string{time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly} {
		if civil, err := time.Parse(format, s); err == nil {
			return civilTime(s, civil, zone)
		}
	}
	return time.Time{}, fmt.Errorf("%q: want \"2027-01-31 09:00:00+01:00\", \"2027-01-31 09:00\" in %s, or +10m from now", s, zoneName(zone))
}

// civilTime is the instant at which the clock of a zone shows a civil time. One that the clock shows twice, or skips, is
// refused: nobody could say which instant is meant.
func civilTime(s string, civil time.Time, zone *time.Location) (time.Time, error) {
	var found []time.Time
	for _, around := range []time.Duration{-24 * time.Hour, 24 * time.Hour} { // the offsets before and after a change
		_, seconds := civil.Add(around).In(zone).Zone()
		t := civil.Add(-time.Duration(seconds) * time.Second).In(zone)
		_, is := t.Zone()
		if is == seconds && !slices.ContainsFunc(found, t.Equal) {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return time.Time{}, fmt.Errorf("%q: the clock of %s skips that time; write another, or an offset", s, zoneName(zone))
	case 1:
		return found[0], nil
	}
	return time.Time{}, fmt.Errorf("%q: the clock of %s shows that time twice; write \"%s\" or \"%s\"", s, zoneName(zone), absolute(&found[0], zone), absolute(&found[1], zone))
}
