package protocol

// The trip of a task: plan, claim, start, spawn, finish. The names in brackets say where the code does it.

// works tells whether a node takes work: its process runs, its lease is fresh, it has a guard.
func (w *World) works(n *node) bool { return n.proc == up && n.lease == fresh && w.isGuarded(n) }

func (w *World) isGuarded(n *node) bool { return !w.Rules.Guard || !w.Rules.GuardLives || n.guard == 1 }

// runs tells whether a node's process does anything at all.
func (n *node) runs() bool { return n.proc == up || n.proc == draining }

// plan (schedule/plan.go): the next due time becomes an idle task, and the cursor moves on.
func (m *moves) plan(i int) {
	s := m.from
	n := &s.nodes[i]
	if !m.Unready && !m.allows(askedEdit|askedPause|askedAppPause) || n.proc != up || n.lease != fresh {
		return
	}
	j := &s.jobs[0]
	mayPlan := s.away == 0 && !m.jobHeld(s, 0) && j.paused+j.deleted+j.held == 0
	if m.Rules.PlanLock {
		if mayPlan && j.cursor < m.dues() && s.app != 1 {
			t := m.add(plans, i, int(j.cursor))
			t.insert(j.cursor)
			t.jobs[0].cursor++
		}
		return
	}
	if n.plan == 0 && mayPlan && j.cursor < m.dues() {
		m.add(readsCursor, i, int(j.cursor)).nodes[i].plan = j.cursor + 1
	}
	if n.plan != 0 && mayPlan {
		d := n.plan - 1
		t := m.add(plans, i, int(d))
		t.nodes[i].plan = 0
		if !m.Rules.PlanGuard || j.cursor == d {
			t.insert(d)
			t.jobs[0].cursor = d + 1
		}
	}
}

// claims (schedule/claim.go): an idle task becomes prepared. Any node may claim any task within the look-ahead, which is
// more than buckets allow, however the nodes count them.
func (m *moves) claims(i, d int) {
	s := m.from
	n, r, e := &s.nodes[i], &s.tasks[d], &s.nodes[i].sets[d]
	guarded := !m.Rules.Guard || !m.Rules.GuardClaims || n.guard == 1
	if e.phase != out && e.phase != listed || n.proc != up || n.lease != fresh || !guarded || m.Rules.Register && n.row == 0 || m.held(s, d) {
		return
	}
	near := m.now(s, i)+1 >= r.due
	if !m.Rules.ClaimGuard {
		if e.phase == out && r.state == idle && near && s.away == 0 {
			m.add(lists, i, d).nodes[i].sets[d].phase = listed
		}
		if e.phase == out || r.state == gone {
			return
		}
	} else if r.state != idle || !near {
		return
	}
	to := prepared
	if m.setsInSteps() {
		to = claimKnown
	}
	m.tx(claimsIt, i, d, commit{kind: claim, own: ours + uint8(i), task: uint8(d)},
		func(n *node) { n.sets[d] = entry{phase: to, current: 1} },
		func(n *node) { n.sets[d] = entry{phase: claimUnknown} })
	// In the worst case no node prefers the task's bucket, and it is taken because it is late.
	for k := range m.by {
		if m.by[k].What == claimsIt && int(m.by[k].Node) == i && int(m.by[k].Task) == d && (!m.Rules.AnyoneLate || m.now(s, i) < r.due) {
			m.by[k].Fair = false
		}
	}
}

// settles (lock/do.go): what became of an unknown commit.
func (m *moves) settles(i, d int) {
	s := m.from
	n, r, e := &s.nodes[i], &s.tasks[d], &s.nodes[i].sets[d]
	if !n.runs() {
		return
	}
	switch e.phase {
	case claimKnown:
		m.add(changesSets, i, d).nodes[i].sets[d].phase = prepared
	case startKnown:
		m.add(changesSets, i, d).nodes[i].sets[d].phase = committed
	case startUnknown:
		if !m.Rules.Settle {
			m.add(believes, i, d).nodes[i].sets[d].phase = committed
			return
		}
		fallthrough
	case claimUnknown:
		if s.away == 1 || m.Rules.SettleLocking && m.held(s, d) {
			return
		}
		to := entry{}
		switch {
		case e.current == 1 && r.state == prepare:
			to = entry{phase: prepared, current: 1}
		case e.current == 1 && r.state == executing && e.phase == startUnknown:
			to = *e
			to.phase = committed
		}
		m.add(settlesIt, i, d).nodes[i].sets[d] = to
	}
}

