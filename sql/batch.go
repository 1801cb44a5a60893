package sql

import "time"

// Batch says how many items the next transaction takes. After a failure it takes half as many,
// until the item that MySQL refuses is alone; after a success, twice as many. It is not for several
// goroutines.
//
// A lost link halves it as well: a row may be to blame for that, for example one that is larger
// than a packet.
type Batch struct {
	most, size int
	culprit    bool
	failures   int
}

// NewBatch returns a batch of at most so many items.
func NewBatch(most int) Batch { return Batch{most: most, size: most} }

// Size is how many items the next transaction takes.
func (b *Batch) Size() int { return b.size }

// Took learns how a transaction of n items ended.
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

// Culprit reports whether the last transaction held one item and MySQL refused it for what it says.
// The item is to be set aside: it will be refused again.
func (b *Batch) Culprit() bool { return b.culprit }

// Pause is how long to wait after a failure: longer with each in a row, at most two seconds.
func (b *Batch) Pause() time.Duration {
	return min(2*time.Second, 25*time.Millisecond<<min(b.failures, 10))
}
