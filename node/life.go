package node

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"go-crontab/alert"
	"go-crontab/audit"
	"go-crontab/compensate"
	"go-crontab/execute"
	"go-crontab/guard"
	"go-crontab/internal/failpoint"
	"go-crontab/job"
	"go-crontab/result"
	"go-crontab/schedule"
	"go-crontab/session"
)

// life is one session of a node and everything that belongs to it.
type life struct {
	n       *Node
	session *session.Session
	guard   *guard.Guard // nil: there is none

	prepared    *schedule.Prepared
	executing   *execute.Executing
	heartbeat   *session.Heartbeat
	watchdog    *session.Watchdog
	reaper      *session.Reaper
	lookout     *schedule.Lookout
	planner     *schedule.Planner
	claimer     *schedule.Claimer
	places      *schedule.Places
	limiter     *schedule.Limiter
	starter     *schedule.Starter
	sweeper     *schedule.Sweeper
	tidier      *schedule.Tidier
	chainer     *audit.Chainer
	retainer    *result.Retainer
	trimmer     *result.Trimmer
	feeder      *schedule.Feeder
	bucketer    *schedule.Bucketer
	rezoner     *schedule.Rezoner
	watcher     *watcher
	evaluator   *alert.Evaluator
	sender      *alert.Sender
	compensator *compensate.Compensator
	orders      *session.Orders
	editor      *schedule.Editor

	stopCommands context.CancelCauseFunc
	over         chan struct{} // closed when run is done with the commands
}

// newLife wires the stages in the order of the trip.
func (n *Node) newLife(s *session.Session, g *guard.Guard) *life {
	l := &life{n: n, session: s, guard: g, prepared: schedule.NewPrepared(), over: make(chan struct{})}
	takes := taker{s, l.isGuarded}
	commands, stop := context.WithCancelCause(context.Background())
	l.stopCommands = stop

	l.heartbeat = &session.Heartbeat{Session: s, Pulse: n.pulse, Load: l.load, Stepped: func() { l.starter.Wake() }, Log: n.log}
	l.watchdog = &session.Watchdog{Session: s, Log: n.log}
	l.reaper = session.NewReaper(session.Reaper{DB: n.db, Session: s, Changed: func() { l.claimer.Wake() }, Cordoned: l.obeyCordon, Alone: func() bool { return l.lookout.Alone() }, Log: n.log})

	l.lookout = &schedule.Lookout{DB: n.db, Session: s.ID(), Tasks: func() { l.claimer.Look() }, Peers: l.reaper.Wake, Log: n.log}
	l.planner = &schedule.Planner{DB: n.db, Session: s, Lookout: l.lookout, Soon: func() { l.claimer.Wake() }, Log: n.log}
	l.executing = execute.NewExecuting(&execute.Executing{
		Ctx: commands, Session: s, Executor: n.traced(), Slots: n.cfg.Slots,
		Ended: func(s job.Started, r job.Run, again job.Micros, written func()) {
			n.figures.Ended(r.Ended, r.Outcome)
			n.metrics.Ended(s.Spec, &r)
			n.recorder.Put(&result.Outcome{Task: s.Task, Run: r, Again: again, Awaited: l.isAwaited(s), Group: s.Spec.Group, Live: n.live.End(r.Launch), Written: func() {
				written()
				if s.Origin < 0 {
					l.feeder.Wake()
				}
			}})
		},
		Began: func(at job.Micros, late time.Duration) { n.figures.Began(at, late); n.metrics.Began(late) },
		Sink:  n.live.Sink,
		Freed: func() { n.metrics.NotSpawned(); l.compensator.Wake() },
		Room:  func() { l.starter.Wake(); l.claimer.Room() },
		Log:   n.log,
	})
	l.places = &schedule.Places{DB: n.db, Lookout: l.lookout, Labels: job.WithHandlers(n.labels(), n.cfg.Handlers.Keys()), Members: s.Membership, Log: n.log}
	l.claimer = schedule.NewClaimer(schedule.Claimer{
		DB: n.db, Exclusion: n.exclusion, Session: takes, Places: l.places, Prepared: l.prepared, Lookout: l.lookout, Executing: l.executing,
		LookAhead: n.cfg.LookAhead, Cap: n.cfg.Cap, Slots: n.cfg.Slots, PerSlot: func() int { return l.starter.PerSlot() }, Lanes: n.lanes, Log: n.log,
	})
	l.limiter = &schedule.Limiter{DB: n.db, Session: s, Lookout: l.lookout, Refused: n.metrics.Limited, Log: n.log}
	l.starter = schedule.NewStarter(&schedule.Starter{
		Exclusion: n.exclusion, Session: takes, Places: l.places, Prepared: l.prepared, Executing: l.executing, Slots: n.cfg.Slots,
		Flush: n.recorder.Push, Freed: func() { l.compensator.Wake() }, Woken: func() { l.claimer.Wake() }, Trip: s.Clock.RoundTrip, Lanes: n.lanes, Limits: l.limiter, Log: n.log,
	})
	l.sweeper = &schedule.Sweeper{DB: n.db, Session: s, Lookout: l.lookout, Places: l.places, Woken: func() { l.claimer.Wake() }, Backfill: func() { l.feeder.Wake() }, Log: n.log}
	l.tidier = &schedule.Tidier{DB: n.api, Trip: n.db, Session: s, Lookout: l.lookout, Audit: n.cfg.AuditKept, Log: n.log}
	l.sender = &alert.Sender{DB: n.alerts, Session: s, Outside: n.outside, Nothing: l.lookout.NothingToSend, Log: n.log}
	l.evaluator = &alert.Evaluator{DB: n.alerts, Session: s, Due: l.sender.Wake, Nothing: l.lookout.NothingToWatch, Log: n.log}
	l.chainer = &audit.Chainer{DB: n.api, Session: s, Newest: l.lookout.LastLine, Log: n.log}
	l.retainer = n.newRetainer(s, l.lookout)
	l.trimmer = n.newTrimmer(s, l.lookout)
	l.watcher = &watcher{n: n, session: s, lookout: l.lookout}
	l.bucketer = &schedule.Bucketer{DB: n.db, Session: s, Log: n.log}
	l.rezoner = &schedule.Rezoner{DB: n.api, Session: s, Zones: job.ZoneData(), Log: n.log}
	l.feeder = schedule.NewFeeder(schedule.Feeder{DB: n.db, Session: s, Limits: l.limiter, Soon: func() { l.claimer.Wake() }, Log: n.log})
	l.compensator = compensate.New(compensate.Compensator{
		DB: n.db, Exclusion: n.exclusion, Session: s.ID(), Sets: []compensate.Set{l.prepared, l.executing},
		Freed: func() { l.claimer.Wake() }, NothingOwned: l.lookout.NothingOwned, Log: n.log,
	})
	l.orders = &session.Orders{DB: n.db, Session: s, Busy: func() bool { return l.executing.Len() > 0 }, Kill: l.executing.Kill, Log: n.log}
	l.editor = &schedule.Editor{DB: n.api, Session: s, Soon: func() { l.claimer.Wake() }, Limited: n.metrics.Limited, Trip: s.Clock.RoundTrip, Unsettled: s.Unsettled}
	return l
}

