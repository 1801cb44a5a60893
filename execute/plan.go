package execute

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"go-crontab/job"
)

// plan has the parameters of one command's fork.
type plan struct {
	bash       string
	argv       []string
	dir        string
	env        []string
	credential *syscall.Credential // nil: as the node's own user
	cgroup     *cgroup             // the attempt's own; nil: none
	common     *os.File            // the cgroup of all commands of the session; nil: none
}

// plan turns an attempt's options into a plan for this node, and creates the attempt's cgroup.
func (s *Shell) plan(ctx context.Context, a Attempt) (*plan, error) {
	p := &plan{bash: s.cfg.Bash, dir: s.cfg.Dir}
	o := &a.Options

	if !filepath.IsAbs(p.bash) { // missing at the node's start; look takes no bash from the working directory
		path, err := look(p.bash)
		if err != nil {
			return nil, fmt.Errorf("start bash: %w", err)
		}
		p.bash = path
	}

	as, err := s.account(o.User)
	if err != nil {
		return nil, job.Coded(job.ReasonUserRefused, err)
	}
	own := s.env
	if as != nil {
		p.credential = as.credential()
		p.dir = as.home
		own = withVariables(own, as.environ())
	}

	if o.Dir != "" {
		p.dir = o.Dir
	}
	there, err := s.folders.await(ctx, a, p.dir)
	if err != nil {
		return nil, err
	}
	if o.Dir == "" && as != nil && (!there || !filepath.IsAbs(p.dir)) { // the user has no usable home
		p.dir = "/"
	}

	p.env = about(a, withVariables(own, o.Env))
	p.argv = []string{"bash", "-c", "--", a.Command}
	if o.Limits.Each() {
		if p.argv, err = limited(o.Limits, p.bash, a.Command); err != nil {
			return nil, job.Coded(job.ReasonLimitUnavailable, err)
		}
	}

	switch {
	case o.Limits.Shared():
		if p.cgroup, err = s.makeCgroup(a, o.Limits); err != nil {
			return nil, job.Coded(job.ReasonLimitUnavailable, err)
		}
	case s.cgroups != nil:
		p.common = s.cgroups.ofSession(a.Session)
	}
	return p, nil
}

// makeCgroup creates the cgroup of an attempt with shared limits.
func (s *Shell) makeCgroup(a Attempt, limits job.Limits) (*cgroup, error) {
	if s.cgroups != nil {
		return s.cgroups.create(a.Session, a.Launch.Run, limits)
	}
	first := "pids"
	switch {
	case limits.Memory != 0:
		first = "memory"
	case limits.CPU != 0:
		first = "cpu"
	}
	return nil, unheld(first, s.noCgroups)
}

// own gives the pipe to the command's user, so that the command can open its own /dev/stdout.
// Without CAP_CHOWN the pipe stays the node's, and every user may open it. That is safe, because a
// pipe has no name: it can be opened only through /proc/PID/fd of a process that holds it, and
// only by the user of that process.
func (p *plan) own(f *os.File) {
	if p.credential == nil {
		return
	}
	if f.Chown(int(p.credential.Uid), int(p.credential.Gid)) != nil {
		_ = f.Chmod(0o666)
	}
}

// homeOr returns home if home is a directory with an absolute path. If not, it returns the other
// path.
func homeOr(home, otherwise string) string {
	if info, err := os.Stat(home); err != nil || !info.IsDir() || !filepath.IsAbs(home) {
		return otherwise
	}
	return home
}

// withVariables returns a copy of env with the variables set.
func withVariables(env []string, set map[string]string) []string {
	if len(set) == 0 {
		return env
	}
	out := make([]string, 0, len(env)+len(set))
	for _, pair := range env {
		if _, replaced := set[variable(pair)]; !replaced {
			out = append(out, pair)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		out = append(out, name+"="+set[name])
	}
	return out
}
