package node_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go-crontab/node"
)

// The test binary becomes a node process if this variable is set, so that tests can kill and stop
// real processes.
const asNode = "GOCRONTAB_TEST_AS_NODE"

func TestMain(m *testing.M) {
	if name := os.Getenv(asNode); name != "" {
		os.Exit(beNode(name))
	}
	os.Exit(m.Run())
}

func beNode(name string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", name)
	expiry, err := time.ParseDuration(os.Getenv("EXPIRY"))
	if err != nil {
		log.Error("cannot run", "error", err)
		return 1
	}

	n,
		err := node.New(node.Config{
		DSN: os.Getenv("DSN"), Name: name, Expiry: expiry, Log: log, SpoolDir: os.Getenv("SPOOL"),
		HTTPAllow: []string{"127.0.0.1"},
	})
	if err != nil {
		log.Error("cannot run", "error", err)
		return 1
	}

	// Handler "stays" does not return when it should.
	n.Handle("stays", func(context.Context, node.Attempt) error { time.Sleep(time.Hour); return nil })
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := n.Run(ctx); err != nil {
		log.Error("ended", "error", err)
		return 4
	}

	return 0
}

// process is a node process.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	log   string // path of its log file
	ended chan struct{}
}

// process starts a node process and waits until it has a session.
func (c *cluster) process(name string) *process { c.t.Helper(); return c.processIn("", name) }

// processIn is like process in a folder; "" is the test's own.
func (c *cluster) processIn(dir, name string) *process {
	c.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asNode+"="+name, "DSN="+c.dsn, "EXPIRY="+c.expiry.String(), "SPOOL="+c.t.TempDir())
	out, err := os.Create(filepath.Join(c.t.TempDir(), "log"))
	if err != nil {
		c.t.Fatal(err)
	}

	cmd.Stderr = out
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}

	p := &process{c.t, cmd, out.Name(), make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // the result is in ProcessState
	}()

	c.t.Cleanup(func() {
		p.signal(syscall.SIGCONT)
		p.signal(syscall.SIGKILL)
		<-p.ended
		out.Close()
		if c.t.Failed() {
			text, _ := os.ReadFile(out.Name())
			c.t.Logf("log of %s:\n%s", name, text)
		}
	})

	await(c.t, name+" joined", 10*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM session WHERE node = ?", name) == 1
	})
	return p
}

func (p *process) signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// says waits for a text in the node's log.
func (p *process) says(text string) {
	p.t.Helper()
	await(p.t, text, 20*time.Second, func() bool {
		log, _ := os.ReadFile(p.log)
		return bytes.Contains(log, []byte(text))
	})
}

// hasEnded reports whether the process is gone.
func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// exit waits for the process and returns its exit code.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(60 * time.Second):
		p.t.Fatal("the process does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// ledgerFile is a file that commands write outside MySQL: a line at each start and each end.
type ledgerFile struct {
	t    testing.TB
	path string
}

func newLedgerFile(t testing.TB) ledgerFile {
	return ledgerFile{t, filepath.Join(t.TempDir(), "ledger")}
}

// command writes a line when it starts, sleeps, and writes a line when it ends.
func (l ledgerFile) command(sleep string) string {
	line := func(what string) string {
		return fmt.Sprintf(`echo "%s $GOCRONTAB_JOB $GOCRONTAB_DUE $GOCRONTAB_LAUNCH $(date +%%s%%N) $$" >> %s`, what,
			l.path)
	}
	return line("start") + "; sleep " + sleep + "; " + line("end")
}

type entry struct {
	job, due, launch string
	start, end       int64 // in nanoseconds; end is 0 if it never ended
}

// read returns the executions, by launch.
func (l ledgerFile) read() map[string]*entry {
	l.t.Helper()
	f, err := os.Open(l.path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()

	out := map[string]*entry{}
	for s := bufio.NewScanner(f); s.Scan(); {
		w := strings.Fields(s.Text())
		if len(w) != 6 {
			l.t.Fatalf("torn line in the ledger: %q", s.Text())
		}

		var at int64
		fmt.Sscan(w[4], &at)
		switch w[0] {
		case "start":
			if out[w[3]] != nil {
				l.t.Errorf("launch %s was executed twice", w[3])
			}
			out[w[3]] = &entry{job: w[1], due: w[2], launch: w[3], start: at}
		case "end":
			out[w[3]].end = at
		}
	}

	return out
}

// check compares the ledger with the rules: no due time twice, and never two runs of a job at once.
func (l ledgerFile) check() {
	l.t.Helper()
	dues := map[string]string{}
	byJob := map[string][]*entry{}
	entries := l.read()
	if len(entries) == 0 {
		l.t.Error("nothing was executed")
	}

	for _, e := range entries {
		if other := dues[e.job+e.due]; other != "" {
			l.t.Errorf("%s due %s was executed by %s and by %s", e.job, e.due, other, e.launch)
		}
		dues[e.job+e.due] = e.launch
		byJob[e.job] = append(byJob[e.job], e)
	}

	for job, es := range byJob {
		for i, a := range es {
			for _, b := range es[i+1:] {
				if a.end != 0 && b.end != 0 && a.start < b.end && b.start < a.end {
					l.t.Errorf("%s: %s and %s overlap", job, a.launch, b.launch)
				}
			}
		}
	}
}
