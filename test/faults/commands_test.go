//go:build faults

package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go-crontab/job"
)

// once makes a job that is due now, and returns its id.
func (c *cluster) once(name string, fields object) int64 {
	c.t.Helper()
	body := object{"name": name, "at": c.now().Add(500 * time.Millisecond).UTC().Format(time.RFC3339Nano)}
	for key, value := range fields {
		body[key] = value
	}
	return c.create(body)
}

// A result is the only final run of a job.
type result struct {
	outcome job.Outcome
	reason  string
	exit    int
	bytes   int64
	kept    int64
	took    time.Duration
}

// result waits for the end of a job that is due once.
func (c *cluster) result(id int64, limit time.Duration) (x result) {
	c.t.Helper()
	await(c.t, fmt.Sprint("the end of job ", id), limit, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE job_id = ? AND final = 1", id) > 0
	})
	var micros int64
	var outcome string

	err := c.db.QueryRow(`
		SELECT outcome, COALESCE(reason, ''), exit_code, output_bytes, output_kept, ended - started
		FROM run
		WHERE job_id = ? AND final = 1`, id).
		Scan(&outcome, &x.reason, &x.exit, &x.bytes, &x.kept, &micros)
	if err != nil {
		c.t.Fatal(err)
	}

	if x.outcome, err = job.ParseOutcome(outcome); err != nil {
		c.t.Fatal(err)
	}

	x.took = time.Duration(micros) * time.Microsecond
	return x
}

// wantOutcome checks how a job ended.
func (c *cluster) wantOutcome(what string, got result, want job.Outcome) {
	c.t.Helper()
	if got.outcome != want {
		c.t.Errorf("%s: %s (%s), want %s", what, got.outcome, got.reason, want)
	}
}

// heaviest returns the memory of the largest node, in MB.
func (c *cluster) heaviest() (most float64) {
	for _, m := range c.nodes {
		most = max(most, megabytes(m.pid()))
	}
	return most
}

