package model

// actor is a node at its turn.
type actor struct {
	*World
	s    *S
	i    int // its number
	n    *Node
	me   uint8 // its session
	emit emitter
}

func (w *World) trip(s *S, i int, emit emitter) {
	a := &actor{World: w, s: s, i: i, n: &s.node[i], me: sessionOf(i, s.node[i].life), emit: emit}
	if !a.blocked() {
		for j := range uint8(maxJobs) {
			a.claim(j)
		}
	}

	for r := range w.Runs {
		if !a.blocked() {
			a.take(r)
		}
		if a.n.lame == 2 {
			continue
		}
		a.hold(r)
		a.clean(r)
	}

	a.batchOfTwo()
	if a.n.lame == 0 && !w.ReaperOrder && !a.n.lapsed && !(a.n.looked && a.n.seen == s.sessions) {
		a.do("reaper reads the sessions", 0, func(t *S) { t.node[i].looked, t.node[i].seen = true, s.sessions })
	}
}

// blocked reports whether the node waits for a locked job. With SkipLocked it never does.
func (a *actor) blocked() bool {
	if a.SkipLocked || !a.s.stuckLock {
		return false
	}
	return a.s.job[1].cursor < a.Runs && a.isNear(a.s, a.s.job[1].cursor)
}

// do emits a step that is not a transaction.
func (a *actor) do(name string, run uint8, f func(*S)) {
	t := *a.s
	f(&t)
	a.emit(name, a.i, int(run), fair, &t)
}

// set returns a step of the node's memory.
func (a *actor) set(run, what, launch uint8) func(*S) {
	return func(t *S) { t.node[a.i].hold(run, what, launch) }
}

// tx emits a transaction, and its unknown outcomes: applied, not applied, still in flight.
func (a *actor) tx(name string, kind uint8, x Late, applied, lost func(*S)) {
	t := *a.s
	if kind == fault {
		t.faults++
	}
	unsent := t
	a.apply(&t, x)
	done := t
	applied(&t)
	a.emit(name, a.i, int(x.run), kind, &t)

	if !a.Replies || done.faults >= a.Faults {
		return
	}
	done.faults++
	lost(&done)
	a.emit(name+" [applied, reply lost]", a.i, int(x.run), fault, &done)

	unsent.faults++
	lost(&unsent)
	a.emit(name+" [COMMIT never arrived]", a.i, int(x.run), fault, &unsent)
	if a.LateCommits && a.s.late.tx == 0 {
		unsent.late = x
		a.emit(name+" [COMMIT on its way, node gives up]", a.i, int(x.run), fault, &unsent)
	}
}

func unchanged(*S) {}

// claim moves the cursor of a job and inserts the run. A claim with an unknown COMMIT is forgotten:
// if it was applied, the run is taken over once it is overdue.
func (a *actor) claim(k uint8) {
	s, n, j := a.s, a.n, &a.s.job[k]
	may := !j.paused && !j.deleted && j.cursor < a.Runs && a.isNear(s, j.cursor) && !n.lapsed && !(a.Slow && k > 0)
	if a.Slow && k == 0 {
		if n.read == 0 && may {
			a.do("claim reads the cursor", j.cursor,
				func(t *S) { t.node[a.i].read, t.node[a.i].version = j.cursor+1, j.version })
		}
		may = n.read > 0
	}

	if !may || a.locked(s, k) {
		return
	}

	run := j.cursor
	if a.Slow && k == 0 {
		run = n.read - 1
	}
	if a.rowLocked(s, run) {
		return
	}

	forget := func(t *S) { t.node[a.i].read, t.node[a.i].version = 0, 0 }
	stale := a.Slow && (a.Cursor && j.cursor != run || a.Version && j.version != n.version ||
		a.PausedLook && (j.paused || j.deleted))
	exists := s.run[run].state != none || has(s.ended[run], 0)
	switch {
	case stale:
		a.do("claim finds other values, forgets", run, forget)
		return
	case exists && j.cursor != run:
		a.do("claim: duplicate key, forgets", run, forget)
		return
	case exists, n.holds[run] != nothing:
		return // a duplicate key fails now and at each later try
	}

	launch := (s.lastID[run]+1)<<3 | 1
	minted := func(f func(*S)) func(*S) {
		return func(t *S) {
			forget(t)
			t.lastID[run] = launch >> 3
			f(t)
		}
	}

	x := Late{tx: txClaim, run: run, launch: launch, owner: a.me}
	if a.admits(k, a.i) {
		a.tx("claims", fair, x, minted(a.set(run, inHeap, launch)), minted(unchanged))
	}
	if a.Direct && a.admits(k, a.i) {
		a.claimAndStart(run, launch, minted)
	}
	if a.Misfire && a.isDue(s, run) {
		x.tx = txMissed
		a.tx("claims, missed by policy", fair, x, minted(unchanged), minted(unchanged))
	}

	if next := a.nextAsRead(run); a.Slow && next < a.Runs && a.isNear(s, next) &&
		s.run[next].state == none && n.holds[next] == nothing {
		a.do("claims two", run, func(t *S) {
			forget(t)
			for _, r := range []uint8{run, next} {
				launch := (t.lastID[r]+1)<<3 | 1
				a.apply(t, Late{txClaim, r, launch, a.me})
				a.set(r, inHeap, launch)(t)
			}
		})
	}

	if a.ToIdle || !a.admits(k, a.i) {
		x.tx, x.owner = txIdle, 0
		a.tx("claims, inserts idle", fair, x, minted(unchanged), minted(unchanged))
	}
}

