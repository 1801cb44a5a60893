package protocol

import (
	"hash/maphash"
	"math"
)

// Result is what a search has found.
type Result struct {
	World  *World
	States []int    // by how many faults they need
	Steps  int      // that were looked at
	Cut    bool     // there are more states than World.Most
	Open   int      // of a search that was cut: from so many states it is not known whether everything comes to an end
	Found  *Finding // nil: all invariants hold
}

// Total is how many states there are.
func (r *Result) Total() (n int) {
	for _, k := range r.States {
		n += k
	}
	return n
}

// Finding is a violation, and the way to it: the one with the fewest faults, and of those the shortest.
type Finding struct {
	Bad    Violation
	Faults int
	Moves  []Move
	Then   []Move // of a state from which nothing comes to an end: what goes on happening without faults
	End    State  // behind all of them
}

// search is a search that is under way. It keeps of a state only a hash and how it was reached, but for those from which
// the next round begins.
type search struct {
	moves
	Result
	seed   maphash.Seed
	table  table
	parent []uint32
	step   []uint16 // which of the steps out of the parent
	fair   []uint32 // where a fair schedule without faults leads in one step
}

// What may stand in fair instead of a state.
const (
	fairOver = math.MaxUint32 - iota // everything has been done
	fairEnd                          // nothing can happen any more
	fairOpen                         // it was not looked at
	fairGood                         // some steps further everything has been done
	noParent
)

// faultStep marks in step one that is a fault: those are counted by themselves.
const faultStep = 1 << 15

// round are the states that need a number of faults, in the order of how many steps they are away.
type round struct {
	states []State
	number []uint32
	depth  []uint32
}

func (r *round) put(s *State, number, depth uint32) {
	r.states, r.number, r.depth = append(r.states, *s), append(r.number, number), append(r.depth, depth)
}

// Search looks at all states of a world, those with the fewest faults first and of those the nearest, until one violates
// an invariant.
func Search(w *World) *Result {
	x := &search{moves: moves{World: w}, seed: maphash.MakeSeed()}
	x.Result.World = w
	x.table.init(1 << 12)
	first := w.begin()
	w.tidy(&first)
	x.enter(&first, noParent, 0)
	level := &round{}
	level.put(&first, 0, 0)
	before := &round{}
	for faults := 0; faults <= w.Faults && !x.Cut; faults++ {
		begin := len(x.parent) - len(level.states)
		all := x.explore(before, level, faults)
		x.States = append(x.States, len(x.parent)-begin)
		if x.Found == nil {
			if at, is := x.stuck(begin); is {
				x.Found = x.trace(at, Stuck, faults)
				x.goOn(x.Found)
			}
		}
		if x.Found != nil {
			break
		}
		before, level = all, &round{}
	}
	return &x.Result
}

// explore looks at the states of one round, level by level. They are reached from those of the round before by one
// fault, or from each other by none; first are those of the first level.
func (x *search) explore(before, level *round, faults int) *round {
	all, last := &round{}, faults == x.Faults
	from := 0 // in before
	for depth := uint32(0); len(level.states) > 0 || from < len(before.states); depth++ {
		next := &round{}
		for i := range level.states {
			if !x.expand(&level.states[i], level.number[i], depth, false, faults, next) {
				return all
			}
		}
		for ; from < len(before.states) && before.depth[from] == depth; from++ {
			if !x.expand(&before.states[from], before.number[from], depth, true, faults, next) {
				return all
			}
		}
		if !last {
			all.states, all.number, all.depth = append(all.states, level.states...), append(all.number, level.number...), append(all.depth, level.depth...)
		}
		level = next
	}
	return all
}

// expand takes all steps out of a state, those that are faults or those that are not, and puts the states that nobody
// has seen into next. False: it is time to stop.
func (x *search) expand(s *State, number, depth uint32, broken bool, faults int, next *round) bool {
	x.faultsOnly = broken
	x.next(s)
	best := 0
	if !broken {
		x.fair[number] = fairEnd
	}
	for k := range x.to {
		t, by := &x.to[k], &x.by[k]
		x.tidy(t)
		x.Steps++
		step := uint16(k)
		if broken {
			step |= faultStep
		}
		n, isNew := x.enter(t, number, step)
		if bad := by.Bad | x.check(t, faults == 0); bad != 0 {
			last, end := *by, *t // of a step that is wrong, not where it leads
			x.Found = x.trace(number, bad, faults)
			x.Found.Moves, x.Found.End = append(x.Found.Moves, last), end
			return false
		}
		if isNew {
			next.put(t, n, depth+1)
		}
		if r := rank[by.What]; !broken && by.Fair && (best == 0 || r < best) {
			best, x.fair[number] = r, n
		}
	}
	if !broken && x.over(s) {
		x.fair[number] = fairOver
	}
	x.Cut = x.Most > 0 && len(x.parent) >= x.Most
	return !x.Cut
}

