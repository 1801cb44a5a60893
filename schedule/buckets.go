package schedule

import (
	"context"
	"log/slog"
	"math/bits"
	"time"

	"go-crontab/sql"
)

// Bucketer has the number of buckets follow the load and the number of nodes: more buckets share the work more evenly
// and hold fewer tasks under one lock; fewer cost a quiet cluster less. Rows store a fine hash, of which a bucket is a
// range, so nothing is rewritten. Nodes read the number with their beats, so for some seconds they count differently:
// two may prefer the same task, which claims keep apart, or none, and then anybody takes it once it is late. The first
// node decides; if two believe to be that, the setting changes from what each has seen, or not at all.
type Bucketer struct {
	DB      *sql.DB
	Session Session
	Log     *slog.Logger

	low int // looks in a row at which fewer would have been enough
}

// How the number of buckets is found.
const (
	bucketPeriod = 10 * time.Second
	minBuckets   = 16
	// bucketsPerNode is so that shares differ little, whatever the number of nodes.
	bucketsPerNode = 4
	// tasksPerBucket is how many of the tasks due within planWindow one bucket is to hold.
	tasksPerBucket = 250
	// calmLooks is after how many looks in a row at a low load the number is halved.
	calmLooks = 6
)

// Run looks until ctx ends.
func (b *Bucketer) Run(ctx context.Context) error {
	tick := time.NewTicker(bucketPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if err := b.adapt(ctx); err != nil && ctx.Err() == nil {
			b.Log.Warn("cannot choose the number of buckets, trying again", "error", err)
		}
	}
}

// adapt takes one look.
func (b *Bucketer) adapt(ctx context.Context) error {
	index, nodes, buckets := b.Session.Share()
	if index != 0 || !b.Session.Fresh() {
		b.low = 0
		return nil
	}
	ahead, err := b.DB.CountIdle(ctx, b.Session.Now().Add(planWindow), tasksPerBucket*sql.MaxBuckets)
	if err != nil {
		return err
	}
	want := wantBuckets(ahead, nodes)
	switch {
	case want > buckets:
		b.low = 0
	case want > buckets/4 || buckets/2 < minBuckets:
		b.low = 0 // not worth a change
		return nil
	default:
		if b.low++; b.low < calmLooks {
			return nil
		}
		want, b.low = buckets/2, 0
	}
	changed, err := b.DB.ChangeBuckets(ctx, buckets, want)
	if err == nil && changed {
		b.Log.Info("number of buckets changed", "from", buckets, "to", want, "tasks", ahead, "nodes", nodes)
	}
	return err
}

// wantBuckets is how many buckets so many tasks and nodes want: a power of two.
func wantBuckets(tasks, nodes int) int {
	n := max(minBuckets, bucketsPerNode*nodes, (tasks+tasksPerBucket-1)/tasksPerBucket)
	return min(sql.MaxBuckets, 1<<bits.Len(uint(n-1)))
}
