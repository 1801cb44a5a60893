package bench

import (
	"crypto/sha256"
	"slices"
	"time"
)

// tooNoisy is the spread above which other load on the machine affects the results more than
// go-crontab does.
const tooNoisy = .25

// noise repeats the same work on one processor. It returns the spread of the times: the 90th
// percentile divided by the median, minus 1.
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
