package node

import (
	"go-crontab/execute"
)

// Unlimited says why the node cannot hold limits of jobs that need a cgroup; nil when it can, or
// when it executes no commands.
func (n *Node) Unlimited() error {
	if k, ok := n.executor.(*execute.Kinds); ok {
		if s, ok := k.Command.(*execute.Shell); ok {
			return s.Unlimited()
		}
	}
	return nil
}
