package execute

import (
	"errors"
	"sync"
	"syscall"
)

// running is the set of process groups that are being forked or are alive.
type running struct {
	mu     sync.Mutex // held only for access to the map, because a watchdog takes it
	groups map[*group]struct{}
}

// enter adds a group. It is called before the fork, so that KillAll never misses a living group.
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

// leave removes a group that is empty or was never forked.
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

// KillAll sends sig to the process group of every attempt and returns their number. A group that is being forked gets
// the signal as soon as it exists. The attempts end Killed with the cause's text as reason.
//
// KillAll never blocks. It sends only sig: after a SIGTERM, the caller must call it again for
// SIGKILL. It does not signal attempts that begin after the call, so stop new attempts first.
func (s *Shell) KillAll(sig syscall.Signal, cause error) int {
	if cause == nil {
		cause = errors.New("the node killed all its runs")
	}
	groups := s.live.all()
	for _, g := range groups {
		g.kill(sig, cause)
	}
	return len(groups)
}
