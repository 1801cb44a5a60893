package model

// Overlap is the policy for a due time that finds another run of its job executing.
type Overlap uint8

// The overlap policies.
const (
	Skip Overlap = iota
	Queue
	Replace
	Allow
)

// World describes the nodes and jobs, the possible faults, and the actions of people.
type World struct {
	Name string
	Rules

	Nodes  uint8          // default 2
	Runs   uint8          // default 2
	Job    [maxRuns]uint8 // the job of each run
	Due    [maxRuns]uint8 // the instant of each run, ascending within a job; default: its number
	Manual uint8          // bits: runs requested by hand instead of by the schedule

	Overlap [2]Overlap // of the first version of job 0, and of the edited one
	Slots   uint8      // of the group that both jobs are in; 0: no group
	Leaves  bool       // the edited version of job 0 is in no group
	Pinned  bool       // job 1 may run on the last node only
	Retry   bool       // a first attempt may fail and be retried
	Rerun   bool       // on_lost: rerun
	Misfire bool       // claim may write a passed due time as missed
	ToIdle  bool       // claim may insert idle rows
	Direct  bool       // claim may start due runs
	Retain  uint8      // ended rows: 0 are gone at once, 1 stay, 2 are removed at any time
	Slow    bool       // claim reads in a separate step

	Pause, Edit, Delete, Kill bool // people

	Faults                             uint8 // limit of faults
	Kills, Stops, Lames, Lapses        bool
	Guards, Replies, LateCommits, Busy bool  // Busy: an owner that is healthy, but slower than a takeover
	ClockBack, Refused                 bool  // Refused: MySQL refuses a start once (1213), and it runs again
	Poison                             uint8 // bits: runs whose start MySQL always refuses
	StuckLock                          bool  // the rows of job 1 may be locked for ever
	Certified                          bool  // several writers: a node does not see the locks of another

	First bool // stop at the first violation
	Max   int  // states
}

// Kinds of steps.
const (
	fair uint8 = iota
	people
	fault
)

type emitter func(name string, node, run int, kind uint8, t *S)

func (w *World) withDefaults() *World {
	if w.Nodes == 0 {
		w.Nodes = 2
	}
	if w.Runs == 0 {
		w.Runs = 2
	}

	if w.Due == [maxRuns]uint8{} {
		for r := range w.Runs {
			w.Due[r] = r
		}
	}

	if w.Max == 0 {
		w.Max = 4_000_000
	}

	return w
}

// start returns the first state: all nodes have joined, and no run is claimed.
func (w *World) start() S {
	var s S
	for i := range w.Nodes {
		s.addSession(sessionOf(int(i), 0))
		s.node[i].up, s.node[i].guard = 1, w.Guard
	}

	for j := range uint8(maxJobs) {
		for r := range w.Runs {
			if w.Job[r] == j && !has(w.Manual, r) {
				s.job[j].schedule |= 1 << r
			}
		}
		w.moveCursor(&s, j, 0)
	}

	return s
}

// moveCursor puts the cursor of a job on its first due time in force at or after a run.
func (w *World) moveCursor(s *S, j, run uint8) {
	for run < w.Runs && !has(s.job[j].schedule, run) {
		run++
	}
	s.job[j].cursor = run
}

// passedTo returns the first run of a job that is not due yet.
func (w *World) passedTo(s *S, j uint8) uint8 {
	for r := range w.Runs {
		if w.Job[r] == j && w.Due[r] >= s.clock {
			return r
		}
	}
	return w.Runs
}

// isDue reports whether the due instant of a run has passed.
func (w *World) isDue(s *S, run uint8) bool { return s.clock > w.Due[run] }

// isNear reports whether a run may be claimed and started ahead of time.
func (w *World) isNear(s *S, run uint8) bool { return s.clock+1 >= w.Due[run] }

func (w *World) lastInstant() (last uint8) {
	for r := range w.Runs {
		last = max(last, w.Due[r]+1)
	}
	return last
}

func (w *World) policy(s *S, j uint8) Overlap {
	if j > 0 {
		return Skip
	}
	return w.Overlap[min(s.job[0].version, 1)]
}

// admits reports whether a job may run on a node.
func (w *World) admits(j uint8, node int) bool { return !w.Pinned || j == 0 || node == int(w.Nodes)-1 }

// locked reports whether another transaction holds the row of a job, or of its group: a COMMIT in
// flight, or a person for ever.
func (w *World) locked(s *S, j uint8) bool {
	if s.stuckLock && j == 1 {
		return true
	}
	x := s.late
	if !w.ExplicitTx || x.tx == 0 || x.tx == txTake {
		return false
	}
	k := w.Job[x.run]
	return x.tx <= txWait && k == j || x.tx >= txStart && w.inGroup(s, j) && w.inGroup(s, k)
}

