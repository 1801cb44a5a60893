package auth

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/test/testidp"
)

// plainSealer is a sealer that does not encrypt. It refuses to open data that was sealed about
// something different.
type plainSealer struct{ id string }

func (s plainSealer) Seal(about string, text []byte) (string, []byte, error) {
	sealed := []byte(about + "\x00" + string(text))
	slices.Reverse(sealed)
	return s.id, sealed, nil
}

func (s plainSealer) Open(about, id string, sealed []byte) ([]byte, error) {
	text := slices.Clone(sealed)
	slices.Reverse(text)
	rest, ok := bytes.CutPrefix(text, []byte(about+"\x00"))
	if !ok || id != s.id {
		return nil, fmt.Errorf("does not open with %s", s.id)
	}
	return rest, nil
}

// checking is a person who signed in by a provider, and the Checker.
type checking struct {
	*place
	idp   *testidp.Provider
	oidc  *OIDC
	gate  *Gate
	login Login
	check *Checker
	now   job.Micros
	logs  *bytes.Buffer
}

// setUpChecks signs in a person of group devs. mod may change the provider first.
func setUpChecks(t *testing.T, mod func(*testidp.Provider)) *checking {
	t.Helper()
	c := &checking{place: setUp(t), idp: testidp.Start(t), logs: new(bytes.Buffer)}
	c.idp.Claims["groups"], c.idp.Refresh.Gives = "devs", true
	if mod != nil {
		mod(c.idp)
	}

	keys := plainSealer{"k1"}
	c.oidc = newOIDC(t, c.idp, nil)
	c.Issuer.Keys = keys
	c.gate = c.place.gate()
	c.check = NewChecker(CheckerConfig{
		DB: c.db, OIDC: c.oidc, Keys: keys, Log: slog.New(slog.NewTextHandler(c.logs, nil)),
	})
	c.signIn()
	c.now = job.Micros(c.number("SELECT created FROM login"))
	return c
}

func (c *checking) signIn() {
	c.Helper()
	who, err := signIn(c.T, c.oidc)
	if err != nil {
		c.Fatal(err)
	}
	if c.login, _, err = c.SignIn(c.from("10.0.0.9"), who, 24*time.Hour); err != nil {
		c.Fatal(err)
	}
}

// be changes the provider's answers.
func (c *checking) be(change func(*testidp.Provider)) {
	c.idp.Lock()
	defer c.idp.Unlock()
	change(c.idp)
}

// after lets time pass and runs the due checks.
func (c *checking) after(d time.Duration) {
	c.Helper()
	c.now += micros(d)
	if err := c.check.Check(c.Context(), c.now); err != nil {
		c.Fatal(err)
	}
}

// asked returns the number of token requests that the provider has had.
func (c *checking) asked() (n int) {
	c.be(func(p *testidp.Provider) {
		for _, path := range p.Asked {
			if path == "/token" {
				n++
			}
		}
	})
	return n
}

// who returns the name of the signed-in person, "" for none.
func (c *checking) who() string {
	c.Helper()
	p, err := c.gate.ByLogin(c.Context(), c.login, "10.0.0.9", true, time.Now())
	if err != nil {
		c.refusal("signed out", err)
		return ""
	}
	return p.String()
}

const ofDevs, ofReaders = "4711@127.0.0.1 (operator of billing, ops)", "4711@127.0.0.1 (viewer)"

// TestGroupsAreCheckedAgain checks that the provider is asked once an hour about a login, and not
// more often.
func TestGroupsAreCheckedAgain(t *testing.T) {
	c := setUpChecks(t, nil)
	c.after(59 * time.Minute)
	if n := c.asked(); n != 1 {
		t.Errorf("within the hour: the provider was asked %d times, want at the sign-in alone", n)
	}

	c.after(2 * time.Minute)
	c.after(time.Minute)
	if n, who := c.asked(), c.who(); n != 2 || who != ofDevs {
		t.Errorf("after an hour: asked %d times, and it is %q", n, who)
	}
	if n := c.number("SELECT COUNT(*) FROM audit WHERE kind = 'login' AND action <> 'sign_in'"); n != 0 {
		t.Errorf("a check that changes nothing left %d lines in the audit", n)
	}

	c.be(func(p *testidp.Provider) { p.Claims["groups"] = "readers" })
	c.after(time.Hour)
	if who := c.who(); who != ofReaders {
		t.Errorf("in another group: got %q, want %q", who, ofReaders)
	}

	if n := c.number(
		`SELECT COUNT(*)
		FROM audit
		WHERE kind = 'login' AND action = 'update' AND who = ? AND name = '4711@127.0.0.1'
		AND was LIKE '%operator%' AND became LIKE '%viewer%'`, job.Itself); n != 1 {
		t.Errorf("got %d lines of the audit about the role, want 1", n)
	}

	c.be(func(p *testidp.Provider) { p.Claims["groups"] = []string{"others"} })
	c.after(time.Hour)
	if who := c.who(); who != "" {
		t.Errorf("in no group: it is still %q", who)
	}

	if n := c.number(
		`SELECT COUNT(*)
		FROM audit
		WHERE kind = 'login' AND action = 'revoke' AND who = ? AND reason LIKE '%no longer in a group%'`, job.Itself); n != 1 {
		t.Errorf("got %d lines of the audit about the end, want 1", n)
	}
}

