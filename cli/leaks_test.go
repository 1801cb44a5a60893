package cli

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/internal/secret"
	"go-crontab/sql"
	"go-crontab/test/testdb"
	"go-crontab/test/testidp"

	"github.com/go-sql-driver/mysql"
)

// planted records the planted values, which must appear nowhere, and the places that were searched.
type planted struct {
	t *testing.T

	mu     sync.Mutex
	values map[string]string
	places map[string]string // texts by place
}

func (p *planted) add(what, value string) string {
	p.t.Helper()
	if len(value) < 8 {
		p.t.Fatalf("%s: %q is too short to be looked for", what, value)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.values[what] = value
	return value
}

// keep stores a text to search after all values are planted.
func (p *planted) keep(place, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.places[place] += text
}

// forms returns the encodings in which a value may appear.
func forms(value string) []string {
	quoted, _ := json.Marshal(value)
	return slices.Compact([]string{value, base64.StdEncoding.EncodeToString([]byte(value)),
		hex.EncodeToString([]byte(value)), url.QueryEscape(value),
		strings.Trim(string(quoted), `"`)})
}

// find returns the planted values in a text, except for allowed ones.
func (p *planted) find(text string, but ...string) (found []string) {
	for _, what := range slices.Sorted(maps.Keys(p.values)) {
		if slices.Contains(but, what) {
			continue
		}
		for _, form := range forms(p.values[what]) {
			if i := strings.Index(text, form); i >= 0 {
				found = append(found, fmt.Sprintf("%s: …%s…", what, text[max(0, i-120):min(len(text), i+len(form)+40)]))
				break
			}
		}
	}
	return found
}

// plantedNode is a node under test, with the credentials of its client.
type plantedNode struct {
	*planted
	url, token string
}

// call sends a request to the API. It omits empty headers.
func (s *plantedNode) call(method, path, body string, header ...string) (status int, answer string, h http.Header) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}

	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}

	req.Header.Set("Authorization", "Bearer "+s.token)
	for i := 0; i < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i+1] == "" {
			req.Header.Del(header[i])
		}
	}

	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}

	return resp.StatusCode, string(text), resp.Header
}

func (s *plantedNode) ask(want int, method, path, body string, header ...string) string {
	s.t.Helper()
	status, answer, h := s.call(method, path, body, header...)
	s.keep("the answer to "+method+" "+strings.SplitN(path, "?", 2)[0], fmt.Sprint(answer, h))
	if status != want {
		s.t.Errorf("%s %s: got %d %s, want %d", method, path, status, answer, want)
	}
	return answer
}

// command runs the program and stores its output.
func (s *plantedNode) command(in string, want int, args ...string) string {
	s.t.Helper()
	out := s.say(in, want, args...)
	s.keep("go-crontab "+strings.Join(args[:min(2, len(args))], " "), out)
	return out
}

func (s *plantedNode) say(in string, want int, args ...string) string {
	s.t.Helper()
	p := start(s.t, []string{"GOCRONTAB_SERVER=" + s.url, "GOCRONTAB_TOKEN=" + s.token}, args...)
	_, _ = io.WriteString(p.stdin, in)
	_ = p.stdin.Close()
	if code := p.exit(time.Minute); code != want {
		s.t.Errorf("%q: exit code %d, want %d\n%s", args, code, want, p.out.String())
	}
	return p.out.String()
}

