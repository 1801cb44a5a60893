package execute

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"go-crontab/job"
)

// tree is a fake cgroup tree: a folder with the files that the kernel would create.
type tree struct {
	t     testing.TB
	base  string
	files map[string]string // of a new cgroup
	busy  bool              // rmdir is refused
	wrote []string          // file=value
}

func newTree(t testing.TB, controllers string) *tree {
	t.Helper()
	k := &tree{t: t, base: t.TempDir(), files: map[string]string{
		"cgroup.procs": "", "cgroup.kill": "", "cgroup.events": "populated 0\nfrozen 0\n", "memory.max": "max\n", "memory.swap.max": "max\n",
		"memory.oom.group": "0\n", "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n", "cpu.max": "max 100000\n", "pids.max": "max\n", "pids.events": "max 0\n",
	}}
	k.put(k.base, "cgroup.controllers", controllers+"\n")
	k.put(k.base, "cgroup.subtree_control", "")
	k.put(k.base, "cgroup.procs", "")
	return k
}

func (k *tree) put(dir, file, text string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

func (k *tree) mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for file, text := range k.files {
		k.put(dir, file, text)
	}
	return nil
}

func (k *tree) rmdir(dir string) error {
	if k.busy {
		return unix.EBUSY
	}
	return os.RemoveAll(dir)
}

// write acts as the kernel does where it matters here: a cgroup with processes in it takes no controllers for what is
// below, and a process is in one cgroup at a time.
func (k *tree) write(dir, file, value string) error {
	k.wrote = append(k.wrote, file+"="+value)
	procs := filepath.Join(k.base, "cgroup.procs")
	inBase, err := os.ReadFile(procs)
	if err != nil {
		return err
	}
	if file == "cgroup.subtree_control" && len(inBase) > 0 {
		return &os.PathError{Op: "write", Path: file, Err: unix.EBUSY}
	}
	if file == "cgroup.procs" {
		k.put(k.base, file, strings.ReplaceAll(string(inBase), value+"\n", ""))
	}
	if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, file), []byte(value), 0o600)
}

// open prepares the tree; own is the cgroup of this process.
func (k *tree) open(own string) (*cgroups, error) {
	c := &cgroups{base: k.base, kernel: k}
	return c, c.prepare(own)
}

func (k *tree) want(dir, file, want string) {
	k.t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, file))
	if got := strings.TrimSpace(string(text)); err != nil || got != want {
		k.t.Errorf("%s: got %q, %v, want %q", file, got, err, want)
	}
}