// truncated fails the scenario unless the API says that some output of the job's runs was dropped.
func (c *cluster) truncated(id int64) {
	c.t.Helper()
	a := c.nodes[0].ask("GET", "/api/v1/jobs/"+itoa(id)+"/history", nil)
	var views struct {
		Items []struct {
			Truncated bool `json:"output_truncated"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &views); err != nil || len(views.Items) == 0 {
		c.t.Fatalf("history of job %d: %d %s", id, a.code, a.body)
	}

	for _, v := range views.Items {
		if !v.Truncated {
			c.t.Errorf("job %d: a run does not say that its output is truncated: %.500s", id, a.body)
		}
	}
}

func TestF31Output(t *testing.T) {
	r := scenario(t, "F31", "commands that write 100 MB, and as much as they can for a while")
	c := newCluster(r)
	c.start(1)
	l := c.load()
	l.add("beside", time.Second, object{"command": l.book.Command(50*time.Millisecond, 0), "overlap": "allow"})
	c.result(c.once("warm", object{"command": "head -c 1M /dev/zero"}), 20*time.Second)
	before, most := c.heaviest(), 0.0
	finite := c.once("finite", object{"command": "head -c 100M /dev/zero | tr '\\0' x"})
	endless := c.once("endless", object{"command": "yes", "timeout": fmt.Sprintf("%ds", times(8, 120)), "grace": "1s"})

	end := time.Now().Add(time.Duration(times(10, 122)) * time.Second)
	for ; time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		most = max(most, c.heaviest())
	}

	f, e := c.result(finite, 60*time.Second), c.result(endless, 60*time.Second)
	c.wantOutcome("100 MB", f, job.Succeeded)
	c.wantOutcome("endless", e, job.TimedOut)
	if f.bytes != 100<<20 {
		t.Errorf("%d bytes counted, want 100 MiB", f.bytes)
	}

	for _, x := range []result{f, e} {
		if x.kept == 0 || x.kept > 64<<10 {
			t.Errorf("%d bytes kept, want up to 64 KiB", x.kept)
		}
	}

	for _, id := range []int64{finite, endless} {
		c.truncated(id)
	}

	l.check(onTime)
	l.none(job.Lost, job.Missed, job.Killed)
	r.figure("%d MB written, %d KiB kept of each, memory grew by %.1f MB", (f.bytes+e.bytes)>>20, f.kept>>10,
		most-before)
	if most-before > 20 {
		t.Errorf("memory grew by %.1f MB, want 20 at most", most-before)
	}
}

func TestF32ForkBomb(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F32", "a fork bomb of another user, under a limit of processes")
	if os.Geteuid() != 0 {
		r.skip("needs root, to run commands as another user")
	}
	c := newCluster(r)
	c.start(2)
	l := c.mixed()
	time.Sleep(3 * time.Second)
	before := c.sessions()
	token := fmt.Sprintf("bomb%d", time.Now().UnixNano())

	// The limit counts all processes of the user, so the test takes a user without other processes.
	bomb := token + "() { " + token + " | " + token + " & }; " + token
	id := c.once("bomb", object{"command": "ulimit -u 100; " + bomb + "; sleep 30",
		"user": "games", "timeout": "4s", "grace": "1s", "dir": "/"})
	x := c.result(id, 30*time.Second)
	await(t, "all of it dead", 10*time.Second, func() bool { return len(having(t, "cmdline", token)) == 0 })
	c.same(before, "a fork bomb")
	l.check(onTime)
	l.none(job.Lost, job.Missed, job.Killed)
	r.figure("the bomb ended %s after %s, nothing of it left", x.outcome, short(x.took))

	if x.outcome != job.TimedOut && x.outcome != job.Failed {
		t.Errorf("got %s, want timed_out or failed", x.outcome)
	}
}

func TestF33HeldOutput(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F33", "a grandchild that keeps the output open, in the group and in a session of its own")
	c := newCluster(r)
	c.start(1)
	token := fmt.Sprint(1e8 + time.Now().UnixNano()%1e8)
	t.Cleanup(func() { killAll(having(t, "cmdline", token)) })
	group := c.once("group", object{"command": "sleep " + token + " & exit 7"})

	away := c.once("away", object{"command": "setsid sleep " + token + " & exit 7"})
	for name, want := range map[string]struct {
		id  int64
		why string
	}{
		"in the group":            {group, "it left background processes, and the node stopped them"},
		"in a session of its own": {away, "a background process still has the output open"},
	} {
		x := c.result(want.id, 20*time.Second)
		r.within(name, x.took, 5*time.Second)
		if x.outcome != job.Failed || x.exit != 7 || !strings.Contains(x.reason, want.why) {
			t.Errorf("%s: %s (%s), exit code %d, want failed with 7, and %q", name, x.outcome, x.reason, x.exit,
				want.why)
		}
	}
}

func TestF34IgnoresTerm(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F34", "commands that ignore SIGTERM, at a timeout, a kill and a drain")
	c := newCluster(r)
	c.start(2)
	token := fmt.Sprint(1e8 + time.Now().UnixNano()%1e8)
	t.Cleanup(func() { killAll(having(t, "cmdline", token)) })
	stubborn := "trap '' TERM; sleep " + token + " & sleep " + token + "; sleep " + token
	x := c.result(c.once("timeout", object{"command": stubborn, "timeout": "1s", "grace": "1s"}), 20*time.Second)
	c.wantOutcome("timeout", x, job.TimedOut)
	r.within("timed out after", x.took, 5*time.Second)
	id := c.once("kill", object{"command": stubborn, "grace": "1s"})
	var run string

	await(t, "it runs", 20*time.Second, func() bool {
		_ = c.db.QueryRow("SELECT id FROM v_run WHERE job = 'kill' AND state = 'executing'").Scan(&run)
		return run != "" && len(having(t, "cmdline", token)) >= 3
	})
	var views struct{ Items []struct{ ID string } }
	a := c.nodes[0].ask("GET", "/api/v1/runs?state=running&job_id="+itoa(id), nil)
	if err := json.Unmarshal([]byte(a.body), &views); err != nil || len(views.Items) != 1 {
		t.Fatalf("running runs: %d %s", a.code, a.body)
	}

	if a := c.nodes[1].ask("POST", "/api/v1/runs/"+views.Items[0].ID+"/kill", object{}); a.code/100 != 2 {
		t.Errorf("kill: %d %s", a.code, a.body)
	}

	asked := time.Now()
	c.wantOutcome("kill", c.result(id, 20*time.Second), job.Killed)
	r.within("killed after", time.Since(asked), 6*time.Second)
	id = c.once("drain", object{"command": stubborn, "grace": "1m"})
	await(t, "it runs", 20*time.Second, func() bool { return len(having(t, "cmdline", token)) >= 3 })

	for _, m := range c.nodes {
		_, took := m.leave(20 * time.Second)
		r.within("drained in", took, 8*time.Second)
	}

	c.wantOutcome("drain", c.result(id, 5*time.Second), job.Killed)
	if left := having(t, "cmdline", token); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
}

// clinging lists commands that try to outlive their node.
var clinging = []string{
	"sleep TOKEN",
	"sleep TOKEN & sleep TOKEN & sleep TOKEN",
	"setsid sleep TOKEN & sleep TOKEN",
	"(setsid bash -c 'sleep TOKEN; true' & ); sleep TOKEN",
	"(setsid bash -c '(setsid sleep TOKEN &)' & ); sleep TOKEN",
	"trap '' TERM; sleep TOKEN & sleep TOKEN; true",
	"env -i sleep TOKEN & exec env -i sleep TOKEN",
	"env -i setsid sleep TOKEN & wait",
	"for i in $(seq 20); do (setsid sleep TOKEN &); done; sleep TOKEN",
}

// clingers is the number of processes of these commands that sleep.
const clingers = 1 + 3 + 2 + 2 + 2 + 2 + 2 + 1 + 21

// cgroup makes a cgroup for a node, or returns "" without a writable cgroup v2. It is removed when
// the test ends.
func cgroup(t *testing.T) string {
	t.Helper()
	for _, base := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(base, "cgroup.controllers")); err != nil {
			continue
		}

		dir, err := os.MkdirTemp(base, "gocrontab-faults-")
		if err != nil {
			continue
		}

		t.Cleanup(func() {
			below, _ := filepath.Glob(filepath.Join(dir, "*-*"))
			for _, d := range append(below, dir) {
				_ = syscall.Rmdir(d)
			}
		})

		return dir
	}

	return ""
}

func TestF35Daemons(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F35",
		"commands that put themselves into the background, into sessions of their own, and clear their environment,"+
			" at kill -9 of their node, and at SIGSTOP")
	c := newCluster(r)
	c.start(1)

	group := cgroup(t)
	if group == "" {
		c.start(1)
		r.figure("no cgroup v2 to write to")
	} else {
		c.start(1, "--cgroup", group)
		r.figure("one node with a cgroup")
	}

	for i, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		token := fmt.Sprint(1e9 + time.Now().UnixNano()%1e9)
		t.Cleanup(func() { killAll(having(t, "cmdline", token)) })

		var ids []int64
		for k, command := range clinging {
			ids = append(ids, c.once(fmt.Sprint("cling-", i, "-", k),
				object{"command": strings.ReplaceAll(command, "TOKEN", token),
					"selector": "node=" + c.nodes[k%2].name}))
		}

		await(t, "all of it living", 30*time.Second,
			func() bool { return len(having(t, "cmdline", "sleep\x00"+token)) == clingers })
		alive := len(having(t, "cmdline", token))
		if inside := len(having(t, "cgroup", filepath.Base(group))); group != "" && inside < 10 {
			t.Errorf("%d processes are in the cgroup of a node, want 10 at least", inside)
		}

		for _, m := range c.nodes {
			m.signal(signal)
		}

		struck := time.Now()
		await(t, "all of it dead", c.expiry, func() bool { return len(having(t, "cmdline", token)) == 0 })

		took := time.Since(struck)
		if signal == syscall.SIGKILL {
			r.within(fmt.Sprintf("kill -9: %d processes dead after", alive), took, gone)
		} else {
			r.within(fmt.Sprintf("SIGSTOP: %d processes dead after", alive), took, c.expiry)
		}

		for _, m := range c.nodes {
			if signal == syscall.SIGKILL {
				<-m.ended
				m.start()
			} else {
				m.signal(syscall.SIGCONT)
			}
		}

		time.Sleep(time.Second)
		c.together(60 * time.Second)

		for _, id := range ids {
			if x := c.result(id, c.expiry+15*time.Second); x.outcome != job.Lost && x.outcome != job.Killed {
				t.Errorf("%s: got %s (%s), want lost or killed", signal, x.outcome, x.reason)
			}
		}
	}
}

func TestF36Hogs(t *testing.T) {
	r := scenario(t, "F36", "commands that take all processors, memory up to a limit, and all descriptors")
	c := newCluster(r)
	c.start(2)
	l := c.mixed()
	time.Sleep(3 * time.Second)
	before := c.sessions()

	ids := map[string]int64{}
	for i := range 4 {
		ids[fmt.Sprint("cpu-", i)] = c.once(fmt.Sprint("cpu-", i),
			object{"command": "while :; do :; done", "limits": object{"cpu_seconds": 4}})
	}

	ids["memory"] = c.once("memory", object{"command": "a=x; while :; do a=$a$a; done",
		"limits": object{"address_space": "256MiB"}, "timeout": "30s"})
	ids["descriptors"] = c.once("descriptors",
		object{"command": "for i in $(seq 500); do exec {fd}</dev/null || exit 9; done",
			"limits": object{"open_files": 64}, "timeout": "30s"})

	for name, id := range ids {
		c.wantOutcome(name, c.result(id, 60*time.Second), job.Failed)
	}

	c.same(before, "hogs")
	l.check(onTime)
	l.none(job.Lost, job.Missed, job.Killed)
}

func TestF37Hostile(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F37",
		"a command of another user that kills node and guard and looks for their descriptors and settings")
	if os.Geteuid() != 0 {
		r.skip("needs root, to run commands as another user")
	}

	c := newCluster(r)
	c.start(1)
	m := c.nodes[0]
	session, guard := m.session(), guardOf(m.pid())

	command := fmt.Sprintf(`kill -9 %d && exit 3; kill -9 %d && exit 4; kill -9 -%d && exit 5
(cat /proc/%d/environ /proc/%d/environ || cat /proc/%d/mem) 2>/dev/null && exit 6
env | grep -q GOCRONTAB_DSN && exit 7
for fd in /proc/self/fd/*; do case ${fd##*/} in 0|1|2|3|255) ;; *) [ -e $fd ] && { ls -l $fd; exit 8; } ;; esac; done
exit 0`, guard, m.pid(), m.pid(), m.pid(), guard, m.pid())

	x := c.result(c.once("hostile", object{"command": command, "user": "games", "dir": "/"}), 20*time.Second)
	if x.outcome != job.Succeeded {
		t.Errorf("%s with exit code %d (%s), want success: each code is something that it could do", x.outcome, x.exit,
			x.reason)
	}

	if m.session() != session || guardOf(m.pid()) != guard {
		t.Error("node or guard did not survive it")
	}

	r.figure("exit code %d", x.exit)
}

func TestF38HTTP(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F38",
		"HTTP jobs whose server hangs, drips, writes without end, redirects in a circle, answers 500, hangs up")
	var mu sync.Mutex
	keys := map[string][]string{}
	stop := make(chan struct{})

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		mu.Lock()
		keys[request.URL.Path] = append(keys[request.URL.Path], request.Header.Get("Idempotency-Key"))
		mu.Unlock()
		flush := func() { _ = http.NewResponseController(w).Flush() }

		until := func(step func() error) {
			for {
				select {
				case <-stop:
					return
				case <-request.Context().Done():
					return
				default:
				}

				if step() != nil {
					return
				}
			}
		}

		switch request.URL.Path {
		case "/hang":
			select {
			case <-stop:
			case <-request.Context().Done():
			}
		case "/drip":
			until(func() error {
				_, err := io.WriteString(w, "x")
				flush()
				time.Sleep(300 * time.Millisecond)
				return err
			})
		case "/flood":
			block := make([]byte, 1<<16)
			until(func() error { _, err := w.Write(block); return err })
		case "/circle":
			http.Redirect(w, request, "/circle", http.StatusFound)
		case "/error":
			w.WriteHeader(http.StatusInternalServerError)
		case "/hangup":
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = conn.(*net.TCPConn).SetLinger(0)
				_ = conn.Close()
			}
		}
	}))

	t.Cleanup(server.Close)
	t.Cleanup(func() { close(stop) })
	c := newCluster(r)
	c.start(2, "--http-allow", "127.0.0.0/8")
	l := c.mixed()
	before := c.heaviest()

	ids := map[string]int64{}
	for _, path := range []string{"/hang", "/drip", "/flood", "/circle", "/error", "/hangup"} {
		ids[path] = c.once("http"+path, object{"http": object{"url": server.URL + path, "redirects": 3},
			"timeout": "4s",
			"retry":   object{"attempts": 2, "backoff": "500ms", "on": []string{"failed"}}})
	}

	most := 0.0
	for end := time.Now().Add(12 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		most = max(most, c.heaviest())
	}

	for path, want := range map[string]job.Outcome{"/hang": job.TimedOut, "/drip": job.TimedOut, "/circle": job.Failed,
		"/error": job.Failed, "/hangup": job.Failed} {
		c.wantOutcome(path, c.result(ids[path], 30*time.Second), want)
	}

	flood := c.result(ids["/flood"], 30*time.Second)
	if flood.kept > 64<<10 {
		t.Errorf("%d bytes of a flood kept, want up to 64 KiB", flood.kept)
	}
	c.truncated(ids["/flood"])
	mu.Lock()
	defer mu.Unlock()

	for path, want := range map[string]int{"/hang": 1, "/drip": 1, "/flood": 1, "/error": 2, "/hangup": 2} {
		got := keys[path]
		if len(got) != want || len(slices.Compact(slices.Sorted(slices.Values(got)))) != want {
			t.Errorf("%s was called with the keys %q, want %d different ones: once for each attempt", path, got, want)
		}
	}

	l.check(onTime)
	l.none(job.Lost, job.Missed, job.Killed)
	r.figure("the flood: %s, %d MB counted, memory grew by %.1f MB", flood.outcome, flood.bytes>>20, most-before)
	if most-before > 20 {
		t.Errorf("memory grew by %.1f MB, want 20 at most", most-before)
	}
}

func TestF39Garbage(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F39", "random bytes, NUL, escape sequences and emoji in output and names")
	c := newCluster(r)
	c.start(1)

	m, n := c.nodes[0], 0
	for i, name := range []string{"naïve ☃ 😀", "日本語 '\"`;--", "%s%n<script>", "a/b?c=d&e#f", "e\u0301\u202e"} {
		command := `printf '\x00\xff\xfe\x1b[31m😀\xf0\x9f'; head -c %d /dev/urandom`
		id := c.once(name, object{"command": fmt.Sprintf(command, 100+c.rng.IntN(200_000))})
		x := c.result(id, 20*time.Second)
		c.wantOutcome(name, x, job.Succeeded)
		var views struct{ Items []struct{ ID, Job string } }
		a := m.ask("GET", "/api/v1/jobs/"+itoa(id)+"/history", nil)
		if err := json.Unmarshal([]byte(a.body), &views); err != nil || a.code != 200 || len(views.Items) != 1 {
			t.Fatalf("history %d: %d %s", i, a.code, a.body)
		}

		if views.Items[0].Job != name {
			t.Errorf("name: got %q, want %q", views.Items[0].Job, name)
		}

		if a := m.ask("GET", "/api/v1/runs/"+views.Items[0].ID+"/output", nil); a.code != 200 ||
			!strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") ||
			a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("output: %d, %v; want text that no browser takes for something else", a.code, a.header)
		}

		n++
	}

	for _, name := range []string{"nul\x00", "line\nfeed", "bad\xff"} {
		b, _ := json.Marshal(name)
		if name == "bad\xff" {
			b = []byte("\"bad\xff\"")
		}
		a := m.ask("POST", "/api/v1/jobs", fmt.Sprintf(`{"name":%s,"every":"1h","command":"true"}`, b))
		if a.code != 422 && a.code != 400 {
			t.Errorf("name %q: %d %s, want 422 or 400", name, a.code, a.body)
		}
	}

	r.figure("%d jobs ran and can be read, 3 names refused", n)
}
