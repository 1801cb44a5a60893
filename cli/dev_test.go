package cli

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
)

// devCluster is a running `dev`.
type devCluster struct {
	*server
	pids map[string]int // of the nodes
	home string         // unique to its processes
}

// freePort returns a port followed by free ones, below the range for outgoing connections.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 14000 + rand.IntN(15000)
		if l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

var nodeLine = regexp.MustCompile(`(?m)^  (node-\d)  pid (\d+) +(http://127\.0\.0\.1:(\d+))$`)

// startDev starts dev and waits until the cluster is ready.
func startDev(t *testing.T, home string, port int, args ...string) *devCluster {
	t.Helper()
	return standing(launchDev(t, home, port, args...), home)
}

// launchDev starts dev with its own HOME. All its descendants inherit it: database, nodes,
// watchers, commands.
func launchDev(t *testing.T, home string, port int, args ...string) *process {
	t.Helper()
	args = append([]string{
		"dev", "--data", filepath.Join(home, "data"), "--port", strconv.Itoa(port), "--session-expiry", "5s",
		"--restart-after", "3s",
	}, args...)
	return start(t, []string{"HOME=" + home}, args...)
}

// standing waits for dev's guide, and reads the addresses of the nodes from it.
func standing(p *process, home string) *devCluster {
	p.t.Helper()
	d := &devCluster{home: home, pids: map[string]int{}}
	p.says("Ctrl-C stops everything", 60*time.Second)

	for _, m := range nodeLine.FindAllStringSubmatch(p.out.String(), -1) {
		pid, _ := strconv.Atoi(m[2])
		d.pids[m[1]] = pid
		if m[1] == "node-1" {
			d.server = &server{p, m[3]}
		}
	}

	if d.server == nil {
		p.t.Fatalf("no node-1 in\n%s", p.out.String())
	}

	token, err := os.ReadFile(filepath.Join(home, "data", "token"))
	if err != nil {
		p.t.Fatal(err)
	}

	adminTokens.Store(d.url, strings.TrimSpace(string(token)))
	return d
}

