package execute

import (
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"go-crontab/job"
)

// limited is a bash's arguments for a command whose processes have limits of their own.
//
// They must hold before bash reads a byte of the command, and Go runs nothing between fork and exec. So a first bash
// sets them and becomes a second one, which gets the command as its argument: no text of a job is ever part of what
// the first one reads. Against the other ways: prlimit from here would come after the command has begun, and needs
// CAP_SYS_RESOURCE for another user's process; a stub of our own would cost the start of a Go program, and be a file
// that the other user may not be allowed to execute.
//
// The first bash is privileged (-p), so that BASH_ENV and functions out of the job's environment are not in its way.
// One that cannot set a limit kills itself: no exit code may look like the command's own.
func limited(l job.Limits, bash, command string) ([]string, error) {
	var set, posix []string // in POSIX mode, which the environment can ask for, some units are half as large
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

// cpuGrace is how many seconds of processor time a command has after its SIGXCPU before the kernel kills it.
const cpuGrace = 5

// atMost returns the node's own hard limit, or says that a job asks for more. Not even root raises it: what a job may
// have does not depend on as whom the node runs.
func atMost(limit int, name string, want int64, text string) (int64, error) {
	var own syscall.Rlimit
	if err := syscall.Getrlimit(limit, &own); err != nil {
		return 0, fmt.Errorf("limits.%s: read the node's own limit: %w", name, err)
	}
	hard := int64(min(own.Max, 1<<62)) // "unlimited" is the largest number there is
	if want > hard {
		if text == "" {
			text = fmt.Sprint(want)
		}
		return 0, fmt.Errorf("limits.%s: %s is more than this node may give: its own hard limit is %d; raise that, or lower the job's", name, text, hard)
	}
	return hard, nil
}

func deref(s *job.Size) job.Size {
	if s == nil {
		return 0
	}
	return *s
}

// exceeded says which limit a command ran into, if the way it ended tells. Bash adds 128 to the signal of a program
// that it has started.
func exceeded(l job.Limits, status syscall.WaitStatus) job.Reason {
	by := func(sig syscall.Signal) bool {
		return status.Signaled() && status.Signal() == sig || status.Exited() && status.ExitStatus() == 128+int(sig)
	}
	switch {
	case l.CPUSeconds != 0 && by(unix.SIGXCPU):
		return reason(job.ReasonCPULimit, fmt.Sprintf("it used more processor time than limits.cpu_seconds, %d", l.CPUSeconds))
	case l.FileSize != 0 && by(unix.SIGXFSZ):
		return reason(job.ReasonFileSizeLimit, fmt.Sprintf("it wrote a larger file than limits.file_size, %s", l.FileSize))
	}
	return job.Reason{}
}
