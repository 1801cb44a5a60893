package sql

import "time"

// Batch chooses the size of the next transaction. A failure halves the size, until the item that
// MySQL refuses is alone. A success doubles the size. A Batch is not safe for concurrent use.
//
// A lost connection halves the size, too, because a row may be the cause: for example, a row that
// is larger than a packet.
type Batch struct {
	most, size int
	culprit    bool
	failures   int
}

// NewBatch returns a batch of at most most items.
func NewBatch(most int) Batch { return Batch{most: most, size: most} }

// Size returns the number of items that the next transaction takes.
func (b *Batch) Size() int { return b.size }

// Took records how a transaction of n items ended.
func (b *Batch) Took(n int, err error) {
	b.culprit = n == 1 && BlamesRows(err)
	switch {
	case err == nil:
		b.size, b.failures = min(b.most, 2*b.size), 0
	case b.culprit:
		b.failures = 0
	default:
		b.size, b.failures = max(1, n/2), b.failures+1
	}
}

// Culprit reports whether the last transaction held one item and MySQL refused the item's contents.
// Set that item aside: MySQL will refuse it again.
func (b *Batch) Culprit() bool { return b.culprit }

// Pause returns how long to wait after a failure. Each failure in a row doubles it, from 25 ms to 2
// s.
func (b *Batch) Pause() time.Duration {
	return min(2*time.Second, 25*time.Millisecond<<min(b.failures, 10))
}
