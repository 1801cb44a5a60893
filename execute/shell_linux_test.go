package execute

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"go-crontab/job"
)

func TestShellOutcomes(t *testing.T) {
	t.Parallel()
	code := func(n int) *int { return &n }

	for name, tc := range map[string]struct {
		command string
		change  func(*Attempt)
		config  func(*Config)
		want    job.Result
		output  string
	}{
		"exit 0 succeeds":       {command: "echo hello", want: job.Result{Outcome: job.Succeeded, ExitCode: code(0)}, output: "hello\n"},
		"an empty command does": {command: "", want: job.Result{Outcome: job.Succeeded, ExitCode: code(0)}},
		"another exit code fails": {command: "echo oops >&2; exit 3",
			want: job.Result{Outcome: job.Failed, Reason: reason(job.ReasonExitCode, "exit status 3"), ExitCode: code(3)}, output: "oops\n"},
		"a command that begins with a dash is no option": {command: "-x; true",
			want: job.Result{Outcome: job.Succeeded, ExitCode: code(0)}, output: "bash: line 1: -x: command not found\n"},
		"a signal of its own fails": {command: "kill -SEGV $$",
			want: job.Result{Outcome: job.Failed, Reason: reason(job.ReasonSignal, "killed by SIGSEGV"), Signal: "SIGSEGV"}},
		"SIGKILL from elsewhere fails": {command: "kill -KILL $$",
			want: job.Result{Outcome: job.Failed, Reason: reason(job.ReasonSignal, "killed by SIGKILL"), Signal: "SIGKILL"}},
		"a real-time signal has a number": {command: "kill -40 $$",
			want: job.Result{Outcome: job.Failed, Reason: reason(job.ReasonSignal, "killed by SIG40"), Signal: "SIG40"}},
		"both streams keep their order": {command: "for i in 1 2 3; do echo out $i; echo err $i >&2; done",
			want: job.Result{Outcome: job.Succeeded, ExitCode: code(0)}, output: "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"},
		"standard input is empty": {command: "cat; read -r line || echo end",
			want: job.Result{Outcome: job.Succeeded, ExitCode: code(0)}, output: "end\n"},
		"quotes and substitutions are bash's": {command: `a='it"s'; printf '%s|%s' "$a" "$(echo "$((6*7))")" '$x'`,
			want: job.Result{Outcome: job.Succeeded, ExitCode: code(0)}, output: `it"s|42$x|`},
		"a job's name is never expanded": {command: `printf %s "$GOCRONTAB_JOB"`,
			change: func(a *Attempt) { a.Job = "$(echo pwned) `id`" },
			want:   job.Result{Outcome: job.Succeeded, ExitCode: code(0)}, output: "$(echo pwned) `id`"},
		"bytes are kept as they are": {command: `printf '\xff\xfe\0\033[31m 備份 🎉'`,
			want: job.Result{Outcome: job.Succeeded, ExitCode: code(0)}, output: "\xff\xfe\x00\x1b[31m 備份 🎉"},
		"a timeout ends it": {command: "sleep 60", change: func(a *Attempt) { a.Timeout = 100 * time.Millisecond },
			want: job.Result{Outcome: job.TimedOut, Reason: reason(job.ReasonTimeout, "the command ran longer than its timeout of 100ms"), Signal: "SIGTERM"}},
		"a timeout of a command that cleans up": {command: "trap 'echo bye; exit 4' TERM; sleep 60 & wait",
			change: func(a *Attempt) { a.Timeout = 5 * time.Second },
			want:   job.Result{Outcome: job.TimedOut, Reason: reason(job.ReasonTimeout, "the command ran longer than its timeout of 5s"), ExitCode: code(4)}, output: "bye\n"},
		"a timeout of a tree that ignores SIGTERM": {command: "trap '' TERM; (sleep 60; sleep 60) & sleep 60; sleep 60",
			change: func(a *Attempt) { a.Timeout, a.Grace = 5*time.Second, hasty },
			want:   job.Result{Outcome: job.TimedOut, Reason: reason(job.ReasonTimeout, "the command ran longer than its timeout of 5s"), Signal: "SIGKILL"}},
		"a timeout of a stopped command": {command: "kill -STOP $$", change: func(a *Attempt) { a.Timeout = 100 * time.Millisecond },
			want: job.Result{Outcome: job.TimedOut, Reason: reason(job.ReasonTimeout, "the command ran longer than its timeout of 100ms"), Signal: "SIGTERM"}},
		"a stop and a continue are no exit": {command: "(until grep -q '^State:.T' /proc/$$/status; do sleep .01; done; kill -CONT $$) & kill -STOP $$; echo on; wait",
			want: job.Result{Outcome: job.Succeeded, ExitCode: code(0)}, output: "on\n"},
		"64 KiB of command": {command: "echo " + strings.Repeat("x", 64<<10) + " | wc -c",
			want: job.Result{Outcome: job.Succeeded, ExitCode: code(0)}, output: "65537\n"},
		"too long a command": {command: ": " + strings.Repeat("x", 8<<20),
			want: job.Result{Outcome: job.Failed, Reason: reason(job.ReasonStartFailed, "start bash: the command has 8388610 bytes, which exceeds the system's limit for one argument")}},
		"a NUL in the command": {command: "echo a\x00b",
			want: job.Result{Outcome: job.Failed, Reason: reason(job.ReasonStartFailed, "start bash: the command or the job's name contains a NUL byte")}},
		"no directory": {command: "true", config: func(c *Config) { c.Dir = "/nonexistent" },
			want: job.Result{Outcome: job.Failed, Reason: reason(job.ReasonDirectoryUnavailable, "directory: stat /nonexistent: no such file or directory")}},
		"no bash": {command: "true", config: func(c *Config) { c.Bash = "/nonexistent/bash" },
			want: job.Result{Outcome: job.Failed, Reason: reason(job.ReasonStartFailed, `start bash: exec: "/nonexistent/bash": stat /nonexistent/bash: no such file or directory`)}},
		"no bash in PATH": {command: "true", config: func(c *Config) { c.Bash = "no-such-bash" },
			want: job.Result{Outcome: job.Failed, Reason: reason(job.ReasonStartFailed, `start bash: exec: "no-such-bash": executable file not found in $PATH`)}},
		"a bash that is no program": {command: "true", config: func(c *Config) { c.Bash = "/dev/null" },
			want: job.Result{Outcome: job.Failed, Reason: reason(job.ReasonStartFailed, `start bash: exec: "/dev/null": permission denied`)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.config == nil {
				tc.config = func(*Config) {}
			}
			a := attempt(tc.command)
			if tc.change != nil {
				tc.change(&a)
			}
			got := run(t, shell(t, tc.config), a)
			if got.Outcome != tc.want.Outcome || got.Reason != tc.want.Reason || got.Signal != tc.want.Signal {
				t.Errorf("got %v %q %q, want %v %q %q", got.Outcome, got.Reason, got.Signal, tc.want.Outcome, tc.want.Reason, tc.want.Signal)
			}
			if (got.ExitCode == nil) != (tc.want.ExitCode == nil) || got.ExitCode != nil && *got.ExitCode != *tc.want.ExitCode {
				t.Errorf("exit code: got %v, want %v", got.ExitCode, tc.want.ExitCode)
			}
			if string(got.Output.Head) != tc.output || got.Output.Bytes != int64(len(tc.output)) || got.Output.Truncated() {
				t.Errorf("output: got %q (%d bytes), want %q", got.Output.Head, got.Output.Bytes, tc.output)
			}
		})
	}
}

