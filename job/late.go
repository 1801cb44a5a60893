package job

import (
	"math"
	"time"
)

// FigureStep is the period for which a node sums up its counts.
const FigureStep = 10 * time.Second

// Lateness is counted in classes. Each class is a quarter wider than the class before. The first
// class ends at a tenth of a millisecond. The last class has no end.
const (
	lateFirst   = 100 * time.Microsecond
	lateGrowth  = 1.25
	LateClasses = 80
)

// LateClass returns the class of a lateness.
func LateClass(late time.Duration) int {
	if late <= lateFirst {
		return 0
	}
	k := int(math.Ceil(math.Log(float64(late)/float64(lateFirst)) / math.Log(lateGrowth)))
	return min(max(k, 0), LateClasses-1)
}

// LateBound returns the end of a class.
func LateBound(class int) time.Duration {
	return time.Duration(float64(lateFirst) * math.Pow(lateGrowth, float64(class)))
}

// Lates counts by class.
type Lates [LateClasses]int64

// Add adds the counts of others.
func (l *Lates) Add(other *Lates) {
	for i, n := range other {
		l[i] += n
	}
}

// Quantile returns the lateness that the given share does not exceed. The result is rounded up to
// the end of its class. If nothing was counted, it returns false.
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