// judge (schedule/decide.go) says what a start does with a prepared task. Nothing: look again at the due instant.
func (w *World) judge(s *State, i, d int) commit {
	r, now := &s.tasks[d], w.now(s, i)
	c := commit{own: ours + uint8(i), task: uint8(d), kind: begin}
	switch {
	case w.unwanted(s, d):
		c.kind = refuse
	default:
		w.overlap(s, i, d, now, &c)
		if c.kind == begin && w.Group && r.slot == 0 && s.holders() > 0 {
			if c.from = w.unused(s, d); c.from == 0 {
				c.kind = waitSlot
			}
		}
	}
	if c.kind != begin && now < r.due && w.Rules.DueFirst || !w.near(s, i, r.due) {
		return commit{}
	}
	return c
}

// unwanted tells whether a task is not to be started, whatever else executes.
func (w *World) unwanted(s *State, d int) bool {
	j := &s.jobs[w.job(d)]
	return s.tasks[d].kill != 0 || w.Rules.SeesDeleted && j.deleted == 1 || w.Rules.SeesPause && !w.byHand(d) && (j.paused == 1 || s.app == 1)
}

// refuses says what is wrong with a decision, if that is a refusal.
func (w *World) refuses(s *State, i, d int, c commit) (v Violation) {
	if c.kind != refuse {
		return 0
	}
	if w.now(s, i) < s.tasks[d].due {
		v |= TooSoon
	}
	if w.Overlap != Skip || w.unwanted(s, d) {
		return v
	}
	if s.tasks[d].attempt > 0 {
		v |= NotRetried
	}
	if n := &s.nodes[i]; n.ended[1-d] != none && n.mine[1-d] == 1 {
		v |= Needless
	}
	return v
}

// unused is 1 + the task that has the slot and has not begun, if a task may have that which has lost it before.
func (w *World) unused(s *State, d int) uint8 {
	if o := 1 - d; s.tasks[o].slot == 1 && s.tasks[o].state == idle && s.tasks[d].due > w.due(s, d) {
		return uint8(o) + 1
	}
	return 0
}

// overlap applies the overlap policy.
func (w *World) overlap(s *State, i, d int, now uint8, c *commit) {
	o := 1 - d
	if w.tasks() < 2 || w.job(o) != w.job(d) || s.tasks[o].state == gone {
		return
	}
	x := &s.tasks[o]
	// The bound of the query (Siblings in sql/tasks.go) lies a little later than now, and than last_due.
	if w.due(s, o) > max(now, s.jobs[w.job(d)].last) && s.far == 1 && (x.state != executing || !w.Rules.AllSiblings) {
		return
	}
	busy := x.state == executing
	if n := &s.nodes[i]; busy && w.Rules.EndsFirst && w.Overlap == Skip && !w.Group && n.ended[o] != none && n.mine[o] == 1 {
		return // it has ended here, and is not written yet
	}
	woken := x.due > w.due(s, o)
	ahead := !busy && (w.ordered() || woken) && x.due <= now && w.due(s, o) < w.due(s, d)
	switch w.Overlap {
	case Skip:
		switch {
		case busy && s.tasks[d].attempt > 0 && w.Rules.RetryWaits:
			c.kind = waitJob
		case busy, ahead && (x.state == waiting || woken) && s.tasks[d].attempt == 0:
			c.kind = refuse
		}
	case Queue:
		if busy || ahead {
			c.kind = waitJob
		}
	case Replace:
		if w.Rules.LaterOnly && (busy || x.state == waiting) && w.due(s, o) > w.due(s, d) {
			c.kind = refuse // it was delayed, or is a retry: the later one has taken its place
			return
		}
		if busy {
			c.kind, c.kills = waitJob, uint8(o)+1
		}
		if ahead {
			c.ends = uint8(o) + 1
		}
	}
}

// starts (schedule/start.go): a prepared task becomes executing, ends without a start, or waits.
func (m *moves) starts(i, d int) {
	s := m.from
	n, r, e := &s.nodes[i], &s.tasks[d], &s.nodes[i].sets[d]
	if e.phase != prepared && e.phase != readFree && e.phase != readBusy || !n.runs() {
		return
	}
	if e.phase == prepared && (!m.works(n) || m.held(s, d) || m.jobHeld(s, m.job(d)) || s.away == 1 && n.hit == 1) {
		return
	}
	if e.current == 0 || r.state != prepare {
		if m.Rules.StartGuard || r.state == gone {
			if s.away == 0 {
				m.add(drops, i, d).nodes[i].sets[d] = entry{}
			}
			return
		}
		if s.away == 0 {
			m.add(startsIt, i, d)
			m.last().Bad |= Overwritten
		}
		return
	}
	var c commit
	var bad Violation
	switch e.phase {
	case readFree:
		c = commit{kind: begin, own: ours + uint8(i), task: uint8(d)}
		if m.Group && r.slot == 0 {
			c.from = m.unused(s, d)
		}
	case readBusy:
		c = commit{kind: refuse, own: ours + uint8(i), task: uint8(d)}
		if m.Overlap == Queue || m.Overlap == Replace {
			c.kind = waitJob
		}
		if m.Group {
			c.kind = waitSlot
		}
	default:
		if c = m.judge(s, i, d); c.kind == nothing {
			return
		}
		bad = m.refuses(s, i, d, c)
		if c.kills+c.ends+c.from > 0 && m.held(s, 1-d) {
			return
		}
		if m.inSteps() && s.away == 0 {
			phase := readBusy
			if c.kind == begin {
				phase = readFree
			} else if m.allows(askedAppPause) {
				break // what is refused depends on nothing that could change
			}
			m.add(readsSiblings, i, d).nodes[i].sets[d].phase = phase
			return
		}
	}
	first := len(m.by)
	m.commits(i, d, c)
	for k := first; k < len(m.by); k++ {
		m.by[k].Bad |= bad
	}
}

