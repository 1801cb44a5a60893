package api_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/internal/auth"
	"go-crontab/test/testidp"
)

// browser is the site as a page in a browser sees it: without a token, with a cookie jar, and with
// a storage in which the page keeps the key of its login.
func (s *site) browser() *site {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}

	b := s.as("")
	client := *s.http
	client.Jar, client.Transport = jar, &pageOf{next: client.Transport}
	b.http = &client
	return b
}

// pageOf keeps the key of a sign-in and sends it with later requests.
type pageOf struct {
	next http.RoundTripper
	mu   sync.Mutex
	key  string
}

func (p *pageOf) RoundTrip(req *http.Request) (*http.Response, error) {
	p.mu.Lock()
	key := p.key
	p.mu.Unlock()

	if key != "" && req.Header.Get(loginHeader) == "" {
		req = req.Clone(req.Context())
		req.Header.Set(loginHeader, key)
	}

	resp, err := p.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.HasPrefix(req.URL.Path, "/api/v1/login") {
		return resp, err
	}

	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	var answer struct {
		Key string `json:"login_key"`
	}
	if json.Unmarshal(text, &answer) == nil && answer.Key != "" {
		p.mu.Lock()
		p.key = answer.Key
		p.mu.Unlock()
	}

	return resp, err
}

// loginHeader is the header with the key of a login.
const loginHeader = "X-Gocrontab-Login"

// login returns the headers to send by hand after a sign-in: cookie and key.
func (r *reply) login() []string {
	r.t.Helper()
	c := r.cookie()
	return []string{"Cookie", c.Name + "=" + c.Value, loginHeader, r.object().text("login_key")}
}

// cookie is the cookie that an answer sets.
func (r *reply) cookie() *http.Cookie {
	r.t.Helper()
	resp := http.Response{Header: r.header}
	if len(resp.Cookies()) != 1 {
		r.t.Fatalf("%s: got cookies %v, want one", r.what, resp.Cookies())
	}
	return resp.Cookies()[0]
}

func TestSignInByToken(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	token := s.newToken("alice", auth.Operator)
	s.create("there", nil)
	b := s.browser()
	b.call("GET", "/api/v1/jobs", nil).want(401)
	r := b.call("POST", "/api/v1/login", object{"token": token}, "Origin", s.url, "Sec-Fetch-Site",
		"same-origin").want(200)
	c := r.cookie()
	key := r.object().text("login_key")
	if c.Name != "gocrontab-"+auth.Tag(key) || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure ||
		c.Path != "/" || c.Domain != "" || c.MaxAge != 12*3600 || strings.Contains(c.Value, token) {
		t.Errorf("got cookie %v", c)
	}

	if me := r.object(); me.text("name") != "alice" || me.text("role") != "operator" || me.text("expires") == "" ||
		strings.Contains(r.body, c.Value) || strings.Contains(r.body, token) || key == "" ||
		strings.Contains(c.String(), key) {
		t.Errorf("got %s", r.body)
	}

	b.call("GET", "/api/v1/jobs/1", nil).want(200)
	b.call("POST", "/api/v1/jobs/1/pause", nil, "Origin", s.url, "Sec-Fetch-Site", "same-origin").want(200)
	b.call("DELETE", "/api/v1/jobs/1", nil).want(403)

	// Another site, or another port of this machine, cannot use it.
	for _, header := range [][]string{{"Origin", "http://evil.example"}, {"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"}, {"Origin", "http://127.0.0.1:1"}, {"Origin", "null"}} {
		r := b.call("POST", "/api/v1/jobs/1/resume", nil, header...)
		if r.status != 403 || !strings.Contains(r.body, api.TypePrefix+"cross-origin") {
			t.Errorf("%v: got %d %s, want refused", header, r.status, r.body)
		}
	}

	if n := s.count("SELECT COUNT(*) FROM audit WHERE who = 'alice' AND action IN ('sign_in', 'pause')"); n != 2 {
		t.Errorf("got %d lines of the audit, want one of the sign-in and one of the pause", n)
	}

	for _, secret := range []string{c.Value, key} {
		if n := s.count("SELECT COUNT(*) FROM login WHERE INSTR(CONCAT_WS(' ', hash, who, grants, origin), ?)",
			secret); n != 0 {
			t.Error("what the browser holds is in the table")
		}
	}

	// A token header takes precedence over a cookie.
	b.call("GET", "/api/v1/jobs", nil, "Authorization", "Bearer "+wellFormed).want(401)
	b.call("GET", "/api/v1/jobs", nil).want(200)

	b.call("POST", "/api/v1/logout", nil, "Origin", s.url).want(204)
	stolen := s.as("").call("GET", "/api/v1/jobs", nil, r.login()...).want(401)
	if c := stolen.cookie(); c.MaxAge >= 0 || c.Value != "" {
		t.Errorf("a dead cookie: got %v, want it taken away", c)
	}

	b.call("GET", "/api/v1/me", nil).want(401)
	s.call("POST", "/api/v1/logout", nil).want(204) // a token is no login, so nothing ends
	s.call("GET", "/api/v1/me", nil).want(200)
}

func TestSignInIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	b := s.browser()
	for body, status := range map[string]int{
		`{}`: 422, `{"token": ""}`: 422, `{"token": 7}`: 422, `{"token": "x"}`: 401, `{"token": "` + wellFormed +
			`"}`: 401, `{"token": null}`: 422, `[]`: 422, `x`: 400,
		`{"token": "' OR ''='"}`: 401, `{"password": "admin"}`: 422,
	} {
		r := b.call("POST", "/api/v1/login", body)
		if r.status != status || r.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: got %d %s, want %d", body, r.status, r.body, status)
		}
	}

	// A form of another site cannot send JSON, and its script is refused.
	b.call("POST", "/api/v1/login", `{"token": "`+s.token+`"}`, "Content-Type", "text/plain").want(415)
	b.call("POST", "/api/v1/login", "token="+s.token, "Content-Type", "application/x-www-form-urlencoded").want(415)
	b.call("POST", "/api/v1/login", object{"token": s.token}, "Origin", "http://evil.example").want(403)
	if n := s.count(
		"SELECT COUNT(*) FROM audit WHERE action = 'refuse' AND kind = 'login' AND origin = '127.0.0.1'"); n != 1 {
		t.Errorf("got %d lines of the audit, want one for all from one address within a minute", n)
	}

	if n := s.count("SELECT COUNT(*) FROM audit WHERE INSTR(CONCAT_WS(' ', name, reason, was, became), ?)",
		wellFormed); n != 0 {
		t.Error("the audit has a token")
	}

	if s.logs.has(wellFormed) || s.logs.has(s.token) {
		t.Error("the log has a token")
	}
}

func TestRevokingSignsOut(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	made := s.call("POST", "/api/v1/tokens", object{"name": "bob", "role": "admin"}).want(201).object()
	b := s.browser()
	b.call("POST", "/api/v1/login", object{"token": made.text("token")}).want(200)
	b.call("GET", "/api/v1/tokens", nil).want(200)
	s.call("DELETE", "/api/v1/tokens/"+made.text("id"), nil).want(204)
	b.call("POST", "/api/v1/jobs", object{"name": "x", "schedule": "@daily", "command": "true"}).want(401)
	s.as(made.text("token")).call("DELETE", "/api/v1/jobs/1", nil).want(401)
	if n := s.count("SELECT COUNT(*) FROM login"); n != 0 {
		t.Errorf("%d logins are left", n)
	}
}

