package cli

import (
	"encoding/json"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// crossing forwards connections to either of two nodes.
type crossing struct {
	addr string
	mu   sync.Mutex
	to   string
	open []net.Conn
}

func newCrossing(t *testing.T, to string) *crossing {
	t.Helper()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	x := &crossing{addr: "http://" + l.Addr().String(), to: to}
	t.Cleanup(func() { l.Close(); x.lead(to) })

	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}

			x.mu.Lock()
			u, _ := url.Parse(x.to)
			to, err := net.Dial("tcp", u.Host)
			if err != nil {
				from.Close()
			} else {
				x.open = append(x.open, from, to)
				go func() { io.Copy(to, from); to.Close() }()
				go func() { io.Copy(from, to); from.Close() }()
			}

			x.mu.Unlock()
		}
	}()

	return x
}

// lead breaks all connections, and forwards later ones to another node.
func (x *crossing) lead(to string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.to = to
	for _, c := range x.open {
		c.Close()
	}
	x.open = nil
}

// TestEventsAndLogsOverTwoNodes follows the other node's events through a node, and continues there
// when its own node is gone.
func TestEventsAndLogsOverTwoNodes(t *testing.T) {
	t.Parallel()

	dsn := migrated(t)
	one, two := serve(t, dsn, "one").ready(), serve(t, dsn, "two").ready()
	x := newCrossing(t, two.url)
	env := append(two.env(), "GOCRONTAB_SERVER="+x.addr)
	lines := start(t, env, "events", "--app", "shop", "--absent-ok")
	lines.says("hello begin  two", 30*time.Second)
	objects := start(t, env, "events", "--kind", "run", "-o", "json")
	objects.says(`"kind":"hello"`, 30*time.Second)

	gate := filepath.Join(t.TempDir(), "gate")
	const all = "begun\nmiddle\nend\n"
	command := `echo begun; until [ -e ` + gate + `1 ]; do sleep .05; done; echo middle; until [ -e ` + gate +
		`2 ]; do sleep .05; done; echo end; exit 3`
	if got := one.ask("job", "add", "talks", "--app", "shop", "--schedule", "@yearly", "--selector", "node=one", "-c",
		command); got.code != 0 {
		t.Fatalf("add: %+v", got)
	}

	lines.says("job create  shop/talks  by bootstrap", 30*time.Second)
	if got := one.ask("job", "run", "shop/talks"); got.code != 0 {
		t.Fatalf("run: %+v", got)
	}

	lines.says("run started  shop/talks  running .*one", 30*time.Second)
	logs, raw := start(t, env, "run", "logs", "-f",
		"shop/talks"), start(t, env, "run", "logs", "-f", "--raw", "shop/talks")
	logs.says("begun\n", 30*time.Second)
	raw.says("begun\n", 30*time.Second)

	two.signal(syscall.SIGTERM)
	lines.says("node stop  two|The node closed the stream: the node is shutting down", 30*time.Second)
	x.lead(one.url)
	lines.says("hello (begin|resume)  one", 30*time.Second)

	for i, said := range []string{"middle\n", "end\n"} {
		if err := os.WriteFile(gate+string(rune('1'+i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		logs.says(said, 30*time.Second)
	}

	lines.says("run ended  shop/talks  failed  exit status 3", 30*time.Second)
	objects.says(`"outcome":"failed"`, 30*time.Second)
	for _, p := range []*process{logs, raw} {
		if code := p.exit(30 * time.Second); code != 0 || p.out.String() != all {
			t.Errorf("got code %d, %q, want %q", code, p.out.String(), all)
		}
	}

	for line := range strings.Lines(objects.out.String()) {
		var o struct{ Kind string }
		if !strings.HasPrefix(line, "{") {
			continue // printed to stderr
		}
		if err := json.Unmarshal([]byte(line), &o); err != nil ||
			o.Kind != "run" && o.Kind != "hello" && o.Kind != "reload" {
			t.Errorf("%v, %q: %s", err, o.Kind, line)
		}
	}

	two.exit(30 * time.Second)

	var made struct{ Token string }
	if got := one.ask("token", "create", "reader", "--role", "viewer", "--app", "shop", "-o", "json"); got.code != 0 ||
		json.Unmarshal([]byte(got.out), &made) != nil {
		t.Fatalf("token create: %+v", got)
	}

	limited := start(t, append(one.env(), "GOCRONTAB_TOKEN="+made.Token), "events")
	limited.says("hello", 30*time.Second)
	if got := one.ask("token", "revoke", "reader"); got.code != 0 {
		t.Fatalf("revoke: %+v", got)
	}

	limited.says("token reader was revoked", 30*time.Second)
	if code := limited.exit(30 * time.Second); code != exitUnauthorized {
		t.Errorf("got code %d, want %d", code, exitUnauthorized)
	}
}

// TestEventLines shows events as lines.
func TestEventLines(t *testing.T) {
	t.Parallel()

	plainly := func(_ colour, s string) string { return s }
	for want, text := range map[string]string{
		"runs counted  a/one  3 started, 2 failed\nruns counted  other jobs  7 succeeded\n": `{"kind":"runs","action":"counted","counts":[{"app":"a","job_id":"1","job":"one","started":3,"failed":2}],"other":{"succeeded":7}}`,
		"run ended  a/one  missed  nobody could  2 due times  r-1\n":                        `{"kind":"run","action":"ended","app":"a","job":"one","run":{"id":"r-1","state":"ended","outcome":"missed","reason":"nobody could","count":2}}`,
		"run started  a/one  running  1.2s late  n  r-1\n":                                  `{"kind":"run","action":"started","app":"a","job":"one","run":{"id":"r-1","state":"running","started":"2027-01-01T00:00:00Z","lateness_ms":1200,"node":"n"}}`,
		"backfill running  a/one  7 of 9 due times\n":                                       `{"kind":"backfill","action":"running","app":"a","job":"one","backfill":{"id":"3","total":9,"planned":4,"left_out":3}}`,
		"pause pause  shop  by ann  stock\n":                                                `{"kind":"pause","action":"pause","app":"shop","who":"ann","reason":"stock"}`,
		"change create  ci  token  by ann\n":                                                `{"kind":"change","action":"create","name":"ci","what":"token","who":"ann"}`,
		"node join  x\uFFFD2Jy\n":                                                           `{"kind":"node","action":"join","name":"x\u001b2Jy"}`,
		"reload missed  too much\n":                                                         `{"kind":"reload","action":"missed","reason":"too much"}`,
	} {
		var e eventView
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := ""
		for line := range strings.Lines(e.lines(plainly, time.UTC)) {
			_, rest, _ := strings.Cut(line, "  ")
			got += rest
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
