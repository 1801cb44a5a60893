package model

// apply does a transaction. The caller has checked its guard, unless the world has no guards.
func (w *World) apply(t *S, x Late) {
	r, j := &t.run[x.run], w.Job[x.run]
	if x.tx >= txStart && x.tx != txSteal && x.tx != txDirect && r.launch() != x.launch {
		t.flag(vStale)
		if r.state == none {
			return
		}
	}

	switch x.tx {
	case txClaim, txIdle, txMissed:
		w.insert(t, x)

	case txTake:
		r.state, r.owner, r.claim = prepared, x.owner, x.launch&7

	case txStart, txSteal:
		w.begin(t, x)

	case txDirect:
		w.insert(t, x)
		w.begin(t, x)

	case txWait:
		w.wait(t, x.run)

	case txRefuse, txFinish:
		w.end(t, x.run, true)

	case txRetry, txLost:
		again := x.tx == txRetry || w.Rerun
		if !again || r.kill && w.KillStays {
			w.end(t, x.run, true)
			break
		}
		attempt := r.attempt
		w.end(t, x.run, false)
		t.lastID[x.run]++
		*r = Run{state: idle, id: t.lastID[x.run], attempt: attempt + 1}
	}

	if x.tx >= txRefuse && w.EndWakes {
		w.wake(t, j, x.run)
	}
}

// fits evaluates the guard of a transaction.
func (w *World) fits(s *S, x Late) bool {
	r, j := &s.run[x.run], &s.job[w.Job[x.run]]
	switch x.tx {
	case txClaim, txIdle, txMissed, txDirect:
		return r.state == none && j.cursor == x.run && !j.paused && !j.deleted

	case txTake, txSteal:
		next := r.claim + 1
		if !w.Raise && r.state == prepared {
			next = r.claim
		}
		return (r.state == idle || r.state == prepared) && x.launch == r.id<<3|next&7

	case txStart:
		return r.state == prepared && r.launch() == x.launch && r.owner == x.owner

	case txRefuse, txWait:
		return (r.state == idle || r.state == prepared) && r.launch() == x.launch && r.owner == x.owner
	}
	return r.state == executing && r.launch() == x.launch && r.owner == x.owner
}

func (w *World) insert(t *S, x Late) {
	r, j := &t.run[x.run], &t.job[w.Job[x.run]]
	if t.spawned[x.run] != 0 || t.final[x.run] > 0 {
		t.flag(vAgain)
	}
	if !has(j.schedule, x.run) || j.paused || j.deleted {
		t.flag(vOld)
	}

	t.lastID[x.run] = x.launch >> 3
	*r = Run{state: prepared, owner: x.owner, id: x.launch >> 3, claim: 1}

	switch x.tx {
	case txIdle:
		*r = Run{state: idle, id: x.launch >> 3}
	case txMissed:
		w.end(t, x.run, true)
	}

	w.moveCursor(t, w.Job[x.run], x.run+1)
}

func (w *World) begin(t *S, x Late) {
	r, k := &t.run[x.run], w.Job[x.run]
	j := &t.job[k]

	if k == 0 && w.policy(t, k) == Queue {
		if w.earlierWaits(t, x.run) {
			t.flag(vOrder)
		}
	}

	r.state, r.owner, r.claim = executing, x.owner, x.launch&7
	r.version, r.closed = j.version, false
	if w.inGroup(t, k) {
		r.slot = true
		t.taken++
	}

	j.running, j.runID = x.run+1, r.id
	w.hasBegun(t, x.run)
}

// wait makes a run wait. A run that replaces others has the executing run killed, and ends the
// waiting ones.
func (w *World) wait(t *S, run uint8) {
	r, k := &t.run[run], w.Job[run]
	*r = Run{state: waiting, id: r.id, claim: r.claim, attempt: r.attempt, waited: true}
	if w.policy(t, k) != Replace || r.attempt > 0 {
		return
	}

	for e := range w.Runs {
		o := &t.run[e]
		switch {
		case e == run || w.Job[e] != k:
		case o.state == executing && !o.kill:
			if e > run {
				t.flag(vOrder)
			}
			w.kill(t, e)
		case o.state == waiting && e < run:
			w.end(t, e, true)
		}
	}
}

func (w *World) kill(t *S, run uint8) {
	t.run[run].kill, t.killed[run] = true, t.run[run].attempt+1
}

// end ends the row of a run.
func (w *World) end(t *S, run uint8, final bool) {
	r, j := &t.run[run], &t.job[w.Job[run]]
	if w.Retain > 0 {
		t.ended[run] |= 1 << r.attempt
	}
	if final {
		w.record(t, run)
	}
	if r.slot && (w.SlotOfRun || w.inGroup(t, w.Job[run])) {
		t.taken--
	}

	// Ids are never reused, so a pointer to an ended run is harmless.
	if j.running == run+1 && j.runID == r.id {
		j.running, j.runID = 0, 0
	}

	*r = Run{}
}

// record writes the final row of a due time.
func (w *World) record(t *S, run uint8) {
	if t.final[run]++; t.final[run] > 1 {
		t.final[run] = 2
		t.flag(vFinal)
	}
	w.hasBegun(t, run)
}

// hasBegun raises begun_to, the last due time of the schedule that began or ended.
func (w *World) hasBegun(t *S, run uint8) {
	if j := &t.job[w.Job[run]]; !has(w.Manual, run) {
		j.begunTo = max(j.begunTo, run+1)
	}
}

// wake makes waiting runs idle that may begin now: the first run of a job, and at most one per
// free slot. It skips the run that the same transaction makes wait, since it cannot see ends that
// commit later.
func (w *World) wake(t *S, ended, but uint8) {
	free := w.Slots - t.taken
	var done [maxJobs]bool
	for r := range w.Runs {
		k := w.Job[r]
		if t.run[r].state != waiting || r == but || done[k] || k != ended && !w.inGroup(t, k) || w.executes(t, r) {
			continue
		}

		if w.inGroup(t, k) {
			if free == 0 {
				continue
			}
			free--
		}

		done[k] = true
		t.run[r].state = idle
	}
}

func (w *World) inGroup(s *S, j uint8) bool {
	return w.Slots > 0 && !(w.Leaves && j == 0 && s.job[0].version > 0)
}

// executes reports whether another run of the same job executes. It only reads the row in
// job.running; that run may have ended or be gone.
func (w *World) executes(s *S, run uint8) bool {
	k := w.Job[run]
	j := &s.job[k]
	if !w.Running {
		return false
	}

	for e := range w.Runs {
		if e != run && w.Job[e] == k && s.run[e].state == executing &&
			(j.crowded || j.running == e+1 && j.runID == s.run[e].id) {
			return true
		}
	}

	return false
}

// earlierWaits reports whether an earlier due time of the job waits, or has waited and not begun.
func (w *World) earlierWaits(s *S, run uint8) bool {
	for e := range run {
		if r := &s.run[e]; w.Job[e] == w.Job[run] && r.waited && r.state != none && r.state != executing {
			return true
		}
	}
	return false
}
