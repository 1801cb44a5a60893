package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go-crontab/api/view"
)

// process is a running instance of the program.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{}
	out   written
}

// written is the output of a process, stdout and stderr together.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *written) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *written) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// start runs the program with env added to a clean environment. It is killed at the end of the test
// at the latest.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return startCommand(t, env, append([]string{binary(t)}, args...)...)
}

// startCommand is like start, for another program that starts the program.
func startCommand(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return startWith(t, env, func(*exec.Cmd) {}, args...)
}

// startWith is like startCommand, for a command that is modified before its start.
func startWith(t *testing.T, env []string, change func(*exec.Cmd), args ...string) *process {
	t.Helper()

	p := &process{t: t, cmd: exec.Command(args[0], args[1:]...), ended: make(chan struct{})}
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, envPrefix) || strings.HasPrefix(pair, "GOCRONTAB_MYSQLD=") {
			p.cmd.Env = append(p.cmd.Env, pair)
		}
	}

	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	change(p.cmd)
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}

	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // see ProcessState
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if strings.Contains(p.out.String(), "DATA RACE") {
			t.Error("a data race in the program")
		}
		if t.Failed() {
			t.Logf("%q wrote:\n%s", args, p.out.String())
		}
	})

	return p
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// exit waits for the end of the process and returns its exit code, -1 for a signal. The limit
// scales like that of await.
func (p *process) exit(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(4 * limit):
		p.t.Fatalf("the process does not end within %s", 4*limit)
		return 0
	}
}

// says waits until the output matches a pattern. It returns the first group, or the whole match.
func (p *process) says(pattern string, limit time.Duration) string {
	p.t.Helper()
	var match []string
	re := regexp.MustCompile(pattern)
	await(p.t, "output "+pattern, limit, func() bool {
		match = re.FindStringSubmatch(p.out.String())
		return match != nil
	})
	return match[len(match)-1]
}

// run runs the program to its end.
func run(t *testing.T, env []string, args ...string) (code int, out string) {
	t.Helper()
	p := start(t, env, args...)
	code = p.exit(30 * time.Second)
	return code, p.out.String()
}

// await waits for a condition. limit is the time on a quiet machine; it waits four times as long.
func await(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(4 * limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", 4*limit, what)
		}
	}
}

// status returns the HTTP status of a node, or 0 without a response.
func status(url string) int {
	resp, err := http.Get(url)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// server is a started `serve`.
type server struct {
	*process
	url string
}

// serve starts a node with a short session expiry, and waits until its API answers.
func serve(t *testing.T, dsn, name string, args ...string) *server {
	t.Helper()
	args = append([]string{
		"serve", "--node", name, "--listen", "127.0.0.1:0", "--session-expiry", "5s", "--state-dir", t.TempDir(),
	}, args...)
	return serving(t, dsn, start(t, []string{"GOCRONTAB_DSN=" + dsn}, args...))
}

// serving waits until the API of a started node answers.
func serving(t *testing.T, dsn string, p *process) *server {
	t.Helper()
	s := &server{p, p.says(`"api":"(http://[^"]+)"`, 20*time.Second)}
	token, ok := adminTokens.Load(dsn)
	if !ok {
		token = someToken
	}
	adminTokens.Store(s.url, token)
	return s
}

// adminTokens holds the admin tokens of the tests' clusters and nodes, by DSN and by URL.
var adminTokens sync.Map

// someToken looks like a token, but no cluster knows it.
const someToken = "gocrontab_ZIVimXnDt6BEEj8u3K9zpzanbh7jTBS4QtI3iJPy0W106oEIh"

// token returns the admin token, or "" if none is known.
func (s *server) token() string {
	token, _ := adminTokens.Load(s.url)
	text, _ := token.(string)
	return text
}

// env returns the variables for a client of the node.
func (s *server) env() []string {
	return []string{"GOCRONTAB_SERVER=" + s.url, "GOCRONTAB_TOKEN=" + s.token()}
}

func (s *server) ready() *server {
	s.t.Helper()
	await(s.t, "ready", 20*time.Second, func() bool { return status(s.url+"/readyz") == http.StatusOK })
	return s
}

// ask runs a client command in this process.
func (s *server) ask(args ...string) result {
	to := []string{"--server", s.url, "--token", s.token()}
	for i, arg := range args {
		if arg == "--" {
			return command(slices.Concat(args[:i], to, args[i:])...)
		}
	}
	return command(slices.Concat(args, to)...)
}

// runs lists the runs of a job, the latest first.
func (s *server) runs(name string) []view.Run {
	s.t.Helper()
	got := s.ask("job", "history", name, "-n", "0", "-o", "json")
	var p view.Page[view.Run]
	if err := json.Unmarshal([]byte(got.out), &p); err != nil {
		s.t.Fatalf("history of %s: %+v", name, got)
	}
	return p.Items
}

// onlyJSON checks that every line of a log is a JSON record: nothing else may write to stderr.
func onlyJSON(t *testing.T, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil || v["msg"] == nil || v["level"] == nil {
			t.Errorf("log line %q: want JSON with a message and a level", line)
		}
	}
}
