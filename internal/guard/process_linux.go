package guard

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ticks is a start time of a process since boot, including suspensions of the machine.
type ticks int64

// clockTick is the length of a tick, on every architecture. slack is the largest error by
// rounding, in ticks.
const (
	clockTick = 10 * time.Millisecond
	slack     = 2
)

func ticksOf(d time.Duration) ticks { return ticks(d / clockTick) }

// process is a process as /proc shows it.
type process struct {
	pid, ppid, pgrp, session int

	state   byte
	flags   uint64
	threads int
	start   ticks
}

// alive reports whether the process lives. A zombie is dead, unless only its first thread has
// ended and other threads live.
func (p *process) alive() bool { return p.state != 'X' && (p.state != 'Z' || p.threads > 1) }

// kernel reports whether the process is a thread of the kernel.
func (p *process) kernel() bool {
	const flag = 0x00200000
	return p.flags&flag != 0
}

// processes lists all processes by number. vanished reports whether processes ended during the
// listing. Such a process may have left a child that is not in the list.
func processes() (all map[int]*process, vanished bool, err error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, false, err
	}
	defer dir.Close()

	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, false, err
	}

	all = make(map[int]*process, len(names))
	buf := make([]byte, 1024)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := stat(pid, buf); err == nil {
			all[pid] = p
		} else {
			vanished = true
		}
	}

	if all[os.Getpid()] == nil {
		return nil, false, errors.New("/proc does not show this process")
	}
	return all, vanished, nil
}

var errStat = errors.New("stat of a process cannot be read")

// stat reads /proc/<pid>/stat, using buf if it is not nil.
func stat(pid int, buf []byte) (*process, error) {
	if buf == nil {
		buf = make([]byte, 1024)
	}

	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)

	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil, err
	}
	return parseStat(pid, buf[:n])
}

// parseStat parses "pid (name) state ppid pgrp session …". The name may contain any bytes, even
// parentheses.
func parseStat(pid int, line []byte) (*process, error) {
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) < 20 {
		return nil, errStat
	}

	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i]))
		return n
	}

	flags, _ := strconv.ParseUint(string(fields[6]), 10, 64)
	return &process{
		pid: pid, state: fields[0][0], ppid: number(1), pgrp: number(2), session: number(3),
		flags: flags, threads: number(17), start: ticks(number(19)),
	}, nil
}
