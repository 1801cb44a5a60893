package protocol

// What the transactions write. They are atomic: each locks its rows, looks, writes and commits.

// apply makes a commit's writes. now is the clock by which it writes.
func (w *World) apply(s *State, c commit, i int) (v Violation) {
	d := int(c.task)
	r := &s.tasks[d]
	now := s.clock
	switch c.kind {
	case claim:
		if r.state != idle {
			v |= Overwritten
		}
		s.relaunch(d)
		r.state, r.own = prepare, c.own
	case begin:
		if r.state == gone {
			return v
		}
		r.state, r.own = executing, c.own
		r.past, r.early = 0, 0
		if s.slow(i) {
			r.early = 1
		}
		if w.Group {
			r.slot = 1
		}
		if o := int(c.from) - 1; o >= 0 {
			s.tasks[o].slot = 0
		}
		w.mark(s, d)
		v |= w.supersede(s, c)
		if w.Overlap == Replace && !w.byHand(d) {
			for o := range s.tasks {
				if o != d && s.tasks[o].state == waiting && w.due(s, o) > w.due(s, d) {
					v |= NotReplaced
				}
			}
		}
	case refuse:
		v |= w.end(s, d)
		w.mark(s, d)
		w.wakeBehind(s, d, now)
	case waitJob, waitSlot:
		held := r.slot
		*r = row{state: waiting, due: r.due, attempt: r.attempt, kind: forJob}
		if c.kind == waitSlot {
			r.kind = forSlot
		}
		s.relaunch(d)
		v |= w.supersede(s, c)
		if o := int(c.kills) - 1; o >= 0 && s.tasks[o].state == executing {
			if s.tasks[o].kill == 0 {
				s.tasks[o].kill = 2
			}
			if w.due(s, o) > w.due(s, d) {
				v |= NotReplaced
			}
		}
		if held == 1 {
			w.wakeGroup(s, now)
		}
	case finish:
		v |= w.end(s, d)
		if w.Rules.WakeAtEnd && w.awaited(d) {
			w.wakeBehind(s, d, now)
		}
	case retry:
		*r = row{state: idle, due: now, attempt: r.attempt + 1}
		if c.later {
			r.due = min(now+1, w.instants())
		}
		s.spawned &^= bit(d)
		s.relaunch(d)
		if w.Rules.WakeAtEnd && w.awaited(d) {
			w.wakeBehind(s, d, now)
		}
	case free:
		kill := r.kill
		*r = row{state: idle, due: r.due, attempt: r.attempt, slot: r.slot}
		if w.Rules.WishAtFree {
			r.kill = kill // it stays with the task, and the next start ends that
		}
		s.relaunch(d)
	}
	return v
}

// mark advances last_due, which nothing does for what was asked for by hand.
func (w *World) mark(s *State, d int) {
	if j := &s.jobs[w.job(d)]; !w.byHand(d) {
		j.last = max(j.last, w.due(s, d))
	}
}

// end removes a task and writes its final run.
func (w *World) end(s *State, d int) (v Violation) {
	if s.history&bit(d) != 0 {
		v |= EndedTwice
	}
	s.history |= bit(d)
	s.tasks[d] = row{}
	s.relaunch(d)
	return v
}

// withdraw removes a task that is no due time any more.
func (s *State) withdraw(d int) {
	s.tasks[d] = row{}
	s.relaunch(d)
}

// supersede ends the task whose place another one takes, unless it has begun meanwhile.
func (w *World) supersede(s *State, c commit) (v Violation) {
	if o := int(c.ends) - 1; o >= 0 && s.tasks[o].state != gone && s.tasks[o].state != executing {
		v |= w.end(s, o)
		w.mark(s, o)
	}
	return v
}

// wakeBehind wakes who comes next now that a task has ended or does not execute any more.
func (w *World) wakeBehind(s *State, d int, now uint8) {
	w.wakeJob(s, w.job(d), now)
	if w.Group {
		w.wakeGroup(s, now)
	}
}

// wakeJob wakes the task of a job that comes next among those that wait for runs of the job.
func (w *World) wakeJob(s *State, j int, now uint8) bool {
	busy, next := false, -1
	first, second := 0, 1
	if w.Manual && w.due(s, 1) < w.due(s, 0) && s.manual != 0 {
		first, second = 1, 0
	}
	for _, d := range [...]int{first, second} {
		r := &s.tasks[d]
		if d >= w.tasks() || w.job(d) != j || r.state == gone || w.due(s, d) > now {
			continue
		}
		switch {
		case r.state == executing:
			busy = true
		case r.state != waiting:
			busy = busy || next < 0 && r.due <= now
		case next < 0 && r.kind == forJob:
			next = d
		case next < 0:
			busy = true
		}
	}
	if busy || next < 0 {
		return false
	}
	s.wake(next, now)
	return true
}

func (s *State) wake(d int, now uint8) {
	r := &s.tasks[d]
	*r = row{state: idle, due: max(r.due, now), attempt: r.attempt, slot: r.slot}
}

// holders is how many tasks hold a slot of the group.
func (s *State) holders() int {
	n := 0
	for d := range s.tasks {
		if r := &s.tasks[d]; r.slot == 1 && r.state != gone && r.state != waiting {
			n++
		}
	}
	return n
}

// wakeGroup gives a free slot of the group to the task that comes next.
func (w *World) wakeGroup(s *State, now uint8) bool {
	if !w.Group || s.holders() > 0 {
		return false
	}
	for d := range s.tasks {
		if r := &s.tasks[d]; r.state == waiting && r.kind == forSlot {
			s.wake(d, now)
			r.slot = 1
			return true
		}
	}
	return false
}

// insert plans a due time, if it is not there.
func (s *State) insert(d uint8) {
	if r := &s.tasks[d]; r.state == gone {
		*r = row{state: idle, due: d + 1}
	}
}
