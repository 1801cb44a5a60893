package execute

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// fork starts argv as the leader of its own group. If `as` is not nil, the process runs as that
// user. Darwin has no pidfds and no cgroups.
func fork(
	path string, argv []string, attr *syscall.ProcAttr, as *syscall.Credential, _ *os.File,
) (pid int, exit *os.File, err error) {
	attr.Sys = &syscall.SysProcAttr{Setpgid: true, Credential: as}
	pid, err = syscall.ForkExec(path, argv, attr)
	return pid, nil, err
}

// awaitExit returns when bash has exited, and does not reap bash. Darwin's waitid also returns for
// a process that was only stopped, so awaitExit watches bash with a kqueue.
func (g *group) awaitExit() {
	kq, err := unix.Kqueue()
	for err != nil { // no descriptor is free: wait for one
		time.Sleep(50 * time.Millisecond)
		kq, err = unix.Kqueue()
	}
	defer unix.Close(kq)
	unix.CloseOnExec(kq)
	watch := []unix.Kevent_t{{
		Ident: uint64(g.pgid), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT,
	}}
	event := make([]unix.Kevent_t, 1)
	for {
		if _, err := unix.Kevent(kq, watch, event, nil); err != unix.EINTR {
			return // an exit, or ESRCH: it is a zombie already
		}
	}
}

func signalOrphans(_ *os.File, pgid int, sig syscall.Signal) error { return signalByNumber(pgid, sig) }

// onlyZombies returns false: launchd collects every orphan at once.
func onlyZombies(int) bool { return false }