// startsBoth is the start of two tasks in one transaction, the earlier one decided first.
func (m *moves) startsBoth(i int) {
	s := m.from
	n := &s.nodes[i]
	if !m.works(n) || s.away == 1 || m.inSteps() || m.setsInSteps() || !m.Rules.SetsLast || m.jobHeld(s, 0) || m.jobHeld(s, m.job(1)) {
		return
	}
	for d := range n.sets {
		if e := &n.sets[d]; d >= m.tasks() || e.phase != prepared || e.current == 0 || s.tasks[d].state != prepare || m.held(s, d) {
			return
		}
	}
	t := *s
	var cs [maxTasks]commit
	var bad Violation
	first, now := m.judge(s, i, 0), m.now(s, i)
	if m.Overlap == Replace && !m.byHand(1) && s.tasks[0].due <= now && s.tasks[1].due <= now {
		first.kind, first.kills, first.ends = refuse, 0, 0 // the later one takes its place at once
	}
	for d := range cs {
		switch {
		case d == 0:
			cs[d] = first
		case m.Rules.InBatch:
			cs[d] = m.judge(&t, i, d)
		default:
			cs[d] = m.judge(s, i, d)
		}
		if cs[d].kind == nothing {
			return
		}
		bad |= m.refuses(&t, i, d, cs[d]) | m.apply(&t, cs[d], i)
	}
	become := func(t *State, unknown bool) {
		for d := range cs {
			switch e := &t.nodes[i].sets[d]; {
			case unknown:
				e.phase = startUnknown
			case cs[d].kind == begin:
				e.phase = committed
			default:
				*e = entry{}
			}
		}
	}
	collect := func(add func(What, int, int) *State, from *State, f Fate) {
		x := add(startsTogether, i, -1)
		*x = *from
		become(x, f != Known)
		m.last().Fate = f
		if f != Never {
			m.last().Bad |= bad
		}
	}
	collect(m.add, &t, Known)
	if m.May.Commit {
		collect(m.fault, &t, Applied)
		collect(m.fault, s, Never)
	}
}

// commits is the transaction of a start.
func (m *moves) commits(i, d int, c commit) {
	what, to := startsIt, committed
	switch c.kind {
	case refuse:
		what, to = refusesIt, out
	case waitJob, waitSlot:
		what, to = waits, out
	}
	if !m.Rules.SetsLast && c.kind == begin && m.from.nodes[i].sets[d].phase == prepared {
		m.add(changesSets, i, d).nodes[i].sets[d].phase = committed
		return
	}
	if to == committed && m.setsInSteps() {
		to = startKnown
	}
	past := m.from.nodes[i].sets[d].past
	if !m.Rules.ClockFirst {
		past = 0
	}
	m.tx(what, i, d, c,
		func(n *node) {
			if e := &n.sets[d]; to == out {
				*e = entry{}
			} else {
				*e = entry{phase: to, current: e.current, past: past}
			}
		},
		func(n *node) { n.sets[d].phase, n.sets[d].past = startUnknown, past })
}

// spawns (execute/executing.go): at the due instant the child is spawned, or the task is forgotten.
func (m *moves) spawns(i, d int) {
	s := m.from
	n, r, e := &s.nodes[i], &s.tasks[d], &s.nodes[i].sets[d]
	if e.phase == committed && e.current == 1 && r.state == prepare && !m.Rules.SetsLast && s.away == 0 {
		t := m.add(startsIt, i, d)
		m.last().Bad |= m.apply(t, commit{kind: begin, own: ours + uint8(i), task: uint8(d)}, i)
	}
	switch {
	case !n.runs():
	case e.phase == forking:
		t := m.add(forks, i, d)
		if m.last().Bad |= m.spawn(t, i, d); !m.May.Forks {
			m.last().Bad &^= StartedAfter
		}
		// Under a lease that has lapsed the guard kills it as well, before the session may expire.
		if n.lease >= lapsed && (!m.Rules.Guard || n.row == 0) {
			m.last().Bad |= Unleased
		}
	case e.phase == committed:
		is := e.current == 1 && r.state == executing
		if is && m.now(s, i) < r.due {
			if n.proc == draining {
				m.add(forgets, i, d).nodes[i].sets[d] = entry{}
			}
			return
		}
		may := (n.lease == fresh || !m.Rules.LeaseCheck) && (e.past == 0 || !m.Rules.SpawnWindow) && m.isGuarded(n)
		if may {
			t := m.add(spawnsIt, i, d)
			m.last().Bad |= m.spawn(t, i, d)
			if n.lease != fresh {
				m.last().Bad |= Unleased
			}
		}
		if is && r.kill != 0 && may { // it is over before it has begun
			t := m.add(kills, i, d)
			t.nodes[i].end(d, final)
		}
		if !may || n.proc == draining {
			m.add(forgets, i, d).nodes[i].sets[d] = entry{}
			m.last().Fair = !may
		} else if m.May.Slow {
			m.fault(tooLate, i, d).nodes[i].sets[d] = entry{}
		}
	}
}

