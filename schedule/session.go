package schedule

import (
	"go-crontab/job"

	"github.com/google/uuid"
)

// Session is the life on whose behalf tasks are planned, claimed and started.
type Session interface {
	ID() uuid.UUID
	Node() string
	Now() job.Micros                 // MySQL's clock
	Fresh() bool                     // may anything be claimed or started now?
	Reserve(n int64) int64           // the first of n launch counters
	Mint() job.Launch                // one launch
	Share() (index, of, buckets int) // the index-th of every of buckets is mine
}

// wake is a one-slot signal: a wake that finds it full is not needed, a wake that is missed costs a tick.
type wake chan struct{}

func newWake() wake { return make(wake, 1) }

func (w wake) up() {
	select {
	case w <- struct{}{}:
	default:
	}
}
