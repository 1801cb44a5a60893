package model

// Sizes of the arrays. A world uses the first elements.
const (
	maxNodes = 3
	maxRuns  = 3
	maxJobs  = 2
)

// States of a run's row. An ended row is not live: it is counted in the tallies of its due time.
const (
	none uint8 = iota
	idle
	waiting
	prepared
	executing
)

// States of a run in the memory of a node.
const (
	nothing   uint8 = iota
	inHeap          // prepared
	toStart         // decided to start, not yet written (only without the rules JobLock, JobWrite or Anew)
	toWait          // decided to wait, not yet written (only without Awaited)
	unknown         // start: COMMIT unknown
	memStart        // start committed, set not yet changed (only without Mutex)
	inSet           // executing set, no child yet
	passed          // lease checked, no child yet (only without Gate)
	hasChild        // child spawned
	hasResult       // outcome buffered until finish
)

// Transactions. A COMMIT in flight is applied later from (tx, run, launch, owner).
const (
	txClaim  uint8 = 1 + iota // insert prepared, move the cursor
	txIdle                    // insert idle, move the cursor
	txMissed                  // insert ended (missed), move the cursor
	txTake                    // idle (or, without OneStep, overdue prepared) -> prepared for this session
	txStart                   // prepared -> executing
	txSteal                   // idle or overdue prepared -> executing for this session: takeover and start
	txDirect                  // insert executing, move the cursor: claim and start
	txRefuse                  // ... -> ended (skipped, superseded)
	txWait                    // ... -> waiting
	txFinish                  // executing -> ended
	txRetry                   // executing -> ended, next attempt inserted idle
	txLost                    // executing -> ended (lost), by the reaper or compensation; on_lost: rerun is txRetry
)

// Run is the live row of a due time.
type Run struct {
	state, owner, id, claim, attempt uint8

	version uint8 // of the job at its start
	closed  bool  // its spawn window is over
	slot    bool  // it holds a slot of the group
	waited  bool  // it has waited
	kill    bool  // a kill was requested
}

// launch is the fencing token: the row's id and its claim count.
func (r *Run) launch() uint8 { return r.id<<3 | r.claim }

// Job is the row of a job.
type Job struct {
	cursor   uint8 // next_due: the job's first run at or after it has no row yet
	begunTo  uint8 // 1 + the last due time that began or ended
	version  uint8
	schedule uint8 // bits: the due times of the current version
	running  uint8 // 1 + the run in job.running
	runID    uint8 // ... and its id
	crowded  bool
	paused   bool
	deleted  bool
	edited   bool
}

// Said records the answers that people got about job 0, and the actions that they can no longer
// take.
type Said struct {
	pause, edit, del bool // the change was answered
	resumed, killed  bool // the only resume, the only kill, has happened
	asked            uint8
}

// Node is a node process and its memory.
type Node struct {
	up     uint8 // 0 dead, 1 running, 2 stopped
	life   uint8 // number of its session
	lapsed bool  // its lease is over
	lame   uint8 // beats succeed, but: 1 no transaction of a run does; 2 only claims and takeovers do
	guard  bool

	holds  [maxRuns]uint8
	launch [maxRuns]uint8 // ... and its launch
	child  [maxRuns]uint8 // launch of a living command

	read    uint8 // claim has read: 1 + run at the cursor
	version uint8 // ... and the version
	looked  bool  // it has an old list of sessions (only without ReaperOrder)
	seen    [2]uint8
}

// Late is a COMMIT that is still in flight after its sender has given up. It holds its row locks.
type Late struct{ tx, run, launch, owner uint8 }

