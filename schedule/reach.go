package schedule

import (
	"sync/atomic"
	"time"
)

// reach is how far ahead of now runs are made: as far as the look-ahead while the set has room, and less while it has not. Otherwise
// the next ten seconds of a few jobs would fill it, and due times of the others that come first would be late.
//
// A job is claimed when its cursor is near, and gets runs up to far. So one that is due each second is claimed every few seconds.
type reach struct {
	ahead atomic.Int64 // a time.Duration; zero: the look-ahead
}

// leastReach is how far ahead runs are made however full the set is: a few looks of the claimer.
const leastReach = 4 * claimPeriod

// adapt comes before each look.
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

// far is up to where runs are made.
func (r *reach) far(lookAhead time.Duration) time.Duration {
	if ahead := time.Duration(r.ahead.Load()); ahead > 0 {
		return ahead
	}
	return lookAhead
}

// near is where the cursors are that are moved.
func (r *reach) near(lookAhead time.Duration) time.Duration {
	far := r.far(lookAhead)
	return max(far/2, min(far, leastReach))
}
