package execute

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// fork starts argv as the leader of its own process group. The process runs as the user `as`, in
// the cgroup `in`. If one is nil, the process keeps the node's. exit is the pidfd of the process, or
// nil on kernels before 5.4.
func fork(
	path string, argv []string, attr *syscall.ProcAttr, as *syscall.Credential, in *os.File,
) (pid int, exit *os.File, err error) {
	fd := -1
	attr.Sys = &syscall.SysProcAttr{Setpgid: true, PidFD: &fd, Credential: as}
	if in != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(in.Fd())
	}
	pid, err = syscall.ForkExec(path, argv, attr)
	if err != nil || fd < 0 {
		return pid, nil, err
	}

	// Non-blocking for the netpoller: while a command runs for hours, a goroutine waits and no
	// thread.
	_ = unix.SetNonblock(fd, true)
	return pid, os.NewFile(uintptr(fd), "pidfd"), nil
}

// awaitExit returns when bash has exited, and does not reap bash.
func (g *group) awaitExit() {
	if g.exit != nil && pollExit(g.exit) {
		return
	}
	for {
		err := unix.Waitid(unix.P_PID, g.pgid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return // ECHILD: other code reaped it, which reap reports
		}
	}
}

// pollExit waits for the exit of a pidfd's process. It returns false if this kernel cannot do
// that.
func pollExit(exit *os.File) bool {
	raw, err := exit.SyscallConn()
	if err != nil {
		return false
	}

	var waitErr error
	err = raw.Read(func(fd uintptr) bool {
		var info unix.Siginfo
		waitErr = unix.Waitid(unix.P_PIDFD, int(fd), &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
		switch waitErr {
		case nil:
			return info.Signo != 0
		case unix.EINTR, unix.EAGAIN:
			return false
		}
		return true
	})
	return err == nil && waitErr == nil
}

// signalOrphans signals a group whose leader was reaped. Linux 6.9 and later can name the group by
// the leader's pidfd, which never means another process.
func signalOrphans(exit *os.File, pgid int, sig syscall.Signal) error {
	if exit == nil {
		return signalByNumber(pgid, sig)
	}
	raw, err := exit.SyscallConn()
	if err != nil {
		return signalByNumber(pgid, sig)
	}

	sent := error(unix.EBADF)
	_ = raw.Control(func(fd uintptr) {
		sent = unix.PidfdSendSignal(int(fd), sig, nil, unix.PIDFD_SIGNAL_PROCESS_GROUP)
	})
	if sent == nil || sent == unix.ESRCH {
		return sent
	}
	return signalByNumber(pgid, sig) // EINVAL: an older kernel; ENOSYS, EPERM: a container's filter
}

// onlyZombies reports whether the group has members and all are zombies. A zombie stays until its
// parent collects it. An improper init of a container never does. A signal cannot tell zombies
// from living processes.
func onlyZombies(pgid int) bool {
	dir, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return false
	}

	zombies := 0
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // the process has ended
		}

		switch state, group := parseStat(stat); {
		case group != pgid:
		case state == 'Z' || state == 'X':
			zombies++
		default:
			return false
		}
	}
	return zombies > 0
}

// parseStat reads the state and process group from a /proc/<pid>/stat: "pid (name) state ppid pgrp …". The name may
// contain any characters, even parentheses.
func parseStat(stat []byte) (state byte, pgid int) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return 0, 0
	}
	pgid, _ = strconv.Atoi(string(fields[2]))
	return fields[0][0], pgid
}
