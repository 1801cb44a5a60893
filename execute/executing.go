package execute

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"go-crontab/internal/failpoint"
	"go-crontab/job"

	"github.com/google/uuid"
)

// Session is the life on whose behalf attempts are executed.
type Session interface {
	ID() uuid.UUID
	Node() string
	Now() job.Micros // MySQL's clock
	Fresh() bool     // may anything be spawned now?
	Lost() bool      // was the lease or the session's row lost?
}

// Executing is the executing set: the runs of one session whose start is committed and whose end is not. It
// changes only where rows are known to say the same (lock.Do).
//
//	Add ──(due instant, lease fresh, window open)──▶ spawned ──▶ ended ──(outcome written)──▶ gone
//	 └──────────────── otherwise: never spawned, forgotten; compensation gives its row back
type Executing struct {
	// Ctx is what the attempts live under. When it ends they are asked to stop.
	Ctx      context.Context
	Session  Session
	Executor Executor
	Guard    Guard // nil: nobody guards the attempts
	Slots    int
	// Ended takes the run of an attempt that is over, to be written. Once it is known to be written, Written is to be called.
	// Ended does not wait for that, but it may wait for MySQL, if output of the attempt is just being written. The attempt holds no
	// slot by then, and the set no lock.
	// again is when the next attempt is to be started, zero if this one was the last.
	Ended func(s job.Started, r job.Run, again job.Micros)
	// Began is told of each attempt that begins, and how late it is; nil: nobody counts.
	Began func(at job.Micros, late time.Duration)
	// Sink returns what takes the output of an attempt as it comes, until Ended is called; nil: nobody reads along.
	Sink func(l job.Launch) func(p []byte)
	// Freed is called when a run was forgotten whose row is still ours.
	Freed func()
	// Room is called when a slot became free.
	Room func()
	Log  *slog.Logger

	mu    sync.Mutex
	byRun map[int64]*entry
	over  int           // attempts among byRun whose end waits to be written
	calls int           // HTTP requests among the others
	busy  int           // attempts under way
	idle  chan struct{} // closed when none is any more; nil: nobody waits for that
	hold  func() bool   // holds, made once for all attempts
}

type entry struct {
	job.Started
	ctx   context.Context
	kill  context.CancelCauseFunc
	until time.Time // when the window of its spawn has passed, whatever becomes of MySQL's clock
	seat  Seat
	over  bool
}

// NewExecuting sets what has no useful zero value.
func NewExecuting(x *Executing) *Executing {
	x.byRun, x.hold = map[int64]*entry{}, x.holds
	return x
}

// Add takes runs whose start is committed; their commands are spawned when they are due.
func (x *Executing) Add(started []job.Started) {
	now := x.Session.Now()
	entries := make([]*entry, len(started))
	for i, s := range started {
		a := &entry{Started: s, until: time.Now().Add(s.SpawnBy.Sub(now))}
		a.ctx, a.kill = context.WithCancelCause(x.Ctx)
		entries[i] = a
	}

	x.mu.Lock()
	for _, a := range entries {
		if old := x.byRun[a.Run]; old != nil && old.over {
			x.over-- // the end of an earlier launch, which is not ours to write any more
		}
		x.byRun[a.Run] = a
		x.busy++
		x.calls += a.call()
	}
	x.mu.Unlock()
	for _, a := range entries {
		go x.run(a)
	}
}

// Why an attempt ends that is not retried.
var (
	ErrKilled   = job.Coded(job.ReasonKilledByUser, errors.New("killed on request"))
	ErrReplaced = job.Coded(job.ReasonReplaced, errors.New("a later due time took its place"))
)

// Kill asks an attempt to stop, if the set has it: because somebody wants that, or because a later due time replaces
// it.
func (x *Executing) Kill(l job.Launch, replaced bool) {
	why := ErrKilled
	if replaced {
		why = ErrReplaced
	}
	x.mu.Lock()
	a := x.byRun[l.Run]
	kills := a != nil && a.Launch == l && a.ctx.Err() == nil
	if kills {
		a.kill(why)
	}
	x.mu.Unlock()
	if kills { // not under the lock, which heartbeats take: whoever reads the log may have stopped
		x.Log.Info("killing a run", "run", l, "job_id", a.JobID, "due", a.Due, "reason", why)
	}
}

