package schedule

import (
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// A slice is (minutes up to an instant) × (bucket): the unit in which due tasks are looked for. A bucket is a
// range of the hashes that rows store, so nodes that for a moment count buckets differently are harmless: their
// ranges overlap or leave a gap, claims are guarded, and what nobody prefers is taken by anybody once it is late.

// bucketRange is the range of hashes of a bucket.
func bucketRange(bucket, buckets int) (from, to int) {
	return bucket * job.Hashes / buckets, (bucket + 1) * job.Hashes / buckets
}

// bucketOf is the bucket of a hash.
func bucketOf(hash, buckets int) int {
	b := hash * buckets / job.Hashes
	if _, to := bucketRange(b, buckets); hash >= to {
		b++
	}
	return b
}

// preferred returns the slices of the buckets that prefer this session, up to before. Buckets that adjoin
// become one slice; a session that is alone has a single one.
func preferred(s Session, before job.Micros) []sql.Slice {
	index, of, buckets := s.Share()
	if index < 0 {
		return nil
	}
	return preferredOf(index, of, buckets, before)
}

// preferredOf returns the slices of the index-th of every of buckets.
func preferredOf(index, of, buckets int, before job.Micros) []sql.Slice {
	var out []sql.Slice
	for b := index; b < buckets; b += of {
		from, to := bucketRange(b, buckets)
		if n := len(out); n > 0 && out[n-1].ToHash == from {
			out[n-1].ToHash = to
			continue
		}
		out = append(out, sql.Slice{FromHash: from, ToHash: to, Before: before})
	}
	return out
}

// everything is the slice of all buckets up to before.
func everything(before job.Micros) sql.Slice { return sql.Slice{ToHash: job.Hashes, Before: before} }

// How far each step looks ahead. A due time is planned once it is less than planWindow away, up to planHorizon;
// it is claimed once it is less than Claimer.LookAhead away.
const (
	planWindow  = 20 * time.Second
	planHorizon = 40 * time.Second
	planMax     = 1000 // due times of one job in one go
)
