package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"go-crontab/internal/failpoint"
	"go-crontab/internal/privilege"
	"go-crontab/job"
)

// Defaults of Config and of Attempt.Grace.
const (
	DefaultKeep     = 64 << 10
	DefaultGrace    = 5 * time.Second
	DefaultPipeWait = 2 * time.Second
)

// Config configures a Shell. The zero value is ready for use.
type Config struct {
	Bash string   // path of bash; "": looked up in PATH
	Dir  string   // working directory of commands; "": HOME, or / if HOME is no directory
	Env  []string // NAME=value, added to the inherited variables

	RunAs    string   // user or user:group for jobs that name no user; "": the node's own user
	Allow    []string // users, by name or id, that commands may run as; none: RunAs only, or any user without RunAs
	NewPrivs bool     // commands may gain rights by setuid programs and by capabilities of files

	Cgroup string // folder of a cgroup v2 for this process alone; "": the current one of the process, if delegated

	Keep     int           // bytes of output kept per attempt, half from the beginning, half from the end
	PipeWait time.Duration // time for processes that outlive bash, before they are ended
}

// Shell executes attempts with bash. Use NewShell.
type Shell struct {
	cfg   Config
	env   []string
	usual *account // for jobs that name no user; nil: the node's own
	null  *os.File // the standard input of commands without input
	live  running

	cgroups   *cgroups // nil: this node has no usable cgroup
	noCgroups error    // the reason why cgroups is nil

	folders folders
	fork    chan struct{} // holds one token, so that forks come one at a time, as the guard needs
}

// Reasons why a waiting attempt was not forked.
var (
	errLate    = errors.New("the node was too busy to start it in time")
	errStopped = errors.New("it was stopped before it started")
)

// NewShell checks cfg and marks this process's descriptors above 2 close-on-exec. A missing bash
// is not an error here. Until bash is installed, each attempt fails.
func NewShell(cfg Config) (*Shell, error) {
	s, err := newShell(cfg)
	if err != nil {
		return nil, err
	}

	if s.cgroups, s.noCgroups = openCgroups(cfg.Cgroup, "/proc"); s.noCgroups != nil && cfg.Cgroup != "" {
		return nil, fmt.Errorf("shell: %w", s.noCgroups)
	}
	if s.null, err = os.Open(os.DevNull); err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	return s, nil
}

// CheckShell reports what is wrong with a configuration. Unlike NewShell, it does not look at the
// cgroup, which NewShell prepares.
func CheckShell(cfg Config) error {
	_, err := newShell(cfg)
	return err
}

// newShell makes a shell without its cgroup.
func newShell(cfg Config) (*Shell, error) {
	if cfg.Keep < 0 || cfg.PipeWait < 0 {
		return nil, fmt.Errorf("shell: keep %d bytes, wait %v for the pipe: neither may be negative",
			cfg.Keep, cfg.PipeWait)
	}

	if cfg.Keep == 0 {
		cfg.Keep = DefaultKeep
	}
	if cfg.PipeWait == 0 {
		cfg.PipeWait = DefaultPipeWait
	}
	if cfg.Bash == "" {
		cfg.Bash = "bash"
	}
	if path, err := look(cfg.Bash); err == nil {
		cfg.Bash = path
	}

	cfg.Allow = slices.Clone(cfg.Allow)
	for i, name := range cfg.Allow {
		if cfg.Allow[i] = strings.TrimSpace(name); cfg.Allow[i] == "" {
			return nil, fmt.Errorf("--run-as-allow %q: want the names or ids of users", cfg.Allow)
		}
	}

	env, err := environ(cfg.Bash, cfg.Env)
	if err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	if cfg.Dir == "" {
		cfg.Dir = "/"
		for _, pair := range env {
			if home, ok := strings.CutPrefix(pair, "HOME="); ok {
				cfg.Dir = homeOr(home, "/")
			}
		}
	}

	seal()
	s := &Shell{cfg: cfg, env: env, folders: newFolders(), fork: make(chan struct{}, 1)}
	s.fork <- struct{}{}
	if err := s.settleAccounts(); err != nil {
		return nil, err
	}
	return s, nil
}

