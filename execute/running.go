package execute

import (
	"errors"
	"sync"
	"syscall"
)

// running is the set of process groups that are being forked or live.
type running struct {
	mu     sync.Mutex // held over nothing but the map: a watchdog takes it
	groups map[*group]struct{}
}

// enter comes before the fork: a group that KillAll does not see must not come to life.
func (r *running) enter() *group {
	g := new(group)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.groups == nil {
		r.groups = make(map[*group]struct{})
	}
	r.groups[g] = struct{}{}
	return g
}

// leave comes when the group is empty, or was never forked.
func (r *running) leave(g *group) {
	g.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.groups, g)
}

func (r *running) all() []*group {
	r.mu.Lock()
	defer r.mu.Unlock()
	groups := make([]*group, 0, len(r.groups))
	for g := range r.groups {
		groups = append(groups, g)
	}
	return groups
}

// KillAll sends sig to the process group of every attempt at once and returns how many there are. Those that are
// just being forked get it as soon as they exist. Their attempts end Killed with the cause's text as reason.
//
// It never blocks, whatever hangs, and escalates nothing: a lease watchdog sends SIGTERM, and SIGKILL when it must.
// Attempts that begin after the call are not touched, so stop those first.
func (s *Shell) KillAll(sig syscall.Signal, cause error) int {
	if cause == nil {
		cause = errors.New("killed with everything else on its node")
	}
	groups := s.live.all()
	for _, g := range groups {
		g.kill(sig, cause)
	}
	return len(groups)
}