// TestSecretsDoNotLeak plants secrets, tokens, keys and passwords in a cluster of real processes with the
// most verbose logging. It uses them through the API and the commands, in valid and invalid ways.
// Then it searches for them in responses, output, logs, streams, all columns of all tables, the
// nodes' folders, and the system's information about processes.
func TestSecretsDoNotLeak(t *testing.T) {
	t.Parallel()

	p := &planted{t: t, values: map[string]string{}, places: map[string]string{}}
	dsn := testdb.DSN(t)
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}

	user := c.DBName[max(0, len(c.DBName)-20):]
	password := p.add("the password of the DSN", "pw-Zq8sTr0mboli-7")
	for _, statement := range []string{
		"CREATE USER '%s'@'%%' IDENTIFIED BY '" + password + "'", "GRANT ALL ON *.* TO '%s'@'%%'",
	} {
		execute(t, dsn, fmt.Sprintf(statement, user))
	}

	t.Cleanup(func() { execute(t, dsn, fmt.Sprintf("DROP USER '%s'@'%%'", user)) })

	c.User, c.Passwd = user, password
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	dsnFile := file("dsn", c.FormatDSN())
	_, out := run(t, []string{"GOCRONTAB_DSN_FILE=" + dsnFile}, "migrate", "--bootstrap", "-o", "json")
	var m migration
	if err := json.Unmarshal([]byte(out), &m); err != nil || m.Token == "" {
		t.Fatalf("migrate: %v", err)
	}

	s := &plantedNode{planted: p, token: p.add("the first token", m.Token)}
	idp := testidp.Start(t)
	idp.Lock()
	idp.Claims["groups"] = "admins"
	idp.Unlock()
	keyFile := file("key", p.add("the key of the secrets", secret.NewKey())+"\n")
	state := filepath.Join(dir, "state")
	if err := os.MkdirAll(filepath.Join(dir, "secrets/default"), 0o700); err != nil {
		t.Fatal(err)
	}

	file("secrets/default/own", p.add("a secret of the node alone", "own-Vesuvio-77-signs"))
	p.add("the secret of the provider", testidp.ClientSecret)
	node := start(t, []string{
		"GOCRONTAB_DSN_FILE=" + dsnFile, "GOCRONTAB_OIDC_CLIENT_SECRET_FILE=" + file("oidc", testidp.ClientSecret),
	},
		"serve", "--node", "one", "--listen", "127.0.0.1:0", "--session-expiry", "5s", "--state-dir", state,
		"--log-level", "debug", "--"+secretKeyFlag, keyFile,
		"--secrets-dir", filepath.Join(dir,
			"secrets"), "--http-allow", "127.0.0.0/8", "--public-url", "http://127.0.0.1:1",
		"--oidc-issuer", idp.URL, "--oidc-client-id", testidp.ClientID, "--oidc-role", "admins=admin")

	s.url = node.says(`"api":"(http://[^"]+)"`, 30*time.Second)
	await(t, "ready", 30*time.Second, func() bool { return status(s.url+"/readyz") == http.StatusOK })

	follow, stop := context.WithCancel(t.Context())
	listened := make(chan struct{})
	go func() { defer close(listened); s.listen(follow) }()
	s.secrets(file)
	s.tokens()
	s.jobs(dir)
	s.wrongly()
	s.look()
	s.processes(node)
	stop()
	<-listened
	s.tables(dsn)
	node.signal(syscall.SIGTERM)
	if code := node.exit(30 * time.Second); code != exitOK {
		t.Errorf("the node ended with %d", code)
	}

	p.keep("the log of the node", node.out.String())
	for path, text := range filesOf(t, state) {
		p.keep("the file "+path+" of the node", text)
	}

	for place, text := range p.places {
		for _, found := range p.find(text) {
			t.Errorf("%s has %s", place, found)
		}
	}

	// Check the search itself: it finds the values in the places where they are allowed.
	for place, text := range map[string]string{
		"the log of the node": `"level":"DEBUG"`, "go-crontab run logs": "plain text\n***", "the events": "event: run",
		"go-crontab audit -n": `"refuse"`, "go-crontab export": "{{secret.pg}}",
	} {
		if !strings.Contains(p.places[place], text) {
			t.Errorf("%s does not have %q: it was not looked at\n%.2000s", place, text, p.places[place])
		}
	}

	if len(p.values) < 12 || len(p.places) < 50 {
		t.Errorf("only %d things were planted, and %d places looked at", len(p.values), len(p.places))
	}
}

// secrets stores secrets in all valid ways, and in some invalid ones.
func (s *plantedNode) secrets(file func(name, text string) string) {
	s.command(s.add("a secret of a command", "hunter2-Zq8=+pg/")+"\n", exitOK, "secret", "set", "pg")
	s.command("", exitOK, "secret", "set", "fromfile", "--from-file",
		file("value", s.add("a secret of a file", "first line of it\nsecond line of it")))
	s.ask(201, "PUT", "/api/v1/secrets/hook", `{"value": "`+s.add("a secret of a header", "hook-5e1fish-c0ral")+`"}`)
	s.ask(201, "PUT", "/api/v1/secrets/gone",
		`{"value": "`+s.add("a secret that had another value", "gone-with-the-w1nd")+`"}`)
	s.ask(200, "PUT", "/api/v1/secrets/gone", `{"value": "`+s.add("a secret that is deleted", "frankly-my-d3ar")+`"}`)
	bad := s.add("a secret that is not taken", "n0t-taken-at-all")
	for _, body := range []string{
		`{"value": ["` + bad + `"]}`, `{"value": {"x": "` + bad + `"}}`,
		`{"value": "` + bad + `", "values": "` + bad + `"}`, `{"valeu": "` + bad + `"}`,
		`{"value": "` + bad + `", "app": 7}`,
	} {
		s.ask(422, "PUT", "/api/v1/secrets/bad", body)
	}

	s.command("", exitOK, "secret", "ls")
	s.command("", exitOK, "secret", "ls", "-o", "json")
	s.command("", exitOK, "secret", "rotate")
	s.command("", exitOK, "secret", "rm", "gone")
}

