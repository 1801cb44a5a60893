package execute

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"go-crontab/job"
)

// cgroups is the part of the cgroup v2 tree that belongs to this node. Each attempt with shared limits for its
// processes gets its own cgroup:
//
//	base                     delegated to the node; its controllers are enabled for its children
//	├── go-crontab           the node, if it was in base: a cgroup whose children have limits may not have processes
//	├── run-<session>        a session's commands without limits, so that the guard finds all processes
//	└── run-<session>-<run>  one attempt
type cgroups struct {
	base string
	lack map[string]error // why each controller cannot be used; nil: it can

	mu     sync.Mutex
	common commonCgroup
	refuse bool // this node cannot start processes in a cgroup

	kernel
}

// commonCgroup holds a session's commands without limits.
type commonCgroup struct {
	session uuid.UUID
	dir     string
	fd      *os.File // nil: it could not be created
}

// kernel changes the cgroup tree. The real kernel creates and removes the files in the folders by
// itself, and reacts to each write.
type kernel interface {
	mkdir(dir string) error
	rmdir(dir string) error
	write(dir, file, value string) error // creates no file: a missing file means an unsupported setting
}

// cgroupfs is the real kernel.
type cgroupfs struct{}

func (cgroupfs) mkdir(dir string) error { return os.Mkdir(dir, 0o755) }
func (cgroupfs) rmdir(dir string) error { return unix.Rmdir(dir) }

func (cgroupfs) write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(value)
	return err
}

const (
	nodeCgroup  = "go-crontab"
	runCgroup   = "run-"
	howDelegate = `; let systemd delegate one (Delegate=yes in the unit), or name one of the node's own with --cgroup`
)

var controllers = []string{"memory", "cpu", "pids"}

// openCgroups prepares the cgroup dir. If dir is empty, it prepares this process's cgroup, if that
// was delegated. If necessary it moves this process into a child cgroup. proc is the path of
// /proc.
func openCgroups(dir, proc string) (*cgroups, error) {
	own, err := ownCgroup(proc)
	if dir == "" {
		if err != nil {
			return nil, err
		}
		switch {
		case delegated(own):
			dir = own
		case filepath.Base(own) == nodeCgroup && delegated(filepath.Dir(own)): // DelegateSubgroup=go-crontab
			dir = filepath.Dir(own)
		default:
			return nil, fmt.Errorf("cgroup %s is shared with other processes%s", own, howDelegate)
		}
	}

	c := &cgroups{base: filepath.Clean(dir), kernel: cgroupfs{}}
	if err := c.prepare(own); err != nil {
		return nil, err
	}
	c.sweep(time.Now())
	return c, nil
}

// ownCgroup returns the folder of this process's cgroup v2.
func ownCgroup(proc string) (string, error) {
	mount, root, err := cgroupMount(filepath.Join(proc, "self/mountinfo"))
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(proc, "self/cgroup"))
	if err != nil {
		return "", fmt.Errorf("find the node's cgroup: %w", err)
	}

	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !ok {
			continue
		}
		below, err := filepath.Rel(root, path)
		if err != nil || strings.HasPrefix(below, "..") {
			return "", fmt.Errorf("the node's cgroup %s is outside the cgroup tree mounted at %s%s",
				path, mount, howDelegate)
		}
		return filepath.Join(mount, below), nil
	}
	return "", errors.New("this node's process is not in a cgroup v2")
}

// cgroupMount returns the mount point of cgroup v2, and the root of the mounted part.
func cgroupMount(mountinfo string) (mount, root string, err error) {
	f, err := os.Open(mountinfo)
	if err != nil {
		return "", "", errors.New("this system has no cgroup v2")
	}
	defer f.Close()

	for s := bufio.NewScanner(f); s.Scan(); {
		before, after, ok := strings.Cut(s.Text(), " - ")
		fields := strings.Fields(before) // id, parent, device, root, mount point, options …
		if ok && len(fields) >= 6 && strings.HasPrefix(after, "cgroup2 ") {
			if slices.Contains(strings.Split(fields[5], ","), "ro") {
				return "", "", fmt.Errorf("cgroup v2 is mounted read-only at %s, which is usual in containers; "+
					"mount it writable and name a cgroup with --cgroup", fields[4])
			}
			return fields[4], fields[3], nil
		}
	}
	return "", "", errors.New("this system has no cgroup v2")
}