// S is a state. All fields are bytes, so it has no padding and can be hashed as memory.
type S struct {
	run     [maxRuns]Run
	ended   [maxRuns]uint8 // ended rows that retention has not removed: one bit per attempt
	spawned [maxRuns]uint8 // attempts that have spawned
	final   [maxRuns]uint8 // final records written
	lastID  [maxRuns]uint8 // last id minted
	killed  [maxRuns]uint8 // 1 + the last attempt with a requested kill

	job  [maxJobs]Job
	said Said
	node [maxNodes]Node

	sessions  [2]uint8 // bits: session rows
	taken     uint8    // slots of the group in use
	clock     uint8    // due instants passed
	must      uint8    // bits: due times that passed while in force; each needs a final record
	late      Late
	stuckLock bool // the rows of job 1 are locked for ever
	faults    uint8
	flags     [3]uint8
}

// Violations.
const (
	vOverlap uint32 = 1 << iota
	vGroup
	vTwice
	vAgain
	vStale
	vFinal
	vNoCommit
	vNoLease
	vOrphan
	vAnswered
	vOld
	vEarly
	vFlush
	vLost
	vOrder
	vKilled
	vRetry
	vRequest
	vSlots
	vStuck
	vLoop
	vEnd
)

var violation = map[uint32]string{
	vOverlap:  "I1: two live executions of a job that must not overlap",
	vGroup:    "I1: more live executions than the group has slots",
	vTwice:    "the promise: one attempt executed twice",
	vAgain:    "I9: a due time that ran or ended is claimed again",
	vStale:    "I3: a write over another launch",
	vFinal:    "I4: two final rows of one due time",
	vNoCommit: "I5: a child without a standing commit",
	vNoLease:  "I6: a child without a fresh lease",
	vOrphan:   "I7: a child is alive after its run was taken away",
	vAnswered: "I10: a start after pause, edit or delete was answered",
	vOld:      "I10: a claim that the definition in force does not have, or of a paused or deleted job",
	vEarly:    "a due time is refused for good before it is due",
	vFlush:    "a due time is skipped for a run whose end its own node knew",
	vLost:     "I4: a due time passed, has neither row nor record, and the cursor is behind it",
	vOrder:    "a later due time begins before an earlier one that waits, or an earlier one replaces a later one",
	vKilled:   "a run that somebody had killed is started again",
	vRetry:    "a retry is refused because of another run",
	vRequest:  "I8: one request made two runs",
	vSlots:    "the group's counter differs from the runs that hold a slot",
	vStuck:    "I12: a healthy node has nothing left to do, and not all is done",
	vLoop:     "I12: a cycle of fair steps without progress",
}

func (s *S) flag(v uint32) {
	s.flags[0] |= uint8(v)
	s.flags[1] |= uint8(v >> 8)
	s.flags[2] |= uint8(v >> 16)
}

func (s *S) flagged() uint32 {
	return uint32(s.flags[0]) | uint32(s.flags[1])<<8 | uint32(s.flags[2])<<16
}

// hasSession reports whether the row of a session exists.
func (s *S) hasSession(owner uint8) bool {
	return owner > 0 && has(s.sessions[(owner-1)/8], (owner-1)%8)
}

func (s *S) addSession(owner uint8)  { s.sessions[(owner-1)/8] |= 1 << ((owner - 1) % 8) }
func (s *S) dropSession(owner uint8) { s.sessions[(owner-1)/8] &^= 1 << ((owner - 1) % 8) }

// sessionOf returns the session number of a life of a node.
func sessionOf(node int, life uint8) uint8 { return uint8(node) + maxNodes*life + 1 }

func nodeOf(owner uint8) int   { return int(owner-1) % maxNodes }
func lifeOf(owner uint8) uint8 { return (owner - 1) / maxNodes }
func has(mask, bit uint8) bool { return mask>>bit&1 == 1 }
func (n *Node) works() bool    { return n.up == 1 && n.lame == 0 }

// hold changes a run in the memory of the node.
func (n *Node) hold(run, what, launch uint8) {
	n.holds[run], n.launch[run] = what, launch
	if what == nothing {
		n.launch[run] = 0
	}
}

// forget clears the memory of a node. Its children live on.
func (n *Node) forget() {
	n.holds, n.launch = [maxRuns]uint8{}, [maxRuns]uint8{}
	n.read, n.version, n.looked, n.seen = 0, 0, false, [2]uint8{}
}
