//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/sql"
)

// TestOperatorsVerbs follows an operator's work: retention rules, a node's log level, alerts to a
// local receiver, and a restored database.
func TestOperatorsVerbs(t *testing.T) {
	t.Parallel()

	dsn, state := migrated(t), filepath.Join(t.TempDir(), "state")
	node := func() *process {
		return start(t, []string{"GOCRONTAB_DSN=" +
			dsn}, "serve", "--node", "one", "--listen", "127.0.0.1:0", "--session-expiry", "5s",
			"--state-dir", state, "--http-allow", "127.0.0.0/8")
	}

	s := serving(t, dsn, node()).ready()
	s.retention()
	s.logLevel()
	s.status()
	s.alerts()
	s.restored(dsn, state, node)
}

// wants runs a command, and checks its exit code and that its output contains all of want.
func (s *server) wants(code int, line string, want ...string) result {
	s.t.Helper()
	got := s.ask(strings.Fields(line)...)
	said := squeezed(got.out + " " + got.err)
	if got.code != code {
		s.t.Errorf("%s: got code %d, %s; want %d", line, got.code, said, code)
	}

	for _, want := range want {
		if !strings.Contains(said, want) {
			s.t.Errorf("%s: got %s, want %q", line, said, want)
		}
	}
	return got
}

func (s *server) retention() {
	s.t.Helper()
	s.wants(0, "retention set --age 2160h --failures 8760h",
		"the cluster keeps records: for 90d, unsuccessful runs for at least 365d")
	s.wants(0, "retention set --app shop --runs 10 --bytes 1MiB",
		"app shop keeps records: the latest 10 of each job, up to 1MiB of output")
	s.wants(0, "retention ls", "cluster 90d", "app shop 10 1MiB", "0 records removed, 0 archived")
	if got := s.wants(0, "retention ls -o name"); got.out != "cluster\nshop\n" {
		s.t.Errorf("names of the rules: got %q", got.out)
	}

	for line, want := range map[string]string{
		"retention set --age soon":            "age",
		"retention set --bytes many":          "bytes",
		"retention set --runs -1":             "runs",
		"retention set --app shop --archive":  "archive",
		"retention set --failures 0.000001ms": "failures",
	} {
		if got := s.ask(strings.Fields(line)...); got.code == 0 || !strings.Contains(got.err, want) {
			s.t.Errorf("%s: got %+v, want what is wrong with %s", line, got, want)
		}
	}

	s.wants(0, "retention set --app shop", "app shop keeps records: no rule")
	if got := s.wants(0, "retention ls -o name"); got.out != "cluster\n" {
		s.t.Errorf("an empty rule stays: got %q", got.out)
	}

	s.wants(0, "audit", "retention")
}

// status shows a failure, its last line and the next command, and that it is over after a rerun.
func (s *server) status() {
	s.t.Helper()
	s.wants(0, "status", "1 node ready", "none failed")
	file := filepath.Join(s.t.TempDir(), "mended")
	s.ask("job", "add", "night/backup", "--schedule", "0 3 1 1 *", "--", "test -e "+file+" || { echo cannot write: disk full; echo bye; exit 3; }")
	s.wants(1, "job run night/backup --wait")
	s.wants(0, "status", "1 failed, 1 of them not succeeded since", "night/backup failing (1×) 1", "one failed: exit status 3",
		"cannot write: disk full", "output of night/backup:", "run logs ", "what could run again:", "run rerun ")
	s.wants(0, "job ls --app night", "HEALTH", "failing (1×)")
	s.wants(0, "job show night/backup", "health failing (1×)")
	if got := s.wants(0, "status -o name"); got.out != "night/backup\n" {
		s.t.Errorf("the failing jobs: got %q", got.out)
	}

	var whole struct {
		Jobs  struct{ Items []view.JobStat }
		Nodes []json.RawMessage
	}
	got := s.wants(0, "status -o json")
	if err := json.Unmarshal([]byte(got.out), &whole); err != nil || len(whole.Jobs.Items) == 0 || len(whole.Nodes) == 0 {
		s.t.Errorf("status -o json: got %q, %v", got.out, err)
	}
	s.wants(2, "run rerun", "--from is missing")
	s.wants(2, "run rerun --from -1h", "add --yes")
	s.wants(2, "run rerun 7 --from -1h", "cannot be combined")
	s.wants(3, "run rerun 7 --yes")
	s.wants(0, "run rerun --from -1h --job night/backup --dry-run", "night/backup", "failed would run again")
	s.wants(0, "run rerun --from -1h --job night/backup --dry-run -o json", `"items": [`, `"name": "backup"`)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.wants(0, "run rerun --from -1h --app night --yes", "night/backup", "failed runs again")
	await(s.t, "it is over", 10*time.Second, func() bool {
		return strings.Contains(squeezed(s.ask("status", "--app", "night").out), "night/backup OK for")
	})
	if got := s.ask("status", "--app", "night"); strings.Contains(got.out+got.err, "run rerun") {
		s.t.Errorf("it is over, and could run again: got %+v", got)
	}
	s.wants(0, "run rerun --from -1h --yes", "No failed runs match")
	s.wants(4, "run rerun night/backup --yes", "it ended succeeded", "1 run cannot run again")
	s.wants(0, "job rm night/backup --yes")
}

