package job

import "time"

// Schedule yields the due times of a job, which are an increasing sequence of instants. Only the
// definition determines them. Implementations are immutable and safe for concurrent use.
type Schedule interface {
	// Next returns the first due time after t. ok is false if there is none.
	Next(t time.Time) (due time.Time, ok bool)
	// Last returns the last due time in (from, to]. ok is false if there is none.
	Last(from, to time.Time) (due time.Time, ok bool)
	// Count returns the number of due times in (from, to].
	Count(from, to time.Time) int64
}
