package execute

import "go-crontab/job"

// Guard is what outlives this process and kills what attempts have started. It is told of each.
type Guard interface {
	// Alive tells whether there is one. Nothing may begin without.
	Alive() bool
	// Enter has an attempt guarded from now on, or returns nil if that cannot be. inside says that this process itself
	// does the work.
	Enter(l job.Launch, inside bool) Seat
	// Lapsed tells whether the guard had to kill commands because the lease was over.
	Lapsed() bool
}

// Seat is one attempt in the eyes of the guard. Nothing of it blocks: it all stands in the way of a start.
type Seat interface {
	Inside(yes bool) // this process may be forking; said before it is asked for the last time whether it may
	Forked(pgid int) // it has
	Signalled() bool // the guard has asked it to stop, or killed it; asked before Leave
	Empty()          // nobody is left in the group, whose number may be given to others
	Leave()          // nothing of the attempt lives
}

// unguarded is the seat of an attempt that nobody guards.
type unguarded struct{}

func (unguarded) Inside(bool)     {}
func (unguarded) Forked(int)      {}
func (unguarded) Signalled() bool { return false }
func (unguarded) Empty()          {}
func (unguarded) Leave()          {}
