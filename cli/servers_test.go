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
	both := gone + "," + goneServer()
	if got := command("job", "show", "12", "--server", both); got.code != exitFailed ||
		!strings.Contains(got.err, "no node answers at "+both+": connection refused") {
		t.Errorf("none answers: got %+v", got)
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
}
