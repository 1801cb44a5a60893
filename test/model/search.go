package model

import (
	"fmt"
	"unsafe"
)

// Found is a violation with a shortest trace to it.
type Found struct {
	Violation uint32
	Trace     []string
}

// Result is the outcome of a search.
type Result struct {
	States int
	Cut    bool // the world has more states than it allows
	Found  []Found
}

// Search visits every state of a world.
func (w *World) Search() Result {
	w.withDefaults()
	x := &search{World: w, states: newTable()}
	x.add(w.start(), 0)
	x.explore()
	if !x.cut && !(w.First && len(x.found) > 0) {
		x.progress()
	}
	return Result{States: len(x.states.all), Cut: x.cut, Found: x.found}
}

type search struct {
	*World
	states *table
	parent []uint32
	from   []uint32 // fair steps, in the order of their origin
	to     []uint32
	bad    map[uint32]bool
	seen   uint32 // violations found
	found  []Found
	cut    bool
}

func (x *search) add(s S, parent uint32) uint32 {
	at, isNew := x.states.put(s)
	if isNew {
		x.parent = append(x.parent, parent)
	}
	return at
}

// explore visits all states, the nearest first.
func (x *search) explore() {
	x.bad = map[uint32]bool{}

	for at := uint32(0); int(at) < len(x.states.all); at++ {
		s := x.states.all[at]
		if v := x.wrong(&s); v != 0 {
			x.bad[at] = true

			for bit := uint32(1); bit < vEnd; bit <<= 1 {
				if v&bit != 0 {
					x.report(bit, at)
				}
			}

			if x.First {
				return
			}

			continue
		}

		x.steps(&s, func(_ string, _, _ int, kind uint8, t *S) {
			if *t == s {
				return
			}
			next := x.add(*t, at)
			if kind == fair {
				x.from, x.to = append(x.from, at), append(x.to, next)
			}
		})

		if len(x.states.all) > x.Max {
			x.cut = true
			return
		}
	}
}

// report keeps the first trace to a violation, which is a shortest one.
func (x *search) report(v, at uint32, more ...string) {
	if x.seen&v != 0 {
		return
	}
	x.seen |= v
	x.found = append(x.found, Found{v, append(x.trace(at), more...)})
}

func (x *search) trace(at uint32) (steps []string) {
	for ; at != 0; at = x.parent[at] {
		steps = append([]string{x.nameOf(x.parent[at], at, false)}, steps...)
	}
	return steps
}

// nameOf returns the name of a step between two states.
func (x *search) nameOf(from, to uint32, onlyFair bool) (name string) {
	x.steps(&x.states.all[from], func(n string, node, run int, kind uint8, t *S) {
		if name == "" && (kind == fair || !onlyFair) && *t == x.states.all[to] {
			name = label(n, node, run)
		}
	})
	return name
}

func label(name string, node, run int) string {
	if node >= 0 {
		name = fmt.Sprintf("%c %s", 'A'+rune(node), name)
	}
	if run >= 0 {
		name += fmt.Sprintf(" #%d", run)
	}
	return name
}

// progress finds unfinished states without a fair step, and cycles of fair steps.
func (x *search) progress() {
	count := len(x.states.all)
	first := make([]uint32, count+1) // index of each state's first outgoing step
	open := make([]uint32, count)    // incoming steps that are not followed yet
	for e := range x.from {
		first[x.from[e]+1]++
		open[x.to[e]]++
	}

	for i := range count {
		if s := &x.states.all[i]; first[i+1] == 0 && !x.bad[uint32(i)] && x.canWork(s) && !x.finished(s) {
			x.report(vStuck, uint32(i))
		}
		first[i+1] += first[i]
	}

	// Remove states that no fair step leads to, and their outgoing steps. A cycle remains.
	var free []uint32
	for i := range open {
		if open[i] == 0 {
			free = append(free, uint32(i))
		}
	}

	gone := 0
	for ; len(free) > 0; gone++ {
		at := free[len(free)-1]
		free = free[:len(free)-1]
		for _, next := range x.to[first[at]:first[at+1]] {
			if open[next]--; open[next] == 0 {
				free = append(free, next)
			}
		}
	}

	if gone < count {
		x.loop(open)
	}
}

// canWork reports whether some node could do all the remaining work.
func (x *search) canWork(s *S) bool {
	for i := range x.Nodes {
		if n := &s.node[i]; n.works() && (!x.Pinned || i == x.Nodes-1) {
			return true
		}
	}
	return false
}

// loop reports a cycle among the remaining states: it walks backwards until a state repeats.
func (x *search) loop(open []uint32) {
	back := map[uint32]uint32{}
	for e := range x.from {
		if open[x.from[e]] > 0 && open[x.to[e]] > 0 {
			back[x.to[e]] = x.from[e]
		}
	}

	for i := range open {
		if open[i] == 0 {
			continue
		}

		seen, at := map[uint32]bool{}, uint32(i)
		for !seen[at] {
			seen[at] = true
			at = back[at]
		}

		var cycle []string
		for y := at; ; {
			cycle = append([]string{x.nameOf(back[y], y, true)}, cycle...)
			if y = back[y]; y == at {
				break
			}
		}

		if len(cycle) > 6 {
			cycle = append(cycle[:6], "and so on")
		}

		x.report(vLoop, at, append([]string{"THEN FOR EVER"}, cycle...)...)
		return
	}
}

// table is a set of states: an open hash table of positions in a slice.
type table struct {
	all  []S
	slot []uint32 // 1 + position
}

func newTable() *table { return &table{slot: make([]uint32, 1<<16)} }

func (t *table) put(s S) (at uint32, isNew bool) {
	p := t.find(&s)
	if t.slot[p] != 0 {
		return t.slot[p] - 1, false
	}
	t.all = append(t.all, s)
	t.slot[p] = uint32(len(t.all))
	if 2*len(t.all) > len(t.slot) {
		t.grow()
	}

	return uint32(len(t.all)) - 1, true
}

// find returns the slot of a state, or the empty slot where it belongs.
func (t *table) find(s *S) uint64 {
	mask := uint64(len(t.slot) - 1)
	for p := hash(s) & mask; ; p = (p + 1) & mask {
		if at := t.slot[p]; at == 0 || t.all[at-1] == *s {
			return p
		}
	}
}

func (t *table) grow() {
	t.slot = make([]uint32, 2*len(t.slot))
	mask := uint64(len(t.slot) - 1)
	for i := range t.all {
		p := hash(&t.all[i]) & mask
		for t.slot[p] != 0 {
			p = (p + 1) & mask
		}
		t.slot[p] = uint32(i) + 1
	}
}

func hash(s *S) uint64 {
	b := unsafe.Slice((*byte)(unsafe.Pointer(s)), unsafe.Sizeof(*s))
	h := uint64(0x243F6A8885A308D3)
	for len(b) >= 8 {
		h = (h ^ *(*uint64)(unsafe.Pointer(&b[0]))) * 0x9E3779B97F4A7C15
		h ^= h >> 29
		b = b[8:]
	}

	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}

	return h ^ h>>32
}
