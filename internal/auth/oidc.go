package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// OIDCConfig is the configuration of sign-ins by an OpenID Connect provider.
type OIDCConfig struct {
	Issuer       string // its URL; all other URLs are discovered from it
	ClientID     string
	ClientSecret string   // "" for a public client; PKCE is always used
	PublicURL    string   // of the cluster for browsers, such as https://cron.example.com
	Scopes       []string // besides openid, profile and email
	GroupsClaim  string   // claim with the groups, default groups; a.b means the member b of the object a
	// The claim with the person's name. Default: a verified email address; otherwise
	// preferred_username or sub, with the issuer's host.
	NameClaim string
	Roles     RoleMap
	Now       func() time.Time // MySQL's clock
	Recheck   time.Duration    // period between checks of a login; zero: DefaultRecheck
}

// DefaultRecheck is the period after which the provider is asked again about a login.
const DefaultRecheck = time.Hour

// OIDC is the client of a provider. It uses the authorization code flow with PKCE, state and nonce.
// It is safe for concurrent use.
type OIDC struct {
	cfg  OIDCConfig
	host string // of the issuer
	http *http.Client

	mu       sync.Mutex
	provider *oidc.Provider // nil until it was discovered
}

// callbackPath is the path that the provider sends browsers back to.
const callbackPath = "/api/v1/login/oidc/callback"

const (
	defaultGroups   = "groups"
	providerTimeout = 10 * time.Second // of each request to the provider
)

// NewOIDC checks a configuration. It does not connect, so that a node starts even if the provider
// is down.
func NewOIDC(cfg OIDCConfig) (*OIDC, error) {
	issuer, err := secureURL(cfg.Issuer)
	if err != nil {
		return nil, fmt.Errorf("issuer: %w", err)
	}

	public, err := secureURL(cfg.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("public URL: %w", err)
	}
	if strings.Trim(public.Path, "/") != "" || public.RawQuery != "" {
		return nil, fmt.Errorf("public URL: %q has a path; want a URL without one, such as https://cron.example.com",
			cfg.PublicURL)
	}
	if cfg.ClientID == "" {
		return nil, errors.New("client id: is missing; register go-crontab with the identity provider to get one")
	}

	if len(cfg.Roles) == 0 {
		return nil, errors.New(
			"roles: no group has a role, so no one could sign in; want such as admins=admin,devs=operator:app1|app2")
	}

	if cfg.GroupsClaim == "" {
		cfg.GroupsClaim = defaultGroups
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Recheck == 0 {
		cfg.Recheck = DefaultRecheck
	}

	cfg.PublicURL = strings.TrimRight(cfg.PublicURL, "/")
	return &OIDC{cfg: cfg, host: issuer.Hostname(), http: &http.Client{Timeout: providerTimeout}}, nil
}

// secureURL parses a URL. The URL must be https, or lead to this machine.
func secureURL(s string) (*url.URL, error) {
	if s == "" {
		return nil, errors.New("is missing")
	}

	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("%q: want a URL such as https://login.example.com", s)
	}

	a, _ := netip.ParseAddr(u.Hostname())
	if local := u.Hostname() == "localhost" ||
		a.Unmap().IsLoopback(); u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return nil, fmt.Errorf("%q: want https or a loopback address", s)
	}

	return u, nil
}

// ProviderError is the error when the provider is out of reach or does not follow the protocol.
type ProviderError struct{ Err error }

func (p *ProviderError) Error() string { return "identity provider: " + p.Err.Error() }
func (p *ProviderError) Unwrap() error { return p.Err }

// ErrNoClock means that MySQL's clock was not read yet, so the expiry of a provider's tokens cannot
// be checked.
var ErrNoClock = errors.New("MySQL's clock has not been read yet")

// Origin returns the URL of the cluster for browsers. The provider sends browsers back only to this
// URL.
func (o *OIDC) Origin() string { return o.cfg.PublicURL }

// Reach asks the provider for its settings, as the first sign-in does. An error means that nobody
// can sign in.
func (o *OIDC) Reach(ctx context.Context) error {
	_, err := oidc.NewProvider(oidc.ClientContext(ctx, o.http), o.cfg.Issuer)
	return err
}

// Discovered reports whether Begin works without asking the provider.
func (o *OIDC) Discovered() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.provider != nil
}

// Begin returns the URL to which the browser must go, and the flow. The flow has secrets that the
// page keeps until the provider sends the browser back.
func (o *OIDC) Begin(ctx context.Context) (target, flow string, err error) {
	client, _, err := o.client(ctx)
	if err != nil {
		return "", "", err
	}
	f := flowSecrets{state: rand.Text(), nonce: rand.Text(), verifier: oauth2.GenerateVerifier()}
	return client.AuthCodeURL(f.state, oidc.Nonce(f.nonce), oauth2.S256ChallengeOption(f.verifier)), f.String(), nil
}

// flowSecrets are known only to the page that began a sign-in.
type flowSecrets struct{ state, nonce, verifier string }