func TestACommandSeesOnlyWhatItWasGiven(t *testing.T) {
	leaked, err := unix.Dup(1) // as a careless parent would leave it: not close-on-exec
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leaked)
	s := shell(t, func(c *Config) { c.Env = []string{"REGION=eu=1", "LANG=C.UTF-8"} })
	res := run(t, s, attempt(`for i in {3..300}; do [ -e /proc/$$/fd/$i ] && echo "fd $i is open"; done
		echo "$GOCRONTAB_JOB|$GOCRONTAB_APP|$GOCRONTAB_DUE|$GOCRONTAB_ATTEMPT|$GOCRONTAB_LAUNCH|$GOCRONTAB_SEAT|$REGION|$LANG"
		pwd; tr '\0' '\n' < /proc/$$/environ | cut -d= -f1 | sort`))
	got := string(res.Output.Head)
	if strings.Contains(got, secret) {
		t.Errorf("the daemon's secret is in %q", got)
	}
	lines := strings.SplitN(got, "\n", 3)
	want := "back up|default|2026-08-01T03:00:00.25Z|2|30064771079-2|6f2c1a52-7f5e-4a6b-9a57-0d6a3a0b9f11-30064771079|eu=1|C.UTF-8"
	if len(lines) < 3 || lines[0] != want || lines[1] != s.cfg.Dir {
		t.Fatalf("got %q, want %q and %q", got, want, s.cfg.Dir)
	}
	allowed := append([]string{"SHELL", "REGION", "GOCRONTAB_JOB", "GOCRONTAB_APP", "GOCRONTAB_DUE", "GOCRONTAB_SCHEDULED", "GOCRONTAB_ATTEMPT",
		"GOCRONTAB_LAUNCH", "GOCRONTAB_SEAT"}, inherited...)
	for name := range strings.FieldsSeq(lines[2]) {
		if !bytes.Contains([]byte(" "+strings.Join(allowed, " ")+" "), []byte(" "+name+" ")) {
			t.Errorf("variable %s is inherited", name)
		}
	}
}

