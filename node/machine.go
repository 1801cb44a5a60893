package node

import (
	"go-crontab/execute"
	"go-crontab/job"
)

// Refuses returns why the node would refuse all runs of a definition, or nil.
func (n *Node) Refuses(spec *job.Spec) error {
	if k, ok := n.executor.(*execute.Kinds); ok {
		return k.Refuses(spec)
	}
	return nil
}

// Unlimited returns the reason why the node cannot enforce limits that need a cgroup. It is nil if
// the node can enforce them, or executes no commands.
func (n *Node) Unlimited() error {
	if k, ok := n.executor.(*execute.Kinds); ok {
		if s, ok := k.Command.(*execute.Shell); ok {
			return s.Unlimited()
		}
	}
	return nil
}