func (f flowSecrets) String() string { return f.state + "." + f.nonce + "." + f.verifier }

func parseFlow(s string) (f flowSecrets, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return f, false
	}
	return flowSecrets{parts[0], parts[1], parts[2]}, true
}

// CheckFlow checks the return of a browser from the provider. It refuses the return if the state
// does not match the flow that the page kept.
func CheckFlow(flow, state string) error {
	if f, ok := parseFlow(flow); !ok || !equal(f.state, state) {
		return &Refused{Why: "the sign-in was started in another browser or too long ago; start again"}
	}
	return nil
}

// Finish exchanges the provider's code for a principal. flow is the flow that Begin returned. The
// error Refused means that this person cannot sign in. ProviderError means that the provider did
// not work. ErrNoClock means that the node has not read MySQL's clock yet.
func (o *OIDC) Finish(ctx context.Context, flow, state, code string) (*Principal, error) {
	if err := CheckFlow(flow, state); err != nil {
		return nil, err
	}

	f, _ := parseFlow(flow)
	if code == "" {
		return nil, &Refused{Why: "the identity provider returned no code"}
	}
	if o.cfg.Now().IsZero() {
		return nil, ErrNoClock
	}

	client, provider, err := o.client(ctx)
	if err != nil {
		return nil, err
	}

	// The code becomes an ID token.
	ctx = oidc.ClientContext(ctx, o.http)
	token, err := client.Exchange(ctx, code, oauth2.VerifierOption(f.verifier))
	if refused := (*oauth2.RetrieveError)(nil); errors.As(err, &refused) && refused.Response.StatusCode < 500 {
		return nil, &Refused{
			Why: fmt.Sprintf("the identity provider refused the code: %s",
				firstOf(refused.ErrorCode, refused.Response.Status)),
		}
	}
	if err != nil {
		return nil, &ProviderError{err}
	}

	// The ID token must be for this client and for this sign-in.
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, &ProviderError{errors.New("it sent no ID token; add openid to the scopes")}
	}

	verified, err := provider.Verifier(&oidc.Config{ClientID: o.cfg.ClientID, Now: o.cfg.Now}).Verify(ctx, raw)
	if err != nil {
		return nil, &Refused{Why: fmt.Sprintf("the identity provider's ID token is not valid: %v", err)}
	}
	if !equal(verified.Nonce, f.nonce) {
		return nil, &Refused{Why: "the identity provider's ID token belongs to another sign-in"}
	}

	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		return nil, &ProviderError{err}
	}

	// If a token is for several applications, azp names the application that asked for it.
	if azp, present := claims["azp"]; present && azp != o.cfg.ClientID {
		return nil, &Refused{Why: "the identity provider's ID token was issued for another application"}
	}

	// The groups decide the grants.
	groups, _, err := o.groupsOf(ctx, provider, token, claims, verified.Subject)
	if err != nil {
		return nil, err
	}

	p := &Principal{Name: o.nameOf(claims, verified.Subject), Kind: KindOIDC, Grants: o.cfg.Roles.grants(groups)}
	if len(p.Grants) == 0 {
		return nil, &Refused{Name: p.Name, Why: fmt.Sprintf("%s is in no group that has a role here", p.Name)}
	}
	if token.RefreshToken != "" {
		p.Renewal = &Renewal{Subject: verified.Subject, Refresh: token.RefreshToken, Within: o.within(token)}
	}

	return p, nil
}

// groupsOf returns a person's groups, from the claims of the ID token or, if these have none, from
// the provider's user info. there is false if neither has the claim of groups.
func (o *OIDC) groupsOf(
	ctx context.Context, provider *oidc.Provider, token *oauth2.Token, claims map[string]any, subject string,
) (groups []string, there bool, err error) {
	groups, there = textsAt(claims, o.cfg.GroupsClaim)
	if there || provider.UserInfoEndpoint() == "" {
		return groups, there, nil
	}

	info, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return nil, false, &ProviderError{err}
	}
	if info.Subject != subject {
		return nil, false, &Refused{Why: "the identity provider returned another person"}
	}

	var userClaims map[string]any
	if err := info.Claims(&userClaims); err != nil {
		return nil, false, &ProviderError{err}
	}

	groups, there = textsAt(userClaims, o.cfg.GroupsClaim)
	return groups, there, nil
}

// within returns the time until the next check: the period, or half the life of the refresh token
// if that is shorter. Many providers say how long a refresh token lives, and end a session that is
// not renewed in time.
func (o *OIDC) within(token *oauth2.Token) time.Duration {
	seconds, _ := token.Extra("refresh_expires_in").(float64)
	if seconds <= 0 || seconds > time.Hour.Seconds()*24*365 {
		return o.cfg.Recheck
	}
	half := time.Duration(seconds * float64(time.Second) / 2)
	return min(o.cfg.Recheck, max(half, leastRecheck))
}

// leastRecheck is the shortest time between two checks of a login, so that a node does not ask the
// provider all the time.
const leastRecheck = 10 * time.Second

