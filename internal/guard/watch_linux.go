package guard

import (
	"log/slog"
	"math"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"go-crontab/internal/boottime"
	"go-crontab/internal/failpoint"
)

// watcher is the guard process's own side.
type watcher struct {
	*memory
	*orders
	log    *slog.Logger
	handle int  // pidfd of the node; -1: none
	open   bool // the pipe is open
	dead   bool // the node is dead

	tick time.Duration
	sweeper
}

func newWatcher(m *memory, o *orders, log *slog.Logger) *watcher {
	w := &watcher{memory: m, orders: o, log: log, open: true, tick: min(o.Expiry/100, mostTick)}
	w.handle, w.dead = o.node()
	w.sweeper = newSweeper(o)
	return w
}

const (
	// mostTick bounds the pause between looks at the lease.
	mostTick = 250 * time.Millisecond
	// politeness is the time between SIGTERM and SIGKILL for commands of a dead node.
	politeness = 500 * time.Millisecond
	// nodeFirst is the time that a node has to signal its commands itself.
	nodeFirst = 100 * time.Millisecond
	// farewell bounds the wait for the death of a node that has closed the pipe.
	farewell = 10 * time.Second
	// The pauses between looks while killing, and between looks that found nothing.
	firstLook, lastLook = time.Millisecond, 250 * time.Millisecond
	cleanLook, calmLook = 10 * time.Millisecond, time.Second
)

// run watches until there is nothing left to guard. It reports whether to bury the session.
func (w *watcher) run() (bury bool) {
	late := w.Kill + 2*w.tick // the node's own watchdog acts first
	for {
		now := w.look()

		left := time.Duration(w.sent.Load()) + late - now
		phase := w.phase.Load()
		switch {
		case phase == over:
			return false
		case left <= 0:
			// The lapse is final: from now on, the answer to a beat comes too late.
			w.lapsed.Store(1)
			return w.end(now)
		case !w.open, w.dead, phase != inForce:
			return w.end(now)
		}

		w.wait(min(w.tick, left))
	}
}

// look notes the time of this look. That shows the node that the guard lives.
func (w *watcher) look() time.Duration {
	now := boottime.Now()
	w.looked.Store(int64(now))
	return now
}

// wait sleeps for d, or until the pipe or the node's state changes.
func (w *watcher) wait(d time.Duration) {
	fds := []unix.PollFd{{Fd: -1}, {Fd: -1}}
	if w.open {
		fds[0] = unix.PollFd{Fd: pipeFD, Events: unix.POLLIN}
	}
	if !w.dead && w.handle >= 0 {
		fds[1] = unix.PollFd{Fd: int32(w.handle), Events: unix.POLLIN}
	}
	if _, err := unix.Poll(fds, int((d+time.Millisecond-1)/time.Millisecond)); err != nil {
		return // EINTR
	}

	if fds[0].Revents != 0 {
		var nudges [64]byte
		if n, err := unix.Read(pipeFD, nudges[:]); n == 0 || err != nil && err != unix.EINTR && err != unix.EAGAIN {
			w.open = false
		}
	}

	if fds[1].Revents != 0 || w.handle < 0 && syscall.Getppid() != w.PID {
		w.dead = true
	}
}

const never = time.Duration(math.MaxInt64)

// ending is the state of the method end.
type ending struct {
	began  time.Duration
	killAt time.Duration // SIGKILL instead of SIGTERM from then on
	// From then on, the guard kills the node, too, if the node could still act: it no longer owns
	// its session.
	nodeAt time.Duration
	parted time.Duration // when the node died or closed the pipe; 0: neither
	found  int           // number of processes
	logged bool
	final  bool // neither the node nor its children can start anything more
}

