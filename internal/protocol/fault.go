package protocol

// time are the steps of MySQL's clock.
func (m *moves) time() {
	s := m.from
	if s.clock < m.instants() {
		m.pass(m.add(dueInstant, -1, int(s.clock)))
	}
	if s.far == 1 {
		m.add(comesNear, -1, int(s.clock)).far = 0
	}
	if s.away == 1 {
		t := m.add(mysqlBack, -1, -1)
		t.away = 0
		for i := range t.nodes {
			t.nodes[i].hit = 0
		}
	}
	if s.step != onTime {
		return
	}
	step := func(what What, step uint8) *State {
		t := m.fault(what, -1, -1)
		t.step = step
		for i := range m.Nodes {
			if t.nodes[i].proc != dead && t.nodes[i].lease != without {
				t.nodes[i].off = 1
			}
		}
		return t
	}
	if m.May.Ahead {
		for _, by := range []uint8{aheadFar, aheadLittle} {
			if by == aheadFar && s.clock == m.instants() || by == aheadLittle && !m.windows() {
				continue
			}
			t := step(clockAhead, by)
			if by == aheadFar {
				m.pass(t)
			}
			for d := range t.tasks {
				if r := &t.tasks[d]; r.state == executing && r.past == 0 {
					r.early = 1
				}
			}
		}
	}
	if m.May.Back {
		if s.clock > 0 {
			t := step(clockBack, backFar)
			t.clock--
			t.far = 1
			if int(t.clock) < m.Dues {
				t.owed &^= bit(int(t.clock)) &^ t.history
			} // it will pass once more
		}
		if m.windows() {
			step(clockBack, backLittle)
		}
	}
}

// pass is a due instant.
func (w *World) pass(t *State) {
	d := int(t.clock)
	t.far = 0
	if t.clock++; d < w.Dues && t.active(w.job(d)) {
		t.owed |= bit(d)
	}
}

// faults are what may go wrong with a node.
func (m *moves) faults(i int) {
	s := m.from
	n := &s.nodes[i]
	// The time between a guard's end and the next guard is too short for anything else to go wrong.
	whole := !m.Rules.Guard || n.guard != 0 || m.May.BothDie
	if m.May.Kill && n.proc != dead && whole {
		m.fault(killed, i, -1).dies(i)
	}
	if m.May.Stop && n.proc == up && whole {
		stop := func(what What, d int) *State {
			t := m.fault(what, i, d)
			o := &t.nodes[i]
			o.proc = stopped
			o.rollBack()
			return t
		}
		stop(stops, -1)
		for d := range n.sets {
			if e, r := &n.sets[d], &s.tasks[d]; e.phase == committed && n.lease == fresh && e.past == 0 && m.isGuarded(n) &&
				(e.current == 0 || m.now(s, i) >= r.due) {
				stop(stopsForking, d).nodes[i].sets[d].phase = forking
			}
		}
	}
	if m.May.BothStop && n.proc == up && n.guard == 1 {
		t := m.fault(stopsBoth, i, -1)
		t.nodes[i].proc, t.nodes[i].guard = stopped, 0
		t.nodes[i].rollBack()
	}
	if m.May.Beats && n.runs() && n.lease == fresh && s.away == 0 {
		m.fault(noBeats, i, -1).nodes[i].lease = stale
	}
	if m.May.Guard && n.guard == 1 && (n.proc == up && !n.orphans() || m.May.BothDie) {
		m.fault(guardDies, i, -1).nodes[i].guard = 0
	}
	if m.May.NoGuard && n.guard == 1 && n.proc == up && n.idles() {
		m.fault(guardGone, i, -1).nodes[i].guard = 2
	}
	if m.May.Drain && n.proc == up {
		m.fault(terminated, i, -1).nodes[i].proc = draining
	}
}

// idles tells whether nothing that a node has spawned lives, nor is about to.
func (n *node) idles() bool {
	for d := range n.child {
		if n.child[d] != 0 || n.sets[d].phase >= forking {
			return false
		}
	}
	return true
}

// orphans tells whether a process that is dead has left children, with a guard of their own, which knows of them.
func (n *node) orphans() bool {
	for d := range n.child {
		if n.child[d] != 0 && n.sets[d].phase != running && n.hidden&bit(d) == 0 {
			return true
		}
	}
	return false
}

// rollBack: what a node had not committed is not, and the node finds that out.
func (n *node) rollBack() {
	for d := range n.sets {
		if e := &n.sets[d]; e.phase == readFree || e.phase == readBusy {
			e.phase, e.past = prepared, 0
		}
	}
}

// restart is a restart of MySQL.
func (m *moves) restart() {
	s := m.from
	if !m.May.MySQL || s.away == 1 {
		return
	}
	t := m.fault(mysqlAway, -1, -1)
	t.away, t.late = 1, commit{}
	for i := range t.nodes {
		t.nodes[i].rollBack()
	}
}

// next collects all steps out of a state.
func (m *moves) next(s *State) {
	m.reset(s)
	m.time()
	m.arrives()
	m.restart()
	for i := range m.Nodes {
		for d := range m.tasks() {
			m.settles(i, d)
			m.spawns(i, d)
			m.ends(i, d)
			m.finishes(i, d)
			m.compensates(i, d)
			m.frees(i, d)
			m.claims(i, d)
			m.starts(i, d)
		}
		m.startsBoth(i)
		m.plan(i)
		m.sweeps(i)
		m.lives(i)
		m.faults(i)
	}
	m.people()
}
