package execute

import "go-crontab/job"

// automaton finds all of its texts in one pass over a stream, by the algorithm of Aho and
// Corasick. After link it does not change.
type automaton struct {
	first [256]int32 // the nodes of the texts' first bytes
	nodes []trieNode // the first is the root
}

// trieNode is the state after bytes that begin at least one of the texts.
type trieNode struct {
	child, sibling int32 // 0: none
	fail           int32 // the node of the longest shorter suffix of these bytes that begins a text
	depth          int32 // the number of bytes
	longest        int32 // length of the longest text that is a suffix of these bytes; 0: none
	b              byte
}

func newAutomaton() *automaton { return &automaton{nodes: make([]trieNode, 1)} }

func (a *automaton) empty() bool { return len(a.nodes) == 1 }

func (a *automaton) add(text string) {
	if len(text) < job.MinSecret {
		return
	}

	at := int32(0)
	for i := range len(text) {
		next := a.child(at, text[i])
		if next == 0 {
			next = int32(len(a.nodes))
			a.nodes = append(a.nodes, trieNode{b: text[i], depth: int32(i + 1), sibling: a.nodes[at].child})
			a.nodes[at].child = next
			if at == 0 {
				a.first[text[i]] = next
			}
		}
		at = next
	}
	a.nodes[at].longest = int32(len(text))
}

func (a *automaton) child(at int32, b byte) int32 {
	if at == 0 {
		return a.first[b]
	}
	for c := a.nodes[at].child; c != 0; c = a.nodes[c].sibling {
		if a.nodes[c].b == b {
			return c
		}
	}
	return 0
}

// link sets the fail nodes, shorter beginnings first.
func (a *automaton) link() {
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]

		for c := a.nodes[at].child; c != 0; c = a.nodes[c].sibling {
			n := &a.nodes[c]
			if at != 0 {
				n.fail = a.step(a.nodes[at].fail, n.b)
			}
			n.longest = max(n.longest, a.nodes[n.fail].longest)
			queue = append(queue, c)
		}
	}
}

// step returns the node to which byte b leads from node at.
func (a *automaton) step(at int32, b byte) int32 {
	for {
		if next := a.child(at, b); next != 0 || at == 0 {
			return next
		}
		at = a.nodes[at].fail
	}
}