// tokens creates tokens and signs in with them. The responses that show a token once are not
// stored.
func (s *plantedNode) tokens() {
	make := func(what, answer string) string {
		s.t.Helper()
		token := regexp.MustCompile(`gocrontab_\w+`).FindString(answer)
		if !auth.LooksLikeToken(token) {
			s.t.Fatalf("%s: got no token", what)
		}
		s.keep(what, strings.ReplaceAll(answer, token, ""))
		return s.add(what, token)
	}

	make("a token of a command", s.say("", exitOK, "token", "create", "ci", "--role", "operator"))
	_, answer, _ := s.call("POST", "/api/v1/tokens", `{"name": "reader", "role": "viewer"}`, "Idempotency-Key",
		"planted")
	reader := make("a token of a request", answer)
	_, again, _ := s.call("POST", "/api/v1/tokens", `{"name": "reader", "role": "viewer"}`, "Idempotency-Key",
		"planted")
	s.keep("the same request again", strings.ReplaceAll(again, reader, ""))
	_, answer, _ = s.call("POST", "/api/v1/tokens", `{"name": "old", "role": "admin"}`)
	old := make("a token that is revoked", answer)
	s.command("", exitOK, "token", "revoke", "old")
	s.ask(401, "GET", "/api/v1/me", "", "Authorization", "Bearer "+old)
	s.ask(401, "POST", "/api/v1/jobs/1/run", "{}", "Authorization", "Bearer "+old)
	_, answer, h := s.call("POST", "/api/v1/login", `{"token": "`+reader+`"}`)
	cookie, err := http.ParseSetCookie(h.Get("Set-Cookie"))
	if err != nil {
		s.t.Fatalf("sign in: %v %s", err, answer)
	}

	s.add("a cookie", cookie.Value)
	key := s.add("the key of a login", loginKey(s.t, answer))
	s.keep("the answer to a sign-in", strings.ReplaceAll(answer, key, ""))
	s.ask(200, "GET", "/api/v1/me", "", "Authorization", "", "Cookie", cookie.Name+"="+cookie.Value,
		"X-Gocrontab-Login", key)
	s.ask(200, "GET", "/api/v1/me", "", "Authorization", "bearer "+reader)
	s.command("", exitOK, "token", "ls", "-o", "json")
	s.command("", exitOK, "token", "show")

	// To the provider and back. The browser's temporary state is a secret, too.
	var began struct{ Target, Flow string }
	status, answer, _ := s.call("POST", "/api/v1/login/oidc", "")
	if err := json.Unmarshal([]byte(answer), &began); err != nil || status != http.StatusOK {
		s.t.Fatalf("begin: %d %v %s", status, err, answer)
	}

	s.keep("the answer to the beginning of a sign-in", strings.ReplaceAll(answer, began.Flow, ""))
	parts := strings.Split(began.Flow, ".")
	s.add("the verifier of a sign-in", parts[len(parts)-1])
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(began.Target)
	if err != nil {
		s.t.Fatal(err)
	}

	resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		s.t.Fatal(err)
	}

	code := s.add("the code of a provider", back.Query().Get("code"))
	s.ask(200, "GET", back.RequestURI(), "")
	end := `{"flow": "` + began.Flow + `", "state": "` + back.Query().Get("state") + `", "code": "` + code + `"}`
	status, answer, h = s.call("POST", "/api/v1/login/oidc/callback", end)
	if status != http.StatusOK {
		s.t.Fatalf("end: got %d %s", status, answer)
	}

	for _, text := range h.Values("Set-Cookie") {
		if c, err := http.ParseSetCookie(text); err == nil && c.Value != "" {
			s.add("a cookie of the provider's", c.Value)
		}
	}

	key = s.add("the key of a login by the provider", loginKey(s.t, answer))
	s.keep("the answer to a sign-in by the provider", strings.ReplaceAll(answer, key, ""))
	s.ask(401, "POST", "/api/v1/login/oidc/callback", `{"state": "x", "code": "`+code+`"}`)
}

