package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"go-crontab/internal/auth"
	"go-crontab/job/problem"
	"go-crontab/sql"
)

// loginRowView is a signed-in browser as clients see it.
type loginRowView struct {
	ID       string       `json:"id" doc:"Its id."`
	Who      string       `json:"who" doc:"Who is signed in, as in the audit."`
	Kind     string       `json:"kind" enum:"token,oidc" doc:"How the person was authenticated: by a token, or by an identity provider."`
	Grants   []auth.Grant `json:"grants" doc:"The roles, and where they apply."`
	Since    string       `json:"since" format:"date-time" doc:"When the browser signed in."`
	From     string       `json:"from,omitempty" doc:"The address from which the browser signed in."`
	Until    string       `json:"until" format:"date-time" doc:"When the sign-in expires."`
	Used     string       `json:"last_used,omitempty" format:"date-time" doc:"When it was last used, to about a minute. Absent if it was never used."`
	UsedFrom string       `json:"last_used_from,omitempty" doc:"The address from which it was used."`
	Checked  string       `json:"checked,omitempty" format:"date-time" doc:"When the identity provider last confirmed it. Absent if it has not since the sign-in."`
	Next     string       `json:"check_at,omitempty" format:"date-time" doc:"When the identity provider is asked again. Absent if it is not, and the role lasts until the sign-in expires."`
	Current  bool         `json:"current" doc:"Whether it is the sign-in of this request."`
}

func viewOfLogin(l *auth.SignedIn, p *auth.Principal) loginRowView {
	v := loginRowView{
		ID: strconv.FormatInt(l.ID, 10), Who: l.Who, Kind: auth.KindOIDC, Grants: auth.GrantsOf(l),
		Since: stamp(l.Created), From: l.Origin, Until: stamp(l.Expires), Used: stamp(l.Used), UsedFrom: l.UsedFrom,
		Checked: stamp(l.Checked), Next: stamp(l.CheckAt), Current: p.Login == l.ID,
	}

	if l.TokenID != 0 {
		v.Kind = auth.KindToken
	}
	if v.Grants == nil { // a row edited by hand may have no grants; it admits its browser to nothing
		v.Grants = []auth.Grant{}
	}
	return v
}

// ownLogin reports whether a login belongs to the token or person of the caller.
func ownLogin(p *auth.Principal, l *auth.LoginRow) bool {
	return l.TokenID == p.Token && l.Who == p.Name
}

// mayEnd returns which logins a caller may end: cluster admins all logins, other callers their own.
func mayEnd(p *auth.Principal) func(*auth.LoginRow) bool {
	return func(l *auth.LoginRow) bool { return p.May(admin) || ownLogin(p, l) }
}

// listLogins: GET /api/v1/logins
func (s *Server) listLogins(w http.ResponseWriter, r *http.Request) error {
	p, q := auth.Of(r.Context()), newQuery(r)
	f := auth.LoginFilter{Who: q.text(loginWho)}
	limit := q.limit()

	if c := q.cursor("logins"); c != nil {
		f.After = c.ID
	}
	if err := q.err(); err != nil {
		return err
	}

	if !p.May(admin) {
		if f.Who != "" && f.Who != p.Name {
			return forbid(p, "The sign-ins of others need the role %s without a limit to apps", admin)
		}
		f.Who, f.TokenID = p.Name, &p.Token
	}

	f.Limit = limit + 1 // one more shows whether there is a next page
	rows, err := auth.Logins(s.cfg.DB.Reader(r.Context()), f)
	if err != nil {
		return err
	}

	out := page[loginRowView]{Items: []loginRowView{}}
	rows, out.Next = oneMore("logins", rows, limit, func(l *auth.SignedIn) int64 { return l.ID })
	for i := range rows {
		out.Items = append(out.Items, viewOfLogin(&rows[i], p))
	}

	return answer(w, http.StatusOK, out)
}

func noLogin(id string) error {
	return notFound.problem("There is no sign-in %q; GET /api/v1/logins lists them.", cutShort(id))
}

// endLogin: DELETE /api/v1/logins/{id}. A login that the caller may not end looks missing.
func (s *Server) endLogin(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, noLogin)
	if err != nil {
		return err
	}

	switch err := s.issuer.EndLogin(r.Context(), id, mayEnd(auth.Of(r.Context()))); {
	case errors.Is(err, sql.ErrNotFound):
		return noLogin(strconv.FormatInt(id, 10))
	case err != nil:
		return lookAt(err, "GET /api/v1/logins shows whether it still exists. You can safely repeat the request.")
	}

	s.gate.Forget()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// endedView counts the ended sign-ins.
type endedView struct {
	Ended int `json:"ended" doc:"How many sign-ins were ended."`
}

// endLogins: DELETE /api/v1/logins?who=NAME. The name is required: without it, every login would
// end.
func (s *Server) endLogins(w http.ResponseWriter, r *http.Request) error {
	p, q := auth.Of(r.Context()), newQuery(r)
	who := q.text(loginWhose)
	if who == "" {
		q.wrong(loginWhose.name, problem.Missing.Advise(
			"give the name of the person or token whose sign-ins should end, as in GET /api/v1/logins"))
	}
	if err := q.err(); err != nil {
		return err
	}
	if !p.May(admin) && who != p.Name {
		return forbid(p, "The sign-ins of others need the role %s without a limit to apps", admin)
	}

	n, err := s.issuer.EndLogins(r.Context(), who, mayEnd(p))
	switch {
	case errors.Is(err, sql.ErrNotFound):
		return notFound.problem("Nobody is signed in as %q. The name must be exact; GET /api/v1/logins lists all sign-ins.",
			cutShort(who))
	case err != nil:
		return lookAt(err, "GET /api/v1/logins shows the remaining sign-ins. You can safely repeat the request.")
	}

	s.gate.Forget()
	return answer(w, http.StatusOK, endedView{n})
}

// checker asks the identity provider again about signed-in people. It is nil without a provider, or
// without a key to seal the provider's tokens.
func (s *Server) checker() *auth.Checker {
	if s.cfg.OIDC == nil || s.issuer.Keys == nil {
		return nil
	}
	return auth.NewChecker(auth.CheckerConfig{
		DB:   s.cfg.DB.DB,
		OIDC: s.cfg.OIDC,
		Keys: s.issuer.Keys,
		Now:  s.cfg.Now,
		Log:  s.cfg.Log,
	})
}

// startChecks checks sign-ins until ctx ends or stop is called; stop waits for the end.
func (s *Server) startChecks(ctx context.Context) (stop func()) {
	c := s.checker()
	if c == nil {
		return func() {}
	}

	checking, cancel := context.WithCancel(ctx)
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		_ = c.Run(checking) // it only ends with its context
	}()

	return func() {
		cancel()
		<-checked
	}
}

// issuerOf makes the issuer of a server. A nil ring must not become a non-nil interface.
func issuerOf(cfg *Config) auth.Issuer {
	i := auth.Issuer{DB: cfg.DB.DB}
	if cfg.SecretKeys != nil {
		i.Keys = cfg.SecretKeys
	}
	return i
}
