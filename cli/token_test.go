package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go-crontab/internal/auth"
	"go-crontab/test/testdb"
	"go-crontab/test/testidp"

	"github.com/spf13/cobra"
)

func TestTokenCommands(t *testing.T) {
	t.Parallel()

	s := serve(t, migrated(t), "one").ready()
	got := s.ask("token", "create", "ci", "--role", "operator", "--app", "billing,ops", "--expires", "720h")
	token := strings.TrimSpace(got.out)
	if got.code != 0 || !auth.LooksLikeToken(token) || !strings.Contains(got.err, "operator of billing, ops, until ") ||
		!strings.Contains(got.err, "only once") {
		t.Fatalf("got %+v; want the token alone on stdout", got)
	}

	steps := []struct {
		token, line string
		code        int
		want        string // in stdout or stderr
	}{
		{s.token(), "token create ci --role viewer", exitRefused, "go-crontab token revoke ci"},
		{s.token(), "token create x", exitUsage, "--role is missing"},
		{s.token(), "token create x --role root", exitRefused, "role: "},
		{s.token(), "token create x --role viewer --expires whenever", exitUsage, "--expires \"whenever\""},
		{s.token(), "token create wall --role viewer --expires never -o json", 0, `"token": "gocrontab_`},
		{s.token(), "token create old --role admin --expires +1h -o name", 0, "old\n"},
		{s.token(), "token ls -o name", 0, "bootstrap\nci\nwall\nold\n"},
		{s.token(), "token ls", 0, "billing, ops"},
		{s.token(), "token show", 0, "bootstrap"},
		{s.token(), "job add billing/j --every 1h -- true", 0, "added billing/j"},
		{s.token(), "job add other --every 1h -- true", 0, "added default/other"},
		{token, "token show", 0, "billing, ops"},
		{token, "job ls -o name", 0, "billing/j\n"},
		{token, "job pause billing/j", 0, "paused billing/j"},
		{token, "job show other", exitNotFound, "there is no job"},
		{token, "job rm billing/j", exitUnauthorized, "needs the role admin, and you are ci (operator of billing, ops)"},
		{token, "job add billing/k --every 1h -- true", exitUnauthorized, "go-crontab token show"},
		{token, "token ls", exitUnauthorized, "needs the role admin"},
		{s.token(), "token revoke nix", exitNotFound, `there is no token "nix"`},
		{s.token(), "token revoke 4711", exitNotFound, `there is no token "4711"`},
		{s.token(), "token revoke ci old", 0, "revoked token ci\nrevoked token old\n"},
		{token, "job ls", exitUnauthorized, "Token ci was revoked"},
		{token, "job ls", exitUnauthorized, "belongs to this cluster"},
		{s.token(), "token ls --revoked", 0, "revoked"},
		{s.token(), "token ls -o name", 0, "bootstrap\nwall\n"},
		{s.token(), "audit --kind token", 0, "revoke"},
		{"x", "job ls", exitUnauthorized, "go-crontab did not issue it"},
	}

	for _, step := range steps {
		args := append(strings.Fields(step.line), []string{"--server", s.url, "--token", step.token}...)
		if at := strings.Index(step.line, " -- "); at >= 0 {
			args = append(append(strings.Fields(step.line[:at]), "--server", s.url, "--token", step.token),
				strings.Fields(step.line[at:])...)
		}
		if got := command(args...); got.code != step.code || !strings.Contains(got.out+got.err, step.want) {
			t.Errorf("%s: got %+v; want code %d and %q", step.line, got, step.code, step.want)
		}
	}

	// The token may come from a variable or from a file.
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(s.token()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, env := range []string{"GOCRONTAB_TOKEN=" + s.token(), "GOCRONTAB_TOKEN_FILE=" + file} {
		if code, out := run(t, []string{"GOCRONTAB_SERVER=" + s.url, env}, "token", "show", "-o", "name"); code != 0 ||
			out != "bootstrap\n" {
			t.Errorf("%.22s: got code %d, %s", env, code, out)
		}
	}

	if code, out := run(t, []string{"GOCRONTAB_SERVER=" + s.url, "HOME=" + t.TempDir()}, "job",
		"ls"); code != exitUnauthorized || !strings.Contains(out, "GOCRONTAB_TOKEN") ||
		!strings.Contains(out, "migrate --bootstrap") {
		t.Errorf("no token: got code %d, %s; want what to do", code, out)
	}
}

func TestBootstrapCommand(t *testing.T) {
	t.Parallel()

	dsn := testdb.DSN(t)
	bootstrap := func(args ...string) (token, out string) {
		t.Helper()
		code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, append([]string{"migrate", "--bootstrap"}, args...)...)
		var m struct{ Token string }
		if code != 0 || json.Unmarshal([]byte(out), &m) != nil {
			t.Fatalf("%q: got code %d, %s", args, code, out)
		}
		return m.Token, out
	}

	first, _ := bootstrap("-o", "json")
	if !auth.LooksLikeToken(first) {
		t.Fatalf("got %q", first)
	}

	if token, out := bootstrap("-o", "json"); token != "" || strings.Contains(out, "token") {
		t.Errorf("the second time: got %s, want no token", out)
	}

	code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate", "--bootstrap")
	if code != 0 || strings.Contains(out, "gocrontab_") || !strings.Contains(out, "--again") {
		t.Errorf("the third time: got code %d, %s", code, out)
	}

	s := serve(t, dsn, "one").ready()
	adminTokens.Store(s.url, first)
	if got := s.ask("token", "ls", "-o", "name"); got.out != "bootstrap\n" {
		t.Errorf("got %+v", got)
	}

	second, _ := bootstrap("--again", "-o", "json")
	if got := s.ask("job", "add", "x", "--every", "1h", "--", "true"); got.code != exitUnauthorized {
		t.Errorf("the first token after another took its place: got %+v", got)
	}

	adminTokens.Store(s.url, second)
	if got := s.ask("token", "ls", "--revoked", "-o", "name"); got.out != "bootstrap\nbootstrap\n" {
		t.Errorf("got %+v", got)
	}
	if code, out := run(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate", "--again"); code != exitUsage {
		t.Errorf("--again alone: got code %d, %s", code, out)
	}
}