// rowLocked reports whether another transaction holds the row of a run. A run that is about to wait
// for it also holds the row.
func (w *World) rowLocked(s *S, run uint8) bool {
	if s.stuckLock && w.Job[run] == 1 {
		return true
	}
	x := s.late
	return w.ExplicitTx && (x.tx != 0 && x.run == run ||
		x.tx == txWait && w.Awaited && w.Job[x.run] == w.Job[run] && s.run[run].state == executing ||
		x.tx >= txStart && s.run[run].slot && w.inGroup(s, w.Job[x.run]))
}

// steps emits all steps out of a state.
func (w *World) steps(s *S, emit emitter) {
	w.time(s, emit)
	w.people(s, emit)
	for i := range int(w.Nodes) {
		if n := &s.node[i]; n.up == 1 && n.lame != 1 {
			w.trip(s, i, emit)
		}
		w.process(s, i, emit)
	}
}

// time emits events without an actor: due instants, spawn windows, late COMMITs, retention.
func (w *World) time(s *S, emit emitter) {
	if s.clock < w.lastInstant() {
		t := *s
		for r := range w.Runs {
			if j := &s.job[w.Job[r]]; w.Due[r] == s.clock && has(j.schedule, r) && !j.paused && !j.deleted {
				t.must |= 1 << r
			}
		}
		t.clock++
		emit("a due instant passes", -1, -1, fair, &t)
	}

	if w.ClockBack && s.faults < w.Faults && s.clock > 0 {
		t := *s
		t.clock--
		t.faults++
		for r := range w.Runs {
			if w.Due[r] == t.clock && s.final[r] == 0 && !has(w.Manual, r) {
				t.must &^= 1 << r
			}
		}
		emit("MySQL's clock steps back", -1, -1, fault, &t)
	}

	if j := &s.job[0]; w.Window && (j.paused && !s.said.pause || j.edited && !s.said.edit || j.deleted && !s.said.del) {
		for r := range w.Runs {
			if s.run[r].state == executing && !s.run[r].closed && w.isDue(s, r) && w.Job[r] == 0 {
				t := *s
				t.run[r].closed = true
				emit("the spawn window closes", -1, int(r), fair, &t)
			}
		}
	}

	if s.late.tx != 0 {
		t := *s
		t.late = Late{}
		u := t
		emit("the late COMMIT is rolled back", -1, int(s.late.run), fair, &t)
		if w.ExplicitTx || !w.Guarded || w.fits(s, s.late) {
			w.apply(&u, s.late)
			emit("the late COMMIT applies", -1, int(s.late.run), fair, &u)
		}
	}

	for r := range w.Runs {
		if w.Retain == 2 && s.ended[r] != 0 {
			t := *s
			t.ended[r] = 0
			emit("retention removes ended rows", -1, int(r), people, &t)
		}
	}
}

// wrong returns the violations that a state shows or that steps have flagged.
func (w *World) wrong(s *S) uint32 {
	v := s.flagged()
	alive, held := uint8(0), uint8(0)
	for i := range s.node {
		for r, launch := range s.node[i].child {
			if launch == 0 {
				continue
			}
			if s.run[r].slot {
				alive++
			}
			if s.run[r].state != executing || s.run[r].launch() != launch {
				v |= vOrphan
			}
		}
	}

	for r := range w.Runs {
		if s.run[r].slot {
			held++
		}
		j := &s.job[w.Job[r]]
		if has(s.must, r) && s.run[r].state == none && s.final[r] == 0 && s.late.tx == 0 &&
			(j.cursor > r || j.deleted || !has(j.schedule, r)) {
			v |= vLost
		}
	}

	if w.Slots > 0 && alive > w.Slots {
		v |= vGroup
	}
	if w.Slots > 0 && held != s.taken {
		v |= vSlots
	}

	return v
}

// finished reports whether all runs have ended and no run remains to be claimed. Poisoned runs and
// locked jobs never end.
func (w *World) finished(s *S) bool {
	for r := range w.Runs {
		if s.run[r].state != none && !has(w.Poison, r) && !(s.stuckLock && w.Job[r] == 1) {
			return false
		}
	}

	for j := range uint8(maxJobs) {
		if k := &s.job[j]; !k.deleted && !k.paused && k.cursor < w.Runs && !(s.stuckLock && j == 1) {
			return false
		}
	}

	return true
}
