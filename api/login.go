package api

import (
	"errors"
	"html/template"
	"net/http"
	"time"

	"go-crontab/auth"
	"go-crontab/job"
)

// meView is who asks.
type meView struct {
	Name    string       `json:"name" doc:"Who asks, as the audit says it."`
	Kind    string       `json:"kind" doc:"How that is known: by a token, or by the word of an identity provider."`
	Role    auth.Role    `json:"role" doc:"The highest role that it has anywhere."`
	Apps    []string     `json:"apps,omitempty" doc:"The only apps of which it may read anything. Absent: all of them."`
	Grants  []auth.Grant `json:"grants" doc:"Which role it has where."`
	Expires string       `json:"expires,omitempty" format:"date-time" doc:"Until when. Absent: until somebody revokes it."`
}

func viewOfMe(p *auth.Principal) meView {
	return meView{Name: p.Name, Kind: p.Kind, Role: p.Role(), Apps: p.Sees(), Grants: p.Grants, Expires: stamp(p.Expires)}
}

// me: GET /api/v1/me
func (s *Server) me(w http.ResponseWriter, r *http.Request) error {
	return answer(w, http.StatusOK, viewOfMe(auth.Of(r.Context())))
}

// waysView is how one may sign in.
type waysView struct {
	Token bool   `json:"token" doc:"By POST /api/v1/login with a token."`
	OIDC  string `json:"oidc,omitempty" doc:"Where to send a browser that is to sign in by an identity provider. Absent: there is none."`
}

// waysIn: GET /api/v1/login
func (s *Server) waysIn(w http.ResponseWriter, r *http.Request) error {
	v := waysView{Token: true}
	if s.cfg.OIDC != nil {
		v.OIDC = oidcPath
	}
	return answer(w, http.StatusOK, v)
}

// login: POST /api/v1/login. A token becomes a cookie that no script can read.
func (s *Server) login(w http.ResponseWriter, r *http.Request) error {
	body, err := readObject(r)
	if err != nil {
		return err
	}
	f, token := newFields(body), ""
	f.text("token", &token)
	if token == "" {
		f.wrong("token", "is missing; go-crontab token create makes one")
	}
	if err := f.done(); err != nil {
		return err
	}
	now := time.Now()
	p, err := s.gate.ByToken(r.Context(), token, job.ActorOf(r.Context()).Origin, true, now)
	if err != nil {
		return s.refused(r, err, now)
	}
	if err := s.pace(r, p, now); err != nil {
		return err
	}
	if p, err = s.signIn(w, r, p, s.secure(r)); err != nil {
		return err
	}
	return answer(w, http.StatusOK, viewOfMe(p))
}

// signIn makes a login and gives the browser its cookie.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request, p *auth.Principal, secure bool) (*auth.Principal, error) {
	if wait, ok := s.signIns.Take(holder(p), time.Now(), 0); !ok {
		return nil, slowDown(wait, "%s signs in too often.", p.Name)
	}
	secret, expires, err := s.issuer.SignIn(r.Context(), p, s.cfg.LoginLife)
	if err != nil {
		return nil, lookAt(err, "Sign in again; a sign-in of which nobody knows ends by itself.")
	}
	s.gate.Expect(secret)
	setCookie(w, cookieName(secure), secret, http.SameSiteStrictMode, s.cfg.LoginLife)
	signed := *p
	signed.Expires = expires
	return &signed, nil
}