// TestTooManyRequests: a rate-limited command waits as long as the node says.
func TestTooManyRequests(t *testing.T) {
	t.Parallel()

	var asked atomic.Int32
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		bodies = append(bodies, fmt.Sprint(body["name"]))
		if asked.Add(1) <= 2 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"name":"ci","role":"viewer","token":"t"}`)
	}))
	t.Cleanup(server.Close)

	began := time.Now()
	got := command("token", "create", "ci", "--role", "viewer", "--server", server.URL, "--token", "t")
	if got.code != 0 || asked.Load() != 3 || time.Since(began) < 2*time.Second ||
		strings.Join(bodies, " ") != "ci ci ci" {
		t.Errorf("got %+v after %d requests in %s with %q", got, asked.Load(), time.Since(began), bodies)
	}
}

// TestTokenGoesNowhereElse: the token is not sent to a redirect's target, and dev's token is not
// sent to other servers.
func TestTokenGoesNowhereElse(t *testing.T) { // not parallel: it sets the environment
	var stolen atomic.Value
	stolen.Store("")
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stolen.Store(r.Header.Get("Authorization"))
		fmt.Fprint(w, `{"items":[]}`)
	}))
	defer thief.Close()

	fence := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer fence.Close()

	if got := command("job", "ls", "--server", fence.URL, "--token", "mine"); got.code != exitFailed ||
		stolen.Load() != "" {
		t.Errorf("got %+v, and %q arrived elsewhere", got, stolen.Load())
	}

	t.Setenv("XDG_DATA_HOME", t.TempDir())
	t.Setenv("GOCRONTAB_TOKEN", "")
	file := filepath.Join(t.TempDir(), "token")
	if err := writeSecret(file, "of-dev"); err != nil {
		t.Fatal(err)
	}

	const devs = "http://127.0.0.1:8610"
	if err := linkToken(devs, file); err != nil {
		t.Fatal(err)
	}

	lock, err := os.Create(filepath.Join(filepath.Dir(file), nodesLock))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()

	if got := knownToken(devs); got != "" {
		t.Errorf("no node of dev lives, and whoever has its port gets %q", got)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}

	for server, want := range map[string]string{
		devs: "of-dev", "http://localhost:8610": "of-dev", devs + "/": "of-dev",
		"https://127.0.0.1:8610": "", "http://127.0.0.1:8611": "", "http://127.0.0.1": "", "http://10.0.0.1:8610": "",
		"http://evil.example:8610": "", "http://127.0.0.1.evil.example:8610": "",
	} {
		if got := knownToken(server); got != want {
			t.Errorf("%s: got token %q, want %q", server, got, want)
		}
	}

	command("job", "ls", "--server", thief.URL)
	if stolen.Load() != "" {
		t.Errorf("another server got %q", stolen.Load())
	}
	if err := linkToken(thief.URL, file); err != nil {
		t.Fatal(err)
	}

	command("job", "ls", "--server", thief.URL)
	if stolen.Load() != "Bearer of-dev" {
		t.Errorf("a server of dev got %q", stolen.Load())
	}

	unlinkToken(devs, "another file")
	if got := knownToken(devs); got == "" {
		t.Error("the link of another dev was taken away")
	}

	unlinkToken(devs, file)
	if got := knownToken(devs); got != "" {
		t.Error("the link is still there")
	}
}

// newCertificate creates a certificate for 127.0.0.1 and localhost with its own authority, which it
// also returns.
func newCertificate(t *testing.T, dir string) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<60))
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}

	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}

	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, text := range map[string][]byte{
		certFile: certPEM, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, pool
}

// TestS1Bind checks which listen addresses need which flags.
func TestS1Bind(t *testing.T) {
	t.Parallel()

	cert, key, _ := newCertificate(t, t.TempDir())
	withTLS := []string{"--tls-cert", cert, "--tls-key", key}
	for _, c := range []struct {
		listen string
		more   []string
		want   string // empty: accepted
	}{
		{"127.0.0.1:0", nil, ""},
		{"[::1]:0", nil, ""},
		{"localhost:0", nil, ""},
		{"127.0.0.1:0", withTLS, ""},
		{"0.0.0.0:0", withTLS, ""},
		{":0", withTLS, ""},
		{"0.0.0.0:0", []string{"--insecure-http"}, ""},
		{"[::]:0", []string{"--insecure-http"}, ""},
		{"0.0.0.0:0", nil, "others can reach this address"},
		{":0", nil, "others can reach this address"},
		{"[::]:0", nil, "others can reach this address"},
		{"10.0.0.1:0", nil, "others can reach this address"},
		{"cron.example.com:0", nil, "others can reach this address"},
		{"localhost.example.com:0", nil, "others can reach this address"},
		{"127.0.0.1", nil, "want host:port"},
		{"0.0.0.0:0", []string{"--tls-cert", cert}, "are needed together"},
		{"0.0.0.0:0", []string{"--tls-key", key}, "are needed together"},
		{"0.0.0.0:0", append([]string{"--insecure-http"}, withTLS...), "cannot be combined"},
		{"127.0.0.1:0", []string{"--login-life", "1s"}, "--login-life"},
		{"127.0.0.1:0", []string{"--oidc-recheck", "1s"}, "--oidc-recheck"},
		{"127.0.0.1:0", []string{"--rate-limit", "-1"}, "--rate-limit"},
		{"127.0.0.1:0", []string{"--host", "cron-1,cron.example.com:8610,10.0.0.1,fd00::1,[fd00::1]:8610"}, ""},
		{"127.0.0.1:0", []string{"--host", "https://cron.example.com"}, "want a host name"},
		{"127.0.0.1:0", []string{"--host", "*.example.com"}, "want a host name"},
		{"127.0.0.1:0", []string{"--host", "cron-1, cron-2"}, `--host " cron-2"`},
		{"127.0.0.1:0", []string{"--public-url", "http://cron.example.com/"}, ""},
		{"127.0.0.1:0", []string{"--public-url", "cron.example.com"}, "--public-url"},
		{"127.0.0.1:0", []string{"--public-url", "https://cron.example.com/cron"}, "want a URL without a path"},
		{"127.0.0.1:0", []string{"--oidc-client-id", "x"}, "--oidc-issuer is missing"},
		{"127.0.0.1:0", []string{"--oidc-client-secret", "x"}, "--oidc-issuer is missing"},
		{"127.0.0.1:0", []string{"--oidc-scope", "groups"}, "--oidc-issuer is missing"},
		{
			"127.0.0.1:0", []string{"--oidc-issuer", "https://x.y", "--oidc-client-id", "x", "--oidc-role", "a=admin"},
			"public URL: is missing",
		},
		{
			"127.0.0.1:0",
			[]string{
				"--oidc-issuer", "http://x.y", "--public-url", "https://z", "--oidc-client-id", "x", "--oidc-role",
				"a=admin",
			}, "want https",
		},
		{
			"127.0.0.1:0",
			[]string{
				"--oidc-issuer", "https://x.y", "--public-url", "https://z", "--oidc-client-id", "x", "--oidc-role",
				"a=root",
			}, "is not a role",
		},
		{
			"127.0.0.1:0",
			[]string{
				"--oidc-issuer", "https://x.y", "--public-url", "https://z", "--oidc-client-id", "x", "--oidc-role",
				"a=admin",
			}, "",
		},
	} {
		args := append([]string{"serve", "--dsn", "u@tcp(127.0.0.1:1)/d", "--listen", c.listen}, c.more...)
		if c.want != "" {
			if got := command(args...); got.code != exitUsage || !strings.Contains(got.err, c.want) {
				t.Errorf("%q: got %+v, want refused: %s", args[3:], got, c.want)
			}
			continue
		}

		var s serveSettings
		cmd := &cobra.Command{}
		s.flags(cmd)
		if err := cmd.ParseFlags(args[1:]); err != nil {
			t.Fatal(err)
		}
		if err := s.check(); err != nil {
			t.Errorf("%q: %v, want it taken", args[3:], err)
		}
	}
}

// TestServeTLS checks the API over TLS, its cookies, the commands, and a renewed certificate.
func TestServeTLS(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	cert, key, pool := newCertificate(t, dir)
	dsn := migrated(t)
	idp := testidp.Start(t)
	args := []string{
		"serve", "--node", "one", "--listen", "127.0.0.1:0", "--session-expiry", "5s", "--state-dir", t.TempDir(),
		"--tls-cert", cert, "--tls-key", key,
		"--host", "cron.example.com", "--public-url", "https://localhost", "--oidc-issuer", idp.URL, "--oidc-client-id",
		testidp.ClientID, "--oidc-role", "admins=admin",
	}

	secret := filepath.Join(dir, "oidc-secret")
	if err := os.WriteFile(secret, []byte(testidp.ClientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	p := start(t, []string{"GOCRONTAB_DSN=" + dsn, "GOCRONTAB_OIDC_CLIENT_SECRET_FILE=" + secret}, args...)
	url := p.says(`"api":"(https://[^"]+)"`, 20*time.Second)
	get := func(pool *x509.CertPool, path, host string) (*http.Response, error) {
		client := &http.Client{Timeout: 10 * time.Second,
			Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		req, err := http.NewRequest(http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}

		if host != "" {
			req.Host = host
		}

		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return resp, err
	}

	await(t, "ready", 20*time.Second, func() bool {
		resp, err := get(pool, "/readyz", "")
		return err == nil && resp.StatusCode == http.StatusOK
	})

	for host, want := range map[string]int{"cron.example.com": 401, "localhost": 401, "evil.example": 403} {
		if resp, err := get(pool, "/api/v1/jobs", host); err != nil || resp.StatusCode != want {
			t.Errorf("Host %s: got %v, %v, want %d", host, resp, err, want)
		}
	}

	ask := func(path, body string) (resp *http.Response, text string) {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
		defer client.CloseIdleConnections()

		resp, err := client.Post(url+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()

		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(b)
	}

	if resp, text := ask("/api/v1/login/oidc", "{}"); resp.StatusCode != http.StatusOK ||
		!strings.Contains(text, idp.URL+"/authorize?") {
		t.Fatalf("sign-in by the provider: got %s, %s", resp.Status, text)
	}

	made, _ := adminTokens.Load(dsn)
	resp, text := ask("/api/v1/login", fmt.Sprintf(`{"token": %q}`, made))
	if resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 1 {
		t.Fatalf("sign-in by token: got %s, %s", resp.Status, text)
	}

	if c := resp.Cookies()[0]; !c.Secure || !strings.HasPrefix(c.Name, "__Host-") ||
		c.SameSite != http.SameSiteStrictMode || !c.HttpOnly {
		t.Errorf("got cookie %v", c)
	}

	// Commands trust the system's certificates, or GOCRONTAB_CA_CERT.
	token, _ := adminTokens.Load(dsn)
	env := []string{"GOCRONTAB_SERVER=" + url, fmt.Sprint("GOCRONTAB_TOKEN=", token)}
	if code, out := run(t, env, "token", "show", "-o", "name"); code != exitFailed ||
		!strings.Contains(out, "certificate") {
		t.Errorf("an unknown authority: got code %d, %s", code, out)
	}
	if code, out := run(t, append(env, "GOCRONTAB_CA_CERT="+cert), "token", "show", "-o", "name"); code != 0 ||
		out != "bootstrap\n" {
		t.Errorf("a known authority: got code %d, %s", code, out)
	}

	if status(strings.Replace(url, "https", "http", 1)+"/healthz") == http.StatusOK {
		t.Error("it speaks plain HTTP as well")
	}

	// First only the certificate changes and does not match the key, so the old pair stays in use.
	if err := os.WriteFile(cert, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
		0o600); err != nil {
		t.Fatal(err)
	}

	time.Sleep(1200 * time.Millisecond)
	if _, err := get(pool, "/healthz", ""); err != nil {
		t.Errorf("while the files do not fit: %v", err)
	}

	_, _, newer := newCertificate(t, dir)
	await(t, "the new certificate is used", 15*time.Second,
		func() bool { _, err := get(newer, "/healthz", ""); return err == nil })
	if strings.Contains(p.out.String(), testidp.ClientSecret) || strings.Contains(p.out.String(), fmt.Sprint(token)) {
		t.Error("the log has a secret")
	}
}
