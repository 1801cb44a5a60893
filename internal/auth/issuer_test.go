package auth

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/test/faultproxy"
)

func TestBootstrapOnce(t *testing.T) {
	p := setUp(t)
	var (
		wait   sync.WaitGroup
		mu     sync.Mutex
		tokens []string
	)
	for range 8 {
		wait.Go(func() {
			token, err := p.Bootstrap(p.Context(), false)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if token != "" {
				tokens = append(tokens, token)
			}
		})
	}

	wait.Wait()
	if len(tokens) != 1 {
		t.Fatalf("8 at once: got %d tokens, want 1", len(tokens))
	}

	g := p.gate()
	who, err := g.ByToken(p.Context(), tokens[0], "a", true, time.Now())
	if err != nil || !who.May(Admin) || who.Expires != 0 {
		t.Errorf("got %+v, %v; want an admin for good", who, err)
	}
	if err := p.Revoke(p.Context(), who.Token); err != nil {
		t.Fatal(err)
	}
	if token, err := p.Bootstrap(p.Context(), false); err != nil || token != "" {
		t.Errorf("after the first was revoked: got %q, %v; want none", token, err)
	}

	first, err := p.Bootstrap(p.Context(), true)
	if err != nil || first == "" {
		t.Fatalf("again: got %q, %v", first, err)
	}

	second, err := p.Bootstrap(p.Context(), true)
	if err != nil || second == first {
		t.Fatalf("again: got %q, %v", second, err)
	}

	for token, want := range map[string]bool{tokens[0]: false, first: false, second: true, "": false, "x": false} {
		if living, err := p.Living(p.Context(), token); err != nil || living != want {
			t.Errorf("%.20s lives: got %v, %v, want %v", token, living, err, want)
		}
	}

	if n := p.number("SELECT COUNT(*) FROM audit WHERE kind = 'token'"); n != 5 {
		t.Errorf("got %d lines of the audit, want 3 makings and 2 revocations", n)
	}
}

func TestCreateChecks(t *testing.T) {
	p := setUp(t)
	p.token("taken", Viewer)
	if _, _, err := p.Create(p.Context(), Spec{Name: "taken", Grant: Grant{Role: Viewer}}); !errors.Is(err,
		sql.ErrExists) {
		t.Errorf("a name that is taken: got %v", err)
	}

	many := make([]string, MaxApps+1)
	for i := range many {
		many[i] = fmt.Sprint("app", i)
	}

	for want, s := range map[string]Spec{
		"name: is empty":            {Grant: Grant{Role: Viewer}},
		"name: \"a@b\"":             {Name: "a@b", Grant: Grant{Role: Viewer}},
		"role: is missing":          {Name: "a"},
		"apps: are an empty list":   {Name: "a", Grant: Grant{Viewer, []string{}}},
		"apps: are 101":             {Name: "a", Grant: Grant{Viewer, many}},
		"apps: contain an empty":    {Name: "a", Grant: Grant{Viewer, []string{""}}},
		"apps: contain \"x\" twice": {Name: "a", Grant: Grant{Viewer, []string{"x", "x"}}},
		"expires: is in the past":   {Name: "a", Grant: Grant{Role: Viewer}, Expires: 1},
	} {
		_, token, err := p.Create(p.Context(), s)
		if problems := (job.Problems)(nil); !errors.As(err, &problems) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %.12s, want %s", err, token, want)
		}
	}

	if n := p.number("SELECT COUNT(*) FROM api_token"); n != 1 {
		t.Errorf("got %d tokens, want the one that was right", n)
	}
	if err := p.Revoke(p.Context(), 4711); !errors.Is(err, sql.ErrNotFound) {
		t.Errorf("revoking one that there is not: got %v", err)
	}
}

// TestUnknownCommit loses the reply to COMMIT. The outcome must be known all the same: one living
// token.
func TestUnknownCommit(t *testing.T) {
	for name, action := range map[string]faultproxy.Action{"COMMIT never arrives": faultproxy.CutBefore(),
		"its reply is lost": faultproxy.CutAfter()} {
		t.Run(name, func(t *testing.T) {
			p := setUp(t)
			p.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("INSERT INTO api_token"), Action: action})
			row, token := p.token("ci", Admin)
			if living, err := p.Living(p.Context(), token); err != nil || !living {
				t.Errorf("the token lives: got %v, %v", living, err)
			}

			p.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("UPDATE api_token"), Action: action})
			if err := p.Revoke(p.from("a"), row.ID); err != nil {
				t.Error(err)
			}
			if living, err := p.Living(p.Context(), token); err != nil || living {
				t.Errorf("it was revoked, and lives: got %v, %v", living, err)
			}

			if tokens, lines := p.number("SELECT COUNT(*) FROM api_token"),
				p.number("SELECT COUNT(*) FROM audit WHERE who = 'root' AND action <> 'void'"); tokens != 1 ||
				lines != 2 {
				t.Errorf("got %d tokens and %d lines of the audit, want 1 and 2", tokens, lines)
			}
		})
	}
}

