package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/sql"

	"github.com/go-chi/chi/v5"
)

// access is who may use a route. Its zero value is for nobody.
type access struct {
	open bool // for all
	role auth.Role
	over extent

	password bool // a token is also taken as the password of HTTP Basic, see asPassword
}

// open is for all, also for those of whom nobody knows who they are.
var open = access{open: true}

// may is for those who have a role, or a higher one, where the extent says.
func may(role auth.Role, over extent) access { return access{role: role, over: over} }

// orPassword lets those in as well who can say who they are only by a user name and a password, as
// programs that show calendars. Such programs keep the token, send it with each look at what may be
// a shared calendar, and show their settings to whoever asks: so it must be one that can only read.
func (a access) orPassword() access {
	a.password = true
	return a
}

// The roles, as the table says them.
const (
	viewer   = auth.Viewer
	operator = auth.Operator
	admin    = auth.Admin
)

// extent is what a route is about: what of it those get whose role is limited to some apps.
type extent int

const (
	whole    extent = iota // the cluster, or what belongs to no app: nothing
	shared                 // what belongs to no app and may be read by all who may read anything
	filtered               // a list: its handler leaves out what is of other apps
	inBody                 // an app that the body or the query names: the handler checks it
	ofApp                  // {app} is one
	ofJob                  // {id} is that of a job
	// {id} is that of a job: also what it was in apps before; the handler leaves out what is of
	// other apps
	ofJobsPast
	ofRun      // of a run
	ofBackfill // of a backfill
)

// guard lets those through who may. It stands around the handler itself: however a path is written,
// what it leads to is guarded.
func (s *Server) guard(a access, h handler) handler {
	if a.open {
		return h
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		p, err := s.identify(w, r, a)
		if err != nil {
			return askedBy(p, err)
		}
		defer holdConnection(r)()
		if err = s.allow(r, p, a); err == nil {
			err = h(w, r.WithContext(auth.With(r.Context(), p)))
		}
		return askedBy(p, err)
	}
}

// askedBy adds to an error who made the request, if that is known.
func askedBy(p *auth.Principal, err error) error {
	if err == nil || p == nil {
		return err
	}
	return &asked{err, p}
}

// asked is the error of a request with who made it.
type asked struct {
	error
	by *auth.Principal
}

func (a *asked) Unwrap() error { return a.error }

// noteForbidden has the audit say what was refused with 403, to whom, and why.
func (s *Server) noteForbidden(r *http.Request, err error) {
	problem := problemOf(err)
	if problem.Status != http.StatusForbidden {
		return
	}

	var (
		a  *asked
		by *auth.Principal
	)
	if errors.As(err, &a) {
		by = a.by
	}

	path := cutShort(r.URL.Path)
	if route := chi.RouteContext(r.Context()); route != nil && route.RoutePattern() != "" {
		path = route.RoutePattern()
	}

	s.gate.Forbid(r.Context(), by, r.Method+" "+path, problem.Detail, time.Now())
}

// identify tells who makes a request, and has those wait who make too many.
func (s *Server) identify(w http.ResponseWriter, r *http.Request, a access) (*auth.Principal, error) {
	now, asking := time.Now(), r
	if a.password {
		asking = passwordAsToken(r)
	}

	p, err := s.whoAsks(asking, now)
	if err == nil && asking != r && p.Role() != viewer {
		err = forbidden.problem(
			"%s has role %s, and a token that is sent as a password must be one of role viewer: make one for this "+
				"calendar.", cutShort(p.Name), p.Role())
	}

	if err != nil {
		if errors.As(err, new(*auth.Refused)) && r.Header.Get("Authorization") == "" {
			s.dropCookie(w, r) // one that lets nobody in would be sent for ever
		}
		err = s.refused(r, err, now)
		if a.password && problemOf(err).Status == http.StatusUnauthorized {
			w.Header().Add("WWW-Authenticate", `Basic realm="go-crontab", charset="UTF-8"`)
		}
		return p, err // known where the token is good and the route takes another
	}

	return p, s.pace(r, p, now)
}

// passwordAsToken is the request as if the password of HTTP Basic had been sent as a token; the
// request itself where there is none.
func passwordAsToken(r *http.Request) *http.Request {
	_, password, ok := r.BasicAuth()
	if !ok || len(r.Header.Values("Authorization")) > 1 {
		return r
	}
	asking := r.WithContext(r.Context())
	asking.Header = r.Header.Clone()
	asking.Header.Set("Authorization", "Bearer "+password)
	return asking
}

