package trail

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

func (g Gap) len() int64 { return g.To - g.From + 1 }

func (t *Trail) missing() (n int64) {
	for _, g := range t.Gaps {
		n += g.len()
	}
	return n
}

// TestTrail: ids that appear in any order are each reported exactly once, even if a look fails and
// is repeated from the earlier trail.
func TestTrail(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		const n = 300
		var there []int64 // committed
		order := r.Perm(n)
		tr, seen := Trail{}, map[int64]int{}
		for len(order) > 0 || len(seen) < n {
			k := min(len(order), r.IntN(20))
			for _, i := range order[:k] {
				there = append(there, int64(i+1))
			}
			order = order[k:]
			slices.Sort(there)
			fails := r.IntN(4) == 0
			next := tr.Clone()
			rows, fresh, lost, err := Follow(&next, 0, func(id *int64) int64 { return *id },
				func(spans []sql.Span) (out []int64, err error) {
					for _, id := range there {
						if slices.ContainsFunc(spans, func(s sql.Span) bool { return s.From <= id && id <= s.To }) {
							out = append(out, id)
						}
					}
					return out, nil
				}, func(after int64) (out []int64, err error) {
					if fails {
						return nil, errors.New("the link is gone")
					}
					return slices.DeleteFunc(slices.Clone(there), func(id int64) bool { return id <= after }), nil
				})
			if fails != (err != nil) || lost != 0 || fresh > len(rows) {
				t.Fatalf("round %d: %d fresh of %d rows, %d lost, %v", round, fresh, len(rows), lost, err)
			}
			if err != nil {
				continue
			}
			tr = next
			for _, id := range rows {
				seen[id]++
			}
			for i, g := range tr.Gaps {
				if g.len() < 1 || i > 0 && g.From <= tr.Gaps[i-1].To {
					t.Fatalf("round %d: gaps %v", round, tr.Gaps)
				}
			}
		}

		for id := int64(1); id <= n; id++ {
			if seen[id] != 1 {
				t.Fatalf("round %d: id %d was taken %d times, want once", round, id, seen[id])
			}
		}

		if len(tr.Gaps) != 0 {
			t.Fatalf("round %d: all came, and missing are %v", round, tr.Gaps)
		}
	}
}

func TestGivingUp(t *testing.T) {
	t.Parallel()
	const began, second = job.Micros(0), 1_000_000
	tr := Trail{High: 10}
	tr.Pass([]int64{20, 21, 30}, began)
	tr.Pass([]int64{40}, began+second)
	if got := fmt.Sprint(tr.spans()); got != "[[{11 39}]]" {
		t.Errorf("spans: got %s, want near gaps read together", got)
	}

	if tr.tire(began+leastPatience) != 0 || tr.missing() != 9+8+9 {
		t.Errorf("given up before it was looked for often enough: %+v", tr)
	}

	for range fewLooks {
		tr.tire(began + leastPatience - 1)
	}

	if tr.missing() != 9+8+9 {
		t.Errorf("given up too early: %+v", tr)
	}

	slow := tr.Clone() // for a cluster with long transactions
	slow.Patience = 4 * time.Minute
	if slow = slow.Clone(); slow.tire(began+240*second-1) != 0 || slow.missing() != 9+8+9 {
		t.Errorf("given up while transactions may commit: %+v", slow)
	}

	if slow.tire(began+240*second) != 0 || slow.missing() != 9 {
		t.Errorf("after the time of such transactions: got %+v, want only 31 to 39 missing", slow)
	}

	if tr.tire(began+leastPatience) != 0 || tr.missing() != 9 || tr.fill(15) || tr.Gaps[0].From != 31 {
		t.Errorf("after its time: got %+v, want only 31 to 39 missing", tr)
	}

	tr.Pass([]int64{40 + manyMissing}, began+second)
	if lost := tr.tire(began + 2*second); lost != 9 || tr.missing() != manyMissing-1 {
		t.Errorf("too many: got %d missing, %d lost, want the oldest given up, and that said", tr.missing(), lost)
	}

	far := Trail{}
	for i := range int64(250) {
		for id := 1000*i + 10; id <= 1000*(i+1); id++ {
			far.Pass([]int64{id}, began)
		}
	}

	parts := far.spans()
	if len(parts) != 3 || len(parts[0]) != spansAtOnce || parts[2][49] != (sql.Span{From: 249_001, To: 249_009}) {
		t.Errorf("far gaps: got %d parts, want 3", len(parts))
	}

	for i := range int64(manyGaps + 5) {
		far.Pass([]int64{250_000 + 2*i}, began)
	}

	if lost := far.tire(began); lost == 0 || len(far.Gaps) != manyGaps {
		t.Errorf("%d gaps, %d lost; want the oldest given up", len(far.Gaps), lost)
	}
}
