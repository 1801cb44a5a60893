package job

import (
	"time"

	"go-crontab/job/problem"
)

// MinInterval is the shortest interval of an Every.
const MinInterval = 10 * time.Millisecond

// The instants of Every and At are in microseconds and in the years 1 to 9999, the range of RFC
// 3339.
var (
	firstInstant = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	lastInstant  = time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC).UnixMicro()
)

// Every is due at first, first+interval, first+2·interval and so on until the year 9999. A missed
// due time never shifts later due times. The zero Every is never due. An Every is immutable and
// safe for concurrent use.
type Every struct{ first, interval int64 } // microseconds

var _ Schedule = Every{}

// NewEvery refuses intervals that are shorter than MinInterval or not whole microseconds. It
// truncates first to microseconds.
func NewEvery(interval time.Duration, first time.Time) (Every, error) {
	if interval < MinInterval {
		return Every{}, problem.Errorf(problem.EveryTooShort, interval, MinInterval)
	}

	if interval%time.Microsecond != 0 {
		return Every{}, problem.Errorf(problem.EveryTooFine, interval)
	}

	if y := first.UTC().Year(); first.IsZero() || y < 1 || y > 9999 {
		return Every{}, problem.Errorf(problem.EveryFirstYear, interval, first)
	}

	return Every{first.UnixMicro(), interval.Microseconds()}, nil
}

// First returns the first due time, in UTC.
func (e Every) First() time.Time { return time.UnixMicro(e.first).UTC() }

// Next returns the first due time after t, in UTC.
func (e Every) Next(t time.Time) (due time.Time, ok bool) { return e.at(e.upTo(t)) }

// Last returns the last due time in (from, to], in UTC.
func (e Every) Last(from, to time.Time) (due time.Time, ok bool) {
	n := e.upTo(to)
	if n <= e.upTo(from) {
		return time.Time{}, false
	}
	return e.at(n - 1)
}

// Count returns the number of due times in (from, to].
func (e Every) Count(from, to time.Time) int64 { return max(e.upTo(to)-e.upTo(from), 0) }

// upTo counts the due times up to and including t.
func (e Every) upTo(t time.Time) int64 {
	at := micros(t)
	if e.interval == 0 || at < e.first {
		return 0
	}
	return (at-e.first)/e.interval + 1
}

// at returns the due time number n, from 0.
func (e Every) at(n int64) (time.Time, bool) {
	if e.interval == 0 || n > (lastInstant-e.first)/e.interval {
		return time.Time{}, false
	}
	return time.UnixMicro(e.first + n*e.interval).UTC(), true
}

// micros rounds down to a microsecond. It limits the result to the valid years, because UnixMicro
// overflows far outside of them.
func micros(t time.Time) int64 {
	switch y := t.UTC().Year(); {
	case y < 1:
		return firstInstant
	case y > 9999:
		return lastInstant
	}
	return t.UnixMicro()
}