func TestCommandsBeginAtHomeOrAtTheRoot(t *testing.T) {
	home := t.TempDir()
	for set, want := range map[string]string{home: home + "\n", "/nonexistent/home": "/\n"} {
		t.Setenv("HOME", set)
		s, err := NewShell(Config{})
		if err != nil {
			t.Fatal(err)
		}
		if res := run(t, s, attempt("pwd")); string(res.Output.Head) != want {
			t.Errorf("HOME=%s: got %v %q %q, want %q", set, res.Outcome, res.Reason, res.Output.Head, want)
		}
	}
}

func TestNewShellRefuses(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"a negative bound":               {Keep: -1},
		"a negative wait":                {PipeWait: -1},
		"an empty name in a list":        {Allow: []string{"a", " "}},
		"a variable without a value":     {Env: []string{"A"}},
		"a variable without a name":      {Env: []string{"=a"}},
		"a NUL in a variable":            {Env: []string{"A=\x00"}},
		"a variable in our name's space": {Env: []string{"GOCRONTAB_TOKEN=x"}},
	} {
		if _, err := NewShell(cfg); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// TestNoDescriptorLeft: a process without free descriptors cannot begin a command, but it can begin the next one when
// it has some again.
func TestNoDescriptorLeft(t *testing.T) {
	if os.Getenv("EXECUTE_NO_DESCRIPTOR") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoDescriptorLeft$", "-test.v")
		cmd.Env = append(os.Environ(), "EXECUTE_NO_DESCRIPTOR=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}

	s := shell(t)
	var own, none unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		t.Fatal(err)
	}

	none.Max = own.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}

	during := run(t, s, attempt("cat"))
	_, err := NewShell(Config{})
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		t.Fatal(err)
	}

	if during.Outcome != job.Failed || !strings.HasPrefix(during.Reason.Text, "start bash: ") || !strings.HasSuffix(during.Reason.Text, "too many open files") {
		t.Errorf("at the limit: got %v %q", during.Outcome, during.Reason)
	}

	if !errors.Is(err, unix.EMFILE) {
		t.Errorf("a new one at the limit: got %v", err)
	}

	if res := run(t, s, attempt("cat")); res.Outcome != job.Succeeded {
		t.Errorf("afterwards: got %v %q", res.Outcome, res.Reason)
	}
}

