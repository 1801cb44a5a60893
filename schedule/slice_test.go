package schedule

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"go-crontab/job"
	"go-crontab/sql"
)

// TestBuckets: for every number of buckets, the buckets are ranges that cover all hashes once, in order, and of sizes
// that differ by one at most; bucketOf finds the range that holds a hash.
func TestBuckets(t *testing.T) {
	t.Parallel()
	for buckets := 1; buckets <= sql.MaxBuckets; buckets++ {
		next, least, most := 0, job.Hashes, 0
		for b := range buckets {
			from, to := bucketRange(b, buckets)
			if from != next || to <= from {
				t.Fatalf("bucket %d of %d: got [%d, %d), want it to begin at %d and not to be empty", b, buckets, from, to, next)
			}
			least, most, next = min(least, to-from), max(most, to-from), to
			for hash := from; hash < to; hash++ {
				if got := bucketOf(hash, buckets); got != b {
					t.Fatalf("hash %d, %d buckets: got bucket %d, want %d", hash, buckets, got, b)
				}
			}
		}
		if next != job.Hashes {
			t.Errorf("%d buckets: they end at %d, want %d", buckets, next, job.Hashes)
		}
		if most-least > 1 {
			t.Errorf("%d buckets: got sizes from %d to %d, want them even", buckets, least, most)
		}
	}
}

// TestPreferred: the sessions of a cluster share out all hashes, each to one, whatever their number and that of the
// buckets.
func TestPreferred(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.IntRange(1, 300).Draw(t, "of")
		buckets := rapid.IntRange(1, sql.MaxBuckets).Draw(t, "buckets")
		owner := make([]int, job.Hashes)
		for i := range of {
			slices := preferred(&fakeSession{index: i, of: of, buckets: buckets}, 77)
			end := -1
			for _, s := range slices {
				if s.Before != 77 || s.FromHash <= end || s.ToHash <= s.FromHash {
					t.Fatalf("session %d: got slices %+v, want them apart, in order and not empty", i, slices)
				}
				end = s.ToHash
				for hash := s.FromHash; hash < s.ToHash; hash++ {
					if owner[hash]++; owner[hash] > 1 {
						t.Fatalf("hash %d is preferred by two of %d sessions", hash, of)
					}
				}
			}
			if of == 1 && len(slices) != 1 {
				t.Errorf("alone: got %d slices, want one", len(slices))
			}
		}
		for hash, n := range owner {
			if n != 1 {
				t.Fatalf("hash %d is preferred by %d of %d sessions, %d buckets", hash, n, of, buckets)
			}
		}
	})
	if got := preferred(&fakeSession{index: -1, of: 3, buckets: 16}, 77); got != nil {
		t.Errorf("no member: got %+v, want no share", got)
	}
	if got := everything(5); !reflect.DeepEqual(got, sql.Slice{ToHash: job.Hashes, Before: 5}) {
		t.Errorf("everything: got %+v", got)
	}
}
