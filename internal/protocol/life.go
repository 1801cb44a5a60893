package protocol

// Lives of nodes: leases, sessions, guards, processes.

// lives are the steps of one node that concern no task.
func (m *moves) lives(i int) {
	m.lease(i)
	m.session(i)
	m.guards(i)
	m.process(i)
}

// lease (session/heartbeat.go, watchdog.go).
func (m *moves) lease(i int) {
	s := m.from
	n := &s.nodes[i]
	reaches := n.runs() && n.row == 1 && s.away == 0
	switch n.lease {
	case fresh:
		if n.proc == stopped || s.away == 1 && n.proc != dead {
			m.add(ages, i, -1).nodes[i].lease = stale
		}
	case stale:
		if reaches {
			m.add(beats, i, -1).nodes[i].lease = fresh
		}
		if n.proc != dead {
			m.add(lapses, i, -1).nodes[i].lease = lapsed
		}
	case lapsed:
		// A beat may come before the watchdog looks. A guard does not take the lease for good again.
		if reaches && !(m.Rules.Guard && m.Rules.LapseStays) {
			m.add(beats, i, -1).nodes[i].lease = fresh
		}
	}
	if n.off == 1 && reaches {
		m.readsClock(i)
	}
}

// readsClock has a node learn that MySQL's clock was set.
func (m *moves) readsClock(i int) {
	s := m.from
	t := m.add(readsClock, i, -1)
	n := &t.nodes[i]
	n.off = 0
	for d := range n.sets {
		e, ahead := &n.sets[d], s.step == aheadFar || s.step == aheadLittle
		switch {
		case e.phase != committed:
			if ahead && e.starting() {
				e.past = 1 // its window is counted from what the clock was
			}
		case s.step == backFar && t.tasks[d].due > t.clock && e.current == 1:
			*e = entry{} // its due instant is far off: it does not wait for that
		case s.step == backLittle && !m.Rules.SteadyWindow:
			e.past = 0
		case ahead && t.tasks[d].early == 1:
			e.past = 1
		}
	}
}

// session is how sessions end, are buried, and begin (node/life.go, session/reaper.go, session.go).
func (m *moves) session(i int) {
	s := m.from
	n := &s.nodes[i]
	if n.runs() && n.lease != without && (n.lease == lapsed || n.row == 0 && m.Rules.Register) {
		m.sessionEnds(i)
	}
	if n.proc == up && n.lease == without && s.away == 0 {
		t := m.add(joins, i, -1)
		o := &t.nodes[i]
		o.lease = fresh
		if m.Rules.Register {
			o.row = 1
		}
	}
	if !m.Rules.Register && n.runs() && n.lease != without && n.row == 0 && s.away == 0 {
		m.add(joined, i, -1).nodes[i].row = 1
	}
	if s.away == 1 {
		return
	}
	if n.prior == 1 && m.peer(-1) {
		m.add(buries, i, -1).nodes[i].prior = 0
	}
	guarded := m.Rules.Guard && n.guard == 1 // there was enough time for its guard, if it has one
	if n.left == 1 && (!n.orphans() || !guarded || !m.Rules.GuardWaits) && (m.peer(-1) || guarded) {
		m.add(buries, i, -1).nodes[i].left = 0
	}
	silent := n.lease == lapsed && (n.proc == stopped && !(guarded && m.living(n)) || n.proc == up && !m.Rules.Watchdog)
	if n.row == 1 && m.peer(i) && (silent || !m.Rules.OwnClock && n.lease != without && (s.step == aheadFar || s.step == aheadLittle)) {
		m.add(buries, i, -1).nodes[i].row = 0
	}
}

// guarded tells whether there is a node, other than i, that has a guard.
func (m *moves) guarded(i int) bool {
	for j := range m.Nodes {
		if j != i && m.from.nodes[j].guard == 1 {
			return true
		}
	}
	return false
}

// living tells whether the guard has something to kill.
func (w *World) living(n *node) bool {
	for d := range n.child {
		if n.child[d] != 0 && n.hidden&bit(d) == 0 || n.sets[d].phase == forking && w.Rules.GuardEnds {
			return true
		}
	}
	return false
}

// peer tells whether there is a node, other than i, that would bury somebody.
func (m *moves) peer(i int) bool {
	for j := range m.Nodes {
		if n := &m.from.nodes[j]; j != i && n.proc == up && n.lease == fresh {
			return true
		}
	}
	return false
}

