package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go-crontab/test/faultproxy"

	"github.com/go-sql-driver/mysql"
)

// The node runs as nobody and its commands as daemon. Both users exist on every Debian.
const (
	nodeUser = "nobody"
	jobsUser = "daemon"
)

// wall mimics a packaged installation: a program that only root can read, settings of
// root, a state folder of the node's user, and another user for commands.
type wall struct {
	dir, program, settings, state string
	uid, gid                      string // of the node
}

func newWall(t *testing.T, dsn string) *wall {
	t.Helper()

	node, err := user.Lookup(nodeUser)
	if _, jobsErr := user.Lookup(jobsUser); os.Geteuid() != 0 || err != nil || jobsErr != nil {
		t.Skipf("needs root, and the users %s and %s", nodeUser, jobsUser)
	}

	dir, err := os.MkdirTemp("", "gocrontab-wall-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })

	w := &wall{
		dir: dir, program: dir + "/go-crontab", settings: dir + "/serve.env", state: dir + "/state", uid: node.Uid,
		gid: node.Gid,
	}

	script := `chmod 755 "$1" && install -m 711 -o root -g root "$2" "$1/go-crontab" && install -d -m 700 -o "$3" "$1/state" &&
		(umask 077 && printf "GOCRONTAB_DSN='%s'\n" "$4" > "$1/serve.env")`
	if out, err := exec.Command("sh", "-ec", script, "sh", dir, binary(t), nodeUser, dsn).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}

	return w
}

// reachable returns another address of the cluster that is open to all users. The socket of the
// tests' server belongs to root.
func reachable(t *testing.T, dsn string) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Net, cfg.Addr = "tcp", faultproxy.New(t, cfg.Net, cfg.Addr).Addr()
	token, _ := adminTokens.Load(dsn)
	adminTokens.Store(cfg.FormatDSN(), token)
	return cfg.FormatDSN()
}

// as returns the start of a command line that switches to the node's user with some capabilities,
// as systemd does.
func (w *wall) as(capabilities string) []string {
	return []string{"setpriv", "--reuid", w.uid, "--regid", w.gid, "--clear-groups", "--no-new-privs",
		"--inh-caps", capabilities, "--ambient-caps", capabilities, "--bounding-set", "-all," + capabilities}
}

const switching = "+setuid,+setgid,+kill"

// node starts a node that runs commands as another user.
func (w *wall) node(t *testing.T, dsn, name string, args ...string) *server {
	t.Helper()
	line := append(w.as(switching), w.program, "serve", "--node", name, "--listen", "127.0.0.1:0", "--session-expiry",
		"5s",
		"--state-dir", filepath.Join(w.state, name), "--log-format", "json", "--run-as", jobsUser)
	return serving(t, dsn, startCommand(t, []string{"GOCRONTAB_DSN=" + dsn, "HOME="}, append(line, args...)...)).ready()
}

// do runs a command as a job, and returns its output.
func (s *server) do(t *testing.T, name, command string, flags ...string) result {
	t.Helper()
	add := append([]string{"job", "add", name, "--schedule", "@yearly"}, flags...)
	if got := s.ask(append(add, "--", command)...); got.code != exitOK {
		t.Fatalf("add %s: %+v", name, got)
	}
	return s.ask("job", "run", name, "--wait")
}

