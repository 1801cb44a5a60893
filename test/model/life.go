package model

import "fmt"

// process emits the events of a node process: its children, lease, session and guard, and its
// faults.
func (w *World) process(s *S, i int, emit emitter) {
	p := &process{World: w, s: s, n: &s.node[i], i: i, emit: emit}
	p.children()
	p.lease()
	p.join()
	p.bury()
	p.recover()
	if s.faults < w.Faults {
		p.faults()
	}
}

type process struct {
	*World
	s    *S
	n    *Node
	i    int
	emit emitter
}

func (p *process) do(name string, kind uint8, f func(t *S, n *Node)) {
	t := *p.s
	if kind == fault {
		t.faults++
	}
	f(&t, &t.node[p.i])
	p.emit(name, p.i, -1, kind, &t)
}

func (p *process) guarded() bool     { return p.Guard && p.n.guard }
func (p *process) hasChildren() bool { return p.n.child != [maxRuns]uint8{} }

func endChild(n *Node, run int) {
	n.child[run] = 0
	if n.up > 0 && n.holds[run] == hasChild {
		n.holds[run] = hasResult
	}
}

func killChildren(_ *S, n *Node) {
	for r := range n.child {
		if n.child[r] != 0 {
			endChild(n, r)
		}
	}
}

func (p *process) children() {
	n := p.n
	for r := range n.child {
		if n.child[r] != 0 {
			p.do(fmt.Sprintf("the child of %d ends", r), fair, func(_ *S, n *Node) { endChild(n, r) })
		}
	}
	if p.hasChildren() && (p.guarded() && (n.up == 0 || n.lapsed) || n.up == 1 && n.lapsed) {
		p.do("lease over or node dead: children are killed", fair, killChildren)
	}
}

func (p *process) lease() {
	n := p.n
	if n.up == 2 && !n.lapsed {
		p.do("its lease lapses while it is stopped", fair, func(_ *S, n *Node) { n.lapsed = true })
	}
	if n.up == 1 && n.lame > 0 && !n.lapsed && p.LeaseTrip {
		p.do("its lease lapses: the trip makes no progress", fair, func(_ *S, n *Node) { n.lapsed = true })
	}
}

// join registers a new session. A node that has lived three times gives up, which keeps the world
// small.
func (p *process) join() {
	n := p.n
	if !n.works() {
		return
	}

	if n.lapsed || !p.s.hasSession(sessionOf(p.i, n.life)) {
		join := func(known bool) func(*S, *Node) {
			return func(t *S, n *Node) {
				if p.KillJoin {
					killChildren(t, n)
				}
				if p.Clear {
					n.forget()
				}

				n.read, n.version, n.looked, n.seen = 0, 0, false, [2]uint8{}

				if n.life == 3 {
					n.up = 0
					n.forget()
					return
				}

				n.life++
				n.lapsed = false
				if known {
					t.addSession(sessionOf(p.i, n.life))
				}
			}
		}

		p.do("registers a new session", fair, join(true))
		if !p.SessionKnown && p.Replies && p.s.faults < p.Faults {
			p.do("registers a new session [COMMIT never arrived], goes on", fault, join(false))
		}
	}

	if p.Guard && !n.guard {
		p.do("starts its guard again", fair, func(_ *S, n *Node) { n.guard = true })
	}
}

// bury deletes session rows: by the guard, by the node's next life, or by a peer after the children
// have had time to die.
func (p *process) bury() {
	n := p.n
	for life := range n.life + 1 {
		owner := sessionOf(p.i, life)
		old := life < n.life
		if !p.s.hasSession(owner) || !old && n.up != 0 && !n.lapsed {
			continue
		}
		if p.hasChildren() && !old && (p.guarded() && p.BuryLast || n.up == 1) {
			continue
		}

		if p.peerWorks() || p.guarded() && !old || old && n.works() {
			p.do("its session row is deleted", fair, func(t *S, _ *Node) { t.dropSession(owner) })
		}
	}
}

func (p *process) peerWorks() bool {
	for i := range p.s.node {
		if n := &p.s.node[i]; i != p.i && n.works() && !n.lapsed {
			return true
		}
	}
	return false
}

func (p *process) recover() {
	if p.n.up == 2 {
		p.do("SIGCONT", people, func(_ *S, n *Node) { n.up = 1 })
	}
	if p.n.up == 1 && p.n.lame > 0 {
		p.do("its trip works again", people, func(_ *S, n *Node) { n.lame = 0 })
	}
}

func (p *process) faults() {
	n := p.n
	if p.Stops && n.up == 1 {
		p.do("SIGSTOP", fault, func(_ *S, n *Node) { n.up = 2 })
	}
	if p.Lames && n.works() {
		p.do("turns lame: beats pass, the trip hangs", fault, func(_ *S, n *Node) { n.lame = 1 })
		p.do("turns half lame: claims and takes, starts and ends nothing", fault, func(_ *S, n *Node) { n.lame = 2 })
	}

	if p.Kills && n.up > 0 {
		p.do("kill -9", fault, func(_ *S, n *Node) { n.up, n.lame = 0, 0; n.forget() })
	}
	if p.Lapses && n.up == 1 && !n.lapsed {
		p.do("its lease lapses (partition)", fault, func(_ *S, n *Node) { n.lapsed = true })
	}

	if p.Guards && p.guarded() && n.up > 0 {
		p.do("its guard dies", fault, func(t *S, n *Node) {
			n.guard = false
			if p.KidsDie {
				killChildren(t, n)
			}
		})
	}
}
