package execute

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"go-crontab/internal/failpoint"
	"go-crontab/internal/loop"
	"go-crontab/job"

	"github.com/google/uuid"
)

// Session is the node's session, which owns the attempts.
type Session interface {
	ID() uuid.UUID
	Node() string
	Now() job.Micros // MySQL's clock
	Fresh() bool     // whether the lease allows a spawn now
	Lost() bool      // whether the lease or the session's row was lost
}

// ExecutingConfig is what an executing set works with.
type ExecutingConfig struct {
	// Ctx is the context of all attempts. When Ctx ends, the attempts must stop.
	Ctx      context.Context
	Session  Session
	Executor Executor
	Guard    Guard // see NoGuard
	Past     Past  // knows the last successes of jobs; nil: Attempt.LastSuccess stays zero
	Recorder Recorder
	*Set
	WakeCompensator loop.Wake // the set dropped an attempt whose row still belongs to this session
	Log             *slog.Logger
}

// Recorder learns what becomes of attempts.
type Recorder interface {
	// Began is called for each attempt that begins, with its lateness.
	Began(at job.Micros, late time.Duration)

	// NotSpawned is called for each attempt that does not begin.
	NotSpawned()

	// Ended queues the ended run for writing. After the write, Set.Written is called. Ended does
	// not wait for that write, but it may wait for MySQL while output of the attempt is being
	// written. At the call, the attempt holds no slot, and no lock of the set is held. again is
	// the start time of the next attempt; zero: this was the last attempt.
	Ended(s job.Started, r job.Run, again job.Micros)

	// Sink returns the receiver of an attempt's live output; nil: no receiver. The receiver is
	// used until Ended is called.
	Sink(l job.Launch) func(p []byte)
}

// Executing is the set of one session's runs whose start is committed and whose end is not. The
// set changes only when the rows are known to have changed (lock.Do).
//
//	Add ──(due instant, lease fresh, window open)──▶ spawned ──▶ ended ──(outcome written)──▶ gone
//	 └──────────────── otherwise: never spawned, forgotten; compensation gives its row back
type Executing struct {
	ExecutingConfig
	hold func() bool // the method value x.holds, allocated once
}

type entry struct {
	job.Started
	ctx   context.Context
	kill  context.CancelCauseFunc
	until time.Time // end of its spawn window by this process's clock, in case MySQL's clock is moved
	seat  Seat
	past  *past
	over  bool
}

// NewExecuting returns an executing set.
func NewExecuting(cfg ExecutingConfig) *Executing {
	x := &Executing{ExecutingConfig: cfg}
	x.hold = x.holds
	return x
}

// Add takes runs whose start is committed, and spawns their commands when they are due.
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
			x.over-- // an earlier launch, whose outcome this session may no longer write
		}
		x.byRun[a.Run] = a
		x.busy++
		x.calls += a.call()
	}
	x.mu.Unlock()

	x.lookBack(entries)
	for _, a := range entries {
		go x.run(a)
	}
}

// Causes of a stop after which the run is not retried.
var (
	ErrKilled   = job.Coded(job.ReasonKilledByUser, errors.New("killed by a user"))
	ErrReplaced = job.Coded(job.ReasonReplaced, errors.New("a later run replaced it"))
)

// Kill asks an attempt to stop, if the set has it. replaced is true if a later due time replaces
// the attempt, and false if a user asked for the kill.
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

	if kills { // logged after the lock is released: a log write can block, and heartbeats need the lock
		x.Log.Info("killing a run", "run", l, "job", a.Spec.FullName(), "due", a.Due, "reason", why)
	}
}

// run takes an attempt from its start to its outcome.
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
	x.Recorder.Began(started, started.Sub(a.DueNow))
	// If we die here or while the attempt executes, its row belongs to a dead session and ends
	// lost.
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
		result.Outcome = job.Lost // as another node's reaper would write, which only knows that the session is gone
		result.Reason.Code = job.ReasonSessionLost
	// A signalled command may exit with 0 or another status, but its work is not done.
	case x.Guard.Lapsed() &&
		(result.Outcome == job.Failed && result.Signal != "" ||
			signalled && (result.Outcome == job.Failed || result.Outcome == job.Succeeded || result.Outcome == job.Skipped)):
		result.Outcome = job.Lost
		result.Reason = reason(job.ReasonGuardKill,
			"its node hung or lost MySQL for too long, and the guard killed the run")
	}

	x.mu.Lock()
	a.over = true
	x.calls -= a.call()
	if x.byRun[a.Run] == a {
		x.over++
	}
	x.mu.Unlock()

	run := job.Run{
		Launch: a.Launch, JobID: a.JobID, App: a.Spec.App,
		Due: a.Due, Until: a.Due, Count: 1,
		Kind: a.Kind, Request: a.Request, Attempt: a.Attempt, Given: a.Given, Final: true,
		Started: started, Ended: max(ended, started), Lateness: int64(started - a.DueNow),
		Node: x.Session.Node(), Session: x.Session.ID(), Result: result,
	}
	var again job.Micros
	if after, ok := a.Spec.Again(a.Attempt, result.Outcome, rand.Float64()); ok && !a.stopped() {
		run.Final, again = false, run.Ended.Add(after)
	}

	x.Recorder.Ended(a.Started, run, again)
	failpoint.Here("behind", "put outcome")
	x.wakeStarter.Up()
}

