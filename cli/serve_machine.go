//go:build unix

package cli

import (
	"runtime"

	"go-crontab/internal/doctor"
	"go-crontab/node"
)

// machine returns a function that describes the node's machine to doctor.
func (s *serveSettings) machine(n *node.Node) func() *doctor.Machine {
	return func() *doctor.Machine {
		st := n.Status()
		m := &doctor.Machine{
			Node: s.node, Slots: st.Slots, Unguarded: s.noGuard || runtime.GOOS != "linux", Unlimited: n.Unlimited(),
			StateDir: s.spool,
		}
		m.Look()
		return m
	}
}