// enter gives a state a number, unless it has one.
func (x *search) enter(s *State, parent uint32, step uint16) (number uint32, isNew bool) {
	number, isNew = x.table.put(x.hash(s), uint32(len(x.parent)))
	if isNew {
		x.parent, x.step, x.fair = append(x.parent, parent), append(x.step, step), append(x.fair, fairOpen)
	}
	return number, isNew
}

// hash is the same for states that differ in the names of their nodes only.
func (x *search) hash(s *State) uint64 {
	var h [maxNodes]uint64
	for i := range x.Nodes {
		h[i] = maphash.Comparable(x.seed, s.nodes[i])
	}
	c, copied := s, State{}
	for i := range x.Nodes {
		for j := i + 1; j < x.Nodes; j++ {
			if h[j] >= h[i] {
				continue
			}
			if c == s {
				copied = *s
				c = &copied
			}
			c.exchange(i, j)
			h[i], h[j] = h[j], h[i]
		}
	}
	return maphash.Comparable(x.seed, *c)
}

// stuck follows the fair schedule from each state that was found since begin, and returns the first one from which it
// does not come to an end at which everything has been done. Where a search was cut it leads to states that were not
// looked at any more: what it does from there is open.
func (x *search) stuck(begin int) (at uint32, is bool) {
	var way []uint32
	x.Open = 0
	for i := begin; i < len(x.fair); i++ {
		way = way[:0]
		n := uint32(i)
		for x.fair[n] < noParent && len(way) < longest {
			way = append(way, n)
			n = x.fair[n]
		}
		if x.fair[n] == fairEnd || len(way) == longest {
			return uint32(i), true
		}
		end := uint32(fairGood)
		if x.fair[n] == fairOpen {
			end = fairOpen
		}
		for _, k := range way {
			x.fair[k] = end
		}
		if end == fairOpen {
			x.Open++
		}
	}
	return 0, false
}

// longest is how many steps a fair schedule takes at most.
const longest = 500

// trace is the way to a state.
func (x *search) trace(at uint32, bad Violation, faults int) *Finding {
	var way []uint32
	for n := at; x.parent[n] != noParent; n = x.parent[n] {
		way = append(way, n)
	}
	f := &Finding{Bad: bad, Faults: faults, End: x.begin()}
	x.tidy(&f.End)
	for k := len(way) - 1; k >= 0; k-- {
		step := x.step[way[k]]
		x.faultsOnly = step&faultStep != 0
		from := f.End
		x.next(&from)
		f.Moves = append(f.Moves, x.by[step&^faultStep])
		f.End = x.to[step&^faultStep]
		x.tidy(&f.End)
	}
	return f
}

// goOn follows the fair schedule from the end of a trace.
func (x *search) goOn(f *Finding) {
	x.faultsOnly = false
	for range 40 {
		from := f.End
		x.next(&from)
		best, at := 0, 0
		for k := range x.by {
			if r := rank[x.by[k].What]; x.by[k].Fair && (best == 0 || r < best) {
				best, at = r, k
			}
		}
		if best == 0 {
			return
		}
		f.Then, f.End = append(f.Then, x.by[at]), x.to[at]
		x.tidy(&f.End)
	}
}

// table finds numbers by hashes. Two states with one hash would be taken for one: among ten million that happens once in
// some hundred thousand searches.
type table struct {
	hashes  []uint64 // 0: free
	numbers []uint32
	n       int
}

func (t *table) init(size int) { t.hashes, t.numbers = make([]uint64, size), make([]uint32, size) }

// put enters a number for a hash, unless it has one.
func (t *table) put(h uint64, number uint32) (is uint32, isNew bool) {
	if h == 0 {
		h = 1
	}
	if 4*t.n >= 3*len(t.hashes) {
		t.grow()
	}
	mask := uint64(len(t.hashes) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch t.hashes[i] {
		case h:
			return t.numbers[i], false
		case 0:
			t.hashes[i], t.numbers[i] = h, number
			t.n++
			return number, true
		}
	}
}

func (t *table) grow() {
	old := *t
	t.init(2 * len(old.hashes))
	mask := uint64(len(t.hashes) - 1)
	for k, h := range old.hashes {
		if h == 0 {
			continue
		}
		i := h & mask
		for t.hashes[i] != 0 {
			i = (i + 1) & mask
		}
		t.hashes[i], t.numbers[i] = h, old.numbers[k]
	}
}