// logLevel changes the log level of a running node. At level debug, each request logs a line.
func (s *server) logLevel() {
	s.t.Helper()
	requests := func() int { return strings.Count(s.out.String(), `"level":"DEBUG"`) }
	s.wants(0, "node log-level", "one logs info and above")
	if n := requests(); n != 0 {
		s.t.Errorf("%d lines at the level debug, and the level is info", n)
	}

	s.wants(0, "node log-level debug --for 10m", "one logs debug and above; back to its initial level in ")
	s.says(`"level":"DEBUG","msg":"request"[^\n]*"path":"/api/v1/log-level"`, 5*time.Second)
	s.wants(0, "node log-level info", "one logs info and above")
	s.wants(0, "job ls")
	if regexp.MustCompile(`"level":"DEBUG","msg":"request"[^\n]*"path":"/api/v1/jobs"`).MatchString(s.out.String()) {
		s.t.Error("a request is logged at the level debug after that was taken back")
	}

	s.wants(0, "node log-level error --for 300ms", "one logs error and above")
	await(s.t, "the level comes back by itself", 5*time.Second,
		func() bool { return s.ask("node", "log-level").out == "one logs info and above\n" })
	s.wants(exitRefused, "node log-level loud", "level")
	s.wants(exitUsage, "node log-level --for 10m", "a LEVEL")
	s.wants(0, "audit --kind node -o json", "log level debug for 10m", "log level error for 300ms")
}

// receiver is the target of an alert channel.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	told []string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		text, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.told = append(r.told, string(text))
	}))
	t.Cleanup(r.Close)
	return r
}

// count returns the number of messages with a text.
func (r *receiver) count(what string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range r.told {
		if strings.Contains(text, what) {
			n++
		}
	}
	return n
}

func (s *server) alerts() {
	s.t.Helper()
	s.wants(0, "cluster backup --next-within 26h", "is noted; the next one is expected within 26h")
	s.wants(0, "cluster", "last backup")
	s.wants(exitUsage, "cluster backup", "--next-within is missing")
	s.wants(exitRefused, "cluster backup --next-within 1ms", "next_within")

	r := newReceiver(s.t)
	s.wants(0, "alert channel set hook --type webhook --wait 1ms --url "+r.URL, "hook")
	s.wants(0, "alert channel set deaf --type webhook --url http://127.0.0.1:1/")
	s.wants(0, "alert channel ls", "deaf webhook", "hook webhook "+r.URL+" on")
	s.wants(0, "alert test hook", "hook accepted the message in")
	if r.count("This is a test of the channel hook, sent by the node one") != 1 {
		s.t.Errorf("the receiver got %q, want one test", r.told)
	}

	s.wants(exitFailed, "alert test deaf", "deaf did not accept the message", "127.0.0.1:1")
	s.wants(0, "alert channel ls", "deaf webhook http://127.0.0.1:1/ failing: ")
	s.wants(0, "alert channel show deaf", "failing 1 failed attempt since")
	s.wants(exitNotFound, "alert test nobody")

	// A channel and a rule are tested before they are saved.
	s.wants(0, "alert channel set new --type webhook --test --url "+r.URL, "new accepted the message in")
	s.wants(exitNotFound, "alert channel show new")
	s.wants(0, "alert rule set ops --on failed --channel hook --test", "hook accepted the sample in", "not saved")
	s.wants(exitFailed, "alert rule set ops --on failed --channel hook --title {{.Count|call}} --test",
		"hook: the title of the rule ops: ")
	s.wants(exitRefused, "alert rule set ops --on failed --channel nobody --test", "nobody")
	s.wants(exitNotFound, "alert rule show ops")
	if r.count("This is a test of the rule ops, sent by the node one") != 2 {
		s.t.Errorf("the receiver got %q, want two samples", r.told)
	}

	s.wants(0, "alert channel set odd --type webhook --body {{.Count|call}} --url "+r.URL)
	s.wants(exitFailed, "alert test odd", "odd did not accept the message: the body template failed")
	s.wants(0, "alert channel rm odd")
	s.wants(exitRefused, "alert rule set ops --on failed --channel hook --title {{.Titel}}", "title", "field Titel")
	s.wants(exitUsage, "alert rule set ops --on failures --failures many --channel hook", "3/10m")
	s.wants(0, "alert rule set ops --on failed --app shop --channel hook --title {{.Count|call}}",
		"rule ops sends failed to hook")
	s.wants(0, "alert rule show ops", "failed", "shop")
	s.wants(0, "alert rule ls -o name", "ops")
	s.wants(exitRefused, "alert channel rm hook", "ops")

	// Two alerts: one is sent immediately, the other after its silence has ended.
	silence := strings.TrimSpace(s.wants(0, "alert silence add --job shop/quiet --until 1h --reason disks -o name").out)
	s.wants(0, "alert silence ls", silence+" shop/quiet ", "disks")

	for _, name := range []string{"loud", "quiet"} {
		s.wants(0, "job add "+name+" --app shop --every 24h -- exit 3")
		s.wants(0, "job run shop/"+name)
	}

	await(s.t, "the receiver is told of the one", 15*time.Second, func() bool { return r.count("shop/loud") == 1 })
	await(s.t, "both are known, and the one that was told", 15*time.Second, func() bool {
		out := squeezed(s.ask("alert", "ls", "--state", "firing").out)
		return strings.Contains(out, "shop/loud") && strings.Contains(out, "shop/quiet")
	})

	var known view.Page[alertView]
	if got := s.wants(0, "alert ls -o json"); json.Unmarshal([]byte(got.out), &known) != nil || len(known.Items) != 2 {
		s.t.Fatalf("got %+v, want two alerts", got)
	}

	for _, v := range known.Items {
		if hushed := v.Job == "quiet"; hushed != (v.Silence == silence) {
			s.t.Errorf("got %+v, and the silence is %s", v, silence)
		}
		s.wants(0, "alert show "+v.ID, v.ID+", firing", "shop/"+v.Job)
	}

	await(s.t, "the message is among those that were sent", 5*time.Second, func() bool {
		return strings.Contains(squeezed(s.ask("alert", "sent", "--channel", "hook", "--state", "sent").out),
			" sent alert hook 1 1 ")
	})

	s.wants(0, "alert sent", "a template failed and the built-in text was sent 1 time")
	if n := r.count("shop/quiet"); n != 0 {
		s.t.Errorf("%d messages of what is silenced", n)
	}

	s.wants(0, "alert silence end "+silence, "silence "+silence+" has ended")
	s.wants(0, "alert silence ls", "There are no silences")
	await(s.t, "what still fires is told when the silence ends", 15*time.Second,
		func() bool { return r.count("shop/quiet") == 1 })
	if n := r.count("shop/loud"); n != 1 {
		s.t.Errorf("one trouble was told %d times", n)
	}

	s.wants(0, "alert rule rm ops", "deleted rule ops")
	s.wants(0, "alert channel rm hook deaf", "deleted channel hook", "deleted channel deaf")
	s.wants(0, "alert channel ls", "There are no channels yet")
}

