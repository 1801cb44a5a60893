package execute

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"go-crontab/job"
)

// with runs a command with options.
func with(t testing.TB, s *Shell, command string, o job.CommandOptions) job.Result {
	t.Helper()
	a := attempt(command)
	a.Options = o
	return run(t, s, a)
}

// wantOutput checks the output of a run that must have succeeded.
func wantOutput(t testing.TB, what string, res job.Result, want string) {
	t.Helper()
	if got := string(res.Output.Head); res.Outcome != job.Succeeded || got != want {
		t.Errorf("%s: got %v %q %q, want %q", what, res.Outcome, res.Reason, got, want)
	}
}

// wantFailed checks the reason of a run that must have failed.
func wantFailed(t testing.TB, what string, res job.Result, want string) {
	t.Helper()
	if res.Outcome != job.Failed || !strings.Contains(res.Reason.Text, want) {
		t.Errorf("%s: got %v %q (output %q), want failed and %q", what, res.Outcome, res.Reason, res.Output.Head, want)
	}
}

func TestDir(t *testing.T) {
	t.Parallel()
	s := shell(t)
	dir := filepath.Join(t.TempDir(), "a 'b'")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	wantOutput(t, "its folder", with(t, s, "pwd", job.CommandOptions{Dir: dir}), dir+"\n")
	wantOutput(t, "that of all", with(t, s, "pwd", job.CommandOptions{}), s.cfg.Dir+"\n")
	wantFailed(t, "no folder", with(t, s, "pwd", job.CommandOptions{Dir: dir + "/none"}), "directory: stat "+dir+"/none: no such file")
	wantFailed(t, "a file", with(t, s, "pwd", job.CommandOptions{Dir: "/etc/passwd"}), "directory: /etc/passwd is not a directory")
}

func TestEnv(t *testing.T) {
	t.Parallel()
	s := shell(t, func(c *Config) { c.Env = []string{"REGION=eu", "ZONE=1"} })
	env := map[string]string{"REGION": "us = 'x'\n", "HOME": "/srv", "A": ""}
	wantOutput(t, "variables", with(t, s, `printf '%s|' "$REGION" "$ZONE" "$HOME" "${A-unset}" "$GOCRONTAB_JOB"`, job.CommandOptions{Env: env}),
		"us = 'x'\n|1|/srv||back up|")
	// No other command sees them, although all share the beginning of the slice.
	wantOutput(t, "the next one", with(t, s, `printf '%s|' "$REGION" "${A-unset}"`, job.CommandOptions{}), "eu|unset|")
}

