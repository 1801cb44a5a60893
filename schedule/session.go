package schedule

import (
	"go-crontab/job"
	"go-crontab/sql/trip"
)

// Session is the life of a node process. Runs are claimed and started on its behalf.
type Session interface {
	Number() trip.Owner
	Now() job.Micros        // the clock of MySQL
	Fresh() bool            // the lease is fresh: claims and starts are allowed
	Mint(n int) (run int64) // the first of n run ids that no other session uses
	Share() (index, of int) // this session has the index-th of `of` shares of all jobs
}
