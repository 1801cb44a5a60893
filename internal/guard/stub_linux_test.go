package guard

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go-crontab/internal/boottime"

	"golang.org/x/sys/unix"
)

// The test binary can be started as a stub of a node, which tests can kill and stop. It executes
// orders from its standard input, one a line, and prints "done" after each.
const asStub = "GUARD_TEST_STUB"

func TestMain(m *testing.M) {
	if config := os.Getenv(asStub); config != "" {
		os.Exit(beStub(config))
	}

	if text := os.Getenv(asThief); text != "" {
		var j theft
		if err := json.Unmarshal([]byte(text), &j); err != nil {
			panic(err)
		}
		j.thief()
		os.Exit(0)
	}

	os.Exit(m.Run())
}

// The guard of a stub buries by writing down the processes that it finds: the DSN names a file and
// a token.
func init() {
	OnBury(func(d Dead) error {
		// A dumpable process shows its memory and descriptors to its own user.
		if is, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); is != 0 || err != nil {
			return fmt.Errorf("dumpable: %d, %w", is, err)
		}

		file, token, _ := strings.Cut(d.DSN, "|")
		text := fmt.Sprintf("buried %s, %d alive\n", d.Session, len(withToken(token)))
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			return err
		}
		return os.Rename(file+".new", file)
	})
}

// stubConfig configures a stub.
type stubConfig struct {
	Session string
	DSN     string
	Cgroups string
	Expiry  time.Duration
}

func (c *stubConfig) guard(log *slog.Logger) Config {
	return Config{
		Node: "stub", DSN: c.DSN, Expiry: c.Expiry, Kill: c.Expiry * 6 / 10, Grace: c.Expiry / 10,
		End: c.Expiry * 75 / 100, Seats: 200, Log: log,
	}
}

func (c *stubConfig) marker() string { return "GOCRONTAB_SEAT=" + c.Session + "-" }

// stubLease says once that it has lapsed.
type stubLease struct{ once sync.Once }

func (l *stubLease) Lapse() { l.once.Do(func() { fmt.Println("lapsed") }) }

func beStub(text string) int {
	var c stubConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}

	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	cfg := c.guard(log)
	g, err := New(cfg)
	if err != nil {
		panic(err)
	}
	if err := g.Protect(Protected{
		Session: c.Session, Marker: c.marker(), Cgroups: c.Cgroups, Lease: &stubLease{},
	}); err != nil {
		panic(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = g.Run(ctx) })
	var silent sync.Once
	beats := make(chan struct{})
	go func() {
		for {
			select {
			case <-beats:
				return
			case <-time.After(c.Expiry / 20):
				g.Renewed(boottime.Now())
			}
		}
	}()

	n := int64(0)
	seats := map[int64]*Seat{}
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		order, rest, _ := strings.Cut(s.Text(), " ")
		switch order {
		case "run": // execute a command
			n++
			seat := g.Enter(n, false)
			seat.Inside(true)
			pid, err := stubFork(rest, c.marker()+strconv.FormatInt(n, 10), c.Cgroups)
			if err != nil {
				panic(err)
			}
			seat.Forked(pid)
			seats[n] = seat
		case "unknown": // execute a command whose group the guard does not learn
			n++
			seats[n] = g.Enter(n, false)
			seats[n].Inside(true)
			if _, err := stubFork(rest, c.marker()+strconv.FormatInt(n, 10), c.Cgroups); err != nil {
				panic(err)
			}
		case "inside": // execute a handler
			n++
			seats[n] = g.Enter(n, true)
		case "leave":
			seats[n].Empty()
			seats[n].Leave()
		case "silent": // send no more beats
			silent.Do(func() { close(beats) })
		case "lost":
			g.Lost()
		case "stopping":
			g.Stopping()
		case "part": // close the pipe, as a node that stopped while a handler went on
			stop()
			running.Wait()
		case "sweep":
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			if err := g.Sweep(ctx); err != nil {
				fmt.Println("not swept:", err)
			}
			cancel()
		case "alive":
			for end := time.Now().Add(20 * time.Second); !g.Alive() &&
				time.Now().Before(end); time.Sleep(time.Millisecond) {
			}
			fmt.Println("guard", g.PID())
		case "is":
			fmt.Println("is", g.Alive())
		case "over":
			g.Over()
			stop()
			running.Wait()
		}

		fmt.Println("done", order)
	}

	select {} // until it is killed
}

// stubFork starts a command as a node does.
func stubFork(command, marker, cgroups string) (int, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()

	attr := &syscall.ProcAttr{
		Env: []string{"PATH=" + os.Getenv("PATH"), marker}, Files: []uintptr{null.Fd(), null.Fd(), null.Fd()},
		Sys: &syscall.SysProcAttr{Setpgid: true},
	}

	if cgroups != "" {
		dir, err := os.Open(cgroups)
		if err != nil {
			return 0, err
		}
		defer dir.Close()
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(dir.Fd())
	}

	return syscall.ForkExec("/bin/bash", []string{"bash", "-c", command}, attr)
}

