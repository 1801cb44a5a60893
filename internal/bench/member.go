package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Command is the subcommand that runs this program as a node of a bench. The node's orders are in
// the environment.
const Command = "bench-node"

const memberVariable = "GOCRONTAB_BENCH_NODE"

// orders configure a node.
type orders struct {
	DSN      string        `json:"dsn"`
	Name     string        `json:"name"`
	Executor string        `json:"executor"` // "noop"; "api": noop and the API; "": as jobs ask for
	Expiry   time.Duration `json:"expiry"`
	Slots    int           `json:"slots"`
}

// vitals are a node's answer to a question about its process.
type vitals struct {
	CPU   time.Duration `json:"cpu"` // used so far
	RSS   float64       `json:"rss"` // MB
	Ready bool          `json:"ready"`
	Guard guardVitals   `json:"guard"`
	API   string        `json:"api,omitempty"`   // host:port
	Token string        `json:"token,omitempty"` // for the API
}

// guardVitals are the vitals of a node's guard, from /proc.
type guardVitals struct {
	CPU time.Duration `json:"cpu"`
	Own float64       `json:"own"` // MB, without the program's text, because the guard shares that with the node
}

// member is a running node as the bench sees it.
type member struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs *tail

	mu   sync.Mutex
	dead bool
}

// start runs this program again as a node.
func start(o orders) (*member, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}

	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}

	m := &member{name: o.Name, cmd: exec.Command(self, Command), errs: &tail{}}
	m.cmd.Env = append(os.Environ(), memberVariable+"="+string(text))
	m.cmd.Stderr = m.errs
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must reach only the bench

	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}

	m.out = bufio.NewReader(out)
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}

	return m, nil
}

// vitals asks the node for its vitals.
func (m *member) vitals() (v vitals, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return v, fmt.Errorf("%s is dead", m.name)
	}
	if _, err := io.WriteString(m.in, "\n"); err != nil {
		return v, m.ended(err)
	}

	line, err := m.out.ReadBytes('\n')
	if err != nil {
		return v, m.ended(err)
	}
	return v, json.Unmarshal(line, &v)
}

func (m *member) ended(err error) error {
	return fmt.Errorf("%s ended: %w\n%s", m.name, err, m.errs)
}

// awaitReady returns when the node has a session and is ready.
func (m *member) awaitReady(ctx context.Context) error {
	for end := time.Now().Add(time.Minute); ; {
		v, err := m.vitals()
		switch {
		case err != nil:
			return err
		case v.Ready:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("%s is not ready after a minute\n%s", m.name, m.errs)
		}

		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// kill kills the node like a crash.
func (m *member) kill() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	return errors.Join(m.cmd.Process.Kill(), ignoreExit(m.cmd.Wait()))
}

// gone reports whether the node was killed or stopped.
func (m *member) gone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// stop makes the node drain, and returns when it has ended. After 30 s it kills the node.
func (m *member) stop() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return nil
	}

	m.dead = true
	_ = m.in.Close()
	timer := time.AfterFunc(30*time.Second, func() { _ = m.cmd.Process.Kill() })
	defer timer.Stop()
	_, _ = io.Copy(io.Discard, m.out)
	if err := m.cmd.Wait(); err != nil {
		return m.ended(err)
	}

	return nil
}

func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// tail keeps the last 4 KiB of a node's log.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - 4<<10; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
