package bench

import (
	"crypto/sha256"
	"slices"
	"time"
)

// tooNoisy is the spread from which on figures say more about others on the machine than about us.
const tooNoisy = .25

// noise does equal pieces of work on one processor and returns how far their times lie apart: the 90th percentile over
// the median, less one.
func noise() float64 {
	var times []float64
	block := make([]byte, 1<<20)
	for range 60 {
		begin := time.Now()
		for range 4 {
			sum := sha256.Sum256(block)
			block[0] = sum[0]
		}
		times = append(times, time.Since(begin).Seconds())
	}
	slices.Sort(times)
	return times[len(times)*9/10]/times[len(times)/2] - 1
}
