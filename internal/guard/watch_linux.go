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

// watcher is the guard's end.
type watcher struct {
	*memory
	*orders
	log    *slog.Logger
	handle int  // of the node; -1: none
	open   bool // the pipe
	dead   bool // the node

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
	// mostTick is between two looks at the lease, at most.
	mostTick = 250 * time.Millisecond
	// politeness is what commands of a dead node get between SIGTERM and SIGKILL.
	politeness = 500 * time.Millisecond
	// nodeFirst is what a node gets that asks its commands itself.
	nodeFirst = 100 * time.Millisecond
	// farewell is how long it takes at most until a node that has closed the pipe is seen to be dead.
	farewell = 10 * time.Second
	// Between looks at what is being killed, and at what is clean.
	firstLook, lastLook = time.Millisecond, 250 * time.Millisecond
	cleanLook, calmLook = 10 * time.Millisecond, time.Second
)

// run watches until there is nothing left to guard, and tells whether the session is to be buried.
func (w *watcher) run() (bury bool) {
	late := w.Kill + 2*w.tick // the node's own watchdog comes first
	for {
		now := w.look()
		left := time.Duration(w.sent.Load()) + late - now
		phase := w.phase.Load()
		switch {
		case phase == over:
			return false
		case left <= 0:
			w.lapsed.Store(1) // for good: a beat that is answered between this look and the next comes too late
			return w.end(now)
		case !w.open, w.dead, phase != inForce:
			return w.end(now)
		}
		w.wait(min(w.tick, left))
	}
}

// look tells the node that we live.
func (w *watcher) look() time.Duration {
	now := boottime.Now()
	w.looked.Store(int64(now))
	return now
}

// wait sleeps until something happens, or for a while.
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

// ending is how the commands come to their end.
type ending struct {
	began  time.Duration
	killAt time.Duration // from then on with SIGKILL
	nodeAt time.Duration // from then on the node, too, if it must: once its session is not its own any more
	parted time.Duration // when the node was dead, or the pipe closed; 0: neither
	found  int           // processes
	said   bool
	final  bool // neither the node nor a child of its can begin anything more
}

// end kills what the session's commands have started, and tells whether the session is to be buried.
func (w *watcher) end(now time.Duration) (bury bool) {
	e := ending{began: now, killAt: now + w.Grace, nodeAt: never}
	looks := 0 // at which nothing was left
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
			e.final, looks = true, 0 // only looks behind this count
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
			w.log.Info("guard: nothing of the node's commands lives", "processes", e.found, "after", (now - e.parted).Round(time.Millisecond).String())
			w.removeCgroups()
			return true
		case looks >= 2 && !w.dead && phase == emptied:
			w.swept.Store(1)
		}
		// A node that has stopped while a handler stayed has closed the pipe, and is known by its handle.
		if now >= e.nodeAt && (w.open || w.handle >= 0) && !w.dead && w.mayBegin(seats) {
			w.killNode()
		}
		if e.parted != 0 && now > max(e.parted+farewell, time.Duration(w.sent.Load())+w.Expiry) {
			w.log.Error("guard: giving up: the session has expired", "clean", looks >= 2, "node_dead", w.dead, "pipe_closed", !w.open)
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

// signals says whom to signal how. A node that kills its commands comes first: one whose child ends before it was asked
// to end itself might take that for its own success.
func (w *watcher) signals(e *ending, now time.Duration, phase int64) signals {
	alone := phase == inForce || w.dead
	return signals{kill: now >= e.killAt, groups: alone, others: alone || now > e.began+nodeFirst}
}

// hurry sees what has happened, and says what the node does not say itself.
func (w *watcher) hurry(e *ending, now time.Duration, phase int64) {
	sent := time.Duration(w.sent.Load())
	cause := ""
	if now-sent > w.Kill {
		if phase == inForce {
			cause = "the lease lapsed, and the node does nothing"
		}
		w.lapsed.Store(1) // before the seats are read: who takes one later sees it
		e.killAt = min(e.killAt, max(sent+w.Kill+w.Grace, e.began))
		if now-sent < w.Expiry { // else it is too late to be in time, as after a suspension: handlers get theirs
			e.nodeAt = min(e.nodeAt, max(sent+w.End, e.began))
		}
	}
	if e.nodeAt == never && (w.lapsed.Load() != 0 || phase == losing || phase == emptied) {
		e.nodeAt = now + w.End - w.Kill
	}
	if e.parted == 0 && (w.dead || !w.open) {
		e.parted, e.said = now, false
		e.killAt = min(e.killAt, now+politeness)
	}
	if w.dead {
		w.spared = w.spared[:2] // its number may be anybody's
	}
	switch {
	case w.dead:
		cause = "the node died"
	case e.parted != 0:
		cause = "the node stopped without them"
	}
	if cause != "" && !e.said {
		e.said = true
		w.log.Warn("guard: killing the commands", "cause", cause, "running", len(w.read()), "lease_age", (now - sent).Round(time.Millisecond).String())
	}
}

// mayBegin tells whether the node itself does something, or could when it goes on, that only its end would stop. Who was
// stopped in the middle of a fork has made it.
func (w *watcher) mayBegin(seats []taken) bool {
	return slices.ContainsFunc(seats, func(t taken) bool { return t.inside == working || t.inside == forking && !w.forked[t.launch] })
}

// killNode kills the node, which holds the pipe and so is the process that started us.
func (w *watcher) killNode() {
	w.log.Error("guard: killing the node: it was about to start something, or its handlers did not return, and its session is not its own any more")
	if w.handle >= 0 {
		_ = unix.PidfdSendSignal(w.handle, unix.SIGKILL, nil, 0)
	} else if syscall.Getppid() == w.PID {
		_ = unix.Kill(w.PID, unix.SIGKILL)
	}
}