// Execute runs the attempt's command and returns when its process group is empty. The command has
// the umask of the daemon, because a process has one umask for all its threads.
//
//   - Succeeded: bash exited with 0, or with a status that the job accepts.
//   - Skipped: bash exited with a status by which the job says that there was nothing to do.
//   - Failed: bash exited with another status, was ended by a signal that this package did not send, or did not start.
//   - TimedOut, Killed: the timeout passed; ctx ended or KillAll was called. The group gets SIGTERM, and SIGKILL after
//     the grace. The result has bash's exit code or signal after these signals.
func (s *Shell) Execute(ctx context.Context, a Attempt) job.Result {
	if ctx.Err() != nil {
		return killed(ctx)
	}
	if a.Grace <= 0 {
		a.Grace = DefaultGrace
	}

	g := s.live.enter()
	c, err := s.start(ctx, g, a)
	if err != nil {
		s.live.leave(g)
		switch {
		case errors.Is(err, errLate):
			return job.Result{Outcome: job.Missed, Reason: reason("", err.Error())}
		case errors.Is(err, errStopped):
			return killed(ctx)
		}
		return failed(job.ReasonStartFailed, err)
	}

	status, reapErr := c.untilExit(ctx)
	c.untilEmpty(ctx)
	c.leaveCgroup()
	s.live.leave(g)
	c.untilDrained()
	return c.result(status, reapErr)
}

// start plans and forks the command. It runs at the due instant, so it must be fast. Only three
// steps may be slow: the fork, the lookup of another user, and the check of a folder.
func (s *Shell) start(ctx context.Context, g *group, a Attempt) (*command, error) {
	p, err := s.plan(ctx, a)
	if err != nil {
		return nil, err
	}
	return s.begin(ctx, g, a, p)
}

// begin forks the command as planned.
func (s *Shell) begin(ctx context.Context, g *group, a Attempt, p *plan) (_ *command, err error) {
	if a.Seat == nil {
		a.Seat = unguarded{}
	}
	c := &command{Attempt: a, group: g, pipeWait: s.cfg.PipeWait, kept: newCapture(s.cfg.Keep, &a), cgroup: p.cgroup}
	defer func() {
		if err != nil {
			c.unstarted()
		}
	}()

	stdin, shared, err := c.input(p, s.null)
	if err != nil {
		return nil, fmt.Errorf("start bash: %w", err)
	}
	if !shared {
		defer stdin.Close() // if we kept it open, the writer would not notice that the command stopped reading
	}

	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start bash: %w", err)
	}
	c.pipe = r
	defer w.Close()
	p.own(w)

	stderr := w
	if a.Output.MarkStderr {
		if c.stderr, stderr, err = os.Pipe(); err != nil {
			return nil, fmt.Errorf("start bash: %w", err)
		}
		defer stderr.Close()
		p.own(stderr)
	}

	// Fd puts our end of w into blocking mode. Bash shares that mode, and commands don't expect EAGAIN.
	attr := &syscall.ProcAttr{Dir: p.dir, Env: p.env, Files: []uintptr{stdin.Fd(), w.Fd(), stderr.Fd()}}
	if p.cgroup != nil {
		g.cgroup = p.cgroup // before the fork, so that KillAll sees it
	}

	pid, exit, err := s.forkInTime(ctx, p, attr, a)
	if errors.Is(err, errLate) || errors.Is(err, errStopped) {
		return nil, err
	}
	if err != nil {
		return nil, s.explain(err, a, p)
	}
	g.forked(pid, exit)
	return c, nil
}

// forkInTime waits for its turn and forks bash. If the attempt may no longer begin when its turn
// comes, forkInTime forks nothing.
func (s *Shell) forkInTime(
	ctx context.Context, p *plan, attr *syscall.ProcAttr, a Attempt,
) (pid int, exit *os.File, err error) {
	if err := a.await(ctx, s.fork, a.BeginBy); err != nil {
		return 0, nil, err
	}
	defer func() { s.fork <- struct{}{} }()

	a.Seat.Inside(true)
	if a.May != nil && !a.May() {
		a.Seat.Inside(false)
		return 0, nil, errLate
	}

	in := p.common
	if p.cgroup != nil {
		in = p.cgroup.fd
	}

	failpoint.Here("before", "fork")
	pid, exit, err = s.forkPlan(p, attr, in)
	if err != nil && in != nil && in == p.common {
		if other, again := s.cgroups.instead(a.Session, err); again {
			pid, exit, err = s.forkPlan(p, attr, other)
		}
	}
	if err != nil {
		a.Seat.Inside(false)
		return 0, nil, err
	}

	// If we die before Forked, the command runs in a group that the guard does not know. The guard
	// finds the command by its GOCRONTAB_SEAT.
	failpoint.Here("behind", "fork")
	a.Seat.Forked(pid)
	failpoint.Here("behind", "seat")
	return pid, exit, nil
}

