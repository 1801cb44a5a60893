package execute

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is a command's process group, from before its fork until it is empty.
//
// A group is named by a number. The kernel reuses a free number, and then a signal would hit an
// unrelated group. Until bash is reaped the number is certainly ours, even while bash is a zombie.
// In that time groups are signalled by number, and the mutex keeps reaping and signalling apart.
// After bash is reaped, the number stays taken while a member lives, but we do not see the death
// of the last member. So signalOrphans names the group by the pidfd of its dead leader. If the
// kernel cannot do that, signalOrphans first checks that no process has the number.
type group struct {
	mu     sync.Mutex // held during system calls, but only during calls that do not block
	cgroup *cgroup    // the command's own, set before the fork; nil: it has none
	pgid   int        // bash's pid; 0 until forked
	exit   *os.File   // bash's pidfd; nil on systems without one
	reaped bool
	gone   bool

	asked syscall.Signal // KillAll's signal during the fork; sent by forked
	cause error          // of the first KillAll that included the group; nil before
}

// forked notes bash's pid, and sends the signal that KillAll asked for during the fork.
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
	_ = g.send(sig) // ESRCH: too late; EPERM: another user's process, which empty still sees
}

// kill is signal for KillAll. It also notes the cause. During the fork, it leaves the signal to
// forked.
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

// killedBy returns the cause of the first KillAll that included the group, or nil.
func (g *group) killedBy() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cause
}

// send needs mu. After SIGTERM it sends SIGCONT, because a stopped process handles SIGTERM only
// once it continues.
func (g *group) send(sig syscall.Signal) error {
	if g.gone {
		return unix.ESRCH
	}
	if sig == unix.SIGKILL && g.cgroup != nil {
		go g.cgroup.kill() // may block in the kernel while another process changes cgroups
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

// reap collects bash, which must have exited. After that its number is no longer certainly ours.
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

// empty reports whether all processes of the group are dead; false before reap. With look, it also
// recognizes a group that has only zombies. For that it walks over the process table, which takes
// too long to hold mu.
func (g *group) empty(look bool) bool {
	if g.vacant() {
		return true
	}

	// Walk twice. During the first walk, a process may fork a child and then become a zombie, and
	// the walk can miss the child.
	if !look || !onlyZombies(g.pgid) || !onlyZombies(g.pgid) {
		return false
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	g.collect()
	return true
}

// vacant reports whether the group has no member. Zombies of other parents are members.
func (g *group) vacant() bool {
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

// collect needs mu. It reaps orphans of the group that became children of this process. That
// happens if this process is the init of its container or a subreaper. Then no other process reaps
// them.
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

// signalByNumber signals a group whose leader was reaped. If a process has the number as its pid,
// the kernel has reused the number, and nothing is signalled. One reuse remains unnoticed: such a
// process has already ended, and left processes in its own group.
func signalByNumber(pgid int, sig syscall.Signal) error {
	if err := unix.Kill(pgid, 0); !errors.Is(err, unix.ESRCH) {
		return unix.ESRCH
	}
	return unix.Kill(-pgid, sig)
}

// wait4 collects a child without blocking; pid is 0 when no child had exited.
func wait4(which int) (status syscall.WaitStatus, pid int, err error) {
	for {
		if pid, err = syscall.Wait4(which, &status, syscall.WNOHANG, nil); err != unix.EINTR {
			return status, pid, err
		}
	}
}
