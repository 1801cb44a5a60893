package protocol

// A state is one instant of the whole cluster: the rows in MySQL, the memory of each node, what lives, and what people
// have been told. It is small on purpose and holds no identities that go on and on (launches, sessions): two states from
// which the same things can happen are one.
//
//   - A launch is known by whether it is still that of its task's row. Whoever holds one (a set, an outcome, a child) has
//     a mark, current, which goes when the row gets another launch or none, and never comes back.
//   - A session is known by its node: the one it has now, and the one it had before. Rows of older ones that are buried
//     have an owner that is dead.
//   - Time is counted in due instants: clock is how many of them have passed by MySQL's clock. A spawn window is open until
//     a step closes it.

const (
	maxNodes = 3
	maxTasks = 2
)

// States of a row.
const (
	gone uint8 = iota
	idle
	prepare
	executing
	waiting
)

// Owners of a row: nobody, the session that node i has now (ours+i), the one that its process had before (older+i), one
// of a process of that node that is dead (left+i), or one that is buried.
const (
	nobody uint8 = 0
	ours   uint8 = 1
	older  uint8 = ours + maxNodes
	left   uint8 = older + maxNodes
	buried uint8 = left + maxNodes
)

// row is a task, with what tables waiting and slot say of it.
type row struct {
	state, own uint8
	due        uint8 // due_now: it has passed once the clock is that far
	attempt    uint8 // 0 is the first
	past       uint8 // 1: its spawn window has passed
	early      uint8 // 1: it was started by a clock from which MySQL's was put on since
	kill       uint8 // kill_requested: 1 by somebody, 2 by a later due time
	kind       uint8 // what it waits for
	slot       uint8 // 1: it holds a slot of the group
}

// Kinds of waiting.
const (
	forJob uint8 = 1 + iota
	forSlot
)

// Phases of a task in a node's memory.
const (
	out          uint8 = iota // in no set
	listed                    // seen idle, not claimed yet: only where claims do not look again
	claimUnknown              // its claim's COMMIT is unknown
	claimKnown                // its claim is known, the set is to follow: only where that is not one step
	prepared                  // in the prepare set
	readFree                  // its start has read that nothing is in the way, and not written yet: only where that is not one step
	readBusy                  // the same, and something is
	startUnknown              // its start's COMMIT is unknown; it is still in the prepare set
	startKnown                // its start is known, the sets are to follow: only where that is not one step
	committed                 // in the executing set, waits for its due instant
	forking                   // it was looked at for the last time, and the node was stopped before it forked
	running                   // its child was spawned
)

// entry is a task in the sets of a node's session.
type entry struct {
	phase   uint8
	current uint8 // 1: its launch is the row's
	past    uint8 // 1: by its node's clock the spawn window has passed
	old     uint8 // 1: it was started under a definition that was edited since
}

// Outcomes that a node holds and has not written.
const (
	none   uint8 = iota
	final        // the due time ends with it
	failed       // the due time is tried again
	lost         // the child was killed because the session was lost
)

// States of a node's process.
const (
	dead uint8 = iota
	up
	stopped  // SIGSTOP
	draining // SIGTERM
)

// Ages of a lease.
const (
	fresh   uint8 = iota
	stale         // nothing is started any more
	lapsed        // commands are killed
	without       // the node has no session
)

// node is a node: its process, its guard, what it has spawned, and its sessions' rows.
type node struct {
	proc   uint8
	lease  uint8
	row    uint8 // 1: its session's row is there
	prior  uint8 // 1: that of the session before it is there, and owns something
	left   uint8 // 1: so is that of one of a dead process
	guard  uint8 // 1: it has a guard; 2: it has none, and for long; 0: it has none at the moment
	sets   [maxTasks]entry
	ended  [maxTasks]uint8 // outcomes that wait to be written
	mine   [maxTasks]uint8 // 1: such an outcome is of the row's launch
	child  [maxTasks]uint8 // 1: a child lives, of the row's launch; 2: of another
	spool  [maxTasks]uint8 // outcomes in the spool, with spoolMine
	hidden uint8           // bits of children that its guard does not know of: only where those before it are not handed on
	shot   uint8           // bits of children that the guard has killed: only where their session may live on
	off    uint8           // 1: it has not read MySQL's clock since that was set
	young  uint8           // 1: it came up since then, and knows of no other: only where that makes a difference
	hit    uint8           // 1: MySQL went away in the middle of a transaction of its
	plan   uint8           // 1 + the cursor that its planner has read: only where that is not one step
	seen   uint8           // bit i: it saw node i's session; bit 7: it has looked: only where it looks there first
	list   [maxTasks]uint8 // state of a row of a dead session, as it listed it: only where it does not look again
}

// definition is a job's row.
type definition struct {
	cursor   uint8 // the next due time that is not planned
	last     uint8 // last_due
	paused   uint8
	pausedAt uint8
	held     uint8
	deleted  uint8
}

// commit is what a transaction writes, known by what it does; also one that is on its way.
type commit struct {
	kind  uint8
	own   uint8 // session that makes it
	task  uint8
	kills uint8 // 1 + the task that is to be killed because of it
	ends  uint8 // 1 + the task that it supersedes
	from  uint8 // 1 + the task that loses its slot to it
	later bool  // the next attempt is due at the next due instant, not at once
}

