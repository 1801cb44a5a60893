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

// Config says how commands are run. The zero value is ready for use.
type Config struct {
	Bash string   // path of bash; "": looked up in PATH
	Dir  string   // where commands begin; "": HOME, or / where that is none
	Env  []string // NAME=value, beside what is inherited

	RunAs    string   // user or user:group that commands run as when their job names no user; "": the node's own
	Allow    []string // users that commands may run as at all, by name or id; none: RunAs, without that anybody whom this process may become
	NewPrivs bool     // commands may gain rights by setuid programs and by capabilities of files

	Cgroup string // folder of a cgroup v2 that is this process's alone; "": the one that it is in, if it was delegated

	Keep     int           // bytes of output kept per attempt, half from the beginning, half from the end
	PipeWait time.Duration // how long what bash left behind may go on before it is ended
}

// Shell executes attempts with bash. Use NewShell.
type Shell struct {
	cfg   Config
	env   []string
	usual *account // of commands whose job names no user; nil: the node's own
	null  *os.File // the standard input of every command that is given nothing to read
	live  running

	cgroups   *cgroups // nil where there are none to use,
	noCgroups error    // and why

	folders folders
	fork    chan struct{} // holds what who forks takes: the guard counts on it that only one is forked at a time
}

// Why an attempt was not forked that has waited for its turn.
var (
	errLate    = errors.New("the node was too busy to begin it in time")
	errStopped = errors.New("it was to stop before it began")
)

// NewShell checks cfg and marks this process's descriptors above 2 close-on-exec. A missing bash is no error here:
// it is one of every attempt until there is one.
func NewShell(cfg Config) (*Shell, error) {
	if cfg.Keep < 0 || cfg.PipeWait < 0 {
		return nil, fmt.Errorf("shell: keep %d bytes, wait %v for the pipe: want neither below 0", cfg.Keep, cfg.PipeWait)
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
			return nil, fmt.Errorf("shell: run-as-allow %q: want names or ids of users", cfg.Allow)
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
	if s.cgroups, s.noCgroups = openCgroups(cfg.Cgroup, "/proc"); s.noCgroups != nil && cfg.Cgroup != "" {
		return nil, fmt.Errorf("shell: %w", s.noCgroups)
	}
	if s.null, err = os.Open(os.DevNull); err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	return s, nil
}

// Execute runs the attempt's command and returns when its process group is empty. The umask is the daemon's: a
// process has one for all its threads.
//
//   - Succeeded: bash exited with 0. Failed: with anything else, or by a signal that nobody here sent, or it could
//     not be started.
//   - TimedOut, Killed: the timeout passed; ctx ended or KillAll came. The group gets SIGTERM, SIGKILL after the
//     grace; the exit code or signal is what came of that.
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

// start forks the command. Nothing here is slow but the fork itself, and looking up another user: the caller stands at
// the due instant.
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
	c := &command{Attempt: a, group: g, pipeWait: s.cfg.PipeWait, kept: newOutput(s.cfg.Keep), cgroup: p.cgroup}
	c.kept.sink, c.kept.hiding = a.Sink, a.known.hiding()
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
		defer stdin.Close() // else who writes would not notice that nobody reads
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start bash: %w", err)
	}
	c.pipe = r
	defer w.Close()
	p.own(w)
	// Fd puts our end of w into blocking mode, which bash shares: commands don't expect EAGAIN.
	attr := &syscall.ProcAttr{Dir: p.dir, Env: p.env, Files: []uintptr{stdin.Fd(), w.Fd(), w.Fd()}}
	if p.cgroup != nil {
		g.cgroup = p.cgroup // before KillAll may look for it: it has no process yet
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

// forkInTime forks bash, unless the attempt may not begin any more by the time that it is its turn.
func (s *Shell) forkInTime(ctx context.Context, p *plan, attr *syscall.ProcAttr, a Attempt) (pid int, exit *os.File, err error) {
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
	// If we die before this, the command runs and its group is unknown: the guard finds it by its GOCRONTAB_SEAT.
	failpoint.Here("behind", "fork")
	a.Seat.Forked(pid)
	failpoint.Here("behind", "seat")
	return pid, exit, nil
}

// forkPlan forks bash without any right of the node's. A command cannot gain rights either, unless the operator allows it.
func (s *Shell) forkPlan(p *plan, attr *syscall.ProcAttr, in *os.File) (pid int, exit *os.File, err error) {
	start := privilege.StartConfined
	if s.cfg.NewPrivs {
		start = privilege.Start
	}
	start(func() { pid, exit, err = fork(p.bash, p.argv, attr, p.credential, in) })
	return pid, exit, err
}

// await returns once c has something, or with errLate when the attempt may not begin any more, or with errStopped when it
// itself was killed. Whatever hangs, nobody waits behind it for longer.
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
		if a.May != nil && !a.May() { // nothing may begin here any more: its due time is given back
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

// explain says why a fork was refused. The kernel's word alone is no help: "no such file" may mean bash or the folder.
func (s *Shell) explain(err error, a Attempt, p *plan) error {
	switch {
	case p.cgroup != nil && ofCgroup(err):
		return job.Coded(job.ReasonLimitUnavailable, p.cgroup.explain(err))
	case errors.Is(err, unix.E2BIG) && a.known != nil:
		return fmt.Errorf("start bash: the command, with %d bytes, and its variables are more than the system takes; give it what is large by stdin", len(a.Command))
	case errors.Is(err, unix.E2BIG):
		return fmt.Errorf("start bash: the command has %d bytes, more than the system lets one argument have", len(a.Command))
	case errors.Is(err, unix.EINVAL) && strings.ContainsRune(a.Command+a.Job+a.App, 0):
		return errors.New("start bash: the command or the job's name contains a NUL byte")
	case errors.Is(err, unix.EAGAIN):
		return errors.New("start bash: the limit of processes is reached")
	}
	if info, dirErr := os.Stat(p.dir); dirErr != nil {
		return job.Coded(job.ReasonDirectoryUnavailable, fmt.Errorf("start bash in its directory: %w", dirErr))
	} else if !info.IsDir() {
		return job.Coded(job.ReasonDirectoryUnavailable, fmt.Errorf("start bash in its directory: %s is none", p.dir))
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

// input is what a command reads. The caller closes it once the command has it, unless it is the one for all.
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