// TestCommandsRunAsAnotherUser runs commands as another user from a node without root: they have
// none of its rights.
func TestCommandsRunAsAnotherUser(t *testing.T) {
	t.Parallel()

	dsn := reachable(t, migrated(t))
	w := newWall(t, dsn)
	s := w.node(t, dsn, "one")
	guard := s.says(`"msg":"the guard is running"[^\n]*"guard":(\d+)`, 10*time.Second)

	// systemd gives the node capabilities that commands must not inherit.
	got := s.do(t, "rights", "id -un; id -gn; id -G; grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs)' /proc/self/status")
	none := "\t0000000000000000\n"
	want := jobsUser + "\n" + jobsUser + "\n1\nCapInh:" + none + "CapPrm:" + none + "CapEff:" + none + "CapAmb:" +
		none + "NoNewPrivs:\t1\n"
	if got.code != exitOK || !strings.Contains(got.out, want) {
		t.Errorf("got %+v, want %q", got, want)
	}

	status, err := os.ReadFile("/proc/" + guard + "/status")
	if err != nil || !regexp.MustCompile(`(?m)^CapEff:\t0*20$`).Match(status) {
		t.Errorf("the guard has other capabilities than CAP_KILL: %v\n%s", err, status)
	}

	got = s.do(t, "streams", "echo a > /dev/stdout; cat /dev/stdin >> /dev/stderr", "--stdin", "b")
	if got.code != exitOK || !strings.Contains(got.out, "a\nb") {
		t.Errorf("a command cannot open its own input or output: %+v", got)
	}

	for name, user := range map[string]string{
		"as-root": "root", "as-node": nodeUser, "as-node-id": w.uid + ":" + w.gid,
	} {
		if got := s.do(t, name, "id", "--user", user); got.code == exitOK ||
			!strings.Contains(got.out+got.err, "is not in this node's --run-as-allow: "+jobsUser) {
			t.Errorf("a job of the user %s: %+v", user, got)
		}
	}

	// The node and its guard can kill processes of the other user.
	got = s.do(t, "late", "trap '' TERM; sleep 600; sleep 600", "--timeout", "1s")
	if !strings.Contains(got.out+got.err, "the command ran longer than its timeout of 1s") {
		t.Errorf("a timeout: %+v", got)
	}

	token := "8" + strconv.Itoa(os.Getpid())
	for _, line := range [][]string{
		{
			"job", "add", "stubborn", "--schedule", "@yearly", "--",
			fmt.Sprintf("trap '' TERM; sleep %s; sleep %[1]s", token),
		},
		{"job", "run", "stubborn"},
	} {
		if got := s.ask(line...); got.code != exitOK {
			t.Fatalf("%q: %+v", line, got)
		}
	}

	await(t, "the command", 10*time.Second, func() bool { return asleep(token) })
	s.signal(syscall.SIGKILL)
	await(t, "the end of the command of a dead node", 10*time.Second, func() bool { return !asleep(token) })
	s.says(`"msg":"guard: ended the session of the dead node"`, 10*time.Second)
}

// asleep reports whether a sleep with this duration runs.
func asleep(seconds string) bool {
	return exec.Command("pgrep", "-f", "-x", "sleep "+seconds).Run() == nil
}