// restored makes a node run with a later state of the database than the one that it finds after the
// restore.
func (s *server) restored(dsn, state string, node func() *process) {
	s.t.Helper()
	t, env := s.t, []string{"GOCRONTAB_DSN=" + dsn}

	// No node matches the job, so it remains overdue however long the test takes.
	s.wants(0, "job add once --at +1s --selector zone=nowhere -- true")
	if code, out := run(t, env, "migrate", "--after-restore"); code != exitRefused ||
		!strings.Contains(out, "node one is still alive") || !strings.Contains(out, "stop all nodes") {
		t.Errorf("with a node that lives: got code %d, %s", code, out)
	}

	mark := func(n int, at time.Time) {
		execute(t, dsn, "UPDATE setting SET value = ? WHERE name = 'mark'", fmt.Sprintf("%d %d", n, at.UnixMicro()))
	}
	mark(1000, time.Now())
	await(t, "the node has seen how far the database is", 10*time.Second, func() bool {
		text, _ := os.ReadFile(filepath.Join(state, "watermark.json"))
		return strings.Contains(string(text), `"mark":100`)
	})

	s.signal(syscall.SIGTERM)
	if code := s.exit(20 * time.Second); code != 0 {
		t.Fatalf("the drained node exits with %d", code)
	}

	backup := time.Now().Add(-time.Hour)
	mark(7, backup)

	p := node()
	if code := p.exit(20 * time.Second); code != exitRefused {
		t.Errorf("a node over an older database exits with %d, want %d", code, exitRefused)
	}

	for _, want := range []string{"the database was restored", "migrate --after-restore", backup.UTC().Format(time.RFC3339)} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("the node does not say %q", want)
		}
	}

	code, out := run(t, env, "migrate", "--after-restore", "-o", "json")
	var m migration
	if err := json.Unmarshal([]byte(out), &m); code != 0 || err != nil || m.Restored == nil {
		t.Fatalf("got code %d, %s", code, out)
	}
	if r := m.Restored; r.AsOf == nil || r.AsOf.Unix() != backup.Unix() || r.Jobs == 0 || len(r.Once) != 1 ||
		r.Once[0].Name != "once" || r.Running != 0 {
		t.Errorf("got %s, want the instant of the backup, and the job with a single due time that has passed", out)
	}

	if code, out := run(t, env, "migrate", "--after-restore"); code != 0 || !strings.Contains(out, "default/once") ||
		!strings.Contains(out, "cluster resume") {
		t.Errorf("once more, as text: got code %d, %s", code, out)
	}

	next := serving(t, dsn, node()).ready()
	next.wants(0, "cluster", sql.RestoredReason)
	await(t, "what was due ends, and is not started", 20*time.Second, func() bool {
		runs := next.runs("once")
		return len(runs) == 1 && runs[0].Outcome == job.Skipped && strings.Contains(runs[0].Reason, sql.RestoredReason)
	})

	next.wants(0, "cluster resume")
}
