package node

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"go-crontab/compensate"
	"go-crontab/execute"
	"go-crontab/internal/alert"
	"go-crontab/internal/audit"
	"go-crontab/internal/failpoint"
	"go-crontab/internal/guard"
	"go-crontab/job"
	"go-crontab/result"
	"go-crontab/schedule"
	"go-crontab/schedule/edit"
	"go-crontab/session"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// life is one session of a node, with all its parts.
type life struct {
	n       *Node
	session *session.Session
	guard   *guard.Guard // nil: none
	wake    wakes

	// The trip.
	prepared  *schedule.Prepared
	stops     *schedule.Stops
	limiter   *schedule.Limiter
	defs      *schedule.Definitions
	claimer   *schedule.Claimer
	starter   *schedule.Starter
	executing *execute.Executing
	recorder  *result.Recorder
	wishes    *result.Wishes

	// Survival: heartbeats, and the cleanup after dead nodes.
	heartbeat     *session.Heartbeat
	watchdog      *session.Watchdog
	sessionReaper *session.Reaper
	reaper        *result.Reaper
	compensator   *compensate.Compensator

	// Chores.
	lookout   *lookout
	tidier    *result.Tidier
	retainer  *result.Retainer
	trimmer   *result.Trimmer
	chainer   *audit.Chainer
	evaluator *alert.Evaluator
	sender    *alert.Sender
	watcher   *watcher
	noter     *noter
	rezoner   *edit.Rezoner

	editor *edit.Editor

	stopCommands context.CancelCauseFunc
	over         chan struct{} // closed when kill need not send SIGKILL any more
}

// newLife makes and connects the stages, in the order in which a run passes them.
func (n *Node) newLife(s *session.Session, g *guard.Guard, wake wakes) *life {
	l := &life{n: n, session: s, guard: g, wake: wake, over: make(chan struct{})}
	commands, stop := context.WithCancelCause(context.Background())
	l.stopCommands = stop
	l.lookout = newLookout(n.reads(), wake.sessions, n.log)

	l.editor = n.newEditor(l)
	l.newTrip(commands)
	l.newWatch()
	l.newChores()
	return l
}

// newTrip makes the parts that move runs: claim, start, execute, finish.
func (l *life) newTrip(commands context.Context) {
	n, s := l.n, l.session
	labels := job.WithHandlers(n.labels(), n.cfg.Handlers.Keys())
	l.defs = schedule.NewDefinitions()
	taker := taker{s, guardOf(l.guard)}

	l.prepared = schedule.NewPrepared()
	l.stops = schedule.NewStops(schedule.StopsConfig{
		DB:          n.db,
		Session:     s,
		Prepared:    l.prepared,
		Pauses:      l.editor,
		Node:        n.cfg.Name,
		WakeClaimer: l.wake.claimer,
		Log:         n.log,
	})

	l.limiter = schedule.NewLimiter(schedule.LimiterConfig{
		DB:      n.db,
		Session: s,
		Lookout: l.lookout,
		Metrics: n.metrics,
		Log:     n.log,
	})

	running := execute.NewSet(n.cfg.Slots, l.wake.starter)
	l.recorder = result.New(result.Config{
		Exclusion:   n.exclusion,
		Session:     s,
		Executing:   running,
		WakeOverdue: l.wake.overdue,
		Definitions: schedule.Reader{Definitions: l.defs, DB: n.db},
		Names:       l.defs.Name,
		Log:         n.log,
	})
	n.track(l.recorder)

	l.executing = execute.NewExecuting(execute.ExecutingConfig{
		Ctx:             commands,
		Session:         s,
		Executor:        n.traced(),
		Guard:           guardOf(l.guard),
		Past:            n.past(),
		Recorder:        attempts{n, l.recorder},
		Set:             running,
		WakeCompensator: l.wake.compensator,
		Log:             n.log,
	})

	l.wishes = result.NewWishes(result.WishesConfig{
		DB:        n.db,
		Session:   s,
		Executing: l.executing,
		Wake:      l.wake.wishes,
		Log:       n.log,
	})

	l.starter = schedule.NewStarter(schedule.StarterConfig{
		DB:          n.db,
		Exclusion:   n.exclusion,
		Session:     taker,
		Definitions: l.defs,
		Prepared:    l.prepared,
		Executing:   l.executing,
		Ends:        l.recorder,
		Stops:       l.stops,
		Limits:      l.limiter,
		Lookout:     l.lookout,
		Log:         n.log,
		Labels:      labels,
		Window:      job.SpawnWindow * time.Microsecond,
		Wake:        l.wake.starter,
		WakeOverdue: l.wake.overdue,
		WakeWishes:  l.wake.wishes,
	})

	l.claimer = schedule.NewClaimer(schedule.ClaimerConfig{
		DB:          n.db,
		Exclusion:   n.exclusion,
		Session:     taker,
		Definitions: l.defs,
		Prepared:    l.prepared,
		Stops:       l.stops,
		Limits:      l.limiter,
		Lookout:     l.lookout,
		Starter:     l.starter,
		Log:         n.log,
		LookAhead:   n.cfg.LookAhead,
		Labels:      labels,
		Most:        n.cfg.Cap,
		Node:        n.cfg.Name,
		Wake:        l.wake.claimer,
	})
}

