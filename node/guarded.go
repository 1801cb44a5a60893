package node

import (
	"context"
	"log/slog"
	"time"

	"go-crontab/execute"
	"go-crontab/internal/guard"
	"go-crontab/job"

	"github.com/google/uuid"
)

// HasGuard reports whether nodes have guards on this system.
const HasGuard = guard.Supported

// guarded adapts the guard of a session to the executing set.
type guarded struct{ *guard.Guard }

// Enter takes a seat for an attempt.
func (g guarded) Enter(l job.Launch, inside bool) execute.Seat {
	if s := g.Guard.Enter(l.Run, inside); s != nil {
		return s
	}
	return nil
}

// guardOf returns the guard of the attempts.
func guardOf(g *guard.Guard) execute.Guard {
	if g == nil {
		return execute.NoGuard{}
	}
	return guarded{g}
}

// newGuard makes the guard of the next session; nil: the session has no guard. While no guard is
// alive, claims and starts wait. A new guard wakes them.
func (n *Node) newGuard(wake wakes) (*guard.Guard, error) {
	if n.cfg.NoGuard || !guard.Supported {
		return nil, nil
	}

	_, json := plain(n.log.Handler()).(*slog.JSONHandler)
	return guard.New(guard.Config{
		Node:   n.cfg.Name,
		DSN:    n.cfg.DSN,
		Expiry: n.timings.Expiry,
		Kill:   n.timings.Kill,
		Grace:  n.timings.Grace,
		End:    n.timings.End,
		// There are more seats than slots: an attempt keeps its seat until it is completely dead,
		// which may be just after its slot is free.
		Seats: max(2*n.cfg.Slots, min((1+job.CallsPerSlot)*n.cfg.Slots, 2*n.cfg.Cap)) + 64,
		JSON:  json,
		Log:   n.log,

		WakeClaimer: wake.claimer,
		WakeStarter: wake.starter,
	})
}

// warnUnguarded logs once that there is no guard, and the consequences.
func (n *Node) warnUnguarded() {
	switch {
	case n.cfg.NoGuard:
		n.log.Warn(
			"no guard: if this process is killed, its commands keep running, and other nodes take over only when " +
				"its session expires")
	case !guard.Supported:
		n.log.Info(
			"no guard on this system: if this process is killed, its commands keep running, and other nodes take " +
				"over only when its session expires")
	}
}

// protect gives the guard what it needs to know about the session.
func (l *life) protect() error {
	if l.guard == nil {
		return nil
	}

	id := l.session.ID()
	folders := ""
	if e, ok := l.n.executor.(interface{ Cgroups(uuid.UUID) string }); ok {
		folders = e.Cgroups(id)
	}

	return l.guard.Protect(guard.Protected{
		Session: id.String(),
		Marker:  execute.Marker(id),
		Cgroups: folders,
		Age:     l.session.Age(),
		Lease:   l.session,
	})
}

// isGuarded reports whether the guard permits claims and starts.
func (l *life) isGuarded() bool { return l.guard == nil || l.guard.Alive() }

// guardLost informs the guard, before the first signal, that the commands are being killed.
func (l *life) guardLost() {
	if l.guard != nil {
		l.guard.Lost()
	}
}

// guardStopping informs the guard, before the first signal, that a stopping node kills its
// commands.
func (l *life) guardStopping() {
	if l.guard != nil {
		l.guard.Stopping()
	}
}

// guardSweep lets the guard kill processes that the killed commands left outside their groups.
func (l *life) guardSweep(limit time.Duration) {
	if l.guard == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := l.guard.Sweep(ctx); err != nil {
		l.n.log.Error("cannot kill a process that a command has started", "error", err)
	}
}

// guardOver dismisses the guard if it has nothing left to do.
func (l *life) guardOver() {
	if l.guard != nil && l.executing.Idle() {
		l.guard.Over()
	}
}
