package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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

	Keep     int           // bytes of output kept per attempt, half from the beginning, half from the end
	PipeWait time.Duration // how long what bash left behind may go on before it is ended

	Watch Watcher // told of every command; nil: nobody
}

// Watcher is told of every process group, for a guard that outlives this process to kill it. Watch comes right after
// the fork, when the command already runs: a guard that must not miss one looks for GOCRONTAB_LAUNCH as well. The
// function it returns is called as soon as the group is empty. Neither may block: both delay the attempt.
type Watcher interface {
	Watch(l job.Launch, pgid int) (empty func())
}

// Shell executes attempts with bash. Use NewShell.
type Shell struct {
	cfg  Config
	env  []string
	live running
	fork sync.Mutex // the runtime forks one at a time: who waits for that must not have asked before whether it may begin
}

// errLate is why an attempt that may not begin any more was not forked.
var errLate = errors.New("the node was too busy to begin it in time")

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
	env, err := environ(cfg.Bash, cfg.Env)
	if err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	if cfg.Dir == "" {
		cfg.Dir = "/"
		for _, pair := range env {
			home, ok := strings.CutPrefix(pair, "HOME=")
			if info, err := os.Stat(home); ok && err == nil && info.IsDir() {
				cfg.Dir = home
			}
		}
	}
	seal()
	return &Shell{cfg: cfg, env: env}, nil
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
		return job.Result{Outcome: job.Killed, Reason: reason(context.Cause(ctx).Error())}
	}
	if a.Grace <= 0 {
		a.Grace = DefaultGrace
	}
	g := s.live.enter()
	c, err := s.start(g, a)
	if err != nil {
		s.live.leave(g)
		if errors.Is(err, errLate) {
			return job.Result{Outcome: job.Missed, Reason: err.Error()}
		}
		return failed(err)
	}
	status, reapErr := c.untilExit(ctx)
	c.untilEmpty(ctx)
	s.live.leave(g)
	c.untilDrained()
	return c.result(status, reapErr)
}

// start forks the command. Nothing here is slow but the fork itself: the caller stands at the due instant.
func (s *Shell) start(g *group, a Attempt) (*command, error) {
	bash := s.cfg.Bash
	if !filepath.IsAbs(bash) { // not there when the node came up; never one from the directory we stand in
		path, err := look(bash)
		if err != nil {
			return nil, fmt.Errorf("start bash: %w", err)
		}
		bash = path
	}
	null, err := devNull()
	if err != nil {
		return nil, fmt.Errorf("start bash: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start bash: %w", err)
	}
	defer w.Close()
	// Fd puts our end of w into blocking mode, which bash shares: commands don't expect EAGAIN.
	attr := &syscall.ProcAttr{Dir: s.cfg.Dir, Env: about(a, s.env), Files: []uintptr{null.Fd(), w.Fd(), w.Fd()}}
	pid, exit, err := s.forkInTime(bash, attr, a)
	if errors.Is(err, errLate) {
		_ = r.Close()
		return nil, err
	}
	if err != nil {
		_ = r.Close()
		return nil, s.explain(err, a)
	}
	// If we die here, the command runs and nobody knows of it: the guard finds it by its GOCRONTAB_LAUNCH.
	g.forked(pid, exit)
	c := &command{Attempt: a, group: g, pipeWait: s.cfg.PipeWait, pipe: r, kept: newOutput(s.cfg.Keep)}
	if s.cfg.Watch != nil {
		c.unwatch = s.cfg.Watch.Watch(a.Launch, pid)
	}
	return c, nil
}

// forkInTime forks bash, unless the attempt may not begin any more by the time that it is its turn.
func (s *Shell) forkInTime(bash string, attr *syscall.ProcAttr, a Attempt) (pid int, exit *os.File, err error) {
	s.fork.Lock()
	defer s.fork.Unlock()
	if a.May != nil && !a.May() {
		return 0, nil, errLate
	}
	return fork(bash, []string{"bash", "-c", "--", a.Command}, attr)
}

// look finds a program and makes its path absolute.
func look(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// explain says why a fork was refused. The kernel's word alone is no help: "no such file" may mean bash or Dir.
func (s *Shell) explain(err error, a Attempt) error {
	switch {
	case errors.Is(err, unix.E2BIG):
		return fmt.Errorf("start bash: the command has %d bytes, more than the system lets one argument have", len(a.Command))
	case errors.Is(err, unix.EINVAL) && strings.ContainsRune(a.Command+a.Job+a.App, 0):
		return errors.New("start bash: the command or the job's name contains a NUL byte")
	case errors.Is(err, unix.EAGAIN):
		return errors.New("start bash: the limit of processes is reached")
	}
	if _, dirErr := os.Stat(s.cfg.Dir); dirErr != nil {
		return fmt.Errorf("start bash in its directory: %w", dirErr)
	}
	if _, bashErr := exec.LookPath(s.cfg.Bash); bashErr != nil {
		return fmt.Errorf("start bash: %w", bashErr)
	}
	return fmt.Errorf("start %s in %s: %w", s.cfg.Bash, s.cfg.Dir, err)
}

// devNull is every command's standard input.
var devNull = sync.OnceValues(func() (*os.File, error) { return os.Open(os.DevNull) })