// TestSecureCookies: over TLS, or with a proxy that speaks it, browsers send the cookie only over
// TLS.
func TestSecureCookies(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) { c.PublicURL = "https://cron.example.com" })
	token := s.newToken("alice", auth.Viewer)
	secure := func(r *reply) {
		t.Helper()
		if c := r.want(200).cookie(); !strings.HasPrefix(c.Name, "__Host-gocrontab-") || !c.Secure || !c.HttpOnly ||
			c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
			t.Errorf("got %v", c)
		}
	}

	with := func(login []string, more ...string) []string { return append(slices.Clone(login), more...) }

	r := s.as("").call("POST", "/api/v1/login", object{"token": token}, "Host", "cron.example.com", "Origin",
		"https://cron.example.com")
	secure(r)
	s.as("").call("GET", "/api/v1/me", nil, with(r.login(), "Host", "cron.example.com")...).want(200)

	// The name without the prefix is not accepted there: another site under this domain could have
	// set it.
	plain := r.login()
	plain[1] = strings.TrimPrefix(plain[1], "__Host-")
	s.as("").call("GET", "/api/v1/me", nil, with(plain, "Host", "cron.example.com")...).want(401)

	// A proxy may hide the Host. Then changes show TLS by their Origin, and reads still find the
	// cookie.
	r = s.as("").call("POST", "/api/v1/login", object{"token": token}, "Origin", "https://CRON.example.com:443",
		"Sec-Fetch-Site", "same-origin")
	secure(r)
	s.as("").call("GET", "/api/v1/me", nil, r.login()...).want(200)
	s.as("").call("POST", "/api/v1/logout", nil,
		with(r.login(), "Origin", "https://cron.example.com", "Sec-Fetch-Site", "same-origin")...).want(204)
	if c := s.as("").call("GET", "/api/v1/me", nil, r.login()...).want(401).cookie(); c.Name != r.cookie().Name ||
		!c.Secure || c.MaxAge >= 0 {
		t.Errorf("a dead cookie: got %v, want it taken away", c)
	}

	for _, origin := range []string{"http://cron.example.com", "https://cron.example.com:8443", "https://example.com",
		"null"} {
		if c := s.as("").call("POST", "/api/v1/login", object{"token": token}, "Origin", origin, "Sec-Fetch-Site",
			"same-origin").want(200).cookie(); !strings.HasPrefix(c.Name, "gocrontab-") || c.Secure {
			t.Errorf("from %s: got %v", origin, c)
		}
	}

	if c := s.as("").call("POST", "/api/v1/login",
		object{"token": token}).want(200).cookie(); !strings.HasPrefix(c.Name, "gocrontab-") || c.Secure {
		t.Errorf("on the machine itself: got %v", c)
	}

	server := httptest.NewTLSServer(api.New(s.cfg))
	t.Cleanup(server.Close)
	s.url, s.http = server.URL, server.Client()
	secure(s.as("").call("POST", "/api/v1/login", object{"token": token}))
	b := s.browser()
	b.call("POST", "/api/v1/login", object{"token": token}).want(200)
	b.call("GET", "/api/v1/me", nil).want(200)
}

