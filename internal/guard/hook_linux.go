package guard

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"go-crontab/internal/boottime"
	"go-crontab/internal/failpoint"
	"go-crontab/internal/journal"
	"go-crontab/internal/logqueue"
)

// Descriptors of a guard, besides the null device and standard error.
const (
	memoryFD = 3
	pipeFD   = 4
	dsnFD    = 5
)

// A guard's exit codes.
const (
	exitDone   = 0
	exitFailed = 1
)

// init turns this process into a guard if it was started as one. It runs before main and before
// most packages of the program are initialised, which keeps a guard small.
func init() {
	switch os.Getenv(variable) {
	case stageWatch:
		hide()
		os.Exit(watch())
	case stageBury:
		hide() // and go on: OnBury is called once its dependencies are initialised
	}
}

// hide protects the process from signals to whole groups and from other processes of its own user.
// As far as the system allows, it also protects the process from a lack of memory and CPU.
func hide() {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGALRM)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0) // before Conceal: then only root may write it
	Conceal()
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -10)
	name := append([]byte(comm), 0)
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
}

// Conceal closes the memory, the descriptors and the environment of this process to other
// processes of its user. Otherwise a command that runs as the node's own user could find secrets
// there, such as the DSN. The kernel also no longer writes core files of the process. Children are
// not affected.
func Conceal() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// watch runs a guard and returns its exit code.
func watch() int {
	closeOthers()
	m, o, err := attach()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s=%s is only for internal use by go-crontab: %v\n", variable, stageWatch, err)
		return exitFailed
	}

	log, queue := o.logger(os.Stderr)
	defer queue.Flush(lastWords)
	w := newWatcher(m, o, log)
	if !w.run() {
		return exitDone
	}

	queue.Flush(lastWords)
	failpoint.Here("before", "guard burial")

	// Execute the program again: the same process with its descriptors, now with all packages.
	err = unix.Exec(selfExe, os.Args, environ(stageBury))
	w.log.Error("guard: cannot end the session, other nodes will end it when it expires", "error", err)
	return exitFailed
}

// closeOthers closes inherited descriptors. It keeps the files that this process has opened
// itself, which are close-on-exec.
func closeOthers() {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}

	for _, e := range open {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= dsnFD {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

// attach maps the memory that the node has prepared.
func attach() (*memory, *orders, error) {
	var st unix.Stat_t
	if err := unix.Fstat(memoryFD, &st); err != nil {
		return nil, nil, fmt.Errorf("no shared memory: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size < int64(sizeFor(1)) || st.Size > 1<<30 {
		return nil, nil, errors.New("no shared memory")
	}

	b, err := unix.Mmap(memoryFD, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map the shared memory: %w", err)
	}
	return open(b)
}

// dsn reads the DSN that the node has sent. The DSN has stayed in the socket until now, because a
// socket cannot be opened through /proc/PID/fd. In its first instants, this process was open to
// other processes of its user. Such a process could open its memory or a pipe in these instants,
// and read a DSN there later.
func dsn() (string, error) {
	var text [maxDSN]byte
	n := 0
	for n < len(text) {
		read, _, err := unix.Recvfrom(dsnFD, text[n:], unix.MSG_DONTWAIT)
		if err == unix.EINTR {
			continue
		}
		if err != nil || read == 0 { // the node has closed its end, or is dead
			break
		}
		n += read
	}

	if n == 0 {
		return "", errors.New("the node died before it could send the DSN")
	}
	return string(text[:n]), nil
}

// lastWords bounds how long a guard that ends waits for a slow reader of its log.
const lastWords = 200 * time.Millisecond

// logger makes a logger in the format of the node, which is dead or about to die. Standard error
// may be a pipe that nobody reads, and the killing of commands must not wait for a reader. So log
// lines are queued.
func (o *orders) logger(to io.Writer) (*slog.Logger, *logqueue.Writer) {
	handler := func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) }
	if o.JSON {
		handler = func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) }
	}
	if file, ok := to.(*os.File); ok && journal.Reads(file) {
		plain := handler
		handler = func(w io.Writer) slog.Handler { return journal.New(w, plain) }
	}

	queue := logqueue.New(to, logqueue.Room)
	queue.Notice = logqueue.Notice(handler)
	return slog.New(handler(queue)).With("node", o.Node, "session", o.Session), queue
}

// OnBury is called by the init function of a package that can reach MySQL. In a guard that has
// killed the commands of a dead node, it buries the session and ends the process. In other
// processes it does nothing.
func OnBury(bury func(Dead) error) {
	if os.Getenv(variable) != stageBury {
		return
	}

	m, o, err := attach()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s=%s is only for internal use by go-crontab: %v\n", variable, stageBury, err)
		os.Exit(exitFailed)
	}

	log, queue := o.logger(os.Stderr)
	dsn, err := dsn()
	if err != nil {
		log.Error("guard: cannot end the session, other nodes will end it when it expires", "error", err)
		queue.Flush(lastWords)
		os.Exit(exitFailed)
	}

	expires := time.Duration(m.sent.Load()) + o.Expiry
	err = bury(Dead{
		Session: o.Session, Node: o.Node, DSN: dsn, Expiry: o.Expiry, Log: log,
		Patience: max(expires-boottime.Now(), 0) + o.Grace,
	})
	if err != nil {
		log.Error("guard: cannot end the session, other nodes will end it when it expires", "error", err)
		queue.Flush(lastWords)
		os.Exit(exitFailed)
	}

	queue.Flush(lastWords)
	os.Exit(exitDone)
}

// node opens a pidfd of the node. A pidfd never means another process. handle is -1 if the system
// has no pidfds. gone reports whether the node is dead already.
func (o *orders) node() (handle int, gone bool) {
	handle, err := unix.PidfdOpen(o.PID, 0)
	if err != nil {
		handle = -1
	}
	return handle, syscall.Getppid() != o.PID || err == unix.ESRCH
}
