package auth

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go-crontab/test/testidp"
)

const publicURL = "http://127.0.0.1:8610"

func newOIDC(t *testing.T, idp *testidp.Provider, mod func(*OIDCConfig)) *OIDC {
	t.Helper()
	cfg := OIDCConfig{
		Issuer: idp.URL, ClientID: testidp.ClientID, ClientSecret: testidp.ClientSecret, PublicURL: publicURL,
		Roles: RoleMap{},
	}

	if err := cfg.Roles.Add("admins=admin,devs=operator:billing|ops,readers=viewer"); err != nil {
		t.Fatal(err)
	}
	if mod != nil {
		mod(&cfg)
	}

	o, err := NewOIDC(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// consent acts as a browser that goes to the provider and comes back.
func consent(t *testing.T, target string) url.Values {
	t.Helper()
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(target)
	if err != nil {
		t.Fatal(err)
	}

	resp.Body.Close()
	back, err := resp.Location()
	if err != nil || !strings.HasPrefix(back.String(), publicURL+callbackPath+"?") {
		t.Fatalf("the provider sends the browser to %v, %v (status %s)", back, err, resp.Status)
	}
	return back.Query()
}

// signIn does a whole sign-in.
func signIn(t *testing.T, o *OIDC) (*Principal, error) {
	t.Helper()
	target, flow, err := o.Begin(t.Context())
	if err != nil {
		return nil, err
	}
	q := consent(t, target)
	return o.Finish(t.Context(), flow, q.Get("state"), q.Get("code"))
}

func TestOIDCRolesAndNames(t *testing.T) {
	t.Parallel()
	idp := testidp.Start(t)
	for what, c := range map[string]struct {
		claims, info map[string]any
		mod          func(*OIDCConfig)
		want         string
	}{
		"an admin": {
			claims: map[string]any{"groups": []string{"admins", "x"}, "email": "a@b.c", "email_verified": true},
			want:   "a@b.c (admin)",
		},
		"of two groups": {
			claims: map[string]any{"groups": []string{"readers", "devs"}, "preferred_username": "ann"},
			want:   "ann@127.0.0.1 (viewer; operator of billing, ops)",
		},
		"one group as a text": {claims: map[string]any{"groups": "readers"}, want: "4711@127.0.0.1 (viewer)"},
		"an address that is not verified": {claims: map[string]any{
			"groups": "readers", "email": "root@b.c", "email_verified": false, "preferred_username": "ann",
		},
			want: "ann@127.0.0.1 (viewer)"},
		"an address of which nothing is said": {
			claims: map[string]any{"groups": "readers", "email": "root@b.c"}, want: "4711@127.0.0.1 (viewer)",
		},
		"an address verified in a text": {
			claims: map[string]any{"groups": "readers", "email": "a@b.c", "email_verified": "true"},
			want:   "a@b.c (viewer)",
		},
		"another claim for the name": {claims: map[string]any{"groups": "readers", "upn": "ann@corp"},
			mod:  func(c *OIDCConfig) { c.NameClaim = "upn" },
			want: "ann@corp (viewer)"},
		"another claim that is missing": {claims: map[string]any{"sub": "ann@corp", "groups": "readers"},
			mod:  func(c *OIDCConfig) { c.NameClaim = "upn" },
			want: "ann@corp@127.0.0.1 (viewer)"},
		"a name that looks like an address": {
			claims: map[string]any{"groups": "readers", "preferred_username": "root@b.c"},
			want:   "root@b.c@127.0.0.1 (viewer)",
		},
		"a subject that looks like one": {
			claims: map[string]any{"sub": "root@b.c", "groups": "readers"}, want: "root@b.c@127.0.0.1 (viewer)",
		},
		"a name of a token": {
			claims: map[string]any{"groups": "readers", "preferred_username": "ci"}, want: "ci@127.0.0.1 (viewer)",
		},
		"a name with a line break": {
			claims: map[string]any{"groups": "readers", "preferred_username": "a\nb\u202e"},
			want:   "a\ufffdb\ufffd@127.0.0.1 (viewer)",
		},
		"a claim in a claim": {claims: map[string]any{"realm_access": map[string]any{"roles": []string{"admins"}}},
			mod:  func(c *OIDCConfig) { c.GroupsClaim = "realm_access.roles" },
			want: "4711@127.0.0.1 (admin)"},
		"a claim with dots": {claims: map[string]any{"https://x.y/groups": []any{"admins", 7, nil}},
			mod:  func(c *OIDCConfig) { c.GroupsClaim = "https://x.y/groups" },
			want: "4711@127.0.0.1 (admin)"},
		"groups by asking": {
			claims: map[string]any{}, info: map[string]any{"sub": "4711", "groups": []string{"admins"}},
			want: "4711@127.0.0.1 (admin)",
		},
		"groups of somebody else": {
			claims: map[string]any{}, info: map[string]any{"sub": "1", "groups": []string{"admins"}},
			want: "returned another person",
		},
		"no group": {
			claims: map[string]any{"groups": []string{"Admins", "admin"}},
			want:   "4711@127.0.0.1 is in no group that has a role here",
		},
		"no claim":                 {claims: map[string]any{}, want: "in no group"},
		"a claim that is a number": {claims: map[string]any{"groups": 7}, want: "in no group"},
	} {
		idp.Lock()
		idp.Claims, idp.UserInfo = map[string]any{"sub": "4711"}, c.info
		for k, v := range c.claims {
			idp.Claims[k] = v
		}

		idp.Unlock()
		who, err := signIn(t, newOIDC(t, idp, c.mod))
		got := fmt.Sprint(err)
		if err == nil {
			got = who.String()
			if who.Kind != KindOIDC || who.Token != 0 {
				t.Errorf("%s: got %+v", what, who)
			}
		}

		if err == nil && got != c.want || err != nil && !strings.Contains(got, c.want) {
			t.Errorf("%s: got %s, want %s", what, got, c.want)
		}
	}
}

// TestOIDCRefuses checks that invalid sign-ins are refused, whether the browser or the provider is
// at fault.
func TestOIDCRefuses(t *testing.T) {
	t.Parallel()
	idp := testidp.Start(t)
	idp.Claims["groups"] = "admins"
	o := newOIDC(t, idp, nil)
	if _, err := signIn(t, o); err != nil {
		t.Fatal(err)
	}

	for what, wrong := range map[string]testidp.Wrong{
		"signed by somebody else": {Key: true}, "for another sign-in": {Nonce: true},
		"for another application": {Audience: true}, "of another issuer": {Issuer: true},
		"expired": {Expired: true}, "not signed": {NotSigned: true},
		"asked for by another application": {Party: true},
	} {
		idp.Lock()
		idp.Wrong = wrong
		idp.Unlock()
		_, err := signIn(t, o)
		if !errors.As(err, new(*Refused)) {
			t.Errorf("an ID token that is %s: got %v, want refused", what, err)
		}
	}

	idp.Lock()
	idp.Wrong = testidp.Wrong{NoIDToken: true}
	idp.Unlock()
	if _, err := signIn(t, o); !errors.As(err, new(*ProviderError)) {
		t.Errorf("an answer without an ID token: got %v", err)
	}

	idp.Lock()
	idp.Wrong = testidp.Wrong{}
	idp.Unlock()
	begin := func() (flow string, q url.Values) {
		target, flow, err := o.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return flow, consent(t, target)
	}

	flow, q := begin()
	other, _ := begin()
	stolen, _ := parseFlow(other)
	mine, _ := parseFlow(flow)
	for what, c := range map[string][3]string{
		"another browser":            {other, q.Get("state"), q.Get("code")},
		"no cookie":                  {"", q.Get("state"), q.Get("code")},
		"half a cookie":              {mine.state + "." + mine.nonce, q.Get("state"), q.Get("code")},
		"an empty state in a cookie": {"." + mine.nonce + "." + mine.verifier, "", q.Get("code")},
		"no state":                   {flow, "", q.Get("code")},
		"no code":                    {flow, q.Get("state"), ""},
		"a made-up code":             {flow, q.Get("state"), "x"},
		"another verifier": {
			flowSecrets{mine.state, mine.nonce, stolen.verifier}.String(), q.Get("state"), q.Get("code"),
		},
	} {
		if _, err := o.Finish(t.Context(), c[0], c[1], c[2]); !errors.As(err, new(*Refused)) {
			t.Errorf("%s: got %v, want refused", what, err)
		}
	}

	flow, q = begin()
	if _, err := o.Finish(t.Context(), flow, q.Get("state"), q.Get("code")); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Finish(t.Context(), flow, q.Get("state"), q.Get("code")); !errors.As(err, new(*Refused)) {
		t.Errorf("the same code again: got %v, want refused", err)
	}

	secretless := newOIDC(t, idp, func(c *OIDCConfig) { c.ClientSecret = "wrong" })
	if _, err := signIn(t, secretless); !errors.As(err, new(*Refused)) ||
		!strings.Contains(err.Error(), "invalid_client") {
		t.Errorf("a wrong secret: got %v", err)
	}
}

// TestOIDCProviderIsDown takes the provider down for a while: sign-ins fail during the outage and
// work after it.
func TestOIDCProviderIsDown(t *testing.T) {
	t.Parallel()
	idp := testidp.Start(t)
	idp.Claims["groups"] = "admins"
	idp.Wrong.Down = true
	o := newOIDC(t, idp, nil)
	if _, _, err := o.Begin(t.Context()); !errors.As(err, new(*ProviderError)) {
		t.Fatalf("got %v, want that the provider is away", err)
	}

	idp.Lock()
	idp.Wrong.Down = false
	idp.Unlock()
	if _, err := signIn(t, o); err != nil {
		t.Error(err)
	}

	idp.Lock()
	asked := len(idp.Asked)
	idp.Unlock()
	if _, err := signIn(t, o); err != nil {
		t.Error(err)
	}

	idp.Lock()
	defer idp.Unlock()
	if again := idp.Asked[asked:]; strings.Join(again, " ") != "/authorize /token" {
		t.Errorf("the second sign-in asks for %v; what was discovered is known", again)
	}
}

// TestOIDCTime checks that MySQL's clock counts, as the node's may be wrong.
func TestOIDCTime(t *testing.T) {
	t.Parallel()
	idp := testidp.Start(t)
	idp.Claims["groups"] = "admins"
	idp.Now = func() time.Time { return time.Now().Add(-6 * time.Hour) }
	if _, err := signIn(t, newOIDC(t, idp, nil)); !errors.As(err, new(*Refused)) {
		t.Errorf("by a clock that is 6 hours off: got %v, want refused", err)
	}
	if _, err := signIn(t, newOIDC(t, idp, func(c *OIDCConfig) { c.Now = idp.Now })); err != nil {
		t.Errorf("by MySQL's clock: %v", err)
	}

	// Before the first reading of MySQL's clock, expiry cannot be checked.
	var now time.Time
	o := newOIDC(t, idp, func(c *OIDCConfig) { c.Now = func() time.Time { return now } })
	target, flow, err := o.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	q := consent(t, target)
	if _, err := o.Finish(t.Context(), flow, q.Get("state"), q.Get("code")); !errors.Is(err, ErrNoClock) {
		t.Errorf("without a clock: got %v, want %v", err, ErrNoClock)
	}

	now = idp.Now()
	if _, err := o.Finish(t.Context(), flow, q.Get("state"), q.Get("code")); err != nil {
		t.Errorf("the same code a moment later: %v", err)
	}
}

func TestOIDCSettings(t *testing.T) {
	t.Parallel()
	good := OIDCConfig{
		Issuer: "https://login.example.com/realm", ClientID: "x", PublicURL: "https://cron.example.com/",
		Roles: RoleMap{"a": {{Role: Viewer}}},
	}

	if _, err := NewOIDC(good); err != nil {
		t.Fatal(err)
	}
	for want, mod := range map[string]func(*OIDCConfig){
		"issuer: is missing":          func(c *OIDCConfig) { c.Issuer = "" },
		"issuer: \"http://login.ex":   func(c *OIDCConfig) { c.Issuer = "http://login.example.com" },
		"issuer: \"login.example":     func(c *OIDCConfig) { c.Issuer = "login.example.com" },
		"issuer: \"ftp://127.0.0.1":   func(c *OIDCConfig) { c.Issuer = "ftp://127.0.0.1" },
		"issuer: \"https://u:p@login": func(c *OIDCConfig) { c.Issuer = "https://u:p@login.example.com" },
		"public URL: is missing":      func(c *OIDCConfig) { c.PublicURL = "" },
		"public URL: \"http://cron":   func(c *OIDCConfig) { c.PublicURL = "http://cron.example.com" },
		"has a path":                  func(c *OIDCConfig) { c.PublicURL = "https://cron.example.com/x" },
		"client id: is missing":       func(c *OIDCConfig) { c.ClientID = "" },
		"roles: no group":             func(c *OIDCConfig) { c.Roles = nil },
	} {
		c := good
		mod(&c)
		if _, err := NewOIDC(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
