package protocol

// Move is one step from a state to another.
type Move struct {
	What  What
	Node  int8 // -1: of none
	Task  int8 // -1: of none
	Fate  Fate
	Fault bool // it counts as a fault
	Fair  bool // it happens some time, if it stays possible and nothing goes wrong any more
	Bad   Violation
}

// Fate is how a COMMIT ended.
type Fate uint8

// Fates. Of all but the first its sender knows nothing.
const (
	Known Fate = iota
	Applied
	Never
	OnItsWay
)

// moves collects the steps that lead out of a state: those that are faults, or those that are not.
type moves struct {
	*World
	faultsOnly bool

	from *State
	to   []State
	by   []Move

	beside   State // what is not collected
	besideBy Move
	isBeside bool
}

// reset begins anew at a state.
func (m *moves) reset(s *State) { m.from, m.to, m.by = s, m.to[:0], m.by[:0] }

// add adds a step and returns the state that it leads to, which is the present one until the caller changes it. The
// pointer is good until the next add.
func (m *moves) add(what What, node, task int) *State { return m.collect(what, node, task, false) }

// fault is add for what goes wrong.
func (m *moves) fault(what What, node, task int) *State { return m.collect(what, node, task, true) }

func (m *moves) collect(what What, node, task int, fault bool) *State {
	by := Move{What: what, Node: int8(node), Task: int8(task), Fault: fault, Fair: !fault && rank[what] > 0}
	if m.isBeside = fault != m.faultsOnly; m.isBeside {
		m.beside, m.besideBy = *m.from, by
		return &m.beside
	}
	m.to, m.by = append(m.to, *m.from), append(m.by, by)
	return &m.to[len(m.to)-1]
}

// last is the step that was added last.
func (m *moves) last() *Move {
	if m.isBeside {
		return &m.besideBy
	}
	return &m.by[len(m.by)-1]
}

// tx is a transaction of a node, with its fates. known changes the node's memory when the sender knows that it was
// applied, unknown when the reply was lost. A transaction is one step: nobody sees anything of it before its commit, and
// nobody changes what it has locked.
func (m *moves) tx(what What, i, d int, c commit, known, unknown func(n *node)) {
	if m.from.away == 1 {
		if m.from.nodes[i].hit == 1 {
			return
		}
		// MySQL went away while this was under way, and took the reply with it.
		for _, f := range [...]Fate{Applied, Never} {
			t := m.add(what, i, d)
			m.last().Fair = false
			m.lose(t, f, c, i, unknown)
			t.nodes[i].hit = 1
		}
		return
	}
	t := m.add(what, i, d)
	m.last().Bad |= m.apply(t, c, i)
	known(&t.nodes[i])
	if m.May.Commit {
		m.lose(m.fault(what, i, d), Applied, c, i, unknown)
		m.lose(m.fault(what, i, d), Never, c, i, unknown)
	}
	if m.May.Late && m.from.late.kind == nothing {
		m.lose(m.fault(what, i, d), OnItsWay, c, i, unknown)
	}
}

// lose is a commit whose reply is lost.
func (m *moves) lose(t *State, f Fate, c commit, i int, unknown func(n *node)) {
	m.last().Fate = f
	switch f {
	case Applied:
		m.last().Bad |= m.apply(t, c, i)
	case OnItsWay:
		t.late = c
	}
	unknown(&t.nodes[i])
	if f == Applied && c.kind == claim {
		t.nodes[i].sets[c.task].current = 1
	}
}
