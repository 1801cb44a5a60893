package execute

import "go-crontab/job"

// Guard tells the guard process about each attempt. The guard process outlives this process, and
// can then kill the processes of the attempts.
type Guard interface {
	// Alive reports whether the guard process is alive. If it is not, nothing may begin.
	Alive() bool

	// Enter registers an attempt with the guard; nil: that failed. inside means that this process
	// does the work itself.
	Enter(l job.Launch, inside bool) Seat

	// Lapsed reports whether the guard had to kill commands because the lease had expired.
	Lapsed() bool
}

// Seat is the guard's entry for one attempt. Its methods never block, because that would delay the start.
type Seat interface {
	Inside(yes bool) // this process may be forking; called before the last check of Attempt.May
	Forked(pgid int) // the fork is done
	Signalled() bool // reports whether the guard has signalled or killed the attempt; called before Leave
	Empty()          // the group is empty, so the kernel may reuse its number
	Leave()          // the attempt is over
}

// NoGuard is the guard for attempts without a guard process.
type NoGuard struct{}

// Alive returns true.
func (NoGuard) Alive() bool { return true }

// Enter returns a seat that does nothing.
func (NoGuard) Enter(job.Launch, bool) Seat { return unguarded{} }

// Lapsed returns false.
func (NoGuard) Lapsed() bool { return false }

// unguarded is the seat of an attempt without a guard.
type unguarded struct{}

func (unguarded) Inside(bool)     {}
func (unguarded) Forked(int)      {}
func (unguarded) Signalled() bool { return false }
func (unguarded) Empty()          {}
func (unguarded) Leave()          {}
