package protocol

// The side doors: compensation, the orphan scan, the sweeper, and commits that arrive late.

// knows tells whether a set of a session knows a row: its present one, or the one before it.
func (w *World) knows(n *node, d int, present bool) bool {
	if n.mine[d] == 1 {
		return true // in the executing set until it is written
	}
	e := &n.sets[d]
	if !present || e.current == 0 {
		return false
	}
	return e.phase >= prepared && (e.phase != startKnown || w.Rules.AddFirst)
}

// busy tells whether a change of a node is between its rows and its sets.
func (n *node) busy() bool {
	for d := range n.sets {
		switch n.sets[d].phase {
		case claimUnknown, claimKnown, readFree, readBusy, startUnknown, startKnown:
			return true
		}
	}
	return false
}

// compensates (compensate/compensate.go): a row of a session that is in no set of it becomes idle.
func (m *moves) compensates(i, d int) {
	s := m.from
	n, r := &s.nodes[i], &s.tasks[d]
	present, former := r.own == ours+uint8(i), r.own == older+uint8(i)
	if !m.Rules.Compensation || !present && !former || !n.runs() || s.away == 1 || m.held(s, d) ||
		m.Rules.Alone && n.busy() || m.knows(n, d, present) {
		return
	}
	c := commit{kind: free, own: r.own, task: uint8(d)}
	t := m.add(givesBack, i, d)
	m.last().Bad |= m.apply(t, c, i)
}

// frees (session/orphans.go): a row whose owner has no session becomes idle, or its run ends lost.
func (m *moves) frees(i, d int) {
	s := m.from
	n, r := &s.nodes[i], &s.tasks[d]
	if !m.Rules.Orphans || n.proc != up || n.lease != fresh || s.away == 1 {
		return
	}
	if !m.Rules.OwnersFirst && n.seen == 0 {
		t := m.add(looks, i, -1)
		t.nodes[i].seen = 1 << 7
		for j := range m.Nodes {
			if s.nodes[j].row == 1 {
				t.nodes[i].seen |= bit(j)
			}
		}
	}
	is := s.orphaned(r.own)
	if !m.Rules.OwnersFirst {
		is = n.seen != 0 && r.own >= ours && r.own < older && n.seen&bit(int(r.own-ours)) == 0 || is && r.own >= older
	}
	state := r.state
	if !m.Rules.OrphanGuard {
		if is && n.list[d] == 0 {
			m.add(listsOrphan, i, d).nodes[i].list[d] = state
		}
		if n.list[d] == 0 || r.state == gone {
			return
		}
		if !is || r.state != n.list[d] {
			m.add(freesIt, i, d)
			m.last().Bad |= Overwritten
			return
		}
	}
	if !is || m.held(s, d) {
		return
	}
	t := m.addFree(i, d, state)
	if t != nil {
		t.nodes[i].list[d], t.nodes[i].seen = 0, 0
	}
}

// addFree frees one orphan, with its job's row.
func (m *moves) addFree(i, d int, state uint8) *State {
	s := m.from
	r := &s.tasks[d]
	c := commit{kind: free, own: r.own, task: uint8(d)}
	if state == executing {
		if m.jobHeld(s, m.job(d)) {
			return nil
		}
		if c.kind = finish; m.again(r, lost) && !(r.kill != 0 && m.Rules.WishAtLoss) {
			c.kind = retry
		}
	}
	what := freesIt
	if c.kind != free {
		what = loses
	}
	t := m.add(what, i, d)
	m.last().Bad |= m.apply(t, c, i)
	return t
}

// sweeps (schedule/waiting.go): who waits for nothing is woken, and what has waited for too long ends missed.
func (m *moves) sweeps(i int) {
	s := m.from
	n, now := &s.nodes[i], m.now(s, i)
	if n.proc != up || n.lease != fresh || s.away == 1 {
		return
	}
	for d := range m.tasks() {
		r := &s.tasks[d]
		if r.state != waiting || m.jobHeld(s, m.job(d)) || m.held(s, d) {
			continue
		}
		if m.Rules.Sweeper {
			t := *s
			if r.kind == forJob && !m.executes(s, m.job(d)) && m.wakeJob(&t, m.job(d), now) || r.kind == forSlot && m.wakeGroup(&t, now) {
				*m.add(sweepsUp, i, d) = t
			}
			// Who has the slot and has not begun loses it, after a while.
			if o := 1 - d; r.kind == forSlot && s.tasks[o].slot == 1 && (s.tasks[o].state == idle || s.tasks[o].state == prepare) && s.tasks[o].due <= now && !m.held(s, o) {
				t = *s
				if t.tasks[o].slot = 0; m.wakeGroup(&t, now) {
					*m.add(passesOn, i, d) = t
				}
			}
		}
		if m.Expires && m.due(s, d) <= now {
			t := m.add(expires, i, d)
			m.last().Bad |= m.end(t, d)
			if m.Rules.MarkExpired {
				m.mark(t, d)
			}
			m.wakeJob(t, m.job(d), now)
		}
	}
}

func (w *World) executes(s *State, j int) bool {
	for d := range w.tasks() {
		if w.job(d) == j && s.tasks[d].state == executing {
			return true
		}
	}
	return false
}

// arrives is a COMMIT that its sender has given up, or the end of it.
func (m *moves) arrives() {
	s := m.from
	c := s.late
	if c.kind == nothing || s.away == 1 {
		return
	}
	i, d := int(c.own-ours)%maxNodes, int(c.task)
	t := m.add(rolledBack, -1, d)
	t.late = commit{}
	m.last().Fair = false
	if !m.Rules.Transaction && !m.fits(s, c) {
		return
	}
	land := func(what What) *State {
		t := m.add(arrivesIt, -1, d)
		m.last().What = what
		t.late = commit{}
		m.last().Bad |= m.apply(t, c, i)
		if e := &t.nodes[i].sets[d]; c.kind == claim && c.own == ours+uint8(i) && e.phase == claimUnknown {
			e.current = 1
		}
		return t
	}
	land(arrivesIt)
	if c.kind == begin && !m.Rules.Relisted && s.orphaned(c.own) {
		for j := range m.Nodes {
			// A node has listed the row as prepared and waits for its lock. It does not know the job, and writes that the run
			// is lost.
			if n := &s.nodes[j]; n.proc == up && n.lease == fresh {
				t := land(arrivesBlind)
				again := m.Rerun && t.tasks[d].attempt == 0
				if m.last().Bad |= m.end(t, d); again {
					m.last().Bad |= NotRerun
				}
				return
			}
		}
	}
}

// fits tells whether a statement that arrives late still finds its row as it expects it.
func (w *World) fits(s *State, c commit) bool {
	r := &s.tasks[c.task]
	switch c.kind {
	case claim:
		return r.state == idle
	case begin, refuse, waitJob, waitSlot:
		return r.state == prepare && r.own == c.own
	}
	return r.state == executing && r.own == c.own
}