// logout: POST /api/v1/logout
func (s *Server) logout(w http.ResponseWriter, r *http.Request) error {
	if err := readNothing(r); err != nil {
		return err
	}
	if err := s.issuer.SignOut(r.Context(), auth.Of(r.Context())); err != nil {
		return lookAt(err, "The same request again does no harm.")
	}
	s.gate.Forget()
	s.dropCookie(w, r)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

const (
	oidcPath = "/api/v1/login/oidc"
	// flowLife is how long somebody may take at the provider.
	flowLife = 10 * time.Minute
)

// flowCookie is the name of the cookie of a browser that is at the provider. It must come along when the provider sends
// the browser back, which is a way from another site: so it is lax, and holds nothing that is good for anything else.
func (s *Server) flowCookie(r *http.Request) string { return cookieName(s.fromProvider(r)) + "-flow" }

// fromProvider tells whether a browser on its way over the provider has TLS: that way leads to the public URL.
func (s *Server) fromProvider(r *http.Request) bool { return s.publicTLS() || s.secure(r) }

// paceStrangers bounds what somebody of whom nothing is known may have us ask a provider.
func (s *Server) paceStrangers(r *http.Request) (giveBack func(), err error) {
	giveBack, wait, ok := s.flows.Take(addressOf(r), time.Now())
	if !ok {
		return nil, slowDown(wait, "Too many sign-ins came from your address.")
	}
	return giveBack, nil
}

// noProvider is answered where there is no identity provider.
func (s *Server) noProvider(r *http.Request) error {
	if _, err := s.paceStrangers(r); err != nil {
		return err
	}
	return notFound.problem("This cluster has no identity provider; sign in with a token.")
}

// beginOIDC: GET /api/v1/login/oidc sends the browser to the provider.
func (s *Server) beginOIDC(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.OIDC == nil {
		return s.noProvider(r)
	}
	if !s.cfg.OIDC.Discovered() {
		if _, err := s.paceStrangers(r); err != nil {
			return err
		}
	}
	target, flow, err := s.cfg.OIDC.Begin(r.Context())
	if err != nil {
		return problemOfProvider(err)
	}
	setCookie(w, s.flowCookie(r), flow, http.SameSiteLaxMode, flowLife)
	http.Redirect(w, r, target, http.StatusSeeOther)
	return nil
}

// endOIDC: GET /api/v1/login/oidc/callback is where the provider sends the browser back to.
func (s *Server) endOIDC(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.OIDC == nil {
		return s.noProvider(r)
	}
	p, err := s.vouched(w, r)
	var refused *auth.Refused
	switch {
	case errors.As(err, &refused):
		s.gate.Refuse(r.Context(), refused, time.Now())
		return refusedPage(w, refused.Why)
	case err != nil:
		return problemOfProvider(err)
	}
	if _, err := s.signIn(w, r, p, s.fromProvider(r)); err != nil {
		return err
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// vouched tells for whom the provider vouches. What the browser kept for that is good for one time, and for what comes
// with its state alone: another site can send a browser here with anything.
func (s *Server) vouched(w http.ResponseWriter, r *http.Request) (*auth.Principal, error) {
	flow, q := cookie(r, s.flowCookie(r)), newQuery(r)
	state, code, wrong := q.text(oidcState), q.text(oidcCode), q.text(oidcError)
	if err := q.err(); err != nil {
		return nil, err
	}
	if err := auth.CheckFlow(flow, state); err != nil {
		return nil, err
	}
	var giveBack func()
	if wrong == "" {
		var err error
		if giveBack, err = s.paceStrangers(r); err != nil {
			return nil, err
		}
	}
	setCookie(w, s.flowCookie(r), "", http.SameSiteLaxMode, 0)
	if wrong != "" {
		return nil, &auth.Refused{Why: "the identity provider says " + cutShort(wrong)}
	}
	p, err := s.cfg.OIDC.Finish(r.Context(), flow, state, code)
	if err == nil {
		giveBack() // that was no stranger
	}
	return p, err
}

// addressOf is what the address of a request counts as.
func addressOf(r *http.Request) string { return auth.AddressKey(job.ActorOf(r.Context()).Origin) }

func problemOfProvider(err error) error {
	if errors.Is(err, auth.ErrNoClock) {
		return unavailable.problem("The node has not read the database's clock yet. Begin the sign-in again in a moment.")
	}
	var away *auth.ProviderError
	if !errors.As(err, &away) {
		return err
	}
	p := providerAway.problem("It may be down, or set up wrongly; the node's log says more under this request_id. Signing in with a token works all the same.")
	p.cause = err
	return p
}

var refusedText = template.Must(template.New("refused").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Not signed in</title>
<h1>Not signed in</h1><p>You were not let in: {{.}}.</p><p><a href="/">Back</a></p></html>
`))

// refusedPage says to a person in front of a browser why there is no login.
func refusedPage(w http.ResponseWriter, why string) error {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusForbidden)
	return refusedText.Execute(w, why)
}