// TestNoCommandGetsTheDSN lets commands search for the DSN everywhere: in a node and its guard,
// also while they start, in the settings, and in the state folder.
func TestNoCommandGetsTheDSN(t *testing.T) {
	t.Parallel()

	dsn := reachable(t, migrated(t))
	w := newWall(t, dsn)
	s := w.node(t, dsn, "one")
	guard := s.says(`"msg":"the guard is running"[^\n]*"guard":(\d+)`, 10*time.Second)
	node := strconv.Itoa(s.cmd.Process.Pid)

	attempts := map[string]string{
		"settings":        "cat " + w.settings,
		"program":         "cat " + w.program,
		"state":           "ls " + w.state,
		"node-environ":    "cat /proc/" + node + "/environ",
		"node-memory":     "cat /proc/" + node + "/maps /proc/" + node + "/mem",
		"node-fds":        "ls /proc/" + node + "/fd",
		"guard-environ":   "cat /proc/" + guard + "/environ",
		"guard-fds":       "ls /proc/" + guard + "/fd",
		"guard-memory":    "cat /proc/" + guard + "/fd/3",
		"kill-guard":      "kill -9 " + guard,
		"kill-node":       "kill -STOP " + node,
		"own-session":     "exec 3<>/proc/$PPID/fd/0",
		"parent-settings": "cat /proc/$PPID/environ",
	}

	for name, command := range attempts {
		if got := s.do(t, name, command); got.code == exitOK ||
			!regexp.MustCompile(`(?i)permission denied|not permitted`).MatchString(got.out) {
			t.Errorf("%s: %s: %+v", name, command, got)
		}
	}

	// A process left behind by a job inspects everything that starts. As the jobs' user it finds
	// nothing.
	theft := w.theft(t, dsn)
	if got := s.do(t, "thief", theft.command("env -i ")+" >/dev/null 2>&1 &"); got.code != exitOK {
		t.Fatalf("%+v", got)
	}

	await(t, "the thief", 10*time.Second, theft.begun)
	for _, name := range []string{"two", "three", "four"} {
		next := w.node(t, dsn, name)
		next.signal(syscall.SIGKILL)
		next.exit(20 * time.Second)
	}

	if got := theft.end(); got != "" {
		t.Errorf("the thief found the DSN in %q", got)
	}

	// As the node's user, with a program that this user can read, it does find the DSN. So the
	// search works.
	theft = w.theft(t, dsn)
	startCommand(t, nil, append(w.as("-all"), "sh", "-c", theft.command("exec env -i "))...)
	await(t, "the thief of the node's own user", 10*time.Second, theft.begun)

	// A node that dies while it is being looked at is found without its program.
	found := func() bool { return strings.Contains(theft.found(), w.dir+"/open") }
	for try := 0; !found() && try < 20; try++ {
		next := w.open(t, dsn, fmt.Sprint("open-", try))
		next.signal(syscall.SIGKILL)
		next.exit(20 * time.Second)
	}

	if got := theft.end(); !strings.Contains(got, w.dir+"/open") {
		t.Errorf("the thief of the node's own user found the DSN in %q, want it in a node that starts: it looks too late", got)
	}
}

// open starts a node from a copy of the program that every user can read. Its commands run as its
// own user.
func (w *wall) open(t *testing.T, dsn, name string) *server {
	t.Helper()
	if out, err := exec.Command("install", "-m", "755", binary(t), w.dir+"/open").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	line := append(w.as("-all"), w.dir+
		"/open", "serve", "--node", name, "--listen", "127.0.0.1:0", "--session-expiry", "5s",
		"--state-dir", filepath.Join(w.state, name), "--log-format", "json")
	return serving(t, dsn, startCommand(t, []string{"GOCRONTAB_DSN=" + dsn, "HOME="}, line...))
}

// theft is a process that searches the environment of each new process for the DSN, see
// [TestThief].
type theft struct {
	t                       *testing.T
	program, needle         string
	foundPath, going, ready string
}

// theft creates its files, which every user can write, and a copy of the test binary, which every
// user can run.
func (w *wall) theft(t *testing.T, dsn string) *theft {
	t.Helper()
	dir, err := os.MkdirTemp(w.dir, "theft-")
	if err != nil {
		t.Fatal(err)
	}

	_, needle, _ := strings.Cut(dsn, "@")
	x := &theft{t, dir + "/thief", needle, dir + "/found", dir + "/going", dir + "/ready"}
	script := `chmod 755 "$1"; install -m 755 "$2" "$1/thief"; for f in found going ready; do : > "$1/$f"; chmod 666 "$1/$f"; done`
	if out, err := exec.Command("sh", "-ec", script, "sh", dir, os.Args[0]).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	return x
}

// command starts the thief. The needle is split, so that the thief does not find itself.
func (x *theft) command(prefix string) string {
	return fmt.Sprintf("%sTHIEF_FOUND=%s THIEF_GOING=%s THIEF_READY=%s THIEF_FOR='%s' THIEF_REST='%s' setsid %s -test.run '^TestThief$'",
		prefix, x.foundPath, x.going, x.ready, x.needle[:4], x.needle[4:], x.program)
}

func (x *theft) begun() bool { return x.read(x.ready) != "" }

func (x *theft) found() string { return x.read(x.foundPath) }

func (x *theft) read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		x.t.Fatal(err)
	}
	return string(b)
}

// end stops the thief, and returns the programs in which it found the DSN.
func (x *theft) end() string {
	x.t.Helper()
	if err := os.Remove(x.going); err != nil {
		x.t.Fatal(err)
	}
	return x.found()
}