// TestCookieAlone: browsers send the cookie to every port of the host. A server there lacks the key
// that the page keeps for its own origin. Without it the cookie admits to no route, nor does it
// with an invented key or the key of another sign-in.
func TestCookieAlone(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", nil)
	mine := s.as("").call("POST", "/api/v1/login", object{"token": s.token}).want(200)
	other := s.as("").call("POST", "/api/v1/login", object{"token": s.newToken("thief", auth.Admin)}).want(200)
	cookie, key := mine.cookie(), mine.object().text("login_key")
	theirs := other.object().text("login_key")

	// Under every cookie name that a request may use.
	cookies := ""
	for _, name := range []string{cookie.Name, other.cookie().Name, "gocrontab", "__Host-gocrontab",
		"gocrontab-" + auth.Tag("")} {
		cookies += name + "=" + cookie.Value + "; "
	}

	bad := map[string][]string{
		"the cookie alone": {"Cookie", cookies},
		"an empty key":     {"Cookie", cookies, loginHeader, ""},
		"a made-up key": {
			"Cookie", cookies, loginHeader, "gckey_" + strings.TrimPrefix(wellFormed, "gocrontab_"),
		},
		"the key of another sign-in":            {"Cookie", cookies, loginHeader, theirs},
		"the cookie as the key":                 {"Cookie", cookies, loginHeader, cookie.Value},
		"the key alone":                         {loginHeader, key},
		"the key with another sign-in's cookie": {"Cookie", cookie.Name + "=" + other.cookie().Value, loginHeader, key},
		"the key in the query of a cookie":      {"Cookie", cookies + "login_key=" + key},
	}

	guarded := 0
	for _, row := range api.New(s.cfg).Table() {
		if row.Open {
			continue
		}

		guarded++
		s.serve() // another node, because each looks up only a limited number of unknown pairs at once
		path := strings.NewReplacer("{id}", "1", "{app}", "default", "{name}", "there", "{key}", "x", "{version}", "1",
			"{other}", "1").Replace(row.Pattern)
		for what, header := range bad {
			if r := s.as("").call(row.Method, path, nil,
				append(header, "Sec-Fetch-Site", "same-origin")...); r.status != 401 {
				t.Errorf("%s %s with %s: got %d %s, want 401", row.Method, path, what, r.status, r.body)
			}
		}
	}

	if guarded < 50 {
		t.Errorf("only %d routes were tried", guarded)
	}

	// A page on another port can make the browser send the cookie. That must not sign out the user.
	if r := s.as("").call("GET", "/api/v1/me", nil, "Cookie", cookies).want(401); r.header.Get("Set-Cookie") != "" {
		t.Errorf("the cookie alone: got Set-Cookie %v", r.header.Get("Set-Cookie"))
	}

	s.as("").call("GET", "/api/v1/me", nil, mine.login()...).want(200)
	if me := s.as("").call("GET", "/api/v1/me", nil, other.login()...).want(200).object(); me.text("name") != "thief" {
		t.Errorf("got %v", me)
	}

	// Two sign-ins of one browser, at two ports of one host, coexist.
	both := []string{"Cookie", mine.login()[1] + "; " + other.login()[1]}
	for want, k := range map[string]string{"bootstrap": key, "thief": theirs} {
		if me := s.as("").call("GET", "/api/v1/me", nil,
			append(both, loginHeader, k)...).want(200).object(); me.text("name") != want {
			t.Errorf("with the key of %s: got %v", want, me)
		}
	}
}

// TestLoginsOfBefore: old rows with only the hash of a cookie admit no request.
func TestLoginsOfBefore(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	r := s.as("").call("POST", "/api/v1/login", object{"token": s.token}).want(200)
	s.exec("UPDATE login SET hash = UNHEX(SHA2(?, 256))", r.cookie().Value)
	s.as("").call("GET", "/api/v1/me", nil, "Cookie", r.login()[1]).want(401)
	s.as("").call("GET", "/api/v1/me", nil, "Cookie", "gocrontab="+r.cookie().Value).want(401)
	s.as("").call("POST", "/api/v1/jobs", object{}, r.login()...).want(401)
}

// withProvider sets up signing in by a provider.
func (s *site) withProvider(mod func(*auth.OIDCConfig)) *testidp.Provider {
	s.t.Helper()
	idp := testidp.Start(s.t)
	l := httptest.NewUnstartedServer(nil)
	cfg := auth.OIDCConfig{
		Issuer: idp.URL, ClientID: testidp.ClientID, ClientSecret: testidp.ClientSecret, PublicURL: "http://" +
			l.Listener.Addr().String(), Roles: auth.RoleMap{}, Now: s.cfg.Now,
	}

	if err := cfg.Roles.Add("admins=admin,devs=operator:mine"); err != nil {
		s.t.Fatal(err)
	}
	if mod != nil {
		mod(&cfg)
	}

	var err error
	if s.cfg.OIDC, err = auth.NewOIDC(cfg); err != nil {
		s.t.Fatal(err)
	}

	s.cfg.PublicURL = cfg.PublicURL
	l.Config.Handler = api.New(s.cfg)
	l.Start()
	s.t.Cleanup(l.Close)
	s.url, s.http = l.URL, l.Client()
	return idp
}

