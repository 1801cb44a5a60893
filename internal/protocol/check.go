package protocol

import "strings"

// Violation is a set of broken invariants. Their numbers are those of docs/invariants.md.
type Violation uint32

// The invariants.
const (
	Overlaps     Violation = 1 << iota // I1
	SlotsTaken                         // I1, of a group
	StartedTwice                       // the promise: one start for each attempt
	Overwritten                        // I3
	EndedTwice                         // I4
	NoRecord                           // I4
	Uncommitted                        // I5
	Unleased                           // I6
	Outlived                           // I7
	RanTwice                           // I8
	StartedAfter                       // I10
	Stuck                              // I12
	NotWoken                           // I12, at once
	ThrownAway                         // what is known is recorded
	NotRerun                           // on_lost: rerun
	NotKilled                          // kill
	NotReplaced                        // overlap: replace
	TooSoon                            // a refusal before its time
	NotRetried                         // retry
	Needless                           // overlap: skip
	NotLost                            // what a guard has killed is lost
)

var violations = []string{
	"I1: two runs of a job that must not overlap are alive",
	"I1: more runs of a group are alive than it has slots",
	"the promise: an attempt is started twice",
	"I3: a write over a newer launch",
	"I4: a due time ends twice",
	"I4: a due time has neither a task nor a record",
	"I5: a child without a known commit",
	"I6: a child without a lease",
	"I7: a child is alive whose task was taken away",
	"I8: one request made two runs",
	"I10: a start after pause, delete or edit was answered",
	"I12: stuck",
	"I12: a task waits for nothing, although nothing went wrong",
	"an outcome is thrown away although its run is not recorded",
	"on_lost: rerun, and it is not started again",
	"what somebody had killed is started again",
	"an earlier due time takes the place of a later one",
	"a due time is refused before it is due",
	"what is to be tried again is skipped because of another run",
	"a due time is skipped for a run that has ended on the same node",
	"a run that the guard has killed counts as one that ended by itself",
}

func (v Violation) String() string {
	var out []string
	for i, text := range violations {
		if v>>i&1 == 1 {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

// check looks at one state. calm says that no fault has happened.
func (w *World) check(s *State, calm bool) (v Violation) {
	var alive [maxTasks]int
	all := 0
	for i := range w.Nodes {
		for d := range w.tasks() {
			c := s.nodes[i].child[d]
			if c == 0 {
				continue
			}
			if c == 2 {
				v |= Outlived
			}
			alive[w.job(d)]++
			all++
		}
	}
	if w.Overlap != Allow && (alive[0] > 1 || alive[1] > 1) {
		v |= Overlaps
	}
	if w.Group && all > 1 {
		v |= SlotsTaken
	}
	for d := range w.tasks() {
		r, j := &s.tasks[d], &s.jobs[w.job(d)]
		if r.state == gone && s.owed&^s.history&bit(d) != 0 && (w.byHand(d) || j.cursor > uint8(d) || j.paused+j.deleted+j.held > 0) {
			v |= NoRecord
		}
		if r.state == waiting && calm && !w.windows() && !w.blocked(s, d) {
			v |= NotWoken
		}
	}
	return v
}

// blocked tells whether there is what a task waits for.
func (w *World) blocked(s *State, d int) bool {
	if s.tasks[d].kind == forSlot {
		return s.holders() > 0
	}
	for o := range w.tasks() {
		if o != d && w.job(o) == w.job(d) && s.tasks[o].state != gone && (s.tasks[o].state == executing || s.tasks[o].state != waiting && s.tasks[o].due <= s.clock) {
			return true
		}
	}
	return false
}

// over tells whether nothing is left to do.
func (w *World) over(s *State) bool {
	if s.clock < w.instants() || s.late.kind != nothing || s.away == 1 || s.answer != 0 {
		return false
	}
	for d := range s.tasks {
		if s.tasks[d].state != gone {
			return false
		}
	}
	for i := range w.Nodes {
		n := &s.nodes[i]
		for d := range n.sets {
			if n.ended[d] != none || n.child[d] != 0 || n.sets[d].phase != out {
				return false
			}
		}
	}
	return true
}

// tidy forgets what makes no difference any more.
func (w *World) tidy(s *State) {
	s.tidy()
	if s.answer != 0 && s.windows == 0 {
		s.told |= s.answer
		s.answer = 0
	}
	for i := range w.Nodes {
		n := &s.nodes[i]
		for d := range n.sets {
			if w.Rules.FinishGuard && n.mine[d] == 0 {
				n.ended[d] = none // a peer has ended the run: ours is dropped
			}
			if w.Rules.StartGuard && n.sets[d].phase == prepared && n.sets[d].current == 0 {
				n.sets[d] = entry{} // the start finds that the row is not its any more
			}
			if n.child[d] == 0 {
				n.hidden &^= bit(d)
			}
		}
	}
	if s.step == onTime {
		for d := range s.tasks {
			s.tasks[d].early = 0
		}
	}
}