func TestOwnCgroup(t *testing.T) {
	t.Parallel()
	const mounts = `22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/root rw
31 23 0:28 / /sys/fs/cgroup ro,nosuid shared:4 - tmpfs tmpfs ro,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
`

	for name, c := range map[string]struct{ mountinfo, cgroup, want, err string }{
		"the only one": {"30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n", "0::/system.slice/go-crontab.service\n",
			"/sys/fs/cgroup/system.slice/go-crontab.service", ""},
		"beside cgroup v1": {mounts + "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:5 - cgroup2 cgroup2 rw\n",
			"9:name=systemd:/a\n4:memory:/b\n0::/a\n", "/sys/fs/cgroup/unified/a", ""},
		"at the root":          {mounts + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", "0::/\n", "/sys/fs/cgroup/unified", ""},
		"a part is mounted":    {"30 23 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/docker/1/x\n", "/sys/fs/cgroup/x", ""},
		"outside of that part": {"30 23 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/docker/2\n", "", "is outside the cgroup tree mounted"},
		"read-only":            {"30 23 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n", "0::/\n", "", "mounted read-only at /sys/fs/cgroup"},
		"cgroup v1 alone":      {mounts, "4:memory:/b\n", "", "this system has no cgroup v2"},
		"in none":              {"30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "4:memory:/b\n", "", "is not in a cgroup v2"},
	} {
		proc := t.TempDir()
		if err := os.Mkdir(filepath.Join(proc, "self"), 0o700); err != nil {
			t.Fatal(err)
		}
		k := &tree{t: t}
		k.put(proc, "self/mountinfo", c.mountinfo)
		k.put(proc, "self/cgroup", c.cgroup)
		got, err := ownCgroup(proc)
		if got != c.want || c.err == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %q, %v, want %q, %q", name, got, err, c.want, c.err)
		}
	}

	if _, err := openCgroups("", t.TempDir()); err == nil || !strings.Contains(err.Error(), "this system has no cgroup v2") {
		t.Errorf("without /proc: got %v", err)
	}
}

func TestCgroupsOfAFolderThatIsNone(t *testing.T) {
	t.Parallel()
	if _, err := NewShell(Config{Cgroup: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "is not a usable cgroup v2") {
		t.Errorf("got %v", err)
	}
}

func TestWhatAnAttemptsCgroupHolds(t *testing.T) {
	t.Parallel()
	k := newTree(t, "cpuset cpu io memory pids")
	c, err := k.open("/elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range controllers {
		if c.lack[name] != nil {
			t.Errorf("%s: %v", name, c.lack[name])
		}
	}
	a := attempt("")
	g, err := c.create(a.Session, a.Launch.Run, job.Limits{Memory: 512 << 20, CPU: 1.5, PIDs: 20})
	if err != nil {
		t.Fatal(err)
	}
	if g.dir != filepath.Join(k.base, "run-"+a.Session.String()+"-"+job.RunID(a.Launch.Run)) {
		t.Errorf("it is %s", g.dir)
	}
	k.want(g.dir, "memory.max", "536870912")
	k.want(g.dir, "memory.swap.max", "0")
	k.want(g.dir, "memory.oom.group", "1")
	k.want(g.dir, "cpu.max", "150000 100000")
	k.want(g.dir, "pids.max", "20")
	if info, err := g.fd.Stat(); err != nil || !info.IsDir() {
		t.Errorf("its descriptor: %v, %v", info, err)
	}
	if why := g.exceeded(); why != nil || g.populated() {
		t.Errorf("new: got %q, populated %v", why, g.populated())
	}
	if _, err := c.create(a.Session, a.Launch.Run, job.Limits{PIDs: 1}); err == nil {
		t.Error("a cgroup that is there was taken for new")
	}
	g.remove()
	if _, err := os.Stat(g.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after it: %v", err)
	}

	// Limits that the job does not set stay unchanged, and optional files that the kernel lacks are no error.
	delete(k.files, "memory.swap.max")
	delete(k.files, "memory.oom.group")
	g, err = c.create(a.Session, a.Launch.Run, job.Limits{Memory: 1 << 20, CPU: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	k.want(g.dir, "memory.max", "1048576")
	k.want(g.dir, "cpu.max", "1000 100000")
	k.want(g.dir, "pids.max", "max")
	g.remove()
	delete(k.files, "memory.max")
	if _, err := c.create(a.Session, a.Launch.Run, job.Limits{Memory: 1 << 20}); err == nil || !strings.Contains(err.Error(), "memory.max") {
		t.Errorf("without memory.max: got %v", err)
	}
	if _, err := os.Stat(g.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after a failure: %v", err)
	}
}

func TestExceededSharedLimits(t *testing.T) {
	t.Parallel()
	a, all := attempt(""), job.Limits{Memory: 1 << 30, PIDs: 5}

	for name, c := range map[string]struct {
		limits       job.Limits
		memory, pids string
		want         string
		code         job.ReasonCode // of a command that then ended with an exit code
	}{
		"nothing":             {all, "max 9\noom 0\noom_kill 0\n", "max 0\n", "exit status 1", job.ReasonExitCode},
		"its memory":          {all, "max 9\noom 1\noom_kill 3\n", "max 0\n", "exit status 1; it used more memory than limits.memory (1GiB)", job.ReasonMemoryLimit},
		"that of the machine": {all, "max 0\noom 0\noom_kill 1\n", "max 0\n", "exit status 1; the machine ran out of memory", job.ReasonMachineMemory},
		"processes":           {all, "oom_kill 0\n", "max 7\n", "exit status 1; limits.pids (5) refused it a new process 7 times", job.ReasonExitCode},
		"both": {all, "oom 1\noom_kill 1\n", "max 1\n",
			"exit status 1; it used more memory than limits.memory (1GiB); limits.pids (5) refused it a new process once", job.ReasonMemoryLimit},
		"what was not limited":       {job.Limits{CPU: 1}, "oom 1\noom_kill 1\n", "max 1\n", "exit status 1", job.ReasonExitCode},
		"files that are not as here": {all, "oom_kill\n\noom_kill many\n", "", "exit status 1", job.ReasonExitCode},
	} {
		k := newTree(t, "memory pids cpu")
		k.files["memory.events"], k.files["pids.events"] = c.memory, c.pids
		tree, err := k.open("")
		if err != nil {
			t.Fatal(err)
		}
		g, err := tree.create(a.Session, a.Launch.Run, c.limits)
		if err != nil {
			t.Fatal(err)
		}
		if got := combined(reason(job.ReasonExitCode, "exit status 1"), g.exceeded()); got != (job.Reason{Code: c.code, Text: c.want}) {
			t.Errorf("%s: got %s %q, want %s %q", name, got.Code, got, c.code, c.want)
		}
		g.remove()
	}
}

// A limit that cannot be enforced is an error with its cause. The command never runs without it.
func TestControllersThatAreNotThere(t *testing.T) {
	t.Parallel()
	a, k := attempt(""), newTree(t, "pids hugetlb")
	c, err := k.open("")
	if err != nil {
		t.Fatal(err)
	}
	for limit, l := range map[string]job.Limits{"memory": {Memory: 1 << 30, PIDs: 1}, "cpu": {CPU: 1}} {
		_, err := c.create(a.Session, a.Launch.Run, l)
		want := "this node cannot enforce limits." + limit + ": cgroup " + k.base + " has no " + limit + " controller"
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s…", err, want)
		}
	}
	g, err := c.create(a.Session, a.Launch.Run, job.Limits{PIDs: 3})
	if err != nil {
		t.Fatalf("the one that is there: %v", err)
	}
	k.want(g.dir, "pids.max", "3")
	g.remove()

	s := shell(t)
	s.cgroups, s.noCgroups = nil, errors.New("of this and that")
	for limit, l := range map[string]job.Limits{"memory": {Memory: 1 << 30, PIDs: 1}, "cpu": {CPU: 1, PIDs: 1}, "pids": {PIDs: 1}} {
		a := attempt("touch started")
		a.Options.Limits = l
		res := run(t, s, a)
		if want := "this node cannot enforce limits." + limit + ": of this and that"; res.Outcome != job.Failed || res.Reason.Text != want {
			t.Errorf("got %v %q, want %q", res.Outcome, res.Reason, want)
		}
	}
	if _, err := os.Stat(filepath.Join(s.cfg.Dir, "started")); err == nil {
		t.Error("it was started")
	}
}

// A node whose process is in its base cgroup moves to a child of it, but only if that helps.
func TestANodeStepsAside(t *testing.T) {
	t.Parallel()
	me := strconv.Itoa(os.Getpid())

	for name, c := range map[string]struct {
		procs, on string // of base
		own       bool   // base is that of this process
		lack      string // of the controllers
		moved     bool
		writes    int
	}{
		"alone in it":                    {me + "\n", "", true, "", true, 4},
		"with others":                    {me + "\n17\n", "", true, "has other processes besides the node", true, 6},
		"others alone":                   {"17\n", "", false, "has other processes besides the node", false, 3},
		"nobody":                         {"", "", false, "", false, 3},
		"all is switched on already":     {"", "cpu io memory pids\n", false, "", false, 0},
		"others, and all is switched on": {"17\n", "cpu io memory pids\n", false, "", false, 0},
	} {
		k := newTree(t, "cpu memory pids")
		k.put(k.base, "cgroup.procs", c.procs)
		k.put(k.base, "cgroup.subtree_control", c.on)
		own := "/elsewhere"
		if c.own {
			own = k.base
		}
		tree, err := k.open(own)
		if err != nil {
			t.Fatal(err)
		}
		for _, controller := range controllers {
			if err := tree.lack[controller]; c.lack == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.lack) {
				t.Errorf("%s: %s lacks %v, want %q", name, controller, err, c.lack)
			}
		}
		moved := slices.Contains(k.wrote, "cgroup.procs="+me)
		if moved != c.moved || c.lack == "" && len(k.wrote) != c.writes+map[bool]int{true: 1}[c.moved] {
			t.Errorf("%s: moved %v, wrote %q, want %v", name, moved, k.wrote, c.moved)
		}
		if c.moved {
			k.want(filepath.Join(k.base, nodeCgroup), "cgroup.procs", me)
			if err := tree.stepAside(); err != nil {
				t.Errorf("%s: again, where the folder is there: %v", name, err)
			}
		}
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	k := newTree(t, "")
	c := &cgroups{base: k.base, kernel: k}
	now := time.Now()

	for name, age := range map[string]time.Duration{"run-old": time.Hour, "run-new": time.Second, "other-old": time.Hour, "go-crontab": time.Hour} {
		dir := filepath.Join(k.base, name)
		if err := k.mkdir(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}

	left := func() (names []string) {
		entries, err := os.ReadDir(k.base)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
		return names
	}

	k.busy = true
	c.sweep(now)
	if got := left(); len(got) != 4 {
		t.Errorf("while something lives in them: %v are left", got)
	}

	k.busy = false
	c.sweep(now)
	if got, want := left(), []string{"go-crontab", "other-old", "run-new"}; !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
}
