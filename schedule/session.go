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
	Share() (index, of int) // this session has share number index (from 0) of `of` shares of all jobs

	// Peers returns the labels of each node that takes work. It is empty while the nodes are
	// unknown.
	Peers() []map[string]string
}

// Lookout knows whether there was work a moment ago, so idle loops need not ask MySQL. It reports
// false when it does not know.
type Lookout interface {
	NothingToClaim(before job.Micros) bool // no due time before the instant was unclaimed
	NothingToStart(now job.Micros) bool    // no run was due or belonged to a session
	NoLimits() bool                        // no app had limits
}

// Blind is a Lookout that knows nothing, so loops always ask MySQL.
type Blind struct{}

// NothingToClaim returns false.
func (Blind) NothingToClaim(job.Micros) bool { return false }

// NothingToStart returns false.
func (Blind) NothingToStart(job.Micros) bool { return false }

// NoLimits returns false.
func (Blind) NoLimits() bool { return false }
