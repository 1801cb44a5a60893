package protocol

// What people do, each once at most, and what the planner makes of it.

// people are the steps by which somebody changes something, on a node that works.
func (m *moves) people() {
	s := m.from
	if s.away == 1 {
		return
	}
	seen := [4]bool{}
	for i := range m.Nodes {
		n := &s.nodes[i]
		if n.proc != up || n.lease != fresh {
			continue
		}
		// Which node it is makes no difference but for its clock.
		clock := 2 * n.young
		if s.fast(i) {
			clock++
		}
		if s.answer == 0 && !seen[clock] {
			m.changes(i)
		}
		seen[clock] = true
		m.holds(i)
	}
	m.looksAgain()
	m.windowsPass()
}

// looksAgain (afterPause in schedule/pause.go): who waits for what may be on its way sees what has become of it. What is
// executing now says itself until when it may be spawned.
func (m *moves) looksAgain() {
	s := m.from
	if s.answer != askedAppPause {
		return
	}
	for d := range m.tasks() {
		if r := &s.tasks[d]; s.windows&bit(d) != 0 && r.state != prepare && (r.state != executing || r.past == 1) {
			m.add(looksAgain, -1, d).windows &^= bit(d)
		}
	}
}

// changes are what somebody may ask of node i.
func (m *moves) changes(i int) {
	s := m.from
	now := m.now(s, i)
	may := func(what uint8) bool { return m.World.allows(what) && s.asked&what == 0 }
	free := !m.jobHeld(s, 0) && s.jobs[0].deleted == 0 && !m.heldAny(s)
	j := &s.jobs[0]
	if may(askedPause) && free && j.paused == 0 {
		t := m.add(pauses, i, -1)
		m.last().Bad |= m.stop(t, now)
		t.jobs[0].paused = 1
		m.answers(t, i, askedPause)
	}
	if may(askedResume) && free && j.paused == 1 {
		t := m.add(resumes, i, -1)
		t.asked |= askedResume
		t.told &^= askedPause
		t.jobs[0].paused = 0
		m.last().Bad |= m.goOn(t, now, now)
	}
	if may(askedEdit) && free && j.held == 0 && s.app != 1 {
		t := m.add(edits, i, -1)
		m.edit(t, now)
		m.answers(t, i, askedEdit)
	}
	if may(askedDelete) && free {
		t := m.add(deletes, i, -1)
		m.last().Bad |= m.remove(t, now)
		m.answers(t, i, askedDelete)
	}
	if may(askedKill) {
		for d := range m.tasks() {
			if s.tasks[d].state == executing && !m.held(s, d) {
				t := m.add(wantsKilled, i, d)
				t.asked |= askedKill
				t.killed |= bit(d)
				t.tasks[d].kill = 1
			}
		}
	}
	if may(askedRun) && free {
		m.runs(i, now)
	}
	if may(askedAppPause) {
		t := m.add(pausesApp, i, -1)
		t.app = 1
		m.answers(t, i, askedAppPause)
	}
	if may(askedAppResume) && s.app == 1 {
		t := m.add(resumesApp, i, -1)
		t.asked |= askedAppResume
		t.told &^= askedAppPause
		t.app, t.appAt = 2, now
	}
}

// heldAny tells whether somebody holds the lock of any task's row.
func (w *World) heldAny(s *State) bool {
	for d := range w.tasks() {
		if w.held(s, d) {
			return true
		}
	}
	return false
}

// runs is a run that somebody asks for by hand.
func (m *moves) runs(i int, now uint8) {
	run := func(t *State) {
		t.asked |= askedRun
		t.manual = now + 1
		t.tasks[1] = row{state: idle, due: now}
		t.owed |= bit(1)
	}
	run(m.add(runsNow, i, 1))
	if !m.May.Unanswered {
		return
	}
	// A reply that is lost makes no difference where it is settled: the change was made, or is made once more.
	for _, f := range []Fate{Applied, OnItsWay} {
		if m.Rules.SettleAnswers && (f == Applied || m.Rules.SettleLocking) {
			continue
		}
		run(m.fault(runsNow, i, 1))
		m.last().Fate, m.last().Bad = f, RanTwice
	}
}

// answers has somebody wait for the answer, until the spawn windows have passed of what may still be spawned.
func (m *moves) answers(t *State, i int, what uint8) {
	t.asked |= what
	t.answer, t.windows = what, 0
	if what == askedAppPause && !m.Rules.AppWaits || what != askedAppPause && !m.Rules.PauseWaits {
		return
	}
	waits := m.Rules.SlowClocks && t.nodes[i].young == 0 // a young one does not know that some clock may be slow
	for d := range m.tasks() {
		r := &t.tasks[d]
		if m.job(d) != 0 {
			continue
		}
		// By the clock of a node that is ahead, the window of one that is behind has passed already.
		passed := r.past == 1 || r.early == 1 && t.fast(i) && !waits
		// Nor is a start on its way, by a clock that is behind, of what is due when the clock has been put on.
		near := m.near(t, i, r.due) && (m.now(t, i) >= r.due || t.nodes[i].off == 0 || t.step != aheadFar) || waits
		if r.state == executing && !passed || what == askedAppPause && r.state == prepare && near && !m.byHand(d) {
			t.windows |= bit(d)
		}
	}
}

