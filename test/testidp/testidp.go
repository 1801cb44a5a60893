// Package testidp gives tests an OpenID Connect provider: a real server that speaks the
// authorization code flow with PKCE and signs its tokens. It consents at once, for the person
// described by its Claims, and can be told to misbehave.
package testidp

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// The client that the provider knows.
const (
	ClientID     = "go-crontab"
	ClientSecret = "s3cret &+/ ü" // needs encoding, as real ones do
)

// Provider is a running provider. Hold Lock to change its fields.
type Provider struct {
	sync.Mutex
	URL      string
	Claims   map[string]any // of the ID token
	UserInfo map[string]any // nil: no such endpoint
	Wrong    Wrong
	Refresh  Refresh
	Now      func() time.Time

	key, other *rsa.PrivateKey
	codes      map[string]grant
	refreshes  map[string]bool // valid refresh tokens
	Asked      []string        // requested paths, in order
}

// Wrong selects misbehaviour.
type Wrong struct {
	Key, Nonce, Audience, Party, Issuer, Expired, NotSigned, NoIDToken, Down, Denied bool
}

// Refresh says whether the provider issues refresh tokens, and how it answers them.
type Refresh struct {
	Gives     bool // a refresh token with each ID token
	Once      bool // each is valid only once
	NoIDToken bool // the answer has no ID token
	Within    int  // lifetime of a refresh token in seconds, as stated in the answer; zero: not stated
	Revoked   bool // all refresh tokens are revoked
}

// grant is the meaning of a code.
type grant struct {
	redirect, challenge, nonce string
}

// Start runs a provider until the end of the test.
func Start(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{Claims: map[string]any{"sub": "4711"}, codes: map[string]grant{}, refreshes: map[string]bool{},
		Now: time.Now}

	for _, key := range []**rsa.PrivateKey{&p.key, &p.other} {
		var err error
		if *key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			t.Fatal(err)
		}
	}

	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// ServeHTTP answers a request.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.Lock()
	defer p.Unlock()

	p.Asked = append(p.Asked, r.URL.Path)
	if p.Wrong.Down {
		http.Error(w, "down", http.StatusInternalServerError)
		return
	}

	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		p.discovery(w)
	case "/keys":
		key := jose.JSONWebKey{Key: p.key.Public(), KeyID: "k1", Algorithm: "RS256", Use: "sig"}
		write(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key}})
	case "/authorize":
		p.authorize(w, r)
	case "/token":
		p.token(w, r)
	case "/userinfo":
		if p.UserInfo == nil || r.Header.Get("Authorization") != "Bearer access" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		write(w, http.StatusOK, p.UserInfo)
	default:
		http.NotFound(w, r)
	}
}

func (p *Provider) discovery(w http.ResponseWriter) {
	d := map[string]any{
		"issuer":                                p.URL,
		"authorization_endpoint":                p.URL + "/authorize",
		"token_endpoint":                        p.URL + "/token",
		"jwks_uri":                              p.URL + "/keys",
		"response_types_supported":              []string{"code"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"},
	}

	if p.UserInfo != nil {
		d["userinfo_endpoint"] = p.URL + "/userinfo"
	}

	write(w, http.StatusOK, d)
}

// authorize sends the browser back with a code.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch {
	case q.Get("client_id") != ClientID, q.Get("response_type") != "code",
		!slices.Contains(strings.Fields(q.Get("scope")), "openid"):
		http.Error(w, "not a request of the client", http.StatusBadRequest)
		return
	case q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("nonce") == "" ||
		q.Get("state") == "":
		http.Error(w, "want PKCE, a nonce and a state", http.StatusBadRequest)
		return
	}

	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		http.Error(w, "redirect_uri", http.StatusBadRequest)
		return
	}

	answer := url.Values{"state": {q.Get("state")}, "session_state": {"x.y"}}
	if p.Wrong.Denied {
		answer.Set("error", "access_denied")
	} else {
		code := rand.Text()
		p.codes[code] = grant{q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("nonce")}
		answer.Set("code", code)
	}

	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// token exchanges a code, once, for a client that has its verifier.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "form", http.StatusBadRequest)
		return
	}

	id, secret, basic := r.BasicAuth()
	if basic {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}

	if id != ClientID || subtle.ConstantTimeCompare([]byte(secret), []byte(ClientSecret)) != 1 {
		write(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	if r.PostForm.Get("grant_type") == "refresh_token" {
		p.refresh(w, r.PostForm.Get("refresh_token"))
		return
	}

	code := r.PostForm.Get("code")
	g, there := p.codes[code]
	delete(p.codes, code)

	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	if !there || g.redirect != r.PostForm.Get("redirect_uri") ||
		g.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
		write(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}

	answer := map[string]any{"access_token": "access", "token_type": "Bearer", "expires_in": 60}
	if !p.Wrong.NoIDToken {
		answer["id_token"] = p.sign(g.nonce)
	}
	if p.Refresh.Gives {
		p.giveRefresh(answer)
	}

	write(w, http.StatusOK, answer)
}

func (p *Provider) giveRefresh(answer map[string]any) {
	token := "refresh-" + rand.Text()
	p.refreshes[token] = true
	answer["refresh_token"] = token
	if p.Refresh.Within > 0 {
		answer["refresh_expires_in"] = p.Refresh.Within
	}
}

// refresh answers a refresh token with the person's current claims.
func (p *Provider) refresh(w http.ResponseWriter, token string) {
	if p.Refresh.Revoked || !p.refreshes[token] {
		write(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}

	answer := map[string]any{"access_token": "access", "token_type": "Bearer", "expires_in": 60}
	if !p.Refresh.NoIDToken {
		answer["id_token"] = p.sign("")
	}
	if p.Refresh.Once {
		delete(p.refreshes, token)
		p.giveRefresh(answer)
	}

	write(w, http.StatusOK, answer)
}

// sign makes an ID token.
func (p *Provider) sign(nonce string) string {
	now := p.Now()
	claims := map[string]any{"iss": p.URL, "aud": ClientID, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
		"nonce": nonce}
	maps.Copy(claims, p.Claims)
	if p.Wrong.Nonce {
		claims["nonce"] = "another"
	}
	if p.Wrong.Audience {
		claims["aud"] = "another"
	}

	if p.Wrong.Party {
		claims["aud"], claims["azp"] = []string{ClientID, "another"}, "another"
	}
	if p.Wrong.Issuer {
		claims["iss"] = "http://127.0.0.1:1"
	}
	if p.Wrong.Expired {
		claims["exp"] = now.Add(-time.Hour).Unix()
	}

	if p.Wrong.NotSigned {
		body, _ := json.Marshal(claims)
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
			base64.RawURLEncoding.EncodeToString(body) + "."
	}

	key := p.key
	if p.Wrong.Key {
		key = p.other
	}

	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "k1"}},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return err.Error()
	}

	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		return err.Error()
	}

	return text
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