// toProvider begins a sign-in at the provider. It returns the values that the page keeps, and those
// with which its browser comes back.
func (s *site) toProvider() (flow string, back url.Values) {
	s.t.Helper()
	began := s.as("").call("POST", "/api/v1/login/oidc", nil).want(200).object()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(began.text("target"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()

	to, err := resp.Location()
	if err != nil {
		s.t.Fatal(err)
	}
	if !strings.HasPrefix(to.String(), s.cfg.PublicURL+callback+"?") {
		s.t.Fatalf("the provider sends the browser to %s", to)
	}

	return began.text("flow"), to.Query()
}

// endOf is the request that ends a sign-in.
func endOf(flow string, back url.Values) object {
	o := object{"flow": flow, "state": back.Get("state"), "code": back.Get("code")}
	if back.Get("error") != "" {
		o["error"] = back.Get("error")
	}
	return o
}

const callback = "/api/v1/login/oidc/callback"

// TestOIDCFromOneAddress: many or forged sign-ins shut out no other person from the same address.
// The requests to the provider are limited.
func TestOIDCFromOneAddress(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	idp := s.withProvider(nil)
	idp.Claims["groups"] = "admins"
	flow, back := s.toProvider()
	for range 60 {
		s.as("").call("POST", "/api/v1/login/oidc", nil).want(200)
		s.as("").call("POST", callback, object{"state": "x", "code": "y"}).want(401)
	}

	s.as("").call("POST", callback, endOf(flow, back)).want(200) // a genuine sign-in in between
	flow, back = s.toProvider()
	back.Set("code", "x")
	guess := func(times int) (busy int) {
		for range times {
			if s.as("").call("POST", callback, endOf(flow, back)).status == http.StatusTooManyRequests {
				busy++
			}
		}
		return busy
	}

	guess(25)
	another, itsBack := s.toProvider()
	if r := s.as("").call("POST", callback, endOf(another, itsBack)); r.status != http.StatusOK {
		t.Errorf("a sign-in behind 25 made-up codes: got %d %s", r.status, r.body)
	}
	if busy := guess(100); busy < 20 {
		t.Errorf("100 made-up codes: %d were sent away", busy)
	}
}

// TestOIDCForeignEnd: another site, or another port of this host, can send a browser back with any
// values. It can neither end a sign-in that a page began, nor sign a page in as another person.
func TestOIDCForeignEnd(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	idp := s.withProvider(nil)
	idp.Claims["groups"] = "admins"
	flow, back := s.toProvider()
	_, thiefs := s.toProvider() // the thief's own code and state; the victim's page comes back with them
	for what, foreign := range map[string]url.Values{
		"an error": {"error": {"access_denied"}}, "an error of another sign-in": {
			"error": {"access_denied"}, "state": {"x"},
		},
		"a made-up code": {"state": {"x"}, "code": {"y"}}, "a good code of another sign-in": thiefs,
		"that code with this state's name": {"state": {back.Get("state") + "x"}, "code": thiefs["code"]},
	} {
		for _, kept := range []string{flow, ""} {
			r := s.as("").call("POST", callback, endOf(kept, foreign))
			if r.status != 401 || !strings.Contains(r.body, "started in another browser") ||
				r.header.Get("Set-Cookie") != "" {
				t.Errorf("%s: got %d %v %s", what, r.status, r.header, r.body)
			}
		}
	}

	// The code is useless without the values that the page kept.
	if r := s.as("").call("POST", callback,
		object{"flow": back.Get("state") + ".a.b", "state": back.Get("state"),
			"code": thiefs.Get("code")}); r.status != 401 {
		t.Errorf("a code without its verifier: got %d %s", r.status, r.body)
	}

	s.as("").call("POST", callback, endOf(flow, back)).want(200)
	if n := s.count("SELECT COUNT(*) FROM login"); n != 1 {
		t.Errorf("got %d logins, want one", n)
	}
}

// TestOIDCBeforeTheClock: before the node knows the time it cannot judge the provider's answers.
func TestOIDCBeforeTheClock(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	idp := s.withProvider(func(c *auth.OIDCConfig) { c.Now = func() time.Time { return time.Time{} } })
	idp.Claims["groups"] = "admins"
	flow, back := s.toProvider()
	if r := s.as("").call("POST", callback, endOf(flow, back)).want(503); !strings.Contains(r.body,
		api.TypePrefix+"unavailable") {
		t.Errorf("got %s", r.body)
	}
}

// TestSecureOIDC: the provider sends people to the public URL, whatever Host a proxy sends.
func TestSecureOIDC(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	idp := s.withProvider(func(c *auth.OIDCConfig) { c.PublicURL = "https://cron.example.com" })
	idp.Claims["groups"] = "admins"
	flow, back := s.toProvider()
	r := s.as("").call("POST", callback, endOf(flow, back), "Origin", "https://cron.example.com", "Sec-Fetch-Site",
		"same-origin").want(200)
	if c := r.cookie(); !strings.HasPrefix(c.Name, "__Host-gocrontab-") || !c.Secure ||
		c.SameSite != http.SameSiteStrictMode {
		t.Fatalf("got %v", c)
	}

	s.as("").call("GET", "/api/v1/me", nil, r.login()...).want(200)
}

// TestSignInsAreBounded for each token.
func TestSignInsAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	hasty, calm, busy := s.newToken("hasty", auth.Viewer), s.newToken("calm", auth.Viewer), 0
	for range 60 {
		r := s.as("").call("POST", "/api/v1/login", object{"token": hasty})
		if r.status == http.StatusTooManyRequests {
			busy++
			if r.header.Get("Retry-After") == "" || !strings.Contains(r.body, "hasty signs in too often") {
				t.Errorf("got %v %s", r.header, r.body)
			}
		}
	}

	if busy < 10 {
		t.Errorf("60 sign-ins: %d were sent away", busy)
	}

	s.as("").call("POST", "/api/v1/login", object{"token": calm}).want(200)
	s.as(hasty).call("GET", "/api/v1/me", nil).want(200)
}

// TestSignInByOIDC signs in through a real provider, as a page in a browser does.
func TestSignInByOIDC(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	idp := s.withProvider(nil)
	public := s.cfg.PublicURL
	theirs := s.create("theirs", object{"app": "theirs"}).text("id")
	mine := s.create("mine", object{"app": "mine"}).text("id")

	if ways := s.as("").call("GET", "/api/v1/login", nil).want(200).object(); ways.text("oidc") != public ||
		ways.text("token") != "true" {
		t.Errorf("got %v", ways)
	}

	be := func(claims map[string]any, wrong testidp.Wrong) {
		idp.Lock()
		defer idp.Unlock()
		idp.Claims, idp.Wrong = claims, wrong
	}

	be(map[string]any{"sub": "1", "email": "ann@example.com", "email_verified": true, "groups": []string{"devs"}},
		testidp.Wrong{})
	b := s.browser()
	flow, back := s.toProvider()

	// The provider sends the browser to the console, with any parameters.
	if r := b.call("GET", callback+"?"+back.Encode(), nil).want(200); !strings.HasPrefix(r.header.Get("Content-Type"),
		"text/html") || r.header.Get("Set-Cookie") != "" {
		t.Errorf("back at the console: got %v", r.header)
	}

	r := b.call("POST", callback, endOf(flow, back), "Origin", public, "Sec-Fetch-Site", "same-origin").want(200)
	if me := r.object(); me.text("name") != "ann@example.com" || me.text("login_key") == "" {
		t.Errorf("got %v", me)
	}

	if me := b.call("GET", "/api/v1/me", nil).want(200).object(); me.text("name") != "ann@example.com" ||
		me.text("kind") != "oidc" || me.text("role") != "operator" || me.text("apps") != "[mine]" {
		t.Errorf("got %v", me)
	}

	b.call("POST", "/api/v1/jobs/"+mine+"/pause", nil, "Origin", public).want(200)
	b.call("POST", "/api/v1/jobs/"+theirs+"/pause", nil, "Origin", public).want(404)
	if n := s.count("SELECT COUNT(*) FROM audit WHERE who = 'ann@example.com' AND action = 'pause'"); n != 1 {
		t.Errorf("got %d lines of the audit in her name", n)
	}
	if cookies := b.http.Jar.Cookies(at(t, public)); len(cookies) != 1 || cookies[0].Name != r.cookie().Name {
		t.Errorf("the browser has %v, want the login alone", cookies)
	}

	b.call("POST", callback, endOf(flow, back)).want(401) // a code is valid once

	for what, c := range map[string]struct {
		claims map[string]any
		wrong  testidp.Wrong
		says   string
	}{
		"no group": {
			map[string]any{"sub": "2", "email": "<b>eve</b>@x", "email_verified": true}, testidp.Wrong{},
			"<b>eve</b>@x is in no group that has a role here",
		},
		"somebody else's key": {
			map[string]any{"sub": "2", "groups": "admins"}, testidp.Wrong{Key: true}, "ID token is not valid",
		},
		"the provider says no": {
			map[string]any{"sub": "2", "groups": "admins"}, testidp.Wrong{Denied: true}, "access_denied",
		},
	} {
		be(c.claims, c.wrong)
		b := s.browser()
		flow, back := s.toProvider()
		if r := b.call("POST", callback, endOf(flow, back)); r.status != 401 || !strings.Contains(r.body, c.says) ||
			r.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %d %s, want %q", what, r.status, r.body, c.says)
		}
		b.call("GET", "/api/v1/me", nil).want(401)
	}

	be(nil, testidp.Wrong{Down: true})
	// the provider is not called for invented codes
	s.as("").call("POST", callback, object{"state": "x", "code": "y"}).want(401)
	if n := s.count("SELECT COUNT(*) FROM login"); n != 1 {
		t.Errorf("got %d logins, want hers alone", n)
	}
}

