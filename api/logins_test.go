package api_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/internal/auth"
	"go-crontab/internal/secret"
	"go-crontab/test/testidp"
)

// signedIn is a browser signed in by token.
func (s *site) signedIn(token string) *site {
	s.t.Helper()
	b := s.browser()
	b.call("POST", "/api/v1/login", object{"token": token}).want(200)
	return b
}

// loginHeaders are the headers of the browser and its page, for requests made by hand.
func (s *site) loginHeaders() []string {
	s.t.Helper()
	page := s.http.Transport.(*pageOf)
	page.mu.Lock()
	defer page.mu.Unlock()
	for _, c := range s.http.Jar.Cookies(at(s.t, s.url)) {
		if c.Name == "gocrontab-"+auth.Tag(page.key) {
			return []string{"Cookie", c.Name + "=" + c.Value, loginHeader, page.key}
		}
	}

	s.t.Fatal("the browser is not signed in")
	return nil
}

// whose returns the names in a list of logins.
func whose(items []object) (names []string) {
	for _, item := range items {
		names = append(names, item.text("who"))
	}
	return names
}

// TestLogins: an admin lists logins, and ends them on all nodes.
func TestLogins(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann, bob := s.newToken("ann", auth.Operator, "billing"), s.newToken("bob", auth.Viewer)
	first, second, other := s.signedIn(ann), s.signedIn(ann), s.signedIn(bob)
	first.call("GET", "/api/v1/jobs", nil).want(200)

	node, _ := s.other(nil)
	elsewhere := other.as("")
	elsewhere.url = node.url

	items := s.call("GET", "/api/v1/logins", nil).want(200).object().items("items")
	if got := whose(items); !slices.Equal(got, []string{"ann", "ann", "bob"}) {
		t.Fatalf("got %v", got)
	}

	one := items[0]
	if one.text("kind") != "token" || one.text("grants") != "[map[apps:[billing] role:operator]]" ||
		one.text("from") != "127.0.0.1" || one.text("since") == "" || one.text("until") == "" ||
		one.text("last_used") == "" || one.text("last_used_from") != "127.0.0.1" || one.text("current") != "false" ||
		one.text("check_at") != "" {
		t.Errorf("got %v", one)
	}

	if ids, _ := s.walk("/api/v1/logins?limit=1"); len(ids) != 3 {
		t.Errorf("page by page: got %v", ids)
	}

	if got := whose(s.call("GET", "/api/v1/logins?who=ann", nil).want(200).object().items("items")); !slices.Equal(got,
		[]string{"ann", "ann"}) {
		t.Errorf("of ann: got %v", got)
	}

	if got := whose(s.call("GET", "/api/v1/logins?who=an", nil).want(200).object().items("items")); got != nil {
		t.Errorf("of a part of a name: got %v", got)
	}

	// A mistyped name ends no login.
	for path, status := range map[string]int{
		"/api/v1/logins": 422, "/api/v1/logins?who=": 422, "/api/v1/logins?who=an": 404, "/api/v1/logins?who=Ann": 404,
		"/api/v1/logins?who=%25": 404, "/api/v1/logins?name=ann": 422,
		"/api/v1/logins/99": 404, "/api/v1/logins/x": 404, "/api/v1/logins/": 404,
	} {
		if r := s.call("DELETE", path, nil); r.status != status {
			t.Errorf("DELETE %s: got %d %s, want %d", path, r.status, r.body, status)
		}
	}

	if n := s.count("SELECT COUNT(*) FROM login"); n != 3 {
		t.Fatalf("got %d logins, want all 3", n)
	}

	// One is ended: at once on this node and for changes everywhere, and its streams within about a
	// second.
	stream := elsewhere.listen("/api/v1/events", other.loginHeaders()...)
	stream.hello()
	s.call("DELETE", "/api/v1/logins/"+items[2].text("id"), nil).want(204)
	elsewhere.call("POST", "/api/v1/logout", nil).want(401)
	other.call("GET", "/api/v1/me", nil).want(401)
	if why := stream.closes(); !strings.Contains(why, "signed out") {
		t.Errorf("its stream: got %q", why)
	}

	await(t, "it reads nothing any more at another node", 2*time.Second, func() bool {
		return elsewhere.call("GET", "/api/v1/jobs", nil).status == 401
	})
	first.call("GET", "/api/v1/me", nil).want(200)

	// All logins of a person.
	if r := s.call("DELETE", "/api/v1/logins?who=ann", nil).want(200).object(); r.text("ended") != "2" {
		t.Errorf("got %v", r)
	}

	first.call("GET", "/api/v1/me", nil).want(401)
	second.call("GET", "/api/v1/me", nil).want(401)
	s.as(ann).call("GET", "/api/v1/me", nil).want(200) // the token is still valid
	if n := s.count(`
			SELECT COUNT(*)
			FROM audit
			WHERE kind = 'login' AND action = 'revoke' AND who = 'bootstrap' AND name IN ('ann', 'bob')`); n != 3 {
		t.Errorf("got %d lines of the audit, want one for each sign-in", n)
	}
}

