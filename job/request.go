package job

import "errors"

// Requested is a run that somebody asked for beside the schedule.
type Requested struct {
	JobID   int64
	Due     Micros
	Request int64 // its runs carry it
}

// Why a change of a job was refused, beside Problems.
var (
	// ErrChanged means that the job is not at the version that the caller saw.
	ErrChanged = errors.New("the job was changed by somebody else meanwhile")
	// ErrKeyReused means that an idempotency key was used before, for something else.
	ErrKeyReused = errors.New("the Idempotency-Key was used before, for another request")
)
