package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
)

func TestAddHTTPSendsWhatWasGiven(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){"POST /api/v1/jobs": always(201, fakeJob)})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte("the CA"), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--http", "https://example.com/a?b=c,d"}, `{"url":"https://example.com/a?b=c,d"}`},
		{
			[]string{"--http", "https://example.com", "--method", "PUT", "-H", "Accept: text/plain, text/html",
				"--header", "X:y: z", "--body", "due={{due}}", "--expect", "2xx,404",
				"--expect", "409", "--redirects", "3", "--body-limit", "100", "--sign", "hook"},
			`{"body":"due={{due}}","body_limit":100,"expect":["2xx","404","409"],"headers":{"Accept":"text/plain, text/html","X":"y: z"},"method":"PUT","redirects":3,` +
				`"sign":{"secret":"hook"},"url":"https://example.com"}`,
		},
		{
			[]string{
				"--http", "https://example.com", "--tls-ca", ca, "--tls-client-cert", ca, "--tls-client-key", "key",
				"--tls-server-name", "x",
			},
			`{"tls":{"ca":"the CA","client_cert":"the CA","client_key":"key","server_name":"x"},"url":"https://example.com"}`,
		},
		{
			[]string{"--http", "https://example.com", "--tls-skip-verify"},
			`{"tls":{"skip_verify":true},"url":"https://example.com"}`,
		},
	} {
		if got := command(append([]string{"job", "add", "x", "--every", "1h", "--server", f.URL},
			test.args...)...); got.code != 0 {
			t.Fatalf("%q: got %+v", test.args, got)
		}
		var sent struct {
			Command *string
			HTTP    json.RawMessage
		}
		if err := json.Unmarshal([]byte(f.bodies[len(f.bodies)-1]), &sent); err != nil ||
			string(sent.HTTP) != test.want || sent.Command != nil {
			t.Errorf("%q: sent\n%s\nwant http\n%s; %v", test.args, f.bodies[len(f.bodies)-1], test.want, err)
		}
	}

	for line, want := range map[string]string{
		"--http http://a --tls-ca " + ca + "x": "ca.pemx",
		"--http http://a -H b":                 `want "Name: value"`,
		"--http http://a -H b:c -H b:d":        "is given twice",
		"--method POST -c true":                "--method needs --http URL",
		"--method POST":                        "the command is missing",
	} {
		args := append([]string{"job", "add", "x", "--every", "1h", "--server", f.URL}, strings.Fields(line)...)
		if got := command(args...); got.code == 0 || !strings.Contains(got.err, want) {
			t.Errorf("%s: got %+v, want %q", line, got, want)
		}
	}
}

func TestHTTPCard(t *testing.T) {
	t.Parallel()

	j := jobView{view.Job{Spec: job.Spec{Name: "hook", HTTP: &job.HTTP{
		Method: "POST", URL: "https://example.com/hook", Headers: map[string]string{"B": "2", "A": "1"},
		Body: "one\ntwo", Expect: []string{"2xx", "404"}, Redirects: 2,
		Sign: &job.HTTPSign{Secret: "billing"},
		TLS:  &job.HTTPTLS{CA: "x", ServerName: "in.example", ClientCert: "x", ClientKey: "key"},
	}}}}

	var b strings.Builder
	r := &remote{console: &console{out: &b}}
	if err := r.card(jobCard(&j, time.Now())); err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{
		"http       POST https://example.com/hook\n", "headers    A: 1\n           B: 2\n",
		"body       one\n           two\n", "expect     2xx, 404\n", "redirects  at most 2\n",
		"signed     with the secret billing\n",
		"tls        trusts only its own CA; expects a certificate for in.example; client certificate with the key key\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("got\n%s\nwant in it\n%s", b.String(), want)
		}
	}

	if strings.Contains(b.String(), "command") {
		t.Errorf("a command is shown:\n%s", b.String())
	}
	if got := j.what(); got != "POST https://example.com/hook" {
		t.Errorf("in a list it is %q", got)
	}
}

// TestServeHTTPJobs sets the allowed addresses of HTTP jobs through the environment of the nodes.
func TestServeHTTPJobs(t *testing.T) {
	t.Parallel()

	asked := make(chan http.Header, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Clone()
		_, _ = io.WriteString(w, "hello "+r.URL.RawQuery)
	}))
	t.Cleanup(s.Close)

	secrets := t.TempDir()
	if err := os.Mkdir(filepath.Join(secrets, "default"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(secrets, "default", "hook"), []byte("k3y"), 0o600); err != nil {
		t.Fatal(err)
	}

	dsn := migrated(t)
	p := start(t, []string{
		"GOCRONTAB_DSN=" + dsn, "GOCRONTAB_HTTP_ALLOW=10.0.0.0/8,127.0.0.1", "GOCRONTAB_SECRETS_DIR=" + secrets,
		"GOCRONTAB_SECRET_OTHER=k3z", "GOCRONTAB_GRANT_SECRET=OTHER=default|shop",
	}, "serve", "--node", "one", "--listen", "127.0.0.1:0", "--session-expiry", "5s", "--state-dir", t.TempDir())

	n := serving(t, dsn, p).ready()
	for _, secret := range []string{"hook", "other"} {
		if got := n.ask("job", "add", secret, "--at", "+0s", "--http", s.URL+"/?{{job}}", "--sign",
			secret); got.code != 0 {
			t.Fatalf("got %+v", got)
		}

		select {
		case h := <-asked:
			if !strings.HasPrefix(h.Get("X-Gocrontab-Signature"), "t=") {
				t.Errorf("%s: asked with %v", secret, h)
			}
		case <-time.After(60 * time.Second):
			t.Fatal("no request arrives")
		}

		await(t, "the run", 10*time.Second,
			func() bool { return len(n.runs(secret)) == 1 && n.runs(secret)[0].Outcome != 0 })
		r := n.runs(secret)[0]
		if r.Outcome != job.Succeeded || r.Reason != "HTTP 200 OK" {
			t.Errorf("got %+v", r)
		}

		if got := n.ask("run", "logs", r.ID); got.out != "hello "+secret {
			t.Errorf("output: got %+v", got)
		}
	}

	onlyJSON(t, p.out.String())
	for arg, want := range map[string]string{
		"--http-allow=10.0.0": "want an address such as", "--secrets-dir=/nowhere": "not a folder",
		"--grant-secret=LOST=shop": "the variable GOCRONTAB_SECRET_LOST is not set",
		"--grant-secret=OTHER":     "want the name of a secret and the apps",
	} {
		if code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, "serve", "--listen", "127.0.0.1:0", "--state-dir",
			t.TempDir(), arg); code != exitUsage || !strings.Contains(out, want) {
			t.Errorf("%s: got code %d, %s", arg, code, out)
		}
	}
}