// end kills every process that the session's commands have started. It reports whether the guard
// may bury the session, that is, delete its row.
func (w *watcher) end(now time.Duration) (bury bool) {
	e := ending{began: now, killAt: now + w.Grace, nodeAt: never}
	looks := 0 // number of consecutive looks that found nothing
	pause := firstLook
	checked := now
	for {
		now = w.look()
		phase := w.phase.Load()
		if phase == over {
			return false
		}

		w.hurry(&e, now, phase)
		if final := w.dead && !w.open || phase == emptied; final && !e.final {
			e.final, looks = true, 0 // only later looks count
		}

		seats := w.read()
		if looks < 2 || now-checked > calmLook || w.changed(seats) {
			checked = now
			failpoint.Here("before", "guard sweep")
			s := w.sweep(seats, w.signals(&e, now, phase))
			failpoint.Here("behind", "guard sweep")
			if looks++; !s.clean {
				looks = 0
			}
			if phase != inForce {
				w.noted.Store(1)
			}

			if s.fresh > 0 {
				pause = firstLook
			}
			e.found += s.fresh
		}

		switch {
		case looks >= 2 && w.dead && !w.open:
			w.log.Info("guard: all processes of the node's commands have ended", "processes", e.found, "after",
				(now - e.parted).Round(time.Millisecond).String())
			w.removeCgroups()
			return true
		case looks >= 2 && !w.dead && phase == emptied:
			w.swept.Store(1)
		}

		// A node that stopped while a handler went on has closed the pipe. The guard still has its
		// pidfd.
		if now >= e.nodeAt && (w.open || w.handle >= 0) && !w.dead && w.mayBegin(seats) {
			w.killNode()
		}

		if e.parted != 0 && now > max(e.parted+farewell, time.Duration(w.sent.Load())+w.Expiry) {
			w.log.Error("guard: giving up, the session has expired", "clean", looks >= 2, "node_dead", w.dead,
				"pipe_closed", !w.open)
			return false
		}

		if looks > 0 {
			pause = firstLook
			w.wait(map[bool]time.Duration{true: cleanLook, false: w.tick}[looks < 2])
			continue
		}

		w.wait(min(pause, max(e.killAt-now, firstLook)))
		pause = min(2*pause, lastLook)
	}
}

// signals selects the signals of a sweep. While the node still kills its own commands, the guard
// lets it go first. If the guard were faster, a child could end before the node has signalled it,
// and the node might record a success.
func (w *watcher) signals(e *ending, now time.Duration, phase int64) signals {
	alone := phase == inForce || w.dead
	return signals{kill: now >= e.killAt, groups: alone, others: alone || now > e.began+nodeFirst}
}

// hurry updates the deadlines of e, and logs the cause if the node cannot.
func (w *watcher) hurry(e *ending, now time.Duration, phase int64) {
	sent := time.Duration(w.sent.Load())
	cause := ""
	if now-sent > w.Kill {
		if phase == inForce {
			cause = "the lease expired, and the node does not respond"
		}
		w.lapsed.Store(1) // before the seats are read, so that an attempt with a later seat sees the lapse
		e.killAt = min(e.killAt, max(sent+w.Kill+w.Grace, e.began))
		// After the expiry, for example after a suspension, a kill would be too late anyway. Then
		// handlers get their time.
		if now-sent < w.Expiry {
			e.nodeAt = min(e.nodeAt, max(sent+w.End, e.began))
		}
	}

	if e.nodeAt == never && (w.lapsed.Load() != 0 || phase == losing || phase == emptied) {
		e.nodeAt = now + w.End - w.Kill
	}

	if e.parted == 0 && (w.dead || !w.open) {
		e.parted, e.logged = now, false
		e.killAt = min(e.killAt, now+politeness)
	}

	if w.dead {
		w.spared = w.spared[:2] // the node's number may belong to another process
	}

	switch {
	case w.dead:
		cause = "the node died"
	case e.parted != 0:
		cause = "the node ended without its commands"
	}

	if cause != "" && !e.logged {
		e.logged = true
		w.log.Warn("guard: killing the commands", "cause", cause, "running", len(w.read()), "lease_age",
			(now - sent).Round(time.Millisecond).String())
	}
}

// mayBegin reports whether the node does work that only its end would stop, or could begin such
// work when it goes on. A fork no longer counts once its process was seen.
func (w *watcher) mayBegin(seats []taken) bool {
	return slices.ContainsFunc(seats, func(t taken) bool {
		return t.inside == working || t.inside == forking && !w.forked[t.run]
	})
}

// killNode kills the node. It cannot hit another process: the guard has the node's pidfd, or the
// node is still its parent.
func (w *watcher) killNode() {
	w.log.Error("guard: killing the node: its session is lost, and it was starting a run " +
		"or its handlers did not return")
	if w.handle >= 0 {
		_ = unix.PidfdSendSignal(w.handle, unix.SIGKILL, nil, 0)
	} else if syscall.Getppid() == w.PID {
		_ = unix.Kill(w.PID, unix.SIGKILL)
	}
}
