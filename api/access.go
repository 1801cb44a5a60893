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

// access says who may use a route. Its zero value admits no caller.
type access struct {
	open bool // everybody may use the route
	role auth.Role
	over extent

	password bool // a token may also come as the password of HTTP Basic, see orPassword
}

// open admits everybody, also callers without a token or login.
var open = access{open: true}

// may admits callers with this role or a higher one, within the extent.
func may(role auth.Role, over extent) access { return access{role: role, over: over} }

// orPassword also admits clients that can only send a user name and a password, such as calendar
// programs. Such a client stores the token, sends it with each poll, may share its calendar, and
// shows its settings freely. So the token must be read-only.
func (a access) orPassword() access {
	a.password = true
	return a
}

// The roles, as the table names them.
const (
	viewer   = auth.Viewer
	operator = auth.Operator
	admin    = auth.Admin
)

// extent is the range of objects that a route reaches. It decides what a caller sees whose role is
// limited to some apps.
type extent int

const (
	whole    extent = iota // the cluster, or objects without an app: hidden from callers limited to apps
	shared                 // objects without an app that every viewer may read
	filtered               // a list: its handler omits other apps
	inBody                 // the body or the query names the app: the handler checks it
	ofApp                  // {app} is the app
	ofJob                  // {id} is a job
	// {id} is a job. The route also shows the job's past in earlier apps; the handler omits apps
	// that the caller may not see.
	ofJobsPast
	ofRun      // {id} is a run
	ofBackfill // {id} is a backfill
)

// guard checks access before it calls a handler. It wraps the handler itself, so every spelling of
// a path is guarded.
func (s *Server) guard(a access, h handler) handler {
	if a.open {
		return h
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		p, err := s.identify(w, r, a)
		if err != nil {
			return withCaller(p, err)
		}
		defer holdConnection(r)()
		if err = s.allow(r, p, a); err == nil {
			err = h(w, r.WithContext(auth.With(r.Context(), p)))
		}
		return withCaller(p, err)
	}
}

// withCaller adds the caller to an error, if the caller is known.
func withCaller(p *auth.Principal, err error) error {
	if err == nil || p == nil {
		return err
	}
	return &asked{err, p}
}

// asked is the error of a request, together with the caller.
type asked struct {
	error
	by *auth.Principal
}

func (a *asked) Unwrap() error { return a.error }

// noteForbidden records in the audit which request got 403, from which caller, and why.
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

// identify authenticates the caller of a request and throttles callers that send too many.
func (s *Server) identify(w http.ResponseWriter, r *http.Request, a access) (*auth.Principal, error) {
	now, asking := time.Now(), r
	if a.password {
		asking = passwordAsToken(r)
	}

	p, err := s.authenticate(asking, now)
	if err == nil && asking != r && p.Role() != viewer {
		err = forbidden.problem(
			"%s has the role %s, but a token that is sent as a password must have the role viewer. Create one for this "+
				"calendar.", cutShort(p.Name), p.Role())
	}

	if err != nil {
		if errors.As(err, new(*auth.Refused)) && r.Header.Get("Authorization") == "" {
			s.dropCookie(w, r) // otherwise the browser would send the useless cookie forever
		}
		err = s.refused(r, err, now)
		if a.password && problemOf(err).Status == http.StatusUnauthorized {
			w.Header().Add("WWW-Authenticate", `Basic realm="go-crontab", charset="UTF-8"`)
		}
		return p, err // p is known if the token is valid but does not admit to this route
	}

	return p, s.pace(r, p, now)
}

// passwordAsToken returns a copy of the request that carries the password of HTTP Basic as its
// token. A request without such a password is returned unchanged.
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

func (s *Server) authenticate(r *http.Request, now time.Time) (*auth.Principal, error) {
	changing := r.Method != http.MethodGet && r.Method != http.MethodHead
	address := job.ActorOf(r.Context()).Origin

	if given := r.Header.Values("Authorization"); len(given) > 0 {
		scheme, token, _ := strings.Cut(given[0], " ")
		if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") {
			return nil, unauthenticated.problem(
				"The Authorization header is not understood. Send it once, as Authorization: Bearer TOKEN.")
		}
		return s.gate.ByToken(r.Context(), strings.TrimSpace(token), address, changing, now)
	}

	if _, login := s.loginOf(r); login.Cookie != "" {
		return s.gate.ByLogin(r.Context(), login, address, changing, now)
	}
	return nil, unauthenticated.problem(
		"No token was sent. Send one as Authorization: Bearer TOKEN, or sign in with POST /api/v1/login; a browser's " +
			"cookie is only valid together with the header " + loginHeader + ". " +
			"go-crontab migrate --bootstrap prints the first token, go-crontab token create makes others.")
}

// refused turns an authentication error into a problem, and records the refused attempt.
func (s *Server) refused(r *http.Request, err error, now time.Time) error {
	var (
		refused *auth.Refused
		busy    *auth.Busy
	)
	switch {
	case errors.As(err, &refused):
		s.gate.Refuse(r.Context(), refused, now)
		return unauthenticated.problem("%s.", cut(capital(refused.Why), maxMessage))
	case errors.As(err, &busy):
		return slowDown(busy.Wait, "Too many invalid tokens were sent from your address.")
	}

	return err
}