// TestOwnLogins: callers that are not cluster admins see and end only their own sign-ins.
func TestOwnLogins(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	mine, limited := s.newToken("mine", auth.Viewer), s.newToken("limited", auth.Admin, "billing")
	a, b := s.signedIn(mine), s.signedIn(mine)
	boss := s.signedIn(s.token)
	theirs := boss.call("GET", "/api/v1/logins?who=bootstrap", nil).want(200).object().items("items")[0]
	if theirs.text("current") != "true" {
		t.Errorf("its own: got %v", theirs)
	}

	items := a.call("GET", "/api/v1/logins", nil).want(200).object().items("items")
	if got := whose(items); !slices.Equal(got, []string{"mine", "mine"}) || items[0].text("current") != "true" ||
		items[1].text("current") != "false" {
		t.Fatalf("got %v", items)
	}

	for who, token := range map[string]string{"a viewer": mine, "an admin of an app": limited} {
		u := s.as(token)
		u.call("GET", "/api/v1/logins?who=bootstrap", nil).want(403)
		u.call("DELETE", "/api/v1/logins?who=bootstrap", nil).want(403)
		u.call("DELETE", "/api/v1/logins/"+theirs.text("id"), nil).want(404)
		if got := whose(u.call("GET", "/api/v1/logins", nil).want(200).object().items("items")); slices.Contains(got,
			"bootstrap") {
			t.Errorf("%s: got %v", who, got)
		}
	}

	// A token of the same name is a different token.
	s.exec("UPDATE login SET who = 'limited', token_id = 77 WHERE id = ?", theirs.text("id"))
	if got := s.as(limited).call("GET", "/api/v1/logins", nil).want(200).object().items("items"); len(got) != 0 {
		t.Errorf("got %v", got)
	}

	s.as(limited).call("DELETE", "/api/v1/logins?who=limited", nil).want(404)

	a.call("DELETE", "/api/v1/logins/"+items[1].text("id"), nil).want(204)
	b.call("GET", "/api/v1/me", nil).want(401)
	if r := a.call("DELETE", "/api/v1/logins?who=mine", nil).want(200).object(); r.text("ended") != "1" {
		t.Errorf("got %v", r)
	}

	a.call("GET", "/api/v1/me", nil).want(401)
}

// TestLostGroup: a node asks the provider again about signed-in people, without any request.
func TestLostGroup(t *testing.T) {
	t.Parallel()
	ring, err := secret.Parse(secret.NewKey())
	if err != nil {
		t.Fatal(err)
	}

	s := start(t, func(c *api.Config) { c.SecretKeys = ring })
	idp := s.withProvider(func(c *auth.OIDCConfig) { c.Recheck = time.Second })
	be := func(change func(*testidp.Provider)) {
		idp.Lock()
		defer idp.Unlock()
		change(idp)
	}

	be(func(p *testidp.Provider) {
		p.Claims["groups"], p.Claims["email"], p.Claims["email_verified"], p.Refresh.Gives = "admins",
			"ann@example.com", true, true
	})

	signIn := func() *site {
		t.Helper()
		b := s.browser()
		flow, back := s.toProvider()
		b.call("POST", callback, endOf(flow, back)).want(200)
		return b
	}

	_, stop := listening(t, s.cfg) // a serving node checks logins
	t.Cleanup(func() { _ = stop() })

	b := signIn()
	one := b.call("GET", "/api/v1/logins?who=ann@example.com", nil).want(200).object().items("items")[0]
	if one.text("kind") != "oidc" || one.text("check_at") == "" || one.text("grants") != "[map[role:admin]]" ||
		one.text("current") != "true" {
		t.Errorf("got %v", one)
	}

	await(t, "the provider confirms it", 10*time.Second, func() bool {
		return b.call("GET", "/api/v1/logins", nil).want(200).object().items("items")[0].text("checked") != ""
	})
	be(func(p *testidp.Provider) { p.Claims["groups"] = "devs" })
	await(t, "the role is less", 10*time.Second, func() bool {
		return b.call("GET", "/api/v1/me", nil).want(200).object().text("role") == "operator"
	})
	b.call("GET", "/api/v1/tokens", nil).want(403)
	stream := b.listen("/api/v1/events", b.loginHeaders()...)
	stream.hello()
	be(func(p *testidp.Provider) { p.Claims["groups"] = "nobody" })
	if why := stream.closes(); !strings.Contains(why, "signed out") {
		t.Errorf("its stream: got %q", why)
	}

	b.call("GET", "/api/v1/me", nil).want(401)

	be(func(p *testidp.Provider) { p.Claims["groups"] = "admins" })
	b = signIn()
	be(func(p *testidp.Provider) { p.Refresh.Revoked = true })
	await(t, "it is revoked at the provider", 10*time.Second, func() bool {
		return b.call("GET", "/api/v1/me", nil).status == 401
	})

	// An admin can end logins that the provider still confirms.
	be(func(p *testidp.Provider) { p.Refresh.Revoked = false })
	b = signIn()
	if r := s.call("DELETE", "/api/v1/logins?who=ann@example.com", nil).want(200).object(); r.text("ended") != "1" {
		t.Errorf("got %v", r)
	}

	b.call("GET", "/api/v1/me", nil).want(401)
	if n := s.count(
		"SELECT COUNT(*) FROM audit WHERE kind = 'login' AND action = 'revoke' AND name = 'ann@example.com'"); n != 3 {
		t.Errorf("got %d lines of the audit, want 3", n)
	}
}