// spawn brings a child to life.
func (w *World) spawn(t *State, i, d int) (v Violation) {
	n := &t.nodes[i]
	e, r := &n.sets[d], &t.tasks[d]
	e.phase = running
	if n.child[d] = 1; e.current == 0 {
		n.child[d] = 2
	}
	switch {
	case e.current == 0 || r.state != executing:
		v |= Uncommitted
	case t.killed&bit(d) != 0 && r.kill == 0:
		v |= NotKilled
	}
	if t.spawned&bit(d) != 0 || t.history&bit(d) != 0 {
		v |= StartedTwice
	}
	t.spawned |= bit(d)
	switch {
	case w.job(d) != 0:
	case t.told&(askedPause|askedAppPause) != 0 && !w.byHand(d), t.told&askedDelete != 0, t.told&askedEdit != 0 && e.old == 1:
		v |= StartedAfter
	}
	return v
}

// end takes an attempt out of the executing set, for its outcome to be written.
func (n *node) end(d int, outcome uint8) {
	n.ended[d], n.mine[d] = outcome, n.sets[d].current
	n.sets[d] = entry{}
	n.child[d] = 0
	n.shot &^= bit(d)
}

// ends (execute/executing.go): a child exits, by itself or because somebody wants it to.
func (m *moves) ends(i, d int) {
	s := m.from
	n, r, e := &s.nodes[i], &s.tasks[d], &s.nodes[i].sets[d]
	mine := e.phase == running && n.runs()
	if n.child[d] == 0 && !mine {
		return
	}
	if !mine {
		m.add(exits, i, d).nodes[i].child[d] = 0
		return
	}
	if n.child[d] == 0 && n.lease >= lapsed { // the guard killed it
		m.add(exits, i, d).nodes[i].end(d, lost)
		return
	}
	m.add(exits, i, d).nodes[i].end(d, final)
	if n.shot&bit(d) != 0 {
		m.last().Bad |= NotLost
	}
	if m.Retry && e.current == 1 && r.attempt == 0 {
		m.add(fails, i, d).nodes[i].end(d, failed)
	}
	if e.current == 1 && r.kill != 0 && s.away == 0 {
		m.add(kills, i, d).nodes[i].end(d, final)
	}
}

// finishes (result/recorder.go): an outcome is written.
func (m *moves) finishes(i, d int) {
	s := m.from
	n, r := &s.nodes[i], &s.tasks[d]
	if n.ended[d] == none || !n.runs() || m.held(s, d) {
		return
	}
	if m.awaited(d) && m.Rules.FinishLock && m.jobHeld(s, m.job(d)) {
		return
	}
	forgotten := func(n *node) { n.ended[d], n.mine[d] = none, 0 }
	if n.mine[d] == 0 || r.state != executing {
		if s.away == 1 {
			return
		}
		t := m.add(finds, i, d)
		forgotten(&t.nodes[i])
		if !m.Rules.FinishGuard {
			if r.state != gone {
				m.last().Bad |= Overwritten
			}
			m.last().Bad |= m.end(t, d)
		}
		return
	}
	if !m.Rules.FinishAlways && r.own != ours+uint8(i) {
		forgotten(&m.add(throws, i, d).nodes[i])
		m.last().Bad |= ThrownAway
		return
	}
	c := commit{kind: finish, own: r.own, task: uint8(d)}
	if m.again(r, n.ended[d]) && !(r.kill != 0 && m.Rules.WishAtEnd) {
		c.kind = retry
		c.later = m.Backoff && n.ended[d] == failed
	}
	m.tx(finishesIt, i, d, c, forgotten, func(*node) {})
}

// again tells whether a task is tried once more after such an outcome.
func (w *World) again(r *row, outcome uint8) bool {
	return r.attempt == 0 && (outcome == failed || outcome == lost && w.Rerun)
}
