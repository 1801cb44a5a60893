package cli

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// goneServer returns the URL of a server that has stopped.
func goneServer() string {
	s := httptest.NewServer(nil)
	s.Close()
	return s.URL
}

// TestSeveralServers: commands use the first server that answers, and name all if none does.
func TestSeveralServers(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){"GET /api/v1/jobs/12": always(200, fakeJob)})
	gone := goneServer()
	host := strings.TrimPrefix(f.URL, "http://")

	if got := command("job", "show", "12", "--server", gone+", "+host, "-o", "name"); got.code != 0 ||
		got.out != "ops/a/b\n" {
		t.Errorf("the second answers: got %+v", got)
	}
	stopping := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs/12": always(503, `{"type":"t","title":"It is stopping","status":503}`),
	})
	none := "It is stopping\nno node answers at " + gone + ": connection refused\n"
	if got := command("job", "show", "12", "--server", stopping.URL+","+gone); got.code != exitFailed ||
		!strings.Contains(got.err, none) {
		t.Errorf("none answers: got %+v, want %q", got, none)
	}
	if got := command("job", "show", "12", "--server", f.URL+","); got.code != exitUsage ||
		!strings.Contains(got.err, `server "": want a URL`) {
		t.Errorf("a comma too many: got %+v", got)
	}
}

// TestAuthorityOfAContext: a context keeps several servers and the authority of their certificates.
func TestAuthorityOfAContext(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)

	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, fakeJob)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)

	ca, other := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "other.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for file, text := range map[string][]byte{ca: text, other: []byte("no certificate")} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	show := []string{"job", "show", "12", "-o", "name"}
	if got := command(append(show, "--server", s.URL, "--ca-cert", ca)...); got.code != 0 {
		t.Errorf("--ca-cert: got %+v", got)
	}
	if got := command(append(show, "--server", s.URL, "--ca-cert", other)...); got.code != exitUsage ||
		!strings.Contains(got.err, "has no certificate in PEM format") {
		t.Errorf("a file without a certificate: got %+v", got)
	}

	add := command("context", "add", "prod", "--server", goneServer()+","+s.URL, "--ca-cert", ca)
	if add.code != 0 {
		t.Fatalf("context add: got %+v", add)
	}
	if got := command(show...); got.code != 0 || got.out != "ops/a/b\n" {
		t.Errorf("the context's authority: got %+v", got)
	}

	t.Setenv("GOCRONTAB_CA_CERT", other)
	if got := command(show...); got.code != exitUsage {
		t.Errorf("the variable takes precedence over the current context: got %+v", got)
	}
	if got := command(append(show, "--context", "prod")...); got.code != 0 {
		t.Errorf("--context takes precedence over the variable: got %+v", got)
	}

	t.Setenv("GOCRONTAB_CA_CERT", "")
	if got := command("context", "add", "prod", "--ca-cert", ""); got.code != 0 {
		t.Errorf("an empty authority: got %+v", got)
	}
	if got := command(show...); got.code != exitFailed || !strings.Contains(got.err, "unknown authority") {
		t.Errorf("without the authority: got %+v", got)
	}
}

// TestWaitTimeout: a wait that is given up has an exit code of its own, and says what goes on.
func TestWaitTimeout(t *testing.T) {
	t.Parallel()

	const fakeBackfill = `{"id":"4","job_id":"12","state":"running","total":2}`
	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs/12":           always(200, fakeJob),
		"POST /api/v1/jobs/12/run":      always(202, `{"job_id":"12","request":"7","due":"2027-01-31T12:00:00Z"}`),
		"GET /api/v1/runs":              always(200, `{"items":[]}`),
		"POST /api/v1/jobs/12/backfill": always(202, fakeBackfill),
		"GET /api/v1/backfills/4":       always(200, fakeBackfill),
		"POST /api/v1/nodes/one/drain": always(200,
			`{"name":"one","state":"draining","cordoned":true,"draining":true,"executing":3}`),
		"GET /api/v1/nodes/one": always(200,
			`{"name":"one","state":"draining","cordoned":true,"draining":true,"executing":3}`),
	})

	for line, want := range map[string]string{
		"job run 12":                   "ops/a/b has not ended after 300ms\n  the run goes on",
		"backfill start 12 --from -1h": "backfill 4 has not ended after 300ms\n  it goes on",
		"node drain one":               "one still has 3 executing after 300ms\n  it stays cordoned",
	} {
		args := append(strings.Fields(line), "--server", f.URL)
		got := command(append(args, "--wait", "--wait-timeout", "300ms")...)
		if got.code != exitTimedOut || !strings.Contains(got.err, want) {
			t.Errorf("%s: got %+v; want code %d and %q", line, got, exitTimedOut, want)
		}
		if got := command(append(args, "--wait-timeout", "1s")...); got.code != exitUsage ||
			!strings.Contains(got.err, "--wait-timeout needs --wait") {
			t.Errorf("%s without --wait: got %+v", line, got)
		}
	}

	// A node that hangs.
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == "/api/v1/jobs/12" {
			_, _ = io.WriteString(w, fakeJob)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // then the server notices the end of the connection
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	for line, want := range map[string]string{
		"job run 12":                   "it is unknown whether ops/a/b was started after 300ms\n  to see it",
		"job run 13":                   "nothing was started after 300ms",
		"backfill start 12 --from -1h": "it is unknown whether the backfill was started after 300ms\n  to see it",
		"node drain one":               "it is unknown whether one was cordoned after 300ms",
	} {
		args := append(strings.Fields(line), "--server", silent.URL, "--wait", "--wait-timeout", "300ms")
		if got := command(args...); got.code != exitTimedOut || !strings.Contains(got.err, want) {
			t.Errorf("%s, which hangs: got %+v; want code %d and %q", line, got, exitTimedOut, want)
		}
	}
}

// TestPasswordInAnAddress: it is refused and not printed, for all ways to give an address. Addresses
// without a scheme are completed for all of them.
func TestPasswordInAnAddress(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, args := range [][]string{
		{"job", "ls", "--server"}, {"context", "add", "prod", "--server"},
	} {
		for _, server := range []string{"http://user:hunter2@127.0.0.1:1", "http://a:1,http://u:hunter2 @b:1"} {
			if got := command(append(args, server)...); got.code != exitUsage || strings.Contains(got.err, "hunter2") ||
				!strings.Contains(got.err, "without a password") {
				t.Errorf("%v %s: got %+v", args, server, got)
			}
		}
	}

	if got := command("context", "add", "prod", "--server", "web-1:8610,web-2:8610"); got.code != 0 ||
		!strings.Contains(got.out, "added prod: http://web-1:8610,http://web-2:8610") {
		t.Errorf("without a scheme: got %+v", got)
	}
}