func (l *life) load() (prepared, executing int) { return l.prepared.Len(), l.executing.Len() }

// isAwaited tells whether another task may wait for the end of an attempt: because of its job, or because a backfill takes
// turns with the schedule. One that has begun within the last second may be missed: it is the sweeper who wakes it then.
func (l *life) isAwaited(s job.Started) bool {
	return s.Spec.Awaited(s.Origin) || s.Spec.Overlap != job.OverlapAllow && !l.lookout.NoBackfill(s.JobID)
}

// run lives until the session is lost or ctx asks for a drain. When it returns, no command of the session lives and
// none of its loops runs.
func (l *life) run(ctx, hard context.Context) {
	guarding, unguard := context.WithCancel(context.Background())
	var guards sync.WaitGroup
	if l.guard != nil {
		guards.Go(func() { l.guard.Run(guarding) })
	}
	defer func() { unguard(); guards.Wait() }() // the next session has its own

	// Whatever else hangs, a lost session kills its commands at once: first they are asked, then they are not.
	lost, killed := l.session.Context(), make(chan struct{})
	disarm := context.AfterFunc(lost, func() {
		defer close(killed)
		failpoint.Here("before", "lose session")
		l.guardLost()
		// If we die from here on, the guard, which is told by now, ends the commands, and buries the session if nobody has yet.
		failpoint.Here("behind", "lose session")
		l.kill(l.session.Timings.Grace, context.Cause(lost))
	})

	alive, end := context.WithCancel(context.Background())
	work, rest := context.WithCancel(alive)
	var living, working, chores sync.WaitGroup
	for _, loop := range []func(context.Context) error{l.heartbeat.Run, l.watchdog.Run, l.reaper.Run, l.compensator.Run, l.orders.Run, l.lookout.Run, l.places.Run, l.limiter.Run, l.watcher.Run} {
		living.Go(func() { loop(alive) })
	}
	for _, loop := range []func(context.Context) error{l.planner.Run, l.claimer.Run, l.starter.Run, l.sweeper.Run, l.feeder.Run, l.yield} {
		working.Go(func() { loop(work) })
	}
	for _, loop := range []func(context.Context) error{l.tidier.Run, l.chainer.Run, l.retainer.Run, l.trimmer.Run, l.bucketer.Run, l.rezoner.Run, l.evaluator.Run, l.sender.Run} {
		chores.Go(func() { loop(work) })
	}
	select {
	case <-lost.Done():
		l.n.log.Error("session lost", "session", l.session.ID(), "cause", context.Cause(lost))
	case <-ctx.Done():
		l.session.Drain()
		l.n.log.Info("draining", "prepared", l.prepared.Len(), "executing", l.executing.Len(), "grace", l.n.cfg.Grace)
	}
	rest()
	working.Wait()
	// Nothing is claimed or started any more: what is only prepared goes back at once.
	l.prepared.Forget()
	l.compensator.Wake()
	if !l.session.Lost() {
		l.drainCommands(hard)
		chores.Wait()
		// MySQL may be away: outcomes can be spooled, and rows are found by peers.
		bounded, cancel := context.WithTimeout(context.Background(), 2*l.session.Timings.SQL.Read)
		l.retire(bounded)
		cancel()
	}
	end()
	chores.Wait()
	living.Wait()
	if l.session.Lost() {
		l.awaitCommands()
		close(l.over)
		<-killed // a kill that comes late would hit the commands of the next session
		failpoint.Here("before", "lost sweep")
		l.guardSweep(l.session.Timings.Expiry)
		failpoint.Here("behind", "lost sweep")
		l.guardOver()
		failpoint.Here("behind", "lost session") // its outcomes are written, and its rows given back, beside the next one
		return
	}
	l.guardOver()
	close(l.over)
	disarm()
	l.session.Lose(ErrStopped)
}

