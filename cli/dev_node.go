//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go-crontab/node"
)

// member is a node of dev: a process that is restarted when it dies.
type member struct {
	*dev
	name   string
	dsn    string
	colour colour

	mu   sync.Mutex
	port int
	pid  int // of the latest process
}

// memberColours distinguish the lines of the nodes.
var memberColours = []colour{cyan, yellow, purple, green, blue}

// Pauses between restarts of a node that keeps exiting by itself.
const (
	firstPause = time.Second
	mostPause  = 30 * time.Second
	stable     = 10 * time.Second // a node that lived this long is restarted without a pause
)

// run keeps the node running until a stop is requested and the process has ended.
func (m *member) run(stop *stopping) {
	again := time.Duration(0)
	for life := 1; ; life++ {
		began := time.Now()
		ended := m.live(stop, life)
		m.unlink()
		if stop.drain.Err() != nil {
			return
		}

		pause := m.away
		var exit *exec.ExitError
		if ended != nil && (!errors.As(ended, &exit) || exit.Exited()) { // it exited by itself, without a signal
			if time.Since(began) >= stable {
				again = 0
			}
			pause, again = again, min(max(2*again, firstPause), mostPause)
		}

		m.reportEnd(ended, pause)
		select {
		case <-stop.drain.Done():
			return
		case <-time.After(pause):
		}
	}
}

// reportEnd reports how the node ended, and when it restarts.
func (m *member) reportEnd(ended error, pause time.Duration) {
	how := "ended"
	if ended != nil {
		how = "died: " + ended.Error()
	}

	next := fmt.Sprintf("it restarts in %s", pause)
	switch {
	case pause == 0:
		next = "it restarts at once"
	case pause == m.away && m.count > 1:
		next = fmt.Sprintf("the others take over within about %s, and %s", m.takeover(), next)
	}

	m.say("%s (pid %d) %s; %s", m.name, m.lastPID(), how, next)
}

// takeover estimates how long it takes until all peers have noticed a dead node.
func (d *dev) takeover() time.Duration {
	if node.HasGuard {
		return 2 * time.Second
	}
	return (d.expiry + 2*time.Second).Round(time.Second)
}

func (m *member) lastPID() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pid
}

func (m *member) url() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("http://127.0.0.1:%d", m.port)
}

// live runs one process and returns how it ended.
func (m *member) live(stop *stopping, life int) error {
	if err := m.choosePort(); err != nil {
		return err
	}

	m.link()
	cmd, release, err := m.start()
	if err != nil {
		return err
	}
	defer release()

	m.mu.Lock()
	m.pid = cmd.Process.Pid
	m.mu.Unlock()
	if life > 1 {
		m.say("%s has restarted, pid %d, %s", m.name, cmd.Process.Pid, m.url())
	}

	ended := make(chan struct{})
	defer close(ended)

	term := func() { _ = cmd.Process.Signal(syscall.SIGTERM) } // fails only if the process is gone
	defer context.AfterFunc(stop.drain, term)()
	defer context.AfterFunc(stop.hard, func() {
		term()
		select {
		case <-ended:
		case <-time.After(hardGrace):
			_ = cmd.Process.Kill()
		}
	})()

	return cmd.Wait()
}

// hardGrace is how long a node may take to kill its commands. After that, the node itself is
// killed.
const hardGrace = 10 * time.Second

// start starts the process of a node. Secrets go into its environment, which only its owner can
// read. The process leads its own process group. So Ctrl-C at the terminal reaches only dev, and
// dev forwards it. The standard input of the process is a pipe that ends with dev.
func (m *member) start() (*exec.Cmd, func(), error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}

	cmd := exec.Command(self, "serve", "--stop-on-eof",
		"--node", m.name,
		"--listen", fmt.Sprintf("127.0.0.1:%d", m.port),
		"--state-dir", filepath.Join(m.data, "nodes", m.name),
		"--session-expiry", m.expiry.String(),
		"--"+secretKeyFlag, m.secretKeyFile(),
		"--tls-cert", "", "--tls-key", "",
		"--http-allow", devHTTPAllow(),
		"--log-format", "json", "--log-level", m.level)

	cmd.Env = append(os.Environ(), "GOCRONTAB_DSN="+m.dsn)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.ExtraFiles = []*os.File{m.lock}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}

	out, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}

	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start %s: %w", m.name, err), in.Close(), out.Close(), w.Close())
	}

	_ = w.Close()
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		m.lines.copyLog(m.name, m.colour, out)
	}()

	return cmd, func() {
		select {
		case <-copied:
		case <-time.After(time.Second): // another process still holds the write end of the pipe
		}
		_ = out.Close()
	}, nil
}

// devHTTPAllow lets HTTP jobs call servers on this machine. People who try dev have servers on
// their machine, and the jobs' commands can reach those servers anyway.
func devHTTPAllow() string {
	allow := "127.0.0.0/8,::1"
	if more := os.Getenv(envName("http-allow")); more != "" {
		allow += "," + more
	}
	return allow
}

// choosePort keeps the port of the node if it is free. Otherwise it takes the next free port.
func (m *member) choosePort() error {
	m.ports.Lock()
	defer m.ports.Unlock()

	first := m.port
	if first == 0 {
		first = m.firstPort
	}

	for port := first; port < min(first+1000, 65536); port++ {
		if m.takenByPeer(port) {
			continue
		}
		l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		m.mu.Lock()
		m.port = port
		m.mu.Unlock()
		return l.Close()
	}

	return fmt.Errorf("no free port at or after %d; choose another with --port", first)
}

func (m *member) takenByPeer(port int) bool {
	return slices.ContainsFunc(m.members, func(peer *member) bool { return peer != m && peer.port == port })
}
