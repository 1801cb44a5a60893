package schedule

import (
	"testing"

	"go-crontab/job"
)

// shared is a session with a share.
type shared struct {
	Session
	index, of int
}

func (s shared) Share() (index, of int) { return s.index, s.of }

// TestShares: the shares of all sessions cover each hash once. A session that is no member has no
// share.
func TestShares(t *testing.T) {
	t.Parallel()
	for _, of := range []int{1, 2, 3, 7, 1000} {
		next := 0
		for index := range of {
			s := shareOf(shared{index: index, of: of})
			if s.FromHash != next {
				t.Fatalf("share %d of %d begins at %d, want %d", index, of, s.FromHash, next)
			}
			next = s.ToHash
		}
		if next != job.Hashes {
			t.Errorf("%d shares end at %d, want %d", of, next, job.Hashes)
		}
	}

	for name, s := range map[string]shared{"it has not looked yet": {index: -1}, "it is cordoned": {index: -1, of: 3}} {
		if got := shareOf(s); got.FromHash != 0 || got.ToHash != 0 {
			t.Errorf("%s: got %+v, want nothing", name, got)
		}
	}
}