// Processes that outlive bash are ended if they are in its group; others only lose the output.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	const ended, holds = "it left background processes, and the node stopped them", "a background process still has the output open"

	for name, tc := range map[string]struct {
		command  string
		reason   string
		code     int
		survives bool
		wait     time.Duration
	}{
		"one that holds the output":          {"sleep 60 & echo $! >pid; echo done", ended, 0, false, hasty},
		"one that does not":                  {"sleep 60 >/dev/null 2>&1 & echo $! >pid; echo done", ended, 0, false, hasty},
		"one that ignores SIGTERM":           {"(trap '' TERM; echo $BASHPID >pid; while :; do sleep 60; done) & while [ ! -s pid ]; do :; done; echo done; exit 3", "exit status 3; " + ended, 3, false, hasty},
		"one that is about to end":           {"(sleep .1; echo $BASHPID >pid; echo done) &", "", 0, false, patient},
		"output that trickles through a tee": {"echo 1 >pid; exec > >(sleep .1; cat); echo done", "", 0, true, patient},
		"setsid, holding the output":         {"setsid bash -c 'echo $$ >pid; exec sleep 60' & while [ ! -s pid ]; do :; done; echo done", holds, 0, true, hasty},
		"setsid, silent":                     {"setsid bash -c 'echo $$ >pid; exec sleep 60' >/dev/null 2>&1 & while [ ! -s pid ]; do :; done; echo done", "", 0, true, patient},
		"both":                               {"sleep 61 & setsid bash -c 'echo $$ >pid; exec sleep 60' & while [ ! -s pid ]; do :; done; echo done", ended + "; " + holds, 0, true, hasty},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shell(t, func(c *Config) { c.PipeWait = tc.wait })
			begin := time.Now()
			a := attempt(tc.command)
			a.Grace = hasty
			res := run(t, s, a)
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			if res.ExitCode == nil || *res.ExitCode != tc.code || res.Reason.Text != tc.reason || string(res.Output.Head) != "done\n" {
				t.Errorf("got %v %q %q, want exit code %d %q", res.Outcome, res.Reason, res.Output.Head, tc.code, tc.reason)
			}
			pid := pidIn(t, filepath.Join(s.cfg.Dir, "pid"))
			if alive(pid) != tc.survives {
				t.Errorf("process %d lives: got %v, want %v", pid, !tc.survives, tc.survives)
			}
			if tc.survives && pid > 1 {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		})
	}
}

// A process outside the group that writes for ever keeps neither the run nor its memory.
func TestAnEscapeThatNeverStopsWriting(t *testing.T) {
	t.Parallel()
	s := shell(t, func(c *Config) { c.PipeWait = hasty })
	res := run(t, s, attempt("setsid bash -c 'echo $$ >pid; exec yes' & while [ ! -s pid ]; do :; done"))
	if res.Outcome != job.Succeeded || res.Reason.Text != "a background process still has the output open" || len(res.Output.Tail) != DefaultKeep/2 {
		t.Errorf("got %v %q, tail of %d bytes", res.Outcome, res.Reason, len(res.Output.Tail))
	}
	pid := pidIn(t, filepath.Join(s.cfg.Dir, "pid"))
	eventually(t, "it dies of its closed pipe", func() bool { return !alive(pid) })
}

// A node too busy to read in time still has what bash wrote before it exited.
func TestTheRestIsTaken(t *testing.T) {
	t.Parallel()

	for command, ended := range map[string]bool{
		"head -c 60000 /dev/zero": true,
		"head -c 60000 /dev/zero; setsid bash -c 'echo $$ >pid; exec sleep 60' & while [ ! -s pid ]; do :; done": false,
	} {
		s := shell(t)
		g := s.live.enter()
		c, err := s.start(context.Background(), g, attempt(command))
		if err != nil {
			t.Fatal(err)
		}
		g.awaitExit()
		if _, err := g.reap(); err != nil {
			t.Fatal(err)
		}
		c.untilEmpty(t.Context())
		s.live.leave(g)
		got := c.takeRest()
		// A process that another test forks at this moment also holds the pipe, until its exec.
		for end := time.Now().Add(10 * time.Second); ended && !got && time.Now().Before(end); time.Sleep(time.Millisecond) {
			got = c.takeRest()
		}
		if got != ended || c.kept.bytes != 60000 {
			t.Errorf("%s: got ended %v, %d bytes, want %v, 60000", command, got, c.kept.bytes, ended)
		}
		_ = c.pipe.Close()
		if !ended {
			_ = unix.Kill(pidIn(t, filepath.Join(s.cfg.Dir, "pid")), unix.SIGKILL)
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	why := errors.New("killed by ops\nover HTTP")

	for name, tc := range map[string]struct {
		command string
		signal  string
		grace   time.Duration
	}{
		"of a command that obeys":             {"echo $$ >pid; sleep 60", "SIGTERM", patient},
		"of a tree that ignores SIGTERM":      {"trap '' TERM; (sleep 60; sleep 60) & echo $! >pid; sleep 60; sleep 60", "SIGKILL", hasty},
		"of bash, its child ignoring SIGTERM": {"(trap '' TERM; echo $BASHPID >pid; sleep 60; sleep 60) & wait", "SIGTERM", 10 * hasty},
		"of what bash left behind":            {"(trap '' TERM; echo $BASHPID >pid; sleep 60; sleep 60) & while [ ! -s pid ]; do :; done", "", hasty},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shell(t)
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			var pid int
			go func() {
				var all []*group
				eventually(t, "it is known", func() bool { all = s.live.all(); return len(all) == 1 })
				g := all[0]
				pid = pidIn(t, filepath.Join(s.cfg.Dir, "pid"))
				if tc.signal == "" {
					eventually(t, "bash was reaped", func() bool {
						g.mu.Lock()
						defer g.mu.Unlock()
						return g.reaped
					})
				}
				cancel(why)
			}()
			a := attempt(tc.command)
			a.Grace = tc.grace
			res := s.Execute(ctx, a)
			if alive(pid) {
				t.Errorf("process %d lives", pid)
			}
			if tc.signal == "" {
				if res.Outcome != job.Succeeded || res.Reason.Text != "it left background processes, and the node stopped them" {
					t.Errorf("got %v %q, want bash's own outcome", res.Outcome, res.Reason)
				}
				return
			}
			if res.Outcome != job.Killed || res.Reason.Text != "killed by ops over HTTP" || res.Signal != tc.signal {
				t.Errorf("got %v %q %q, want killed, the cause, %s", res.Outcome, res.Reason, res.Signal, tc.signal)
			}
		})
	}

	t.Run("before the start", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(why)
		s := shell(t)
		res := s.Execute(ctx, attempt("touch started"))
		if _, err := os.Stat(filepath.Join(s.cfg.Dir, "started")); res.Outcome != job.Killed || err == nil {
			t.Errorf("got %v, started %v, want killed and not started", res.Outcome, err == nil)
		}
	})
}