func TestStdin(t *testing.T) {
	t.Parallel()
	s := shell(t)
	text := strings.Repeat("0123456789abcdef\n", job.MaxStdin/17)
	wantOutput(t, "text", with(t, s, "cat", job.CommandOptions{Stdin: text[:30000]}), text[:30000])
	wantOutput(t, "as much as there may be", with(t, s, "wc -c", job.CommandOptions{Stdin: text}), fmt.Sprintln(len(text)))
	wantOutput(t, "after a while", with(t, s, "sleep .1; wc -c", job.CommandOptions{Stdin: text}), fmt.Sprintln(len(text)))
	wantOutput(t, "not wanted", with(t, s, "exec <&-; echo on", job.CommandOptions{Stdin: text}), "on\n")
	wantOutput(t, "one line of it", with(t, s, "read -r l; echo $l", job.CommandOptions{Stdin: text}), "0123456789abcdef\n")
	wantOutput(t, "none", with(t, s, "cat; echo on", job.CommandOptions{}), "on\n")
	// A process outside the group that holds the input for ever does not block the writer.
	res := with(t, s, "setsid sleep 60 >/dev/null 2>&1 & echo $!; sleep .1", job.CommandOptions{Stdin: text + text[:0]})
	if res.Outcome != job.Succeeded {
		t.Errorf("got %v %q", res.Outcome, res.Reason)
	}
	var pid int
	fmt.Sscan(string(res.Output.Head), &pid)
	if pid > 1 {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	// A command that does not start leaves no writer: the leak check of the package would see it.
	wantFailed(t, "not started", with(t, s, "true", job.CommandOptions{Stdin: text, Dir: "/nonexistent"}), "no such file")
}

func TestSuccessCodes(t *testing.T) {
	t.Parallel()
	s := shell(t)
	o := job.CommandOptions{SuccessCodes: []int{3, 255}}
	if res := with(t, s, "exit 3", o); res.Outcome != job.Succeeded || res.Reason.Text != "" || res.ExitCode == nil || *res.ExitCode != 3 {
		t.Errorf("exit 3: got %v %q %v", res.Outcome, res.Reason, res.ExitCode)
	}
	wantFailed(t, "exit 0", with(t, s, "true", o), "exit status 0")
	wantFailed(t, "a signal", with(t, s, "kill -KILL $$", job.CommandOptions{SuccessCodes: []int{137}}), "killed by SIGKILL")
	a := attempt("trap 'exit 3' TERM; sleep 60 & wait")
	a.Options, a.Timeout = o, 500*time.Millisecond
	if res := run(t, s, a); res.Outcome != job.TimedOut {
		t.Errorf("timed out and exit 3: got %v", res.Outcome)
	}
}

func TestSkipCodes(t *testing.T) {
	t.Parallel()
	s := shell(t)
	o := job.CommandOptions{SkipCodes: []int{75, 137}}
	res := with(t, s, "echo no file; exit 75", o)
	if want := (job.Reason{Code: job.ReasonNothingToDo, Text: "exit status 75: nothing to do"}); res.Outcome != job.Skipped ||
		res.Reason != want || res.ExitCode == nil || *res.ExitCode != 75 {
		t.Errorf("exit 75: got %v %+v %v", res.Outcome, res.Reason, res.ExitCode)
	}
	if res := with(t, s, "true", o); res.Outcome != job.Succeeded {
		t.Errorf("exit 0: got %v", res.Outcome)
	}
	wantFailed(t, "exit 1", with(t, s, "exit 1", o), "exit status 1")
	wantFailed(t, "a signal", with(t, s, "kill -KILL $$", o), "killed by SIGKILL")

	a := attempt("trap 'exit 75' TERM; sleep 60 & wait")
	a.Options, a.Timeout = o, 500*time.Millisecond
	if res := run(t, s, a); res.Outcome != job.TimedOut {
		t.Errorf("timed out and exit 75: got %v", res.Outcome)
	}
}

func TestLimitsOfEachProcess(t *testing.T) {
	t.Parallel()
	zero, some := job.Size(0), job.Size(1<<20)
	s := shell(t)
	const show = "ulimit -n; ulimit -St; ulimit -Ht; ulimit -f; ulimit -v; ulimit -c"
	all := job.Limits{OpenFiles: 77, CPUSeconds: 9, FileSize: 2 << 20, AddressSpace: 1 << 30, Core: &zero}
	wantOutput(t, "all", with(t, s, show, job.CommandOptions{Limits: all}), "77\n9\n14\n2048\n1048576\n0\n")

	// The job's environment cannot change the units or the limits, nor run code before the limits hold.
	env := map[string]string{"POSIXLY_CORRECT": "1", "u": "7", "SHELLOPTS": "xtrace:noexec", "BASHOPTS": "extdebug"}
	got := with(t, s, "set +o posix; ulimit -n; ulimit -f; ulimit -c; echo $u", job.CommandOptions{
		Limits: job.Limits{OpenFiles: 77, FileSize: 2 << 20, Core: &zero},
		Env:    map[string]string{"POSIXLY_CORRECT": env["POSIXLY_CORRECT"], "u": env["u"]},
	})

	wantOutput(t, "in POSIX mode", got, "77\n2048\n0\n7\n")
	rc := filepath.Join(t.TempDir(), "rc")
	if err := os.WriteFile(rc, []byte("echo rc $(ulimit -n)\nulimit() { builtin ulimit -n; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	wantOutput(t, "BASH_ENV", with(t, s, "builtin ulimit -n", job.CommandOptions{Limits: job.Limits{OpenFiles: 77}, Env: map[string]string{"BASH_ENV": rc}}),
		"rc 77\n77\n")
	wantFailed(t, "SHELLOPTS", with(t, s, "echo $-; builtin ulimit -n; exit 4", job.CommandOptions{Limits: job.Limits{OpenFiles: 77},
		Env: map[string]string{"SHELLOPTS": "errexit"}}), "exit status 4")

	// Any command text is one argument.
	for _, text := range []string{`echo "$0 $# $-"`, `echo '"$1"; ulimit -n 5'`, "echo $SHLVL; cat; sleep 0 & wait; exit 0", "-x 2>&1; echo $?", "printf %s \"${BASH_VERSION:0:1}\""} {
		plain := with(t, s, text, job.CommandOptions{})
		limited := with(t, s, text, job.CommandOptions{Limits: job.Limits{Core: &zero}})
		if string(plain.Output.Head) != string(limited.Output.Head) || plain.Reason != limited.Reason {
			t.Errorf("%s: got %q %q, without limits %q %q", text, limited.Output.Head, limited.Reason, plain.Output.Head, plain.Reason)
		}
	}

	wantFailed(t, "file size", with(t, s, "head -c 2000000 /dev/zero > big; exit", job.CommandOptions{Limits: job.Limits{FileSize: some}}),
		"exit status 153; it tried to write a file larger than limits.file_size (1MiB)")
	res := with(t, s, "while :; do :; done", job.CommandOptions{Limits: job.Limits{CPUSeconds: 1}})
	if res.Signal != "SIGXCPU" {
		t.Errorf("processor time: got signal %q", res.Signal)
	}

	wantFailed(t, "processor time", res, "killed by SIGXCPU; it used more CPU time than limits.cpu_seconds (1)")
	wantFailed(t, "address space", with(t, s, "head -c 100000000 /dev/zero | tail -c 90000000 >/dev/null; exit ${PIPESTATUS[1]}",
		job.CommandOptions{Limits: job.Limits{AddressSpace: 64 << 20}}), "exit status 1")
}

func TestLimitsBeyondTheNodesOwn(t *testing.T) {
	t.Parallel()
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil || own.Max > 1<<29 {
		t.Skipf("this process may open any number of files: %+v, %v", own, err)
	}
	s := shell(t)
	wantFailed(t, "open files", with(t, s, "touch started", job.CommandOptions{Limits: job.Limits{OpenFiles: int(own.Max) + 1}}),
		fmt.Sprintf("limits.open_files: %d is more than this node's own hard limit, %d", own.Max+1, own.Max))
	if _, err := os.Stat(filepath.Join(s.cfg.Dir, "started")); err == nil {
		t.Error("it was started")
	}
	wantOutput(t, "all that it has", with(t, s, "ulimit -n", job.CommandOptions{Limits: job.Limits{OpenFiles: int(own.Max)}}), fmt.Sprintln(own.Max))
}

// A first bash that cannot set a limit runs nothing, and no SuccessCodes turn that into a success.
func TestALimitThatCannotBeSet(t *testing.T) {
	t.Parallel()
	s := shell(t)
	a := attempt("touch started")
	a.Options = job.CommandOptions{Limits: job.Limits{OpenFiles: 64}, SuccessCodes: []int{0, 1, 126, 127, 137}}
	p, err := s.plan(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	const beyond = "ulimit -n 2000000000" // more than the kernel lets even root have
	p.argv[4] = strings.ReplaceAll(p.argv[4], "ulimit -n 64", beyond)
	if !strings.Contains(p.argv[4], beyond) {
		t.Fatalf("the script is %q", p.argv[4])
	}
	g := s.live.enter()
	c, err := s.begin(context.Background(), g, a, p)
	if err != nil {
		t.Fatal(err)
	}
	res := finish(context.Background(), s, c, g)
	if _, err := os.Stat(filepath.Join(s.cfg.Dir, "started")); err == nil {
		t.Error("it was started")
	}
	wantFailed(t, "refused", res, "killed by SIGKILL")
	if out := string(res.Output.Head); !strings.Contains(out, "ulimit: open files: cannot modify limit") {
		t.Errorf("the output does not say why: %q", out)
	}
}

// needRoot skips a test that needs root or its capabilities.
func needRoot(t testing.TB) *user.User {
	t.Helper()
	u, err := user.Lookup("nobody")
	if !maySwitch() || err != nil {
		t.Skipf("needs root with CAP_SETUID, CAP_SETGID and CAP_KILL, and a user nobody: %v", err)
	}
	return u
}

func TestRunAsAnotherUser(t *testing.T) {
	t.Parallel()
	u := needRoot(t)
	s := shell(t, func(c *Config) { c.Env = []string{"HOME=/root", "USER=root"} })
	want := fmt.Sprintf("%s %s %s %s / %s\n", u.Uid, u.Gid, u.Gid, u.Username, u.Username)
	if _, err := os.Stat(u.HomeDir); err == nil {
		want = fmt.Sprintf("%s %s %s %s %s %s\n", u.Uid, u.Gid, u.Gid, u.Username, u.HomeDir, u.Username)
	}
	const show = `echo $(id -u) $(id -g) $(id -G) $USER $PWD $LOGNAME`
	wantOutput(t, "by name", with(t, s, show, job.CommandOptions{User: "nobody"}), want)
	wantOutput(t, "by id", with(t, s, show, job.CommandOptions{User: u.Uid}), want)
	wantOutput(t, "HOME", with(t, s, "echo $HOME", job.CommandOptions{User: "nobody"}), u.HomeDir+"\n")
	wantOutput(t, "a group by id", with(t, s, "id -u; id -g", job.CommandOptions{User: "nobody:12345"}), u.Uid+"\n12345\n")
	wantOutput(t, "nobody's id", with(t, s, `id -u; id -g; id -G; echo $USER $HOME`, job.CommandOptions{User: "43210:54321"}), "43210\n54321\n54321\n43210 /\n")
	wantOutput(t, "root's files are closed", with(t, s, "cat /proc/1/environ 2>/dev/null || echo no", job.CommandOptions{User: "nobody"}), "no\n")
	wantOutput(t, "its own output can be opened", with(t, s, "echo a > /dev/stdout; cat /dev/stdin >> /dev/stderr", job.CommandOptions{User: "nobody", Stdin: "b"}), "a\nb")
	wantOutput(t, "the job's variables win", with(t, s, "echo $HOME $USER", job.CommandOptions{User: "nobody", Env: map[string]string{"HOME": "/tmp"}}), "/tmp nobody\n")
	wantOutput(t, "with limits", with(t, s, "id -u; ulimit -n", job.CommandOptions{User: "nobody", Limits: job.Limits{OpenFiles: 50}}), u.Uid+"\n50\n")
	wantFailed(t, "a folder that is closed to it", with(t, s, "pwd", job.CommandOptions{User: "nobody", Dir: "/root"}), "as user "+u.Uid)
	wantFailed(t, "no such user", with(t, s, "id", job.CommandOptions{User: "no-such-user"}), "this node has no user no-such-user")
	wantFailed(t, "no such id", with(t, s, "id", job.CommandOptions{User: "43210"}), "name its group as well: 43210:43210")
	wantFailed(t, "no such group", with(t, s, "id", job.CommandOptions{User: "nobody:no-such-group"}), "this node has no group no-such-group")

	a := attempt("trap '' TERM; sleep 60; sleep 60")
	a.Options.User, a.Timeout, a.Grace = "nobody", 5*time.Second, hasty
	if res := run(t, s, a); res.Outcome != job.TimedOut || res.Signal != "SIGKILL" {
		t.Errorf("another user's command that ignores SIGTERM: got %v %q", res.Outcome, res.Signal)
	}
}

// With RunAs commands run as that user, and as another one only if Allow lists it.
func TestRunAs(t *testing.T) {
	t.Parallel()
	u := needRoot(t)
	s := shell(t, func(c *Config) { c.RunAs = "nobody" })
	wantOutput(t, "no user", with(t, s, "id -u; id -g; id -G; echo $USER", job.CommandOptions{}), u.Uid+"\n"+u.Gid+"\n"+u.Gid+"\nnobody\n")
	wantOutput(t, "the same user", with(t, s, "id -u", job.CommandOptions{User: "nobody"}), u.Uid+"\n")
	wantFailed(t, "the node's own", with(t, s, "id", job.CommandOptions{User: "root"}), "user: root is not in this node's --run-as-allow: nobody")
	wantFailed(t, "another one", with(t, s, "id", job.CommandOptions{User: "daemon"}), "user: daemon is not in this node's --run-as-allow: nobody")

	s = shell(t, func(c *Config) { c.RunAs, c.Allow = "43210:54321", []string{"43210", "daemon"} })
	wantOutput(t, "by id, with a group", with(t, s, "id -u; id -g", job.CommandOptions{}), "43210\n54321\n")
	wantOutput(t, "one who is listed", with(t, s, "id -un", job.CommandOptions{User: "daemon"}), "daemon\n")
}

// TestNoNewPrivileges: a command can gain no rights, unless the operator allows it.
func TestNoNewPrivileges(t *testing.T) {
	t.Parallel()
	const show = "grep NoNewPrivs /proc/self/status"
	wantOutput(t, "by default", with(t, shell(t), show, job.CommandOptions{}), "NoNewPrivs:\t1\n")
	own, err := os.ReadFile("/proc/thread-self/status")
	if err != nil || !strings.Contains(string(own), "NoNewPrivs:\t0") {
		t.Skipf("this process has the bit itself: %v", err)
	}
	wantOutput(t, "allowed", with(t, shell(t, func(c *Config) { c.NewPrivs = true }), show, job.CommandOptions{}), "NoNewPrivs:\t0\n")
}

// With Allow commands run only as listed users, not even as the node's own, and only with the user's groups.
func TestRunAsAllow(t *testing.T) {
	t.Parallel()
	u := needRoot(t)
	s := shell(t, func(c *Config) { c.Allow = []string{"nobody", "43210"} })
	wantOutput(t, "listed", with(t, s, "id -u", job.CommandOptions{User: "nobody"}), u.Uid+"\n")
	wantOutput(t, "listed, by id", with(t, s, "id -u", job.CommandOptions{User: u.Uid}), u.Uid+"\n")
	wantOutput(t, "listed, its own group", with(t, s, "id -g", job.CommandOptions{User: "nobody:" + u.Gid}), u.Gid+"\n")
	wantFailed(t, "not listed", with(t, s, "id", job.CommandOptions{User: "root"}), "user: root is not in this node's --run-as-allow: nobody, 43210")
	wantFailed(t, "the same by id", with(t, s, "id", job.CommandOptions{User: "0"}), "user: root is not in this node's")
	wantFailed(t, "no user", with(t, s, "id", job.CommandOptions{}), "the job names none, and the node's own user root is not in its --run-as-allow")
	wantFailed(t, "a group that it is not in", with(t, s, "id", job.CommandOptions{User: "nobody:root"}), "nobody is not a member of group root")
	wantFailed(t, "an id without a user, with root's group", with(t, s, "id", job.CommandOptions{User: "43210:0"}), "is not a member of group 0")
	own := shell(t, func(c *Config) { c.Allow = []string{"root"} })
	wantOutput(t, "the node's own user is listed", with(t, own, "id -u", job.CommandOptions{}), "0\n")
}

// A node without the rights fails with that reason, and starts nothing.
func TestRunAsWithoutTheRight(t *testing.T) {
	t.Parallel()
	needRoot(t)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	copied := filepath.Join(dir, "node")
	bytes, err := os.ReadFile(binary)
	if err == nil {
		err = os.WriteFile(copied, bytes, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := shell(t)
	res := with(t, s, copied+" -test.run=^TestAsAPlainUser$ -test.v", job.CommandOptions{User: "nobody", Dir: "/", Env: map[string]string{"AS_A_PLAIN_USER": "1"}})
	if out := string(res.Output.Head); res.Outcome != job.Succeeded || !strings.Contains(out, "--- PASS: TestAsAPlainUser") {
		t.Errorf("got %v %q\n%s", res.Outcome, res.Reason, out)
	}
}

// TestAsAPlainUser is run by TestRunAsWithoutTheRight in a process that is not root.
func TestAsAPlainUser(t *testing.T) {
	if os.Getenv("AS_A_PLAIN_USER") == "" {
		t.Skip("runs only where another test starts it as a plain user")
	}
	s, err := NewShell(Config{Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	wantFailed(t, "another user", with(t, s, "id", job.CommandOptions{User: "root"}), "user: this node may not run commands as root: it must run as root or have CAP_SETUID")
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	wantOutput(t, "its own user", with(t, s, "id -u; echo $USER", job.CommandOptions{User: me.Username}), me.Uid+"\n"+me.Username+"\n")
	wantFailed(t, "its own user with another group", with(t, s, "id", job.CommandOptions{User: me.Username + ":0"}), "may not run commands as")
	wantOutput(t, "none", with(t, s, "id -u", job.CommandOptions{}), me.Uid+"\n")
}

func TestTheSinkHearsEverything(t *testing.T) {
	t.Parallel()
	s := shell(t)
	a := attempt("for i in {1..2000}; do echo line $i; done; head -c 200000 /dev/zero")
	var heard []byte // Execute's return orders this behind the last call
	a.Sink = func(p []byte) { heard = append(heard, p...) }
	res := s.Execute(context.Background(), a)
	if int64(len(heard)) != res.Output.Bytes || !strings.HasPrefix(string(heard), "line 1\nline 2\n") || !strings.HasPrefix(string(heard), string(res.Output.Head)) ||
		!strings.HasSuffix(string(heard), string(res.Output.Tail)) {
		t.Errorf("heard %d bytes, %d were written", len(heard), res.Output.Bytes)
	}
}
