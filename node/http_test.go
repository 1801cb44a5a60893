package node_test

import (
	"io"
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
	"go-crontab/node"
	"go-crontab/sql/read"
)

// TestHTTPJob lets a cluster call a server that succeeds only the second time, and one that must
// not be called.
func TestHTTPJob(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []http.Header
	bodies := map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		asked = append(asked, r.Header.Clone())
		bodies[string(body)] = true
		first := len(asked) == 1
		mu.Unlock()
		if first {
			w.WriteHeader(http.StatusServiceUnavailable)
		}

		_, _ = io.WriteString(w, "attempt "+r.Header.Get("X-Gocrontab-Attempt"))
	}))

	t.Cleanup(s.Close)
	secrets := t.TempDir()
	if err := os.Mkdir(filepath.Join(secrets, "default"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(secrets, "default", "hook"), []byte("k3y\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	c := newCluster(t)
	open := func(cfg *node.Config) { cfg.HTTPAllow, cfg.SecretsDir = []string{"127.0.0.1"}, secrets }
	n := c.start("one", open)
	c.start("two", open)

	call := n.create(job.Spec{Name: "call", At: ptr(n.Now()),
		Retry: job.Retry{Attempts: 3, Backoff: job.Duration(200 * time.Millisecond)}, HTTP: &job.HTTP{
			URL: s.URL + "/hook", Body: `{"due": "{{due}}"}`, Sign: &job.HTTPSign{Secret: "hook"},
		}})

	forbidden := n.create(job.Spec{
		Name: "forbidden", At: ptr(n.Now()), HTTP: &job.HTTP{URL: "http://169.254.169.254/latest/meta-data"},
	})
	for _, j := range []job.Job{call, forbidden} {
		n.await(j.Spec.Name+" is over", 10*time.Second, func() bool {
			return slices.ContainsFunc(c.history(j.ID), func(r read.Run) bool { return r.Final })
		})
	}

	if r := c.history(forbidden.ID)[0]; r.Outcome != job.Failed ||
		!strings.Contains(r.Reason.Text, "clouds serve credentials") {
		t.Errorf("the forbidden one: %+v", r.Run)
	}

	runs := c.history(call.ID)
	slices.SortFunc(runs, func(a, b read.Run) int { return a.Attempt - b.Attempt })
	if len(runs) != 2 || len(asked) != 2 {
		t.Fatalf("%d runs and %d requests, want 2", len(runs), len(asked))
	}

	for i, want := range []struct {
		outcome job.Outcome
		reason  string
		output  string
	}{{job.Failed, "HTTP 503 Service Unavailable, expected 2xx", "attempt 1"},
		{job.Succeeded, "HTTP 200 OK", "attempt 2"}} {
		r, err := c.db.Run(t.Context(), runs[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		if r.Outcome != want.outcome || r.Reason.Text != want.reason || r.Output.Text() != want.output || r.ExitCode != nil {
			t.Errorf("run %d: %+v with the output %q", i, r.Run, r.Output.Text())
		}

		h := asked[i]
		if h.Get("Idempotency-Key") != r.Launch.String() || h.Get("X-Gocrontab-Due") != r.Due.String() ||
			!strings.HasPrefix(h.Get("X-Gocrontab-Signature"), "t=") {
			t.Errorf("request %d had %v, want those of %+v", i, h, r.Run)
		}
	}

	if a, b := asked[0], asked[1]; a.Get("X-Gocrontab-Due") != b.Get("X-Gocrontab-Due") ||
		a.Get("Idempotency-Key") == b.Get("Idempotency-Key") || len(bodies) != 1 {
		t.Errorf("the attempts: got %v and %v with %d bodies, want the same due time, body, and other keys", a, b,
			len(bodies))
	}
}

// TestHTTPJobKilled kills a call from another node, and lets a drain end one: the server notices
// both.
func TestHTTPJobKilled(t *testing.T) {
	t.Parallel()
	arrived, hung := make(chan string, 10), make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- r.URL.Path
		select {
		case <-r.Context().Done():
			hung <- r.URL.Path
		case <-time.After(5 * time.Minute):
		}
	}))

	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	c := newCluster(t)
	open := func(cfg *node.Config) { cfg.HTTPAllow, cfg.Grace = []string{"127.0.0.1"}, 200*time.Millisecond }
	nodes := map[string]*member{"one": c.start("one", open), "two": c.start("two", open)}
	one := nodes["one"]
	start := func(name string) read.Run {
		t.Helper()
		j := one.create(job.Spec{Name: name, At: ptr(one.Now()), HTTP: &job.HTTP{URL: s.URL + "/" + name}})
		var running []read.Run
		one.await("it runs", 5*time.Second, func() bool {
			running, _ = c.db.ExecutingRuns(t.Context(), read.RunFilter{JobID: j.ID, Limit: 10})
			return len(running) == 1
		})

		select {
		case <-arrived:
		case <-time.After(60 * time.Second):
			t.Fatal("no request arrives")
		}

		return running[0]
	}

	ended := func(r read.Run, reason string) {
		t.Helper()
		await(t, "its end", 10*time.Second, func() bool { return len(c.history(r.JobID)) == 1 })
		if got := c.history(r.JobID)[0]; got.Outcome != job.Killed || !strings.HasPrefix(got.Reason.Text, reason) {
			t.Errorf("got %+v, want it killed, %s", got.Run, reason)
		}

		select {
		case <-hung:
		case <-time.After(60 * time.Second):
			t.Error("the server does not know that nobody waits any more")
		}
	}

	killed := start("killed")
	for name, n := range nodes {
		if name != killed.Node {
			if err := n.Editor().Kill(t.Context(), killed.Launch); err != nil {
				t.Fatal(err)
			}
		}
	}

	ended(killed, "killed by a user; ")
	drained := start("drained")
	nodes[drained.Node].drain()
	ended(drained, node.ErrStopped.Error()+"; ")
}

// TestHTTPJobOfADeadNode kills a node while a server works for it. The server notices at once, the
// run ends lost, and with on_lost rerun a peer calls again with a new key.
func TestHTTPJobOfADeadNode(t *testing.T) {
	t.Parallel()
	arrived, hung := make(chan http.Header, 10), make(chan struct{}, 10)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- r.Header.Clone()
		if r.Header.Get("X-Gocrontab-Attempt") != "1" {
			return
		}
		select {
		case <-r.Context().Done():
			hung <- struct{}{}
		case <-time.After(5 * time.Minute):
		}
	}))

	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	c := newCluster(t)
	doomed := c.process("doomed")
	j := c.insert(job.Spec{
		Name: "call", Every: job.Duration(time.Hour),
		Start: ptr(time.Now().Add(time.Second).Truncate(time.Microsecond)), OnLost: job.LostRerun,
		HTTP: &job.HTTP{URL: s.URL},
	})[0]

	var asked []http.Header
	request := func() {
		t.Helper()
		select {
		case h := <-arrived:
			asked = append(asked, h)
		case <-time.After(60 * time.Second):
			t.Fatal("no request arrives")
		}
	}

	request()
	well := c.start("well", func(cfg *node.Config) { cfg.HTTPAllow = []string{"127.0.0.1"} })
	doomed.signal(syscall.SIGKILL)
	select {
	case <-hung:
	case <-time.After(60 * time.Second):
		t.Error("the server does not know that nobody waits any more")
	}

	request()
	well.await("the second run", 10*time.Second, func() bool { return len(c.history(j.ID)) == 2 })
	runs := c.history(j.ID)
	slices.SortFunc(runs, func(a, b read.Run) int { return a.Attempt - b.Attempt })
	if runs[0].Outcome != job.Lost || runs[0].Final || runs[1].Outcome != job.Succeeded || runs[1].Node != "well" {
		t.Errorf("got %+v and %+v", runs[0].Run, runs[1].Run)
	}

	for i, h := range asked {
		if h.Get("Idempotency-Key") != runs[i].Launch.String() || h.Get("X-Gocrontab-Due") != runs[i].Due.String() {
			t.Errorf("request %d had %v, want those of %+v", i, h, runs[i].Run)
		}
	}
}