func at(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestNoProvider(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.as("").call("POST", "/api/v1/login/oidc", nil).want(404)
	s.as("").call("POST", "/api/v1/login/oidc/callback", object{"state": "x", "code": "y", "flow": "z"}).want(404)
	if ways := s.as("").call("GET", "/api/v1/login", nil).want(200).object(); ways.text("oidc") != "" {
		t.Errorf("got %v", ways)
	}

	var busy atomic.Int64
	var all sync.WaitGroup
	for range 60 { // at once: a busy machine may take as long for each as the limit takes to grow
		all.Go(func() {
			r, err := s.http.Post(s.url+"/api/v1/login/oidc", "application/json", nil)
			if err != nil {
				return
			}
			defer r.Body.Close()
			if r.StatusCode == http.StatusTooManyRequests {
				busy.Add(1)
			}
		})
	}

	all.Wait()
	if busy.Load() < 20 {
		t.Errorf("60 sign-ins begun by one address: %d were sent away", busy.Load())
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for body, want := range map[string]string{
		`{"role": "viewer"}`:                                                 "name: is empty",
		`{"name": "a"}`:                                                      "role: is missing",
		`{"name": "a b", "role": "viewer"}`:                                  "must contain only letters",
		`{"name": "a", "role": "root"}`:                                      "give one of viewer, operator, admin",
		`{"name": "a", "role": "viewer", "apps": []}`:                        "apps: are an empty list",
		`{"name": "a", "role": "viewer", "apps": "x"}`:                       "apps: ",
		`{"name": "a", "role": "viewer", "expires": "tomorrow"}`:             "expires: ",
		`{"name": "a", "role": "viewer", "expires": "-1h"}`:                  "expires: ",
		`{"name": "a", "role": "viewer", "expires": 7}`:                      "expires: ",
		`{"name": "a", "role": "viewer", "expires": "2001-01-01T00:00:00Z"}`: "expires: is in the past",
		`{"name": "a", "role": "viewer", "token": "mine"}`:                   "token: ",
	} {
		r := s.call("POST", "/api/v1/tokens", body)
		if r.status != 422 || !strings.Contains(r.body, want) {
			t.Errorf("%s: got %d %s, want %s", body, r.status, r.body, want)
		}
	}

	r := s.call("POST", "/api/v1/tokens",
		object{"name": "ci", "role": "operator", "apps": []string{"billing"}, "expires": "720h"}).want(201)
	made := r.object()
	token := made.text("token")
	if !auth.LooksLikeToken(token) || made.text("state") != "active" || made.text("created_by") != "bootstrap" ||
		r.header.Get("Location") != "/api/v1/tokens/"+made.text("id") || made.text("expires") == "" {
		t.Errorf("got %s", r.body)
	}

	s.call("POST", "/api/v1/tokens", object{"name": "ci", "role": "viewer"}).want(409)
	forever := s.call("POST", "/api/v1/tokens",
		object{"name": "forever", "role": "viewer", "expires": "never"}).want(201).object()
	if forever.text("expires") != "" {
		t.Errorf("never: got %v", forever)
	}

	s.as(token).call("GET", "/api/v1/jobs", nil).want(200)
	one := s.call("GET", "/api/v1/tokens/"+made.text("id"), nil).want(200)
	if o := one.object(); o.text("last_used") == "" || o.text("last_used_from") != "127.0.0.1" ||
		o.text("apps") != "[billing]" || strings.Contains(one.body, "gocrontab_") {
		t.Errorf("got %s", one.body)
	}

	names := func(query string) string {
		_, items := s.walk("/api/v1/tokens" + query)
		var out []string
		for _, o := range items {
			out = append(out, o.text("name")+" "+o.text("state"))
			if o.text("token") != "" {
				t.Errorf("the list shows a token: %v", o)
			}
		}
		return strings.Join(out, ", ")
	}

	s.call("DELETE", "/api/v1/tokens/"+made.text("id"), nil).want(204)
	s.call("DELETE", "/api/v1/tokens/"+made.text("id"), nil).want(204)
	s.call("DELETE", "/api/v1/tokens/4711", nil).want(404)
	s.call("DELETE", "/api/v1/tokens/x", nil).want(404)
	s.exec("UPDATE api_token SET expires = 1 WHERE name = 'forever'")
	for query, want := range map[string]string{
		"": "bootstrap active, forever expired", "?limit=1": "bootstrap active, forever expired",
		"?revoked=true": "bootstrap active, ci revoked, forever expired",
		"?name=ci":      "", "?name=ci&revoked=true": "ci revoked",
	} {
		if got := names(query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}

	lines, _ := json.Marshal(s.call("GET", "/api/v1/audit?kind=token", nil).want(200).object()["items"])
	if text := string(lines); !strings.Contains(text, `"revoke"`) || !strings.Contains(text, `"billing"`) ||
		strings.Contains(text, "gocrontab_") {
		t.Errorf("audit: got %s", text)
	}
}

// TestHTTP2: over TLS a browser's requests share a connection, and their number is limited.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	server := httptest.NewUnstartedServer(api.New(s.cfg))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	resp, err := server.Client().Get(server.URL + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()

	if resp.ProtoMajor != 2 || resp.TLS.Version < tls.VersionTLS12 {
		t.Errorf("got %s", fmt.Sprint(resp.Proto, resp.TLS.Version))
	}
}