// stub is a running stub.
type stub struct {
	*testing.T
	stubConfig
	cmd   *exec.Cmd
	in    io.Writer
	out   chan string
	err   *bytes.Buffer
	token string // in the command line of every process that it starts
	file  string // written at the burial
	pid   int    // of the guard
}

var stubs struct {
	sync.Mutex
	n int
}

// mortal is a short expiry, for tests that wait for the end of a lease.
func mortal(c *stubConfig) { c.Expiry = 6 * time.Second }

func newStub(t *testing.T, mod func(*stubConfig)) *stub {
	t.Helper()
	return newStubOf(t, os.Args[0], &syscall.SysProcAttr{Setpgid: true}, mod)
}

// newStubOf starts a given program as a stub.
func newStubOf(t *testing.T, program string, attr *syscall.SysProcAttr, mod func(*stubConfig)) *stub {
	t.Helper()
	stubs.Lock()
	stubs.n++
	token := fmt.Sprintf("7%06d%03d", os.Getpid(), stubs.n)
	stubs.Unlock()
	s := &stub{
		T: t, token: token, file: filepath.Join(t.TempDir(), "buried"), out: make(chan string, 100),
		err: &bytes.Buffer{},
	}

	s.stubConfig = stubConfig{Session: "session-" + token, DSN: s.file + "|" + token, Expiry: 20 * time.Second}
	if mod != nil {
		mod(&s.stubConfig)
	}

	config, err := json.Marshal(s.stubConfig)
	if err != nil {
		t.Fatal(err)
	}

	s.cmd = exec.Command(program)
	s.cmd.Env = append(os.Environ(), asStub+"="+string(config))
	s.cmd.SysProcAttr = attr
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}

	s.cmd.Stderr = log // a file, so that Wait does not wait for processes that hold it
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}

	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}

	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.out <- lines.Text()
		}
		close(s.out)
	}()

	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		if s.pid != 0 && isComm(s.pid) {
			_ = unix.Kill(s.pid, unix.SIGKILL)
		}

		for _, pid := range withToken(token) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}

		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the stub's log:\n%s", text)
		}

		log.Close()
	})

	s.guarded()
	return s
}

// isComm reports whether a process has the name of a guard.
func isComm(pid int) bool {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(name)) == comm
}

// order makes the stub execute an order, and returns its output except "done".
func (s *stub) order(format string, args ...any) (output []string) {
	s.Helper()
	line := fmt.Sprintf(format, args...)
	if _, err := fmt.Fprintln(s.in, line); err != nil {
		s.Fatalf("%s: %v", line, err)
	}

	for end := time.After(30 * time.Second); ; {
		select {
		case text, ok := <-s.out:
			if !ok {
				s.Fatalf("%s: the stub has ended", line)
			}
			if strings.HasPrefix(text, "done ") {
				return output
			}
			output = append(output, text)
		case <-end:
			s.Fatalf("%s: no answer", line)
		}
	}
}

// leaves executes a command that leaves a daemon and ends. It returns the daemon.
func (s *stub) leaves() (daemon int) {
	s.Helper()
	s.order("run setsid sleep %sd & true", s.token) // d stands for days
	s.await("the daemon, alone", func() bool {
		now := withToken(s.token + "d")
		if len(now) != 1 {
			return false
		}
		daemon = now[0]
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", daemon))
		return strings.HasPrefix(string(line), "sleep")
	})

	s.order("leave")
	return daemon
}

// guarded waits until there is a guard.
func (s *stub) guarded() int {
	s.Helper()
	for _, line := range s.order("alive") {
		fmt.Sscanf(line, "guard %d", &s.pid)
	}
	if s.pid == 0 {
		s.Fatal("no guard")
	}
	return s.pid
}

// starts executes a command, with TOKEN replaced by the token, and waits until it has n processes.
func (s *stub) starts(command string, processes int) {
	s.Helper()
	before := len(withToken(s.token))
	s.order("run %s", strings.ReplaceAll(command, "TOKEN", s.token))
	s.await("processes of "+command, func() bool { return len(withToken(s.token)) >= before+processes })
}

func (s *stub) await(what string, ok func() bool) {
	s.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("not within 20 s: %s", what)
		}
	}
}

// buried waits for the burial and returns the text that was written then.
func (s *stub) buried() string {
	s.Helper()
	s.await("the burial", func() bool { _, err := os.Stat(s.file); return err == nil })
	text, err := os.ReadFile(s.file)
	if err != nil {
		s.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// isBuried reports whether the session was buried.
func (s *stub) isBuried() bool { _, err := os.Stat(s.file); return err == nil }

// ended waits until the guard has ended.
func (s *stub) ended(pid int) {
	s.Helper()
	s.await("the end of the guard", func() bool { return !isComm(pid) || !isAlive(pid) })
}

func isAlive(pid int) bool {
	p, err := stat(pid, nil)
	return err == nil && p.alive()
}

// withToken lists the living processes that have a token in their command line.
func withToken(token string) (pids []int) {
	all, _, err := processes()
	if err != nil {
		panic(err)
	}

	for pid, p := range all {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && p.alive() && bytes.Contains(line, []byte(token)) {
			pids = append(pids, pid)
		}
	}

	return pids
}