// claimAndStart starts a due run in the transaction that claims it. If something prevents the start,
// the run can only be claimed.
func (a *actor) claimAndStart(run, launch uint8, minted func(func(*S)) func(*S)) {
	k := a.Job[run]
	if !a.isDue(a.s, run) || a.n.lame == 2 || a.inGroup(a.s, k) {
		return
	}
	claimed := *a.s
	a.apply(&claimed, Late{tx: txClaim, run: run, launch: launch, owner: a.me})
	if v, _ := a.judge(&claimed, run); v != begin {
		return
	}

	x := Late{tx: txDirect, run: run, launch: launch, owner: a.me}
	a.tx("claims and starts", fair, x, minted(a.set(run, inSet, launch)), minted(a.set(run, unknown, launch)))
}

// nextAsRead returns the due time after a run, by the version that claim has read.
func (a *actor) nextAsRead(run uint8) uint8 {
	schedule := a.s.job[0].schedule
	if a.n.version == 0 {
		schedule = 1<<a.Runs - 1
	}
	for run++; run < a.Runs && !has(schedule, run); run++ {
	}
	return run
}

// take takes a run that has no owner, or whose owner is late. Idle runs go ahead of time into the
// heap; overdue runs start in the same transaction.
func (a *actor) take(run uint8) {
	s, n, r := a.s, a.n, &a.s.run[run]
	free := n.holds[run] == nothing && !n.lapsed && !a.rowLocked(s, run) && a.admits(a.Job[run], a.i)
	if !free || r.state != idle && r.state != prepared {
		return
	}

	next := r.id<<3 | (r.claim+1)&7
	if r.state == prepared && !a.Raise {
		next = r.launch()
	}
	if r.state == idle && !a.isDue(s, run) ||
		r.state == prepared && a.isDue(s, run) && a.Takeover && !a.OneStep && (r.owner != a.me || a.TakeOwn) {
		a.tx("takes the run", fair, Late{txTake, run, next, a.me}, a.set(run, inHeap, next), unchanged)
		return
	}
	if !a.isDue(s, run) || a.locked(s, a.Job[run]) || n.lame == 2 {
		return
	}
	if r.state == prepared && (!a.Takeover || r.owner == a.me && !a.TakeOwn) {
		return
	}

	kind, name := fair, "takes the run and starts it"
	if a.ownerWorks(run) {
		if kind, name = fault, "takes the run and starts it, its owner is late"; !a.Busy || s.faults >= a.Faults {
			return
		}
	}
	a.decide(run, Late{tx: txSteal, run: run, launch: next, owner: a.me}, kind, name)
}

// ownerWorks reports whether the owner of a prepared run is healthy and has it in its heap.
func (a *actor) ownerWorks(run uint8) bool {
	r := &a.s.run[run]
	if r.state != prepared {
		return false
	}
	o := &a.s.node[nodeOf(r.owner)]
	return a.s.hasSession(r.owner) && o.life == lifeOf(r.owner) && o.works() && !o.lapsed && o.holds[run] != nothing &&
		o.launch[run] == r.launch()
}

// hold continues with a run that the node remembers.
func (a *actor) hold(run uint8) {
	s, n, r := a.s, a.n, &a.s.run[run]
	launch := n.launch[run]
	own := a.owner(run)
	switch n.holds[run] {
	case memStart:
		a.do("changes its set", run, a.set(run, inSet, launch))

	case unknown:
		if !a.LockRead || !a.rowLocked(s, run) {
			what := nothing
			if r.owner == a.me && r.launch() == launch && r.state == executing {
				what = inSet
			}
			a.do("settles the unknown start", run, a.set(run, what, launch))
		}
		if !a.KnownOnly {
			a.do("takes the unknown start for done", run, a.set(run, inSet, launch))
		}

	case inHeap, toStart, toWait:
		if a.isNear(s, run) && !a.blocked() {
			a.start(run, own)
		}

	case inSet, passed:
		a.spawn(run)

	case hasResult:
		a.finish(run, own)
	}
}

