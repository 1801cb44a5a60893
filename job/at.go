package job

import "time"

// At is due once. The zero At is never due.
type At struct{ due time.Time }

var _ Schedule = At{}

// NewAt returns an At that is due at t. The due time is truncated to microseconds.
func NewAt(t time.Time) At {
	if t.IsZero() {
		return At{}
	}
	return At{time.UnixMicro(micros(t)).UTC()}
}

// Next returns the due time, in UTC, if it is after t.
func (a At) Next(t time.Time) (due time.Time, ok bool) {
	if a.due.IsZero() || !a.due.After(t) {
		return time.Time{}, false
	}
	return a.due, true
}

// Last returns the due time, in UTC, if it is in (from, to].
func (a At) Last(from, to time.Time) (due time.Time, ok bool) {
	if due, ok = a.Next(from); !ok || due.After(to) {
		return time.Time{}, false
	}
	return due, true
}

// Count returns 1 if the due time is in (from, to], and 0 otherwise.
func (a At) Count(from, to time.Time) int64 {
	if _, ok := a.Last(from, to); ok {
		return 1
	}
	return 0
}