// processes lists the living processes of a dev, by the HOME in their environment.
func processes(home string) (alive []string) {
	entries, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range entries {
		env, err := os.ReadFile(path)
		if err != nil || !strings.Contains("\x00"+string(env), "\x00HOME="+home+"\x00") {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if len(line) > 0 { // a zombie has no environment
			alive = append(alive, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}

	return alive
}

func (d *devCluster) gone(limit time.Duration) {
	d.t.Helper()
	await(d.t, "no process is left", limit, func() bool { return len(processes(d.home)) == 0 })
}

func (d *devCluster) cluster() (v view.Cluster) {
	d.t.Helper()
	got := d.ask("cluster", "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &v); err != nil {
		d.t.Fatalf("%+v", got)
	}
	return v
}

// linkAt returns the path of the token's link for a port.
func linkAt(home, port string) string {
	return filepath.Join(home, ".local", "share", "go-crontab", "servers", "127.0.0.1-"+port)
}

// idle picks a node other than node-1 on which no command runs.
func (d *devCluster) idle() (name string) {
	d.t.Helper()
	await(d.t, "an idle node", 20*time.Second, func() bool {
		for _, s := range d.cluster().Sessions {
			if s.Node != "node-1" && s.Executing == 0 {
				name = s.Node
				return true
			}
		}
		return false
	})

	return name
}

// Home is removed only after nothing writes there any more.
func devHome(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("needs /proc to see what lives")
	}
	home := t.TempDir()
	t.Cleanup(func() {
		await(t, "no process is left", 30*time.Second, func() bool { return len(processes(home)) == 0 })
	})
	return home
}

func TestDev(t *testing.T) {
	t.Parallel()

	home, port := devHome(t), freePort(t)
	taken, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	d := startDev(t, home, port)
	if want := fmt.Sprintf("http://127.0.0.1:%d", port+1); d.url != want || len(d.pids) != 3 {
		t.Errorf("got node-1 at %s, nodes %v; want it at %s, the port before is taken, and 3 of them", d.url, d.pids,
			want)
	}

	d.says("5 samples were added", time.Second)
	if got := d.ask("job", "ls", "-o",
		"name"); got.out != "default/hello\ndefault/disk\ndefault/flaky\ndefault/slow\ndefault/once\n" {
		t.Errorf("sample jobs: got %+v", got)
	}
	if v := d.cluster(); len(v.Sessions) != 3 {
		t.Errorf("got %d sessions, want 3", len(v.Sessions))
	}

	d.ask("job", "rm", "slow", "disk", "flaky", "once")
	if got := d.ask("job", "add", "tick", "--every", "1s", "--overlap", "allow", "--", "true"); got.code != 0 {
		t.Fatalf("%+v", got)
	}

	await(t, "hello was said", 15*time.Second,
		func() bool { return strings.HasPrefix(d.ask("run", "logs", "hello").out, "Hello, I was due at 20") })

	victim := d.idle()
	killed := time.Now()
	if err := syscall.Kill(d.pids[victim], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}

	d.says(fmt.Sprintf(`\[dev\] +%s \(pid %d\) died: signal: killed; the others take over within about 2s, and it restarts in 3s`, victim, d.pids[victim]), 15*time.Second)
	for _, m := range nodeLine.FindAllStringSubmatch(d.out.String(), -1) {
		if _, err := os.Lstat(linkAt(home, m[4])); (err == nil) == (m[1] == victim) &&
			!strings.Contains(d.out.String(), victim+" has restarted") {
			t.Errorf("%s died, and the link of %s: %v", victim, m[1], err)
		}
	}

	await(t, "the others go on", 15*time.Second, func() bool {
		runs := d.runs("tick")
		return len(runs) > 0 && runs[0].Outcome == job.Succeeded && runs[0].Due.After(killed.Add(time.Second))
	})

	d.says(victim+` has restarted, pid \d+`, 20*time.Second)
	await(t, "three sessions again", 15*time.Second, func() bool {
		ready := 0
		for _, s := range d.cluster().Sessions {
			if s.BeatAgeMS < 2000 {
				ready++
			}
		}
		return ready == 3
	})

	// Commands find the token for these nodes only, and requests without a token are refused.
	file := filepath.Join(home, "data", "token")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: got %v, %v; want it for its owner alone", info, err)
	}
	if code, out := run(t, []string{"HOME=" + home, "GOCRONTAB_SERVER=" + d.url}, "token", "show", "-o",
		"name"); code != 0 || out != "dev\n" {
		t.Errorf("a command without a token: got code %d, %s", code, out)
	}

	if code, out := run(t, []string{"HOME=" + t.TempDir(), "GOCRONTAB_SERVER=" + d.url}, "job",
		"ls"); code != exitUnauthorized || !strings.Contains(out, "GOCRONTAB_TOKEN") {
		t.Errorf("a command of somebody else: got code %d, %s; want refused, and what to do", code, out)
	}

	link := linkAt(home, strconv.Itoa(port+1))
	if to, err := os.Readlink(link); err != nil || to != file {
		t.Errorf("got a link to %s, %v; want it to %s", to, err, file)
	}

	before := d.token()

	d.signal(syscall.SIGINT)
	if code := d.exit(30 * time.Second); code != 0 {
		t.Errorf("Ctrl-C: got code %d, want 0", code)
	}

	d.gone(10 * time.Second)
	if _, err := os.Lstat(link); err == nil {
		t.Error("the port is free for others, and commands would send them the token")
	}

	// Start again on the same data. Then dev itself dies.
	d = startDev(t, home, port, "--nodes", "2")
	if d.token() != before {
		t.Error("the second start made another token")
	}
	if strings.Contains(d.out.String(), "samples were added") {
		t.Error("the second start added the samples again")
	}
	if got := d.ask("job", "ls", "-o", "name"); got.out != "default/hello\ndefault/tick\n" {
		t.Errorf("second start: got %+v, want the jobs as they were", got)
	}

	if got := d.ask("job", "add", "long", "--schedule", "@yearly", "--", "sleep 600"); got.code != 0 {
		t.Fatalf("%+v", got)
	}

	d.ask("job", "run", "long")
	await(t, "long is running", 20*time.Second,
		func() bool { return d.ask("run", "ls", "--state", "running", "-j", "long", "-o", "name").out != "" })
	d.signal(syscall.SIGKILL)
	d.exit(15 * time.Second)
	d.gone(20 * time.Second)
}

func TestDevStartsAgainOverItsRemains(t *testing.T) {
	t.Parallel()

	home, port := devHome(t), freePort(t)
	d := startDev(t, home, port, "--nodes", "1", "--no-samples")
	d.ask("job", "add", "long", "--schedule", "@yearly", "--", "sleep 600")
	d.ask("job", "run", "long")
	await(t, "long is running", 20*time.Second,
		func() bool { return d.ask("run", "ls", "--state", "running", "-o", "name").out != "" })
	first := d.url

	// A second dev on the same data is refused while the first is alive.
	code, out := run(t, []string{"HOME=" + home}, "dev", "--data", filepath.Join(home, "data"))
	if code != exitFailed || !strings.Contains(out, "is in use by process") || !strings.Contains(out, "dev --data ") {
		t.Errorf("second dev: got code %d, %s", code, out)
	}

	d.signal(syscall.SIGKILL)
	d.exit(15 * time.Second)
	left := linkAt(home, "1") // of a node that used another port
	if err := os.Symlink(filepath.Join(home, "data", "token"), left); err != nil {
		t.Fatal(err)
	}

	d = startDev(t, home, port, "--nodes", "1", "--no-samples")
	if _, err := os.Lstat(left); err == nil {
		t.Error("a link of the earlier run is still there")
	}
	if d.url != first {
		t.Errorf("got node-1 at %s, want %s as before", d.url, first)
	}

	await(t, "the killed run is told of", 15*time.Second, func() bool {
		runs := d.runs("long")
		return len(runs) == 1 && runs[0].Outcome == job.Killed
	})

	d.signal(syscall.SIGTERM)
	if code := d.exit(30 * time.Second); code != 0 {
		t.Errorf("SIGTERM: got code %d, want 0", code)
	}

	d.gone(10 * time.Second)
}

func TestDevSurvivesItsDatabase(t *testing.T) {
	t.Parallel()

	home := devHome(t)
	d := startDev(t, home, freePort(t), "--nodes", "1", "--no-samples")
	pid, err := os.ReadFile(filepath.Join(home, "data", "db", "server.pid"))
	if err != nil {
		t.Fatal(err)
	}

	n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}

	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}

	d.says(`\[dev\] +the private database in .* ended: killed`, 15*time.Second)
	d.says("the database is back", 20*time.Second)
	await(t, "a job can be added", 15*time.Second,
		func() bool { return d.ask("job", "add", "x", "--every", "1s", "--", "true").code == 0 })
	await(t, "it runs", 15*time.Second, func() bool { return len(d.runs("x")) > 0 })
	if strings.Contains(d.out.String(), "[mysql]") {
		t.Error("the driver writes to the log by itself")
	}

	hangup := syscall.SIGHUP
	if signal.Ignored(hangup) { // under nohup, dev ignores it too
		hangup = syscall.SIGTERM
	}

	d.signal(hangup)
	if code := d.exit(30 * time.Second); code != 0 {
		t.Errorf("SIGHUP: got code %d, want 0", code)
	}
}