// delegated reports whether systemd marked a cgroup as delegated. Systemd leaves the children of
// such a cgroup alone.
func delegated(dir string) bool {
	value := make([]byte, 8)
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// prepare enables the controllers that limits need. For each controller that cannot be used, c.lack says why. own is
// this process's cgroup.
func (c *cgroups) prepare(own string) error {
	text, err := os.ReadFile(filepath.Join(c.base, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("%s is not a usable cgroup v2: %w", c.base, err)
	}

	there := strings.Fields(string(text))
	c.lack = map[string]error{}
	for _, name := range controllers {
		if !slices.Contains(there, name) {
			c.lack[name] = fmt.Errorf("cgroup %s has no %s controller: it was not delegated, or cgroup v1 uses it "+
				"(then boot with systemd.unified_cgroup_hierarchy=1)", c.base, name)
			continue
		}

		err := c.enable(name)
		if errors.Is(err, unix.EBUSY) && own == c.base {
			if err = c.stepAside(); err == nil {
				err = c.enable(name)
			}
		}

		switch {
		case errors.Is(err, unix.EBUSY):
			err = fmt.Errorf("cgroup %s has other processes besides the node%s", c.base, howDelegate)
		case err != nil:
			err = fmt.Errorf("this node cannot change cgroup %s: %w%s", c.base, err, howDelegate)
		}
		c.lack[name] = err
	}
	return nil
}

// enable enables a controller for the children of base.
func (c *cgroups) enable(controller string) error {
	const file = "cgroup.subtree_control"
	on, err := os.ReadFile(filepath.Join(c.base, file))
	if err == nil && slices.Contains(strings.Fields(string(on)), controller) {
		return nil
	}
	return c.write(c.base, file, "+"+controller)
}

// stepAside moves this process, with all threads, from base into a child cgroup.
func (c *cgroups) stepAside() error {
	dir := filepath.Join(c.base, nodeCgroup)
	if err := c.mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return c.write(dir, "cgroup.procs", strconv.Itoa(os.Getpid()))
}

// youngCgroup is the age up to which an empty cgroup is kept, because another node on this machine
// may have just created it.
const youngCgroup = time.Minute

// sweep removes the cgroups of killed nodes. rmdir refuses cgroups with living processes, so these
// stay.
func (c *cgroups) sweep(now time.Time) {
	entries, err := os.ReadDir(c.base)
	if err != nil {
		return
	}

	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), runCgroup) {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > youngCgroup {
			_ = c.rmdir(filepath.Join(c.base, e.Name()))
		}
	}
}

// ofSession returns the cgroup for those commands of a session that have no limits; nil: they stay
// in the node's own cgroup.
func (c *cgroups) ofSession(id uuid.UUID) *os.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse {
		return nil
	}
	if c.common.session == id {
		return c.common.fd
	}

	if c.common.fd != nil { // an earlier session's cgroup, whose commands are dead
		_ = c.common.fd.Close()
		_ = c.rmdir(c.common.dir) // refused while a daemon that a command started lives in it
	}

	c.common = commonCgroup{session: id, dir: c.prefix(id)}
	if err := c.mkdir(c.common.dir); err == nil || errors.Is(err, fs.ErrExist) {
		c.common.fd, _ = os.Open(c.common.dir)
	}
	return c.common.fd
}

// instead is called after a fork into a session's cgroup failed. again reports whether the cgroup
// was the cause. other is the cgroup for the next try. If the cgroup was removed, a new one
// replaces it. If it still exists, other is nil, and this node uses no common cgroup from now on.
// The command loses nothing, because it has no limits.
func (c *cgroups) instead(id uuid.UUID, why error) (other *os.File, again bool) {
	c.mu.Lock()
	_, err := os.Stat(c.prefix(id)) // the fork's "no such file" may also mean bash
	removed := errors.Is(err, fs.ErrNotExist)
	if again = removed || ofCgroup(why); again {
		c.refuse = c.refuse || !removed
		c.common = commonCgroup{} // not closed, because another fork may be using it: the garbage collector closes it
	}
	c.mu.Unlock()

	if !again {
		return nil, false
	}
	return c.ofSession(id), true
}

// prefix is the common prefix of the folders of a session's cgroups.
func (c *cgroups) prefix(id uuid.UUID) string { return filepath.Join(c.base, runCgroup+id.String()) }

// Cgroups returns the common prefix of the folders of a session's cgroups, "" if this node has none.
func (s *Shell) Cgroups(session uuid.UUID) string {
	if s.cgroups == nil {
		return ""
	}
	return s.cgroups.prefix(session)
}

// cgroup is one attempt's cgroup, from before the fork until all of its processes are dead.
type cgroup struct {
	in     *cgroups
	dir    string
	limits job.Limits
	fd     *os.File // for the fork
}

// cpuPeriod is the accounting period of the CPU limit, in microseconds.
const cpuPeriod = 100_000

