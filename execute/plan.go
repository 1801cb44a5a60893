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

// plan is how one command is started.
type plan struct {
	bash       string
	argv       []string
	dir        string
	env        []string
	credential *syscall.Credential // nil: as the node's own user
	cgroup     *cgroup             // of its own; nil: none
	common     *os.File            // that of all commands of its session; nil: none
}

// plan works out what an attempt's options mean on this node, and makes its cgroup.
func (s *Shell) plan(ctx context.Context, a Attempt) (*plan, error) {
	p := &plan{bash: s.cfg.Bash, dir: s.cfg.Dir}
	o := &a.Options
	if !filepath.IsAbs(p.bash) { // not there when the node came up; never one from the directory we stand in
		path, err := look(p.bash)
		if err != nil {
			return nil, fmt.Errorf("start bash: %w", err)
		}
		p.bash = path
	}
	who, err := s.account(o.User)
	if err != nil {
		return nil, job.Coded(job.ReasonUserRefused, err)
	}
	own := s.env
	if who != nil {
		p.credential = who.credential()
		p.dir = who.home
		own = withVariables(own, who.environ())
	}
	if o.Dir != "" {
		p.dir = o.Dir
	}
	there, err := s.folders.await(ctx, a, p.dir)
	if err != nil {
		return nil, err
	}
	if o.Dir == "" && who != nil && (!there || !filepath.IsAbs(p.dir)) { // a home that is none
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

// makeCgroup is that of an attempt with limits for all of its processes.
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

// own lets the user that a command runs as open our end of a pipe, and so the pipe. Otherwise the command could not
// open its own /dev/stdout. Without CAP_CHOWN the pipe stays the node's and everybody may open it; but a pipe has no
// name, and only the user of a process that holds it can get there through /proc/PID/fd.
func (p *plan) own(f *os.File) {
	if p.credential == nil {
		return
	}
	if f.Chown(int(p.credential.Uid), int(p.credential.Gid)) != nil {
		_ = f.Chmod(0o666)
	}
}

// homeOr is a home directory, or what stands in for one that is none.
func homeOr(home, otherwise string) string {
	if info, err := os.Stat(home); err != nil || !info.IsDir() || !filepath.IsAbs(home) {
		return otherwise
	}
	return home
}

// withVariables sets variables in an environment, which stays as it is.
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