// windowsPass are the ends of spawn windows.
func (m *moves) windowsPass() {
	s := m.from
	if !m.windows() {
		return
	}
	for d := range m.tasks() {
		r := &s.tasks[d]
		opened := r.state == executing && r.past == 0 || s.windows&bit(d) != 0
		for i := range m.Nodes {
			opened = opened || s.nodes[i].sets[d].starting() && s.nodes[i].sets[d].past == 0
		}
		if !opened || r.state != gone && s.clock < r.due {
			continue
		}
		t := m.add(windowPasses, -1, d)
		t.windows &^= bit(d)
		if t.tasks[d].state == executing {
			t.tasks[d].past = 1
		}
		for i := range m.Nodes {
			if e := &t.nodes[i].sets[d]; e.starting() {
				e.past = 1
			}
		}
	}
}

// starting tells whether a start has read its clock, and nothing is spawned yet.
func (e *entry) starting() bool { return e.phase >= readFree && e.phase <= committed }

// catchUp (schedule/catchup.go) plans what has come due and was not planned.
func (w *World) catchUp(t *State, now uint8) {
	j := &t.jobs[0]
	for w.Rules.CatchUp && j.paused+j.held+j.deleted == 0 && j.cursor < now && j.cursor < w.dues() {
		t.insert(j.cursor)
		j.cursor++
	}
}

// stop (schedule/pause.go) takes its due times from a job.
func (w *World) stop(t *State, now uint8) (v Violation) {
	w.catchUp(t, now)
	last := now
	if w.Rules.Withdraw {
		last = max(now, t.jobs[0].last)
	}
	for d := range int(w.dues()) {
		if r := &t.tasks[d]; r.state == prepare || r.state == executing {
			last = max(last, w.due(t, d))
		}
	}
	for d := range int(w.dues()) {
		switch r := &t.tasks[d]; {
		case r.state == gone || r.state == executing:
		case r.state == idle && w.due(t, d) > last:
			t.withdraw(d)
			t.owed &^= bit(d) // it was paused before, by the clock of who did it
		default:
			v |= w.end(t, d)
			w.mark(t, d)
		}
	}
	j := &t.jobs[0]
	j.pausedAt, j.cursor = now, w.dues()
	return v
}

// goOn gives a job its due times back, as of an instant. Of what passed before that, the latest is started if no later
// due time has passed, and one run counts the others.
func (w *World) goOn(t *State, at, now uint8) (v Violation) {
	j := &t.jobs[0]
	after := max(j.pausedAt, j.last)
	if !w.Rules.LastDue {
		after = j.pausedAt
	}
	at, now = min(at, w.dues()), min(now, w.dues())
	for due := after + 1; due <= now; due++ {
		d := due - 1
		if due > at || due == now {
			t.insert(d)
			continue
		}
		if t.history&bit(int(d)) != 0 {
			v |= EndedTwice
		}
		t.history |= bit(int(d))
		j.last = max(j.last, due)
	}
	j.cursor = max(now, after)
	return v
}

// edit (schedule/edit.go) replaces the definition by another with the same due times.
func (w *World) edit(t *State, now uint8) {
	w.catchUp(t, now)
	j := &t.jobs[0]
	bound := now
	if w.Rules.Withdraw {
		bound = max(now, j.last)
	}
	for d := range int(w.dues()) {
		if r := &t.tasks[d]; r.state != gone && r.state != executing && w.due(t, d) > bound {
			t.withdraw(d)
		}
	}
	for i := range w.Nodes {
		for d := range t.nodes[i].sets {
			if e := &t.nodes[i].sets[d]; e.phase >= startUnknown && w.job(d) == 0 {
				e.old = 1
			}
		}
	}
	if j.paused == 1 {
		j.pausedAt = now
		return
	}
	if j.cursor = now; w.Rules.LastDue {
		j.cursor = max(now, j.last)
	}
}

// remove (schedule/edit.go) deletes the job.
func (w *World) remove(t *State, now uint8) (v Violation) {
	w.catchUp(t, now)
	for d := range w.tasks() {
		switch r := &t.tasks[d]; {
		case r.state == gone || r.state == executing || w.job(d) != 0:
		case w.due(t, d) > now:
			t.withdraw(d)
			t.owed &^= bit(d)
		default:
			v |= w.end(t, d)
			w.mark(t, d)
		}
	}
	t.jobs[0].deleted, t.jobs[0].cursor = 1, w.dues()
	return v
}

// holds (schedule/hold.go): the planner brings the job into line with the pause of its app.
func (m *moves) holds(i int) {
	s := m.from
	j := &s.jobs[0]
	if m.jobHeld(s, 0) || m.heldAny(s) || j.deleted+j.paused > 0 {
		return
	}
	now := m.now(s, i)
	switch {
	case s.app == 1 && j.held == 0:
		t := m.add(holdsIt, i, -1)
		m.last().Bad |= m.stop(t, now)
		t.jobs[0].held = 1
	case s.app == 2 && j.held == 1:
		t := m.add(releases, i, -1)
		t.jobs[0].held = 0
		m.last().Bad |= m.goOn(t, s.appAt, now)
	}
}
