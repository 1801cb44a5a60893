package schedule

import (
	"math"
	"sync"
	"time"
)

const (
	// portionPeriod is the time between two changes of a portion: about a spawn window, because a
	// start that is too late comes back after that time.
	portionPeriod = time.Second
	// leastPortion is the number of starts in a period that a node may always make.
	leastPortion = 8
)

// portion bounds the starts of an overloaded node. Such a node commits starts, but executes them
// too late for their spawn windows. These starts come back: their runs become idle and are started
// again. While this happens, the node halves its starts in each period, so other nodes take over
// due runs. Later it doubles them until there is no bound.
type portion struct {
	mu      sync.Mutex
	most    int       // starts in a period; zero: no bound
	since   time.Time // beginning of the period
	started int       // in the period
	seen    int64     // starts that came back before the period
}

// left returns how many runs the node may start now. back counts the starts that came back so far.
func (p *portion) left(now time.Time, back int64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.since) >= portionPeriod {
		switch late := back > p.seen; {
		case late && p.most == 0:
			p.most = startBatch / 2
		case late:
			p.most = max(leastPortion, p.most/2)
		default:
			p.most *= 2
		}
		if p.most >= startBatch {
			p.most = 0
		}
		p.since, p.started, p.seen = now, 0, back
	}

	if p.most == 0 {
		return math.MaxInt
	}
	return max(0, p.most-p.started)
}

// took counts starts.
func (p *portion) took(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started += n
}