// Vouched is the provider's answer to a check.
type Vouched struct {
	Grants  []Grant
	Known   bool     // false: the person may still sign in, but the provider did not say the groups
	Renewal *Renewal // for the next check
}

// Renew asks the provider again about a person. If the provider no longer accepts the person, or
// names no group that has a role here, the error is Refused.
func (o *OIDC) Renew(ctx context.Context, r *Renewal) (*Vouched, error) {
	client, provider, err := o.client(ctx)
	if err != nil {
		return nil, err
	}

	ctx = oidc.ClientContext(ctx, o.http)
	token, err := client.TokenSource(ctx, &oauth2.Token{RefreshToken: r.Refresh}).Token()
	if refused := (*oauth2.RetrieveError)(nil); errors.As(err, &refused) && refused.ErrorCode == "invalid_grant" {
		return nil, &Refused{Why: "the identity provider no longer confirms the sign-in: invalid_grant"}
	}
	if err != nil {
		return nil, &ProviderError{err} // also if our own settings are wrong, because they must not sign the person out
	}

	var claims map[string]any
	raw, _ := token.Extra("id_token").(string)
	if raw != "" { // a provider need not send a new one
		verified, err := provider.Verifier(&oidc.Config{ClientID: o.cfg.ClientID, Now: o.cfg.Now}).Verify(ctx, raw)
		if err != nil {
			return nil, &ProviderError{err}
		}
		if verified.Subject != r.Subject {
			return nil, &Refused{Why: "the identity provider returned another person"}
		}
		if err := verified.Claims(&claims); err != nil {
			return nil, &ProviderError{err}
		}
	}

	groups, there, err := o.groupsOf(ctx, provider, token, claims, r.Subject)
	if err != nil {
		return nil, err
	}

	// As at the sign-in, an ID token without the claim means that the person has no groups. If
	// there is no ID token, and no claim in the user info, the groups are not known.
	v := &Vouched{
		Known: there || raw != "", Grants: o.cfg.Roles.grants(groups),
		Renewal: &Renewal{Subject: r.Subject, Refresh: firstOf(token.RefreshToken, r.Refresh), Within: o.within(token)},
	}
	if v.Known && len(v.Grants) == 0 {
		return nil, &Refused{Why: "the person is no longer in a group that has a role here"}
	}

	return v, nil
}

// client returns the client of the provider. Its first successful call discovers the provider's
// settings.
func (o *OIDC) client(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	o.mu.Lock()
	provider := o.provider
	o.mu.Unlock()
	if provider == nil { // several calls may discover at once, so that no call waits for another that hangs
		found, err := oidc.NewProvider(oidc.ClientContext(ctx, o.http), o.cfg.Issuer)
		if err != nil {
			return nil, nil, &ProviderError{err}
		}
		o.mu.Lock()
		o.provider = found
		o.mu.Unlock()
		provider = found
	}

	return &oauth2.Config{
		ClientID: o.cfg.ClientID, ClientSecret: o.cfg.ClientSecret, Endpoint: provider.Endpoint(),
		RedirectURL: o.cfg.PublicURL + callbackPath,
		Scopes:      append([]string{oidc.ScopeOpenID, "profile", "email"}, o.cfg.Scopes...),
	}, provider, nil
}

// nameOf returns a person's name for audit lines. It always contains an @; token names never do.
// The name stands alone only if it is an email address that the provider has verified, or if the
// settings choose the claim (NameClaim). Otherwise a person could enter somebody else's address.
// Any other name gets "@" and the issuer's host appended, even if it looks like an address.
func (o *OIDC) nameOf(claims map[string]any, subject string) string {
	text := func(claim string) string { s, _ := claims[claim].(string); return s }
	name, vouched := subject, false
	switch verified := claims["email_verified"]; {
	case o.cfg.NameClaim != "":
		if s := text(o.cfg.NameClaim); s != "" {
			name, vouched = s, true
		}
	case text("email") != "" && (verified == true || verified == "true"):
		name, vouched = text("email"), true
	case text("preferred_username") != "":
		name = text("preferred_username")
	}

	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return unicode.ReplacementChar
		}
		return r
	}, name)

	if r := []rune(name); len(r) > maxName {
		name = string(r[:maxName])
	}
	if !vouched || !strings.Contains(name, "@") {
		name += "@" + o.host
	}
	return name
}

// textsAt returns the texts of a claim, which is a list or a single text. path is the name of the
// claim. If there is no such claim, the dots in path lead into objects.
func textsAt(claims map[string]any, path string) (texts []string, there bool) {
	v, there := claims[path]
	if !there {
		head, rest, nested := strings.Cut(path, ".")
		if inner, ok := claims[head].(map[string]any); ok && nested {
			return textsAt(inner, rest)
		}
		return nil, false
	}

	switch v := v.(type) {
	case string:
		return []string{v}, true
	case []any:
		for _, item := range v {
			if s, ok := item.(string); ok {
				texts = append(texts, s)
			}
		}
	}

	return texts, true
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}