// newWatch makes the parts that detect dead sessions and clean up after them.
func (l *life) newWatch() {
	n, s := l.n, l.session
	l.heartbeat = session.NewHeartbeat(session.HeartbeatConfig{
		Session: s,
		Pulse:   n.pulse,
		Node:    vitals{l},
		Outage:  n.outage,
		Log:     n.log,
	})
	l.watchdog = session.NewWatchdog(s, n.log)

	l.sessionReaper = session.NewReaper(session.ReaperConfig{
		DB:          n.db,
		Session:     s,
		Lookout:     l.lookout,
		Cordon:      cordon{s, l.prepared, l.starter, n.log},
		Log:         n.log,
		Wake:        l.wake.sessions,
		WakeClaimer: l.wake.claimer,
		WakeReaper:  l.wake.reaper,
	})

	l.reaper = result.NewReaper(result.ReaperConfig{
		DB:          n.db,
		Exclusion:   n.exclusion,
		Session:     s,
		Lookout:     l.lookout,
		Wake:        l.wake.reaper,
		WakeOverdue: l.wake.overdue,
		Definitions: schedule.Reader{Definitions: l.defs, DB: n.db},
		Log:         n.log,
	})

	l.compensator = compensate.New(compensate.Config{
		DB:          n.db,
		Exclusion:   n.exclusion,
		Session:     s,
		Executing:   l.executing,
		Wake:        l.wake.compensator,
		WakeOverdue: l.wake.overdue,
		Log:         n.log,
	})
}

// newChores makes the parts that clean up, send alerts, and look after the audit, the watermark,
// the notes and the time zones.
func (l *life) newChores() {
	n, s := l.n, l.session
	lookout := choreLookout{l.lookout, s, l.stops}
	l.tidier = l.newTidier(lookout)
	l.retainer = l.newRetainer(lookout)
	l.trimmer = l.newTrimmer(lookout)

	l.sender = alert.NewSender(alert.SenderConfig{
		DB:      n.alertReads(),
		Session: s,
		Outside: n.outside,
		Lookout: l.lookout,
		Wake:    l.wake.sender,
		Log:     n.log,
	})
	l.evaluator = alert.NewEvaluator(alert.EvaluatorConfig{
		DB:         n.alertReads(),
		Session:    s,
		Lookout:    l.lookout,
		WakeSender: l.wake.sender,
		Log:        n.log,
	})

	l.chainer = audit.NewChainer(audit.ChainerConfig{DB: n.api, Session: s, Lookout: l.lookout, Log: n.log})
	l.watcher = &watcher{n: n, session: s, lookout: l.lookout}
	l.noter = &noter{n: n, session: s}
	l.rezoner = edit.NewRezoner(edit.RezonerConfig{
		Editor:  l.editor,
		Session: s,
		Zones:   job.ZoneData(),
		Log:     n.log,
	})
}

// attempts records the results of the attempts of a session.
type attempts struct {
	n        *Node
	recorder *result.Recorder
}

// Began counts an attempt that begins.
func (a attempts) Began(at job.Micros, late time.Duration) {
	a.n.figures.Began(at, late)
	a.n.metrics.Began(late)
}

// NotSpawned counts an attempt that does not begin.
func (a attempts) NotSpawned() { a.n.metrics.NotSpawned() }

// Sink returns the receiver of live output.
func (a attempts) Sink(l job.Launch) func(p []byte) { return a.n.live.Sink(l) }