// loginKey returns the key in the response to a sign-in.
func loginKey(t *testing.T, answer string) string {
	t.Helper()
	var v struct {
		Key string `json:"login_key"`
	}
	if err := json.Unmarshal([]byte(answer), &v); err != nil || v.Key == "" {
		t.Fatalf("sign in: %v %s", err, answer)
	}
	return v.Key
}

// jobs uses the secrets in all ways, and tries to print them.
func (s *plantedNode) jobs(dir string) {
	pg := s.values["a secret of a command"]
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprintf(w, "plain text, header %q, body %s", r.Header.Get("X-Key"), body)
	}))

	s.t.Cleanup(echo.Close)
	specs := map[string]string{
		"env":   `"command": "echo plain text; echo $PW; cut -c1-5 <<< $PW | tr -d '\\n'; sleep 0.5; echo ${PW:5}; printf %s \"$PW\" | base64; printf %s \"$PW\" | od -An -tx1 | tr -d ' \\n'; printf '%s' ${PW:0:7}; sleep 1.5; printf '%s\\n' ${PW:7}; exit 3", "env": {"PW": "{{secret.pg}}"}`,
		"stdin": `"command": "cat; cat >&2 /dev/null", "stdin": "{{secret.fromfile}}\n"`,
		"environ": `"command": "env > ` + dir + `/environ; ls -l /proc/self/fd > ` + dir + `/fds; ps axww > ` + dir +
			`/ps; env", "env": {"PW": "{{secret.pg}}"}`,
		"http": `"http": {"url": "` + echo.URL +
			`/", "method": "POST", "headers": {"X-Key": "{{secret.hook}}"}, "body": "{\"k\": \"{{secret.pg}}\"}", "sign": {"secret": "own"}}`,
		"failing": `"http": {"url": "` + echo.URL +
			`/bad", "method": "POST", "headers": {"X-Key": "{{secret.hook}}"}, "body": "{{secret.fromfile}}", "sign": {"secret": "hook"}}`,
		"nowhere": `"http": {"url": "http://127.0.0.1:1/", "headers": {"X-Key": "{{secret.hook}}"}}`,
	}

	for name, spec := range specs {
		s.ask(201, "POST", "/api/v1/jobs", `{"name": "`+name+`", "schedule": "@yearly", `+spec+`}`)
		s.keep("go-crontab job run",
			s.say("", map[bool]int{true: exitOK, false: exitFailed}[slices.Contains([]string{
				"stdin", "environ", "http",
			}, name)], "job", "run", name, "--wait"))
		s.command("", exitOK, "run", "logs", name)
		s.command("", exitOK, "run", "logs", name, "--raw")
		s.command("", exitOK, "job", "history", name, "-o", "json")
		s.command("", exitOK, "job", "show", name, "-o", "yaml")
	}

	for path, may := range map[string][]string{"environ": {"a secret of a command"}, "fds": nil, "ps": nil} {
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, found := range s.find(string(text), may...) {
			s.t.Errorf("what a job sees in %s has %s", path, found)
		}
	}

	if text, _ := os.ReadFile(filepath.Join(dir, "environ")); !strings.Contains(string(text), "PW="+pg) {
		s.t.Errorf("the job did not get its secret: %s", text)
	}

	s.ask(200, "PATCH", "/api/v1/jobs/1", `{"owner": "ann", "labels": {"a": "b"}}`)
	for _, wrong := range []string{
		`"command": "echo {{secret.pg}}"`, `"http": {"url": "http://127.0.0.1/{{secret.pg}}"}`,
		`"command": "true", "env": {"PW": "{{secret.none}}"}`,
	} {
		s.ask(422, "POST", "/api/v1/jobs", `{"name": "wrong", "schedule": "@yearly", `+wrong+`}`)
	}
}

