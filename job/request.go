package job

import "errors"

// Requested is a run requested by a user, outside the schedule.
type Requested struct {
	JobID   int64
	Due     Micros
	Request int64 // stored with its runs
}

// Reasons to refuse a change of a job, in addition to Problems.
var (
	// ErrChanged means that the job does not have the version that the caller saw.
	ErrChanged = errors.New("the job was changed in the meantime")
	// ErrKeyReused means that an idempotency key was used before, for another request.
	ErrKeyReused = errors.New("the Idempotency-Key was used before, for another request")
)