// Kinds of commits.
const (
	nothing uint8 = iota
	claim
	begin
	refuse
	waitJob
	waitSlot
	finish
	retry
	free
)

// What people have asked for, and got an answer to.
const (
	askedPause uint8 = 1 << iota
	askedResume
	askedEdit
	askedDelete
	askedKill
	askedRun
	askedAppPause
	askedAppResume
)

// State is one state of the cluster.
type State struct {
	tasks [maxTasks]row
	nodes [maxNodes]node
	jobs  [maxTasks]definition
	late  commit // on its way, its sender has given up; it holds its row locks

	clock   uint8 // due instants that have passed
	step    uint8 // how MySQL's clock was set, which some nodes have not read yet
	far     uint8 // 1: the next due instant is farther away than a start is committed before it, after a step back
	away    uint8 // 1: MySQL is away
	asked   uint8 // bits of what people did
	answer  uint8 // the bit of what is being answered, 0: nothing
	windows uint8 // bits of tasks whose spawn windows that answer waits for
	told    uint8 // bits of what was answered and holds
	app     uint8 // the app's pause: 0 none, 1 lasts, 2 has ended
	appAt   uint8 // when it ended
	manual  uint8 // when a run was asked for by hand: 1 + the clock; 0: it was not

	history uint8 // bits of due times that have a final run
	spawned uint8 // bits of due times of whose present attempt a child was spawned
	killed  uint8 // bits of due times of which somebody had an attempt killed
	owed    uint8 // bits of due times that passed while their job was active
}

// Ways in which MySQL's clock is set.
const (
	onTime      uint8 = iota
	aheadFar          // over a due instant
	aheadLittle       // over spawn windows
	backFar
	backLittle
)

func bit(d int) uint8 { return 1 << d }

// orphaned tells whether the session of an owner has no row.
func (s *State) orphaned(own uint8) bool {
	switch {
	case own == nobody:
		return false
	case own == buried:
		return true
	case own >= left:
		return s.nodes[own-left].left == 0
	case own >= older:
		return s.nodes[own-older].prior == 0
	}
	return s.nodes[own-ours].row == 0
}

// relaunch says that a task's row has another launch now, or none.
func (s *State) relaunch(d int) {
	for i := range s.nodes {
		n := &s.nodes[i]
		n.sets[d].current, n.mine[d] = 0, 0
		n.spool[d] &^= spoolMine
		if n.child[d] != 0 {
			n.child[d] = 2
		}
	}
}

// endLife turns the present session of a node into the one before it. Of two of these only one is kept in mind, if one
// of them is buried.
func (s *State) endLife(i int) {
	n := &s.nodes[i]
	from, to := ours+uint8(i), older+uint8(i)
	switch {
	case n.prior == 1 && n.row == 0:
		to = buried
	case n.prior == 0 && n.row == 1:
		s.move(to, buried)
		n.prior = 1
	}
	s.move(from, to)
	n.row, n.lease, n.off = 0, without, 0
	for j := range s.nodes {
		s.nodes[j].seen &^= bit(i)
	}
}

// dies is the end of a process, and of all it knew.
func (s *State) dies(i int) {
	n := &s.nodes[i]
	s.endLife(i)
	if n.prior == 1 {
		s.move(older+uint8(i), left+uint8(i))
		n.left = 1
	} else {
		s.move(older+uint8(i), buried)
	}
	n.proc, n.prior = dead, 0
	n.sets = [maxTasks]entry{}
	n.ended, n.mine, n.list = [maxTasks]uint8{}, [maxTasks]uint8{}, [maxTasks]uint8{}
	n.plan, n.seen, n.hit, n.shot = 0, 0, 0, 0
}

// move gives what one session owns to another name.
func (s *State) move(from, to uint8) {
	for d := range s.tasks {
		if s.tasks[d].own == from {
			s.tasks[d].own = to
		}
	}
	if s.late.own == from {
		s.late.own = to
	}
}

// tidy forgets what makes no difference any more.
func (s *State) tidy() {
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.prior == 1 && !s.owns(older+uint8(i)) {
			n.prior = 0
		}
		if n.left == 1 && !s.owns(left+uint8(i)) {
			n.left = 0
		}
	}
	if s.step != onTime && s.nodes[0].off+s.nodes[1].off+s.nodes[2].off == 0 {
		s.step = onTime
		for i := range s.nodes {
			s.nodes[i].young = 0
		}
	}
}

func (s *State) owns(own uint8) bool {
	for d := range s.tasks {
		if s.tasks[d].own == own {
			return true
		}
	}
	return s.late.kind != nothing && s.late.own == own
}

// exchange swaps two nodes, which are alike but for their names.
func (s *State) exchange(i, j int) {
	s.nodes[i], s.nodes[j] = s.nodes[j], s.nodes[i]
	rename := func(own *uint8) {
		if *own == nobody || *own >= buried {
			return
		}
		switch is := (*own - ours) % maxNodes; int(is) {
		case i:
			*own += uint8(j - i)
		case j:
			*own -= uint8(j - i)
		}
	}
	for d := range s.tasks {
		rename(&s.tasks[d].own)
	}
	rename(&s.late.own)
	for k := range s.nodes {
		seen := &s.nodes[k].seen
		if *seen>>i&1 != *seen>>j&1 {
			*seen ^= 1<<i | 1<<j
		}
	}
}