// create creates the cgroup of an attempt. If we die afterwards, the sweep of a later session
// removes it.
func (c *cgroups) create(session uuid.UUID, run int64, limits job.Limits) (*cgroup, error) {
	for _, need := range []struct {
		controller string
		set        bool
	}{{"memory", limits.Memory != 0}, {"cpu", limits.CPU != 0}, {"pids", limits.PIDs != 0}} {
		if need.set && c.lack[need.controller] != nil {
			return nil, unheld(need.controller, c.lack[need.controller])
		}
	}

	g := &cgroup{in: c, dir: c.prefix(session) + "-" + job.RunID(run), limits: limits}
	if err := c.mkdir(g.dir); err != nil {
		return nil, fmt.Errorf("limits: create a cgroup: %w", err)
	}

	err := g.setLimits()
	if err == nil {
		g.fd, err = os.Open(g.dir)
	}
	if err != nil {
		_ = c.rmdir(g.dir)
		return nil, fmt.Errorf("limits: %w", err)
	}
	return g, nil
}

// unheld is the error of an attempt whose limits this node cannot enforce. Such an attempt does
// not start.
func unheld(limit string, why error) error {
	return fmt.Errorf("this node cannot enforce limits.%s: %w", limit, why)
}

func (g *cgroup) setLimits() error {
	if g.limits.Memory != 0 {
		if err := g.in.write(g.dir, "memory.max", strconv.FormatInt(int64(g.limits.Memory), 10)); err != nil {
			return err
		}
		// Swap would make the limit too generous. With memory.oom.group the OOM killer ends the
		// whole command, because a command that has lost one of its processes is useless. Some
		// kernels lack these files.
		for file, value := range map[string]string{"memory.swap.max": "0", "memory.oom.group": "1"} {
			if err := g.in.write(g.dir, file, value); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if g.limits.CPU != 0 {
		quota := strconv.FormatInt(int64(g.limits.CPU*cpuPeriod), 10)
		if err := g.in.write(g.dir, "cpu.max", quota+" "+strconv.Itoa(cpuPeriod)); err != nil {
			return err
		}
	}
	if g.limits.PIDs != 0 {
		return g.in.write(g.dir, "pids.max", strconv.Itoa(g.limits.PIDs))
	}
	return nil
}

// kill sends SIGKILL to everything in the cgroup, whatever process group or session it is in.
func (g *cgroup) kill() {
	if g.in.write(g.dir, "cgroup.kill", "1") == nil {
		return
	}

	// The kernel is older than 5.14. Processes that are forked during this kill survive until the
	// next.
	text, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	if err != nil {
		return
	}
	for pid := range strings.FieldsSeq(string(text)) {
		if n, err := strconv.Atoi(pid); err == nil && n > 0 {
			_ = unix.Kill(n, unix.SIGKILL)
		}
	}
}

// populated reports whether the cgroup has living processes; false if the cgroup is gone.
func (g *cgroup) populated() bool { return g.count("cgroup.events", "populated") != 0 }

// exceeded returns a reason for each shared limit that the command hit.
func (g *cgroup) exceeded() (found []job.Reason) {
	if g.limits.Memory != 0 && g.count("memory.events", "oom_kill") > 0 {
		if g.count("memory.events", "oom") > 0 {
			found = append(found, reason(job.ReasonMemoryLimit,
				fmt.Sprintf("it used more memory than limits.memory (%s)", g.limits.Memory)))
		} else {
			found = append(found, reason(job.ReasonMachineMemory, "the machine ran out of memory"))
		}
	}
	if n := g.count("pids.events", "max"); g.limits.PIDs != 0 && n > 0 {
		found = append(found, reason(job.ReasonPIDsLimit,
			fmt.Sprintf("limits.pids (%d) refused it a new process %s", g.limits.PIDs, times(n))))
	}
	return found
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// count reads the number after a name in a file of names and numbers; 0: the name is missing.
func (g *cgroup) count(file, name string) int64 {
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}

// remove deletes the cgroup. Its processes are dead. If that fails, a later sweep deletes it.
func (g *cgroup) remove() {
	_ = g.fd.Close()
	_ = g.in.rmdir(g.dir)
}

// ofCgroup reports whether only the target cgroup can have caused a fork's error.
func ofCgroup(err error) bool {
	for _, errno := range []error{unix.ENOSYS, unix.EBADF, unix.EBUSY, unix.ENODEV, unix.EOPNOTSUPP} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// explain returns an error that names the cause and the fix of a failed fork into the cgroup.
func (g *cgroup) explain(err error) error {
	if errors.Is(err, unix.ENOSYS) {
		return errors.New("limits: this node cannot start a process in a cgroup: that needs Linux 5.7 or newer, " +
			"and a container that allows clone3")
	}
	return fmt.Errorf("limits: start bash in cgroup %s: %w", g.dir, err)
}