// TestEndAtTheProvider checks that a person whose account is closed there is signed out here.
func TestEndAtTheProvider(t *testing.T) {
	c := setUpChecks(t, nil)
	c.be(func(p *testidp.Provider) { p.Refresh.Revoked = true })
	c.after(time.Hour)
	if who := c.who(); who != "" {
		t.Errorf("it is still %q", who)
	}

	if n := c.number(
		`SELECT COUNT(*)
		FROM audit
		WHERE kind = 'login' AND action = 'revoke' AND reason LIKE '%invalid_grant%'`); n != 1 {
		t.Errorf("got %d lines of the audit about the end, want 1", n)
	}
}

// TestChecksGoOn has a provider that changes the refresh token each time and states its life.
func TestChecksGoOn(t *testing.T) {
	c := setUpChecks(t, func(p *testidp.Provider) { p.Refresh.Once, p.Refresh.Within = true, 600 })
	for range 3 {
		c.after(5 * time.Minute)
	}

	if n, who := c.asked(), c.who(); n != 4 || who != ofDevs {
		t.Errorf("asked %d times, and it is %q; want 4 times", n, who)
	}

	if n := c.number(
		"SELECT COUNT(*) FROM login WHERE INSTR(CONCAT_WS(' ', sealed, grants, who), 'refresh-') > 0"); n != 0 {
		t.Error("a refresh token can be read in the table")
	}

	if n := c.number("SELECT COUNT(*) FROM login WHERE checked = ? AND check_at = ?", int64(c.now),
		int64(c.now+micros(5*time.Minute))); n != 1 {
		t.Error("the row does not say when it was checked and will be")
	}
}

// TestWhoCannotBeChecked checks that a person keeps the role until the end of the login if the
// provider is not asked, or says nothing.
func TestWhoCannotBeChecked(t *testing.T) {
	for what, mod := range map[string]struct {
		provider func(*testidp.Provider)
		checking func(*checking)
		asked    int
	}{
		"no refresh token": {func(p *testidp.Provider) { p.Refresh.Gives = false }, nil, 1},
		"no key, so nothing is kept": {nil, func(c *checking) {
			c.exec("DELETE FROM login")
			c.Issuer.Keys = nil
			c.signIn()
		}, 2},
		"another key": {nil, func(c *checking) { c.check.Keys = plainSealer{"k2"} }, 1},
		"what was sealed with another login": {nil, func(c *checking) {
			c.exec("UPDATE login SET hash = UNHEX(SHA2('x', 256))")
			c.login = Login{}
		}, 1},
		"neither an ID token nor groups": {nil, func(c *checking) {
			c.be(func(p *testidp.Provider) { p.Refresh.NoIDToken = true })
		}, 2},
		// The client sends its secret in two ways, as it does not know which one is accepted.
		"a provider that is down": {
			nil, func(c *checking) { c.be(func(p *testidp.Provider) { p.Wrong.Down = true }) }, 3,
		},
		"an ID token that somebody else signed": {nil, func(c *checking) {
			c.be(func(p *testidp.Provider) { p.Wrong.Key = true })
		}, 2},
	} {
		t.Run(what, func(t *testing.T) {
			c := setUpChecks(t, mod.provider)
			if mod.checking != nil {
				mod.checking(c)
			}

			c.after(time.Hour + time.Second)
			if n := c.asked(); n != mod.asked {
				t.Errorf("the provider was asked %d times, want %d", n, mod.asked)
			}
			if n := c.number("SELECT COUNT(*) FROM login WHERE grants LIKE '%operator%'"); n != 1 {
				t.Errorf("got %d logins, want the one", n)
			}
			if c.login.Complete() && c.who() != ofDevs {
				t.Errorf("it is %q", c.who())
			}
		})
	}
}

// TestProviderIsBack checks that an outage of the provider is logged once, and that the due checks
// happen when it answers again.
func TestProviderIsBack(t *testing.T) {
	c := setUpChecks(t, nil)
	c.be(func(p *testidp.Provider) { p.Wrong.Down, p.Claims["groups"] = true, "others" })
	c.after(time.Hour)
	for range 5 {
		c.after(30 * time.Second)
	}

	if n := c.asked(); n > 1+2*4 {
		t.Errorf("in three minutes the provider was asked %d times", n-1)
	}
	if n := strings.Count(c.logs.String(), "does not respond"); n != 1 {
		t.Errorf("the log says it %d times: %s", n, c.logs)
	}
	if who := c.who(); who != ofDevs {
		t.Errorf("it is %q", who)
	}

	c.be(func(p *testidp.Provider) { p.Wrong.Down = false })
	c.after(time.Minute)
	if who := c.who(); who != "" {
		t.Errorf("it is still %q", who)
	}
	if !strings.Contains(c.logs.String(), "the identity provider responds again") {
		t.Errorf("the log does not say that it is back: %s", c.logs)
	}
}

// TestOneNodeChecks checks that one of several concurrent nodes asks the provider.
func TestOneNodeChecks(t *testing.T) {
	c := setUpChecks(t, func(p *testidp.Provider) { p.Refresh.Once = true })
	var nodes sync.WaitGroup
	for range 5 {
		other := *c.check
		other.DB = c.open()
		nodes.Go(func() {
			if err := other.Check(context.WithoutCancel(t.Context()), c.now+micros(time.Hour)); err != nil {
				t.Error(err)
			}
		})
	}

	nodes.Wait()
	if n, who := c.asked(), c.who(); n != 2 || who != ofDevs {
		t.Errorf("asked %d times, and it is %q; want 2 times", n, who)
	}
}