// pace delays a client that exceeds its rate, by at most longestDelay. A client that would have to
// wait longer is refused.
func (s *Server) pace(r *http.Request, p *auth.Principal, now time.Time) error {
	if s.rate == nil {
		return nil
	}

	key := limitKey(p)
	if p.Login != 0 { // each signed-in browser counts separately
		key = fmt.Sprintf("login %d", p.Login)
	}

	wait, ok := s.rate.Take(key, now, longestDelay)
	if !ok {
		return slowDown(wait, "%s sends more than %d requests a second.", p.Name, s.cfg.Rate)
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

// limitKey is the key for limits that a client must not escape by signing in again. It is the
// token, even if a browser signed in with the token. Without a token it is the person that the
// identity provider has confirmed.
func limitKey(p *auth.Principal) string {
	if p.Token != 0 {
		return fmt.Sprintf("token %d", p.Token)
	}
	return p.Kind + " " + p.Name
}

// slowDown is the problem of a client that sends too many requests.
func slowDown(wait time.Duration, format string, args ...any) *Problem {
	p := tooMany.problem(format, args...)
	p.retryAfter = strconv.Itoa(max(1, int(math.Ceil(wait.Seconds()))))
	return p
}

// allow returns why a principal may not use a route, or nil. An object in an app that the principal
// cannot see is reported as missing.
//
// Between this check and the handler, a cluster admin may move the job into another app. The
// request then acts as if it had come just before the move.
func (s *Server) allow(r *http.Request, p *auth.Principal, a access) error {
	switch {
	case p.May(a.role):
		return nil
	case a.role == auth.None || p.Role() < a.role:
		return forbid(p, "This needs the role %s", a.role)
	}

	switch a.over {
	case shared, filtered, inBody:
		return nil
	case whole:
		return forbid(p, "This concerns the whole cluster and needs the role %s without a limit to apps", a.role)
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
		return forbid(p, "This needs the role %s in app %s", a.role, cutShort(app))
	}

	return none
}

// allowPast admits a caller if it may read any app that the job has been in.
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

// mayRead reports whether the caller may read objects of an app.
func mayRead(ctx context.Context, app string) bool { return auth.Of(ctx).MayIn(viewer, app) }

// mayWrite returns why the caller may not write job definitions in an app, or nil.
func mayWrite(ctx context.Context, app string) error {
	if p := auth.Of(ctx); !p.MayIn(admin, app) {
		return forbid(p, "This needs the role %s in app %s", admin, cutShort(app))
	}
	return nil
}

func forbid(p *auth.Principal, format string, args ...any) error {
	return forbidden.problem(
		"%s, and you are %s. An admin of the cluster can create another token with go-crontab token create.",
		fmt.Sprintf(format, args...), cut(p.String(), maxMessage))
}

// appOf returns the app of the object that a path names. none is the error for an object that does
// not exist.
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

// notFoundAs replaces sql.ErrNotFound by the error none.
func notFoundAs(none, err error) error {
	if errors.Is(err, sql.ErrNotFound) {
		return none
	}
	return err
}

// securePrefix makes browsers accept a cookie only over TLS, only from this host, and for all
// paths.
const securePrefix = "__Host-"

// loginHeader carries the key of a login. Only scripts of the page's own origin have the key, and
// browsers let no other origin send the header.
const loginHeader = "X-Gocrontab-Login"

// cookieName is the name of the cookie that belongs to a login key.
func cookieName(secure bool, key string) string {
	name := "gocrontab-" + auth.Tag(key)
	if secure {
		name = securePrefix + name
	}
	return name
}

// loginOf returns the name of the login's cookie, and the login whose key the request carries.
// Login.Cookie is "" if the request has no key, or no cookie for the key. A cookie alone is no
// login, because any site can make the browser send it.
//
// A cookie with securePrefix always counts, even if the request does not look secure. Behind a
// proxy that hides the Host, a read has neither a Host nor an Origin that shows TLS.
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

// secure reports whether the browser uses TLS, to this node or to a proxy before it. A proxy may
// replace the Host header. It passes on the Origin header, which browsers send with changes.
func (s *Server) secure(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	return s.publicTLS() && (strings.EqualFold(hostOf(r.Host), s.public.Hostname()) ||
		isOrigin(r.Header.Get("Origin"), s.public))
}

// publicTLS reports whether browsers reach the cluster over TLS. A proxy may end the TLS
// connection.
func (s *Server) publicTLS() bool { return s.public != nil && s.public.Scheme == "https" }

// isOrigin reports whether a header is the origin of an https URL.
func isOrigin(header string, u *url.URL) bool {
	o, err := url.Parse(header)
	return err == nil && o.Scheme == "https" && strings.EqualFold(o.Hostname(), u.Hostname()) &&
		cmp.Or(o.Port(), "443") == cmp.Or(u.Port(), "443")
}

// setCookie sets a cookie that no script can read. The value "" removes the cookie.
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