// owner returns the session that the node writes with. A node that does not clear its sets
// continues with the session of an earlier life.
func (a *actor) owner(run uint8) uint8 {
	if r := &a.s.run[run]; !a.Clear && r.owner > 0 && nodeOf(r.owner) == a.i {
		return r.owner
	}
	return a.me
}

// start begins, refuses or delays a run of the heap.
func (a *actor) start(run, own uint8) {
	s, n := a.s, a.n
	x := Late{tx: txStart, run: run, launch: n.launch[run], owner: own}
	if a.locked(s, a.Job[run]) || a.rowLocked(s, run) {
		return
	}
	if !a.fits(s, x) && (a.Guarded || s.run[run].state == none || s.run[run].id != x.launch>>3) {
		a.do("start changes no row, drops the run", run, a.set(run, nothing, 0))
		return
	}

	if n.holds[run] == toWait {
		x.tx = txWait
		a.tx("waits, as it decided", fair, x, a.set(run, nothing, 0), a.set(run, nothing, 0))
		return
	}

	if n.holds[run] == toStart {
		a.begin(run, x, fair, "starts, as it decided")
		return
	}

	a.decide(run, x, fair, "starts")
}

// decide judges a run and writes the verdict.
func (a *actor) decide(run uint8, x Late, kind uint8, name string) {
	s := a.s
	if has(a.Poison, run) || a.Poison != 0 && !a.Halve && a.holdsPoison() {
		return // MySQL refuses the batch, now and at each later try
	}

	v, other := a.judge(s, run)
	if other > 0 && (a.rowLocked(s, other-1) || a.Flush && a.knowsEnd(other-1)) {
		return // the finish comes first
	}
	split := !a.JobLock || a.Certified && !a.JobWrite
	unheld := a.set(run, nothing, 0)
	switch v {
	case begin:
		if x.tx == txStart && split {
			a.do("decides to start", run, a.set(run, toStart, x.launch))
			return
		}
		if x.tx == txStart && a.Refused && !a.Anew && s.faults < a.Faults {
			a.do("decides to start, is refused (1213), runs again", run,
				func(t *S) { t.faults++; a.set(run, toStart, x.launch)(t) })
		}
		a.begin(run, x, kind, name)

	case refuse:
		a.flagged(run, other, func(flag func(*S)) {
			y := a.verdict(x, txRefuse)
			a.tx("refuses the run", kind, y, func(t *S) { unheld(t); flag(t) }, unheld)
		})

	case wait:
		if x.tx == txStart && !a.Awaited {
			a.do("decides to wait", run, a.set(run, toWait, x.launch))
			return
		}
		a.tx("lets the run wait", kind, a.verdict(x, txWait), unheld, unheld)
	}
}

// verdict returns the transaction for a verdict other than a start. It names owner and launch as
// they were read.
func (a *actor) verdict(x Late, tx uint8) Late {
	if x.tx == txSteal {
		r := &a.s.run[x.run]
		return Late{tx: tx, run: x.run, launch: r.launch(), owner: r.owner}
	}
	x.tx = tx
	return x
}

// flagged makes a refusal, and flags it if it is wrong.
func (a *actor) flagged(run, other uint8, do func(flag func(*S))) {
	var v uint32
	if !a.isDue(a.s, run) && !a.s.job[a.Job[run]].deleted {
		v |= vEarly
	}
	if other > 0 && a.knowsEnd(other-1) {
		v |= vFlush
	}
	if other > 0 && a.s.run[run].attempt > 0 {
		v |= vRetry
	}

	do(func(t *S) { t.flag(v) })
}

func (a *actor) begin(run uint8, x Late, kind uint8, name string) {
	what := inSet
	if !a.Mutex {
		what = memStart
	}
	a.tx(name, kind, x, a.set(run, what, x.launch), a.set(run, unknown, x.launch))
}

// knowsEnd reports whether this node still has to write the outcome of a run.
func (a *actor) knowsEnd(run uint8) bool {
	return a.n.holds[run] == hasResult && a.n.launch[run] == a.s.run[run].launch()
}

func (a *actor) holdsPoison() bool {
	for r := range a.Runs {
		if has(a.Poison, r) && a.n.holds[r] == inHeap {
			return true
		}
	}
	return false
}