// wrongly sends secrets to places where they do not belong.
func (s *plantedNode) wrongly() {
	for i := 0; i < 3; i++ {
		made := s.add(fmt.Sprintf("a made-up token %d", i),
			strings.Replace(someToken, "ZIVim", fmt.Sprintf("ZIVi%d", i), 1))
		s.ask(401, "GET", "/api/v1/jobs", "", "Authorization", "Bearer "+made)
		s.ask(401, "GET", "/api/v1/jobs", "", "Authorization",
			"Basic "+base64.StdEncoding.EncodeToString([]byte("x:"+made)))
		s.ask(401, "GET", "/api/v1/jobs", "", "Authorization", "", "Cookie", "gocrontab="+made)
		s.ask(401, "POST", "/api/v1/login", `{"token": "`+made+`"}`)
		s.ask(422, "POST", "/api/v1/login", `{"token": ["`+made+`"]}`)
		s.ask(422, "GET", "/api/v1/jobs?token="+made, "")
	}

	// Even a valid token in a URL is refused, because proxies and browsers log URLs.
	s.ask(401, "GET", "/api/v1/jobs?token="+s.values["a token of a request"], "", "Authorization", "")
	s.ask(422, "GET", "/api/v1/jobs?access_token="+s.values["a token of a request"], "")
	code, out := run(s.t, []string{"GOCRONTAB_SERVER=" + s.url, "GOCRONTAB_TOKEN=" + s.values["a made-up token 0"]},
		"job", "ls")
	if code == exitOK {
		s.t.Error("a made-up token lists jobs")
	}

	s.keep("a command with a made-up token", out)
	code, out = run(s.t, []string{"GOCRONTAB_SERVER=http://127.0.0.1:1", "GOCRONTAB_TOKEN=" + s.token}, "job", "ls")
	if code == exitOK {
		s.t.Error("nobody answers, and jobs are listed")
	}

	s.keep("a command without a node", out)
}

// look requests everything that the API offers.
func (s *plantedNode) look() {
	var doc struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal([]byte(s.ask(200, "GET", "/openapi.json", "")), &doc); err != nil {
		s.t.Fatal(err)
	}

	run := ""
	var runs view.Page[view.Run]
	if err := json.Unmarshal([]byte(s.ask(200, "GET", "/api/v1/runs", "")), &runs); err != nil || len(runs.Items) < 6 {
		s.t.Fatalf("runs: %d %v", len(runs.Items), err)
	}

	seen := 0
	for path, methods := range doc.Paths {
		if methods["get"] == nil || path == "/api/v1/events" || strings.HasPrefix(path, "/api/v1/login/oidc") {
			continue
		}
		for _, r := range runs.Items {
			if strings.HasPrefix(path, "/api/v1/runs/") {
				run = r.ID
			} else if run != "" && r.ID != runs.Items[0].ID {
				continue
			}

			at := strings.NewReplacer("{app}", "default", "{name}", "env", "{version}", "1", "{other}", "2", "{file}",
				"reference.js").Replace(path)
			if strings.HasPrefix(path, "/api/v1/runs/") {
				at = strings.ReplaceAll(at, "{id}", run)
			}

			for _, id := range []string{"1", "2", "3", "4", "5", "6"} {
				_, answer, h := s.call("GET", strings.ReplaceAll(at, "{id}", id), "")
				s.keep("the answer to GET "+path, fmt.Sprint(answer, h))
				seen++
				if !strings.Contains(at, "{id}") {
					break
				}
			}
		}
	}

	if seen < 40 {
		s.t.Errorf("only %d requests were made", seen)
	}

	for _, r := range runs.Items {
		s.ask(200, "GET", "/api/v1/runs/"+r.ID+"/output?from=0", "")
		s.ask(200, "GET", "/api/v1/runs/"+r.ID+"/output?raw=1", "")
	}

	for _, args := range [][]string{{"audit", "-n", "0", "-o", "json"}, {"export"}, {"export", "-o", "json"},
		{"cluster", "-o", "json"}, {"node", "ls", "-o", "json"}, {"run", "ls", "-o", "json"},
		{"job", "explain", "env", "--at", "2026-01-01T00:00:00Z"}} {
		s.command("", exitOK, args...)
	}
}

// listen stores the stream of events until ctx ends.
func (s *plantedNode) listen(ctx context.Context) {
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+"/api/v1/events", nil)
	if err != nil {
		s.t.Error(err)
		return
	}

	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Errorf("events: %v", err)
		return
	}
	defer resp.Body.Close()

	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		s.keep("the events", lines.Text()+"\n")
	}
}

