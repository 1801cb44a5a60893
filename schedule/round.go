package schedule

import (
	"math"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

const (
	// roundPeriod is how often a round begins.
	roundPeriod = time.Minute
	// behindMark is how far the mark stays behind the beginning of a round.
	behindMark = 10 * time.Second
)

// round tells from which cursor on to look. Dead entries of the index, which a long backup keeps from being purged, stand before the
// living ones, and a look that begins at the mark does not pass them. Once a minute, and when somebody asks, a round passes them: one
// look at each share without a lower bound. It ends when the looks have claimed all that they found, and the mark moves then.
//
// The zero value begins a round at once.
type round struct {
	mark  job.Micros      // no cursor is older, but for those that the next round finds
	next  job.Micros      // when the next round begins
	began job.Micros      // this round
	done  map[hashes]bool // shares of which all was claimed; nil between two rounds
}

// due reports that a look now belongs to a round.
func (r *round) due(now job.Micros) bool { return r.done != nil || now >= r.next }

// again begins a round with the next look, also in the middle of one.
func (r *round) again() { r.next, r.done = 0, nil }

// begin comes before each look.
func (r *round) begin(now job.Micros) {
	if r.done == nil && now >= r.next {
		r.began, r.done = now, map[hashes]bool{}
	}
}

// from is where a look at a share begins.
func (r *round) from(share trip.Slice) job.Micros {
	if r.done == nil || r.done[hashesOf(share)] {
		return r.mark
	}
	return math.MinInt64
}

// claimed notes that a look has claimed all that it found in a share.
func (r *round) claimed(share trip.Slice) {
	if r.done != nil {
		r.done[hashesOf(share)] = true
	}
}

// end ends the round if nothing is left of it. Sessions that come and go change the shares: a round counts those of now.
func (r *round) end(shares []trip.Slice) {
	if r.done == nil {
		return
	}
	for _, share := range shares {
		if !r.done[hashesOf(share)] {
			return
		}
	}
	r.mark, r.next, r.done = r.began.Add(-behindMark), r.began.Add(roundPeriod), nil
}

// hashes are those of a share: from the first up to the second.
type hashes [2]int

func hashesOf(share trip.Slice) hashes { return hashes{share.FromHash, share.ToHash} }
