package execute

import (
	"context"
	"errors"
	"sync"

	"go-crontab/internal/loop"
	"go-crontab/job"
)

// Set holds the attempts of an Executing. The Set is made first: the recorder needs it, to remove
// attempts whose ends are written, and the Executing needs the recorder.
type Set struct {
	slots       int
	wakeStarter loop.Wake // a slot became free

	mu    sync.Mutex
	byRun map[int64]*entry
	over  int           // ended attempts in byRun whose outcome is not written yet
	calls int           // HTTP requests in byRun that have not ended
	busy  int           // attempts under way
	late  int64         // attempts that were dropped because their spawn windows had passed
	idle  chan struct{} // closed when busy becomes 0; nil without a waiter
}

// NewSet returns an empty set with a number of slots. The set wakes the starter when a slot becomes free.
func NewSet(slots int, wakeStarter loop.Wake) *Set {
	return &Set{slots: slots, wakeStarter: wakeStarter, byRun: map[int64]*entry{}}
}

// Written removes attempts whose outcomes are known to be written.
func (x *Set) Written(launches []job.Launch) {
	x.mu.Lock()
	for _, l := range launches {
		if a := x.byRun[l.Run]; a != nil && a.Launch == l && a.over {
			delete(x.byRun, l.Run)
			x.over--
		}
	}
	x.mu.Unlock()

	x.wakeStarter.Up()
}

// Has reports whether the set holds a launch.
func (x *Set) Has(l job.Launch) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.byRun[l.Run]
	return a != nil && a.Launch == l
}

// TooLate returns the number of attempts that the set has dropped because they were not spawned in time.
func (x *Set) TooLate() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.late
}

// Len returns the number of attempts in the set.
func (x *Set) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.byRun)
}

// Idle reports whether no attempt is under way.
func (x *Set) Idle() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.busy == 0
}

// leave counts an attempt as no longer under way, and wakes Wait after the last one.
func (x *Set) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.busy--
	if x.busy == 0 && x.idle != nil {
		close(x.idle)
		x.idle = nil
	}
}

// mostOver is the number of unwritten outcomes that occupy no slot. Each further one occupies a
// slot. If every unwritten outcome occupied a slot, short attempts would always wait for MySQL.
// The limit bounds memory, because an outcome carries its output.
const mostOver = 512

// call returns 1 for an HTTP request, 0 for a command or a handler.
func (a *entry) call() int {
	if a.Spec.HTTP != nil {
		return 1
	}
	return 0
}

// Taken returns the number of occupied slots. CallsPerSlot HTTP requests share one.
func (x *Set) Taken() int {
	x.mu.Lock()
	defer x.mu.Unlock()

	return len(x.byRun) - x.over - x.calls +
		(x.calls+job.CallsPerSlot-1)/job.CallsPerSlot +
		max(0, x.over-mostOver)
}

// Free returns the number of free slots. The set has room for so many more attempts of any kind.
func (x *Set) Free() int { return x.slots - x.Taken() }

// Wait returns nil once no attempt is under way. Outcomes may still be unwritten. If ctx ends
// first, Wait returns an error.
func (x *Set) Wait(ctx context.Context) error {
	x.mu.Lock()
	if x.busy == 0 {
		x.mu.Unlock()
		return nil
	}
	if x.idle == nil {
		x.idle = make(chan struct{})
	}
	idle := x.idle
	x.mu.Unlock()

	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("commands are still running"), context.Cause(ctx))
	}
}
