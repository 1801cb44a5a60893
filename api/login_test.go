package api_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/auth"
	"go-crontab/internal/testidp"
)

// browser is the site as a browser sees it: without a token, with a jar for cookies.
func (s *site) browser() *site {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	b := s.as("")
	client := *s.http
	client.Jar = jar
	b.http = &client
	return b
}

// cookie is the one that an answer sets.
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
	r := b.call("POST", "/api/v1/login", object{"token": token}, "Origin", s.url, "Sec-Fetch-Site", "same-origin").want(200)
	c := r.cookie()
	if c.Name != "gocrontab" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.Path != "/" || c.Domain != "" || c.MaxAge != 12*3600 || strings.Contains(c.Value, token) {
		t.Errorf("got cookie %v", c)
	}
	if me := r.object(); me.text("name") != "alice" || me.text("role") != "operator" || me.text("expires") == "" || strings.Contains(r.body, c.Value) || strings.Contains(r.body, token) {
		t.Errorf("got %s", r.body)
	}
	b.call("GET", "/api/v1/jobs/1", nil).want(200)
	b.call("POST", "/api/v1/jobs/1/pause", nil, "Origin", s.url, "Sec-Fetch-Site", "same-origin").want(200)
	b.call("DELETE", "/api/v1/jobs/1", nil).want(403)
	// Another site cannot have it do anything, nor another port of this machine.
	for _, header := range [][]string{{"Origin", "http://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "http://127.0.0.1:1"}, {"Origin", "null"}} {
		r := b.call("POST", "/api/v1/jobs/1/resume", nil, header...)
		if r.status != 403 || !strings.Contains(r.body, api.TypePrefix+"cross-origin") {
			t.Errorf("%v: got %d %s, want refused", header, r.status, r.body)
		}
	}
	if n := s.count("SELECT COUNT(*) FROM audit WHERE who = 'alice' AND action IN ('sign_in', 'pause')"); n != 2 {
		t.Errorf("got %d lines of the audit, want one of the sign-in and one of the pause", n)
	}
	if n := s.count("SELECT COUNT(*) FROM login WHERE hash = ? OR who = ?", c.Value, c.Value); n != 0 {
		t.Error("what the cookie holds is in the table")
	}
	// A header says more than a cookie.
	b.call("GET", "/api/v1/jobs", nil, "Authorization", "Bearer "+wellFormed).want(401)
	b.call("GET", "/api/v1/jobs", nil).want(200)

	b.call("POST", "/api/v1/logout", nil, "Origin", s.url).want(204)
	stolen := s.as("").call("GET", "/api/v1/jobs", nil, "Cookie", "gocrontab="+c.Value).want(401)
	if c := stolen.cookie(); c.MaxAge >= 0 || c.Value != "" {
		t.Errorf("a dead cookie: got %v, want it taken away", c)
	}
	b.call("GET", "/api/v1/me", nil).want(401)
	s.call("POST", "/api/v1/logout", nil).want(204) // a token is no login: nothing ends
	s.call("GET", "/api/v1/me", nil).want(200)
}

func TestSignInIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	b := s.browser()
	for body, status := range map[string]int{
		`{}`: 422, `{"token": ""}`: 422, `{"token": 7}`: 422, `{"token": "x"}`: 401, `{"token": "` + wellFormed + `"}`: 401, `{"token": null}`: 422, `[]`: 422, `x`: 400,
		`{"token": "' OR ''='"}`: 401, `{"password": "admin"}`: 422,
	} {
		r := b.call("POST", "/api/v1/login", body)
		if r.status != status || r.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: got %d %s, want %d", body, r.status, r.body, status)
		}
	}
	// Not by a form of another site, which cannot send JSON, nor by its script.
	b.call("POST", "/api/v1/login", `{"token": "`+s.token+`"}`, "Content-Type", "text/plain").want(415)
	b.call("POST", "/api/v1/login", "token="+s.token, "Content-Type", "application/x-www-form-urlencoded").want(415)
	b.call("POST", "/api/v1/login", object{"token": s.token}, "Origin", "http://evil.example").want(403)
	if n := s.count("SELECT COUNT(*) FROM audit WHERE action = 'refuse' AND kind = 'login' AND origin = '127.0.0.1'"); n != 1 {
		t.Errorf("got %d lines of the audit, want one for all from one address within a minute", n)
	}
	if n := s.count("SELECT COUNT(*) FROM audit WHERE INSTR(CONCAT_WS(' ', name, reason, was, became), ?)", wellFormed); n != 0 {
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

// TestSecureCookies: over TLS, or behind a proxy that speaks it, browsers keep the cookie to it.
func TestSecureCookies(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) { c.PublicURL = "https://cron.example.com" })
	token := s.newToken("alice", auth.Viewer)
	secure := func(r *reply) {
		t.Helper()
		if c := r.want(200).cookie(); c.Name != "__Host-gocrontab" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
			t.Errorf("got %v", c)
		}
	}
	r := s.as("").call("POST", "/api/v1/login", object{"token": token}, "Host", "cron.example.com", "Origin", "https://cron.example.com")
	secure(r)
	s.as("").call("GET", "/api/v1/me", nil, "Host", "cron.example.com", "Cookie", "__Host-gocrontab="+r.cookie().Value).want(200)
	// The name without the prefix is not taken there: another site under this domain could have set it.
	s.as("").call("GET", "/api/v1/me", nil, "Host", "cron.example.com", "Cookie", "gocrontab="+r.cookie().Value).want(401)
	// A proxy that says nothing of the Host: the Origin that browsers send with changes tells, and reads find the cookie.
	r = s.as("").call("POST", "/api/v1/login", object{"token": token}, "Origin", "https://CRON.example.com:443", "Sec-Fetch-Site", "same-origin")
	secure(r)
	s.as("").call("GET", "/api/v1/me", nil, "Cookie", "__Host-gocrontab="+r.cookie().Value).want(200)
	s.as("").call("POST", "/api/v1/logout", nil, "Cookie", "__Host-gocrontab="+r.cookie().Value, "Origin", "https://cron.example.com", "Sec-Fetch-Site", "same-origin").want(204)
	if c := s.as("").call("GET", "/api/v1/me", nil, "Cookie", "__Host-gocrontab="+r.cookie().Value).want(401).cookie(); c.Name != "__Host-gocrontab" || !c.Secure || c.MaxAge >= 0 {
		t.Errorf("a dead cookie: got %v, want it taken away", c)
	}
	for _, origin := range []string{"http://cron.example.com", "https://cron.example.com:8443", "https://example.com", "null"} {
		if c := s.as("").call("POST", "/api/v1/login", object{"token": token}, "Origin", origin, "Sec-Fetch-Site", "same-origin").want(200).cookie(); c.Name != "gocrontab" || c.Secure {
			t.Errorf("from %s: got %v", origin, c)
		}
	}
	if c := s.as("").call("POST", "/api/v1/login", object{"token": token}).want(200).cookie(); c.Name != "gocrontab" || c.Secure {
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

// withProvider has people sign in by a provider.
func (s *site) withProvider(mod func(*auth.OIDCConfig)) *testidp.Provider {
	s.t.Helper()
	idp := testidp.Start(s.t)
	l := httptest.NewUnstartedServer(nil)
	cfg := auth.OIDCConfig{Issuer: idp.URL, ClientID: testidp.ClientID, ClientSecret: testidp.ClientSecret, PublicURL: "http://" + l.Listener.Addr().String(), Roles: auth.RoleMap{}, Now: s.cfg.Now}
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

// ask sends a GET of a browser that goes nowhere by itself.
func (s *site) ask(at string, cookies ...*http.Cookie) (resp *http.Response, body string) {
	s.t.Helper()
	req, err := http.NewRequest("GET", at, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range cookies {
		req.AddCookie(c)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if resp, err = client.Do(req); err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, string(text)
}

// toProvider has a browser go to the provider. It returns the browser's cookie, and with what it is sent back.
func (s *site) toProvider() (flow *http.Cookie, query string) {
	s.t.Helper()
	resp, body := s.ask(s.url + "/api/v1/login/oidc")
	if resp.StatusCode != http.StatusSeeOther || len(resp.Cookies()) != 1 {
		s.t.Fatalf("begin: got %s %s", resp.Status, body)
	}
	flow = resp.Cookies()[0]
	resp, _ = s.ask(resp.Header.Get("Location"))
	back, err := resp.Location()
	if err != nil {
		s.t.Fatal(err)
	}
	return flow, back.RawQuery
}

const callback = "/api/v1/login/oidc/callback?"

// TestOIDCFromOneAddress: who begins sign-ins, or comes back with what is not theirs, keeps nobody out who comes from the
// same address. What the provider is asked is bounded.
func TestOIDCFromOneAddress(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	idp := s.withProvider(nil)
	idp.Claims["groups"] = "admins"
	flow, query := s.toProvider()
	for range 60 {
		if resp, body := s.ask(s.url + "/api/v1/login/oidc"); resp.StatusCode != http.StatusSeeOther {
			t.Fatalf("begin: got %s %s", resp.Status, body)
		}
		s.as("").call("GET", callback+"state=x&code=y", nil).want(403)
	}
	if resp, body := s.ask(s.url+callback+query, flow); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("a sign-in among others: got %s %s", resp.Status, body)
	}
	flow, query = s.toProvider()
	madeUp, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	madeUp.Set("code", "x")
	guess := func(times int) (busy int) {
		for range times {
			if resp, _ := s.ask(s.url+callback+madeUp.Encode(), flow); resp.StatusCode == http.StatusTooManyRequests {
				busy++
			}
		}
		return busy
	}
	guess(25)
	another, itsQuery := s.toProvider()
	if resp, body := s.ask(s.url+callback+itsQuery, another); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("a sign-in behind 25 made-up codes: got %s %s", resp.Status, body)
	}
	if busy := guess(100); busy < 20 {
		t.Errorf("100 made-up codes: %d were sent away", busy)
	}
}

// TestOIDCForeignError: another site cannot end a sign-in by sending the browser back with an error.
func TestOIDCForeignError(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	idp := s.withProvider(nil)
	idp.Claims["groups"] = "admins"
	flow, query := s.toProvider()
	for _, foreign := range []string{"error=access_denied", "error=access_denied&state=x", "state=x&code=y"} {
		resp, body := s.ask(s.url+callback+foreign, flow)
		if resp.StatusCode != 403 || !strings.Contains(body, "begun by another browser") || len(resp.Cookies()) != 0 {
			t.Errorf("%s: got %s %v %s", foreign, resp.Status, resp.Cookies(), body)
		}
	}
	if resp, body := s.ask(s.url+callback+query, flow); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("its own end: got %s %s", resp.Status, body)
	}
}

// TestOIDCBeforeTheClock: as long as nobody knows the time nobody can tell what a provider's word is worth.
func TestOIDCBeforeTheClock(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	idp := s.withProvider(func(c *auth.OIDCConfig) { c.Now = func() time.Time { return time.Time{} } })
	idp.Claims["groups"] = "admins"
	flow, query := s.toProvider()
	if resp, body := s.ask(s.url+callback+query, flow); resp.StatusCode != 503 || !strings.Contains(body, api.TypePrefix+"unavailable") {
		t.Errorf("got %s %s", resp.Status, body)
	}
}

// TestSecureOIDC: who comes from the provider comes to the public URL, whatever Host a proxy says.
func TestSecureOIDC(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	idp := s.withProvider(func(c *auth.OIDCConfig) { c.PublicURL = "https://cron.example.com" })
	idp.Claims["groups"] = "admins"
	flow, query := s.toProvider()
	if flow.Name != "__Host-gocrontab-flow" || !flow.Secure || flow.Path != "/" {
		t.Errorf("on the way: got %v", flow)
	}
	resp, body := s.ask(s.url+callback+query, flow)
	if resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("got %s %s", resp.Status, body)
	}
	var login *http.Cookie
	for _, c := range resp.Cookies() {
		if c.Value != "" {
			login = c
		}
	}
	if login == nil || login.Name != "__Host-gocrontab" || !login.Secure {
		t.Fatalf("got %v", resp.Cookies())
	}
	s.as("").call("GET", "/api/v1/me", nil, "Cookie", login.Name+"="+login.Value).want(200)
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

// TestSignInByOIDC goes the whole way through a real provider, as a browser does.
func TestSignInByOIDC(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	idp := s.withProvider(nil)
	public := s.cfg.PublicURL
	theirs := s.create("theirs", object{"app": "theirs"}).text("id")
	mine := s.create("mine", object{"app": "mine"}).text("id")

	if ways := s.as("").call("GET", "/api/v1/login", nil).want(200).object(); ways.text("oidc") != "/api/v1/login/oidc" || ways.text("token") != "true" {
		t.Errorf("got %v", ways)
	}
	be := func(claims map[string]any, wrong testidp.Wrong) {
		idp.Lock()
		defer idp.Unlock()
		idp.Claims, idp.Wrong = claims, wrong
	}
	visit := func(b *site, path string) (status int, at *url.URL, body string) {
		t.Helper()
		resp, err := b.http.Get(b.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, resp.Request.URL, string(text)
	}
	be(map[string]any{"sub": "1", "email": "ann@example.com", "email_verified": true, "groups": []string{"devs"}}, testidp.Wrong{})
	b := s.browser()
	if status, at, body := visit(b, "/api/v1/login/oidc"); status != 200 || at.String() != public+"/" {
		t.Fatalf("got %d at %s: %s; want the page", status, at, body)
	}
	if me := b.call("GET", "/api/v1/me", nil).want(200).object(); me.text("name") != "ann@example.com" || me.text("kind") != "oidc" || me.text("role") != "operator" || me.text("apps") != "[mine]" {
		t.Errorf("got %v", me)
	}
	b.call("POST", "/api/v1/jobs/"+mine+"/pause", nil, "Origin", public).want(200)
	b.call("POST", "/api/v1/jobs/"+theirs+"/pause", nil, "Origin", public).want(404)
	if n := s.count("SELECT COUNT(*) FROM audit WHERE who = 'ann@example.com' AND action = 'pause'"); n != 1 {
		t.Errorf("got %d lines of the audit in her name", n)
	}
	cookies := b.http.Jar.Cookies(at(t, public))
	if len(cookies) != 1 || cookies[0].Name != "gocrontab" {
		t.Errorf("the browser has %v, want the login alone", cookies)
	}

	for what, c := range map[string]struct {
		claims map[string]any
		wrong  testidp.Wrong
		says   string
	}{
		"no group":             {map[string]any{"sub": "2", "email": "<b>eve</b>@x", "email_verified": true}, testidp.Wrong{}, "&lt;b&gt;eve&lt;/b&gt;@x is in no group that has a role here"},
		"somebody else's key":  {map[string]any{"sub": "2", "groups": "admins"}, testidp.Wrong{Key: true}, "ID token is not right"},
		"the provider says no": {map[string]any{"sub": "2", "groups": "admins"}, testidp.Wrong{Denied: true}, "access_denied"},
	} {
		be(c.claims, c.wrong)
		b := s.browser()
		status, _, body := visit(b, "/api/v1/login/oidc")
		if status != 403 || !strings.Contains(body, c.says) || strings.Contains(body, "<b>eve") {
			t.Errorf("%s: got %d %s, want %q", what, status, body, c.says)
		}
		b.call("GET", "/api/v1/me", nil).want(401)
	}
	be(map[string]any{"sub": "1", "groups": "admins"}, testidp.Wrong{})
	// Who is sent to our end by somebody else has no cookie of ours: they are not signed in as that one.
	thief := s.browser()
	thief.http.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if strings.HasSuffix(req.URL.Path, "/callback") {
			return http.ErrUseLastResponse
		}
		return nil
	}
	resp, err := thief.http.Get(s.url + "/api/v1/login/oidc")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		t.Fatal(err)
	}
	victim := s.browser()
	if status, _, body := visit(victim, back.RequestURI()); status != 403 || !strings.Contains(body, "begun by another browser") {
		t.Errorf("a code of another browser: got %d %s", status, body)
	}
	victim.call("GET", "/api/v1/me", nil).want(401)
	be(nil, testidp.Wrong{Down: true})
	if r := s.as("").call("GET", "/api/v1/login/oidc/callback?state=x&code=y", nil); r.status != 403 {
		t.Errorf("made-up parameters: got %d %s", r.status, r.body)
	}
	if n := s.count("SELECT COUNT(*) FROM login"); n != 1 {
		t.Errorf("got %d logins, want hers alone", n)
	}
}

