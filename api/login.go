package api

import (
	"errors"
	"net/http"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
)

func viewOfMe(p *auth.Principal) view.Me {
	return view.Me{
		Name: p.Name, Kind: p.Kind, Role: roleOf(p.Role()), Apps: p.Sees(), Grants: grantsOf(p.Grants),
		Expires: instant(p.Expires),
	}
}

func roleOf(r auth.Role) view.Role { return view.Role(r.String()) }

// grantsOf shows grants. Without grants it returns an empty list.
func grantsOf(grants []auth.Grant) []view.Grant {
	out := make([]view.Grant, len(grants))
	for i, g := range grants {
		out[i] = view.Grant{Role: roleOf(g.Role), Apps: g.Apps}
	}
	return out
}

// me: GET /api/v1/me
func (s *Server) me(w http.ResponseWriter, r *http.Request) error {
	return answer(w, http.StatusOK, viewOfMe(auth.Of(r.Context())))
}

// waysIn: GET /api/v1/login
func (s *Server) waysIn(w http.ResponseWriter, r *http.Request) error {
	v := view.Ways{Token: true}
	if s.cfg.OIDC != nil {
		v.OIDC = s.cfg.OIDC.Origin()
	}
	return answer(w, http.StatusOK, v)
}

// login: POST /api/v1/login. It exchanges a token for a cookie and a key. No script can read the
// cookie, and no other origin can read the key.
func (s *Server) login(w http.ResponseWriter, r *http.Request) error {
	body, err := readObject(r)
	if err != nil {
		return err
	}

	f, token := newFields(body), ""
	f.text("token", &token)
	if token == "" {
		f.wrong("token", problem.Missing.Advise("create one with go-crontab token create"))
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

	return s.signIn(w, r, p)
}

// signIn makes a login, sets its cookie, and answers with its key.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request, p *auth.Principal) error {
	if wait, ok := s.signIns.Take(limitKey(p), time.Now(), 0); !ok {
		return slowDown(wait, "%s signs in too often.", p.Name)
	}

	login, expires, err := s.issuer.SignIn(r.Context(), p, s.cfg.LoginLife)
	if err != nil {
		return lookAt(err, "Sign in again; an unused sign-in expires by itself.")
	}

	s.gate.Expect(login)
	setCookie(w, cookieName(s.secure(r), login.Key), login.Cookie, s.cfg.LoginLife)
	signed := *p
	signed.Expires = expires
	return answer(w, http.StatusOK, view.Login{Me: viewOfMe(&signed), Key: login.Key})
}

// logout: POST /api/v1/logout
func (s *Server) logout(w http.ResponseWriter, r *http.Request) error {
	if err := readNothing(r); err != nil {
		return err
	}
	if err := s.issuer.SignOut(r.Context(), auth.Of(r.Context())); err != nil {
		return lookAt(err, "You can safely repeat the request.")
	}

	s.gate.Forget()
	s.dropCookie(w, r)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// paceStrangers limits how many provider requests unauthenticated callers cause. It counts them by
// address.
func (s *Server) paceStrangers(r *http.Request) (giveBack func(), err error) {
	giveBack, wait, ok := s.flows.Take(addressOf(r), time.Now())
	if !ok {
		return nil, slowDown(wait, "Too many sign-ins were tried from your address.")
	}
	return giveBack, nil
}

// noProvider is the answer without an identity provider.
func (s *Server) noProvider(r *http.Request) error {
	if _, err := s.paceStrangers(r); err != nil {
		return err
	}
	return notFound.problem("This cluster has no identity provider; sign in with a token.")
}

// One page begins and ends a sign-in at the provider. In between the page keeps its secrets in the
// storage of its tab, which only its own origin can read and write. So another site cannot end a
// sign-in that the page began. Nor can another site make the page end a sign-in that somebody else
// began. A server on another port of the host counts as another site.

// beginOIDC: POST /api/v1/login/oidc
func (s *Server) beginOIDC(w http.ResponseWriter, r *http.Request) error {
	if err := readNothing(r); err != nil {
		return err
	}
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
	return answer(w, http.StatusOK, view.Began{Target: target, Flow: flow})
}

// returnOIDC: GET /api/v1/login/oidc/callback. The provider sends browsers back to this address.
// They get the page, which calls endOIDC. The answer must not be stored, because its address holds
// a code.
func (s *Server) returnOIDC(w http.ResponseWriter, r *http.Request) error {
	return servePage(w, r, "no-store")
}

// endOIDC: POST /api/v1/login/oidc/callback. The page sends the values that it kept, and the values
// that the provider added to the page's address.
func (s *Server) endOIDC(w http.ResponseWriter, r *http.Request) error {
	body, err := readObject(r)
	if err != nil {
		return err
	}

	var back returned
	f := newFields(body)
	f.text("flow", &back.flow)
	f.text("state", &back.state)
	f.text("code", &back.code)
	f.text("error", &back.wrong)
	if err := f.done(); err != nil {
		return err
	}

	if s.cfg.OIDC == nil {
		return s.noProvider(r)
	}

	p, err := s.vouched(r, back)
	if errors.As(err, new(*auth.Refused)) {
		return s.refused(r, err, time.Now())
	}
	if err != nil {
		return problemOfProvider(err)
	}

	return s.signIn(w, r, p)
}

// returned holds what the page has after the provider has sent the browser back.
type returned struct{ flow, state, code, wrong string }

// vouched returns the person whose identity the provider confirms. The state of the flow must
// match, because another site can send a browser back with any values.
func (s *Server) vouched(r *http.Request, back returned) (*auth.Principal, error) {
	if err := auth.CheckFlow(back.flow, back.state); err != nil {
		return nil, err
	}
	if back.wrong != "" {
		return nil, &auth.Refused{Why: "the identity provider refused the sign-in: " + cutShort(back.wrong)}
	}

	giveBack, err := s.paceStrangers(r)
	if err != nil {
		return nil, err
	}

	p, err := s.cfg.OIDC.Finish(r.Context(), back.flow, back.state, back.code)
	if err == nil {
		giveBack() // the caller is authenticated, so it does not count as a stranger
	}
	return p, err
}

// addressOf is the address by which limits count a request.
func addressOf(r *http.Request) string { return auth.AddressKey(job.ActorOf(r.Context()).Origin) }

func problemOfProvider(err error) error {
	if errors.Is(err, auth.ErrNoClock) {
		return unavailable.problem(
			"This node has not read the database's clock yet. Start the sign-in again in a moment.")
	}

	var away *auth.ProviderError
	if !errors.As(err, &away) {
		return err
	}

	p := providerAway.problem(
		"It may be down, or its settings may be wrong. Signing in with a token still works.")
	p.cause, p.inLog = err, true
	return p
}
