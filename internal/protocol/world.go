package protocol

// World is a small cluster, what its job is like, and what may happen to it.
type World struct {
	Name  string
	Rules Rules

	Nodes  int
	Dues   int // due times of the job; with Group the second one is of another job
	Idle   int // instants that pass behind those
	Faults int // that may happen at most

	Overlap Overlap
	Retry   bool // a second attempt after one that failed
	Backoff bool // and then it is due no earlier than the next due time
	Rerun   bool // on_lost: rerun, one more attempt; else fail
	Group   bool // two jobs with one due time each, in a group with one slot
	Manual  bool // the second task is a run that somebody asks for
	Expires bool // the start deadline of a due time may pass while it waits
	Unready bool // nothing is planned in the beginning

	People uint8 // bits of what people may do, each once
	May    Faults
	Most   int // states to look at, 0: all
}

// Overlap is a job's overlap policy.
type Overlap uint8

// The policies.
const (
	Skip Overlap = iota
	Queue
	Replace
	Allow
)

// Faults are the kinds of faults that may happen. Each that does counts as one.
type Faults struct {
	Commit     bool // the reply to a COMMIT is lost: it was applied, or never arrived,
	Late       bool // or arrives when its sender has given up
	Kill       bool // kill -9 of a node's process
	Stop       bool // SIGSTOP of it, also between the last look and the fork; SIGCONT comes at some time
	Beats      bool // beats do not get through: a partition, a crowded machine
	Slow       bool // a node is too slow to spawn something in its window
	Guard      bool // a guard dies
	MySQL      bool // MySQL restarts: what was open is rolled back, replies are lost, beats do not get through
	Ahead      bool // MySQL's clock is put on
	Back       bool // MySQL's clock is put back
	Drain      bool // SIGTERM of a node
	BothDie    bool // node and guard may be killed at the same time
	NoGuard    bool // the guard of a node that runs nothing dies, and no other comes for so long that the node may be killed meanwhile
	BothStop   bool // node and guard may be stopped together, while the commands go on
	Forks      bool // a node may be stopped so long between its last look and the fork that a spawn window passes
	Unanswered bool // the reply to a change that somebody asked for is lost
}

// allows tells whether people may do.
func (w *World) allows(what uint8) bool { return w.People&what != 0 }

// windows tells whether spawn windows matter: where somebody is answered when they have passed.
func (w *World) windows() bool {
	return w.allows(askedPause | askedEdit | askedDelete | askedAppPause)
}

// inSteps tells whether a start reads in one step and writes in another: where something is to come between.
func (w *World) inSteps() bool {
	return !w.Rules.StartLock || !w.Rules.FinishLock || !w.Rules.GroupLock || w.allows(askedAppPause)
}

// setsInSteps tells whether sets change in another step than rows.
func (w *World) setsInSteps() bool { return !w.Rules.Alone || !w.Rules.AddFirst }

// job is a task's job.
func (w *World) job(d int) int {
	if w.Group {
		return d
	}
	return 0
}

func (w *World) tasks() int {
	if w.Manual {
		return 2
	}
	return w.Dues
}

// dues is how many due times the first job has.
func (w *World) dues() uint8 {
	if w.Group {
		return 1
	}
	return uint8(w.Dues)
}

// instants is how many pass.
func (w *World) instants() uint8 { return uint8(w.Dues + w.Idle) }

func (w *World) byHand(d int) bool { return w.Manual && d == 1 }

// due is the planned instant of a task.
func (w *World) due(s *State, d int) uint8 {
	if w.byHand(d) {
		return s.manual - 1
	}
	return uint8(d) + 1
}

// awaited tells whether another task may wait for the end of one.
func (w *World) awaited(d int) bool {
	return w.Retry || w.Rerun || w.Overlap == Queue || w.Overlap == Replace || w.Group || w.byHand(d)
}

// ordered tells whether tasks that have not begun count for those behind them.
func (w *World) ordered() bool { return w.Overlap == Queue || w.Overlap == Replace || w.Group }

// begin is the state in which all is well and nothing has happened.
func (w *World) begin() State {
	var s State
	for i := range w.Nodes {
		n := &s.nodes[i]
		n.proc, n.row = up, 1
		if w.Rules.Guard {
			n.guard = 1
		}
	}
	for i := w.Nodes; i < maxNodes; i++ {
		s.nodes[i].lease = without
	}
	if !w.Unready {
		for d := range w.Dues {
			s.tasks[d] = row{state: idle, due: uint8(d) + 1}
		}
		for j := range s.jobs {
			s.jobs[j].cursor = uint8(w.Dues) // all is planned
		}
	}
	return s
}

// now is MySQL's clock as a node knows it.
func (w *World) now(s *State, i int) uint8 {
	if s.nodes[i].off == 1 {
		switch s.step {
		case aheadFar:
			return s.clock - 1
		case backFar:
			return min(s.clock+1, w.instants())
		}
	}
	return s.clock
}

// near tells whether an instant has passed by a node's clock, or is so near that a start may be committed.
func (w *World) near(s *State, i int, due uint8) bool {
	now := w.now(s, i)
	return now >= due || now+1 == due && (s.far == 0 || now > s.clock)
}

// fast tells whether a node's clock is before those of others.
func (s *State) fast(i int) bool {
	switch s.step {
	case aheadFar, aheadLittle:
		return s.nodes[i].off == 0
	case backFar, backLittle:
		return s.nodes[i].off == 1
	}
	return false
}

// slow tells whether a node's clock is behind those of others.
func (s *State) slow(i int) bool { return s.step != onTime && !s.fast(i) }

// active tells whether the due times of a job are to be started, or leave a record that says why not.
func (s *State) active(j int) bool {
	return s.jobs[j].paused == 0 && s.jobs[j].deleted == 0 && s.jobs[j].held == 0 && s.app != 1
}

// held tells whether somebody holds the lock of a task's row.
func (w *World) held(s *State, d int) bool {
	return w.Rules.Transaction && s.late.kind != nothing && (int(s.late.task) == d || int(s.late.ends) == d+1 || int(s.late.kills) == d+1 || int(s.late.from) == d+1)
}

// jobHeld tells whether somebody holds the lock of a job's row.
func (w *World) jobHeld(s *State, j int) bool {
	if w.Rules.Transaction && s.late.kind > claim && s.late.kind != free && (w.job(int(s.late.task)) == j || w.Group) {
		return s.late.kind < finish || w.awaited(int(s.late.task)) && w.Rules.FinishLock
	}
	if w.inSteps() && w.Rules.StartLock {
		for i := range w.Nodes {
			for d := range w.tasks() {
				if p := s.nodes[i].sets[d].phase; (p == readFree || p == readBusy) && (w.job(d) == j || w.Group && w.Rules.GroupLock) {
					return true
				}
			}
		}
	}
	return false
}
