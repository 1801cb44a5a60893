package node

import (
	"time"

	"go-crontab/session"
)

// Tests do not wait for long until a restore is noticed.
func init() { watermarkPeriod = 50 * time.Millisecond }

// SetWatermarkPeriod is for a test that runs alone; it returns what it was.
func SetWatermarkPeriod(d time.Duration) (was time.Duration) {
	was, watermarkPeriod = watermarkPeriod, d
	return was
}

// Clock is MySQL's as the node knows it.
func (n *Node) Clock() *session.Clock { return n.clock }