// kill asks the commands to stop, and does not ask any more after the grace.
func (l *life) kill(grace time.Duration, cause error) {
	l.stopCommands(cause)
	select {
	case <-l.over:
	case <-time.After(grace):
		if k, ok := l.n.executor.(interface {
			KillAll(syscall.Signal, error) int
		}); ok {
			k.KillAll(syscall.SIGKILL, cause)
		}
	}
}

// awaitCommands waits until the killed commands are dead. While one survives even SIGKILL, in the hands of the kernel,
// the node does not come back: it could start nothing safely beside it.
func (l *life) awaitCommands() {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := l.executing.Wait(ctx)
		cancel()
		if err == nil {
			return
		}
		l.n.log.Error("commands survive their session", "executing", l.executing.Len())
	}
}

// drainCommands waits for the commands up to the grace, then kills them.
func (l *life) drainCommands(hard context.Context) {
	grace, cancel := context.WithTimeout(l.session.Context(), l.n.cfg.Grace)
	defer cancel()
	defer context.AfterFunc(hard, cancel)()
	if l.executing.Wait(grace) == nil || l.session.Lost() {
		return
	}
	l.n.log.Warn("killing the commands that are still running", "executing", l.executing.Len())
	l.guardStopping()
	go l.kill(killGrace, ErrStopped)
	dead, cancelDead := context.WithTimeout(l.session.Context(), 3*killGrace)
	defer cancelDead()
	if err := l.executing.Wait(dead); err != nil {
		l.n.log.Error("commands survive", "executing", l.executing.Len(), "error", err)
		return
	}
	l.guardSweep(killGrace)
}

// killGrace is what commands get between SIGTERM and SIGKILL when the node stops.
const killGrace = time.Second

// retire ends the session's affairs once its commands are dead: their outcomes are written, its rows are given back,
// and at last its own row goes. It tries until it has done so, ctx ends, or a peer did it.
func (l *life) retire(ctx context.Context) {
	for {
		l.n.recorder.Flush(ctx)
		owned, err := l.compensator.Compensate(ctx)
		if err == nil && owned == 0 {
			err = l.session.End(ctx, l.n.db)
			if err == nil {
				l.n.log.Info("session ended", "session", l.session.ID())
				return
			}
		}
		select {
		case <-ctx.Done():
			l.n.log.Warn("session left to its peers", "session", l.session.ID(), "owned", owned, "error", errors.Join(err, context.Cause(ctx)))
			return
		case <-time.After(l.session.Timings.Scan / 2):
		}
	}
}
