//go:build linux

package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fullPipe is a full pipe without a reader.
func fullPipe(t *testing.T) (r, w *os.File) {
	t.Helper()

	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fds[1], true); err != nil {
		t.Fatal(err)
	}

	for size := 4096; size > 0; {
		if _, err := unix.Write(fds[1], make([]byte, size)); errors.Is(err, unix.EAGAIN) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}

	if err := unix.SetNonblock(fds[1], false); err != nil {
		t.Fatal(err)
	}

	r, w = os.NewFile(uintptr(fds[0]), "unread"), os.NewFile(uintptr(fds[1]), "full")
	t.Cleanup(func() { r.Close() })

	return r, w
}

// startBlocked starts the program with a full pipe as stdout and stderr.
func startBlocked(t *testing.T, env []string, args ...string) (p *process, unread *os.File) {
	t.Helper()
	unread, w := fullPipe(t)
	defer w.Close()
	return startWith(t, env, func(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = w, w },
		append([]string{binary(t)}, args...)...), unread
}

// dropped returns the number of dropped log lines, from a node's metrics.
func dropped(t *testing.T, s *server) (n int) {
	t.Helper()

	req, err := http.NewRequest(http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}

	req.Header.Set("Authorization", "Bearer "+s.token())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()

	body, _ := io.ReadAll(resp.Body)
	if m := regexp.MustCompile(`(?m)^gocrontab_log_lines_dropped_total (\S+)$`).FindSubmatch(body); m != nil {
		n, _ = strconv.Atoi(string(m[1]))
		return n
	}

	t.Fatalf("no gocrontab_log_lines_dropped_total in\n%s", body)
	return 0
}

// startsOnTime waits for runs of a job that is due each second, and checks their lateness.
func startsOnTime(t *testing.T, s *server, name string) {
	t.Helper()
	seen := len(s.runs(name))
	await(t, "runs of "+name, 20*time.Second, func() bool { return len(s.runs(name)) >= seen+5 })
	for _, r := range s.runs(name) {
		if r.Started == nil || r.Started.Sub(r.Due) > 10*time.Second || !r.Succeeded() {
			t.Errorf("a run of %s: %+v", name, r)
		}
	}
}

// A node whose log has no reader starts its jobs on time, and ends on request.
func TestBlockedLogOfServe(t *testing.T) {
	t.Parallel()

	dsn := migrated(t)
	port := freePort(t)
	p, unread := startBlocked(t, []string{"GOCRONTAB_DSN=" +
		dsn}, "serve", "--node", "one", "--listen", fmt.Sprintf("127.0.0.1:%d", port),
		"--session-expiry", "5s", "--state-dir", t.TempDir(), "--log-level", "debug")
	token, _ := adminTokens.Load(dsn)
	s := &server{p, fmt.Sprintf("http://127.0.0.1:%d", port)}
	adminTokens.Store(s.url, token)
	s.ready()

	for i := range 5 { // each skipped due time logs a line
		s.ask("job", "add", fmt.Sprintf("loud-%d", i), "--every", "100ms", "--overlap", "skip", "--", "sleep 5")
	}

	s.ask("job", "add", "healthy", "--every", "1s", "--", "true")
	startsOnTime(t, s, "healthy")

	// Request logs fill the rest of the queue.
	long := s.url + "/" + strings.Repeat("x", 8<<10)
	await(t, "lines are dropped", 20*time.Second, func() bool {
		status(long)
		return dropped(t, s) > 0
	})

	startsOnTime(t, s, "healthy")

	p.signal(syscall.SIGTERM)
	if code := p.exit(30 * time.Second); code != exitOK {
		t.Errorf("SIGTERM: exit code %d", code)
	}

	_ = unread // keep the reader open: a closed reader is another case
}

// When the log is read again, it reports the number of missing lines.
func TestBlockedLogIsReadAgain(t *testing.T) {
	t.Parallel()

	dsn := migrated(t)
	port := freePort(t)
	p, unread := startBlocked(t, []string{"GOCRONTAB_DSN=" +
		dsn}, "serve", "--node", "one", "--listen", fmt.Sprintf("127.0.0.1:%d", port),
		"--session-expiry", "5s", "--state-dir", t.TempDir(), "--log-level", "debug")
	token, _ := adminTokens.Load(dsn)
	s := &server{p, fmt.Sprintf("http://127.0.0.1:%d", port)}
	adminTokens.Store(s.url, token)
	s.ready()
	long := s.url + "/" + strings.Repeat("x", 8<<10)
	await(t, "lines are dropped", 20*time.Second, func() bool {
		status(long)
		return dropped(t, s) > 0
	})

	var log written
	go io.Copy(&log, unread)
	await(t, "the log says what is missing", 10*time.Second, func() bool {
		return strings.Contains(log.String(),
			`"msg":"log lines were dropped because the reader of the log was blocked","lines":`)
	})

	p.signal(syscall.SIGTERM)
	if code := p.exit(30 * time.Second); code != exitOK {
		t.Errorf("SIGTERM: exit code %d", code)
	}

	await(t, "the last line", 10*time.Second, func() bool { return strings.Contains(log.String(), `"msg":"stopped"`) })
	onlyJSON(t, strings.TrimLeft(log.String(), "\x00"))
}

// dev and its nodes continue when the terminal is stopped, and Ctrl-C ends them.
func TestBlockedTerminalOfDev(t *testing.T) {
	t.Parallel()

	home, port := devHome(t), freePort(t)
	p, unread := startBlocked(t, []string{"HOME=" + home}, "dev", "--data", home+
		"/data", "--port", strconv.Itoa(port), "--nodes", "1",
		"--session-expiry", "5s", "--no-samples", "--log-level", "debug")
	s := &server{p, fmt.Sprintf("http://127.0.0.1:%d", port)}
	s.ready()
	token, err := os.ReadFile(home + "/data/token")
	if err != nil {
		t.Fatal(err)
	}

	adminTokens.Store(s.url, strings.TrimSpace(string(token)))
	s.ask("job", "add", "healthy", "--every", "1s", "--", "true")

	// More than the pipes and the queues can hold.
	long := s.url + "/" + strings.Repeat("x", 8<<10)
	for range 3 << 20 / (8 << 10) {
		status(long)
	}

	startsOnTime(t, s, "healthy")

	// A busy machine may delay dev for a while. If dev did not read at all, each of the following
	// lines would be dropped.
	await(t, "dev reads what its node writes", 20*time.Second, func() bool {
		before := dropped(t, s)
		status(long)
		return dropped(t, s) == before
	})

	p.signal(syscall.SIGINT)
	if code := p.exit(30 * time.Second); code != exitOK {
		t.Errorf("SIGINT: exit code %d", code)
	}

	_ = unread
}