func TestSignIn(t *testing.T) {
	p := setUp(t)
	row, token := p.token("alice", Operator, "billing")
	g, other, ctx, now := p.gate(), p.gate(), p.from("10.0.0.1"), time.Now()
	holder, err := g.ByToken(ctx, token, "10.0.0.1", true, now)
	if err != nil {
		t.Fatal(err)
	}

	secret, expires, err := p.SignIn(ctx, holder, 12*time.Hour)
	if err != nil || expires != row.Expires {
		t.Fatalf("got %v, %v; want it to end with its token, at %s", expires, err, row.Expires)
	}

	who, err := other.ByLogin(ctx, secret, "10.0.0.1", true, now)
	if err != nil || who.Name != "alice" || who.Login == 0 || who.Token != row.ID || !who.MayIn(Operator, "billing") ||
		who.May(Viewer) {
		t.Fatalf("on another node: got %+v, %v", who, err)
	}

	if _, err := g.ByToken(ctx, secret.Cookie, "10.0.0.1", true, now); err == nil {
		t.Error("a cookie is taken for a token")
	}

	for what, wrong := range map[string]Login{
		"a token": {token, token}, "the cookie alone": {Cookie: secret.Cookie}, "the key alone": {Key: secret.Key},
		"the cookie with another key": {secret.Cookie, newLogin().Key},
		"the key with another cookie": {newLogin().Cookie, secret.Key},
		"both the other way round":    {secret.Key, secret.Cookie},
	} {
		_, err := g.ByLogin(ctx, wrong, "10.0.0.1", true, now)
		p.refusal(what, err)
	}

	if err := p.SignOut(With(ctx, who), who); err != nil {
		t.Fatal(err)
	}
	if err := p.SignOut(With(ctx, who), who); err != nil {
		t.Errorf("again: %v", err)
	}

	_, err = other.ByLogin(ctx, secret, "10.0.0.1", true, now)
	p.refusal("after signing out", err)

	secret, _, err = p.SignIn(ctx, holder, 12*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Revoke(ctx, row.ID); err != nil {
		t.Fatal(err)
	}

	_, err = other.ByLogin(ctx, secret, "10.0.0.1", true, now)
	p.refusal("after its token was revoked", err)
	if secret, _, err = p.SignIn(ctx, holder, time.Hour); err != nil { // the holder was just looked up
		t.Fatal(err)
	}

	_, err = other.ByLogin(ctx, secret, "10.0.0.1", true, now)
	p.refusal("with a token that was revoked meanwhile", err)

	vouched := &Principal{
		Name: "bob@example.com", Kind: KindOIDC, Grants: []Grant{{Viewer, nil}, {Operator, []string{"x"}}},
	}
	secret, expires, err = p.SignIn(ctx, vouched, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	if who, err = g.ByLogin(ctx, secret, "a", true, now); err != nil || who.Kind != KindOIDC || !who.May(Viewer) ||
		!who.MayIn(Operator, "x") || who.May(Operator) || who.Expires != expires {
		t.Errorf("by a provider: got %+v, %v", who, err)
	}

	p.exec("UPDATE login SET expires = 5 WHERE id = ?", who.Login)
	_, err = g.ByLogin(ctx, secret, "a", true, now)
	p.refusal("after its end", err)
	if n := p.number("SELECT COUNT(*) FROM audit WHERE kind = 'login' AND action = 'sign_in'"); n < 3 {
		t.Errorf("got %d lines of the audit, want one for each sign-in", n)
	}
}

// TestLoginsAreBounded checks that neither one person's logins nor expired ones fill the table.
func TestLoginsAreBounded(t *testing.T) {
	p := setUp(t)
	one, two := &Principal{Name: "one@x", Kind: KindOIDC, Grants: []Grant{{Role: Viewer}}}, &Principal{
		Name: "two@x", Kind: KindOIDC, Grants: []Grant{{Role: Viewer}},
	}
	var first, last Login
	for i := range maxLogins + 20 {
		secret, _, err := p.SignIn(p.from("a"), one, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = secret
		}
		last = secret
	}

	if _, _, err := p.SignIn(p.from("a"), two, time.Hour); err != nil {
		t.Fatal(err)
	}
	if n := p.number("SELECT COUNT(*) FROM login WHERE who = 'one@x'"); n != maxLogins {
		t.Errorf("got %d logins of one, want %d", n, maxLogins)
	}

	g := p.gate()
	if _, err := g.ByLogin(p.Context(), last, "a", true, time.Now()); err != nil {
		t.Errorf("the last login: %v", err)
	}
	if _, err := g.ByLogin(p.Context(), first, "a", true, time.Now()); err == nil {
		t.Error("the first login still holds")
	}

	p.exec("UPDATE login SET expires = 1")
	if _, _, err := p.SignIn(p.from("a"), two, time.Hour); err != nil {
		t.Fatal(err)
	}
	if n := p.number("SELECT COUNT(*) FROM login"); n != 1 {
		t.Errorf("after all but one expired: got %d logins, want 1", n)
	}
}