func (s *Server) whoAsks(r *http.Request, now time.Time) (*auth.Principal, error) {
	changing := r.Method != http.MethodGet && r.Method != http.MethodHead
	address := job.ActorOf(r.Context()).Origin
	if given := r.Header.Values("Authorization"); len(given) > 0 {
		scheme, token, _ := strings.Cut(given[0], " ")
		if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") {
			return nil, unauthenticated.problem(
				"The header Authorization is not understood; send it once, as Authorization: Bearer TOKEN.")
		}
		return s.gate.ByToken(r.Context(), strings.TrimSpace(token), address, changing, now)
	}

	if _, login := s.loginOf(r); login.Cookie != "" {
		return s.gate.ByLogin(r.Context(), login, address, changing, now)
	}
	return nil, unauthenticated.problem(
		"Send a token as Authorization: Bearer TOKEN, or sign in with POST /api/v1/login: a browser's cookie counts " +
			"only with the header " + loginHeader + ". " +
			"The first token comes from go-crontab migrate --bootstrap, others from go-crontab token create.")
}

// refused says what an error of those means who could not be identified, and writes down who was
// not let in.
func (s *Server) refused(r *http.Request, err error, now time.Time) error {
	var (
		refused *auth.Refused
		busy    *auth.Busy
	)
	switch {
	case errors.As(err, &refused):
		s.gate.Refuse(r.Context(), refused, now)
		return unauthenticated.problem("You were not let in: %s.", cut(refused.Why, maxMessage))
	case errors.As(err, &busy):
		return slowDown(busy.Wait, "Too many tokens that there are not came from your address.")
	}

	return err
}

// pace has a client wait that makes more requests than it may, for a moment; one that makes many at
// once is sent away.
func (s *Server) pace(r *http.Request, p *auth.Principal, now time.Time) error {
	if s.rate == nil {
		return nil
	}

	key := holder(p)
	if p.Login != 0 { // each browser that is signed in counts by itself
		key = fmt.Sprintf("login %d", p.Login)
	}

	wait, ok := s.rate.Take(key, now, longestLine)
	if !ok {
		return slowDown(wait, "%s makes more than %d requests a second.", p.Name, s.cfg.Rate)
	}
	if wait == 0 {
		return nil
	}

	select {
	case <-r.Context().Done():
		return context.Cause(r.Context())
	case <-time.After(wait):
		return nil
	}
}

// holder is whom limits count that a sign-in must not lift: the token, also of browsers that signed
// in with it, or the person who came from the provider.
func holder(p *auth.Principal) string {
	if p.Token != 0 {
		return fmt.Sprintf("token %d", p.Token)
	}
	return p.Kind + " " + p.Name
}

// slowDown is the problem of one who asks too often.
func slowDown(wait time.Duration, format string, args ...any) *Problem {
	p := tooMany.problem(format, args...)
	p.retryAfter = strconv.Itoa(max(1, int(math.Ceil(wait.Seconds()))))
	return p
}

// allow tells why a principal may not use a route, or nil. What belongs to an app of which it may
// see nothing is not there, as far as it can tell.
//
// Between this look and what the handler does, somebody who may everything may move the job into
// another app: then it is as if the request had come just before.
func (s *Server) allow(r *http.Request, p *auth.Principal, a access) error {
	switch {
	case p.May(a.role):
		return nil
	case a.role == auth.None || p.Role() < a.role:
		return forbid(p, "That takes role %s", a.role)
	}

	switch a.over {
	case shared, filtered, inBody:
		return nil
	case whole:
		return forbid(p, "That concerns the whole cluster, and takes role %s without a limit to apps", a.role)
	}

	if a.over == ofJobsPast {
		return s.allowPast(r, p, a)
	}

	app, none, err := s.appOf(r, a.over)
	switch {
	case err != nil:
		return err
	case p.MayIn(a.role, app):
		return nil
	case a.over == ofApp && a.role > viewer, p.MayIn(viewer, app):
		return forbid(p, "That takes role %s of app %s", a.role, cutShort(app))
	}

	return none
}

// allowPast lets those read the past of a job who may read what it has had in any of its apps.
func (s *Server) allowPast(r *http.Request, p *auth.Principal, a access) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}

	apps, err := s.cfg.DB.AppsOfJob(r.Context(), id)
	if err != nil {
		return err
	}

	for _, app := range apps {
		if p.MayIn(a.role, app) {
			return nil
		}
	}

	return sql.ErrNotFound
}

// mayRead reports whether who makes a request may read what is of an app.
func mayRead(ctx context.Context, app string) bool { return auth.Of(ctx).MayIn(viewer, app) }