// newProcess is the time for which the thief inspects a new process.
const newProcess = 200 * time.Millisecond

// TestThief is the thief, in its own process.
func TestThief(t *testing.T) {
	going := os.Getenv("THIEF_GOING")
	if going == "" {
		t.Skip("is for TestNoCommandGetsTheDSN")
	}

	needle := []byte(os.Getenv("THIEF_FOR") + os.Getenv("THIEF_REST"))
	watched := map[string]time.Time{} // processes with the time of discovery
	ready := false
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
		if _, err := os.Stat(going); err != nil {
			return
		}

		list, err := os.Open("/proc")
		if err != nil {
			t.Fatal(err)
		}

		names, _ := list.Readdirnames(-1)
		list.Close()
		for _, pid := range names {
			if pid[0] < '0' || pid[0] > '9' {
				continue
			}
			if _, known := watched[pid]; !known {
				watched[pid] = time.Now()
			}
			if time.Since(watched[pid]) > newProcess {
				continue
			}

			text, _ := os.ReadFile("/proc/" + pid + "/environ")
			if bytes.Contains(text, needle) {
				exe, _ := os.Readlink("/proc/" + pid + "/exe")
				note(t, os.Getenv("THIEF_FOUND"), pid+" "+exe)
			}
		}

		if !ready {
			ready = true
			note(t, os.Getenv("THIEF_READY"), "x")
		}

		for pid := range watched {
			if !slices.Contains(names, pid) {
				delete(watched, pid) // the number may be reused
			}
		}
	}
}

// note appends a line to a file.
func note(t *testing.T, path, line string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, line); err != nil {
		t.Fatal(err)
	}
}

// TestRunAsRefused: a node that cannot separate commands from its own user refuses to start.
func TestRunAsRefused(t *testing.T) {
	t.Parallel()

	w := newWall(t, "")
	for name, tc := range map[string]struct {
		as    []string
		flags []string
		want  string
	}{
		"without the rights": {
			w.as("-all"), []string{"--run-as", jobsUser},
			"this node may not run commands as another user: it must run as root or have CAP_SETUID",
		},
		"without one of them": {
			w.as("+setuid,+setgid"), []string{"--run-as", jobsUser}, "this node may not run commands as another user",
		},
		"no such user": {
			nil, []string{"--run-as", "no-such-user"},
			"--run-as no-such-user: user: this node has no user no-such-user",
		},
		"no such group": {
			nil, []string{"--run-as", jobsUser + ":no-such-group"}, "this node has no group no-such-group",
		},
		"its own user, as root": {nil, []string{"--run-as", "root"}, "that is the node's own user"},
		"its own user": {
			w.as(switching), []string{"--run-as", nodeUser}, "that is the node's own user",
		},
		"its own user, by id": {
			w.as(switching), []string{"--run-as", w.uid + ":1"}, "that is the node's own user",
		},
		"its own user is listed": {
			w.as(switching), []string{"--run-as", jobsUser, "--run-as-allow", jobsUser + "," + nodeUser},
			"lists " + nodeUser + ", the node's own user",
		},
		"the user is not listed": {
			w.as(switching), []string{"--run-as", jobsUser, "--run-as-allow", "games"},
			"--run-as-allow does not list that user",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := []string{
				"serve", "--node", "one", "--listen", "127.0.0.1:0", "--state-dir",
				filepath.Join(w.state, strings.ReplaceAll(name, " ", "-")),
			}
			p := startCommand(t, []string{"GOCRONTAB_DSN=crontab:secret@tcp(127.0.0.1:1)/crontab"},
				append(append(append([]string{}, tc.as...), w.program), append(state, tc.flags...)...)...)
			if code := p.exit(20 * time.Second); code != exitUsage || !strings.Contains(p.out.String(), tc.want) {
				t.Errorf("got code %d and %q, want %q", code, p.out.String(), tc.want)
			}
		})
	}
}