// forkPlan forks bash without the node's rights. A command cannot gain rights, unless the operator allows it
// (NewPrivs).
func (s *Shell) forkPlan(p *plan, attr *syscall.ProcAttr, in *os.File) (pid int, exit *os.File, err error) {
	start := privilege.StartConfined
	if s.cfg.NewPrivs {
		start = privilege.Start
	}
	start(func() { pid, exit, err = fork(p.bash, p.argv, attr, p.credential, in) })
	return pid, exit, err
}

// await receives from c. It returns errLate when the attempt may no longer begin, and errStopped
// when the attempt itself was killed. So another attempt that hangs cannot hold up this one for
// longer.
func (a *Attempt) await(ctx context.Context, c <-chan struct{}, by time.Time) error {
	var late <-chan time.Time
	if !by.IsZero() {
		t := time.NewTimer(time.Until(by))
		defer t.Stop()
		late = t.C
	}

	select {
	case <-c:
		return nil
	case <-late:
		return errLate
	case <-ctx.Done():
		if a.May != nil && !a.May() { // this node may begin nothing more, so the run is given back
			return errLate
		}
		return errStopped
	}
}

// look finds a program and makes its path absolute.
func look(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// explain returns an error with the cause of a failed fork. The kernel's error alone is ambiguous: "no such file" may
// mean bash or the directory.
func (s *Shell) explain(err error, a Attempt, p *plan) error {
	switch {
	case p.cgroup != nil && ofCgroup(err):
		return job.Coded(job.ReasonLimitUnavailable, p.cgroup.explain(err))
	case errors.Is(err, unix.E2BIG) && a.known != nil:
		return fmt.Errorf("start bash: the command (%d bytes) and its variables exceed the system's limit; "+
			"pass large values in stdin", len(a.Command))
	case errors.Is(err, unix.E2BIG):
		return fmt.Errorf("start bash: the command has %d bytes, which exceeds the system's limit for one argument",
			len(a.Command))
	case errors.Is(err, unix.EINVAL) && strings.ContainsRune(a.Command+a.Job+a.App, 0):
		return errors.New("start bash: the command or the job's name contains a NUL byte")
	case errors.Is(err, unix.EAGAIN):
		return errors.New("start bash: the process limit is reached")
	}

	if info, dirErr := os.Stat(p.dir); dirErr != nil {
		return job.Coded(job.ReasonDirectoryUnavailable, fmt.Errorf("directory: %w", dirErr))
	} else if !info.IsDir() {
		return job.Coded(job.ReasonDirectoryUnavailable, fmt.Errorf("directory: %s is not a directory", p.dir))
	}
	if _, bashErr := exec.LookPath(s.cfg.Bash); bashErr != nil {
		return fmt.Errorf("start bash: %w", bashErr)
	}

	as := ""
	if p.credential != nil {
		as = fmt.Sprintf(" as user %d, group %d", p.credential.Uid, p.credential.Gid)
	}
	if p.cgroup != nil {
		as += " in cgroup " + p.cgroup.dir
	}
	return fmt.Errorf("start %s in %s%s: %w", s.cfg.Bash, p.dir, as, err)
}

// input returns a command's standard input. If shared is false, the caller closes it after the
// fork.
func (c *command) input(p *plan, null *os.File) (f *os.File, shared bool, err error) {
	if c.Options.Stdin == "" {
		return null, true, nil
	}
	f, c.fed, err = feed(c.Options.Stdin)
	if err == nil {
		p.own(f)
	}
	return f, false, err
}