// sessionEnds: the commands are killed, the sets are cleared.
func (m *moves) sessionEnds(i int) {
	t := m.add(ends, i, -1)
	n := &t.nodes[i]
	for d := range n.sets {
		e := &n.sets[d]
		if e.phase == running || e.phase == forking {
			if m.Rules.KillAtEnd {
				n.end(d, lost)
			} else {
				*e = entry{}
			}
		}
		if m.Rules.KillAtEnd {
			n.child[d] = 0
		}
		switch e.phase {
		case prepared, committed:
			if m.Rules.ClearAtEnd {
				*e = entry{}
			}
		case claimUnknown, startUnknown:
			if m.Rules.DropUnknown {
				*e = entry{}
			}
		default:
			*e = entry{}
		}
	}
	n.plan, n.seen, n.list = 0, 0, [maxTasks]uint8{}
	t.endLife(i)
}

// guards (guard/): what a dead or stopped node has spawned is killed.
func (m *moves) guards(i int) {
	s := m.from
	n := &s.nodes[i]
	if !m.Rules.Guard {
		return
	}
	if n.guard != 1 && n.runs() {
		t := m.add(newGuard, i, -1)
		o := &t.nodes[i]
		o.guard = 1
		m.last().Fair = n.guard == 0 || !m.guarded(i) // a node may be without for good, not all of them
		for d := range o.child {
			if o.child[d] != 0 && !m.Rules.GuardHanded {
				o.hidden |= bit(d)
			}
		}
		if n.guard == 2 && m.Rules.GuardYields {
			for d := range n.sets {
				if n.sets[d].phase == prepared {
					m.add(givesUp, i, d).nodes[i].sets[d] = entry{}
				}
			}
		}
		return
	}
	// A node that runs kills its commands itself. What a dead process has left has a guard of its own.
	if n.guard != 1 || !n.orphans() && (n.lease != lapsed || n.proc != stopped || !m.living(n)) {
		return
	}
	t := m.add(guardKills, i, -1)
	o := &t.nodes[i]
	for d := range o.child {
		if (o.proc == stopped && o.lease == lapsed || o.sets[d].phase != running) && o.hidden&bit(d) == 0 {
			if !m.Rules.LapseStays && o.child[d] != 0 && o.sets[d].phase == running {
				o.shot |= bit(d)
			}
			o.child[d] = 0
		}
	}
	for d := range o.sets {
		if o.sets[d].phase == forking && o.lease == lapsed && m.Rules.GuardEnds {
			t.dies(i)
			break
		}
	}
}

// process is how a process goes on.
func (m *moves) process(i int) {
	s := m.from
	n := &s.nodes[i]
	switch n.proc {
	case dead:
		t := m.add(restarts, i, -1)
		o := &t.nodes[i]
		o.proc = up
		if s.step != onTime && !m.Rules.NewClocks {
			o.young = 1
		}
		if m.Rules.Guard {
			o.guard = 1
		}
		for d := range o.spool {
			if o.spool[d] != none {
				o.ended[d], o.mine[d] = o.spool[d]&^spoolMine, o.spool[d]/spoolMine
			}
		}
	case stopped:
		m.add(goesOn, i, -1).nodes[i].proc = up
	case draining:
		m.drains(i)
	case up:
		for d := range n.spool {
			if n.spool[d] != none && n.ended[d] == none {
				m.add(clearsSpool, i, d).nodes[i].spool[d] = none
			}
		}
	}
}

// spoolMine marks an outcome in a spool that is of the row's launch.
const spoolMine = 128

// drains (node/life.go): what is prepared is given back, commands may end, then the process does.
func (m *moves) drains(i int) {
	s := m.from
	n := &s.nodes[i]
	empty, waiting, owns := true, false, s.owns(ours+uint8(i))
	for d := range n.sets {
		switch p := n.sets[d].phase; {
		case p == prepared:
			m.add(givesUp, i, d).nodes[i].sets[d] = entry{}
			empty = false
		case p == running:
			m.add(graceEnds, i, d).nodes[i].end(d, final)
			empty = false
		case p != out:
			empty = false
		}
		waiting = waiting || n.ended[d] != none
	}
	if !empty {
		return
	}
	if !waiting && !owns && s.away == 0 && n.lease != without {
		t := m.add(leaves, i, -1)
		t.nodes[i].row = 0
		t.dies(i)
	}
	t := m.add(leavesAll, i, -1)
	m.last().Fair = n.lease == without
	o := &t.nodes[i]
	for d := range o.ended {
		switch {
		case o.ended[d] == none:
		case m.Rules.Spool:
			o.spool[d] = o.ended[d] | o.mine[d]*spoolMine
		case o.mine[d] == 1:
			m.last().Bad |= ThrownAway
		}
	}
	t.dies(i)
}