// Ended records the end of an attempt.
func (a attempts) Ended(s job.Started, r job.Run, again job.Micros) {
	n := a.n
	n.figures.Ended(r.Ended, r.Outcome)
	n.metrics.Ended(s.Spec, &r)
	n.parts.Take(r.Launch, &r.Output)

	a.recorder.Put(trip.End{
		Launch:  r.Launch,
		JobID:   r.JobID,
		Outcome: r.Outcome,
		Final:   again == 0,
		Again:   again,
		Started: r.Started,
		Ended:   r.Ended,
		Exit:    r.ExitCode,
		Signal:  r.Signal,
		Reason:  r.Reason,
		Output:  r.Output,
		Live:    n.live.End(r.Launch),
	}, s.Spec.Awaited(s.Kind))
	n.logEnd(s.Spec, &r, again) // after Put: the handler of the log may belong to an embedding program, and block
}

// stuckAfter is how late the earliest prepared run may be while a slot is free. If it is later,
// the node no longer counts as ready.
const stuckAfter = 5 * time.Second

// advances reports whether runs are being started. A node with a fresh lease may still start none.
func (l *life) advances() bool {
	return l.prepared.Overdue(l.session.Now()) < stuckAfter || l.executing.Free() <= 0
}

// notReady returns the reason why the session starts no runs, or nil.
func (l *life) notReady() error {
	switch {
	case l.session.Draining():
		return errors.New("the node is draining")
	case l.session.Lost():
		return errors.New("the node has lost its session, and waits for its commands to end")
	case !l.session.Fresh():
		return errors.New("the node's lease is not fresh: MySQL has not answered its heartbeats in time")
	case !l.isGuarded():
		return errors.New("the guard of the node is not running")
	case !l.advances():
		return errors.New("a prepared run is late although the node has a free slot")
	}
	return nil
}

// vitals are the facts about a node that the heartbeat of its session reads.
type vitals struct{ l *life }

// Load returns the numbers of the session's runs.
func (v vitals) Load() (prepared, executing int) { return v.l.prepared.Len(), v.l.executing.Len() }

// Works reports whether the ends of runs can be written.
func (v vitals) Works() bool { return v.l.recorder.FailingFor() < v.l.session.Timings.Stale/2 }

// Renewed tells the guard that the lease was renewed.
func (v vitals) Renewed(sent time.Duration) {
	if v.l.guard != nil {
		v.l.guard.Renewed(sent)
	}
}

// run runs the session until it is lost or ctx asks for a drain. When run returns, no loop and no
// command of the session is alive. Only a drain gives up on commands that survive even SIGKILL.
func (l *life) run(ctx, hard context.Context) {
	guarding, unguard := context.WithCancel(context.Background())
	var guards sync.WaitGroup
	if l.guard != nil {
		guards.Go(func() { l.guard.Run(guarding) })
	}
	defer func() { unguard(); guards.Wait() }() // the next session has a new guard

	// A lost session kills its commands at once, first with SIGTERM and then with SIGKILL, even if
	// the rest of the node hangs.
	lost, killed := l.session.Context(), make(chan struct{})
	disarm := context.AfterFunc(lost, func() {
		defer close(killed)
		failpoint.Here("before", "lose session")
		l.guardLost()
		// If we die from here on, the guard has been informed. It kills the commands. It also
		// buries the session, unless a peer has already done so.
		failpoint.Here("behind", "lose session")
		l.kill(l.session.Timings.Grace, context.Cause(lost))
	})

	alive, end := context.WithCancel(context.Background())
	work, stopWork := context.WithCancel(alive)
	living, working, chores := l.begin(alive, work)
	select {
	case <-lost.Done():
		l.logLost(context.Cause(lost))
	case <-ctx.Done():
		l.session.Drain()
		l.n.log.Info("draining", "prepared", l.prepared.Len(), "executing", l.executing.Len(), "grace", l.n.cfg.Grace)
	}

	stopWork()
	working.Wait()
	if !l.session.Lost() {
		l.drain(hard, chores)
	}

	l.prepared.Forget()
	end()
	chores.Wait()
	living.Wait()

	if l.session.Lost() {
		l.endLost(killed)
		return
	}

	l.guardOver()
	close(l.over)
	disarm()
	l.session.Lose(ErrStopped)
}

// logLost logs the loss of the session. After a restore it shortens the cause, which is long. Run
// returns the whole cause.
func (l *life) logLost(cause error) {
	why := cause.Error()
	if errors.Is(cause, sql.ErrRefuseJoin) {
		why = "the database was restored"
	}
	l.n.log.Error("session lost, killing its commands", "session", l.session.ID(), "cause", why,
		"executing", l.executing.Len())
}