// run is the life of one attempt.
func (x *Executing) run(a *entry) {
	defer x.leave()
	defer a.kill(nil)
	x.await(a.DueNow)
	if a.seat = x.enter(a); a.seat == nil {
		x.forget(a)
		return
	}
	started, ok := x.spawn(a)
	if !ok {
		a.seat.Leave()
		x.forget(a)
		return
	}
	failpoint.Here("before", "execute")
	if x.Began != nil {
		x.Began(started, started.Sub(a.DueNow))
	}
	// If we die here or while it runs, the row has an owner that is gone and ends lost.
	result := x.execute(a, started)
	failpoint.Here("behind", "execute")
	signalled := a.seat.Signalled()
	a.seat.Leave()
	if result.Outcome == job.Missed { // it did not begin after all
		x.forget(a)
		return
	}
	ended := x.Session.Now()
	switch {
	case result.Outcome == job.Killed && x.Session.Lost():
		result.Outcome = job.Lost // as a peer would write it, who only knows that the session is gone
		result.Reason.Code = job.ReasonSessionLost
	// Some end well, or with an exit status of their own, when they are asked to stop: what they were to do is not done.
	case x.Guard != nil && x.Guard.Lapsed() && (result.Outcome == job.Failed && result.Signal != "" || signalled && (result.Outcome == job.Failed || result.Outcome == job.Succeeded)):
		result.Outcome = job.Lost
		result.Reason = reason(job.ReasonGuardKill, "its node was stopped or cut off for too long, and the guard killed it")
	}
	x.mu.Lock()
	a.over = true
	x.calls -= a.call()
	if x.byRun[a.Run] == a {
		x.over++
	}
	x.mu.Unlock()
	run := job.Run{
		Launch: a.Launch, JobID: a.JobID, App: a.Spec.App, Due: a.Due, Until: a.Due, Count: 1, Kind: a.Kind, Request: a.Request, Attempt: a.Attempt, Final: true,
		Started: started, Ended: max(ended, started), Lateness: int64(started - a.DueNow), Node: x.Session.Node(), Session: x.Session.ID(), Result: result,
	}
	var again job.Micros
	if after, ok := a.Spec.Again(a.Attempt, result.Outcome, rand.Float64()); ok && !a.stopped() {
		run.Final, again = false, run.Ended.Add(after)
	}
	x.Ended(a.Started, run, again)
	failpoint.Here("behind", "put outcome")
	x.Room()
}

// stopped tells whether somebody had a reason to end the attempt that means its due time as a whole.
func (a *entry) stopped() bool {
	cause := context.Cause(a.ctx)
	return errors.Is(cause, ErrKilled) || errors.Is(cause, ErrReplaced)
}

// farOff is how far away no due instant is when its start is committed: MySQL's clock was put back since.
const farOff = time.Second

