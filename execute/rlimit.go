package execute

import (
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"go-crontab/job"
)

// limited returns bash's arguments for a command with limits for each of its processes.
//
// The limits must hold before bash reads the command, and Go runs nothing between fork and exec.
// So a first bash sets the limits and execs a second one, which gets the command as its argument.
// The first bash never reads a job's text as code. The alternatives are worse. prlimit from here
// would come after the command has begun, and needs CAP_SYS_RESOURCE for another user's process. A
// stub of our own would cost the start of a Go program, and the other user may not be allowed to
// execute its file.
//
// The first bash is privileged (-p), so it ignores BASH_ENV and functions in the job's
// environment. If it cannot set a limit, it kills itself. It does not exit with a code, because
// that could be taken for the command's.
func limited(l job.Limits, bash, command string) ([]string, error) {
	var set, posix []string // some units are half as large in POSIX mode, which the environment can set
	add := func(option string, n int64, halves int64) {
		set = append(set, fmt.Sprintf("ulimit %s %d", option, n))
		posix = append(posix, fmt.Sprintf("ulimit %s %d", option, n*halves))
	}

	if l.OpenFiles != 0 {
		if _, err := atMost(unix.RLIMIT_NOFILE, "open_files", int64(l.OpenFiles), ""); err != nil {
			return nil, err
		}
		add("-n", int64(l.OpenFiles), 1)
	}

	if l.CPUSeconds != 0 {
		hard, err := atMost(unix.RLIMIT_CPU, "cpu_seconds", int64(l.CPUSeconds), "")
		if err != nil {
			return nil, err
		}
		add("-S -t", int64(l.CPUSeconds), 1)
		add("-H -t", min(hard, int64(l.CPUSeconds)+cpuGrace), 1)
	}

	for _, size := range []struct {
		limit  int
		name   string
		option string
		value  job.Size
		set    bool
		halves int64
	}{
		{unix.RLIMIT_FSIZE, "file_size", "-f", l.FileSize, l.FileSize != 0, 2},
		{unix.RLIMIT_AS, "address_space", "-v", l.AddressSpace, l.AddressSpace != 0, 1},
		{unix.RLIMIT_CORE, "core", "-c", deref(l.Core), l.Core != nil, 2},
	} {
		if !size.set {
			continue
		}
		if _, err := atMost(size.limit, size.name, int64(size.value), size.value.String()); err != nil {
			return nil, err
		}
		add(size.option, int64(size.value)/1024, size.halves)
	}

	script := fmt.Sprintf(`if [[ -o posix ]]; then %s; else %s; fi && exec -a bash -- "$0" -c -- "$1"; kill -KILL $$`,
		strings.Join(posix, " && "), strings.Join(set, " && "))
	return []string{"bash", "-p", "-c", "--", script, bash, command}, nil
}

// cpuGrace is the processor time, in seconds, between a command's SIGXCPU and the kernel's SIGKILL.
const cpuGrace = 5

// atMost returns the node's own hard limit, or an error if a job wants more. A node that runs as
// root does not raise its limit either, so the limits that a job may have do not depend on the
// node's user.
func atMost(limit int, name string, want int64, text string) (int64, error) {
	var own syscall.Rlimit
	if err := syscall.Getrlimit(limit, &own); err != nil {
		return 0, fmt.Errorf("limits.%s: read the node's own limit: %w", name, err)
	}

	hard := int64(min(own.Max, 1<<62)) // "unlimited" is the largest number
	if want > hard {
		if text == "" {
			text = fmt.Sprint(want)
		}
		return 0, fmt.Errorf("limits.%s: %s is more than this node's own hard limit, %d; "+
			"raise the node's limit, or lower the job's", name, text, hard)
	}
	return hard, nil
}

func deref(s *job.Size) job.Size {
	if s == nil {
		return 0
	}
	return *s
}

// exceeded returns a reason if the command's exit status shows that it hit a limit. If a signal
// ended a program that bash started, bash exits with 128 plus the signal.
func exceeded(l job.Limits, status syscall.WaitStatus) job.Reason {
	by := func(sig syscall.Signal) bool {
		return status.Signaled() && status.Signal() == sig || status.Exited() && status.ExitStatus() == 128+int(sig)
	}

	switch {
	case l.CPUSeconds != 0 && by(unix.SIGXCPU):
		return reason(job.ReasonCPULimit,
			fmt.Sprintf("it used more CPU time than limits.cpu_seconds (%d)", l.CPUSeconds))
	case l.FileSize != 0 && by(unix.SIGXFSZ):
		return reason(job.ReasonFileSizeLimit,
			fmt.Sprintf("it tried to write a file larger than limits.file_size (%s)", l.FileSize))
	}
	return job.Reason{}
}
