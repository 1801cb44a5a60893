package schedule

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// TestPortion: a node that can spawn 100 runs in a second soon starts about as many, and starts
// everything again soon after it has recovered.
func TestPortion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(portion)
		var back int64
		second := func(can int) (started, late int) {
			for range 20 {
				time.Sleep(50 * time.Millisecond)
				n := min(p.left(time.Now(), back), 800)
				p.took(n)
				started += n
			}
			late = max(0, started-can)
			back += int64(late)
			return started, late
		}

		if n, _ := second(math.MaxInt); n != 20*800 {
			t.Errorf("a healthy node started %d runs, want all", n)
		}

		first, _ := second(100)
		for range 5 {
			second(100)
		}
		total, late := 0, 0
		for range 20 {
			n, l := second(100)
			total, late = total+n, late+l
		}
		t.Logf("overloaded: %d runs in the first second, then %d in 20 s, %d of them too late", first, total, late)
		if total < 20*50 || late > total/3 {
			t.Errorf("overloaded: %d runs started in 20 s, %d of them too late", total, late)
		}

		for range 7 {
			second(math.MaxInt)
		}
		if left := p.left(time.Now(), back); left != math.MaxInt {
			t.Errorf("recovered: %d runs may start, want all", left)
		}

		for range 20 {
			second(0)
		}
		if n, _ := second(0); n != leastPortion {
			t.Errorf("a node that spawns nothing started %d runs, want %d", n, leastPortion)
		}
	})
}
