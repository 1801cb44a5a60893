package node

import (
	"time"

	"go-crontab/session"
)

// Tests must not wait long for a restore to be noticed.
func init() { watermarkPeriod = 50 * time.Millisecond }

// SetWatermarkPeriod is for a test that runs alone. It returns the old value.
func SetWatermarkPeriod(d time.Duration) (was time.Duration) {
	was, watermarkPeriod = watermarkPeriod, d
	return was
}

// Clock returns the node's view of MySQL's clock.
func (n *Node) Clock() *session.Clock { return n.clock }