// spawn checks lease and guard, and starts the child.
func (a *actor) spawn(run uint8) {
	s, n, r := a.s, a.n, &a.s.run[run]
	launch := n.launch[run]
	if !a.isDue(s, run) {
		return
	}
	if a.Window && r.closed && r.launch() == launch {
		a.do("the spawn window was missed", run, a.set(run, hasResult, launch))
		return
	}

	if a.Lease && n.lapsed && n.holds[run] == inSet || a.Guard && !n.guard {
		return // a new session settles it
	}
	if a.Lease && !a.Gate && n.holds[run] == inSet {
		a.do("looks at the lease", run, a.set(run, passed, launch))
		return
	}

	a.do("spawns", run, func(t *S) { a.flagSpawn(t, run, launch) })
}

func (a *actor) flagSpawn(t *S, run, launch uint8) {
	n, r, k := &t.node[a.i], &t.run[run], a.Job[run]
	if n.lapsed {
		t.flag(vNoLease)
	}
	if r.state != executing || r.launch() != launch {
		t.flag(vNoCommit)
	}
	if k == 0 && (t.job[0].paused && t.said.pause || t.said.edit && r.version == 0 || t.said.del) {
		t.flag(vAnswered)
	}

	allow := k == 0 && a.Overlap[min(r.version, 1)] == Allow
	for i := range t.node {
		for e, c := range t.node[i].child {
			if c != 0 && a.Job[e] == k && !allow {
				t.flag(vOverlap)
			}
		}
	}

	if r.state != none && has(t.spawned[run], r.attempt) {
		t.flag(vTwice)
	}
	if k := t.killed[run]; k > 0 && r.attempt >= k {
		t.flag(vKilled)
	}

	t.spawned[run] |= 1 << r.attempt
	n.hold(run, hasChild, launch)
	n.child[run] = launch
}

// finish writes the outcome of a run.
func (a *actor) finish(run, own uint8) {
	s, n, r := a.s, a.n, &a.s.run[run]
	if a.rowLocked(s, run) {
		return
	}
	x := Late{tx: txFinish, run: run, launch: n.launch[run], owner: own}

	gone := a.set(run, nothing, 0)
	if !a.fits(s, x) && (a.Guarded || r.state == none) {
		a.do("finish changes no row", run, gone)
		return
	}

	a.tx("finishes", fair, x, gone, unchanged)
	if a.Retry && r.attempt == 0 {
		x.tx = txRetry
		a.tx("finishes, inserts the retry", fair, x, gone, unchanged)
	}
}

// clean ends executing runs that are in no set, and runs of dead sessions.
func (a *actor) clean(run uint8) {
	s, n, r := a.s, a.n, &a.s.run[run]
	if r.state != executing || a.rowLocked(s, run) {
		return
	}
	x := Late{tx: txLost, run: run, launch: r.launch(), owner: r.owner}

	mine := n.launch[run] == r.launch() && (n.holds[run] >= inSet || n.holds[run] == unknown && a.SkipUnknown)
	if a.Compensate && r.owner == a.me && !mine {
		a.tx("compensates: own executing run in no set", fair, x, unchanged, unchanged)
	}

	dead := !s.hasSession(r.owner)
	if !a.ReaperOrder {
		dead = n.looked && !has(n.seen[(r.owner-1)/8], (r.owner-1)%8)
	}
	if a.Reaper && dead && !n.lapsed && (a.ReaperSkips || !a.deadAndLocked()) {
		a.tx("reaper: ends the run of a dead session", fair, x, unchanged, unchanged)
	}
}

// deadAndLocked reports whether a dead session owns a row that is locked.
func (a *actor) deadAndLocked() bool {
	for r := range a.Runs {
		if o := &a.s.run[r]; o.state == executing && !a.s.hasSession(o.owner) && a.rowLocked(a.s, r) {
			return true
		}
	}
	return false
}

// batchOfTwo starts two runs of a job in a transaction that does not compare them.
func (a *actor) batchOfTwo() {
	s, n := a.s, a.n
	j := &s.job[0]
	if a.Batch || n.lame != 0 || n.holds[0] != inHeap || n.holds[1] != inHeap || a.Job[1] != 0 || a.locked(s, 0) ||
		j.paused || j.deleted {
		return
	}

	x, y := Late{txStart, 0, n.launch[0], a.me}, Late{txStart, 1, n.launch[1], a.me}
	if a.executes(s, 0) || a.executes(s, 1) || !a.fits(s, x) || !a.fits(s, y) || !a.isNear(s, 1) {
		return
	}

	a.do("starts a batch of two", 0, func(t *S) {
		a.apply(t, x)
		a.apply(t, y)
		a.set(0, inSet, x.launch)(t)
		a.set(1, inSet, y.launch)(t)
	})
}
