package schedule

import (
	"sync/atomic"
	"time"
)

// reach is the time ahead of now for which runs are made. It equals the look-ahead while the set
// of prepared runs has room, and shrinks as the set fills. With a constant reach, the next ten
// seconds of a few jobs could fill the set, and earlier due times of other jobs would be late.
//
// A job is claimed when its cursor is before near, and gets runs up to far. So a job that is due
// each second is claimed every few seconds.
type reach struct {
	ahead atomic.Int64 // a time.Duration; zero: the look-ahead
}

// leastReach is the least reach, even for a full set: a few looks of the claimer.
const leastReach = 4 * claimPeriod

// adapt adjusts the reach before each look.
func (r *reach) adapt(lookAhead time.Duration, held, most int) {
	ahead := r.far(lookAhead)
	switch {
	case held > most*3/4:
		ahead /= 2
	case held < most/2:
		ahead *= 2
	}
	r.ahead.Store(int64(min(lookAhead, max(leastReach, ahead))))
}

// far returns the reach: runs are made up to this distance from now.
func (r *reach) far(lookAhead time.Duration) time.Duration {
	if ahead := time.Duration(r.ahead.Load()); ahead > 0 {
		return ahead
	}
	return lookAhead
}

// near returns how far ahead of now a cursor may lie for its job to be claimed.
func (r *reach) near(lookAhead time.Duration) time.Duration {
	far := r.far(lookAhead)
	return max(far/2, min(far, leastReach))
}
