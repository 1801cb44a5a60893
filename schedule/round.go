package schedule

import (
	"math"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

const (
	// roundPeriod is the time between the beginnings of two rounds.
	roundPeriod = time.Minute
	// behindMark is the distance from a round's mark to the beginning of the round.
	behindMark = 10 * time.Second
)

// round decides at which cursor a look begins. The index of cursors may begin with many dead
// entries, because MySQL cannot purge them during a long backup. Most looks begin at a mark, so
// they skip these entries. Once a minute, and on request, there is a round: it looks at each share
// without a lower bound. The round ends when its looks have claimed everything that they found.
// Then the mark moves.
//
// The zero value begins a round at once.
type round struct {
	mark  job.Micros      // no cursor is older, except for cursors that the next round finds
	next  job.Micros      // when the next round begins
	began job.Micros      // when this round began
	done  map[hashes]bool // shares that are completely claimed; nil between two rounds
}

// due reports whether a look now belongs to a round.
func (r *round) due(now job.Micros) bool { return r.done != nil || now >= r.next }

// again starts a new round with the next look, even in the middle of a round.
func (r *round) again() { r.next, r.done = 0, nil }

// begin is called before each look. It begins a round that is due.
func (r *round) begin(now job.Micros) {
	if r.done == nil && now >= r.next {
		r.began, r.done = now, map[hashes]bool{}
	}
}

// from returns the lower bound for a look at a share.
func (r *round) from(share trip.Slice) job.Micros {
	if r.done == nil || r.done[hashesOf(share)] {
		return r.mark
	}
	return math.MinInt64
}

// claimed records that a look has claimed everything that it found in a share.
func (r *round) claimed(share trip.Slice) {
	if r.done != nil {
		r.done[hashesOf(share)] = true
	}
}

// end ends the round if all current shares are claimed. Shares change as sessions come and go.
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

// hashes identifies a share: from the first hash (included) to the second (excluded).
type hashes [2]int

func hashesOf(share trip.Slice) hashes { return hashes{share.FromHash, share.ToHash} }
