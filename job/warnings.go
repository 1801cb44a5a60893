package job

import (
	"fmt"
	"math"
	"time"

	"go-crontab/job/problem"
)

// warnAhead is the number of due times to check for warnings.
const warnAhead = 50

// Warnings lists settings that are allowed but hardly intended: policies that do not fit the
// schedule. s is the compiled schedule, and now is MySQL's clock.
func (d *Spec) Warnings(s Schedule, now time.Time) []problem.Text {
	var out []problem.Text
	warn := func(s problem.Sentence, values ...any) { out = append(out, s.Of(values...)) }
	due := Preview(s, now, warnAhead)
	if len(due) == 0 {
		if !d.unscheduled() && (d.At == nil || d.At.After(now)) { // a calendar may exclude it
			warn(problem.NoDueTimeAhead)
		}
		return out
	}

	if wait := due[0].Sub(now); wait > 366*24*time.Hour {
		warn(problem.FirstDueFar, years(wait), due[0].Format(time.DateOnly))
	}

	gap := shortestGap(due)
	if gap == 0 {
		return out
	}

	if t := time.Duration(d.Timeout); t > gap && d.Overlap != OverlapAllow {
		s, more := d.meets(problem.LongerThanGapSkip, problem.LongerThanGapQueue, problem.LongerThanGapReplace)
		warn(s, append([]any{d.Timeout, Duration(gap)}, more...)...)
	}

	if b := d.Retry.shortest(); b > gap && d.Overlap != OverlapAllow {
		s, more := d.meets(problem.RetriesMeetDueSkip, problem.RetriesMeetDueQueue, problem.RetriesMeetDueReplace)
		warn(s, append([]any{Duration(b), Duration(gap)}, more...)...)
	}

	if age := time.Duration(d.Misfire.MaxAge); age > 0 && age < d.MissedAfter() && d.Misfire.Policy != MisfireSkip {
		warn(problem.NeverStartsLate, d.Misfire.MaxAge, Duration(d.MissedAfter()))
	}

	if dl := time.Duration(d.StartDeadline); dl > 0 && d.Overlap == OverlapQueue && dl < gap {
		warn(problem.QueueNeverFills, d.StartDeadline)
	}

	return out
}

// meets picks the sentence for a job that becomes due while its earlier run still executes. more
// holds the last values of the sentence.
func (d *Spec) meets(skip, queue, replace problem.Sentence) (s problem.Sentence, more []any) {
	switch d.Overlap {
	case OverlapQueue:
		return queue, []any{d.QueueMax()}
	case OverlapReplace:
		return replace, nil
	}
	return skip, nil
}

// shortest is the shortest total of all backoffs.
func (r *Retry) shortest() time.Duration {
	sum := 0.0
	for i := 1; i < r.Attempts; i++ {
		sum += min(float64(r.MaxBackoff), float64(r.Backoff)*math.Pow(r.Factor, float64(i-1)))
	}
	return time.Duration(min(sum, math.MaxInt64/2)).Truncate(time.Millisecond)
}

// shortestGap is the shortest time between consecutive due times. It is zero if there is only one
// due time.
func shortestGap(due []time.Time) time.Duration {
	gap := time.Duration(0)
	for i := 1; i < len(due); i++ {
		if g := due[i].Sub(due[i-1]); gap == 0 || g < gap {
			gap = g
		}
	}
	return gap
}

// roughly rounds a duration to a unit that people use.
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
