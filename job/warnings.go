package job

import (
	"fmt"
	"math"
	"time"
)

// warnAhead is how many due times are looked at for warnings.
const warnAhead = 50

// Warnings says what is allowed and yet hardly meant: policies that contradict the schedule. s is the compiled
// schedule, now MySQL's clock.
func (d *Spec) Warnings(s Schedule, now time.Time) []string {
	var out []string
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	due := Preview(s, now, warnAhead)
	if len(due) == 0 {
		if d.At == nil || d.At.After(now) { // a calendar may exclude it
			warn("no due time lies ahead")
		}
		return out
	}
	if wait := due[0].Sub(now); wait > 366*24*time.Hour {
		warn("the first due time is %s away, on %s", years(wait), due[0].Format(time.DateOnly))
	}
	gap := shortestGap(due)
	if gap == 0 {
		return out
	}
	if t := time.Duration(d.Timeout); t > gap && d.Overlap != OverlapAllow {
		warn("it may run for %s (timeout), but is due again after %s: %s", d.Timeout, Duration(gap), d.consequence())
	}
	if b := d.Retry.shortest(); b > gap && d.Overlap != OverlapAllow {
		warn("its retries wait for %s in all, but it is due again after %s: attempts of several due times meet, and %s", Duration(b), Duration(gap), d.consequence())
	}
	if age := time.Duration(d.Misfire.MaxAge); age > 0 && age < d.MissedAfter() && d.Misfire.Policy != MisfireSkip {
		warn("misfire.max_age, %s, is shorter than the %s after which a due time is a misfire: none is ever started late", d.Misfire.MaxAge, Duration(d.MissedAfter()))
	}
	if dl := time.Duration(d.StartDeadline); dl > 0 && d.Overlap == OverlapQueue && dl < gap {
		warn("what waits in the queue is missed after %s (start_deadline), before the next due time comes: the queue never fills", d.StartDeadline)
	}
	return out
}

// consequence says what becomes of a due time that finds the one before it.
func (d *Spec) consequence() string {
	switch d.Overlap {
	case OverlapQueue:
		return fmt.Sprintf("due times wait, and are skipped once %d do (overlap queue)", d.QueueMax())
	case OverlapReplace:
		return "the one before is killed (overlap replace)"
	}
	return "due times are skipped meanwhile (overlap skip)"
}

// shortest is how long all backoffs take together, at least.
func (r *Retry) shortest() time.Duration {
	sum := 0.0
	for i := 1; i < r.Attempts; i++ {
		sum += min(float64(r.MaxBackoff), float64(r.Backoff)*math.Pow(r.Factor, float64(i-1)))
	}
	return time.Duration(min(sum, math.MaxInt64/2)).Truncate(time.Millisecond)
}

// shortestGap is between two of the due times; zero if there is but one.
func shortestGap(due []time.Time) time.Duration {
	gap := time.Duration(0)
	for i := 1; i < len(due); i++ {
		if g := due[i].Sub(due[i-1]); gap == 0 || g < gap {
			gap = g
		}
	}
	return gap
}

// roughly is a length of time in a unit that people count in.
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*366*day:
		return years(d)
	case d >= 2*day:
		return fmt.Sprintf("%d days", d/day)
	}
	return Duration(d.Round(time.Second)).String()
}

func years(d time.Duration) string {
	if y := d.Hours() / (365.25 * 24); y >= 2 {
		return fmt.Sprintf("%.0f years", y)
	}
	return "more than a year"
}