// begin starts the loops of the session, the loops that take work, and the chores.
func (l *life) begin(alive, work context.Context) (living, working, chores *sync.WaitGroup) {
	begin := func(ctx context.Context, loops ...func(context.Context) error) *sync.WaitGroup {
		group := new(sync.WaitGroup)
		for _, run := range loops {
			group.Go(func() { run(ctx) })
		}
		return group
	}

	living = begin(alive, l.heartbeat.Run, l.watchdog.Run, l.recorder.Run, l.wishes.Run, l.sessionReaper.Run,
		l.reaper.Run, l.compensator.Run, l.stops.Run, l.limiter.Run, l.lookout.Run, l.watcher.Run)
	working = begin(work, l.claimer.Run, l.starter.Run)
	chores = begin(work, l.tidier.Run, l.chainer.Run, l.retainer.Run, l.trimmer.Run, l.evaluator.Run, l.sender.Run,
		l.noter.Run, l.rezoner.Run)
	return living, working, chores
}

// drain ends the session of a node that stops. By now nothing is claimed or started any more.
// drain releases prepared runs at once.
func (l *life) drain(hard context.Context, chores *sync.WaitGroup) {
	bounded, cancel := context.WithTimeout(l.session.Context(), l.session.Timings.SQL.Read)
	if err := l.starter.GiveBack(bounded); err != nil {
		l.n.log.Warn("cannot release prepared runs, other nodes will start them late", "runs", l.prepared.Len(),
			"error", err)
	}

	cancel()
	l.drainCommands(hard)
	chores.Wait()

	// Do not wait longer if MySQL is away: ends can be spooled, and other nodes find the rows.
	bounded, cancel = context.WithTimeout(context.Background(), 2*l.session.Timings.SQL.Read)
	l.retire(bounded)
	cancel()
}

// endLost ends a lost session once its commands are dead. Its ends are written and its rows
// released later, while the next session already works (see retire).
func (l *life) endLost(killed chan struct{}) {
	l.awaitCommands()
	close(l.over)
	<-killed // wait: a late SIGKILL would hit the commands of the next session
	failpoint.Here("before", "lost sweep")
	l.guardSweep(l.session.Timings.Expiry)
	failpoint.Here("behind", "lost sweep")
	l.guardOver()
	failpoint.Here("behind", "lost session")
}

// kill asks the commands to stop. After the grace it kills them.
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

// awaitCommands waits until the killed commands are dead. A command that is stuck in the kernel
// survives even SIGKILL. While such a command lives, the node does not rejoin, because another run
// of the same job could start.
func (l *life) awaitCommands() {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := l.executing.Wait(ctx)
		cancel()
		if err == nil {
			return
		}
		l.n.log.Error("commands of the lost session are still running", "executing", l.executing.Len())
	}
}

// drainCommands waits for the commands, for at most the grace. Then it kills them.
func (l *life) drainCommands(hard context.Context) {
	grace, cancel := context.WithTimeout(l.session.Context(), l.n.cfg.Grace)
	defer cancel()
	defer context.AfterFunc(hard, cancel)()
	if l.executing.Wait(grace) == nil || l.session.Lost() {
		return
	}

	l.n.log.Warn("killing commands that are still running after the grace period", "executing", l.executing.Len())
	l.guardStopping()
	go l.kill(killGrace, ErrStopped)
	dead, cancelDead := context.WithTimeout(l.session.Context(), 3*killGrace)
	defer cancelDead()
	if err := l.executing.Wait(dead); err != nil {
		l.n.log.Error("commands are still running after being killed", "executing", l.executing.Len(), "error", err)
		return
	}

	l.guardSweep(killGrace)
}

// killGrace is the time between SIGTERM and SIGKILL when the node stops.
const killGrace = time.Second

// retire ends a session whose commands are dead. It writes their outcomes, releases the session's
// rows, and finally deletes the session's own row. It retries until this node or a peer has
// deleted that row, or ctx ends.
func (l *life) retire(ctx context.Context) {
	defer l.n.untrack(l.recorder)
	for {
		l.recorder.Flush(ctx)
		_, err := l.compensator.Compensate(ctx)
		if err == nil && l.recorder.Waiting() == 0 {
			err = l.session.End(ctx, l.n.db)
			if err == nil {
				l.n.log.Info("session ended", "session", l.session.ID())
				return
			}
		}

		select {
		case <-ctx.Done():
			l.n.log.Warn("cannot end the session, other nodes will end it when it expires",
				"session", l.session.ID(), "unwritten_results", l.recorder.Waiting(),
				"error", errors.Join(err, context.Cause(ctx)))
			return
		case <-time.After(l.session.Timings.Scan / 2):
		}
	}
}