// await sleeps until an instant of MySQL's clock, which may be moved meanwhile, or until the attempts are stopped. For
// an instant that is far off it does not wait: the run is not to hold a slot until then, nor whoever pauses its job.
func (x *Executing) await(at job.Micros) {
	for {
		wait := at.Sub(x.Session.Now())
		if wait <= 0 || wait > farOff {
			return
		}
		select {
		case <-x.Ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// enter has the attempt guarded. It comes before the last look at the lease: if this process is stopped in between, the
// guard knows that something may begin here. nil: it cannot be guarded now.
func (x *Executing) enter(a *entry) Seat {
	if x.Guard == nil {
		return unguarded{}
	}
	return x.Guard.Enter(a.Launch, a.Spec.Handler != "")
}

// spawn decides, at the last moment, whether the command may be spawned, and returns the instant by which it did. That is
// when the attempt starts: a beat may set the clock back by a hair at any time, and then it would have begun before it was due.
func (x *Executing) spawn(a *entry) (started job.Micros, ok bool) {
	started = x.Session.Now()
	return started, x.may(a, started)
}

// forget takes out an attempt for which nothing was spawned. Its row goes back to idle.
func (x *Executing) forget(a *entry) {
	x.Log.Warn("not spawned", "run", a.Launch, "job_id", a.JobID, "due", a.Due, "late", x.Session.Now().Sub(a.DueNow), "fresh", x.Session.Fresh(), "guarded", x.guarded())
	x.mu.Lock()
	if x.byRun[a.Run] == a {
		delete(x.byRun, a.Run)
	}
	x.calls -= a.call()
	x.mu.Unlock()
	x.Freed()
	x.Room()
}

// may tells whether an attempt may begin at an instant, which is now.
func (x *Executing) may(a *entry, now job.Micros) bool {
	return x.holds() && a.DueNow <= now && now <= a.SpawnBy && !time.Now().After(a.until)
}

// holds tells whether the session holds: as far as it goes, anything may begin.
func (x *Executing) holds() bool { return x.Ctx.Err() == nil && x.Session.Fresh() && x.guarded() }

func (x *Executing) guarded() bool { return x.Guard == nil || x.Guard.Alive() }

// execute runs the command. Whatever goes wrong in there is this attempt's affair.
func (x *Executing) execute(a *entry, started job.Micros) (r job.Result) {
	defer func() {
		if p := recover(); p != nil {
			x.Log.Error("executor panicked", "run", a.Launch, "panic", p)
			r = job.Result{
				Outcome: job.Failed, Reason: reason(job.ReasonExecutorPanic, "the executor panicked; the node's log has more"),
			}
		}
	}()
	var sink func([]byte)
	if x.Sink != nil {
		sink = x.Sink(a.Launch)
	}
	return x.Executor.Execute(a.ctx, Attempt{
		Launch: a.Launch, Session: x.Session.ID(), JobID: a.JobID, Job: a.Spec.Name, App: a.Spec.App, Due: a.Due.Time(), Attempt: a.Attempt,
		Began: started.Time(), Command: a.Spec.Command, HTTP: a.Spec.HTTP, Handler: a.Spec.Handler, Payload: []byte(a.Spec.Payload),
		Timeout: time.Duration(a.Spec.Timeout), Options: a.Spec.CommandOptions, Grace: time.Duration(a.Spec.Grace),
		Sink: sink, May: func() bool { return x.may(a, max(started, x.Session.Now())) }, BeginBy: a.until, Holds: x.hold, Seat: a.seat,
	})
}

// Written takes out attempts whose ends are known to be written.
func (x *Executing) Written(launches []job.Launch) {
	x.mu.Lock()
	for _, l := range launches {
		if a := x.byRun[l.Run]; a != nil && a.Launch == l && a.over {
			delete(x.byRun, l.Run)
			x.over--
		}
	}
	x.mu.Unlock()
	x.Room()
}

// Has reports whether the set holds a launch.
func (x *Executing) Has(l job.Launch) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.byRun[l.Run]
	return a != nil && a.Launch == l
}

// Len is how many attempts the set holds.
func (x *Executing) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.byRun)
}

// Idle tells whether no attempt is under way.
func (x *Executing) Idle() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.busy == 0
}

// leave comes when an attempt is not under way any more.
func (x *Executing) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.busy--
	if x.busy == 0 && x.idle != nil {
		close(x.idle)
		x.idle = nil
	}
}

// mostOver is how many outcomes may wait to be written beside as many attempts as there are slots. What has ended holds no
// slot: short attempts would wait for MySQL to take the records of those before them, again and again. The bound is for
// memory, since an outcome has its output.
const mostOver = 512

// call is 1 for an HTTP request, 0 for a command or a handler.
func (a *entry) call() int {
	if a.Spec.HTTP != nil {
		return 1
	}
	return 0
}

// Taken is how many slots are held.
func (x *Executing) Taken() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.byRun) - x.over - x.calls + (x.calls+job.CallsPerSlot-1)/job.CallsPerSlot + max(0, x.over-mostOver)
}

// Free is how many more slots there are: as many attempts, whatever they are.
func (x *Executing) Free() int { return x.Slots - x.Taken() }

// Wait returns when no attempt is under way any more (their outcomes may still wait to be written), or with an
// error when ctx ends first.
func (x *Executing) Wait(ctx context.Context) error {
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
