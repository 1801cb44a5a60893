package feed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go-crontab/sql"
)

// TestTrail has ids come in any order, and looks that each is taken as new exactly once.
func TestTrail(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		const n = 300
		var there []int64 // committed
		order := r.Perm(n)
		tr, seen, now := trail{}, map[int64]int{}, time.Unix(0, 0)
		for len(order) > 0 || len(there) < n {
			k := min(len(order), r.IntN(20))
			for _, i := range order[:k] {
				there = append(there, int64(i+1))
			}
			order = order[k:]
			slices.Sort(there)
			for _, spans := range tr.spans() {
				for _, s := range spans {
					for _, id := range there {
						if s.From <= id && id <= s.To && tr.lacks(id) {
							tr.fill(id)
							seen[id]++
						}
					}
				}
			}
			var fresh []int64
			for _, id := range there {
				if id > tr.high {
					fresh = append(fresh, id)
					seen[id]++
				}
			}
			tr.pass(fresh, now)
			sum := int64(0)
			for i, g := range tr.gaps {
				sum += g.len()
				if g.len() < 1 || i > 0 && g.from <= tr.gaps[i-1].to {
					t.Fatalf("round %d: gaps %v", round, tr.gaps)
				}
			}
			if sum != tr.missing {
				t.Fatalf("round %d: %d ids are missing, counted are %d", round, sum, tr.missing)
			}
		}
		for id := int64(1); id <= n; id++ {
			if seen[id] != 1 {
				t.Fatalf("round %d: id %d was taken %d times, want once", round, id, seen[id])
			}
		}
		if tr.missing != 0 || len(tr.gaps) != 0 {
			t.Fatalf("round %d: all came, and missing are %v", round, tr.gaps)
		}
	}
}

func TestTrailGivesUp(t *testing.T) {
	t.Parallel()
	began := time.Unix(0, 0)
	tr := trail{high: 10}
	tr.pass([]int64{20, 21, 30}, began)
	tr.pass([]int64{40}, began.Add(time.Second))
	if got := fmt.Sprint(tr.spans()); got != "[[{11 39}]]" {
		t.Errorf("spans: got %s, want near gaps read together", got)
	}
	if tr.tire(began.Add(patience-1)) || tr.missing != 9+8+9 {
		t.Errorf("given up too early: %+v", tr)
	}
	if tr.tire(began.Add(patience)) || tr.missing != 9 || tr.lacks(15) || !tr.lacks(35) {
		t.Errorf("after its time: got %+v, want only 31 to 39 missing", tr)
	}
	tr.pass([]int64{40 + manyMissing}, began.Add(time.Second))
	if !tr.tire(began.Add(2*time.Second)) || tr.missing != manyMissing-1 {
		t.Errorf("too many: got %d missing, want the oldest given up, and that said", tr.missing)
	}
	far := trail{}
	for i := range int64(250) {
		for id := 1000*i + 10; id <= 1000*(i+1); id++ {
			far.pass([]int64{id}, began)
		}
	}
	parts := far.spans()
	if len(parts) != 3 || len(parts[0]) != spansAtOnce || parts[2][49] != (sql.Span{From: 249_001, To: 249_009}) {
		t.Errorf("far gaps: got %d parts, want 3", len(parts))
	}
}

func TestRing(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	r := newRing()
	r.began = now
	add := func(id string, after time.Duration) { r.add(Event{ID: id, Data: []byte("{}")}, now.Add(after)) }
	for i := range 20 {
		add(fmt.Sprint("e", i), time.Duration(i)*time.Second)
	}
	place := func(id string, n int) string { return fmt.Sprintf("%s.%s-%d", id, r.epoch, n) }
	for name, c := range map[string]struct {
		after string
		want  int64
		ok    bool
	}{
		"of this life":                       {place("e7", 7), 8, true},
		"the last":                           {place("e19", 19), 20, true},
		"one that there is not yet":          {place("e20", 20), 21, false},
		"of another node":                    {"e12.abcdef01-3", 7, true},
		"of another node, and just begun":    {"e4.abcdef01-3", 0, false},
		"of another node, and never seen":    {"e99.abcdef01-3", 0, false},
		"nonsense":                           {"x-y.z", 0, false},
		"nothing":                            {"", 0, false},
		"of another node, at the very begin": {"e5.abcdef01-3", 0, true},
	} {
		got, ok := r.behind(c.after)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s: got %d, %v, want %d, %v", name, got, ok, c.want, c.ok)
		}
	}
	for i := range ringEvents {
		add(fmt.Sprint("f", i), time.Minute)
	}
	if len(r.events) != ringEvents || r.first != 20 || len(r.byID) != ringEvents {
		t.Errorf("got %d events from %d on, %d by id", len(r.events), r.first, len(r.byID))
	}
	if _, ok := r.behind(place("e7", 7)); ok {
		t.Error("what is forgotten can be resumed")
	}
	if _, ok := r.behind("f3.abcdef01-3"); ok {
		t.Error("what came just before it is forgotten, and it can be resumed")
	}
	big := make([]byte, ringBytes/4)
	for i := range 10 {
		r.add(Event{ID: fmt.Sprint("g", i), Data: big}, now)
	}
	if r.bytes > ringBytes || len(r.events) > 4 {
		t.Errorf("got %d events of %d bytes, want at most %d", len(r.events), r.bytes, ringBytes)
	}
}