func TestKillAll(t *testing.T) {
	t.Parallel()
	s := shell(t)
	const n = 20
	results := make(chan job.Result, n)
	for range n {
		go func() { results <- run(t, s, attempt("echo $$ >>started; sleep 60 & sleep 60; exit 1")) }()
	}
	eventually(t, "all started", func() bool {
		b, _ := os.ReadFile(filepath.Join(s.cfg.Dir, "started"))
		return bytes.Count(b, []byte("\n")) == n
	})
	if got := s.KillAll(unix.SIGKILL, errors.New("lease lost")); got != n {
		t.Errorf("KillAll: got %d, want %d", got, n)
	}
	eventually(t, "all dead", func() bool { return len(s.live.all()) == 0 })
	for range n {
		if res := <-results; res.Outcome != job.Killed || res.Reason.Text != "lease lost" || res.Signal != "SIGKILL" {
			t.Fatalf("got %v %q %q, want killed, lease lost, SIGKILL", res.Outcome, res.Reason, res.Signal)
		}
	}
	if got := s.KillAll(unix.SIGKILL, nil); got != 0 {
		t.Errorf("KillAll of nothing: got %d", got)
	}
}

// KillAll during forks, ends and reaps either signals a command's whole group or does nothing to it.
func TestKillAllWhileStarting(t *testing.T) {
	t.Parallel()
	s := shell(t)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				res := run(t, s, attempt("sleep .003"))
				if res.Outcome != job.Succeeded && (res.Outcome != job.Killed || res.Reason.Text != "fenced") {
					t.Errorf("got %v %q", res.Outcome, res.Reason)
				}
			}
		})
	}
	for range 100 {
		s.KillAll(unix.SIGKILL, errors.New("fenced"))
		time.Sleep(3 * time.Millisecond)
	}
	close(stop)
	wg.Wait()
}

func TestKillAllBeforeTheForkCameBack(t *testing.T) {
	t.Parallel()
	s := shell(t)
	g := s.live.enter()
	s.KillAll(unix.SIGKILL, errors.New("lease lost"))
	s.KillAll(unix.SIGTERM, errors.New("later"))
	c, err := s.start(context.Background(), g, attempt("trap '' TERM; sleep 60"))
	if err != nil {
		t.Fatal(err)
	}
	status, err := c.untilExit(context.Background())
	c.untilEmpty(context.Background())
	s.live.leave(g)
	c.untilDrained()
	if res := c.result(status, err); res.Outcome != job.Killed || res.Signal != "SIGKILL" || res.Reason.Text != "lease lost" {
		t.Errorf("got %v %q %q, want killed, SIGKILL, the first cause", res.Outcome, res.Signal, res.Reason)
	}
}

