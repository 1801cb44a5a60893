package schedule

import (
	"go-crontab/job"
	"go-crontab/sql/trip"
)

// Session is the life of the node process on whose behalf runs are claimed and started.
type Session interface {
	Number() trip.Owner
	Now() job.Micros        // the clock of MySQL
	Fresh() bool            // the lease is fresh: claims and starts are allowed
	Mint(n int) (run int64) // the first of n run ids that nobody else uses
	Share() (index, of int) // the index-th of so many shares of all jobs is this session's
}
