package job

import (
	"math"
	"time"
)

// FigureStep is how much time is counted together when a node counts what it does.
const FigureStep = 10 * time.Second

// Lateness is counted in classes. Each is a quarter wider than the one before; the first ends at a tenth of a
// millisecond, and the last has no end.
const (
	lateFirst   = 100 * time.Microsecond
	lateGrowth  = 1.25
	LateClasses = 80
)

// LateClass is the class of a lateness.
func LateClass(late time.Duration) int {
	if late <= lateFirst {
		return 0
	}
	k := int(math.Ceil(math.Log(float64(late)/float64(lateFirst)) / math.Log(lateGrowth)))
	return min(max(k, 0), LateClasses-1)
}

// LateBound is where a class ends.
func LateBound(class int) time.Duration {
	return time.Duration(float64(lateFirst) * math.Pow(lateGrowth, float64(class)))
}

// Lates counts by class.
type Lates [LateClasses]int64

// Add counts the ones of others.
func (l *Lates) Add(other *Lates) {
	for i, n := range other {
		l[i] += n
	}
}

// Quantile is what that share of all is at most as late as, to the end of its class; false when nothing was counted.
func (l *Lates) Quantile(share float64) (time.Duration, bool) {
	all := int64(0)
	for _, n := range l {
		all += n
	}
	if all == 0 {
		return 0, false
	}
	rank := max(1, int64(math.Ceil(share*float64(all))))
	for i, n := range l {
		if rank -= n; rank <= 0 {
			return LateBound(i), true
		}
	}
	return LateBound(LateClasses - 1), true
}