// seat records the calls of one attempt's seat.
type seat struct {
	t    testing.TB
	mu   sync.Mutex
	said []string
	pgid int
}

func (s *seat) say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, what)
}

func (s *seat) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.said, ", ")
}

func (s *seat) Inside(yes bool) { s.say(fmt.Sprint("inside ", yes)) }
func (s *seat) Signalled() bool { return false }
func (s *seat) Leave()          { s.say("left") }

func (s *seat) Forked(pgid int) {
	if got, err := unix.Getpgid(pgid); err != nil || got != pgid {
		s.t.Errorf("told of group %d: got %d, %v", pgid, got, err)
	}
	s.say("forked")
	s.pgid = pgid
}

func (s *seat) Empty() {
	if unix.Kill(-s.pgid, 0) == nil && !onlyZombies(s.pgid) {
		s.t.Error("told of an empty group that lives")
	}
	s.say("empty")
}

// The guard learns that this process may be forking before the last check of May.
func TestAGuardIsToldOfTheGroup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		may  bool
		dir  string
		want string
	}{
		"a command":               {true, "/", "inside true, may, forked, empty"},
		"one that comes too late": {false, "/", "inside true, may, inside false"},
		"one that cannot start":   {true, "/nonexistent", "inside true, may, inside false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shell(t, func(cfg *Config) { cfg.Dir = c.dir })
			got := &seat{t: t}
			a := attempt("sleep .1 & true")
			a.Seat, a.May = got, func() bool { got.say("may"); return c.may }
			run(t, s, a)
			if said := got.heard(); said != c.want {
				t.Errorf("the guard was told %q, want %q", said, c.want)
			}
		})
	}
}

// 100 MB of output take proportional time and no extra memory, compared with the same bytes to the null device.
func TestLoudCommand(t *testing.T) {
	s := shell(t)
	const n = 100 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	res := run(t, s, attempt("head -c 104857600 /dev/zero | tr '\\0' x; echo; echo end"))
	took := time.Since(begin)
	runtime.ReadMemStats(&after)
	out := res.Output
	if res.Outcome != job.Succeeded || out.Bytes != n+5 || len(out.Head) != 32<<10 || len(out.Tail) != 32<<10 || !bytes.HasSuffix(out.Tail, []byte("x\nend\n")) {
		t.Errorf("got %v %q, %d bytes, kept %d and %d", res.Outcome, res.Reason, out.Bytes, len(out.Head), len(out.Tail))
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("allocated %d bytes for it", grown)
	}
	t.Logf("100 MiB in %v", took)
	if took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestManyAtOnceLeaveNothingBehind(t *testing.T) {
	s := shell(t)
	run(t, s, attempt("true"))
	fds := openFiles(t)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if res := run(t, s, attempt("sleep .01 & echo x; wait")); res.Outcome != job.Succeeded || res.Reason.Text != "" || res.Output.Bytes != 2 {
				t.Errorf("got %v %q, %d bytes", res.Outcome, res.Reason, res.Output.Bytes)
			}
		})
	}
	wg.Wait()
	if got := openFiles(t); got > fds {
		t.Errorf("open files: got %d, had %d", got, fds)
	}
	// Commands that did not start leak none either.
	broken := shell(t, func(c *Config) { c.Dir = "/nonexistent" })
	fds = openFiles(t) // with the null device of that shell
	for range 100 {
		run(t, broken, attempt("true"))
	}
	if got := openFiles(t); got > fds {
		t.Errorf("open files after refused starts: got %d, had %d", got, fds)
	}
	if n := len(s.live.all()) + len(broken.live.all()); n != 0 {
		t.Errorf("%d groups are still known", n)
	}
}

func openFiles(t testing.TB) int {
	t.Helper()
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func TestSomebodyElseCollectsTheExitStatus(t *testing.T) {
	s := shell(t)
	g := s.live.enter()
	c, err := s.start(context.Background(), g, attempt("exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Wait4(g.pgid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	status, err := c.untilExit(context.Background())
	c.untilEmpty(context.Background())
	s.live.leave(g)
	c.untilDrained()
	if res := c.result(status, err); res.Outcome != job.Failed || res.Reason.Text != "another part of the program collected the exit status" {
		t.Errorf("got %v %q", res.Outcome, res.Reason)
	}
}