// mayWrite tells why who makes a request may not write the definition of a job of an app, or nil.
func mayWrite(ctx context.Context, app string) error {
	if p := auth.Of(ctx); !p.MayIn(admin, app) {
		return forbid(p, "That takes role %s of app %s", admin, cutShort(app))
	}
	return nil
}

func forbid(p *auth.Principal, format string, args ...any) error {
	return forbidden.problem(
		"%s; this is %s. Whoever is admin of the cluster can make another token: go-crontab token create.",
		fmt.Sprintf(format, args...), cut(p.String(), maxMessage))
}

// appOf returns the app to which the thing belongs that a path names, and what is answered where
// there is none.
func (s *Server) appOf(r *http.Request, over extent) (app string, none, err error) {
	ctx := r.Context()
	switch over {
	case ofApp:
		app, err = param(r, "app")
		return app, sql.ErrNotFound, err
	case ofJob:
		id, err := jobID(r)
		if err != nil {
			return "", nil, err
		}
		app, err = s.cfg.DB.AppOfJob(ctx, id)
		return app, sql.ErrNotFound, err
	case ofBackfill:
		id, err := backfillID(r)
		if err != nil {
			return "", nil, err
		}
		none = noBackfill(strconv.FormatInt(id, 10))
		app, err = s.cfg.DB.AppOfBackfill(ctx, id)
		return app, none, notFoundAs(none, err)
	case ofRun:
		text, err := param(r, "id")
		if err != nil {
			return "", nil, err
		}

		none = noRun(text)
		id, err := job.ParseRunID(text)
		if err != nil {
			return "", nil, none
		}

		app, err = s.cfg.DB.AppOfRun(ctx, id)
		return app, none, notFoundAs(none, err)
	}

	return "", nil, fmt.Errorf("extent %d has no rule", over)
}

// notFoundAs has an error say what is answered where there is nothing.
func notFoundAs(none, err error) error {
	if errors.Is(err, sql.ErrNotFound) {
		return none
	}
	return err
}

// securePrefix has browsers take a cookie only over TLS, from us alone, and for all paths.
const securePrefix = "__Host-"

// loginHeader carries the key of a login. Only scripts of the page's own origin have the key, and
// only they may send the header: we allow it to no other origin.
const loginHeader = "X-Gocrontab-Login"

// cookieName is the name of the cookie that belongs to the key of a login.
func cookieName(secure bool, key string) string {
	name := "gocrontab-" + auth.Tag(key)
	if secure {
		name = securePrefix + name
	}
	return name
}

// loginOf returns the login that a request names by its key, and the name of its cookie. Cookie is
// "" if the request has no key or no cookie for it: a cookie alone is no login, whoever sends it.
//
// A cookie with the prefix counts in any case: behind a proxy that does not pass the Host on, a
// read has neither a Host nor an Origin that would show TLS.
func (s *Server) loginOf(r *http.Request) (name string, login auth.Login) {
	login.Key = r.Header.Get(loginHeader)
	if login.Key == "" {
		return "", login
	}

	name = cookieName(true, login.Key)
	if login.Cookie = cookie(r, name); login.Cookie == "" && !s.secure(r) {
		name = cookieName(false, login.Key)
		login.Cookie = cookie(r, name)
	}

	return name, login
}

func cookie(r *http.Request, name string) string {
	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// secure tells whether the browser that makes a request has a TLS connection, to us or to a proxy
// before us. A proxy that does not pass the Host on passes the Origin, which changes have.
func (s *Server) secure(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	return s.publicTLS() && (strings.EqualFold(hostOf(r.Host), s.public.Hostname()) ||
		isOrigin(r.Header.Get("Origin"), s.public))
}

// publicTLS tells whether browsers reach the cluster over TLS, wherever that ends.
func (s *Server) publicTLS() bool { return s.public != nil && s.public.Scheme == "https" }

// isOrigin tells whether a header is the origin of a URL with https.
func isOrigin(header string, u *url.URL) bool {
	o, err := url.Parse(header)
	return err == nil && o.Scheme == "https" && strings.EqualFold(o.Hostname(), u.Hostname()) &&
		cmp.Or(o.Port(), "443") == cmp.Or(u.Port(), "443")
}

// setCookie gives a browser a cookie that no script can read; "" takes it away.
func setCookie(w http.ResponseWriter, name, value string, life time.Duration) {
	c := &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(life.Seconds()),
		HttpOnly: true, Secure: strings.HasPrefix(name, securePrefix), SameSite: http.SameSiteStrictMode,
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

func (s *Server) dropCookie(w http.ResponseWriter, r *http.Request) {
	if name, login := s.loginOf(r); login.Cookie != "" {
		setCookie(w, name, "", 0)
	}
}
