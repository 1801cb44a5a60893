package execute

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is the process group of one command, from before its fork until it is empty.
//
// A group is named by a number that the kernel gives to somebody else once it is free, and a signal sent then kills
// a stranger. The number is ours for sure as long as bash was not reaped, a zombie included: until then groups are
// signalled by number, and reaping excludes signalling. After that the number stays taken while a member lives, but
// nothing tells us when the last one dies, so signalOrphans names the group by the pidfd of its dead leader, or, on
// a kernel that cannot do that, first checks that no process bears the number.
type group struct {
	mu     sync.Mutex // held over system calls, but only ones that do not block
	cgroup *cgroup    // set before the fork; nil: it has none of its own
	pgid   int        // bash's pid; 0 until forked
	exit   *os.File   // bash's pidfd; nil where there is none
	reaped bool
	gone   bool

	asked syscall.Signal // by KillAll before the fork came back; delivered by forked
	cause error          // of the first KillAll that met the group; nil if none did
}

// forked says that bash runs as pid and delivers what was asked meanwhile.
func (g *group) forked(pid int, exit *os.File) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pgid, g.exit = pid, exit
	if g.asked != 0 {
		_ = g.send(g.asked)
	}
}

// signal sends sig to every process of the group, or to none when the group is gone.
func (g *group) signal(sig syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.send(sig) // ESRCH: too late; EPERM: another user's, empty() goes on seeing it
}

// kill is signal on behalf of KillAll.
func (g *group) kill(sig syscall.Signal, cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cause == nil {
		g.cause = cause
	}
	if g.pgid == 0 {
		if g.asked != unix.SIGKILL {
			g.asked = sig
		}
		return
	}
	_ = g.send(sig)
}

// killedBy returns the cause of the first KillAll that met the group, or nil.
func (g *group) killedBy() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cause
}

// send needs mu. A terminated process that is stopped acts only when it is continued.
func (g *group) send(sig syscall.Signal) error {
	if g.gone {
		return unix.ESRCH
	}
	if sig == unix.SIGKILL && g.cgroup != nil {
		go g.cgroup.kill() // the kernel may have it wait for others who change cgroups
	}
	err := g.sendOne(sig)
	if sig == unix.SIGTERM && err == nil {
		_ = g.sendOne(unix.SIGCONT)
	}
	return err
}

func (g *group) sendOne(sig syscall.Signal) error {
	if g.reaped {
		return signalOrphans(g.exit, g.pgid, sig)
	}
	return unix.Kill(-g.pgid, sig)
}

// reap collects bash, which must have exited, and so gives up the right to its number.
func (g *group) reap() (syscall.WaitStatus, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reaped = true
	status, pid, err := wait4(g.pgid)
	if err == nil && pid != g.pgid {
		err = unix.ECHILD
	}
	return status, err
}

// empty tells whether nothing of the group lives. Before reap the answer is false. With look it also sees that all
// members are zombies, which needs a walk through the process table, and so must not happen under mu.
func (g *group) empty(look bool) bool {
	if g.nobody() {
		return true
	}
	// Twice: the first walk may miss who was forked during it, by somebody who was a zombie when it came to him.
	if !look || !onlyZombies(g.pgid) || !onlyZombies(g.pgid) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.collect()
	return true
}

// nobody tells whether the group has no member, not even a zombie of somebody else's.
func (g *group) nobody() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.reaped {
		return false
	}
	if errors.Is(g.sendOne(0), unix.ESRCH) {
		return true
	}
	g.collect()
	return errors.Is(g.sendOne(0), unix.ESRCH)
}

// collect needs mu. It reaps the orphans of the group, if they became ours: when this process is the init of its container or a
// subreaper, nobody else will.
func (g *group) collect() {
	for {
		if _, pid, err := wait4(-g.pgid); err != nil || pid <= 0 {
			return
		}
	}
}

// close forgets the group, which must be empty.
func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	if g.exit != nil {
		_ = g.exit.Close()
	}
}

// signalByNumber signals the group of a leader that was reaped. Its number can be somebody else's only if it was
// handed out again, and then a process bears it (or bore it and left its own group behind, all since the last look).
func signalByNumber(pgid int, sig syscall.Signal) error {
	if err := unix.Kill(pgid, 0); !errors.Is(err, unix.ESRCH) {
		return unix.ESRCH
	}
	return unix.Kill(-pgid, sig)
}

// wait4 collects a child without blocking; pid is 0 when there was none to collect.
func wait4(which int) (status syscall.WaitStatus, pid int, err error) {
	for {
		if pid, err = syscall.Wait4(which, &status, syscall.WNOHANG, nil); err != unix.EINTR {
			return status, pid, err
		}
	}
}