func at(t *testing.T, s string) *url.URL {
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
	s.as("").call("GET", "/api/v1/login/oidc", nil).want(404)
	s.as("").call("GET", "/api/v1/login/oidc/callback?state=x&code=y", nil).want(404)
	if ways := s.as("").call("GET", "/api/v1/login", nil).want(200).object(); ways.text("oidc") != "" {
		t.Errorf("got %v", ways)
	}
	busy := 0
	for range 60 {
		if r := s.as("").call("GET", "/api/v1/login/oidc", nil); r.status == http.StatusTooManyRequests {
			busy++
		}
	}
	if busy < 20 {
		t.Errorf("60 sign-ins begun by one address: %d were sent away", busy)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for body, want := range map[string]string{
		`{"role": "viewer"}`:                                                 "name: is empty",
		`{"name": "a"}`:                                                      "role: is missing",
		`{"name": "a b", "role": "viewer"}`:                                  "want only letters",
		`{"name": "a", "role": "root"}`:                                      "want one of viewer, operator, admin",
		`{"name": "a", "role": "viewer", "apps": []}`:                        "apps: are none",
		`{"name": "a", "role": "viewer", "apps": "x"}`:                       "apps: ",
		`{"name": "a", "role": "viewer", "expires": "tomorrow"}`:             "expires: ",
		`{"name": "a", "role": "viewer", "expires": "-1h"}`:                  "expires: ",
		`{"name": "a", "role": "viewer", "expires": 7}`:                      "expires: ",
		`{"name": "a", "role": "viewer", "expires": "2001-01-01T00:00:00Z"}`: "expires: lies in the past",
		`{"name": "a", "role": "viewer", "token": "mine"}`:                   "token: ",
	} {
		r := s.call("POST", "/api/v1/tokens", body)
		if r.status != 422 || !strings.Contains(r.body, want) {
			t.Errorf("%s: got %d %s, want %s", body, r.status, r.body, want)
		}
	}
	r := s.call("POST", "/api/v1/tokens", object{"name": "ci", "role": "operator", "apps": []string{"billing"}, "expires": "720h"}).want(201)
	made := r.object()
	token := made.text("token")
	if !auth.LooksLikeToken(token) || made.text("state") != "active" || made.text("created_by") != "bootstrap" || r.header.Get("Location") != "/api/v1/tokens/"+made.text("id") || made.text("expires") == "" {
		t.Errorf("got %s", r.body)
	}
	s.call("POST", "/api/v1/tokens", object{"name": "ci", "role": "viewer"}).want(409)
	forever := s.call("POST", "/api/v1/tokens", object{"name": "forever", "role": "viewer", "expires": "never"}).want(201).object()
	if forever.text("expires") != "" {
		t.Errorf("never: got %v", forever)
	}
	s.as(token).call("GET", "/api/v1/jobs", nil).want(200)
	one := s.call("GET", "/api/v1/tokens/"+made.text("id"), nil).want(200)
	if o := one.object(); o.text("last_used") == "" || o.text("last_used_from") != "127.0.0.1" || o.text("apps") != "[billing]" || strings.Contains(one.body, "gocrontab_") {
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
		"": "bootstrap active, forever expired", "?limit=1": "bootstrap active, forever expired", "?revoked=true": "bootstrap active, ci revoked, forever expired",
		"?name=ci": "", "?name=ci&revoked=true": "ci revoked",
	} {
		if got := names(query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	lines, _ := json.Marshal(s.call("GET", "/api/v1/audit?kind=token", nil).want(200).object()["items"])
	if text := string(lines); !strings.Contains(text, `"revoke"`) || !strings.Contains(text, `"billing"`) || strings.Contains(text, "gocrontab_") {
		t.Errorf("audit: got %s", text)
	}
}

// TestHTTP2: over TLS a browser's requests share a connection, and are bounded there.
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
