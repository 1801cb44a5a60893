package node

import "time"

// Tests do not wait for long until a restore is noticed.
func init() { watermarkPeriod = 50 * time.Millisecond }