// processes searches the system's information about the node and its descendants, such as the guard
// and a job with a secret.
func (s *plantedNode) processes(node *process) {
	s.ask(201, "POST", "/api/v1/jobs",
		`{"name": "long", "schedule": "@yearly", "command": "exec sleep 120", "env": {"PW": "{{secret.pg}}"}, "grace": "1s"}`)
	s.command("", exitOK, "job", "run", "long")
	if _, err := os.Stat("/proc/self/status"); err != nil {
		s.t.Log("this system has no /proc")
		return
	}

	jobs, others := 0, 0
	await(s.t, "the job executes", 30*time.Second, func() bool {
		jobs, others = 0, 0
		for _, dir := range offspring(s.t, node.cmd.Process.Pid) {
			environ, err := os.ReadFile(dir + "/environ")
			if err != nil {
				continue // it has ended
			}

			cmdline, _ := os.ReadFile(dir + "/cmdline")
			for _, found := range s.find(string(cmdline)) {
				s.t.Errorf("the command line of a process has %s", found)
			}

			may := ""
			if strings.Contains(string(environ), "GOCRONTAB_JOB=long") {
				may = "a secret of a command" // passed to it
				jobs++
			} else {
				others++
			}

			for _, found := range s.find(strings.ReplaceAll(string(environ), "\x00", "\n"), may) {
				s.t.Errorf("the environment of %q has %s", cmdline, found)
			}
		}

		return jobs > 0
	})

	if others < 2 {
		s.t.Errorf("got %d processes beside the job, want the node and its guard", others)
	}
}

// offspring returns the /proc folders of a process and of all its descendants.
func offspring(t *testing.T, pid int) []string {
	t.Helper()

	found := []string{fmt.Sprint("/proc/", pid)}
	statuses, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}

	parents := map[string]string{}
	for _, file := range statuses {
		text, _ := os.ReadFile(file)
		if m := regexp.MustCompile(`(?m)^PPid:\s*(\d+)$`).FindSubmatch(text); m != nil {
			parents[filepath.Dir(file)] = "/proc/" + string(m[1])
		}
	}

	for i := 0; i < len(found); i++ {
		for dir, parent := range parents {
			if parent == found[i] {
				found = append(found, dir)
			}
		}
	}

	return found
}

// tables searches every column of every table.
func (s *plantedNode) tables(dsn string) {
	db, err := sql.Open(dsn, sql.MigrateTimeouts, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()

	rows, err := db.Raw().Query("SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY 1, 2")
	if err != nil {
		s.t.Fatal(err)
	}

	var columns [][2]string
	for rows.Next() {
		var c [2]string
		if err := rows.Scan(&c[0], &c[1]); err != nil {
			s.t.Fatal(err)
		}
		columns = append(columns, c)
	}

	rows.Close()
	for _, c := range columns {
		has := func(forms []string) bool {
			var args []any
			for _, form := range forms {
				args = append(args, form)
			}
			found := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("LOCATE(CAST(? AS BINARY), CAST(`%s` AS BINARY)) OR ", c[1]), len(forms)), " OR ")
			var n int
			if err := db.Raw().QueryRow(fmt.Sprintf("SELECT COUNT(*) FROM `%s` WHERE %s", c[0], found),
				args...).Scan(&n); err != nil {
				s.t.Fatalf("column %s of table %s: %v", c[1], c[0], err)
			}
			return n > 0
		}

		var all []string
		for _, value := range s.values {
			all = append(all, forms(value)...)
		}

		if !has(all) {
			continue
		}

		for what, value := range s.values {
			if has(forms(value)) {
				s.t.Errorf("column %s of table %s has %s", c[1], c[0], what)
			}
		}
	}

	if len(columns) < 150 {
		s.t.Errorf("only %d columns were looked at", len(columns))
	}

	// The search finds the allowed values.
	var n int
	const naming = "SELECT COUNT(*) FROM job_version WHERE LOCATE(CAST(? AS BINARY), CAST(definition AS BINARY)) > 0"
	if err := db.Raw().QueryRow(naming, "{{secret.pg}}").Scan(&n); err != nil || n == 0 {
		s.t.Errorf("no definition names the secret: %v", err)
	}
}

// filesOf reads all files in a folder.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()

	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, dir)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return out
}
