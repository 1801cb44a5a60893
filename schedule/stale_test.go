package schedule

import "testing"

// TestStaleRunLetsNobodyThrough: a node may still hold a run that executes on another node. It must
// not judge that run: if it refused the run as too late, the turn would pass to the next run of the
// job.
func TestStaleRunLetsNobodyThrough(t *testing.T) {
	c := newCluster(t)
	hung, other := c.member(1, c.dsn), c.member(2, c.dsn)
	c.create(every("j", 5), t0)
	hung.claims(0)
	c.want("taken over", other.takesOverdue(8), "j@5")

	hung.claims(75)
	c.want("started beside it", hung.starts(75))
	c.want("executing", c.rows("SELECT (due - ?) / 1000000 FROM run WHERE state = 'executing'", int64(t0)), "5.0000")
}