// stopped reports whether the attempt was killed or replaced. Such an attempt is not retried.
func (a *entry) stopped() bool {
	cause := context.Cause(a.ctx)
	return errors.Is(cause, ErrKilled) || errors.Is(cause, ErrReplaced)
}

// farOff is longer than any wait between a committed start and its due instant, unless MySQL's clock was set back.
const farOff = time.Second

// await sleeps until at, or until x.Ctx ends. at is by MySQL's clock, which may be set during the
// sleep. If at is more than farOff away, await returns at once, so the run does not hold a slot or
// delay a pause of its job for that long.
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

// enter registers the attempt with the guard; nil: it cannot be guarded now. enter comes before
// the last check of the lease. So if this process is stopped between the two, the guard already
// knows that a command may begin.
func (x *Executing) enter(a *entry) Seat {
	return x.Guard.Enter(a.Launch, a.Spec.Handler != "")
}

// spawn reports, at the last moment, whether the command may be spawned. It also returns the
// instant of that decision, which becomes the attempt's start. The clock is not read again for the
// start: a heartbeat can set it back slightly, and the start would lie before the due instant.
func (x *Executing) spawn(a *entry) (started job.Micros, ok bool) {
	started = x.Session.Now()
	return started, x.may(a, started)
}

// forget removes an attempt that was not spawned. Its row becomes idle again.
func (x *Executing) forget(a *entry) {
	x.Log.Warn("run not executed: it is too late, or the node lost its lease or guard",
		"run", a.Launch, "job", a.Spec.FullName(), "due", a.Due,
		"late", x.Session.Now().Sub(a.DueNow), "fresh", x.Session.Fresh(), "guarded", x.Guard.Alive())

	slow := x.holds() // the node still has its lease and guard, so it was only too slow
	x.mu.Lock()
	if x.byRun[a.Run] == a {
		delete(x.byRun, a.Run)
	}
	x.calls -= a.call()
	if slow {
		x.late++
	}
	x.mu.Unlock()

	x.Recorder.NotSpawned()
	x.WakeCompensator.Up()
	x.wakeStarter.Up()
}

// may reports whether an attempt may begin now.
func (x *Executing) may(a *entry, now job.Micros) bool {
	return x.holds() && a.DueNow <= now && now <= a.SpawnBy && !time.Now().After(a.until)
}

// holds reports whether the session is fresh, guarded and not stopping.
func (x *Executing) holds() bool { return x.Ctx.Err() == nil && x.Session.Fresh() && x.Guard.Alive() }

// execute runs the executor. A panic of the executor fails this attempt only.
func (x *Executing) execute(a *entry, started job.Micros) (r job.Result) {
	defer func() {
		if p := recover(); p != nil {
			x.Log.Error("panic while executing a run", "run", a.Launch, "job", a.Spec.FullName(),
				"panic", p)
			r = job.Result{
				Outcome: job.Failed,
				Reason: reason(job.ReasonExecutorPanic,
					"the node panicked while executing the run; see the node's log"),
			}
		}
	}()

	params, err := a.Spec.ParamsOf(a.Given, a.Due)
	if err != nil {
		return failed(job.ReasonParamInvalid, err)
	}

	return x.Executor.Execute(a.ctx, Attempt{
		Params: paramTexts(params), secretParams: a.Spec.ParamSecrets(),
		Launch: a.Launch, Session: x.Session.ID(), JobID: a.JobID, Job: a.Spec.Name, App: a.Spec.App,
		Due: a.Due.Time(), Attempt: a.Attempt, Given: a.Given, Began: started.Time(),
		Command: a.Spec.Command, HTTP: a.Spec.HTTP, Handler: a.Spec.Handler, Payload: []byte(a.Spec.Payload),
		Timeout: time.Duration(a.Spec.Timeout), Options: a.Spec.CommandOptions, Grace: time.Duration(a.Spec.Grace),
		Output:  a.Spec.Output,
		Sink:    x.Recorder.Sink(a.Launch),
		May:     func() bool { return x.may(a, max(started, x.Session.Now())) },
		BeginBy: a.until,
		Holds:   x.hold,
		past:    a.past,
		Seat:    a.seat,
	})
}