func TestDevRestartsANodeThatGivesUp(t *testing.T) {
	t.Parallel()

	home := devHome(t)
	obstacle := filepath.Join(home, "data", "nodes", "node-2") // a file in place of its folder
	if err := os.MkdirAll(filepath.Dir(obstacle), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(obstacle, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	p := launchDev(t, home, freePort(t), "--nodes", "2", "--no-samples")
	p.says(`node-2\] error: .*not a directory`, 30*time.Second)
	p.says(`node-2 \(pid \d+\) died: exit status 1; it restarts at once`, 15*time.Second)
	p.says(`node-2 \(pid \d+\) died: exit status 1; it restarts in 1s`, 15*time.Second)
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}

	d := standing(p, home)
	if v := d.cluster(); len(v.Sessions) != 2 {
		t.Errorf("got %d sessions, want 2", len(v.Sessions))
	}

	d.signal(syscall.SIGTERM)
	d.exit(30 * time.Second)
	d.gone(10 * time.Second)
}

func TestDevWithoutAServerProgram(t *testing.T) {
	t.Parallel()
	code, out := run(t, []string{"GOCRONTAB_MYSQLD=/nonexistent/mariadbd", "HOME=" + t.TempDir()}, "dev")
	if code != exitFailed || !strings.Contains(out, "/nonexistent/mariadbd") {
		t.Errorf("got code %d, %s; want failed and why", code, out)
	}
}
